"""The global path of every step: its windows, its segments and what the verdicts rest on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from analyzer.across.global_path import BODY, CHAIN, NOTHING, Pieces, RankLinks, walk
from analyzer.across.joint import Joint
from analyzer.across.split import take
from analyzer.across.steps import GlobalWindow as Step
from analyzer.across.steps import global_windows, match_steps
from analyzer.across.waits import Lateness, lateness, undecided_spans, unsplit_spans
from analyzer.categories import CATEGORY_NAMES, Binding, Category
from analyzer.diagnosis import GlobalAccount, GlobalWindow
from analyzer.errors import InvariantError
from analyzer.explain.rank_report import RankReport, choose_windows
from analyzer.explain.segments import join_tables
from analyzer.explain.verdicts.path_facts import PathFacts, join_facts
from analyzer.intervals import Intervals, clip, measure, union
from analyzer.model import IntArray
from analyzer.reconstruct.outliers import SLOW_START, judge
from analyzer.reconstruct.work import NO_TIME, BoolArray
from analyzer.tables import NO_EVENT, SegmentTable

NO_RANK = -1


@dataclass(frozen=True)
class GlobalPaths:
    """The global paths of a capture. ``segments``: all windows' segments, ``rank`` where each lies.

    ``waits``: by window number, how many waits for late ranks each window's figure is made of. ``elsewhere``: (s,)
    segments that may have lain on another rank, because a call after them was not split. ``arrival``: (s,) position
    among its rank's collectives of the one that runs in a segment, -1 none.
    """

    account: GlobalAccount
    segments: SegmentTable
    facts: PathFacts
    waits: IntArray
    elsewhere: BoolArray
    arrival: IntArray


def global_paths(reports: Sequence[RankReport], joint: Joint) -> tuple[GlobalPaths | None, str]:
    """The global account, or None and why there is none. ``reports``: as they came from the ranks."""
    busy = [report for report in reports if report.rank.device_events]
    why = _why_none(busy, joint)
    if why:
        return None, why
    alignment = joint.alignment
    windows = {report.rank.rank: report.steps_walked for report in busy}
    parts = {report.rank.rank: report.part for report in busy}
    groups = [calls.group for calls in joint.calls]
    steps = match_steps(parts, windows, groups)
    if not steps:
        return None, "no step could be found on every rank"
    clocks = {rank: alignment.maps[rank] for rank in windows}
    links = rank_links(busy, joint)
    if set(links) != set(windows):
        return None, "a rank's chains were not made"
    found = global_windows(steps, windows, clocks, {report.rank.rank: report.last_work_ns for report in busy})
    walked = [_walk(step, links) for step in found]
    segments, facts = _table(walked, {report.rank.rank: report for report in busy})
    late = lateness(joint.calls)
    waited = [_waited(step, pieces, late) for step, pieces in zip(found, walked, strict=True)]
    unknown = [
        np.concatenate(edge)
        for edge in zip(unsplit_spans(joint.calls), undecided_spans(joint.calls), strict=True)
    ]
    results = _results(found, walked, waited, segments, busy, links, union(*unknown))
    account = GlobalAccount(reference_rank=alignment.references[0], windows=results)
    counts = np.array([len(entry.since_ns) for entry in waited], np.int64)
    elsewhere = np.concatenate([np.zeros(0, bool), *(_elsewhere(pieces, joint) for pieces in walked)])
    arrival = np.concatenate([np.empty(0, np.int64), *(_bodies(pieces) for pieces in walked)])
    return GlobalPaths(account, segments, facts, counts, elsewhere, arrival), ""


def of_step(paths: GlobalPaths, step_index: str | None) -> tuple[GlobalPaths | None, str]:
    """The paths with the one step of all ranks that ``step_index`` names, or None and why there is none."""
    windows = paths.account.windows
    if step_index is None:
        return paths, ""
    if step_index.isdecimal() and step_index not in {str(window.index) for window in windows}:
        return None, f"step {step_index} is no step of all ranks together"
    chosen = choose_windows(windows, step_index)
    rows = np.flatnonzero(np.isin(paths.segments.window, [window.index for window in chosen]))
    return replace(
        paths,
        account=msgspec.structs.replace(paths.account, windows=chosen),
        segments=take(paths.segments, rows),
        facts=paths.facts.take(rows),
        elsewhere=paths.elsewhere[rows],
        arrival=paths.arrival[rows],
    ), ""


def _bodies(pieces: Pieces) -> IntArray:
    """(p,) arrival of the pieces that are a collective's body, -1 elsewhere."""
    rows = np.array(pieces.rows, np.int64).reshape(-1, 7)
    return np.where(rows[:, 3] == BODY, rows[:, 4], -1)


def _elsewhere(pieces: Pieces, joint: Joint) -> BoolArray:
    """(p,) pieces before a call that was not split, back to a split call of the same ranks.

    If another rank came last to that call, the path leads over that rank; at the split call before it both ways
    meet, since all of them left that one together.
    """
    result = np.zeros(len(pieces.rows), bool)
    open_: frozenset[int] = frozenset()
    for at in range(len(pieces.rows) - 1, -1, -1):
        _, _, rank, kind, row, category, _ = pieces.rows[at]
        if kind == BODY:
            waits = joint.waits[rank]
            group = int(waits.group[row])
            members = frozenset(joint.calls[group].group.members if group >= 0 else (rank,))
            if not waits.split[row] and category == Category.COLLECTIVE_UNSPLIT:
                open_ |= members
            elif waits.split[row] and members >= open_:
                open_ = frozenset()
        result[at] = bool(open_)
    return result


def _waited(step: Step, pieces: Pieces, late: Lateness) -> Lateness:
    """The waits for the rank that the path was on when that rank came, and those over which it went to another.

    A path on the CPU of the late rank leads through no collective at all; the others wait for it all the same.
    """
    rows = np.array(pieces.rows, np.int64).reshape(-1, 7)
    mine = np.flatnonzero((late.until_ns > step.start_ns) & (late.until_ns <= step.end_ns))
    if not len(rows):
        mine = mine[:0]
    at = np.maximum(np.searchsorted(rows[:, 0], late.until_ns[mine] - 1, side="right") - 1, 0)
    mine = mine[rows[at, 2] == late.late_rank[mine]] if len(rows) else mine
    crossed = np.array(pieces.crossed, np.int64).reshape(-1, 2)
    since = np.concatenate((np.maximum(late.since_ns[mine], step.start_ns), crossed[:, 0]))
    until = np.concatenate((late.until_ns[mine], crossed[:, 1]))
    return Lateness(late.late_rank[mine], since, until)


def _why_none(busy: Sequence[RankReport], joint: Joint) -> str:
    """What stands in the way of one clock for all ranks with device work, "" where nothing does."""
    alignment = joint.alignment
    ranks = [report.rank.rank for report in busy]
    alone = [rank for rank in ranks if rank not in alignment.maps]
    if len(busy) < 2:
        return "one rank alone has no global path" if busy else "no rank's device work was recorded"
    if not any(alignment.maps[rank].shared_calls for rank in ranks if rank in alignment.maps):
        return "the ranks share no collective that could align their clocks"
    if alone:
        names = ", ".join(map(str, alone))
        if set(alone) <= set(alignment.contradictory):
            return f"the collectives that rank {names} shares with the others contradict one another"
        return f"the clock of rank {names} could not be compared with the others"
    if not alignment.comparable(ranks):
        return f"the ranks form {len(alignment.references)} groups that no collective links"
    return ""


def rank_links(reports: Sequence[RankReport], joint: Joint) -> dict[int, RankLinks]:
    """The chains of all ranks that are on the reference clock."""
    return {
        report.rank.rank: report.links.on(
            report.part.arrivals, joint.waits[report.rank.rank], joint.alignment.maps[report.rank.rank]
        )
        for report in reports
        if report.links is not None and report.rank.rank in joint.alignment.maps
    }


def _walk(step: Step, links: Mapping[int, RankLinks]) -> Pieces:
    if step.empty:
        return Pieces()
    here = links[step.last_rank]
    chain = len(here.arrivals) + step.members[step.last_rank]
    return walk(step.start_ns, step.end_ns, step.last_rank, chain, links)


def _table(walked: Sequence[Pieces], reports: Mapping[int, RankReport]) -> tuple[SegmentTable, PathFacts]:
    """All pieces as one table in window order, with their facts."""
    rows = [(window, *row) for window, pieces in enumerate(walked) for row in pieces.rows]
    columns = np.array(rows, np.int64).reshape(-1, 8)
    window, start, end, rank, kind, row, category, late = columns.T
    tables: list[SegmentTable] = []
    facts: list[PathFacts] = []
    order: list[IntArray] = []
    for number in sorted(reports):
        here = rank == number
        links = reports[number].links
        if links is None or not here.any():
            continue
        known = links.load()
        for of, source in ((CHAIN, known.segments), (BODY, known.bodies)):
            mine = np.flatnonzero(here & (kind == of))
            tables.append(take(source, row[mine]))
            facts.append(known.facts.take(row[mine]) if of == CHAIN else _plain(category[mine]))
            order.append(mine)
    unknown = np.flatnonzero(kind == NOTHING)
    tables.append(_unknown(len(unknown)))
    facts.append(_plain(category[unknown]))
    order.append(unknown)
    joined, joined_facts = join_tables(tables), join_facts(facts)
    back = np.argsort(np.concatenate(order), kind="stable")
    table, measured = take(joined, back), joined_facts.take(back)
    final = np.where(kind == CHAIN, table.category, category).astype(np.int8)
    table = replace(
        table,
        rank=rank.astype(np.int32),
        window=window.astype(np.int32),
        start_ns=start,
        end_ns=end,
        category=final,
        late_rank=late.astype(np.int32),
    )
    return table, replace(measured, category=final).clipped(end - start)


def _plain(category: IntArray) -> PathFacts:
    """Facts of segments that are what they are: bodies of collectives, unknown time."""
    zero = np.zeros(len(category), np.int64)
    return PathFacts(
        length=zero, category=category.astype(np.int8), inferred=zero.astype(bool), on_host=zero.astype(bool),
        small=zero.astype(np.int8), bandwidth=zero.astype(np.int8), arithmetic=zero.astype(np.int8),
        unseen_under_overhead=zero, overhead=zero, kernels_behind=zero,
        copies_behind=zero, small_behind=zero, after_wait=zero, after_certain_wait=zero,
        after_possible_wait=zero, later=zero, earlier=zero,
    )  # fmt: skip


def _unknown(n: int) -> SegmentTable:
    none = np.full(n, -1, np.int32)
    return SegmentTable(
        rank=none, window=none, start_ns=np.zeros(n, np.int64), end_ns=np.zeros(n, np.int64),
        category=np.full(n, Category.UNATTRIBUTED, np.int8), binding=np.full(n, Binding.MISSING, np.int8),
        inferred=np.zeros(n, bool), name=none, place=none, correlation=np.zeros(n, np.int64),
        event_start_ns=np.full(n, NO_EVENT, np.int64), late_rank=none, names=(), places=(),
    )  # fmt: skip


def _results(
    steps: Sequence[Step],
    walked: Sequence[Pieces],
    waited: Sequence[Lateness],
    table: SegmentTable,
    reports: Sequence[RankReport],
    links: Mapping[int, RankLinks],
    unknown: Intervals,
) -> list[GlobalWindow]:
    by_rank = {report.rank.rank: report for report in reports}
    edges = np.searchsorted(table.window, np.arange(len(steps) + 1))
    result = []
    for index, (step, pieces, late) in enumerate(zip(steps, walked, waited, strict=True)):
        part = slice(int(edges[index]), int(edges[index + 1]))
        length = (table.end_ns - table.start_ns)[part]
        totals = np.bincount(table.category[part], weights=length, minlength=len(Category))
        if int(length.sum()) != step.end_ns - step.start_ns:
            raise InvariantError(f"global path of step {step.step} does not sum to its window")
        members = {rank: by_rank[rank].steps_walked[at] for rank, at in step.members.items()}
        reasons = sorted(
            {reason for window in members.values() for reason in window.warmup_reasons} - {SLOW_START}
        )
        rank_ns = np.bincount(np.maximum(table.rank[part], 0), weights=length, minlength=1)
        late_calls = Counter(late.late_rank.tolist())
        made_wait = _made_wait(late)
        result.append(
            GlobalWindow(
                index=index,
                step=step.step,
                phase=members[min(members)].phase,
                start_ns=step.start_ns,
                end_ns=step.end_ns,
                warmup=bool(reasons),
                warmup_reasons=reasons,
                empty=step.empty,
                path_ns={CATEGORY_NAMES[c]: int(totals[c]) for c in Category},
                inferred_ns=int(length[table.inferred[part]].sum()),
                windows=dict(step.members),
                last_rank=step.last_rank,
                ranks_visited=list(pieces.visited),
                rank_ns={rank: int(rank_ns[rank]) if rank < len(rank_ns) else 0 for rank in sorted(members)},
                late_ranks=sorted(made_wait, key=lambda rank: (-made_wait[rank], rank)),
                late_calls={rank: late_calls[rank] for rank in sorted(late_calls)},
                late_wait_ns={rank: made_wait[rank] for rank in sorted(made_wait)},
                waited_ns=measure(union(late.since_ns, late.until_ns)),
                waited_at_most_ns=_at_most(step, late, unknown),
                launch_stagger_ns=_stagger(step, by_rank, links),
            )
        )
    return with_outliers(result)


def with_outliers(windows: list[GlobalWindow]) -> list[GlobalWindow]:
    """The steps judged by the time that all ranks together took, whatever each rank's own window did."""
    full = [window for window in windows if not window.empty]
    times = np.array([window.end_ns - window.start_ns for window in full], np.int64)
    judged = judge(times, [window.phase for window in full], [window.warmup for window in full])
    slow = {window.index for window, start in zip(full, judged.slow_start, strict=True) if start}
    far = {window.index for window, outlier in zip(full, judged.outlier, strict=True) if outlier}
    return [
        msgspec.structs.replace(
            window,
            warmup=window.warmup or window.index in slow,
            warmup_reasons=[*window.warmup_reasons, *([SLOW_START] if window.index in slow else [])],
            outlier=window.index in far and not window.warmup,
        )
        for window in windows
    ]


def _made_wait(late: Lateness) -> dict[int, int]:
    """By rank, the union of the waits for it, ns."""
    spans = len(late.late_rank)  # beyond these stand the waits over which the path went to another rank
    return {
        rank: measure(union(late.since_ns[:spans][mine], late.until_ns[:spans][mine]))
        for rank in np.unique(late.late_rank).tolist()
        for mine in [late.late_rank == rank]
    }


def _at_most(step: Step, late: Lateness, unknown: Intervals) -> int:
    """What was waited, and all time of the step in which somebody may have waited of whom that cannot be told, ns."""
    low, high = clip(unknown, step.start_ns, step.end_ns)
    return measure(union(np.concatenate((late.since_ns, low)), np.concatenate((late.until_ns, high))))


def _stagger(step: Step, reports: Mapping[int, RankReport], links: Mapping[int, RankLinks]) -> int | None:
    """First to last rank's first launch of a step on the reference clock."""
    first = [reports[rank].first_launch_ns[at] for rank, at in step.members.items()]
    if not first or any(instant == NO_TIME for instant in first):
        return None
    moved = [links[rank].reference(instant) for rank, instant in zip(step.members, first, strict=True)]
    return max(moved) - min(moved)
