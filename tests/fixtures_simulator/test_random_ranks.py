"""Random programs of several ranks: they run, have every trait, and exact ones obey the exact conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise

import pytest

from fixtures.simulator import program as p
from fixtures.simulator.engine import simulate
from fixtures.simulator.machine import Machine
from fixtures.simulator.random_ranks import LATE_NS, groups_are_told, random_ranks_program, ranks_recording
from fixtures.simulator.rank_builder import DISPATCH_NS, LONG_NS, MAIN, PIECE_NS, WARM_NS, WARM_ROUNDS, Level
from fixtures.simulator.rank_layout import COMM_STREAMS
from fixtures.simulator.run import Run
from fixtures.simulator.truth import Segment, truth_of
from fixtures.simulator.windows import Window

SEEDS = range(61)
LEVELS: tuple[Level, ...] = ("exact", "hard")
BURST_NS = 50_000
"""Launches of one burst stay closer than this."""


@cache
def program(seed: int, level: Level = "exact") -> p.Program:
    return random_ranks_program(seed, level)


def run_of(seed: int, level: Level) -> Run:
    return simulate(program(seed, level))


def main_ops(rank: p.Rank, since_first_step: bool = False) -> list[p.Op]:
    ops = list(rank.threads[0].ops)
    first = next(place for place, op in enumerate(ops) if isinstance(op, p.Step))
    return ops[first:] if since_first_step else ops


def every_rank(level: Level = "exact") -> Iterator[tuple[p.Program, p.Rank]]:
    for seed in SEEDS:
        for rank in program(seed, level).ranks:
            yield program(seed, level), rank


def collectives(rank: p.Rank) -> list[p.Collective]:
    """Those with a launch of their own, after the prelude."""
    return [op for op in main_ops(rank, since_first_step=True) if isinstance(op, p.Collective)]


# -- programs ---------------------------------------------------------------------------------------


def test_the_same_arguments_give_the_same_program() -> None:
    assert random_ranks_program(5, "hard") == random_ranks_program(5, "hard")
    assert random_ranks_program(5, "hard") != random_ranks_program(6, "hard")
    assert len(random_ranks_program(5, "exact", ranks=7).ranks) == 7


@pytest.mark.parametrize("level", LEVELS)
def test_every_program_runs_to_its_end_and_every_meeting_takes_place(level: Level) -> None:
    for seed in SEEDS:
        run = run_of(seed, level)  # DeadlockError otherwise
        assert all(set(meeting.works) == set(meeting.ranks) for meeting in run.meetings), seed
        for meeting in run.meetings:
            ops = {work.op.op for work in meeting.works.values() if isinstance(work.op, p.Collective)}
            assert len(ops) == 1 or ops == {"send", "recv"}, seed


def _streams_of(found: p.Program) -> set[int]:
    return {op.stream for rank in found.ranks for op in collectives(rank)}


def _orders_differ(found: p.Program) -> bool:
    """Two ranks of one stage issue collectives of two kinds in different orders."""
    halves = len(found.ranks) // 2 if _ranks_of(found, "stage") else len(found.ranks)
    orders = [
        [op.group.split()[0] for op in collectives(rank) if not op.group.startswith("stage")]
        for rank in found.ranks[:halves]
    ]
    return any(order != orders[0] for order in orders)


def _ranks_of(found: p.Program, kind: str) -> list[tuple[int, ...]]:
    return [group.ranks for group in found.groups if group.name.startswith(kind)]


def _written(found: p.Program) -> list[str]:
    return [group.shown for group in found.groups]


def _in_graphs(found: p.Program) -> bool:
    ops = [op for rank in found.ranks for op in main_ops(rank) if isinstance(op, p.GraphLaunch)]
    return any(isinstance(node.op, p.Collective) for op in ops for node in op.graph.nodes)


def _events_around(found: p.Program) -> bool:
    """A collective right between a wait of its stream and a record on it, for which the main stream waits."""
    ops = main_ops(found.ranks[0], since_first_step=True)
    waited = {op.event for op in ops if isinstance(op, p.StreamWait) and op.stream == MAIN}
    return any(
        isinstance(op, p.Collective)
        and isinstance(before, p.StreamWait)
        and isinstance(after, p.EventRecord)
        and before.stream == after.stream == op.stream
        and after.event in waited
        for before, op, after in zip(ops, ops[1:], ops[2:], strict=False)
    )


def _prepared_ns(rank: p.Rank) -> list[int]:
    """Host work at the beginning of each step, ns."""
    ops = main_ops(rank, since_first_step=True)
    found = []
    for place, op in enumerate(ops):
        if isinstance(op, p.Step):
            found.append(_long_work(ops, place + 1))
    return found


def _long_work(ops: Sequence[p.Op], place: int) -> int:
    """Host work that is no dispatch, from one operation on, ns. Host work of nobody knows whom counts."""
    total = 0
    while place < len(ops):
        op = ops[place]
        if not isinstance(op, p.Cpu) or op.role == "dispatch":
            return total
        total += op.ns
        place += 1
    return total


def _always_late(found: p.Program) -> int:
    """How many ranks come later than any punctual one to every step."""
    return sum(min(_prepared_ns(rank)) > LONG_NS[1] for rank in found.ranks)


TRAITS: dict[str, Callable[[p.Program], bool]] = {
    "collectives on the main stream": lambda f: MAIN in _streams_of(f),
    "collectives of two groups on two streams": lambda f: len(_streams_of(f) & {*COMM_STREAMS.values()}) > 1,
    "events around collectives": _events_around,
    "collectives inside replays": _in_graphs,
    "a tensor group of all ranks": lambda f: len(_ranks_of(f, "tensor")) == 1,
    "tensor groups of contiguous halves": lambda f: len(_ranks_of(f, "tensor")) == 2,
    "strided data groups": lambda f: any(b - a > 1 for g in _ranks_of(f, "data") for a, b in pairwise(g)),
    "two groups of the same ranks": lambda f: bool({*_ranks_of(f, "data")} & {*_ranks_of(f, "tensor")}),
    "pipeline stages": lambda f: bool(_ranks_of(f, "stage")),
    "sends in both directions": lambda f: {op.op for op in collectives(f.ranks[0])} >= {"send", "recv"},
    "orders that differ between ranks": _orders_differ,
    "groups that are written alike": lambda f: len({*_written(f)}) < len(_written(f)),
    "several groups under their own names": lambda f: len({*_written(f)}) == len(_written(f)) > 3,
    "a rank that is always late": lambda f: _always_late(f) == 1,
    "ranks that are late now and then": lambda f: any(
        max(_prepared_ns(r)) > LONG_NS[1] > min(_prepared_ns(r)) for r in f.ranks
    ),
    "groups that nothing tells": lambda f: not groups_are_told(f),
    "collectives inside replays whose stream tells the group": lambda f: _in_graphs(f) and groups_are_told(f),
    "two host threads": lambda f: len(f.ranks[0].threads) == 2,
    "two hosts": lambda f: len({rank.host for rank in f.ranks}) == 2,
}


@pytest.mark.parametrize("level", LEVELS)
def test_every_trait_occurs(level: Level) -> None:
    counts = {name: sum(has(program(seed, level)) for seed in SEEDS) for name, has in TRAITS.items()}
    assert all(2 <= count < len(SEEDS) for count in counts.values()), counts
    assert {len(program(seed, level).ranks) for seed in SEEDS} == set(range(2, 9))


def test_lateness_stays_within_its_bounds() -> None:
    for _, rank in every_rank():
        assert all(LONG_NS[0] <= ns <= LONG_NS[1] + LATE_NS[1] for ns in _prepared_ns(rank))


# -- truth ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS[::3])
def test_truth_partitions_sum(seed: int) -> None:
    truth = truth_of(run_of(seed, LEVELS[seed % 2]))
    for windows in truth.ranks.values():
        for found in windows:
            for path in (found.path, found.split):
                _check_gapless(found.window, path)
            assert sum(piece.end_ns - piece.start_ns for piece in found.exposed) == _length(found.window)
        _check_tiling([found.window for found in windows])
    for window, path in truth.global_paths:
        _check_gapless(window, path)
    _check_tiling([window for window, _ in truth.global_paths])
    for meeting in truth.collectives:
        assert meeting.wait_ns[meeting.late_rank] == 0 == min(meeting.wait_ns.values())
        assert len(set(meeting.transfer_ns.values())) == 1 and min(meeting.transfer_ns.values()) > 0


def _length(window: Window) -> int:
    return window.end_ns - window.start_ns


def _check_gapless(window: Window, path: tuple[Segment, ...]) -> None:
    assert sum(segment.end_ns - segment.start_ns for segment in path) == _length(window)
    assert all(a.end_ns == b.start_ns for a, b in pairwise(path))
    if path:
        assert (path[0].start_ns, path[-1].end_ns) == (window.start_ns, window.end_ns)


def _check_tiling(windows: list[Window]) -> None:
    assert all(a.end_ns == b.start_ns for a, b in pairwise(windows))
    assert all(window.end_ns >= window.start_ns for window in windows)


# -- the conditions of exact programs ---------------------------------------------------------------


def test_exact_machines_are_constant() -> None:
    for seed in SEEDS:
        machine = program(seed).machine
        assert machine.launch_jitter_ns == 0 and machine.event_lag_ns is None
        assert machine.queue_depth == Machine().queue_depth
        assert machine.node_gap_ns < machine.turnaround_ns


@pytest.mark.parametrize("seed", SEEDS[::4])
def test_the_prelude_launches_each_kind_onto_an_idle_device(seed: int) -> None:
    run = run_of(seed, "exact")
    for rank in run.program.ranks:
        prelude = [w for w in run.works_of(rank.rank) if w.step < 0 and w.call.thread == 0]
        kinds = {w.call.name for w in run.works_of(rank.rank)}
        for kind in kinds:
            at_once = {
                w.call.correlation
                for w in prelude
                if w.call.name == kind and w.start_ns == w.call.start_ns + w.latency_ns
            }
            assert len(at_once) >= WARM_ROUNDS, kind
        ops = main_ops(rank)
        silent = 0
        for op in ops[: ops.index(p.Launch("queued", MAIN, 60_000))]:
            assert silent >= WARM_NS or not isinstance(op, p.LAUNCHES)
            silent = silent + op.ns if isinstance(op, p.Cpu) else 0


def test_host_time_is_dispatch_or_long() -> None:
    for found, rank in every_rank():
        ops = main_ops(rank, since_first_step=True)
        for place, op in enumerate(ops):
            if not isinstance(op, p.Cpu):
                continue
            if op.role == "dispatch":
                assert DISPATCH_NS[0] <= op.ns <= DISPATCH_NS[1]
            elif not isinstance(ops[place - 1], p.Cpu):
                assert _long_work(ops, place) >= LONG_NS[0]
        assert max(_dispatch_gaps(ops, found.machine), default=0) < BURST_NS


def _dispatch_gaps(ops: list[p.Op], machine: Machine) -> Iterator[int]:
    """Time between two launch calls with nothing but dispatch and event calls between them, ns."""
    gap: int | None = None
    for op in ops:
        if isinstance(op, p.LAUNCHES):
            if gap is not None:
                yield gap
            gap = 0
        elif gap is not None and isinstance(op, p.EventRecord | p.StreamWait):
            gap += machine.event_record_ns if isinstance(op, p.EventRecord) else machine.stream_wait_ns
        elif gap is not None and isinstance(op, p.Cpu) and op.role == "dispatch":
            gap += op.ns
        else:
            gap = None


def test_calls_that_may_be_held_are_followed_by_long_work() -> None:
    for _, rank in every_rank():
        ops = [op for op in main_ops(rank, since_first_step=True) if not isinstance(op, p.Pop | p.Step)]
        for place, op in enumerate(ops[:-1]):
            if isinstance(op, p.StreamSync | p.EventSync | p.DeviceSync) or _waits_for_itself(op):
                following = ops[place + 1]
                assert _long_work(ops, place + 1) >= LONG_NS[0] or isinstance(following, p.DeviceSync)


def _waits_for_itself(op: p.Op) -> bool:
    return isinstance(op, p.CopyAsync) and op.host_memory == "pageable"


def test_every_wait_is_a_recorded_one() -> None:
    inferred = p.CopySync | p.QueryLoop | p.Malloc | p.Overhead | p.Signal | p.WaitToken | p.ApiCall
    for _, rank in every_rank():
        for op in (op for thread in rank.threads for op in thread.ops):
            assert not isinstance(op, inferred)
            assert not (isinstance(op, p.Launch) and op.pdl_overlap_ns)
            assert not (_waits_for_itself(op) and getattr(op, "direction", "") == "HtoD")


def test_graphs_are_one_chain_per_stream() -> None:
    for _, rank in every_rank():
        for graph in {op.graph for op in main_ops(rank) if isinstance(op, p.GraphLaunch)}:
            last: dict[int, int] = {}
            for place, node in enumerate(graph.nodes):
                assert node.after == ((last[node.op.stream],) if node.op.stream in last else ())
                last[node.op.stream] = place


def test_two_threads_are_covered_by_short_records() -> None:
    for _, rank in every_rank():
        if len(rank.threads) == 1:
            continue
        for op in (op for thread in rank.threads for op in thread.ops if isinstance(op, p.Cpu)):
            assert op.kind != "untraced"
            assert op.ns <= (DISPATCH_NS[1] if op.role == "dispatch" else PIECE_NS)


# -- recordings -------------------------------------------------------------------------------------


def test_recordings_distort_what_they_are_asked_to() -> None:
    every = [ranks_recording(seed, 8, clocks=True, drift=True, loss=True) for seed in SEEDS]
    assert every[3] == ranks_recording(3, 8, clocks=True, drift=True, loss=True)
    offsets = [ns for recording in every for ns in recording.clock_offset_ns.values()]
    drifts = [ppb for recording in every for ppb in recording.drift_ppb.values()]
    assert len(offsets) == len(drifts) == 7 * len(SEEDS)
    assert 4_500_000 < max(map(abs, offsets)) <= 5_000_000
    assert 45_000 < max(map(abs, drifts)) <= 50_000
    assert {recording.collective_metadata for recording in every} == {True, False}
    assert {recording.drop_any for recording in every} == {0.01}
    plain = ranks_recording(3, 8, clocks=False, drift=False, loss=False)
    assert (plain.clock_offset_ns, plain.drift_ppb, plain.drop_any) == ({}, {}, 0.0)
    assert plain.collective_metadata == every[3].collective_metadata
