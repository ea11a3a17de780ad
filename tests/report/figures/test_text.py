"""Names in figures: one line, only glyphs that exist, no wider than their place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.report.figures.text import _glyphs, fitted, middle_fitted, shown, width_in, wrapped


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("aten::linear", "aten::linear"),
        ("ядро", "ядро"),
        ("线", "⟨U+7EBF⟩"),
        ("🚀", "⟨U+1F680⟩"),
        ("نو", "⟨U+0646⟩⟨U+0648⟩"),  # right to left would turn the text around it
        ("e\u0301", "e⟨U+0301⟩"),
        ("a\nb\x1b", "a⟨U+000A⟩b⟨U+001B⟩"),
        ("$x$", "$x$"),
    ],
)
def test_what_the_font_lacks_is_spelled_out(text: str, expected: str) -> None:
    assert shown(text) == expected


@given(st.text(max_size=60), st.integers(20, 90))
def test_any_text_has_glyphs_and_a_limit(text: str, limit: int) -> None:
    result = shown(text, limit)
    assert all(ord(char) in _glyphs() for char in result)
    assert len(result) <= limit
    assert "\n" not in result


def test_a_very_long_name_is_quick_and_short() -> None:
    assert len(shown("名" * 200_000)) <= 90


@given(st.text(st.sampled_from("abcWi .:_<>"), max_size=80), st.floats(0.05, 5))
def test_what_is_fitted_fits(text: str, room: float) -> None:
    result = fitted(text, 8, room)
    assert width_in(result, 8) <= room or not result
    assert result == text or result.endswith("…") or not result


def test_two_long_names_stay_two() -> None:
    first, second = ("kernel<" + "int, " * 40 + middle + "float, " * 40 + ">" for middle in ("A", "B"))
    assert first != second
    shown_both = {middle_fitted(first, 8, 3), middle_fitted(second, 8, 3)}
    assert len(shown_both) == 2
    assert all(width_in(text, 8) <= 3 for text in shown_both)


def test_lines_break_at_blanks() -> None:
    lines = wrapped("one two three " * 20, 8, 2)
    assert len(lines) > 2
    assert " ".join(lines).split() == ["one", "two", "three"] * 20
    assert all(width_in(line, 8) <= 2 for line in lines)
    assert wrapped("", 8, 2) == []


def test_widths_are_those_that_matplotlib_draws() -> None:
    from matplotlib.figure import Figure

    from analyzer.report.figures.sheet import drawing

    text = "void at::native::elementwise_kernel<128, 4>(int) 12.345 ms"
    with drawing():
        figure = Figure(dpi=144)
        drawn = figure.text(0, 0, text, fontsize=8).get_window_extent().width / 144
    assert width_in(text, 8) == pytest.approx(drawn, rel=0.03)
