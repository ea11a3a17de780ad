"""Predictions in DIAGNOSIS.md and in a terminal: range, bound, what they rest on, and what is not predicted."""

from __future__ import annotations

import json

import msgspec
import pytest

from analyzer.errors import InvariantError
from analyzer.report import whatif_text
from analyzer.report.markdown import render
from analyzer.report.predictions import against
from tests.report.builder import diagnosis
from tests.report.whatif_builder import MS, change, refused, whatif, withheld


def test_a_terminal_shows_the_range_its_shares_the_bound_and_what_it_is_for() -> None:
    shown = whatif_text.text(whatif())
    assert shown.startswith("Phase decode, rank 0: 3 steps, mean 10.000 ms as observed\n---")
    assert "graph-capture      4.000 to 6.000  -60.0 % to -40.0 %             6.500  launch-bound\n" in shown
    assert "no-skew             not predicted" in shown
    assert "no-skew: no collective of the capture is split into waiting and transfer\n" in shown
    assert "graph_launch_ns 2,500 to 12,000 (assumed): duration of a graph launch call" in shown
    assert "within 0.42 % (median; worst 1.23 %, 3 steps). Replayed are 3 consecutive steps of 4.\n" in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_what_gives_most_stands_first_and_what_is_not_predicted_last() -> None:
    rows = whatif(refused(), change("host=0.8", predicted_step_ns=(9 * MS, 9 * MS)), change())
    places = [whatif_text.text(rows).index(f"\n{spec}") for spec in ("graph-capture", "host=0.8", "no-skew")]
    assert places == sorted(places)


def test_a_change_without_a_bound_says_so() -> None:
    assert "no bound" in whatif_text.text(whatif(change(gain_upper_bound_ns=None)))


@pytest.mark.parametrize(
    ("low_high", "words"),
    [((4, 6), "-60.0 % to -40.0 %"), ((10, 10), "0.0 %"), ((9, 12), "-10.0 % to +20.0 %")],
)
def test_shares_bear_their_sign(low_high: tuple[int, int], words: str) -> None:
    assert against((low_high[0] * MS, low_high[1] * MS), 10 * MS) == words


def test_what_is_withheld_gives_its_reason_and_no_figure() -> None:
    assert whatif_text.text(withheld()) == "No prediction: lags learned on odd steps miss.\n"
    assert "Withheld: lags learned on odd steps miss." in render(diagnosis(whatif=withheld()))


def test_a_finding_tells_its_own_prediction_as_a_model() -> None:
    shown = render(diagnosis())
    assert (
        "- **Predicted**: 4.000 to 6.000 ms per step with `graph-capture` (-60.0 % to -40.0 %; a model"
        in shown
    )
    assert "**Predicted**" not in render(diagnosis(whatif=withheld()))
    assert "**Predicted**" not in render(diagnosis(whatif=whatif(change(phase="prefill"))))


def test_the_json_is_strict_and_holds_every_figure() -> None:
    answer = whatif_text.answer(diagnosis())
    found = json.loads(answer.to_json())
    assert (found["format"], found["format_version"], found["boundary"]) == ("tracebound.whatif", 1, "device")
    assert found["whatif"]["changes"][0]["predicted_step_ns"] == [4 * MS, 6 * MS]
    assert found["whatif"]["changes"][1]["predicted_step_ns"] is None
    broken = msgspec.structs.replace(answer, whatif=whatif(odd_even_error=float("nan")))
    with pytest.raises(InvariantError):
        broken.to_json()


HOSTILE = "\x1b[2J|`<b>\n# x"


def test_names_from_a_capture_change_no_structure() -> None:
    rows = whatif(change(HOSTILE, phase=HOSTILE, notes=[HOSTILE]))
    shown = whatif_text.text(rows)
    assert "\x1b" not in shown
    assert not any(line.startswith("# x") for line in shown.splitlines())
    page = render(diagnosis(whatif=rows))
    assert "\x1b" not in page
    assert not any(line.startswith("# x") for line in page.splitlines())


def test_many_phases_are_bounded() -> None:
    rows = [change(phase=f"shape {number}", notes=[f"note {number}"]) for number in range(40)]
    page = render(diagnosis(whatif=whatif(*rows)))
    appendix = page[page.index("## Appendix: predictions") : page.index("## Appendix: device work")]
    assert "34 more tables in `diagnosis.json`" in appendix
    assert len(appendix.splitlines()) < 90
