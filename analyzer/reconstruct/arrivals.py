"""The collectives of one rank as other ranks need to know them: when it arrived, when it was done, in what.

An *arrival* is one collective kernel of one rank. Its start is when the rank arrived, its duration includes
waiting for the others (attribution contract, section 4).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from analyzer.categories import Category
from analyzer.model import CodeArray, CollectiveInfo, Columns, HostKind, IntArray, Trace
from analyzer.reconstruct.step_markers import clean_names
from analyzer.reconstruct.windows import Assignment
from analyzer.reconstruct.work import BoolArray, Calls, Work, group_indices
from analyzer.rules import Rules

_ANNOTATION = re.compile(r"^nccl[:_]?(\w+)", re.IGNORECASE)
"""``nccl:all_to_all`` (torch.profiler) and ``ncclAllReduce`` (NCCL's own NVTX ranges)."""
DTYPE_BYTES = {
    "bool": 1, "byte": 1, "char": 1, "int8": 1, "uint8": 1, "short": 2, "int16": 2, "half": 2, "float16": 2,
    "bfloat16": 2, "int": 4, "int32": 4, "float": 4, "float32": 4, "long": 8, "int64": 8, "double": 8,
    "float64": 8,
}  # fmt: skip
"""Bytes of one element by the spellings of torch and NCCL (lower case); ``float8_*`` has one."""


@dataclass(frozen=True)
class GroupName:
    """What the capture says of the process group of an arrival. ``unnamed``: what stands for it without."""

    name: str | None = None
    description: str | None = None
    ranks: tuple[int, ...] | None = None
    size: int | None = None
    unnamed: str = ""


@dataclass(frozen=True)
class Arrivals(Columns):
    """Collectives of one rank, (n,) columns in the total order. Times on the rank's corrected clock."""

    start_ns: IntArray
    end_ns: IntArray
    row: IntArray  # index into Work
    group: CodeArray  # index into ArrivalTable.groups
    operation: CodeArray  # index into ArrivalTable.texts
    dtype: CodeArray  # the same, -1 not recorded
    family: CodeArray  # the same: who made the kernel (nccl, custom, deepep, ...)
    bytes: IntArray  # larger of what goes in and comes out, -1 not recorded
    sequence: IntArray  # as the capture numbers them in their group, -1 not recorded
    source: IntArray  # rank that sends, of one-directional operations; -1 none or not recorded
    target: IntArray
    replay: IntArray  # ordinal of the graph launch, -1 eager
    in_replay: IntArray  # ordinal among the collectives of its replay and group, -1 eager
    window: IntArray  # step that launched it, -1 none
    launched_ns: IntArray  # start of the launching call, NO_TIME without
    kernel: CodeArray  # index into ArrivalTable.texts: its name
    fused: BoolArray  # the kernel also computes: its time is not all communication


@dataclass(frozen=True)
class ArrivalTable:
    """The arrivals of one rank with the texts and groups that they name."""

    arrivals: Arrivals
    groups: tuple[GroupName, ...]
    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.arrivals)

    def text(self, code: int) -> str | None:
        """The text of a code, None for -1."""
        return self.texts[code] if code >= 0 else None


class _Texts:
    def __init__(self) -> None:
        self.codes: dict[str, int] = {}

    def code(self, text: str | None) -> int:
        return -1 if text is None else self.codes.setdefault(text, len(self.codes))


def find_arrivals(
    trace: Trace, work: Work, calls: Calls, assignment: Assignment | None, rules: Rules
) -> ArrivalTable:
    """All collectives of one rank. What its file did not record of them is -1 or None, never guessed."""
    rows = np.flatnonzero(work.own_label == Category.COLLECTIVE_UNSPLIT)
    infos = [trace.collectives[code] if code >= 0 else None for code in work.table.collective[rows].tolist()]
    names = [trace.process.name_of(code) for code in work.table.name[rows].tolist()]
    texts = _Texts()
    operations = _operations(trace, work, calls, rows, infos, names, rules)
    group, groups = _groups(work, rows, infos, names, rules)
    replay = work.replay[rows]
    window = np.zeros(len(rows), np.int64) if assignment is None else assignment.of_row[rows]
    table = Arrivals(
        start_ns=work.start_ns[rows],
        end_ns=work.end_ns[rows],
        row=rows,
        group=group,
        operation=np.array([texts.code(text) for text in operations], np.int32),
        dtype=np.array([texts.code(info.dtype if info else None) for info in infos], np.int32),
        family=np.array([texts.code(rules.collective_family(name)) for name in names], np.int32),
        bytes=np.array([_bytes(info) for info in infos], np.int64),
        sequence=_numbers([info.sequence if info else None for info in infos]),
        source=_numbers([info.src_rank if info else None for info in infos]),
        target=_numbers([info.dst_rank if info else None for info in infos]),
        replay=replay,
        in_replay=_ordinals(work, rows, group),
        window=window,
        launched_ns=work.launch_ns[rows],
        kernel=np.array([texts.code(name) for name in names], np.int32),
        fused=np.array([rules.is_fused_collective(name) for name in names], bool),
    )
    return ArrivalTable(table, groups, tuple(texts.codes))


def _numbers(values: list[int | None]) -> IntArray:
    return np.array([-1 if value is None else value for value in values], np.int64)


def _bytes(info: CollectiveInfo | None) -> int:
    if info is not None and info.bytes is not None:
        return info.bytes
    if info is None or info.dtype is None:
        return -1
    known = [count for count in (info.in_elements, info.out_elements) if count is not None]
    spelled = info.dtype.lower()
    size = 1 if spelled.startswith("float8") else DTYPE_BYTES.get(spelled)
    return max(known) * size if known and size else -1


def _ordinals(work: Work, rows: IntArray, group: CodeArray) -> IntArray:
    """Place of each row among the collectives of its graph and group, -1 eager.

    By the nodes' ids, which stay the same over all replays and ascend as they were captured, so that a lost row
    shifts none; where they are not recorded by order in the replay.
    """
    ordinal = np.full(len(rows), -1, np.int64)
    replay, node = work.replay[rows], work.table.graph_node[rows]
    for known in (True, False):
        inside = np.flatnonzero((replay >= 0) & ((node >= 0) == known))
        graph = work.table.graph_exec[rows[inside]] if known else replay[inside]
        for members in _together(graph, group[inside]):
            mine = inside[members]
            ordinal[mine] = np.unique(node[mine], return_inverse=True)[1] if known else np.arange(len(mine))
    return ordinal


def _together(graph: IntArray, group: CodeArray) -> list[IntArray]:
    """Positions of the rows of each graph and group, in their order."""
    _, inverse = np.unique(np.stack((graph, group.astype(np.int64))), axis=1, return_inverse=True)
    return list(group_indices(inverse.reshape(-1)).values())


def _groups(
    work: Work, rows: IntArray, infos: list[CollectiveInfo | None], names: list[str], rules: Rules
) -> tuple[CodeArray, tuple[GroupName, ...]]:
    """Group of every row. Without a name: that of its stream where it is one, else by maker and stream."""
    codes: dict[GroupName, int] = {}
    lanes = work.lane[rows].tolist()
    named: list[GroupName | None] = [
        GroupName(info.group, info.group_description, info.group_ranks, info.group_size)
        if info is not None and (info.group is not None or info.group_ranks is not None)
        else None
        for info in infos
    ]
    of_lane: dict[int, set[GroupName]] = {}
    for lane, name in zip(lanes, named, strict=True):
        if name is not None:
            of_lane.setdefault(lane, set()).add(name)
    inside = work.replay[rows] >= 0
    order: dict[tuple[str, int], int] = {}
    result = []
    for lane, name, kernel, in_graph in zip(lanes, named, names, inside.tolist(), strict=True):
        if name is None:
            name = _unnamed(
                rules.collective_family(kernel) or "unknown", lane, of_lane, order, in_graph=in_graph
            )
        result.append(codes.setdefault(name, len(codes)))
    return np.array(result, np.int32), tuple(codes)


def _unnamed(
    family: str,
    lane: int,
    of_lane: dict[int, set[GroupName]],
    order: dict[tuple[str, int], int],
    *,
    in_graph: bool,
) -> GroupName:
    """What stands for a group that nothing names.

    A NCCL communicator has a stream of its own, as far as torch makes it; an engine's own kernels run
    beside the others, and nodes of a graph show where they were captured, whatever their group.
    """
    if in_graph:
        return GroupName(unnamed=f"{family} in graphs")
    if family != "nccl":
        return GroupName(unnamed=family)
    only = of_lane.get(lane, set())
    if len(only) == 1:
        return next(iter(only))
    place = order.setdefault((family, lane), len(order))
    return GroupName(unnamed=family if place == 0 else f"{family}, stream {place + 1}")


def _operations(
    trace: Trace,
    work: Work,
    calls: Calls,
    rows: IntArray,
    infos: list[CollectiveInfo | None],
    names: list[str],
    rules: Rules,
) -> list[str | None]:
    """What each collective does: by its metadata, else by annotations around its launch, else by its name."""
    annotated = _annotated(trace, work, calls, rows, rules)
    result: list[str | None] = []
    for at, (info, name) in enumerate(zip(infos, names, strict=True)):
        if info is not None and info.op:
            result.append(rules.metadata_operation(info.op))
        else:
            result.append(annotated.get(at) or rules.collective_operation(name))
    return result


def _annotated(trace: Trace, work: Work, calls: Calls, rows: IntArray, rules: Rules) -> dict[int, str]:
    """Operation by position in ``rows`` that ranges of the launching thread spell.

    NCCL launches a group's kernel when the group ends: all that began since the thread's last collective
    launch belongs to this one. Sends and receives together are an exchange.
    """
    host = trace.process.host
    spelled = clean_names(trace.process.names)
    ranges = np.flatnonzero(np.isin(host.kind, (HostKind.RANGE, HostKind.SPAN)))
    ranges = ranges[spelled.matching(_ANNOTATION.match)[host.name[ranges]]]
    eager = np.flatnonzero(work.linked[rows] & (work.replay[rows] < 0))
    found: dict[int, str] = {}
    if not len(ranges) or not len(eager):
        return found
    launch = work.launch[rows[eager]]
    thread, at_ns = calls.thread[launch], calls.start_ns[launch]
    for code, mine in group_indices(thread).items():
        here = ranges[host.thread[ranges] == code]
        here = here[np.argsort(host.start_ns[here], kind="stable")]
        order = mine[np.argsort(at_ns[mine], kind="stable")]
        until = np.searchsorted(host.start_ns[here], at_ns[order], side="right")
        since = np.concatenate(([0], until[:-1])).astype(np.int64)
        for position, low, high in zip(order.tolist(), since.tolist(), until.tolist(), strict=True):
            window = here[low:high] if high > low else here[max(high - 1, 0) : high]
            if high == low and (not len(window) or host.end_ns[window[0]] < at_ns[position]):
                continue
            operation = _one_operation(
                {trace.process.names[host.name[row]] for row in window.tolist()}, rules
            )
            if operation is not None:
                found[int(eager[position])] = operation
    return found


def _one_operation(names: set[str], rules: Rules) -> str | None:
    """The framework's word where it has one; NCCL's own ranges below it are the parts of the same call."""
    by_framework: set[str] = set()
    by_nccl: set[str] = set()
    for name in names:
        match = _ANNOTATION.match(name)
        operation = rules.known_operation(match.group(1)) if match else None
        if operation is not None:
            (by_framework if name[4] in ":_" else by_nccl).add(operation)
    known = by_framework or by_nccl
    if known == {"send", "recv"}:
        return "exchange"
    return known.pop() if len(known) == 1 else None
