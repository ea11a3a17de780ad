"""A slow, obvious second implementation of the binding rules, on small random captures of eager work.

The rules are attribution section 3, candidates 1 to 4: stream order, submission, stream waits, inference.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import networkx as nx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analyzer.categories import DEVICE_CATEGORIES, Binding
from analyzer.reconstruct.critical_path import ON_DEVICE
from analyzer.reconstruct.inference import HOP_MAX_NS, HOP_SHARE, LONGEST_HOP_NS, LOOK_BACK
from analyzer.reconstruct.rank import RankAccount
from tests.builders import Schedule, account_of, schedule

STREAMS = (7, 20, 21)


@dataclass(frozen=True)
class Row:
    """One piece of device work as the oracle sees it; instants in ns."""

    at: int  # place in the total order
    stream: int
    start: int
    end: int
    launched: int | None
    low: int
    high: int


@dataclass(frozen=True)
class Wait:
    """A stream wait: from then on ``stream`` waits for what ``source`` had been given before ``recorded``."""

    issued: int
    stream: int
    source: int
    recorded: int


def bind_slowly(
    rows: list[Row], waits: list[Wait], tau: int, turnaround: int, hop: int
) -> list[tuple[Binding, int, bool]]:
    return [_bind(k, rows, waits, tau, turnaround, hop) for k in rows]


def _bind(
    k: Row, rows: list[Row], waits: list[Wait], tau: int, turnaround: int, hop: int
) -> tuple[Binding, int, bool]:
    before = rows[: k.at]
    candidates: list[tuple[int, int, Binding, int]] = []  # (ready, preference on a tie, kind, predecessor)

    stream = max((p for p in before if p.stream == k.stream), key=lambda p: (p.end, p.at), default=None)
    if stream is not None:
        candidates.append((min(stream.end + tau, k.start), 2, Binding.STREAM, stream.at))
    for source in _awaited(k, rows, waits):
        if source.at < k.at:
            candidates.append((min(source.end + tau, k.start), 1, Binding.EVENT, source.at))
    if k.launched is not None:
        candidates.append((min(k.launched + k.low, k.start), 0, Binding.SUBMISSION, -1))
    if not candidates:
        kind, bound = Binding.MISSING, -1
    else:
        latest = max(candidates, key=lambda c: (c[0], c[1], rows[c[3]].end if c[3] >= 0 else 0))
        kind, bound = latest[2], latest[3]

    unexplained = 0
    usual = hop if kind == Binding.EVENT else turnaround
    if bound >= 0 and k.start - rows[bound].end > usual:
        unexplained = k.start - rows[bound].end
    elif kind == Binding.SUBMISSION and k.launched is not None and k.start - k.launched > k.high:
        unexplained = k.start - k.launched - k.high
    elif kind != Binding.MISSING:
        return kind, bound, False

    told = (
        k.launched is not None
        and stream is not None
        and any(_submitted(stream, rows) <= wait.issued < k.launched for wait in waits)
    )
    reach = max(turnaround, min(unexplained // HOP_SHARE, HOP_MAX_NS))
    nearest = _elsewhere(k, rows, reach, max(reach, LONGEST_HOP_NS) if told else reach)
    if nearest is not None:
        return Binding.INFERRED, nearest.at, not told
    if k.launched is None:
        return Binding.MISSING, stream.at if stream is not None else -1, False
    return (Binding.UNSEEN, bound, True) if bound >= 0 else (kind, bound, False)


def _elsewhere(k: Row, rows: list[Row], reach: int, far: int) -> Row | None:
    """Of what ended last before k starts: work submitted before k, else what ended last of all."""
    ended = sorted((p for p in rows if p.end <= k.start), key=lambda p: (p.end, p.at), reverse=True)
    in_the_way = None
    for place, p in enumerate(ended[:LOOK_BACK]):
        if p.stream == k.stream or k.start - p.end > far:
            break
        if p.at < k.at and (k.launched is None or _submitted(p, rows) < k.launched):
            return p
        if place == 0 and p.at < k.at and k.start - p.end <= reach:
            in_the_way = p
    return in_the_way


def _awaited(k: Row, rows: list[Row], waits: list[Wait]) -> list[Row]:
    """What the waits issued on k's stream between its previous launch there and its own wait for."""
    if k.launched is None:
        return []
    mine = [r.launched for r in rows if r.stream == k.stream and r.launched is not None]
    previous = max((launched for launched in mine if launched < k.launched), default=None)
    sources = []
    for wait in waits:
        issued_between = wait.issued < k.launched and (previous is None or previous <= wait.issued)
        if wait.stream == k.stream and issued_between:
            recorded = [r for r in rows if r.stream == wait.source and _submitted(r, rows) < wait.recorded]
            if recorded:
                sources.append(max(recorded, key=lambda r: (r.end, -r.at)))
    return sources


def _submitted(row: Row, rows: list[Row]) -> int:
    """The launch; without one its start, or before the capture where it precedes all linked work there."""
    if row.launched is not None:
        return row.launched
    linked = [r.start for r in rows if r.stream == row.stream and r.launched is not None]
    return -1 if linked and row.start < min(linked) else row.start


@st.composite
def captures(draw: st.DrawFn) -> tuple[Schedule, list[Wait]]:
    """Up to a dozen launches on three streams with waits between; starts a little off, some launches lost."""
    built, waits = schedule(), []
    host, busy = 0, dict.fromkeys(STREAMS, 0)
    events: list[tuple[str, int, int]] = []
    for at in range(draw(st.integers(1, 16))):
        host += draw(st.sampled_from((0, 1, 1, 5, 40)))
        action = draw(st.sampled_from(("launch",) * 4 + ("record",) * 2 + ("wait",) * 3 + ("unlinked",)))
        stream = draw(st.sampled_from(STREAMS))
        if action == "record":
            built.event_record(host, host + 1, f"e{at}", stream=stream)
            events.append((f"e{at}", stream, host * 1000))
        elif action == "wait" and events:
            name, source, recorded = draw(st.sampled_from(events))
            built.event_wait(host, host + 1, name, stream=stream)
            waits.append(Wait(host * 1000, stream, source, recorded))
        else:
            ready = host + draw(st.sampled_from((5, 5, 8, 30, -2)))
            start = max(ready, busy[stream] + draw(st.sampled_from((-3, 1, 1, 2, 3, 15))), 1)
            end = start + draw(st.sampled_from((1, 4, 10, 60)))
            if action == "unlinked":
                built.kernel(start, end, f"k{at}", stream=stream)
            else:
                built.launch(host, host + 1, runs=(start, end), name=f"k{at}", stream=stream)
            busy[stream] = max(busy[stream], end)
        host += 1
    return built, waits


def rows_of(account: RankAccount) -> list[Row]:
    work, bindings = account.work, account.bindings
    low = account.constants.pooled.low_ns
    lanes = account.trace.process.lanes
    return [
        Row(
            at=at,
            stream=lanes[work.lane[at]].stream,
            start=int(work.start_ns[at]),
            end=int(work.end_ns[at]),
            launched=int(work.launch_ns[at]) if work.linked[at] else None,
            low=account.constants.latency_of("cudaLaunchKernel").low_ns if work.linked[at] else low,
            high=int(bindings.latency_high_ns[at]),
        )
        for at in range(len(work))
    ]


SLOW = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(captures())
@SLOW
def test_every_row_is_bound_as_the_rules_say(drawn: tuple[Schedule, list[Wait]]) -> None:
    built, waits = drawn
    account = account_of(built)
    rows, found = rows_of(account), account.bindings
    constants = account.constants
    expected = bind_slowly(rows, waits, constants.tau_ns, constants.turnaround_ns, found.event_hop_ns)
    got = [
        (Binding(int(kind)), int(predecessor), bool(inferred))
        for kind, predecessor, inferred in zip(found.kind, found.predecessor, found.inferred, strict=True)
    ]
    assert got == expected


@given(captures())
@SLOW
def test_the_walk_is_the_chain_of_latest_ready_predecessors(drawn: tuple[Schedule, list[Wait]]) -> None:
    """Between two pieces of work on the path without host time lie only predecessors that keep nothing."""
    account = account_of(drawn[0])
    chain = nx.MultiDiGraph()
    chain.add_nodes_from(range(len(account.work)))
    chain.add_edges_from((k, p) for k, p in enumerate(account.bindings.predecessor.tolist()) if p >= 0)
    assert nx.is_directed_acyclic_graph(chain)
    for path in account.paths:
        busy = [
            (int(ref) if side == ON_DEVICE and category in DEVICE_CATEGORIES else None)
            for side, category, ref, binding in zip(
                path.side, path.category, path.ref, path.binding, strict=True
            )
            if binding
            not in (Binding.STREAM, Binding.EVENT, Binding.INFERRED, Binding.UNSEEN, Binding.MISSING)
        ]
        for earlier, later in pairwise(busy):
            if earlier is None or later is None or earlier == later:
                continue
            steps = nx.shortest_path(chain, later, earlier)
            work = account.work
            assert all(work.end_ns[p] >= work.end_ns[k] for k, p in pairwise(steps[1:]))
