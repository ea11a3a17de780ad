"""What the report says of steps that no mean holds."""

from __future__ import annotations

import json

import msgspec

from analyzer.diagnosis import Diagnosis, Outlier
from analyzer.report.markdown import render
from tests.report.builder import MS, budget, diagnosis, rank
from tests.report.numbers_in_markdown import numbers_of, shown_forms


def outlier(number: int = 7, **changes: object) -> Outlier:
    values = {
        "phase": "decode", "scope": "rank", "rank": 0, "window": number, "step": f"decode {number}",
        "duration_ns": 95 * MS, "median_ns": 10 * MS, "times_median": 9.5, "category": "host.wait",
        "category_ns": 81 * MS, "category_mean_ns": 250_000,
    }  # fmt: skip
    return Outlier(**{**values, **changes})  # type: ignore[arg-type]


def of(*rows: Outlier, warmup: int = 0) -> Diagnosis:
    """Three ordinary steps of 10 ms, and these."""
    own = [row for row in rows if row.rank == 0]
    totals = msgspec.structs.replace(
        budget(),
        windows_excluded=len(own) + warmup,
        outliers=len(own),
        outlier_ns_total=sum(row.duration_ns for row in own),
    )
    steps = msgspec.structs.replace(diagnosis().steps, warmup_count=warmup, outlier_count=len(own))
    return diagnosis(budget=[totals], outliers=list(rows), steps=steps)


def test_an_outlier_is_named_and_both_means_are_given() -> None:
    text = render(of(outlier(), warmup=1))
    step = budget().step_ns_total
    both = f"{(step + 95 * MS) / 4 / MS:.3f} ms"
    assert f"(mean of 3 steps; {both} with 1 outlier)" in text
    assert f"{both} with it. To have one explained, give its number: `--step-index`." in text
    assert "| `decode 7` |      7 |   95.000 |              9.5 | host.wait       |    81.000 |" in text
    assert "1 step left out as warm-up, 1 step as outlier. With the outliers the mean step is" in text
    assert "flagged: 1 as warm-up, 1 as outlier;" in text


def test_no_outlier_no_section() -> None:
    text = render(diagnosis())
    assert "### Outliers" not in text
    assert "with 0 outliers" not in text


def test_outliers_of_other_ranks_are_counted() -> None:
    text = render(of(outlier(rank=1), outlier(rank=2)))
    assert "2 more outliers on other ranks or in other phases: `outliers` in the JSON." in text
    assert "| `decode 7`" not in text
    assert "and 1 more" not in render(of(outlier()))


def test_the_longest_are_shown_and_the_others_counted() -> None:
    rows = [outlier(number, duration_ns=(50 + number) * MS) for number in range(9)]
    text = render(of(*rows))
    assert "| `decode 8` |" in text
    assert "| `decode 2` |" not in text
    assert "3 more outliers in `windows.csv` (outlier)." in text


def test_counts_say_whose_steps_they_are() -> None:
    two = diagnosis(ranks=[rank(3), rank(4)])
    assert "flagged on rank 3: 1 as warm-up;" in render(two)
    assert "flagged: 1 as warm-up;" in render(diagnosis())
    none = msgspec.structs.replace(diagnosis().steps, warmup_count=0)
    assert "none flagged as warm-up or outlier on rank 3;" in render(msgspec.structs.replace(two, steps=none))


def test_every_number_of_it_is_in_the_json() -> None:
    given = of(outlier(), outlier(8, duration_ns=77 * MS), warmup=1)
    assert set(numbers_of(render(given))) <= shown_forms(json.loads(msgspec.json.encode(given)))
