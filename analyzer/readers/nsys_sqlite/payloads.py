"""Sizes of collectives, from the payload that NCCL attaches to its own NVTX ranges.

Exports with ``--include-json=true`` hold it as text. The labels were seen in exports of 2026; a public capture with
them is not at hand, so that what is read here was tested on written exports alone. A range lasts as long as the call
that enqueues, not as the transfer: it is bound to the kernel that the call launched. Communicators are not taken for
groups: nothing at hand shows that their ids are the same on all ranks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from analyzer.model import CodeArray, CollectiveInfo, DeviceKind, HostKind, IntArray
from analyzer.readers.interning import Interner
from analyzer.readers.nsys_sqlite.activities import DeviceRows
from analyzer.readers.nsys_sqlite.bulk import Database
from analyzer.readers.nsys_sqlite.host import NVTX, HostRows
from analyzer.readers.nsys_sqlite.identifiers import global_pid_of
from analyzer.readers.nsys_sqlite.ledger import Ledger
from analyzer.readers.nsys_sqlite.strings import Strings

SIZE, COMMUNICATOR, RANKS = "Message size [bytes]", "NCCL communicator ID", "No. of ranks"
_PARTS = ("allgather", "reducescatter", "alltoall", "gather", "scatter")
"""Functions of which NCCL counts one rank's part: what a rank gathers or hands out is that of all ranks."""


@dataclass(frozen=True)
class Payloads:
    """``code``: (n,) description of each device row, index into ``infos``, -1 none."""

    code: CodeArray
    infos: tuple[CollectiveInfo, ...]


@dataclass(frozen=True)
class _Ranges:
    """NCCL's ranges that tell a size, (r,) columns sorted by (thread, start)."""

    thread: IntArray
    start_ns: IntArray
    end_ns: IntArray
    bytes: IntArray  # larger of what one rank puts in and gets out, -1 where the number of ranks is not known


def read_payloads(
    database: Database, strings: Strings, device: DeviceRows, host: HostRows, ledger: Ledger
) -> Payloads:
    """What NCCL's ranges tell of the kernels that were launched in them; of a fused launch nothing."""
    code = np.full(len(device.table), -1, np.int32)
    ranges = _read_ranges(database, strings)
    kernels = _nccl_kernels(device, strings)
    if not len(ranges.thread) or not len(kernels):
        return Payloads(code, ())
    launch = _launching_calls(device, host, kernels)
    kernels, launch = kernels[launch >= 0], launch[launch >= 0]
    size, fused = _sizes(host.thread[launch], host.start_ns[launch], ranges)
    ledger.add(
        "collective-size-not-told",
        int(fused.sum()),
        "Kernels that were launched for several NCCL calls at once: which size is whose is not recorded.",
        NVTX,
        len(fused),
    )
    infos: Interner[CollectiveInfo] = Interner()
    for row, nbytes in zip(kernels.tolist(), size.tolist(), strict=True):
        if nbytes >= 0:
            code[row] = infos[_info(nbytes)]
    return Payloads(code, tuple(infos))


def _info(nbytes: int) -> CollectiveInfo:
    return CollectiveInfo(
        op=None, dtype=None, in_elements=None, out_elements=None, group=None, group_description=None,
        group_size=None, group_ranks=None, sequence=None, bytes=nbytes,
    )  # fmt: skip


def _read_ranges(database: Database, strings: Strings) -> _Ranges:
    table = database.table(NVTX)
    rows: list[tuple[int, int, int, int]] = []
    if table is not None and database.has(table, "jsonText", "globalTid", "start", "end"):
        rows = _described(database, table, strings)
    columns = np.array(sorted(rows), np.int64).reshape(-1, 4)
    return _Ranges(*(columns[:, at] for at in range(4)))


def _described(database: Database, table: str, strings: Strings) -> list[tuple[int, int, int, int]]:
    """(thread, start, end, bytes) of ranges with a size."""
    column: sa.ColumnClause[str] = sa.column("jsonText")
    names = ("globalTid", "start", "end", "jsonText", "text", "textId")
    where = column.like(f'%"{SIZE}"%') | column.like(f'%"{RANKS}"%')
    found = database.rows(table, names, where)
    registered = strings.texts(np.array([-1 if row[5] is None else row[5] for row in found], np.int64))
    payloads: dict[str, dict[str, object]] = {text: _payload(text) for text in {row[3] for row in found}}
    ranks = {
        (_process(row[0]), repr(payload.get(COMMUNICATOR))): payload[RANKS]
        for row in found
        if row[0] is not None and RANKS in (payload := payloads[row[3]])
    }
    result = []
    for row, name in zip(found, registered, strict=True):
        thread, start, end, text = row[:4]
        payload = payloads[text]
        if SIZE in payload and None not in (thread, start, end):
            members = ranks.get((_process(thread), repr(payload.get(COMMUNICATOR))))
            result.append((thread, start, end, _larger(row[4] or name or "", payload, members)))
    return result


def _process(thread: int) -> int:
    return int(global_pid_of(np.array([thread], np.int64))[0])


def _payload(text: str) -> dict[str, object]:
    try:
        payload = json.loads(text)
    except ValueError:
        return {}
    return payload if isinstance(payload, dict) else {}


def _larger(function: str, payload: Mapping[str, object], ranks: object) -> int:
    size = payload[SIZE]
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < 2**62:
        return -1
    if not function.lower().removeprefix("nccl").startswith(_PARTS):
        return size
    known = isinstance(ranks, int) and not isinstance(ranks, bool) and 0 < ranks < 2**20
    return size * ranks if known and isinstance(ranks, int) else -1


def _nccl_kernels(device: DeviceRows, strings: Strings) -> IntArray:
    """Rows of kernels that NCCL launched one by one."""
    names = strings.table()
    nccl = np.array([name.startswith("nccl") for name in names] or [False], bool)
    table = device.table
    mine = (table.kind == DeviceKind.KERNEL) & (table.graph_node < 0) & (table.name >= 0)
    return np.flatnonzero(mine & nccl[np.maximum(table.name, 0)])


def _launching_calls(device: DeviceRows, host: HostRows, kernels: IntArray) -> IntArray:
    """(k,) host row of the call that launched each kernel, -1 none: by process and correlation, the earliest."""
    calls = np.flatnonzero((host.kind == HostKind.CALL) & (host.correlation != 0))
    calls = calls[np.lexsort((host.start_ns[calls], host.correlation[calls], host.process[calls]))]
    first: dict[tuple[int, int], int] = {}
    wanted = set(
        zip(device.process[kernels].tolist(), device.table.correlation[kernels].tolist(), strict=True)
    )
    for process, correlation, row in zip(
        host.process[calls].tolist(), host.correlation[calls].tolist(), calls.tolist(), strict=True
    ):
        if (process, correlation) in wanted:
            first.setdefault((process, correlation), row)
    keys = zip(device.process[kernels].tolist(), device.table.correlation[kernels].tolist(), strict=True)
    return np.array([first.get(key, -1) for key in keys], np.int64)


def _sizes(thread: IntArray, at_ns: IntArray, ranges: _Ranges) -> tuple[IntArray, np.ndarray]:
    """(k,) size of each launch, -1 not told, and whether several calls share it.

    A call outside of groups launches inside its own range. In a group the last call launches for all since the
    thread's launch before: with one of them it is that one's.
    """
    size, fused = np.full(len(thread), -1, np.int64), np.zeros(len(thread), bool)
    for one in np.unique(thread).tolist():
        mine = np.flatnonzero(thread == one)
        mine = mine[np.argsort(at_ns[mine], kind="stable")]
        low, high = np.searchsorted(ranges.thread, [one, one + 1])
        start, end = ranges.start_ns[low:high], ranges.end_ns[low:high]
        nbytes = ranges.bytes[low:high]
        until = np.searchsorted(start, at_ns[mine], side="right")
        since = np.concatenate(([0], until[:-1]))
        inside = (until > 0) & (at_ns[mine] < end[np.maximum(until - 1, 0)]) if high > low else until > 0
        single = inside | (until - since == 1)
        size[mine[single]] = nbytes[until[single] - 1]
        fused[mine[~inside & (until - since > 1)]] = True
    return size, fused
