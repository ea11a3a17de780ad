from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.report.escape import cell, code, prose, quoted, visible
from analyzer.report.tables import table

ANY_TEXT = st.text(st.characters(), max_size=200)
STEERING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def steers(text: str) -> bool:
    return any(unicodedata.category(char) in STEERING for char in text)


@given(ANY_TEXT)
def test_nothing_shown_hides_or_steers(text: str) -> None:
    for shown in (visible(text), code(text), cell(text), prose(text), quoted(text)):
        assert not steers(shown)
        assert "\n" not in shown


@given(ANY_TEXT, ANY_TEXT)
def test_two_texts_never_look_the_same(one: str, other: str) -> None:
    if one != other:
        assert visible(one) != visible(other)
        assert cell(one) != cell(other)


@given(ANY_TEXT)
def test_a_cell_holds_no_pipe_and_only_its_own_backticks(text: str) -> None:
    shown = cell(text)
    assert "|" not in shown
    assert re.fullmatch(r"`[^`]+`|\(empty name\)", shown)


@given(ANY_TEXT)
def test_prose_holds_no_markup(text: str) -> None:
    shown = prose(text)
    unescaped = re.sub(r"\\[\\`*\[\]~$_=#+-]", "", re.sub(r"(?<!\\)`[^`|]+`", "", shown))
    assert not re.search(r"[`*<>\[\]|]|://", unescaped)
    assert not re.match(r"[#+=-]|\d+[.)]( |$)", unescaped) or shown.startswith("\\")


@given(st.lists(st.tuples(ANY_TEXT, ANY_TEXT), max_size=4))
def test_tables_stay_intact(rows: list[tuple[str, str]]) -> None:
    text = table(["Name", "Effect"], [[cell(one), prose(other)] for one, other in rows])
    lines = text.split("\n")
    assert len(lines) == len(rows) + 2
    assert all(re.fullmatch(r"\| [^|]+ \| [^|]* \|", line) for line in lines)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("void gemm<float, 4>(int*)", "`void gemm<float, 4>(int*)`"),
        ("a|b`c", "`a⟨U+007C⟩b⟨U+0060⟩c`"),
        ("\x1b[31mred\x1b]0;title\x07", "`⟨U+001B⟩[31mred⟨U+001B⟩]0;title⟨U+0007⟩`"),
        ("\u202egnp.exe", "`⟨U+202E⟩gnp.exe`"),
        ("⟨U+001B⟩", "`⟨U+27E8⟩U+001B⟩`"),
        (" lead", "`⟨U+0020⟩lead`"),
        ("", "(empty name)"),
        ("naïve 核", "`naïve 核`"),
    ],
)
def test_how_names_look(name: str, shown: str) -> None:
    assert cell(name) == shown


def test_long_names_keep_both_ends_and_stay_distinct() -> None:
    head, tail = "cutlass::Kernel<" + "A" * 20_000, ">::run"
    one, other = cell(head + tail), cell(head + "A" + tail)
    assert len(one) <= 92
    assert one.startswith("`cutlass::Kernel<AAA")
    assert one.endswith("A>::run`")
    assert one != other


def test_prose_neutralizes_links_html_and_lists() -> None:
    assert prose("<script>alert(1)</script>") == "&lt;script&gt;alert(1)&lt;/script&gt;"
    assert prose("see https://evil.example") == "see https:&#47;&#47;evil.example"
    assert prose("[x](javascript:1)") == "\\[x\\](javascript:1)"
    assert prose("1. item") == "1\\. item"
    assert prose("2024.5.1") == "2024.5.1"
    assert prose("nsys `--trace=cuda,nvtx`, or `a|b`") == "nsys `--trace=cuda,nvtx`, or `a⟨U+007C⟩b`"
    assert prose("one ` alone") == "one \\` alone"
    assert prose("idle.after_last and _x_") == "idle.after_last and \\_x\\_"
