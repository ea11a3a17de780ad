"""The work of a phase's steps as a multiset, in words that all profilers share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from analyzer.arrays import group
from analyzer.diagnosis import StepWork
from analyzer.explain.phase_windows import PhaseWindows, sums
from analyzer.kernel_names import base_name, full_name
from analyzer.model import NO_NAME, CopyKind, DeviceKind, IntArray, SmallArray
from analyzer.reconstruct.arrivals import ArrivalTable
from analyzer.reconstruct.rank import RankAccount

COLLECTIVE = "collective"
_COLLECTIVE_CODE = len(DeviceKind)
_KINDS = {
    DeviceKind.KERNEL: "kernel",
    DeviceKind.COPY: "copy",
    DeviceKind.SET: "set",
    DeviceKind.GRAPH: "graph",
    _COLLECTIVE_CODE: COLLECTIVE,
}
_UNRECORDED = -1


@dataclass(frozen=True)
class CountedWork:
    """The rows of ``Work`` that count as some step's, and which of ``table`` each is."""

    row: IntArray  # (n,) ascending
    of_table: IntArray  # (n,)
    table: list[StepWork]  # per phase, most time first


def step_work(account: RankAccount, rank: int, phases: PhaseWindows) -> CountedWork:
    """The work that the steps of all budgets launched.

    Without work from before the capture and without migrations, which belong to no step.
    """
    work = account.work
    rows = np.flatnonzero((phases.of_row >= 0) & ~work.prior & ~work.migration)
    if not len(rows):
        return CountedWork(rows, rows, [])
    names = _Names()
    columns = _columns(account, rows, names)
    groups, inverse = group([phases.of_row[rows], *columns])
    count = len(groups)
    calls = np.bincount(inverse, minlength=count)
    inside = np.bincount(inverse[work.replay[rows] >= 0], minlength=count)
    total = sums(inverse, (work.end_ns - work.start_ns)[rows], count)
    result = [
        StepWork(
            rank=rank,
            phase=phases.phases[phase],
            kind=_KINDS[kind],
            name=names.texts[name],
            grid=_triple(gx, gy, gz),
            block=_triple(bx, by, bz),
            bytes=None if size < 0 else size,
            dtype=None if dtype < 0 else names.texts[dtype],
            group_size=None if members < 0 else members,
            kernel=None if kernel < 0 else names.texts[kernel],
            kernel_operation=None if kernel < 0 else names.operations[kernel],
            calls_total=int(calls[at]),
            calls_in_graphs=int(inside[at]),
            total_ns=int(total[at]),
        )
        for at, (phase, kind, name, gx, gy, gz, bx, by, bz, size, dtype, members, kernel) in enumerate(groups)
    ]
    order = sorted(range(count), key=lambda at: (groups[at][0], *_rank_of(result[at])))
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    return CountedWork(rows, place[inverse], [result[at] for at in order])


def _rank_of(row: StepWork) -> tuple[object, ...]:
    """Most time first; then what sets two rows apart, in an order."""
    size = (row.bytes or -1, row.dtype or "", row.group_size or -1, row.kernel or "")
    return (-row.total_ns, row.kind, row.name, row.grid or (), row.block or (), *size)


class _Names:
    """Texts of this table and their codes."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.operations: dict[int, str | None] = {}  # of collective kernels, as their names tell it
        self._codes: dict[str, int] = {}

    def code(self, text: str) -> int:
        if text not in self._codes:
            self._codes[text] = len(self.texts)
            self.texts.append(text)
        return self._codes[text]

    def codes(self, texts: Iterable[str]) -> IntArray:
        return np.array([self.code(text) for text in texts], np.int64)


def _columns(account: RankAccount, rows: IntArray, names: _Names) -> list[IntArray]:
    """Kind, name, grid (3), block (3), bytes, dtype, group size and collective kernel; -1 where it does not count."""
    table, process = account.work.table, account.trace.process
    kind = table.kind[rows].astype(np.int64)
    values, inverse = np.unique(table.name[rows], return_inverse=True)
    spelled = names.codes(
        full_name(process.names[code]) if code >= 0 else NO_NAME for code in values.tolist()
    )
    name = spelled[inverse.reshape(-1)]
    kernels = kind == DeviceKind.KERNEL
    shape = [
        np.where(kernels, part[:, axis], _UNRECORDED).astype(np.int64)
        for part in (table.grid[rows], table.block[rows])
        for axis in range(3)
    ]
    moved = np.isin(kind, (DeviceKind.COPY, DeviceKind.SET))
    name = np.where(moved, _directions(kind, table.copy_kind[rows], names), name)
    name[kind == DeviceKind.GRAPH] = names.code("(graph replay)")
    size = np.where(moved, table.bytes[rows], _UNRECORDED)
    dtype, members, kernel = (np.full(len(rows), _UNRECORDED) for _ in range(3))
    columns = [kind, name, *shape, size, dtype, members, kernel]
    _set_collectives(account, rows, columns, names)
    return columns


def _directions(kind: IntArray, copy_kind: SmallArray, names: _Names) -> IntArray:
    """Name codes: profilers spell the names of copies differently, the direction they share."""
    texts = {int(one): f"copy {one.name}" for one in CopyKind if one != CopyKind.UNKNOWN}
    codes, inverse = np.unique(copy_kind, return_inverse=True)
    of_code = names.codes(texts.get(code, "copy, direction not recorded") for code in codes.tolist())
    return np.where(kind == DeviceKind.SET, names.code("memset"), of_code[inverse.reshape(-1)])


def _set_collectives(account: RankAccount, rows: IntArray, columns: list[IntArray], names: _Names) -> None:
    """Collectives count by what they do: the grid of a NCCL kernel is its tuner's choice, not the program's."""
    known = account.arrivals
    place = np.full(len(account.work), -1, np.int64)
    place[known.arrivals.row] = np.arange(len(known))
    at = place[rows]
    mine = np.flatnonzero(at >= 0)
    kind, name, *shape, size, dtype, members, kernel = columns
    kind[mine] = _COLLECTIVE_CODE
    for part in shape:
        part[mine] = _UNRECORDED
    for row, arrival in zip(mine.tolist(), at[mine].tolist(), strict=True):
        name[row] = names.code(_operation(account, known, arrival))
        size[row] = known.arrivals.bytes[arrival]
        text = known.text(int(known.arrivals.dtype[arrival]))
        dtype[row] = _UNRECORDED if text is None else names.code(text)
        members[row] = _group_size(known, arrival)
        kernel[row] = _kernel(account, known, arrival, names)


def _operation(account: RankAccount, known: ArrivalTable, arrival: int) -> str:
    """The operation, else the kernel's own name."""
    text = known.text(int(known.arrivals.operation[arrival]))
    if text is not None:
        return text
    return base_name(_recorded_name(account, known, arrival))


def _kernel(account: RankAccount, known: ArrivalTable, arrival: int, names: _Names) -> int:
    """Code of the kernel's base name, noting what operation that name tells."""
    recorded = _recorded_name(account, known, arrival)
    code = names.code(base_name(recorded))
    if code not in names.operations:
        names.operations[code] = account.rules.collective_operation(recorded)
    return code


def _recorded_name(account: RankAccount, known: ArrivalTable, arrival: int) -> str:
    row = int(known.arrivals.row[arrival])
    return account.trace.process.name_of(int(account.work.table.name[row]))


def _group_size(known: ArrivalTable, arrival: int) -> int:
    group_name = known.groups[int(known.arrivals.group[arrival])]
    if group_name.ranks is not None:
        return len(group_name.ranks)
    return _UNRECORDED if group_name.size is None else group_name.size


def _triple(x: int, y: int, z: int) -> tuple[int, int, int] | None:
    return (x, y, z) if min(x, y, z) > 0 else None
