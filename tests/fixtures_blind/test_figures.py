"""Counting right and wrong answers: literal answers, counts by hand."""

from __future__ import annotations

from fixtures.blind.figures import (
    confusion,
    denied,
    invented,
    missed,
    overstated,
    rows_of,
    score,
    tenths,
    understated,
    widths,
)
from fixtures.blind.outcomes import Answer, Outcome


def answer(truth: float, verdict: str, low: float, high: float, *, planted: bool = False) -> Answer:
    return Answer("copies", truth, planted, verdict, (low + high) / 2, low, high)


ANSWERS = (
    answer(0.33, "supported", 0.20, 0.40, planted=True),  # right, inside
    answer(0.30, "inconclusive", 0.05, 0.25, planted=True),  # missed, the truth above
    answer(0.01, "supported", 0.12, 0.14),  # invented, the truth below
    answer(0.01, "supported", 0.12, 0.14, planted=True),  # planted: wrong, but not invented
    answer(0.12, "contradicted", 0.0, 0.01),  # denied, the truth above
    answer(0.00, "contradicted", 0.0, 0.0),  # nothing: no interval to judge
    Answer("copies", 0.16, False, "unmeasured", None, None, None),  # holds, unmeasured: missed
)
OUTCOMES = [Outcome(seed, "nsys", True, 9, "", (one,)) for seed, one in enumerate(ANSWERS)]


def test_a_score_counts_what_holds_and_what_is_inside() -> None:
    found = score(rows_of(OUTCOMES))
    assert (found.holding, found.right) == (3, 1)
    assert (found.intervals, found.below, found.inside, found.above) == (5, 2, 1, 2)
    assert found.unmeasured == 1
    assert found.right_share == 1 / 3
    assert score([]).right_share is None


def test_each_kind_of_wrong_is_found_once() -> None:
    rows = rows_of(OUTCOMES, "copies")
    assert [seed for seed, _ in missed(rows)] == [1, 6]
    assert [seed for seed, _ in invented(rows)] == [2]
    assert [seed for seed, _ in denied(rows)] == [4]
    assert [seed for seed, _ in overstated(rows)] == [2, 3]
    assert [seed for seed, _ in understated(rows)] == [4]


def test_confusion_and_calibration() -> None:
    rows = rows_of(OUTCOMES)
    counts = confusion(rows)
    assert counts[3, "supported", True] == counts[3, "inconclusive", True] == 1
    assert counts[0, "supported", False] == 1
    assert counts[2, "contradicted", False] == 1
    assert counts.total() == len(ANSWERS)
    assert tenths(rows) == [0, 0, 0, 0, 0, 0, 1, 0, 0, 0]  # the one inside: at 0.65
    assert [round(width, 2) for width in widths(rows)] == [0.01, 0.02, 0.02, 0.2, 0.2]
