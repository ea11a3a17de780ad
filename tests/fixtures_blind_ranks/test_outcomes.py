"""Comparing a diagnosis with the truth: literal diagnoses of a small run, no analysis."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from analyzer.diagnosis import Diagnosis, Hypothesis, Share
from fixtures.blind import figures
from fixtures.blind_ranks.case import RanksCase, blind_ranks_case
from fixtures.blind_ranks.matching import Boundaries, RecordedClock, clock_of
from fixtures.blind_ranks.outcomes import Found, FoundWindow, compare, found_in, split_anyway
from fixtures.blind_ranks.shares import HYPOTHESES, LATE_RANK, TRANSFER, true_shares
from fixtures.simulator.engine import simulate
from fixtures.simulator.program import Group
from fixtures.simulator.recording import CAPTURE_EPOCH_NS, LEAD_NS, Recording, observe
from fixtures.simulator.run import Run
from fixtures.simulator.windows import Window, global_windows

SEED = 93


@pytest.fixture(scope="module")
def case() -> RanksCase:
    return blind_ranks_case(SEED)


@pytest.fixture(scope="module")
def run(case: RanksCase) -> Run:
    return simulate(case.program)


def entry(name: str, value: float, verdict: str = "supported", scope: str = "global") -> Hypothesis:
    fields: dict[str, Any] = dict.fromkeys(Hypothesis.__struct_fields__)
    fields |= {"id": name, "phase": "decode", "scope": scope, "verdict": verdict}
    return Hypothesis(**fields | {"share": Share(value=value, interval=(value - 0.01, value + 0.01))})


def window(true: Window, shift: int = 0, **other: Any) -> FoundWindow:
    fields: dict[str, Any] = {"phase": "decode", "usable": True, "left_out": False, "late": {2: 3, 1: 1}}
    return FoundWindow(true.start_ns + shift, true.end_ns + shift, **fields | other)


def diagnosed(run: Run, **other: Any) -> Found:
    """A diagnosis that is right about everything, its times 300 ns off."""
    windows = global_windows(run)[1:]
    truth = true_shares(run, windows, range(len(windows)))
    fields: dict[str, Any] = {
        "zero_ns": 0,
        "reference_rank": 0,
        "windows": tuple(window(true, 300) for true in windows),
        "hypotheses": tuple(entry(name, share) for name, share in truth.items()),
        "split_calls": ((frozenset({0, 1}), 7),),
    }
    return Found(**fields | other)


def test_truth_is_taken_over_the_windows_that_were_found(case: RanksCase, run: Run) -> None:
    outcome = compare(case, run, diagnosed(run))
    assert (outcome.problem, outcome.seed, outcome.ranks) == ("", SEED, case.scenario.ranks)
    assert outcome.windows == len(global_windows(run)) - 1
    assert [answer.hypothesis for answer in outcome.answers] == list(HYPOTHESES)
    assert all(answer.value == pytest.approx(answer.truth, abs=1e-9) for answer in outcome.answers)
    assert (outcome.named_rank, outcome.split_anyway) == (2, 0)
    assert outcome.late_rank in range(case.scenario.ranks)
    planted = {answer.hypothesis for answer in outcome.answers if answer.planted}
    assert planted == {LATE_RANK, case.scenario.loop.filler}
    score = figures.score(figures.rows_of([outcome]))
    assert score.intervals == score.inside > 0


def test_flagged_empty_and_foreign_windows_are_left_out(case: RanksCase, run: Run) -> None:
    first, second, third, fourth, *_ = global_windows(run)
    windows = (
        window(first, left_out=True),
        window(second, usable=False),
        window(third, phase="prefill"),
        window(fourth),
    )
    outcome = compare(case, run, diagnosed(run, windows=windows))
    truth = true_shares(run, [fourth], [0])
    assert {answer.hypothesis: answer.truth for answer in outcome.answers} == truth
    only = compare(case, run, diagnosed(run, windows=windows[:1]))
    assert only.windows == 1  # nothing but warm-up: then that


def test_what_cannot_be_compared_is_said(case: RanksCase, run: Run) -> None:
    assert compare(case, run, diagnosed(run, hypotheses=())).problem == "no hypothesis on the global path"
    assert compare(case, run, diagnosed(run, windows=())).problem == "no global window"
    last = global_windows(run)[-1]
    far = (window(last, 100_000_000),)
    outcome = compare(case, run, diagnosed(run, windows=far))
    assert (outcome.problem, outcome.answers) == ("windows that no step ends with", ())


def test_without_a_path_through_all_ranks_everything_is_unmeasured(case: RanksCase, run: Run) -> None:
    outcome = compare(case, run, diagnosed(run, hypotheses=(), windows=()))
    windows = global_windows(run)[1:]
    truth = true_shares(run, windows, range(len(windows)))
    assert {answer.hypothesis: answer.truth for answer in outcome.answers} == truth
    assert {(answer.verdict, answer.value) for answer in outcome.answers} == {("unmeasured", None)}
    assert outcome.late_rank is not None
    others = frozenset(range(1, case.scenario.ranks))
    loop = replace(case.scenario.loop, recording=Recording(lost_ranks=others))
    alone = replace(case, scenario=replace(case.scenario, loop=loop))
    assert compare(alone, run, diagnosed(run, hypotheses=(), windows=())).answers == ()


def test_a_hypothesis_that_is_not_there_is_unmeasured(case: RanksCase, run: Run) -> None:
    kept = tuple(e for e in diagnosed(run).hypotheses if e.id != "copies")
    answers = {a.hypothesis: a for a in compare(case, run, diagnosed(run, hypotheses=kept)).answers}
    assert (answers["copies"].verdict, answers["copies"].value) == ("unmeasured", None)


def test_a_window_over_two_steps_has_the_path_of_both(run: Run) -> None:
    one, two = global_windows(run)[1:3]
    found = Boundaries(run, range(len(run.program.ranks))).windows([(one.start_ns + 900, two.end_ns - 900)])
    assert found is not None
    assert (found[0].start_ns, found[0].end_ns, found[0].last) == (one.start_ns, two.end_ns, two.last)


def test_the_first_window_begins_with_the_first_marker(run: Run) -> None:
    first = global_windows(run)[0]
    found = Boundaries(run, range(len(run.program.ranks))).windows([(first.start_ns - 40, first.end_ns)])
    assert found is not None
    assert found[0].start_ns == first.start_ns


def test_a_recorded_clock_is_undone(run: Run) -> None:
    recording = Recording(clock_offset_ns={1: -3_000_000}, drift_ppb={1: 50_000})
    assert clock_of(recording, 0) == RecordedClock(0, 0)
    clock = clock_of(recording, 1)
    for seen, work in zip(observe(run, 1, recording).works, run.works_of(1), strict=True):
        assert abs(clock.true_ns(seen.start_ns - LEAD_NS) - work.start_ns) <= 1


def test_a_diagnosis_is_read_with_and_without_a_global_path() -> None:
    path = {"kernel": 10, "collective.wait": 3, "collective.transfer": 4}
    clock = SimpleNamespace(reference_rank=1, offset_ns=None)
    rank = SimpleNamespace(rank=1, clock=clock, windows=[SimpleNamespace(path_ns=path)])
    rows = [entry("copies", 0.5, scope="rank"), entry("copies", 0.3)]
    fields = {"ranks": [rank], "hypotheses": rows, "time_zero_ns": str(CAPTURE_EPOCH_NS - 5)}
    fields |= {"collectives": [SimpleNamespace(ranks=[1, 0], split_calls=4)]}
    fields |= {"late_ranks": [SimpleNamespace(rank=6), SimpleNamespace(rank=2)]}
    alone = found_in(cast(Diagnosis, SimpleNamespace(**fields, global_=None)))
    assert (alone.windows, alone.zero_ns, alone.reference_rank) == ((), -5, 1)
    assert alone.split_calls == ((frozenset({0, 1}), 4),)
    assert alone.hypotheses == (rows[1],)
    shown = {
        "start_ns": 1,
        "end_ns": 9,
        "phase": "p",
        "left_out": False,
        "empty": False,
        "late_calls": {0: 1, 2: 2},
    }
    across = SimpleNamespace(windows=[SimpleNamespace(**shown, path_ns=path)])
    together = found_in(cast(Diagnosis, SimpleNamespace(**fields, global_=across)))
    assert together.windows == (FoundWindow(1, 9, "p", True, False, {2: 2, 0: 1}),)
    assert together.reported_rank == 6
    assert alone.clocks == together.clocks == ()


def test_only_groups_without_the_missing_rank_may_be_split() -> None:
    groups = [Group("a", (0, 1, 2, 3)), Group("b", (0, 1)), Group("c", (2, 3))]
    found = [(frozenset({0, 1}), 5), (frozenset({2}), 3), (frozenset({0, 1, 2}), 11)]
    assert split_anyway({3}, groups, found) == 14
    assert split_anyway(set(), groups, found) == 0


def test_ranks_without_a_file_are_named(case: RanksCase, run: Run) -> None:
    loop = replace(case.scenario.loop, recording=Recording(lost_ranks=frozenset({2})))
    partial = replace(case, scenario=replace(case.scenario, loop=loop))
    outcome = compare(partial, run, diagnosed(run))
    assert (outcome.missing, outcome.split_anyway, outcome.complete) == ((2,), 7, False)
    assert partial.seen == tuple(rank for rank in range(partial.scenario.ranks) if rank != 2)
    assert {answer.hypothesis for answer in outcome.answers if not answer.due} == {TRANSFER, LATE_RANK}
    assert figures.missed(
        [(SEED, replace(one, truth=1.0, verdict="inconclusive")) for one in outcome.answers]
    ) == [(SEED, replace(one, truth=1.0, verdict="inconclusive")) for one in outcome.answers if one.due]
