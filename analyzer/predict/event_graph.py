"""The events of all ranks as one graph, on the reference rank's clock, with what it reproduces.

Besides the events of each rank it has one for the end of every collective that waits for its members.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from analyzer.across.joint import Joint
from analyzer.model import IntArray
from analyzer.predict.edges import EdgeKind, Edges, edges, join_edges
from analyzer.predict.likely_meetings import Unmatched, likely_meetings
from analyzer.predict.rank_graph import RankGraph

SYNCHRONIZED = 2
"""A meeting needs so many members."""


@dataclass(frozen=True)
class Placed:
    """Where a rank's events stand: host events from ``host``, starts of device work from ``row``."""

    graph: RankGraph
    host: int
    row: int

    def rows(self, rows: IntArray) -> IntArray:
        """Events of device rows."""
        return self.row + rows


@dataclass(frozen=True)
class Meetings:
    """Ends of collectives that wait for their members, (m,) columns.

    ``event``: the end; ``start``: the event at which this member arrived; ``call``: the same number for all members of
    one call, which indexes ``gathered``: (c,) the event at which its last member has come; ``bytes``: -1 not recorded.
    """

    event: IntArray
    start: IntArray
    call: IntArray
    gathered: IntArray
    bytes: IntArray
    operation: tuple[str, ...]


@dataclass(frozen=True)
class EventGraph:
    """All events, (s,) columns, and the edges between them.

    ``at_ns``: when each was observed. ``body_ns``: how long what begins there runs. ``end_event``: the event that ends
    it, -1: it ends after its body. ``entry``: of returns the event at which their call began, else -1. ``launch``: of
    device work the event at which its launch call began, -1 not known. ``thread``: of host events a number that no two
    threads share.
    """

    ranks: tuple[Placed, ...]
    at_ns: IntArray
    body_ns: IntArray
    end_event: IntArray
    entry: IntArray
    launch: IntArray
    thread: IntArray
    edges: Edges
    meetings: Meetings
    dropped: int  # edges that lead back in time: the clocks contradict each other there

    def __len__(self) -> int:
        return len(self.at_ns)

    def placed(self, rank: int) -> Placed | None:
        """One rank's place, None where it has no events."""
        return next((place for place in self.ranks if place.graph.rank == rank), None)

    @property
    def rank_of(self) -> IntArray:
        """(s,) position of the rank that each event belongs to, -1 where all of a call have come."""
        rank: IntArray = np.zeros(len(self), np.int64)
        for at, place in enumerate(self.ranks):
            rank[place.host : place.row + len(place.graph.rows)] = at
        rank[self.meetings.event] = rank[self.meetings.start]
        rank[self.meetings.gathered] = -1
        return rank

    @property
    def done_ns(self) -> IntArray:
        """(s,) when what begins at each event was done."""
        done = self.at_ns + self.body_ns
        ended = np.flatnonzero(self.end_event >= 0)
        done[ended] = self.at_ns[self.end_event[ended]]
        return done


def event_graph(graphs: Sequence[RankGraph], joint: Joint) -> EventGraph:
    """Put the ranks' graphs side by side and connect them where they meet."""
    places: list[Placed] = []
    size = 0
    for graph in graphs:
        places.append(Placed(graph, size, size + len(graph.host)))
        size += len(graph.host) + len(graph.rows)
    at_ns, body_ns = np.zeros(size, np.int64), np.zeros(size, np.int64)
    entry, launch, thread = (np.full(size, -1, np.int64) for _ in range(3))
    parts: list[Edges] = []
    for place in places:
        graph = place.graph
        clock = joint.alignment.maps.get(graph.rank)
        moved = (lambda times: times) if clock is None else clock.to_reference
        host, rows = slice(place.host, place.row), slice(place.row, place.row + len(graph.rows))
        at_ns[host], at_ns[rows] = moved(graph.host.at_ns), moved(graph.rows.start_ns)
        body_ns[rows] = moved(graph.rows.end_ns) - at_ns[rows]
        launch[rows] = np.where(graph.rows.entry >= 0, graph.rows.entry + place.host, -1)
        thread[host] = graph.host.thread * len(graphs) + len(parts)
        entry[host] = np.where(graph.host.entry >= 0, graph.host.entry + place.host, -1)
        parts.append(
            replace(
                graph.edges,
                target=graph.edges.target + place.host,
                source=graph.edges.source + place.host,
                sample=np.where(graph.edges.sample >= 0, graph.edges.sample * len(graphs) + len(parts), -1),
            )
        )
    meetings, ends, joined = _meetings(places, joint, at_ns, body_ns, size)
    extra = len(ends)
    at_ns = np.concatenate((at_ns, ends))
    body_ns = np.concatenate((body_ns, np.zeros(extra, np.int64)))
    end_event = np.full(len(at_ns), -1, np.int64)
    end_event[meetings.start] = meetings.event
    entry, launch, thread = (
        np.concatenate((column, np.full(extra, -1, np.int64))) for column in (entry, launch, thread)
    )
    whole = EventGraph(
        tuple(places),
        at_ns,
        body_ns,
        end_event,
        entry,
        launch,
        thread,
        join_edges([*parts, joined]),
        meetings,
        0,
    )
    return _in_time(whole)


def kind_of_lag(graph: EventGraph, table: Edges) -> IntArray:
    """(e,) ``sample`` as the edge's own rank numbers it, -1 of none."""
    return np.where(table.sample >= 0, table.sample // len(graph.ranks), -1)


def _in_time(graph: EventGraph) -> EventGraph:
    """Without edges whose source comes after their target in the order of the events."""
    place = np.empty(len(graph), np.int64)
    place[time_order(graph)] = np.arange(len(graph))
    source = source_event(graph, graph.edges)
    keep = place[source] < place[graph.edges.target]
    early = _before_the_end(graph, graph.edges.take(~keep))
    early = early.take(place[early.source] < place[early.target])
    explained = np.isin(graph.edges.target, early.target)
    dropped = int((~keep & ~explained & graph.edges.binds).sum())
    return _all_bound(replace(graph, edges=join_edges([graph.edges.take(keep), early]), dropped=dropped))


def _before_the_end(graph: EventGraph, late: Edges) -> Edges:
    """Work that starts shortly before a collective ends (programmatic dependent launch) waits for its members."""
    ends = graph.end_event[late.source]
    table = late.take(late.done & (ends >= 0))
    ends = ends[late.done & (ends >= 0)]
    meeting = np.flatnonzero(graph.edges.kind == EdgeKind.MEETING)
    order = meeting[np.argsort(graph.edges.target[meeting], kind="stable")]
    low, high = (np.searchsorted(graph.edges.target[order], ends, side=side) for side in ("left", "right"))
    count = high - low
    member = order[
        np.repeat(low, count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    ]
    target = np.repeat(table.target, count)
    ahead = np.repeat(graph.at_ns[table.target] - graph.at_ns[ends], count)
    return edges(
        target, graph.edges.source[member], EdgeKind.MEETING, least_ns=graph.edges.least_ns[member] + ahead
    )


def _all_bound(graph: EventGraph) -> EventGraph:
    """Where no edge explains when an event happened, the latest of those that are left binds it, as an inference."""
    table = graph.edges
    since = np.where(table.done, graph.done_ns[table.source], graph.at_ns[table.source])
    explained = np.full(len(graph), False)
    seen = graph.at_ns[table.target] - since
    explained[table.target[table.binds | (table.least_ns >= seen)]] = True
    order = np.lexsort((since, table.target))
    last = order[np.flatnonzero(np.diff(table.target[order], append=-1))]
    binds, inferred = table.binds.copy(), table.inferred.copy()
    open_ = last[~explained[table.target[last]]]
    binds[open_], inferred[open_] = True, True
    return replace(graph, edges=replace(table, binds=binds, inferred=inferred))


def source_event(graph: EventGraph, table: Edges) -> IntArray:
    """(e,) the event whose instant an edge counts from: of collectives their end."""
    end = graph.end_event[table.source]
    return np.where(table.done & (end >= 0), end, table.source)


def time_order(graph: EventGraph) -> IntArray:
    """Events as they were observed; at one instant ends of collectives come first, then the host's.

    Except where a collective takes no time: its members come, then all have come, then it ends.
    """
    rank = np.full(len(graph), 2, np.int64)
    for place in graph.ranks:
        rank[place.host : place.row] = 1
    met = graph.meetings
    rank[met.event] = np.where(graph.at_ns[met.event] == graph.at_ns[met.gathered[met.call]], 4, 0)
    rank[met.gathered] = 3
    return np.lexsort((np.arange(len(graph)), rank, graph.at_ns))


@dataclass(frozen=True)
class _Member:
    """One rank's part of a call: the event at which it starts, and whether its end waits for the others."""

    start: int
    nbytes: int
    waits: bool = True


def _meetings(
    places: Sequence[Placed], joint: Joint, at_ns: IntArray, body_ns: IntArray, size: int
) -> tuple[Meetings, IntArray, Edges]:
    """Ends of collectives and when all members had come, when both were observed, and their edges.

    An end waits for its own member and, by way of one event per call, for the last one to come.
    """
    calls = [(name, members, False) for name, members in _split_calls(places, joint, at_ns, body_ns)]
    known = {member.start for _, members, _ in calls for member in members if member.waits}
    calls += [(name, members, True) for name, members in _likely_calls(places, joint, at_ns, body_ns, known)]
    event: list[int] = []
    start, call, nbytes, ends, names = [], [], [], [], []
    came: list[tuple[int, int]] = []  # call and event of every member that others wait for
    latest: list[int] = []
    transfer, inferred = [], []
    for number, (name, members, guessed) in enumerate(calls):
        came += [(number, member.start) for member in members]
        latest.append(max(int(at_ns[member.start]) for member in members))
        for member in members:
            if not member.waits:
                continue
            event.append(size + len(event))
            start.append(member.start)
            call.append(number)
            nbytes.append(member.nbytes)
            names.append(name)
            ends.append(max(int(at_ns[member.start] + body_ns[member.start]), latest[-1]))
            transfer.append(ends[-1] - latest[-1])
            inferred.append(guessed)
    gathered = size + len(event) + np.arange(len(calls))
    end, of_call = np.array(event, np.int64), np.array(call, np.int64)
    arrived = np.array(came, np.int64).reshape(-1, 2)
    least_ns, guess = np.array(transfer, np.int64), np.array(inferred, bool)
    table = join_edges(
        [
            edges(gathered[arrived[:, 0]], arrived[:, 1], EdgeKind.ARRIVAL),
            edges(end, gathered[of_call], EdgeKind.MEETING, least_ns=least_ns, inferred=guess),
            edges(end, np.array(start, np.int64), EdgeKind.MEETING, least_ns=least_ns, inferred=guess),
        ]
    )
    meetings = Meetings(
        end, np.array(start, np.int64), of_call, gathered, np.array(nbytes, np.int64), tuple(names)
    )
    return meetings, np.concatenate([np.array(ends, np.int64), np.array(latest, np.int64)]), table


def _split_calls(
    places: Sequence[Placed], joint: Joint, at_ns: IntArray, body_ns: IntArray
) -> Iterator[tuple[str, list[_Member]]]:
    """Calls in which waiting and transfer are told apart, with all their members."""
    by_rank: Mapping[int, Placed] = {place.graph.rank: place for place in places}
    for joined in joint.calls:
        ranks = joined.group.members
        if len(ranks) < SYNCHRONIZED or any(rank not in by_rank for rank in ranks):
            continue
        for k in np.flatnonzero(joined.split).tolist():
            arrivals = joined.group.calls[k]
            rows = [
                int(by_rank[rank].graph.collective_row[arrivals[column]]) for column, rank in enumerate(ranks)
            ]
            if min(rows) < 0:
                continue  # cut off
            starts = [int(by_rank[rank].row + row) for rank, row in zip(ranks, rows, strict=True)]
            latest = max(int(at_ns[at]) for at in starts)
            members = []
            for column, (rank, at) in enumerate(zip(ranks, starts, strict=True)):
                left_early = at_ns[at] + body_ns[at] < latest  # a sender that left before its receiver came
                waits = bool(not left_early or joint.waits[rank].split[arrivals[column]])
                size = int(by_rank[rank].graph.collective_bytes[arrivals[column]])
                members.append(_Member(at, size, waits))
            yield joined.operation[k], members


def _likely_calls(
    places: Sequence[Placed], joint: Joint, at_ns: IntArray, body_ns: IntArray, known: Set[int]
) -> Iterator[tuple[str, list[_Member]]]:
    """Calls that are only taken to be one, by their common ends."""
    open_ = []
    for place in places:
        for row, size in zip(
            place.graph.collective_row.tolist(), place.graph.collective_bytes.tolist(), strict=True
        ):
            at = place.row + row
            if row >= 0 and at not in known:
                name = place.graph.names[place.graph.rows.name[row]]
                end = int(at_ns[at] + body_ns[at])
                open_.append(Unmatched(place.graph.rank, at, name, int(at_ns[at]), end, size))
    compared = [place.graph.rank for place in places if place.graph.rank in joint.alignment.maps]
    for members in likely_meetings(open_, joint.alignment.uncertainty_ns(compared)):
        yield members[0].name, [_Member(one.event, one.nbytes) for one in members]
