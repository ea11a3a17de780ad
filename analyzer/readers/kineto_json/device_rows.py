"""Kernels, copies and sets: their arguments as columns."""

from __future__ import annotations

import re

import numpy as np

from analyzer.model import CodeArray, CopyKind, DeviceKind, IntArray, MemoryKind, SmallArray
from analyzer.readers.interning import Interner
from analyzer.readers.kineto_json.args import (
    ArgsDecoder,
    int32_column,
    int_column,
    rounded_column,
    triple_column,
)
from analyzer.readers.kineto_json.collectives import Collectives
from analyzer.readers.kineto_json.events import CommArgs, DeviceArgs, Event, Number, as_int
from analyzer.readers.kineto_json.growing import Growing
from analyzer.readers.kineto_json.picker import Picked

_ARGS = ArgsDecoder(DeviceArgs)
_COMMS = ArgsDecoder(CommArgs)
_NO_ID = -1
_STREAM = re.compile(r"\s*stream\s+(-?\d+)\s*", re.IGNORECASE)

_COPY_NAME = re.compile(r"Memcpy (\w+)(?: \((.+?) -> (.+?)\))?")
_HIP_COPY_NAME = re.compile(r"(Host|Device|Peer)To(Host|Device|Peer)", re.IGNORECASE)
_COPY_KINDS = {kind.name.lower(): kind for kind in CopyKind if not kind.name.startswith("UM_")}
_MEMORY_KINDS = {
    "pageable": MemoryKind.PAGEABLE,
    "pinned": MemoryKind.PINNED,
    "device": MemoryKind.DEVICE,
    "array": MemoryKind.ARRAY,
    "managed": MemoryKind.MANAGED,
    "device static": MemoryKind.DEVICE_STATIC,
    "managed static": MemoryKind.MANAGED_STATIC,
    "unknown": MemoryKind.UNKNOWN,
}


# device, inDevice, pid, context, inContext, stream, tid: all that can tell where a row ran
_Place = tuple[Number, Number, Number, Number, Number, Number, Number]


def _lane(place: _Place) -> tuple[int, int, int]:
    """(device, context, stream), -1 for what is not recorded. Stream ids may use all 64 bits."""
    device, in_device, pid, context, in_context, stream, tid = place
    first_device = device if device is not None else in_device
    return (
        wide_int(pid if first_device is None else first_device),
        wide_int(in_context if context is None else context),
        wide_int(tid if stream is None else stream),
    )


class DeviceRows:
    """Device rows in file order. ``has_nodes``: some row says which graph node it is (or that it is none)."""

    def __init__(self) -> None:
        self.table = Growing()
        self.has_nodes = False
        self._lane_of: dict[_Place, int] = {}

    def __len__(self) -> int:
        return len(self.table)

    def add(
        self,
        picked: Picked,
        *,
        kind: SmallArray,
        name: CodeArray,
        lanes: Interner[tuple[int, int, int]],
        collectives: Collectives,
        position: IntArray,
    ) -> None:
        """Append the device rows of one block; ``kind``, ``name`` and ``position`` are (n,)."""
        args = _ARGS.decode([event.args for event in picked.events])
        places = [
            (a.device, a.in_device, event.pid, a.context, a.in_context, a.stream, event.tid)
            for event, a in zip(picked.events, args, strict=True)
        ]
        lane_of = self._lane_of
        for place in dict.fromkeys(places):  # in file order: lane numbers must not depend on hashes
            if place not in lane_of:
                lane_of[place] = lanes[_lane(place)]
        self.has_nodes |= any(a.node is not None for a in args)
        self.table.append(
            start_ns=picked.start_ns,
            end_ns=picked.end_ns,
            kind=kind,
            lane=np.array([lane_of[place] for place in places], dtype=np.int32),
            name=name,
            correlation=np.maximum(int_column([a.correlation for a in args], 0), 0),
            graph_exec=_ids([a.graph for a in args]),
            graph_node=_ids([a.node for a in args]),
            grid=triple_column([a.grid for a in args]),
            block=triple_column([a.block for a in args]),
            registers=int32_column([a.registers for a in args]),
            shared_static=int_column([a.shared for a in args], _NO_ID),
            occupancy_pct=rounded_column([a.occupancy for a in args]),
            bytes=int_column([a.bytes for a in args], _NO_ID),
            copy_kind=_copy_hints(args, kind),
            collective=_collective_codes(picked.events, args, collectives),
            position=position,
        )


def _collective_codes(events: list[Event], args: list[DeviceArgs], collectives: Collectives) -> CodeArray:
    codes = np.full(len(args), -1, dtype=np.int32)
    described = [i for i, a in enumerate(args) if a.collective is not None]
    for i, comm in zip(described, _COMMS.decode([events[i].args for i in described]), strict=True):
        codes[i] = collectives.code(comm)
    return codes


def _ids(values: list[Number]) -> IntArray:
    """Graph and node ids: 0 says "not from a graph"."""
    column = int_column(values, _NO_ID)
    return np.where(column > 0, column, _NO_ID)


def wide_int(value: Number) -> int:
    """An id as a Python int of any size; "stream 7" is 7; -1 for what is not there."""
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        match = _STREAM.fullmatch(value)
        text = match.group(1) if match else value
        try:
            return int(text)
        except ValueError:
            return _NO_ID
    return as_int(value, _NO_ID)


def _copy_hints(args: list[DeviceArgs], kind: SmallArray) -> SmallArray:
    """The direction that ROCm writes as an argument; -1 where the name has to tell."""
    hints = np.full(len(args), -1, dtype=np.int8)
    for i in np.flatnonzero(kind == DeviceKind.COPY).tolist():
        hints[i] = _COPY_KINDS.get(str(args[i].kind).lower(), -1)
    return hints


def copy_kind(name: str) -> tuple[int, int, int]:
    """(CopyKind, MemoryKind of the source, of the target) from the name of a copy; -1 unknown memory."""
    match = _COPY_NAME.match(name)
    if match is not None:
        kind = _COPY_KINDS.get(match.group(1).lower(), CopyKind.UNKNOWN)
        source, target = (_MEMORY_KINDS.get((match.group(i) or "").lower(), -1) for i in (2, 3))
        return int(kind), int(source), int(target)
    match = _HIP_COPY_NAME.search(name)
    if match is None:
        return int(CopyKind.UNKNOWN), -1, -1
    source_side, target_side = match.group(1).lower(), match.group(2).lower()
    if "peer" in (source_side, target_side):
        return int(CopyKind.PTOP), -1, -1
    return int(_COPY_KINDS[f"{source_side[0]}to{target_side[0]}"]), -1, -1
