"""What the report says of the ranks' clocks, and how it counts the ledger."""

from __future__ import annotations

import msgspec

from analyzer.diagnosis import Clock
from analyzer.report.markdown import render
from tests.report.builder import CLOCK, budget, diagnosis, rank


def clock(**changes: object) -> Clock:
    """Rank 1's clock against rank 0's."""
    known = {"reference_rank": 0, "compared_with": 0, "shared_calls": 0, "drift_ppb": 0, **changes}
    return msgspec.structs.replace(CLOCK, **known)


def of_two(second: Clock) -> str:
    first = msgspec.structs.replace(CLOCK, offset_ns=0, uncertainty_ns=0, interval_ns=None, shared_calls=0)
    ranks = [rank(0, clock=first), rank(1, clock=second)]
    return render(diagnosis(ranks=ranks, budget=[budget(), budget(number=1)]))


def test_ranks_of_one_host_read_one_clock_and_nothing_is_measured() -> None:
    text = of_two(clock(offset_ns=0, uncertainty_ns=0, interval_ns=(0, 0)))
    assert "2 of 2 ranks read the same clock: by the manifest they ran on one host." in text
    assert "| same clock |" in text
    assert "±" not in text
    assert "uncertainty at most" not in text


def test_an_offset_between_hosts_keeps_its_uncertainty() -> None:
    text = of_two(clock(offset_ns=1_000, uncertainty_ns=2_000, interval_ns=(-1_000, 3_000)))
    assert "by what the run's manifest says of their hosts' clocks; uncertainty at most 2.0 µs" in text
    assert "| +1.0 ± 2.0 |" in text


def test_the_ledger_counts_kinds_not_lines() -> None:
    line = diagnosis().quality[0]
    two = [line, msgspec.structs.replace(line, place="rank 1")]
    assert "counts 1 kind of loss or repair" in render(diagnosis(quality=two))
