"""Verdicts on peaks from a ledger, on schedules of one screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analyzer import pipeline
from analyzer.analysis import Analysis
from analyzer.diagnosis import Hypothesis
from analyzer.ledger.model import Ledger, Uncounted
from tests.builders import Schedule, schedule
from tests.explain.bytes.ledgers import device, entry, of_capture, phase, written

BYTES_PER_S = 1e12  # 1 MB takes 1 us
MB = 1_000_000


def analyzed(tmp_path: Path, built: Schedule, made: Ledger, **options: Any) -> Analysis:
    return pipeline.analyze(built.capture(), ledger=written(tmp_path, made), **options)


def verdict(
    tmp_path: Path, built: Schedule, made: Ledger, name: str = "bandwidth-bound", **options: Any
) -> Hypothesis:
    (row,) = [r for r in analyzed(tmp_path, built, made, **options).diagnosis.hypotheses if r.id == name]
    return row


def shares(row: Hypothesis) -> tuple[float, float, float]:
    assert row.share is not None
    return tuple(
        round(100 * end, 6) for end in (row.share.interval[0], row.share.value, row.share.interval[1])
    )  # type: ignore[return-value]


def two_kernels() -> Schedule:
    """
    main      |L 0-2|L 2-4
    stream 7       |gemm 10-60 |attn 60-100      100 us: 10 latency, 50 gemm, 40 attention
    """
    return schedule().launch(0, 2, runs=(10, 60), name="gemm").launch(2, 4, runs=(60, 100), name="attn")


def moved(*phases: Any) -> Ledger:
    return of_capture(*phases, devices=[device(BYTES_PER_S)])


def test_kernels_whose_bytes_fill_their_time_support_it(tmp_path: Path) -> None:
    """81 of 90 us at the peak: (81 - 54) / 0.4 = 67.5 us near it at least, all 90 at most."""
    row = verdict(tmp_path, two_kernels(), moved(phase("decode", entry(81 * MB))))
    assert (row.verdict, shares(row)) == ("supported", (67.5, 78.75, 90))
    assert row.measured is not None
    assert (row.measured.kind, row.measured.value, row.measured.rank) == ("model", 78_750, 0)
    assert row.gain_upper_bound_ns == 90_000
    assert "not counters" in row.verdict_note


def test_few_bytes_contradict_it(tmp_path: Path) -> None:
    """1.2 us of bytes can fill 2 us at 60 % of the peak: 2 % of the step."""
    row = verdict(tmp_path, two_kernels(), moved(phase("decode", entry(1_200_000))))
    assert (row.verdict, shares(row)) == ("contradicted", (0, 1, 2))


def test_what_the_total_leaves_open_is_inconclusive(tmp_path: Path) -> None:
    row = verdict(tmp_path, two_kernels(), moved(phase("decode", entry(45 * MB))))
    assert (row.verdict, shares(row)) == ("inconclusive", (0, 37.5, 75))


def test_kernels_that_the_ledger_names_are_judged_apart(tmp_path: Path) -> None:
    """gemm 48 of 50: (48 - 30) / 0.4 = 45 to 50. attn 3 of 40: 0 to 5. Together they would leave 0 to 85 open."""
    made = moved(phase("a", entry(48 * MB), kernels="^gemm"), phase("b", entry(3 * MB), kernels="attn"))
    assert shares(verdict(tmp_path, two_kernels(), made)) == (45, 50, 55)


def test_phases_whose_patterns_meet_in_a_kernel_are_judged_together(tmp_path: Path) -> None:
    made = moved(phase("a", entry(48 * MB), kernels="gemm"), phase("b", entry(3 * MB), kernels="gemm|attn"))
    assert shares(verdict(tmp_path, two_kernels(), made)) == (0, 42.5, 85)


def test_a_phase_without_a_pattern_can_be_moved_by_any_kernel(tmp_path: Path) -> None:
    made = moved(phase("a", entry(48 * MB), kernels="gemm"), phase("b", entry(3 * MB)))
    assert shares(verdict(tmp_path, two_kernels(), made)) == (0, 42.5, 85)


def test_kernels_that_no_phase_names_leave_the_upper_end_open(tmp_path: Path) -> None:
    """gemm 48 of 50: 45 to 50; of attn's 40 the ledger tells nothing."""
    made = moved(phase("a", entry(48 * MB), kernels="gemm"))
    assert shares(verdict(tmp_path, two_kernels(), made)) == (45, 67.5, 90)


def test_tensors_that_no_entry_holds_can_be_of_any_kernel(tmp_path: Path) -> None:
    """gemm 3 of 50: 0 to (3 + 6) / 0.6 = 15. attn 3 of 40: 0 to 15."""
    odd = Uncounted(name="odd", dtype="BF16", shape=[3_000_000], bytes=6 * MB, why="no rule knows it")
    phases = (phase("a", entry(3 * MB), kernels="gemm"), phase("b", entry(3 * MB), kernels="attn"))
    made = of_capture(*phases, devices=[device(BYTES_PER_S)], uncounted=[odd])
    assert shares(verdict(tmp_path, two_kernels(), made)) == (0, 15, 30)


def test_kernels_off_the_path_can_be_those_near_the_peak(tmp_path: Path) -> None:
    """
    stream 7       |gemm 10-100                  90 us on the path
    stream 20      |side 10-40                   30 us beside it

    114 us of bytes in 120 us of kernels: (114 - 72) / 0.4 = 105 near the peak, 30 of them off the path: 75 at least.
    """
    built = (
        schedule()
        .launch(0, 2, runs=(10, 40), name="side", stream=20)
        .launch(2, 4, runs=(10, 100), name="gemm")
    )
    assert shares(verdict(tmp_path, built, moved(phase("decode", entry(114 * MB))))) == (75, 82.5, 90)


def test_collectives_move_none_of_the_ledgers_bytes(tmp_path: Path) -> None:
    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    built = schedule().launch(0, 2, runs=(10, 60), name="gemm").launch(2, 4, runs=(60, 100), name=name)
    assert shares(verdict(tmp_path, built, moved(phase("decode", entry(50 * MB))))) == (50, 50, 50)


def test_more_bytes_than_the_kernels_had_time_for_contradict_the_ledger(tmp_path: Path) -> None:
    analysis = analyzed(tmp_path, two_kernels(), moved(phase("decode", entry(91 * MB))))
    (row,) = [row for row in analysis.diagnosis.hypotheses if row.id == "bandwidth-bound"]
    assert (row.verdict, row.share, row.measured) == ("unmeasured", None, None)
    assert "take at least 0.091 ms at the peak, its kernels only 0.090 ms" in row.verdict_note
    assert analysis.diagnosis.bytes is not None
    assert any("0.091 ms" in text for text in analysis.diagnosis.bytes.findings)


def test_a_pattern_without_a_kernel_leaves_it_unmeasured(tmp_path: Path) -> None:
    row = verdict(tmp_path, two_kernels(), moved(phase("moe", entry(10 * MB), kernels="expert")))
    assert row.verdict == "unmeasured"
    assert "no kernel of these steps is one that phase moe names" in row.verdict_note


def test_without_a_bandwidth_it_is_unmeasured_with_the_reason(tmp_path: Path) -> None:
    row = verdict(tmp_path, two_kernels(), of_capture(phase("decode", entry(10 * MB))))
    assert row.verdict == "unmeasured"
    assert "memory bandwidth of the device is not known" in row.verdict_note


def test_a_ledger_without_this_rank_leaves_it_unmeasured(tmp_path: Path) -> None:
    made = of_capture(phase("decode", entry(10 * MB, [5])), devices=[device(BYTES_PER_S, [0, 5])])
    assert "holds nothing of rank 0" in verdict(tmp_path, two_kernels(), made).verdict_note


def test_whole_replays_can_hold_such_kernels_and_prove_none(tmp_path: Path) -> None:
    built = schedule().launch(0, 2, runs=(10, 60), name="gemm").whole_graph(2, 4, runs=(60, 100))
    row = verdict(tmp_path, built, moved(phase("decode", entry(81 * MB))))
    assert (row.verdict, shares(row)) == ("inconclusive", (0, 45, 90))


def test_whole_replays_can_hold_kernels_that_no_phase_names(tmp_path: Path) -> None:
    """1 MB of gemm is near the peak for 5/3 us at most; what else runs in the replay, 40 us, is open."""
    built = schedule().launch(0, 2, runs=(10, 60), name="gemm").whole_graph(2, 4, runs=(60, 100))
    made = moved(phase("decode", entry(MB), kernels="gemm"))
    analysis = analyzed(tmp_path, built, made)
    (row,) = [row for row in analysis.diagnosis.hypotheses if row.id == "bandwidth-bound"]
    assert (row.verdict, shares(row)[2]) == ("inconclusive", pytest.approx(40 + 5 / 3))
    assert analysis.diagnosis.bytes is not None
    assert analysis.diagnosis.bytes.ranks[0].kernel_ns is None  # gemm in the replay is not recorded


def test_the_threshold_can_be_set(tmp_path: Path) -> None:
    """At 80 %: (81 - 72) / 0.2 = 45."""
    made = moved(phase("decode", entry(81 * MB)))
    row = verdict(tmp_path, two_kernels(), made, thresholds={"near_peak_share": 0.8})
    assert shares(row) == (45, 67.5, 90)
    assert row.measured is not None
    assert "at 80 % of the memory bandwidth" in row.measured.name


def with_flop(size: int, flop: int | None, dtype: str | None, *more: Any, **peaks: float) -> Ledger:
    return of_capture(
        phase("decode", entry(size, flop=flop, flop_dtype=dtype), *more),
        devices=[device(BYTES_PER_S, **peaks)],
    )


def test_arithmetic_against_the_peak_of_its_type(tmp_path: Path) -> None:
    """81 us of arithmetic at 1 PFLOP/s in 90 us of kernels."""
    made = with_flop(MB, 81_000_000_000, "bf16", bf16=1e15)
    row = verdict(tmp_path, two_kernels(), made, "compute-bound")
    assert (row.verdict, shares(row)) == ("supported", (67.5, 78.75, 90))
    assert row.measured is not None
    assert row.measured.kind == "model"


def test_more_arithmetic_than_the_kernels_had_time_for_is_no_matter_of_caches(tmp_path: Path) -> None:
    row = verdict(tmp_path, two_kernels(), with_flop(MB, 91_000_000_000, "bf16", bf16=1e15), "compute-bound")
    assert row.verdict == "unmeasured"
    assert "the arithmetic of the ledger takes at least 0.091 ms at the peak" in row.verdict_note
    assert "caches" not in row.verdict_note


def test_entries_that_tell_no_flop_leave_the_upper_end_open(tmp_path: Path) -> None:
    made = with_flop(MB, 1_000_000, "bf16", entry(MB, kind="kv-cache"), bf16=1e15)
    row = verdict(tmp_path, two_kernels(), made, "compute-bound")
    assert (row.verdict, shares(row)[2]) == ("inconclusive", 90)
    none = with_flop(MB, 1_000_000, "bf16", entry(MB, kind="kv-cache", flop=0), bf16=1e15)
    assert verdict(tmp_path, two_kernels(), none, "compute-bound").verdict == "contradicted"


@pytest.mark.parametrize(
    ("flop", "dtype", "why"),
    [
        (None, None, "no entry of the ledger tells its flop"),
        (10**9, "fp4", "no arithmetic peak of fp4 is known"),
        (10**9, None, "does not tell the type of its flop"),
    ],
)
def test_without_flop_or_peak_compute_is_unmeasured(
    tmp_path: Path, flop: int | None, dtype: str | None, why: str
) -> None:
    row = verdict(tmp_path, two_kernels(), with_flop(MB, flop, dtype, bf16=1e15), "compute-bound")
    assert row.verdict == "unmeasured"
    assert why in row.verdict_note


def test_kernels_of_a_phase_without_flop_may_run_at_the_peak(tmp_path: Path) -> None:
    made = of_capture(
        phase("a", entry(MB, flop=1_000_000, flop_dtype="bf16"), kernels="gemm"),
        phase("b", entry(MB), kernels="attn"),
        devices=[device(BYTES_PER_S, bf16=1e15)],
    )
    low, _, high = shares(verdict(tmp_path, two_kernels(), made, "compute-bound"))
    assert (low, round(high)) == (0, 40)
