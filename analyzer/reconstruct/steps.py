"""Which host ranges are the steps: by the user's pattern, by known names, by rhythm, or none.

The rules are tried in the contract's order (attribution, section 1) and the one that held is reported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from analyzer.arrays import group
from analyzer.errors import StepsError
from analyzer.model import DeviceKind, HostKind, HostTable, IntArray, ProcessTrace
from analyzer.reconstruct.step_markers import MARKED, PROFILER_STEP, STEP_MARKERS, clean_name, clean_names
from analyzer.reconstruct.work import Calls, Work, group_indices

MARKER_KINDS = (HostKind.RANGE, HostKind.SPAN, HostKind.OP, HostKind.FRAME)
NAMED_KINDS = (HostKind.RANGE, HostKind.SPAN, HostKind.OP)
"""Where known step names may stand: torch before 1.9 recorded annotations as operators."""
RHYTHM_KINDS = (HostKind.RANGE, HostKind.SPAN)
MIN_REPEATS = 3
MIN_ENCLOSED = 0.6
"""A repeating range counts as a step only if at least this share of the launches lies inside."""
PERIOD_MATCH = 0.95
MIN_PERIOD = 8
"""A shorter rhythm of kernels is a loop inside a step rather than a step."""
MAX_ANCHORS = 50
"""How many rare kernels are tried as the once-per-step anchor of a period."""
_COUNTER = re.compile(r"\d+")
_NO_STEP = re.compile(
    r"^(?:aten::|nccl:|gloo:|ncclGroup|nccl[A-Z]|## |capture_|autograd::|record_param_comms)"
)


@dataclass(frozen=True)
class StepRanges:
    """Step ranges of one process in start order, (s,) columns; how they were found."""

    # regex | marked-range | profiler-step | engine-range | repeated-range | graph-replays | kernel-period | whole
    rule: str
    pattern: str | None
    confidence: str  # exact | high | medium | low | none
    start_ns: IntArray
    end_ns: IntArray
    thread: IntArray
    names: tuple[str, ...]
    rows: IntArray  # host rows of the markers, -1 where there is none
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.start_ns)


def find_steps(process: ProcessTrace, calls: Calls, work: Work, pattern: str | None) -> StepRanges:
    """The steps of one process; StepsError when the user's pattern fits nothing or overlaps wrongly."""
    if pattern is not None:
        return _by_regex(process, pattern)
    notes: list[str] = []
    for rule in (_by_marked_range, _by_profiler_step, _by_engine_name, _by_rhythm):
        found = rule(process, calls)
        if found is None:
            continue
        problem = _overlap_problem(found)
        if problem is None:
            return found
        notes.append(f"{found.rule} ({found.pattern}) was not used: {problem}")
    for device_rule in (_by_graph_replays, _by_kernel_period):
        found = device_rule(calls, work)
        if found is not None:
            return _with_notes(found, notes)
    return _with_notes(_whole(), notes)


def _with_notes(found: StepRanges, notes: list[str]) -> StepRanges:
    return StepRanges(
        found.rule, found.pattern, found.confidence, found.start_ns, found.end_ns, found.thread,
        found.names, found.rows, found.notes + tuple(notes),
    )  # fmt: skip


def _whole() -> StepRanges:
    none = np.empty(0, np.int64)
    return StepRanges("whole", None, "none", none, none, none, (), none)


def _ranges(process: ProcessTrace, rows: IntArray, rule: str, pattern: str, confidence: str) -> StepRanges:
    """Step ranges from host rows: innermost per thread, in start order."""
    host = process.host
    rows = _innermost(host, rows)
    rows = rows[np.lexsort((host.position[rows], host.end_ns[rows], host.start_ns[rows]))]
    overlapping = int((host.start_ns[rows][1:] < np.maximum.accumulate(host.end_ns[rows])[:-1]).sum())
    notes = (f"{overlapping} step ranges begin before an earlier one has ended",) if overlapping else ()
    return StepRanges(
        rule,
        pattern,
        confidence,
        host.start_ns[rows],
        host.end_ns[rows],
        host.thread[rows].astype(np.int64),
        tuple(clean_name(process.names[code]) for code in host.name[rows]),
        rows,
        notes,
    )


def _innermost(host: HostTable, rows: IntArray) -> IntArray:
    """Of nested matches on one thread only the innermost (rows are sorted by thread, start, -end)."""
    rows = np.sort(rows)
    if len(rows) < 2:
        return rows
    same = host.thread[rows][1:] == host.thread[rows][:-1]
    encloses = np.append(same & (host.end_ns[rows][1:] <= host.end_ns[rows][:-1]), False)
    return np.asarray(rows[~encloses], np.int64)


def _overlap_problem(steps: StepRanges) -> str | None:
    """Why these ranges cannot order the work: an earlier step that ends after a later one."""
    if np.any(np.diff(steps.end_ns) < 0):
        at = int(np.flatnonzero(np.diff(steps.end_ns) < 0)[0])
        return (
            f"step ranges overlap with ends out of order ({steps.names[at]!r} at {steps.start_ns[at]} ns "
            f"ends after {steps.names[at + 1]!r})"
        )
    return None


def _by_regex(process: ProcessTrace, pattern: str) -> StepRanges:
    compiled = re.compile(pattern)
    rows = _matching(process, compiled.search, MARKER_KINDS)
    if not len(rows):
        raise StepsError(
            "--steps",
            pattern,
            "no range, op or frame of this capture matches",
            "run `tracebound inspect` to see the range names, or leave --steps out",
        )
    found = _ranges(process, rows, "regex", pattern, "exact")
    problem = _overlap_problem(found)
    if problem is not None:
        raise StepsError("--steps", pattern, problem, "choose a pattern that matches one thread's steps only")
    return found


def _matching(
    process: ProcessTrace, matcher: Callable[[str], object], kinds: tuple[HostKind, ...]
) -> IntArray:
    host = process.host
    rows = np.flatnonzero(np.isin(host.kind, kinds))
    return rows[clean_names(process.names).matching(matcher)[host.name[rows]]]


def _by_marked_range(process: ProcessTrace, calls: Calls) -> StepRanges | None:
    """Steps that the program's author marked: nobody knows them better, not even an engine around them."""
    del calls
    rows = _matching(process, MARKED.pattern.match, RHYTHM_KINDS)
    return _ranges(process, rows, "marked-range", MARKED.engine, "high") if len(rows) else None


def _by_profiler_step(process: ProcessTrace, calls: Calls) -> StepRanges | None:
    del calls
    rows = _matching(process, PROFILER_STEP.match, NAMED_KINDS)
    return _ranges(process, rows, "profiler-step", PROFILER_STEP.pattern, "high") if len(rows) else None


def _by_engine_name(process: ProcessTrace, calls: Calls) -> StepRanges | None:
    """The first engine family with matches; of several nested families the innermost ranges count."""
    del calls
    families = [(marker, _matching(process, marker.pattern.match, RHYTHM_KINDS)) for marker in STEP_MARKERS]
    families = [(marker, rows) for marker, rows in families if len(rows)]
    if not families:
        return None
    engine = families[0][0].engine
    together = np.unique(np.concatenate([rows for _, rows in families]))
    inner = _innermost(process.host, together)
    chosen = [(marker, np.intersect1d(rows, inner)) for marker, rows in families]
    chosen = [(marker, rows) for marker, rows in chosen if len(rows)]
    engine = max(chosen, key=lambda item: len(item[1]))[0].engine
    rows = np.unique(np.concatenate([rows for marker, rows in chosen if marker.engine == engine]))
    return _ranges(process, rows, "engine-range", engine, "high")


def _by_rhythm(process: ProcessTrace, calls: Calls) -> StepRanges | None:
    """A range name that repeats without nesting in itself and encloses most launches."""
    host = process.host
    rows = np.flatnonzero(np.isin(host.kind, RHYTHM_KINDS) & (host.end_ns > host.start_ns))
    launches = np.sort(calls.start_ns[calls.correlation != 0])
    if not len(rows) or not len(launches):
        return None
    texts, template_of = _templates(process.names)
    template = template_of[host.name[rows]]
    rows, template = rows[template >= 0], template[template >= 0]
    groups, group_of = group([host.thread[rows], template])
    best: tuple[float, int, str] | None = None
    chosen: IntArray | None = None
    # In order of first appearance: of equals the first stays.
    members = sorted(group_indices(group_of).items(), key=lambda item: int(item[1][0]))
    for at, positions in members:
        template_text, index = texts[groups[at][1]], rows[positions]
        enclosed = _enclosed_share(host, index, launches)
        if len(index) < MIN_REPEATS or enclosed < MIN_ENCLOSED or not _regular(host, index):
            continue
        key = (round(enclosed, 1), -len(index), template_text)
        if best is None or key > best:
            best, chosen = key, index
    if best is None or chosen is None:
        return None
    return _ranges(process, chosen, "repeated-range", best[2], "medium")


def _templates(names: tuple[str, ...]) -> tuple[tuple[str, ...], IntArray]:
    """Names with every number replaced, and the template of each name code (-1: none, or no step)."""
    clean = clean_names(names)
    templates: dict[str, int] = {}
    of_text = [
        -1 if _NO_STEP.match(text) else templates.setdefault(_COUNTER.sub("#", text), len(templates))
        for text in clean.texts
    ]
    return tuple(templates), np.array([*of_text, -1], np.int64)[clean.of_code]


def _enclosed_share(host: HostTable, rows: IntArray, launches: IntArray) -> float:
    if np.any(host.start_ns[rows][1:] < host.end_ns[rows][:-1]):
        return 0.0  # nested in itself: no step
    inside = np.searchsorted(launches, host.end_ns[rows]) - np.searchsorted(launches, host.start_ns[rows])
    return float(inside.sum()) / len(launches)


def _regular(host: HostTable, rows: IntArray) -> bool:
    """Whether starts keep a rhythm: the middle half of the distances within a factor of two."""
    distance = np.diff(host.start_ns[rows])
    low, middle, high = np.quantile(distance, [0.25, 0.5, 0.75])
    return bool(middle > 0 and high <= 2 * middle and low >= middle / 2)


def _unit_steps(
    calls: Calls, first_call: IntArray, rule: str, pattern: str, confidence: str, label: str
) -> StepRanges:
    start = calls.start_ns[first_call]
    order = np.argsort(start, kind="stable")
    start = start[order]
    end = np.append(start[1:], start[-1:] + (np.diff(start).max() if len(start) > 1 else 0))
    return StepRanges(
        rule,
        pattern,
        confidence,
        start,
        end,
        calls.thread[first_call[order]].astype(np.int64),
        tuple(f"{label} {at}" for at in range(len(start))),
        np.full(len(start), -1, np.int64),
    )


def _by_graph_replays(calls: Calls, work: Work) -> StepRanges | None:
    """Repeated replays of one executable graph that hold most of the device time."""
    nodes = np.flatnonzero(work.replay >= 0)
    if not len(nodes):
        nodes = np.flatnonzero((work.table.graph_exec >= 0) & work.linked)
    if not len(nodes):
        return None
    identity: dict[int, tuple[object, ...]] = {}
    time: Counter[tuple[object, ...]] = Counter()
    names = work.table.name[nodes].tolist()
    durations = (work.end_ns - work.start_ns)[nodes].tolist()
    executables = work.table.graph_exec[nodes].tolist()
    members: dict[int, list[int]] = {}
    for at, call in enumerate(work.launch[nodes].tolist()):
        members.setdefault(call, []).append(at)
    for call, indices in members.items():
        executable = executables[indices[0]]
        key = ("exec", executable) if executable >= 0 else tuple(sorted(names[at] for at in indices))
        identity[call] = key
        time[key] += sum(durations[at] for at in indices)
    key, held = max(time.items(), key=lambda item: (item[1], str(item[0])))
    launches = np.array(sorted(call for call, value in identity.items() if value == key), np.int64)
    total = int((work.end_ns - work.start_ns).sum())
    if len(launches) < MIN_REPEATS or held < MIN_ENCLOSED * total:
        return None
    return _unit_steps(calls, launches, "graph-replays", "one executable graph", "medium", "replay")


def _by_kernel_period(calls: Calls, work: Work) -> StepRanges | None:
    """A period in the launch-ordered sequence of (kernel name, grid)."""
    rows = np.flatnonzero(work.linked & (work.table.kind == DeviceKind.KERNEL) & (work.replay < 0))
    if len(rows) < 2 * MIN_REPEATS:
        return None
    rows = rows[np.argsort(work.launch_ns[rows], kind="stable")]
    _, code = group([work.table.name[rows], *work.table.grid[rows].T])
    counts = np.bincount(code)
    repeated = np.lexsort((np.arange(len(counts)), counts))
    repeated = repeated[counts[repeated] >= MIN_REPEATS][:MAX_ANCHORS]
    for value in repeated.tolist():
        positions = np.flatnonzero(code == value)
        period = _dominating(np.diff(positions))
        if period is None or period < MIN_PERIOD:
            continue
        if float(np.mean(code[period:] == code[:-period])) >= PERIOD_MATCH:
            firsts = np.arange(0, len(rows), period)  # where a period begins is a convention
            if len(firsts) < MIN_REPEATS or _is_layer(code, counts, period):
                continue
            return _unit_steps(
                calls,
                work.launch[rows[firsts]],
                "kernel-period",
                f"{period} kernels",
                "low",
                "period",
            )
    return None


def _is_layer(code: IntArray, counts: IntArray, period: int) -> bool:
    """Whether the period is a layer inside one forward pass rather than a step.

    A capture of steps ends somewhere inside a step, whose kernels all occurred before; a forward pass
    ends with kernels of its own (final norm, head, sampling) that its layers do not have.
    """
    units = len(code) / period
    return bool(np.any(counts[code[-period:]] < units / 2))


def _dominating(distances: IntArray) -> int | None:
    values, counts = np.unique(distances, return_counts=True)
    best = int(np.argmax(counts))
    return int(values[best]) if counts[best] >= 0.8 * counts.sum() else None
