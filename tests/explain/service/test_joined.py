"""Token logs joined with a capture: client windows, budgets, the verdict, and what stays unmeasured."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analyzer import pipeline
from analyzer.analysis import Analysis
from analyzer.diagnosis import Hypothesis, Service
from analyzer.errors import UsageError
from analyzer.explain.focus import headline_budgets
from analyzer.explain.service.verdict import with_service
from analyzer.model import Capture
from analyzer.report.cautions import cautions
from analyzer.report.escape import TERMINAL
from tests.explain.service.captures import ends, log_of, one_gpu, two_engines, two_gpus, without_output_ranges

US = 1_000
ONE = {"device": "trace", "server": "trace", "client": "trace"}


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Capture:
    return one_gpu(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def complete(capture: Capture) -> list[int]:
    """When each step was complete."""
    return ends(pipeline.analyze(capture, own_changes=False))


def joined(capture: Capture, log: Path, **options: object) -> Analysis:
    return pipeline.analyze(capture, token_logs=[log], own_changes=False, **options)


def service_of(analysis: Analysis) -> Service:
    service = analysis.diagnosis.service
    assert service is not None
    for window in service.windows:
        assert sum(window.path_ns.values()) == window.end_ns - window.start_ns
        assert min(window.path_ns.values()) >= 0
    for before, after in pairwise(service.windows):
        assert before.end_ns == after.start_ns
    return service


def output_path(analysis: Analysis) -> Hypothesis:
    (row,) = [row for row in analysis.diagnosis.hypotheses if row.id == "output-path"]
    return row


def test_client_windows_are_worked_by_hand(capture: Capture, complete: list[int], tmp_path: Path) -> None:
    """Emitted 300 us after each step, received 200 us later: a window ends where its step does, 500 us later."""
    rows = [("r", step, None, end + 300 * US, end + 500 * US) for step, end in enumerate(complete)]
    analysis = joined(capture, log_of(tmp_path, rows), token_clocks=ONE)
    service = service_of(analysis)
    assert [window.index for window in service.windows] == list(range(1, len(complete)))
    assert service.logs[0].assignment == "fit"
    for window, (before, end) in zip(service.windows, pairwise(complete), strict=True):
        assert (window.start_ns, window.end_ns) == (before + 500 * US, end + 500 * US)
        assert window.path_ns["service.output"] == 300 * US
        assert window.path_ns["service.transport"] == 200 * US
        assert window.path_ns["service.buffering"] == window.path_ns["unattributed"] == 0
        # the rest is the device's path, cut where the client was still waiting for the step before
        mine = analysis.diagnosis.ranks[0].windows[window.index]
        assert all(window.path_ns[name] <= ns for name, ns in mine.path_ns.items() if "service" not in name)
        assert window.after_device_ns == 500 * US
    (row,) = service.budget
    assert (row.scope, row.rank, row.windows) == ("client", 0, len(complete) - 1)
    assert row.step_ns_total == complete[-1] - complete[0]


def test_several_requests_make_one_window_to_the_last_receipt(
    capture: Capture, complete: list[int], tmp_path: Path
) -> None:
    rows = [
        (name, step, None, end + 20 * US, end + late)
        for name, late in (("a", 50 * US), ("b", 90 * US))
        for step, end in enumerate(complete)
    ]
    windows = service_of(joined(capture, log_of(tmp_path, rows), token_clocks=ONE)).windows
    assert [window.end_ns for window in windows] == [end + 90 * US for end in complete[1:]]
    assert {window.tokens for window in windows} == {2}


def test_tokens_flushed_together_leave_empty_windows_that_count(
    capture: Capture, complete: list[int], tmp_path: Path
) -> None:
    """Two tokens per read: every second window has no length, and the mean step is still that of the steps."""
    receipt = [complete[step | 1] + 100 * US for step in range(len(complete))]
    rows = [("r", step, None, end + 20 * US, receipt[step]) for step, end in enumerate(complete)]
    analysis = joined(capture, log_of(tmp_path, rows), token_clocks=ONE)
    service = service_of(analysis)
    assert [window.end_ns > window.start_ns for window in service.windows] == [False, True] * 5 + [False]
    (budget,) = service.budget
    assert budget.windows == len(complete) - 1
    assert budget.step_ns_total == receipt[-1] - receipt[0]
    assert budget.path_ns_total["service.buffering"] > 0.3 * budget.step_ns_total
    row = output_path(analysis)
    assert row.verdict == "supported" and "does not lower their rate" in row.verdict_note
    # steps that are at work meanwhile take as long as ever: buffering hides hardly any rate
    assert row.gain_upper_bound_ns is not None and row.measured is not None
    assert row.gain_upper_bound_ns < 0.5 * row.measured.value


def test_a_way_that_takes_no_time_has_no_share(capture: Capture, complete: list[int], tmp_path: Path) -> None:
    rows = [("r", step, end, end + 10, end + 20) for step, end in enumerate(complete)]
    row = output_path(joined(capture, log_of(tmp_path, rows), token_clocks=ONE))
    assert row.scope == "client" and row.share is not None
    assert row.share.value < 0.1  # host.output of the loop is all there is
    assert row.measured is not None and row.measured.name.startswith("host.output + service.*")


def test_without_marked_output_nothing_is_contradicted(tmp_path: Path) -> None:
    capture = without_output_ranges(tmp_path)
    complete = ends(pipeline.analyze(capture, own_changes=False))
    rows = [("r", step, end, end + 10, end + 20) for step, end in enumerate(complete)]
    row = output_path(joined(capture, log_of(tmp_path, rows), token_clocks=ONE))
    assert row.verdict == "inconclusive" and "--output-ranges" in row.verdict_note


def test_a_constant_offset_is_in_the_upper_end_only(
    capture: Capture, complete: list[int], tmp_path: Path
) -> None:
    rows = [
        ("r", step, None, end + 20 * US, end + 40 * US + 10**9 + step % 3 * US)
        for step, end in enumerate(complete)
    ]
    analysis = joined(
        capture, log_of(tmp_path, rows), token_clocks={"server": "trace", "client": "elsewhere"}
    )
    service, row = service_of(analysis), output_path(analysis)
    (pair,) = service.clocks
    assert not pair.one_clock and pair.smallest_ns == 10**9 + 20 * US
    (budget,) = service.budget
    assert budget.path_ns_total["service.transport"] <= 2 * US * len(complete)
    assert row.share is not None and row.share.interval[1] == 1.0 and row.share.value < 0.2
    assert any("constant part" in one.what for one in analysis.diagnosis.unmeasured)


def test_receipts_that_go_back_do_not_make_one_clock_two(
    capture: Capture, complete: list[int], tmp_path: Path
) -> None:
    """Two stamps of twelve lie far before their emission: they tell no clock offset."""
    rows = [
        ("r", step, None, end + 20 * US, end + 40 * US - (10**7 if step % 5 == 4 else 0))
        for step, end in enumerate(complete)
    ]
    analysis = joined(capture, log_of(tmp_path, rows), token_clocks=ONE)
    service = service_of(analysis)
    (pair,) = service.clocks
    assert pair.one_clock and pair.smallest_ns == 20 * US
    transport = next(stage for stage in service.stages if stage.name == "transport")
    assert not transport.above_smallest and transport.mean_ns <= 20 * US
    assert [entry.count for entry in analysis.diagnosis.quality if entry.reason == "token-times-go-back"] == [
        2
    ]


def test_one_stamp_that_is_far_too_late_tells_no_offset_either(
    capture: Capture, complete: list[int], tmp_path: Path
) -> None:
    rows = [
        ("r", step, None, end + 20 * US, end + 40 * US + (10**8 if step == 0 else 0))
        for step, end in enumerate(complete)
    ]
    (pair,) = service_of(joined(capture, log_of(tmp_path, rows), token_clocks=ONE)).clocks
    assert pair.one_clock and pair.smallest_ns == 20 * US


def test_windows_over_steps_without_a_token_are_told(
    capture: Capture, complete: list[int], tmp_path: Path
) -> None:
    """Tokens of steps 3, 4 and 8 of twelve are not in the log: two windows are longer than a step's."""
    rows = [
        ("r", step, None, end + 20 * US, end + 40 * US)
        for step, end in enumerate(complete)
        if step not in (3, 4, 8)
    ]
    analysis = joined(capture, log_of(tmp_path, rows), token_clocks=ONE)
    (budget,) = service_of(analysis).budget
    assert budget.windows == 8
    assert budget.note.startswith("2 of 8 windows at the client reach over 3 steps")
    assert any("reach over 3 steps" in line for line in cautions(analysis.diagnosis, TERMINAL))
    every = [("r", step, None, end + 20 * US, end + 40 * US) for step, end in enumerate(complete)]
    (whole,) = service_of(joined(capture, log_of(tmp_path, every), token_clocks=ONE)).budget
    assert whole.note == ""


def test_clocks_that_nothing_names_are_not_joined(
    capture: Capture, complete: list[int], tmp_path: Path
) -> None:
    rows = [("r", step, None, end + 20, end + 90) for step, end in enumerate(complete)]
    analysis = joined(capture, log_of(tmp_path, rows))
    service = service_of(analysis)
    assert not service.logs[0].joined and "--token-clock server=trace" in service.logs[0].why_not_joined
    assert service.windows == [] and service.budget == []
    parts = {part.name: part.total_ns for part in service.parts}
    assert parts["output"] == parts["device"] == 0 and parts["unsplit"] == service.gap_ns_total
    assert output_path(analysis).scope == "rank"
    assert any("is not joined" in one.how_to_measure or "not joined" in one.how_to_measure
               for one in analysis.diagnosis.unmeasured)  # fmt: skip
    with pytest.raises(UsageError, match="no token is joined"):
        joined(capture, log_of(tmp_path, rows), boundary="client")


def test_receipts_alone_tell_the_whole_and_no_part(
    capture: Capture, complete: list[int], tmp_path: Path
) -> None:
    rows = [("r", step, None, None, end + 400 * US) for step, end in enumerate(complete)]
    analysis = joined(capture, log_of(tmp_path, rows), token_clocks=ONE)
    service = service_of(analysis)
    assert {window.unsplit_ns for window in service.windows} == {400 * US}
    assert service.stages == []
    row = output_path(analysis)
    assert row.measured is not None and row.measured.value >= 400 * US


def test_completions_of_the_log_are_held_against_the_capture(
    capture: Capture, complete: list[int], tmp_path: Path
) -> None:
    rows = [("r", step, end + 7, end + 20, end + 90) for step, end in enumerate(complete)]
    (log,) = service_of(joined(capture, log_of(tmp_path, rows), token_clocks=ONE)).logs
    assert (log.assignment, log.completion_difference_ns, log.tokens_joined) == (
        "completion",
        7,
        len(complete),
    )


def test_without_a_log_the_way_to_the_client_is_unmeasured(capture: Capture) -> None:
    rows = pipeline.analyze(capture, own_changes=False).diagnosis.unmeasured
    (row,) = [row for row in rows if "client's receipt" in row.what]
    assert "--token-log" in row.how_to_measure


def test_a_log_of_another_run_is_not_joined(capture: Capture, complete: list[int], tmp_path: Path) -> None:
    """Steps 2.3 times as long: their completions lie anywhere in the steps of the capture."""
    step = (complete[-1] - complete[0]) * 23 // (10 * (len(complete) - 1))
    times = [complete[0] + number * step for number in range(len(complete))]
    rows = [("r", number, end, end + 20, end + 90) for number, end in enumerate(times)]
    analysis = joined(capture, log_of(tmp_path, rows), token_clocks=ONE)
    (log,) = service_of(analysis).logs
    assert (log.joined, log.tokens_joined) == (False, 0)
    assert "of another run" in log.why_not_joined
    assert output_path(analysis).scope != "client"
    assert output_path(analysis).verdict_note.endswith(
        "the token log that was given tells nothing of these steps"
    )
    assert any(log.path in row.what for row in analysis.diagnosis.unmeasured)


def test_coarse_emissions_do_not_move_what_the_device_took(
    capture: Capture, complete: list[int], tmp_path: Path
) -> None:
    """Emitted 300 us after each step by a clock of 1 s: only how output and transport share 500 us is not told."""
    second = 1_000_000_000
    rows = [
        ("r", step, end, (end + 300 * US) // second * second, end + 500 * US)
        for step, end in enumerate(complete)
    ]
    exact = [("r", step, end, end + 300 * US, end + 500 * US) for step, end in enumerate(complete)]
    coarse = joined(capture, log_of(tmp_path, rows), token_clocks=ONE)
    fine = joined(capture, log_of(tmp_path, exact, "exact.csv"), token_clocks=ONE)
    assert service_of(coarse).logs[0].emission_resolution_ns == second
    parts = {part.name: part for part in service_of(coarse).parts}
    for part in service_of(fine).parts:
        if part.name == "device":
            assert parts["device"].total_ns == part.total_ns
        low, high = parts[part.name].mean_interval_ns
        assert low <= part.total_ns / service_of(fine).gaps <= high
    mine, theirs = output_path(coarse).share, output_path(fine).share
    assert mine is not None and theirs is not None and mine.value == theirs.value


def test_emissions_coarser_than_a_step_tell_no_step(
    capture: Capture, complete: list[int], tmp_path: Path
) -> None:
    rows = [
        ("r", step, None, (end + 300 * US) // 10_000_000 * 10_000_000, end + 500 * US)
        for step, end in enumerate(complete)
    ]
    (log,) = service_of(joined(capture, log_of(tmp_path, rows), token_clocks=ONE)).logs
    assert not log.joined and "logged to 10 ms, and the capture's steps come every" in log.why_not_joined


def test_coarse_receipts_do_not_make_one_clock_two(
    capture: Capture, complete: list[int], tmp_path: Path
) -> None:
    rows = [
        ("r", step, None, end + 100 * US + 1, (end + 500 * US) // 1_000_000 * 1_000_000)
        for step, end in enumerate(complete)
    ]
    service = service_of(joined(capture, log_of(tmp_path, rows), token_clocks=ONE))
    assert (service.logs[0].receipt_resolution_ns, service.clocks[0].one_clock) == (1_000_000, True)
    transport = next(stage for stage in service.stages if stage.name == "transport")
    assert transport.mean_interval_ns[0] <= 400 * US <= transport.mean_interval_ns[1]


def test_parts_of_gaps_leave_room_for_a_delay_behind_an_offset(
    capture: Capture, complete: list[int], tmp_path: Path
) -> None:
    """200 us of transport look like an offset of the clocks: the device's part may be smaller by as much."""
    rows = [("r", step, None, end + 300 * US, end + 500 * US) for step, end in enumerate(complete)]
    log = log_of(tmp_path, rows)
    one = service_of(joined(capture, log, token_clocks=ONE))
    two = service_of(joined(capture, log, token_clocks={**ONE, "client": "laptop"}))
    intervals = {part.name: part.mean_interval_ns for part in two.parts}
    for part in one.parts:
        assert intervals[part.name][0] <= part.total_ns / one.gaps <= intervals[part.name][1]


def test_all_ranks_are_joined_on_their_global_path(tmp_path: Path) -> None:
    capture = two_gpus(tmp_path)
    complete = ends(pipeline.analyze(capture, own_changes=False))
    rows = [("r", step, None, end + 20 * US, end + 90 * US) for step, end in enumerate(complete)]
    analysis = joined(capture, log_of(tmp_path, rows), token_clocks=ONE, boundary="client")
    service = service_of(analysis)
    assert (service.scope, service.rank) == ("global", None)
    assert analysis.diagnosis.boundary == "client"
    assert headline_budgets(analysis.diagnosis) == service.budget
    assert {row.scope for row in analysis.diagnosis.budget} == {"global", "rank"}
    assert analysis.diagnosis.step_boundary == "device"


def test_emissions_do_not_tell_which_of_two_engines_a_token_is_from(tmp_path: Path) -> None:
    found = two_engines(tmp_path)
    plain = pipeline.analyze(found, own_changes=False)
    assert plain.diagnosis.global_ is None
    rows, completions = [], []
    for rank in plain.diagnosis.ranks:
        for step, window in enumerate(rank.windows):
            end = window.end_ns
            rows.append((f"r{rank.rank}", step, None, end + 20 * US, end + 60 * US))
            completions.append((f"r{rank.rank}", step, end, end + 20 * US, end + 60 * US))
    (log,) = service_of(joined(found, log_of(tmp_path, rows), token_clocks=ONE)).logs
    assert not log.joined and log.why_not_joined.startswith("2 ranks have steps")
    service = service_of(joined(found, log_of(tmp_path, completions), token_clocks=ONE))
    assert service.rank is not None
    mine = [row for row in completions if row[0] == f"r{service.rank}"]
    (log,) = service_of(joined(found, log_of(tmp_path, mine), token_clocks=ONE)).logs
    assert (log.joined, log.tokens_joined) == (True, len(mine))


def test_the_host_boundary_and_the_client_boundary_without_a_log(capture: Capture, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--token-log"):
        pipeline.analyze(capture, boundary="client")
    log = log_of(tmp_path, [("r", 0, None, 10, 20), ("r", 1, None, 30, 40)])
    (read,) = service_of(joined(capture, log, token_clocks=ONE, boundary="host")).logs
    assert not read.joined and "end on the host" in read.why_not_joined
    (read,) = service_of(joined(capture, log, token_clocks=ONE, step_index="3")).logs
    assert not read.joined and "fewer than two steps" in read.why_not_joined


@given(st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_windows_and_gaps_are_partitions_whatever_the_log(
    capture: Capture, complete: list[int], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    delay = st.one_of(st.none(), st.integers(-200 * US, 9_000 * US))
    rows = []
    for request in range(data.draw(st.integers(1, 3))):
        for step, end in enumerate(complete):
            times = [data.draw(delay) for _ in range(3)]
            rows.append((f"r{request}", step, *(None if one is None else end + one for one in times)))
    rows.append(("last", 0, None, complete[0], complete[0]))
    log = log_of(tmp_path_factory.mktemp("log"), rows)
    analysis = joined(capture, log, token_clocks=data.draw(st.sampled_from([ONE, {"device": "trace"}, {}])))
    service, tokens = service_of(analysis), analysis.tokens
    assert tokens is not None
    with_gap = tokens.gap_ns >= 0
    assert tokens.part_ns[with_gap].sum(axis=1).tolist() == tokens.gap_ns[with_gap].tolist()
    assert sum(part.total_ns for part in service.parts) == service.gap_ns_total
    for budget in service.budget:
        assert sum(budget.path_ns_total.values()) == budget.step_ns_total


def test_a_distorted_capture_weakens_what_is_supported(
    capture: Capture, complete: list[int], tmp_path: Path
) -> None:
    rows = [("r", step, None, end + 900 * US, end + 950 * US) for step, end in enumerate(complete)]
    diagnosis = joined(capture, log_of(tmp_path, rows), token_clocks=ONE).diagnosis
    assert diagnosis.service is not None
    limits = diagnosis.constants.thresholds
    (row,) = with_service(
        [row for row in diagnosis.hypotheses if row.id == "output-path"], diagnosis.service, limits, "lost"
    )
    assert row.verdict == "supported" and row.verdict_note.startswith("supported, under distortion: lost")
