"""Device work: kernels, copies, sets and whole-graph rows of all processes, in file order.

Constants: copy and memory kinds are CUPTI's (ENUM_CUDA_MEMCPY_OPER, ENUM_CUDA_MEM_KIND), equal in all
exports from 2022 to 2026. ``graphNodeId`` rows were never seen in a real file: that its upper half is the
executable graph and its lower half the node follows the documentation and other tools only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analyzer.arrays import group
from analyzer.model import CopyKind, DeviceKind, DeviceTable, IntArray, MemoryKind
from analyzer.readers.nsys_sqlite.bulk import NO_TIME, Column, Database
from analyzer.readers.nsys_sqlite.ledger import Ledger, ordered_ends, usable_rows
from analyzer.readers.nsys_sqlite.strings import Strings, first_known

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
SETS = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"

Fields = dict[str, npt.NDArray[Any]]

_COMMON = (
    Column("start", missing=NO_TIME),
    Column("end", missing=NO_TIME),
    Column("deviceId"),
    Column("contextId"),
    Column("streamId"),
    Column("correlationId", missing=0),
    Column("globalPid"),
    Column("graphNodeId"),
)
_KERNEL = (
    Column("demangledName"),
    Column("shortName"),
    Column("mangledName"),
    *(Column(f"{what}{axis}", np.int32) for what in ("grid", "block") for axis in "XYZ"),
    Column("registersPerThread", np.int32),
    Column("staticSharedMemory"),
    Column("dynamicSharedMemory"),
)
_COPY = (Column("bytes"), Column("copyKind"), Column("srcKind"), Column("dstKind"))
_SET = (Column("bytes"), Column("memKind"))
_GRAPH = (Column("graphId"), Column("graphExecId"))

_COPY_NAMES = {
    CopyKind.HTOD: "HtoD",
    CopyKind.DTOH: "DtoH",
    CopyKind.HTOA: "HtoA",
    CopyKind.ATOH: "AtoH",
    CopyKind.ATOA: "AtoA",
    CopyKind.ATOD: "AtoD",
    CopyKind.DTOA: "DtoA",
    CopyKind.DTOD: "DtoD",
    CopyKind.HTOH: "HtoH",
    CopyKind.PTOP: "PtoP",
    CopyKind.UM_HTOD: "unified memory HtoD",
    CopyKind.UM_DTOH: "unified memory DtoH",
    CopyKind.UM_DTOD: "unified memory DtoD",
}
_MEMORY_NAMES = {
    MemoryKind.PAGEABLE: "Pageable",
    MemoryKind.PINNED: "Pinned",
    MemoryKind.DEVICE: "Device",
    MemoryKind.ARRAY: "Array",
    MemoryKind.MANAGED: "Managed",
    MemoryKind.DEVICE_STATIC: "Device Static",
    MemoryKind.MANAGED_STATIC: "Managed Static",
}


@dataclass(frozen=True)
class DeviceRows:
    """Device work of the whole file, in file order: kernels, copies, sets, graphs.

    ``table.lane`` is not set yet (-1). The key columns are (n,) int64; -1: not recorded.
    """

    table: DeviceTable
    process: IntArray  # globalPid
    device: IntArray
    context: IntArray
    stream: IntArray


def read_device_rows(database: Database, strings: Strings, ledger: Ledger) -> DeviceRows:
    """All device work of the export; rows without times are left out and counted."""
    parts = [
        _kernels(database, strings, ledger),
        _copies(database, strings, ledger),
        _sets(database, strings, ledger),
        _graphs(database, strings, ledger),
    ]
    fields = _joined([part for part in parts if part is not None])
    rows = len(fields["start"])
    dynamic = fields["dynamicSharedMemory"]
    table = DeviceTable(
        start_ns=fields["start"],
        end_ns=fields["end"],
        kind=fields["kind"],
        lane=np.full(rows, -1, np.int32),
        name=fields["name"],
        correlation=fields["correlationId"],
        graph_exec=fields["graph_exec"],
        graph_node=fields["graphNodeId"],
        grid=fields["grid"],
        block=fields["block"],
        registers=fields["registersPerThread"],
        # -1 there alone would read as Kineto's form, where shared_static holds the sum of both.
        shared_static=np.where(dynamic < 0, -1, fields["staticSharedMemory"]),
        shared_dynamic=dynamic,
        occupancy_pct=np.full(rows, -1, np.int32),
        bytes=fields["bytes"],
        copy_kind=fields["copyKind"],
        src_memory=fields["srcKind"],
        dst_memory=fields["dstKind"],
        collective=np.full(rows, -1, np.int32),
        position=np.arange(rows, dtype=np.int64),
    )
    return DeviceRows(table, fields["globalPid"], fields["deviceId"], fields["contextId"], fields["streamId"])


_OUTPUT: dict[str, tuple[type[np.signedinteger[Any]], tuple[int, ...]]] = {
    "start": (np.int64, ()),
    "end": (np.int64, ()),
    "deviceId": (np.int64, ()),
    "contextId": (np.int64, ()),
    "streamId": (np.int64, ()),
    "correlationId": (np.int64, ()),
    "globalPid": (np.int64, ()),
    "graphNodeId": (np.int64, ()),
    "graph_exec": (np.int64, ()),
    "kind": (np.int8, ()),
    "name": (np.int32, ()),
    "grid": (np.int32, (3,)),
    "block": (np.int32, (3,)),
    "registersPerThread": (np.int32, ()),
    "staticSharedMemory": (np.int64, ()),
    "dynamicSharedMemory": (np.int64, ()),
    "bytes": (np.int64, ()),
    "copyKind": (np.int8, ()),
    "srcKind": (np.int8, ()),
    "dstKind": (np.int8, ()),
}


def _joined(parts: list[Fields]) -> Fields:
    """One array per output column; what a part does not have is -1 there."""
    result: Fields = {}
    for name, (dtype, shape) in _OUTPUT.items():
        pieces = [np.empty((0, *shape), dtype)]
        for part in parts:
            piece = part.pop(name, None)
            pieces.append(np.full((len(part["rows"]), *shape), -1, dtype) if piece is None else piece)
        result[name] = np.concatenate(pieces) if len(pieces) != 2 else pieces[1].astype(dtype, copy=False)
    return result


def _fetch(database: Database, table: str, extra: tuple[Column, ...], ledger: Ledger) -> Fields | None:
    """The common and the extra columns of usable rows; None without the table or without times."""
    if not database.has(table, "start", "end"):
        return None
    fields: Fields = database.integers(table, (*_COMMON, *extra))
    usable = usable_rows(fields["start"], fields["end"], ledger, table)
    if not usable.all():
        fields = {name: values[usable] for name, values in fields.items()}
    fields["end"] = ordered_ends(fields["start"], fields["end"], ledger, table)
    node = fields["graphNodeId"]
    if node.any():
        fields["graphNodeId"] = np.where(node > 0, node, -1)
    fields["graph_exec"] = np.where(node > 0, node >> 32, -1)
    fields["rows"] = np.empty(len(node), np.bool_)
    return fields


def _kernels(database: Database, strings: Strings, ledger: Ledger) -> Fields | None:
    fields = _fetch(database, KERNELS, _KERNEL, ledger)
    if fields is None:
        return None
    names = [fields.pop(name) for name in ("demangledName", "shortName", "mangledName")]
    ids = first_known(strings, names)
    ledger.add(
        "full-name-missing",
        int((ids != names[0]).sum()),
        "These kernels show their short or mangled name, which different kernels may share.",
        KERNELS,
        len(ids),
    )
    codes = strings.codes(ids, KERNELS)
    nameless = codes < 0
    if nameless.any():
        codes[nameless] = strings.intern("<kernel name not recorded>")
    fields["name"] = codes
    fields["kind"] = np.full(len(codes), DeviceKind.KERNEL, np.int8)
    for what in ("grid", "block"):
        fields[what] = np.stack([fields.pop(f"{what}{axis}") for axis in "XYZ"], axis=1)
    return fields


def _copies(database: Database, strings: Strings, ledger: Ledger) -> Fields | None:
    fields = _fetch(database, COPIES, _COPY, ledger)
    if fields is None:
        return None
    kinds = fields["copyKind"]
    unknown = (kinds < 0) | (kinds > max(CopyKind))
    ledger.add(
        "unknown-copy-kind",
        int(unknown.sum()),
        "Copies of a direction that this tool does not know count as copies without a direction.",
        COPIES,
        len(kinds),
    )
    fields["copyKind"] = np.where(unknown, CopyKind.UNKNOWN, kinds).astype(np.int8)
    for name in ("srcKind", "dstKind"):
        fields[name] = _memory(fields[name])
    combinations, codes = group([fields["copyKind"], fields["srcKind"], fields["dstKind"]])
    lookup = np.array([strings.intern(_copy_name(*kinds)) for kinds in combinations], np.int32)
    fields["name"] = lookup[codes] if len(codes) else np.empty(0, np.int32)
    fields["kind"] = np.full(len(codes), DeviceKind.COPY, np.int8)
    return fields


def _sets(database: Database, strings: Strings, ledger: Ledger) -> Fields | None:
    fields = _fetch(database, SETS, _SET, ledger)
    if fields is None:
        return None
    memory = fields["dstKind"] = _memory(fields.pop("memKind"))
    lookup = np.full(max(MemoryKind) + 2, strings.intern("Memset"), np.int32)
    for kind in np.unique(memory).tolist():
        if kind in _MEMORY_NAMES:
            lookup[kind] = strings.intern(f"Memset ({_MEMORY_NAMES[MemoryKind(kind)]})")
    fields["name"] = lookup[memory]
    fields["kind"] = np.full(len(memory), DeviceKind.SET, np.int8)
    return fields


def _graphs(database: Database, strings: Strings, ledger: Ledger) -> Fields | None:
    fields = _fetch(database, GRAPHS, _GRAPH, ledger)
    if fields is None:
        return None
    fields["graph_exec"] = fields["graphExecId"]
    graphs, codes = group([fields["graphId"], fields["graphExecId"]])
    lookup = np.array([strings.intern(_graph_name(*graph)) for graph in graphs], np.int32)
    fields["name"] = lookup[codes] if len(codes) else np.empty(0, np.int32)
    fields["kind"] = np.full(len(codes), DeviceKind.GRAPH, np.int8)
    return fields


def _memory(kinds: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
    known = (kinds >= 0) & (kinds < MemoryKind.UNKNOWN)
    return np.where(known, kinds, -1).astype(np.int8)


def _copy_name(kind: int, source: int, target: int) -> str:
    """As torch.profiler writes it: ``Memcpy HtoD (Pinned -> Device)``."""
    name = f"Memcpy {_COPY_NAMES[CopyKind(kind)]}" if CopyKind(kind) in _COPY_NAMES else "Memcpy"
    if source in _MEMORY_NAMES and target in _MEMORY_NAMES:
        name += f" ({_MEMORY_NAMES[MemoryKind(source)]} -> {_MEMORY_NAMES[MemoryKind(target)]})"
    return name


def _graph_name(graph: int, executable: int) -> str:
    identity = str(graph) if graph >= 0 else "of unknown id"
    return f"CUDA graph {identity} (exec {executable})" if executable >= 0 else f"CUDA graph {identity}"
