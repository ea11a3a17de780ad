"""Verdicts from paths computed by hand (verdicts contract)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from analyzer.diagnosis import Hypothesis
from analyzer.errors import UsageError
from analyzer.model import Capture, Diagnostic
from analyzer.pipeline import analyze
from tests.builders import EVERYTHING, Schedule, analysis_of, path_of, schedule


def verdicts(built: Schedule, **options: object) -> dict[str, Hypothesis]:
    return {entry.id: entry for entry in analysis_of(built, **options).diagnosis.hypotheses}


def decisions(built: Schedule, **options: object) -> dict[str, str]:
    """Verdicts other than unmeasured."""
    found = {name: str(entry.verdict) for name, entry in verdicts(built, **options).items()}
    return {name: verdict for name, verdict in found.items() if verdict != "unmeasured"}


def value(entry: Hypothesis) -> float:
    assert entry.measured is not None
    return entry.measured.value / 1000


def interval(entry: Hypothesis) -> tuple[float, float, float]:
    """Lower end, share, upper end."""
    assert entry.share is not None
    return (entry.share.interval[0], entry.share.value, entry.share.interval[1])


def one_of_each() -> Schedule:
    """
    main      |L a 0-4 |L copy 4-8 |sync 8-171                     |op 171-371 |L b 371-375
    stream 7       |a 10-110 |copy 111-161                                            |b 381-481
    """
    return (
        schedule()
        .launch(0, 4, runs=(10, 110), name="a")
        .copy(4, 8, runs=(111, 161))
        .sync(8, 171, stream=7)
        .op(171, 371, "prepare")
        .launch(371, 375, runs=(381, 481), name="b")
    )


def test_each_quantity_is_the_sum_of_its_categories_on_the_path() -> None:
    found = verdicts(one_of_each())
    assert {name: value(entry) for name, entry in found.items() if entry.measured is not None} == {
        "launch-bound": 10 + 10,
        "host-bound": 200,
        "device-turnaround": 1,
        "dependency-stalls": 0,
        "synchronization": 10 + 200 + 10,  # the return, and what follows it until b starts
        "copies": 50,
        "kernel-bound": 100 + 100,
        "profiler-distortion": 0,
        "collective-transfer": 0,
        "collective-late-rank": 0,
    }
    assert interval(found["kernel-bound"]) == (200 / 481, 200 / 481, 200 / 481)
    assert decisions(one_of_each()) == {
        "launch-bound": "inconclusive",  # 4.2 %
        "host-bound": "supported",
        "device-turnaround": "contradicted",
        "dependency-stalls": "contradicted",
        "synchronization": "supported",
        "copies": "supported",  # 10.4 %
        "kernel-bound": "supported",
        "profiler-distortion": "contradicted",
        "collective-transfer": "contradicted",  # no collective, and no time in which one could hide
        "collective-late-rank": "contradicted",
    }


def test_synchronization_ends_where_any_stream_of_the_device_works_again() -> None:
    """
    main      |L 0-4 |sync 8-60|L side 60-64 |op 64-164   |L b 164-168
    stream 7       |a 10-55                                         |b 174-200
    stream 20                         |side 70-75                      only 55-70 is the wait's fault
    """
    built = (
        schedule()
        .launch(0, 4, runs=(10, 55), name="a")
        .sync(8, 60, stream=7)
        .launch(60, 64, runs=(70, 75), name="side", stream=20)
        .op(64, 164, "prepare")
        .launch(164, 168, runs=(174, 200), name="b")
    )
    assert value(verdicts(built)["synchronization"]) == 15


def test_a_wait_for_work_that_bounds_nothing_is_no_synchronization() -> None:
    """The CPU waited for a, but b behind it was already queued: the path never leaves the device."""
    built = (
        schedule()
        .launch(0, 2, runs=(10, 50), name="a")
        .event_record(2, 3, "a")
        .launch(3, 5, runs=(51, 90), name="b")
        .event_sync(5, 52, "a")
    )
    assert value(verdicts(built)["synchronization"]) == 0


def test_launch_bound_is_latency_calls_and_dispatch() -> None:
    """Three launches, 40 us of op between them, 2 us kernels that the device is always done with."""
    built = schedule()
    for i in range(3):
        built.launch(44 * i, 44 * i + 4, runs=(44 * i + 10, 44 * i + 12)).op(
            44 * i + 4, 44 * i + 44, "aten::mm"
        )
    assert [row[2] for row in path_of(built)] == [
        "launch.api", "launch.dispatch", "launch.api", "launch.dispatch", "launch.latency", "kernel",
    ]  # fmt: skip
    found = verdicts(built)
    assert value(found["launch-bound"]) == 4 + 40 + 4 + 40 + 10
    assert value(found["host-bound"]) == 0


@pytest.mark.parametrize(
    ("end", "verdict"),
    [(100, "supported"), (101, "inconclusive"), (499, "inconclusive"), (500, "contradicted")],
)
def test_supported_from_10_percent_contradicted_up_to_2(end: int, verdict: str) -> None:
    """10 us of launch latency in a window of ``end`` us."""
    assert decisions(schedule().launch(0, 4, runs=(10, end)))["launch-bound"] == verdict


def test_thresholds_are_settable_and_shown() -> None:
    built = schedule().launch(0, 4, runs=(10, 200))
    assert decisions(built)["launch-bound"] == "inconclusive"
    assert decisions(built, thresholds={"supported_share": 0.05})["launch-bound"] == "supported"
    assert decisions(built, thresholds={"contradicted_share": 0.05})["launch-bound"] == "contradicted"
    shown = analysis_of(built, thresholds={"supported_share": 0.05}).diagnosis.constants.thresholds
    assert shown["supported_share"] == 0.05


@pytest.mark.parametrize("given", [{"no_such": 0.5}, {"supported_share": 1.5}, {"supported_share": -0.1}])
def test_thresholds_that_do_not_exist_or_are_no_shares(given: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        analysis_of(schedule().launch(0, 4, runs=(10, 20)), thresholds=given)


def test_the_lower_end_is_without_inferred_gaps() -> None:
    """b was submitted at 7 and starts at 60; nothing recorded says why: 33 of 70 us, all inferred."""
    built = schedule().launch(0, 4, runs=(10, 30), name="a").launch(7, 9, runs=(60, 70), name="b", stream=20)
    found = verdicts(built)["dependency-stalls"]
    assert (found.verdict, value(found)) == ("inconclusive", 33)
    assert interval(found) == (0, 33 / 70, 33 / 70)


def test_inferring_a_cause_never_makes_busy_time_uncertain() -> None:
    built = schedule().launch(0, 4, runs=(10, 40), name="a").launch(7, 9, runs=(41, 100), name="b", stream=20)
    assert interval(verdicts(built)["kernel-bound"]) == (89 / 100, 89 / 100, 89 / 100)


def test_the_upper_end_holds_what_could_belong() -> None:
    """60 of 70 us before unlinked work are unattributed: launch, host and stalls could all be in there."""
    built = schedule().launch(0, 4, runs=(10, 20), name="a").kernel(60, 70, "unlinked", stream=20)
    found = verdicts(built)
    assert path_of(built) == [(0, 60, "unattributed", ""), (60, 70, "kernel", "unlinked")]
    for name in ("launch-bound", "host-bound", "device-turnaround", "dependency-stalls", "synchronization"):
        assert (found[name].verdict, interval(found[name])) == ("inconclusive", (0, 0, 60 / 70)), name
    assert interval(found["kernel-bound"]) == (10 / 70, 10 / 70, 1)
    assert interval(found["copies"]) == (0, 0, 60 / 70)


def test_prior_work_could_be_kernels_or_copies() -> None:
    built = schedule().kernel(0, 50, "before", corr=1).launch(5, 9, runs=(51, 101), name="k")
    found = verdicts(built)
    assert interval(found["kernel-bound"]) == (50 / 101, 50 / 101, 100 / 101)
    assert interval(found["copies"]) == (0, 0, 50 / 101)


def test_whole_graph_rows_are_busy_and_may_hide_copies_and_gaps() -> None:
    """Nothing inside the row was recorded: neither supported nor contradicted."""
    built = schedule().whole_graph(0, 4, runs=(10, 1000))
    found = decisions(built)
    assert (found["kernel-bound"], found["launch-bound"], found["host-bound"]) == (
        "supported", "contradicted", "contradicted",
    )  # fmt: skip
    assert (found["copies"], found["device-turnaround"], found["dependency-stalls"]) == ("inconclusive",) * 3


def test_a_pending_collective_is_no_kernel() -> None:
    built = schedule().launch(0, 4, runs=(10, 100), name="ncclDevKernel_AllReduce_Sum_f16_RING_LL")
    assert decisions(built)["kernel-bound"] == "contradicted"
    assert verdicts(built)["collective-transfer"].verdict == "unmeasured"


@pytest.mark.parametrize(
    ("missing", "unmeasured", "note"),
    [
        ("call", {"launch-bound", "host-bound", "synchronization"}, "not captured: call"),
        ("overhead", {"profiler-distortion"}, "not captured: overhead"),
        ("copy", {"copies"}, "not captured: copy"),
    ],
)
def test_without_its_records_a_hypothesis_is_unmeasured(
    missing: str, unmeasured: set[str], note: str
) -> None:
    built = one_of_each()
    whole = decisions(built)
    built.captured = EVERYTHING - {missing}
    found = verdicts(built)
    assert set(whole) - set(decisions(built)) == unmeasured
    for name in unmeasured:
        assert found[name].verdict_note.startswith(note), name
        assert (found[name].share, found[name].measured) == (None, None)


def test_kernels_need_kernel_rows_or_whole_graph_rows() -> None:
    built = schedule().whole_graph(0, 4, runs=(10, 100))
    built.captured = frozenset({"call", "graph"})
    assert decisions(built)["kernel-bound"] == "supported"
    only_copies = schedule().copy(0, 4, runs=(10, 100))
    only_copies.captured = frozenset({"call", "copy"})
    assert verdicts(only_copies)["kernel-bound"].verdict == "unmeasured"


def test_the_host_boundary_decides_as_well_where_device_work_was_recorded() -> None:
    built = schedule().range(0, 100, "s").launch(0, 4, runs=(10, 90)).sync(5, 95, stream=7)
    found = decisions(built, boundary="host", steps="^s$")
    assert (found["kernel-bound"], found["launch-bound"]) == ("supported", "supported")


def test_without_device_work_everything_is_unmeasured_with_the_reason() -> None:
    found = verdicts(schedule().op(0, 100, "aten::mm"))
    assert {entry.verdict for entry in found.values()} == {"unmeasured"}
    assert found["kernel-bound"].verdict_note.startswith("device activity was not recorded")


def distorted(built: Schedule) -> str:
    return verdicts(built)["kernel-bound"].verdict_note


def test_a_distorted_capture_supports_only_under_distortion() -> None:
    """Nothing wrong: no note. Lost records, a truncated file, 20 of 120 us of recorded overhead: each says so."""
    assert distorted(one_of_each()) == ""
    lost, cut = one_of_each(), one_of_each()
    lost.diagnostics = (Diagnostic(2, "4711 CUDA events were dropped"),)
    cut.partial = True
    assert distorted(lost) == "supported, under distortion: the profiler reports lost records"
    assert distorted(cut) == "supported, under distortion: a file is truncated"
    built = schedule()
    for at in range(3):
        built.launch(2 * at, 2 * at + 2, runs=(10 + 11 * at, 20 + 11 * at))
    built.overhead(60, 80).launch(90, 92, runs=(100, 120))
    assert distorted(built) == "supported, under distortion: the profiler's own overhead is on the path"
    assert verdicts(built)["profiler-distortion"].verdict == "supported"
    assert verdicts(built)["profiler-distortion"].verdict_note == ""


def test_a_mere_hint_of_the_profiler_distorts_nothing() -> None:
    built = one_of_each()
    built.diagnostics = (Diagnostic(1, "no events dropped"), Diagnostic(2, "the clock was calibrated"))
    assert distorted(built) == ""


def test_only_supported_verdicts_carry_the_note() -> None:
    built = one_of_each()
    built.partial = True
    notes = {name: entry.verdict_note for name, entry in verdicts(built).items() if entry.measured}
    assert {name: "under distortion" in note for name, note in notes.items()} == {
        "launch-bound": False,
        "host-bound": True,
        "device-turnaround": False,
        "dependency-stalls": False,
        "synchronization": True,
        "copies": True,
        "kernel-bound": True,
        "profiler-distortion": False,
        "collective-transfer": False,
        "collective-late-rank": False,
    }


def test_the_rank_with_the_largest_share_speaks_by_name() -> None:
    """Rank 0 spends 10 of 100 us on latency, rank 1 10 of 50."""
    slow = schedule().launch(0, 4, runs=(10, 100)).build()
    fast = schedule().launch(0, 4, runs=(10, 50)).build()
    capture = Capture((slow, replace(fast, source=replace(fast.source, path="other.json"))), (0, 1))
    found = {entry.id: entry for entry in analyze(capture).diagnosis.hypotheses}
    assert (found["launch-bound"].rank, interval(found["launch-bound"])[1]) == (1, 10 / 50)
    assert (found["kernel-bound"].rank, interval(found["kernel-bound"])[1]) == (0, 90 / 100)


def steps(*kernel_us: int) -> Schedule:
    """One range per step; each launches one kernel of the given length after the device has fallen idle."""
    built, at = schedule(), 0
    for length in kernel_us:
        built.range(at, at + length + 15, "s").launch(at, at + 4, runs=(at + 10, at + 10 + length))
        built.sync(at + 5, at + 10 + length, stream=7)
        at += length + 20
    return built


def test_several_windows_give_a_mean_and_an_interval_around_it() -> None:
    """Steps of 90, 180 and 90 us of kernel: (90 + 180 + 90) of 100 + 200 + 110 us; windows tile: 0, 100, 300, 410."""
    built = steps(90, 180, 90)
    found = verdicts(built, steps="^s$")["kernel-bound"]
    assert found.measured is not None and found.measured.windows == 3
    total = sum(budget.step_ns_total for budget in analysis_of(built, steps="^s$").diagnosis.budget) / 1000
    low, share, high = interval(found)
    assert (value(found), share) == (120, 360 / total)
    assert low < share < high


def test_equal_windows_need_no_wider_interval() -> None:
    found = verdicts(steps(90, 90), steps="^s$")["kernel-bound"]
    low, share, high = interval(found)
    assert low <= share <= high
    assert found.measured is not None and found.measured.kind == "measurement"


def test_warm_up_windows_have_no_say() -> None:
    built = steps(90, 90, 90).call(4, 5, "cudaMalloc")
    found = verdicts(built, steps="^s$")["kernel-bound"]
    assert found.measured is not None and found.measured.windows == 2


def test_evidence_is_the_longest_segments_of_the_quantity() -> None:
    found = verdicts(one_of_each())
    assert [(e.start_ns, e.end_ns, e.event) for e in found["host-bound"].evidence] == [
        (171_000, 371_000, "prepare")
    ]
    assert [(e.start_ns, e.end_ns, e.event) for e in found["launch-bound"].evidence] == [
        (0, 10_000, "a"), (371_000, 381_000, "b"),
    ]  # fmt: skip
    assert found["dependency-stalls"].evidence == []


def test_what_overlaps_by_definition_says_so() -> None:
    found = verdicts(one_of_each())
    assert set(found["synchronization"].overlaps_with) == {"launch-bound", "host-bound", "output-path"}
    assert "synchronization" in found["launch-bound"].overlaps_with


def test_hypotheses_that_one_rank_cannot_answer_are_listed() -> None:
    found = verdicts(one_of_each())
    assert {name for name, entry in found.items() if entry.verdict == "unmeasured"} == {
        "small-grids", "bandwidth-bound", "compute-bound", "output-path", "kv-context",
    }  # fmt: skip


def with_collective(length: int) -> Schedule:
    """A kernel of 100 us, and behind it a collective."""
    return (
        schedule()
        .launch(0, 4, runs=(10, 110), name="a")
        .launch(4, 8, runs=(110, 110 + length), name="ncclDevKernel_AllReduce_Sum_bf16_RING_LL(int)")
    )


def test_one_rank_cannot_split_a_collective_but_says_what_it_holds_at_most() -> None:
    entry = verdicts(with_collective(110))["collective-late-rank"]
    assert (entry.verdict, entry.share, entry.measured) == ("unmeasured", None, None)
    assert "collectives hold at most 50.0 % of the step on rank 0's path" in entry.verdict_note


def test_collectives_that_hold_next_to_nothing_are_contradicted_by_that_bound() -> None:
    entry = verdicts(with_collective(1))["collective-transfer"]
    assert entry.verdict == "contradicted"
    assert entry.measured is not None
    assert (entry.measured.kind, entry.measured.value) == ("bound", 1000)
    assert interval(entry) == (0, 1 / 111, 1 / 111)


def test_the_share_of_a_bound_is_its_time_of_the_step() -> None:
    """The upper end of the interval allows for other steps; the share and the time beside it are of these."""
    built = schedule()
    for at, length in ((0, 1), (1000, 3), (2000, 2), (3000, 1), (4000, 3)):
        built.range(at, at + 900, "execute_context_0(0)_generation_8(8)")
        built.launch(at, at + 4, runs=(at + 10, at + 500), name="a")
        name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(int)"
        built.launch(at + 4, at + 8, runs=(at + 500, at + 500 + length), name=name)
    found = analysis_of(built).diagnosis
    entry = next(row for row in found.hypotheses if row.id == "collective-transfer")
    assert entry.measured is not None and entry.share is not None
    (budget,) = found.budget
    assert entry.measured.kind == "bound"
    assert entry.share.value == pytest.approx(entry.measured.value * budget.windows / budget.step_ns_total)
    assert entry.share.interval[1] > entry.share.value


def test_of_several_ranks_one_with_an_open_interval_comes_before_one_that_contradicts() -> None:
    """Rank 0 spends 1.9 % in copies for certain; on rank 1 nearly all of the path is unknown."""
    sure = schedule().copy(0, 2, runs=(10, 12)).launch(4, 8, runs=(13, 110), name="a")
    unknown = schedule().launch(0, 4, runs=(10, 12), name="a").kernel(100, 110, "unlinked")
    unknown.copy(12, 13, runs=(111, 112))
    capture = Capture((sure.build(), unknown.build()), (0, 1))
    entry = next(row for row in analyze(capture).diagnosis.hypotheses if row.id == "copies")
    assert (entry.rank, entry.verdict) == (1, "inconclusive")


@pytest.mark.parametrize(("row", "length", "low"), [(True, 10, 0.5), (False, 10, 0.0), (False, 40, 0.5)])
def test_a_short_wait_for_an_unrecorded_stream_supports_no_synchronization(
    row: bool, length: int, low: float
) -> None:
    """
    main       |L 0-4  |sync ..-103 (10 or 40 us)     CPU work       |L 300-304
    stream 7        |a 10-100                                             |b 310-400
    That a ended inside a 10 us call may be chance, where the capture does not say what the call waited for.
    """
    built = schedule().launch(0, 4, runs=(10, 100)).sync(103 - length, 103, stream=7, row=row)
    built.launch(300, 304, runs=(310, 400))
    found = next(h for h in analysis_of(built).diagnosis.hypotheses if h.id == "synchronization")
    assert found.share is not None
    assert found.share.value > 0.5
    assert found.share.interval[0] >= low
    assert (found.share.interval[0] == 0) == (low == 0)


def small_and_large() -> Schedule:
    """
    main      |L 0-4 |L 4-8 |L 8-12
    stream 7        |small 10-40, 12 blocks |half 40-60, 66 blocks |large 60-110, 500 blocks
    """
    return (
        schedule(sm_count=132)
        .launch(0, 4, runs=(10, 40), name="small", grid=12)
        .launch(4, 8, runs=(40, 60), name="half", grid=66)
        .launch(8, 12, runs=(60, 110), name="large", grid=500)
    )


def test_small_grids_are_path_kernels_that_cover_less_than_the_threshold() -> None:
    found = verdicts(small_and_large())["small-grids"]
    assert (value(found), found.verdict) == (30, "supported")  # 12 of 132; half the device is not small
    assert found.evidence[0].event == "small"
    stricter = verdicts(small_and_large(), thresholds={"small_grid_coverage": 0.6})["small-grids"]
    assert value(stricter) == 50


def test_a_kernel_of_unknown_grid_could_be_small() -> None:
    """
    main      |L 0-4 |L 4-8
    stream 7        |small 10-40, 12 blocks |unknown 40-100
    """
    built = (
        schedule(sm_count=132)
        .launch(0, 4, runs=(10, 40), name="small", grid=12)
        .launch(4, 8, runs=(40, 100), name="unknown", grid=-1)
    )
    assert interval(verdicts(built)["small-grids"]) == (30 / 100, 30 / 100, 90 / 100)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sm_count": None}, "not captured: SM count: keep the device table"),
        ({"vendor": "rocm"}, "not captured: SM count: keep the device table"),
    ],
)
def test_without_a_count_of_multiprocessors_small_grids_are_unmeasured(
    change: dict[str, Any], why: str
) -> None:
    entry = verdicts(replace(small_and_large(), **change))["small-grids"]
    assert entry.verdict == "unmeasured"
    assert entry.verdict_note.startswith(why)


def with_output(sampling_ends: int) -> Schedule:
    """
    main      |L 0-4 |sync 4-45 |Sample 45-... |L b, 4 long, runs 6 later for 100
    stream 7       |a 10-40
    """
    end = sampling_ends
    return (
        schedule()
        .launch(0, 4, runs=(10, 40), name="a")
        .sync(4, 45, stream=7)
        .range(45, end, "gpu_model_runner: sample")
        .launch(end, end + 4, runs=(end + 6, end + 106), name="b")
    )


def test_host_time_in_output_ranges_is_the_output_path() -> None:
    entry = verdicts(with_output(145))["output-path"]
    assert (value(entry), entry.verdict) == (100, "supported")


def test_the_output_path_is_never_contradicted_without_what_follows_the_server() -> None:
    entry = verdicts(with_output(46))["output-path"]
    assert (value(entry), entry.verdict) == (1, "inconclusive")
    assert "transport and buffering" in entry.verdict_note


def test_without_output_ranges_the_output_path_is_unmeasured() -> None:
    assert verdicts(small_and_large())["output-path"].verdict == "unmeasured"


def test_the_gain_is_bounded_by_all_that_could_belong() -> None:
    """
    main      |L 0-4                |L b 104-108
    stream 7       |a 10-60 |unlinked 90-100  |b 110-150     what held the unlinked one up is unknown
    """
    built = (
        schedule()
        .launch(0, 4, runs=(10, 60), name="a")
        .kernel(90, 100, "unlinked")
        .launch(4, 8, runs=(101, 150), name="b")
    )
    entry = verdicts(built)["kernel-bound"]
    assert value(entry) == 50 + 10 + 49
    assert entry.gain_upper_bound_ns == (50 + 10 + 49 + 30) * 1000


def late_device_clock(wait_from: int) -> Schedule:
    """
    main      |L a 0-4   |wait-(wait+2)   |op ... |L b     60 such pairs, in which the device clock may be late
    stream 7       |a 10-40
    """
    built = schedule()
    for at in range(60):
        start = 1_000 * at
        built.launch(start, start + 4, runs=(start + 10, start + 40), name="a")
        built.sync(start + wait_from, start + wait_from + 2, stream=7)
        built.op(start + wait_from + 2, start + 500, "prepare")
    return built


@pytest.mark.parametrize(("wait_from", "at_most"), [(41, 0.9), (95, 0.0)])
def test_a_wait_that_a_later_device_clock_would_make_held_counts_at_most(
    wait_from: int, at_most: float
) -> None:
    """The wait begins 1 us after a ended, and returns 3 us after: the clock could be up to 3 us late."""
    entry = verdicts(late_device_clock(wait_from))["synchronization"]
    assert entry.share is not None
    assert entry.share.value == 0
    assert entry.share.interval[0] == 0
    assert (entry.share.interval[1] > at_most) == (at_most > 0)


def test_overhead_of_any_thread_could_be_the_profilers_part_of_the_path() -> None:
    """
    main     |L a 0-4   |sync 4-45  |nothing recorded        |L b 145-149
    other                            |overhead 60-120
    stream 7      |a 10-40                                        |b 155-255
    """
    built = (
        schedule()
        .launch(0, 4, runs=(10, 40), name="a")
        .sync(4, 45, stream=7)
        .launch(145, 149, runs=(155, 255), name="b")
        .thread("other")
        .overhead(60, 120)
    )
    found = verdicts(built)
    assert interval(found["profiler-distortion"]) == (0, 0, 60 / 255)
    assert interval(found["host-bound"])[:2] == (40 / 255, 100 / 255)  # nor is that time certain CPU work


def test_a_guessed_wait_under_which_kernels_ran_elsewhere_could_be_their_time() -> None:
    """
    main      |L a|L x 3-5     |L b 8-10
    stream 7       |a 10-60               |b 101-120     why b waited is not recorded
    stream 20           |x 11-100
    """
    built = (
        schedule()
        .launch(0, 2, runs=(10, 60), name="a")
        .launch(3, 5, runs=(11, 90), name="x", stream=20)
        .launch(8, 10, runs=(101, 120), name="b")
    )
    found = verdicts(built)
    assert interval(found["kernel-bound"]) == (69 / 120, 69 / 120, 99 / 120)
    assert interval(found["dependency-stalls"]) == (0, 41 / 120, 41 / 120)
    assert interval(found["device-turnaround"]) == (0, 0, 41 / 120)


def test_a_wait_far_longer_than_a_turnaround_could_not_be_one() -> None:
    """b was submitted at 4 and started at 1,010: most of that wait is no turnaround, whatever held it."""
    built = schedule().launch(0, 4, runs=(10, 60), name="a").launch(4, 8, runs=(1_010, 1_110), name="b")
    found = verdicts(built)
    assert interval(found["dependency-stalls"])[2] == 950 / 1_110
    assert interval(found["device-turnaround"]) == (0, 0, 50 / 1_110)


def test_a_device_clock_that_was_moved_could_lie_anywhere_in_its_interval() -> None:
    """
    60 times: launch 0-4, a kernel 2 us *before* the call until 20 after, a wait that returns 31 after: the
    device clock is 2 to 11 us early. Moved by 2, each launch took 0 us; it could have taken 9.
    """
    built = schedule()
    for at in range(60):
        start = 1_000 + 100 * at
        built.launch(start, start + 4, runs=(start - 2, start + 20), name="a").sync(
            start + 5, start + 31, stream=7
        )
    analysis = analysis_of(built)
    clock = analysis.diagnosis.ranks[0].clock
    assert (clock.device_shift_ns, clock.device_interval_ns) == (2_000, (2_000, 11_000))
    entry = next(row for row in analysis.diagnosis.hypotheses if row.id == "synchronization")
    assert entry.share is not None
    assert entry.share.interval[0] < entry.share.value  # what returned 9 us later than the work may not have


def test_no_change_can_give_more_than_the_step_takes() -> None:
    """
    60 times: launch 0-4, a kernel from 10 to 20 (the first one 2 us before its call); one wait at the end, which
    returns 500 us after its work. The device clock could be up to 500 us later, and every launch as much longer.
    """
    built = schedule()
    for at in range(60):
        start = 1_000 + 100 * at
        built.launch(start, start + 4, runs=(start + 10 if at else start - 2, start + 20), name="a")
    built.sync(start + 5, start + 520, stream=7)
    analysis = analysis_of(built)
    assert analysis.diagnosis.ranks[0].clock.correction == "shifted"
    entry = next(row for row in analysis.diagnosis.hypotheses if row.id == "launch-bound")
    assert entry.share is not None
    assert entry.share.interval[1] == 1
    assert entry.gain_upper_bound_ns == analysis.diagnosis.budget[0].step_ns_total


@pytest.mark.parametrize(("early", "verdict"), [(0, "contradicted"), (3, "inconclusive")])
def test_clocks_that_contradict_one_another_contradict_nothing_on_the_cpu(early: int, verdict: str) -> None:
    """Ten launches and kernels that follow one another; the first of them starts ``early`` us before its call."""
    built = schedule()
    for at in range(10):
        start = 10 + 100 * at if at else -early or 10
        built.launch(2 * at, 2 * at + 2, runs=(start, 109 + 100 * at), name="a")
    entry = verdicts(built)["synchronization"]
    assert entry.verdict == verdict
    assert ("contradict one another" in entry.verdict_note) == (verdict == "inconclusive")
