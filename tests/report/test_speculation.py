"""SPECULATION.md of literal counts."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import msgspec
import pytest
from markdown_it import MarkdownIt

from analyzer.report.speculation import render_speculation, terminal_lines, write_speculation
from analyzer.speculation.counts import Row, Totals, cycles_of, from_histogram
from analyzer.speculation.result import Speculation
from analyzer.speculation.speedup import given, speculate, timed
from tests.report.test_markdown import HOSTILE
from tests.scaling.runs import PINS, alternating, diagnosis

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "speculation.md"
COUNTS = from_histogram("file", {0: 20, 1: 16, 2: 64}, 2)
FALLING = from_histogram("file", {0: 100, 1: 450, 2: 300, 3: 150}, 3)


def test_the_answer_and_its_kinds() -> None:
    text = render_speculation(speculate("accepted.csv", COUNTS, given(9e6), given(16e6)))
    assert "**2.440 tokens per cycle** (95 % interval 2.280 to 2.600), measured over 100 cycles." in text
    assert (
        "**Speedup 1.373x** (95 % interval 1.285 to 1.466), a model: speculation is faster, if cycles are independent"
        in text
    )
    assert "It breaks even at 1.778 tokens per cycle." in text
    assert "A time is given, not measured: the speedup is a model at that time." in text
    assert "| Accepted / drafted (an engine's counter, not the model's chance) |" in text
    assert "72.00 %" in text and "80.00 % (" in text


def test_with_requests_told_apart_nothing_is_taken_as_independent() -> None:
    rows = [Row(f"line {at}", at % 3 or 2, 2, request=f"r{at % 10}") for at in range(100)]
    text = render_speculation(
        speculate("accepted.csv", cycles_of("accepted.csv", "cycles", rows, None), given(9e6), given(16e6))
    )
    assert "a model: speculation is faster. It breaks even" in text
    assert "independent" not in text


def test_a_measured_speedup_is_a_measurement() -> None:
    sides = (timed(name, diagnosis(alternating(us), PINS)) for name, us in (("a", 980), ("b", 1_580)))
    text = render_speculation(speculate("accepted.csv", COUNTS, *sides))
    assert ", a measurement: speculation is faster, if cycles are independent" in text
    assert "A time is given" not in text and "Undeclared" not in text
    assert "how much two runs of one program differ is not in it" in text


def test_a_model_that_does_not_describe_the_counts_is_warned_of() -> None:
    text = render_speculation(speculate("accepted.csv", FALLING))
    assert "- One chance for all positions does not describe the counts: " in text
    assert "acceptance falls with the position" in text
    assert "## What it gains" not in text


def test_chances_without_intervals_name_no_method() -> None:
    text = render_speculation(speculate("few.csv", from_histogram("file", {0: 1, 2: 2}, 2)))
    assert "all before it were. A **measurement**, without intervals:" in text
    assert "Clopper" not in text


def test_totals_refuse_a_chance() -> None:
    text = render_speculation(speculate("totals.json", Totals(1_900, 1_000, 3_000)))
    assert "**2.900 tokens per cycle**, measured over 1,000 cycles." in text
    assert "No chance is inferred: accepted / drafted is an average over drafted tokens" in text
    assert "By position in the draft" not in text


def test_totals_without_cycles_say_so_first() -> None:
    answer = render_speculation(speculate("totals.json", Totals(1_900, None, 3_000))).split("\n\n")[1]
    assert answer == "The number of verifications was not counted: tokens per cycle are not known."


def test_runs_asked_for_other_work_stand_at_the_top() -> None:
    plain = timed("a", diagnosis(alternating(980), PINS))
    other = timed("b", diagnosis(alternating(1_580), {**PINS, "batch": "16"}))
    text = render_speculation(speculate("accepted.csv", COUNTS, plain, other))
    assert "- The runs differ in batch: `8` in the baseline, `16` in the speculative run." in text
    assert text.count("no speedup is claimed") == 2


def named(name: str) -> Speculation:
    """A result in which everything that can bear a foreign text bears this one."""
    plain = timed("a", diagnosis(alternating(980), {**PINS, "input": "x"}))
    other = timed("b", diagnosis(alternating(1_580), {**PINS, "input": name}))
    found = speculate(name, FALLING, plain, other)
    assert found.cycle is not None
    cycle = msgspec.structs.replace(found.cycle, phase=name)
    return msgspec.structs.replace(found, cycle=cycle, notes=[*found.notes, name])


def test_golden(request: pytest.FixtureRequest) -> None:
    """``pytest --update-golden`` rewrites the file; read the difference before you commit it."""
    shown = render_speculation(named("accepted.csv"))
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(shown, encoding="utf-8")
    assert shown == GOLDEN.read_text(encoding="utf-8")


def tokens(text: str) -> list[str]:
    parsed = MarkdownIt("commonmark").enable("table").parse(text)
    return [token.type for token in parsed if token.nesting]


@pytest.mark.parametrize("name", [name for name in HOSTILE if name.strip()])
def test_hostile_names_change_no_structure(name: str) -> None:
    text = render_speculation(named(name))
    assert tokens(text) == tokens(render_speculation(named("name")))
    assert not any(unicodedata.category(char) in {"Cc", "Cf"} and char != "\n" for char in text)


def test_files_and_terminal(tmp_path: Path) -> None:
    found = speculate("accepted.csv", COUNTS, given(9e6), given(16e6))
    report = write_speculation(found, tmp_path)
    assert report.read_text(encoding="utf-8") == render_speculation(found)
    assert (tmp_path / "speculation" / "speculation.json").read_bytes() == found.to_json()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["SPECULATION.md", "speculation"]
    assert terminal_lines(found)[0].startswith("2.440 tokens per cycle")
