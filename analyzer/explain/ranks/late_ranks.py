"""Who was late, how often, by how much, and because of what: what a rank did while the others waited for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from analyzer.across.global_path import CHAIN, NOTHING, RankLinks, walk
from analyzer.across.joint import Joint
from analyzer.across.waits import Calls
from analyzer.categories import CATEGORY_NAMES, Category
from analyzer.diagnosis import Collective, LateRank, Spread
from analyzer.explain.rank_report import RankReport
from analyzer.explain.ranks.global_account import rank_links
from analyzer.model import IntArray
from analyzer.stats import quantile

OFTEN = 0.10
"""A rank is named when it is late in at least this share of a group's calls."""
SUSPECTS = 3
_WORDS: tuple[tuple[str, frozenset[Category]], ...] = (
    ("its CPU submitted work", frozenset({Category.LAUNCH_LATENCY, Category.LAUNCH_API, Category.LAUNCH_DISPATCH})),
    ("its CPU did other work than submitting", frozenset(
        {Category.HOST_API, Category.HOST_FRAMEWORK, Category.HOST_UNTRACED, Category.HOST_WAIT})),
    ("its CPU processed output", frozenset({Category.HOST_OUTPUT})),
    ("its CPU came back from waiting for the device", frozenset({Category.HOST_SYNC_RETURN})),
    ("its kernels ran", frozenset({Category.KERNEL, Category.GRAPH_UNRESOLVED})),
    ("it copied memory", frozenset({Category.COPY})),
    ("its queued work waited for the device or for other streams", frozenset(
        {Category.GAP_DISPATCH, Category.GAP_DEPENDENCY})),
    ("it was in another collective", frozenset(
        {Category.COLLECTIVE_TRANSFER, Category.COLLECTIVE_UNSPLIT, Category.COLLECTIVE_HOST})),
    ("it waited for another late rank itself", frozenset({Category.COLLECTIVE_WAIT})),
    ("the profiler was at work there", frozenset({Category.PROFILER})),
    ("work from before the capture ran", frozenset({Category.PRIOR_WORK})),
    ("the capture does not tell", frozenset({Category.UNATTRIBUTED})),
)  # fmt: skip


def late_ranks(reports: Sequence[RankReport], joint: Joint, table: Sequence[Collective]) -> list[LateRank]:
    """The ranks that come last in many calls of a group, those that made others wait longest first."""
    links = rank_links(reports, joint)
    by_rank = {report.rank.rank: report for report in reports}
    found = []
    for calls in joint.calls:
        inside = np.flatnonzero(calls.split)
        unsure = max(calls.uncertainty_ns, 1)
        for column, rank in enumerate(calls.group.members if len(inside) else ()):
            start, others = calls.start_ns[inside, column], calls.others_ns(column)[inside]
            among_last = (calls.latest_ns[inside] - start < unsure) & (start - others >= unsure)
            mine = inside[among_last]
            if rank in links and len(mine) and len(mine) >= OFTEN * len(inside):
                found.append(_late_rank(rank, column, calls, mine, len(inside), links, by_rank[rank], table))
    return sorted(found, key=lambda row: (-row.wait_total_ns, row.rank, row.group))


def _late_rank(
    rank: int,
    column: int,
    calls: Calls,
    mine: IntArray,
    of_calls: int,
    links: Mapping[int, RankLinks],
    report: RankReport,
    table: Sequence[Collective],
) -> LateRank:
    start, others = calls.start_ns[mine, column], calls.others_ns(column)[mine]
    behind = start - others
    time, names = _meanwhile(rank, calls.group.calls[mine, column], others, start, links, report)
    rows = [row for row in table if row.group == calls.group.label]
    alone = (calls.late[mine] == column) & (calls.margin_ns[mine] >= max(calls.uncertainty_ns, 1))
    return LateRank(
        rank=rank,
        group=calls.group.label,
        late_calls=len(mine),
        alone_last_calls=int(alone.sum()),
        of_calls=of_calls,
        late_steps=max((row.late_rank_steps.get(rank, 0) for row in rows), default=0),
        of_steps=max((row.steps for row in rows), default=0),
        behind_ns=Spread(median=quantile(behind, 0.5), p95=quantile(behind, 0.95)),
        wait_total_ns=int(np.delete(calls.wait_ns[mine], column, axis=1).sum()),
        cause_ns={CATEGORY_NAMES[category]: time[category] for category in Category if time[category]},
        cause=_words(time),
        suspects=[name for name, _ in sorted(names.items(), key=lambda item: (-item[1], item[0]))[:SUSPECTS]],
    )


def _meanwhile(
    rank: int,
    arrivals: IntArray,
    since: IntArray,
    until: IntArray,
    links: Mapping[int, RankLinks],
    report: RankReport,
) -> tuple[Counter[Category], Counter[str]]:
    """What the rank's own path spent from the median of the others' arrivals to its own, and on what."""
    time: Counter[Category] = Counter()
    names: Counter[str] = Counter()
    assert report.links is not None
    known = report.links.load()
    for arrival, low, high in zip(arrivals.tolist(), since.tolist(), until.tolist(), strict=True):
        for start, end, _, kind, row, category, _ in walk(low, high, rank, arrival, links, hops=False).rows:
            of = known.segments if kind == CHAIN else known.bodies
            label = Category(int(known.segments.category[row])) if kind == CHAIN else Category(category)
            time[label] += end - start
            if kind != NOTHING and of.name[row] >= 0:
                names[of.names[of.name[row]]] += end - start
    return time, names


def _words(time: Counter[Category]) -> str:
    """The largest kinds of what the rank did meanwhile, with their shares."""
    whole = max(sum(time.values()), 1)
    parts = [(sum(time[category] for category in categories), words) for words, categories in _WORDS]
    parts.sort(key=lambda part: -part[0])
    shown = [(ns, words) for ns, words in parts if ns >= 0.15 * whole][:3] or parts[:1]
    return ", ".join(f"{words} ({100 * ns / whole:.0f} % of that time)" for ns, words in shown)
