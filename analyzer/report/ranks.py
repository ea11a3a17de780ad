"""All ranks together: who waited for whom, one sentence per late rank, the clocks, the collectives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analyzer.diagnosis import Collective, Diagnosis, GlobalWindow, LateRank, Rank, Spread
from analyzer.explain.focus import leading_budgets
from analyzer.explain.windows import chosen_windows, used_windows
from analyzer.report.escape import cell, code, prose
from analyzer.report.numbers import count, ms, percent
from analyzer.report.tables import table
from analyzer.report.views import View, rest

LATE_SHOWN = 4
RANKS_SHOWN = 10
ROWS_SHOWN = 6
ROWS_IN_APPENDIX = 24
US = 1_000
UNALIGNED = "The ranks share no collective that could put them on one clock: each is explained by itself."
SAME_CLOCK = "same clock"
BY_MESSAGES = "what the run's manifest says of their hosts' clocks"
CLOCKS = (
    "The ranks' clocks. An offset is what must be added to a rank's times to get the reference rank's; the interval"
    " holds the true one as long as the clocks drift by less than 100 ppm and groups that nothing lists are what they"
    " are taken for; the uncertainty is how far the ends of"
    " common collectives stray from the estimate."
)
COLLECTIVES = (
    "Collectives by group and kind. Waiting is from a rank's arrival to the latest one, transfer from there to its"
    " end; sums over ranks are no wall time."
)
KINDS = ("collective.wait", "collective.transfer", "collective.unsplit")


@dataclass(frozen=True)
class Ranks:
    """The joint answer as the template lays it out."""

    intro: str
    sentences: list[str]
    ranks: str
    collectives: str


def joint(diagnosis: Diagnosis) -> Ranks | None:
    """What several ranks say together; None where there is one rank."""
    if len(diagnosis.ranks) < 2:
        return None
    if not _aligned(diagnosis):
        return Ranks(UNALIGNED, [], "", _collective_table(diagnosis.collectives, ROWS_SHOWN))
    late = [late_rank_sentence(row) for row in diagnosis.late_ranks[:LATE_SHOWN]]
    left = len(diagnosis.late_ranks) - LATE_SHOWN
    if left > 0:
        late.append(f"{count(left, 'more late rank')} in `late_ranks.csv`.")
    if not late and any(row.split_calls for row in diagnosis.collectives):
        late = ["No rank comes last in a tenth of any group's calls by more than the clocks' uncertainty."]
    return Ranks(
        _intro(diagnosis), late, _rank_table(diagnosis), _collective_table(diagnosis.collectives, ROWS_SHOWN)
    )


def appendix(diagnosis: Diagnosis) -> list[View]:
    """The clocks of all ranks, and every kind of collective."""
    if len(diagnosis.ranks) < 2 or not _aligned(diagnosis):
        return []
    views = [View(CLOCKS, _clock_table(diagnosis))]
    if diagnosis.collectives:
        views.append(View(COLLECTIVES, _collective_table(diagnosis.collectives, ROWS_IN_APPENDIX)))
    return views


def late_rank_sentence(row: LateRank) -> str:
    """Which rank, how often, by how much, because of what."""
    steps = ""
    if row.of_steps > 1 and row.late_steps:
        steps = f", most often of all in {row.late_steps:,} of {count(row.of_steps, 'step')}"
    suspects = ", ".join(code(name, 56) for name in row.suspects)
    longest = f"; longest: {suspects}" if suspects else ""
    return (
        f"**Rank {row.rank}** comes last in {row.late_calls:,} of {count(row.of_calls, 'call')} of group"
        f" {code(row.group)}{steps}, {ms(row.behind_ns.median)} ms after the middle of the others"
        f" (p95 {ms(row.behind_ns.p95)} ms). Meanwhile {prose(row.cause)}{longest}."
    )


def _aligned(diagnosis: Diagnosis) -> list[Rank]:
    return [rank for rank in diagnosis.ranks if rank.clock.offset_ns is not None]


def _intro(diagnosis: Diagnosis) -> str:
    aligned = _aligned(diagnosis)
    worst = max(aligned, key=lambda rank: (rank.clock.uncertainty_ns or 0, -rank.rank))
    others = [rank for rank in aligned if rank.rank != rank.clock.reference_rank]
    shared = not others or any(rank.clock.shared_calls != 0 for rank in others)
    how = "the collectives that they share" if shared else BY_MESSAGES
    on = f"{len(aligned)} of {count(len(diagnosis.ranks), 'rank')}"
    text = (
        f"{on} are on the clock of rank {aligned[0].clock.reference_rank}, by {how};"
        f" uncertainty at most {_us(worst.clock.uncertainty_ns or 0)} µs (rank {worst.rank})."
    )
    if others and all(_same_clock(rank) for rank in others):
        text = f"{on} read the same clock: by the manifest they ran on one host."
    if diagnosis.global_ is None:
        return text + " There is no path through all of them: see the notes at the top."
    leading = leading_budgets(diagnosis.budget)
    windows = _measured_windows(diagnosis, leading[0].phase if leading else "")
    time = {rank.rank: 0 for rank in diagnosis.ranks}
    for window in windows:
        for rank, ns in window.rank_ns.items():
            time[rank] += ns
    whole = sum(time.values())
    most = sorted(time, key=lambda rank: (-time[rank], rank))[:3]
    shown = ", ".join(f"rank {rank} {percent(time[rank], whole)}" for rank in most if time[rank])
    stagger = [window.launch_stagger_ns for window in windows if window.launch_stagger_ns is not None]
    text += f" The path through all ranks lies on {shown}."
    if stagger:
        middle = sorted(stagger)[(len(stagger) - 1) // 2]
        text += f" The ranks' first launches of a step lie {ms(middle)} ms apart (median)."
    return text


def _same_clock(rank: Rank) -> bool:
    """Whether the rank reads the reference rank's own clock: then nothing about it was measured."""
    clock = rank.clock
    return (
        clock.reference_rank != rank.rank
        and clock.interval_ns == (0, 0)
        and clock.shared_calls == 0
        and not clock.uncertainty_ns
    )


def _us(ns: int) -> str:
    return f"{ns / US:,.1f}"


def _rank_table(diagnosis: Diagnosis) -> str:
    """Waiting and transfer of each rank in the leading phase; with many ranks the extremes."""
    leading = leading_budgets(diagnosis.budget)
    if not leading:
        return ""
    phase = leading[0].phase
    rows = []
    for rank in diagnosis.ranks:
        used = used_windows(rank, phase)
        if used:
            step = sum(window.end_ns - window.start_ns for window in used)
            parts = [sum(window.path_ns[kind] for window in used) for kind in KINDS]
            rows.append((rank, len(used), step, parts))
    rows.sort(key=lambda row: row[0].rank)
    shown = rows
    if len(rows) > RANKS_SHOWN:
        waits = sorted(rows, key=lambda row: (row[3][0] / max(row[2], 1), row[0].rank))
        half = RANKS_SHOWN // 2
        shown = sorted(waits[:half] + waits[-half:], key=lambda row: row[0].rank)
    last = _last_calls(diagnosis)
    path = _path_share(diagnosis, phase)
    cells = [
        [
            str(rank.rank),
            ms(step, n),
            *(percent(part, step) if rank.device_span is not None else "-" for part in parts),
            _of(last.get(rank.rank)),
            path.get(rank.rank, "-"),
            _offset(rank),
        ]
        for rank, n, step, parts in shown
    ]
    header = ["Rank", "Mean step, ms", "Waits for a late rank", "Transfer", "Not split", "Comes last",
              "Of the path through all", "Clock, µs"]  # fmt: skip
    text = table(header, cells, left=())
    if len(rows) > len(shown):
        text += f"\n\nThe {len(shown)} ranks that wait least and most; all {count(len(rows), 'rank')} in `budget.csv`."
    return text


def _of(found: tuple[int, int] | None) -> str:
    return "-" if found is None or not found[1] else f"{found[0]:,} of {found[1]:,}"


def _last_calls(diagnosis: Diagnosis) -> dict[int, tuple[int, int]]:
    """By rank: calls in which it came last beyond doubt, and split calls of its groups."""
    result: dict[int, tuple[int, int]] = {}
    for row in diagnosis.collectives:
        for rank in row.ranks:
            last, of = result.get(rank, (0, 0))
            result[rank] = (last + row.late_rank_counts.get(rank, 0), of + row.split_calls)
    return result


def _path_share(diagnosis: Diagnosis, phase: str) -> dict[int, str]:
    used = _measured_windows(diagnosis, phase)
    whole = sum(window.end_ns - window.start_ns for window in used)
    return {
        rank.rank: percent(sum(window.rank_ns.get(rank.rank, 0) for window in used), whole)
        for rank in diagnosis.ranks
        if whole
    }


def _measured_windows(diagnosis: Diagnosis, phase: str) -> list[GlobalWindow]:
    """The global windows of a phase that its budget counts."""
    return chosen_windows([] if diagnosis.global_ is None else diagnosis.global_.windows, phase).used


def _offset(rank: Rank) -> str:
    clock = rank.clock
    if clock.offset_ns is None:
        return "not compared"
    if clock.reference_rank == rank.rank:
        return "reference"
    if _same_clock(rank):
        return SAME_CLOCK
    return f"{clock.offset_ns / US:+,.1f} ± {_us(clock.uncertainty_ns or 0)}"


def _clock_table(diagnosis: Diagnosis) -> str:
    ranks = diagnosis.ranks[: 2 * RANKS_SHOWN]
    cells = []
    for rank in ranks:
        clock = rank.clock
        low, high = clock.interval_ns or (None, None)
        if _same_clock(rank):
            cells.append([str(rank.rank), SAME_CLOCK, "-", "-", "-", str(clock.compared_with), "0"])
            continue
        cells.append(
            [
                str(rank.rank),
                "-" if clock.offset_ns is None else f"{clock.offset_ns:,}",
                "-" if low is None or high is None else f"{low:,} to {high:,}",
                "-" if clock.uncertainty_ns is None else f"{clock.uncertainty_ns:,}",
                "-" if clock.drift_ppb is None else f"{clock.drift_ppb:,}",
                "-" if clock.compared_with is None else str(clock.compared_with),
                "-" if clock.shared_calls is None else f"{clock.shared_calls:,}",
            ]
        )
    header = ["Rank", "Offset, ns", "Interval, ns", "Uncertainty, ns", "Drift, ppb", "Compared with rank",
              "Shared calls"]  # fmt: skip
    return table(header, cells, left=()) + rest(len(diagnosis.ranks), len(ranks), "diagnosis.json")


def _collective_table(rows: Sequence[Collective], most: int) -> str:
    if not rows:
        return ""
    cells = [
        [
            cell(row.group, 24) + (f" ({cell(row.description, 24)})" if row.description else ""),
            cell(row.op, 24) + (" in graphs" if row.in_graphs else ""),
            "-" if row.bytes is None else f"{row.bytes:,}",
            f"{row.calls_total:,}" + (f" ({row.calls_per_step:,.1f})" if row.calls_per_step else ""),
            str(len(row.ranks)),
            _two(row.transfer_ns),
            _two(row.arrival_spread_ns),
            _waited(row),
            row.class_,
            _late(row),
        ]
        for row in rows[:most]
    ]  # fmt: skip
    header = ["Group", "Operation", "Bytes", "Calls (per step)", "Ranks", "Transfer, µs (median / p95)",
              "Arrivals apart, µs (median / p95)", "Waiting, of all time in it", "What dominates",
              "Last most often"]  # fmt: skip
    return table(header, cells, left=(0, 1, 8, 9)) + rest(len(rows), min(most, len(rows)), "collectives.csv")


def _two(spread: Spread | None) -> str:
    return "-" if spread is None else f"{_us(spread.median)} / {_us(spread.p95)}"


def _waited(row: Collective) -> str:
    if row.wait_total_ns is None or not row.total_ns or row.unsplit:
        return "-" if row.wait_total_ns is None else "in part"
    return percent(sum(row.wait_total_ns.values()), row.total_ns)


def _late(row: Collective) -> str:
    counts = row.late_rank_counts if row.split_calls else row.latest_observed
    named = sorted((rank for rank in counts if counts[rank]), key=lambda rank: (-counts[rank], rank))[:3]
    text = ", ".join(f"rank {rank} ({counts[rank]:,})" for rank in named)
    if not row.split_calls and text:
        return f"{text}, of those observed"
    return text or "-"
