"""Decoded events -> columns that grow block by block. No Python object is kept per event."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from analyzer.model import CodeArray, HostKind, IntArray, SmallArray
from analyzer.readers.interning import Interner
from analyzer.readers.kineto_json.args import ArgsDecoder, int_column
from analyzer.readers.kineto_json.categories import Role, Roles
from analyzer.readers.kineto_json.collectives import Collectives
from analyzer.readers.kineto_json.cuts import Block
from analyzer.readers.kineto_json.device_rows import DeviceRows
from analyzer.readers.kineto_json.events import (
    TIMES,
    CallArgs,
    CommArgs,
    Event,
    NameArgs,
    Number,
    SyncArgs,
    as_text,
    text_ns,
)
from analyzer.readers.kineto_json.growing import Growing
from analyzer.readers.kineto_json.picker import Picked, Picker
from analyzer.readers.kineto_json.sync_rows import SyncRows
from collectors.secrets import redact

COMM_OP = "record_param_comms"
LEGACY_CPU_PID = "CPU functions"  # torch.autograd.profiler's own exporter, which writes no categories

_CALLS = ArgsDecoder(CallArgs)
_NAMES = ArgsDecoder(NameArgs)
_SYNCS = ArgsDecoder(SyncArgs)
_COMMS = ArgsDecoder(CommArgs)


@dataclass
class Rows:
    """Everything that is kept of one file, in file order. Times are ns as the file has them."""

    names: Interner[str] = field(default_factory=Interner)
    threads: Interner[tuple[Number, Number]] = field(default_factory=Interner)
    lanes: Interner[tuple[int, int, int]] = field(default_factory=Interner)
    host: Growing = field(default_factory=Growing)
    device: DeviceRows = field(default_factory=DeviceRows)
    syncs: SyncRows = field(default_factory=SyncRows)
    flows: Growing = field(default_factory=Growing)
    flow_ids: Interner[bytes] = field(default_factory=Interner)
    comm_ops: Growing = field(default_factory=Growing)
    collectives: Collectives = field(default_factory=Collectives)
    thread_names: dict[tuple[str, str], str] = field(default_factory=dict)
    process_names: dict[str, str] = field(default_factory=dict)
    ignored: Counter[str] = field(default_factory=Counter)
    picker: Picker = field(default_factory=Picker)
    roles: Roles = field(default_factory=Roles)

    def add(self, block: Block) -> None:
        """Take what is of use from one block."""
        events = block.events
        roles = np.array([self.roles[event.cat] for event in events], dtype=np.int8)
        rare = np.flatnonzero((roles != Role.IGNORED) & (roles < Role.HOST))
        if len(rare):
            self._add_rare(block, roles, rare)
        self._add_host(block, roles, np.flatnonzero((roles >= Role.HOST) & (roles < Role.DEVICE)))
        device = np.flatnonzero(roles >= Role.DEVICE)
        if len(device):
            picked = self.picker.pick(block, device)
            if picked is not None:
                self.device.add(
                    picked,
                    kind=(roles[picked.index] - Role.DEVICE).astype(np.int8),
                    name=self.name_codes(picked.events),
                    lanes=self.lanes,
                    collectives=self.collectives,
                    position=picked.index + block.first,
                )

    def _add_host(self, block: Block, roles: SmallArray, index: IntArray) -> None:
        if not len(index):
            return
        picked = self.picker.pick(block, index)
        if picked is None:
            return
        kind = (roles[picked.index] - Role.HOST).astype(np.int8)
        correlation = np.zeros(len(kind), dtype=np.int64)
        calls = np.flatnonzero(kind == HostKind.CALL)
        if len(calls):
            raw = [picked.events[i].args for i in calls.tolist()]
            correlation[calls] = int_column([a.correlation for a in _CALLS.decode(raw)], default=0)
        thread = np.full(len(kind), -1, dtype=np.int32)  # overhead rows name no thread of the program
        threaded = np.flatnonzero(kind != HostKind.OVERHEAD)
        thread[threaded] = self.threads.codes(
            [(picked.events[i].pid, picked.events[i].tid) for i in threaded.tolist()]
        )
        name = self.name_codes(picked.events)
        self.host.append(
            start_ns=picked.start_ns,
            end_ns=picked.end_ns,
            kind=kind,
            thread=thread,
            name=name,
            correlation=np.maximum(correlation, 0),
            position=picked.index + block.first,
        )
        self._add_comm_ops(picked, kind, thread, name)

    def _add_comm_ops(self, picked: Picked, kind: SmallArray, thread: CodeArray, name: CodeArray) -> None:
        """Remember the metadata of collectives that ops carry, for kernels that lack it."""
        if COMM_OP not in self.names:
            return
        rows = np.flatnonzero((kind == HostKind.OP) & (name == self.names[COMM_OP]))
        if not len(rows):
            return
        args = _COMMS.decode([picked.events[i].args for i in rows.tolist()])
        code = np.array([self.collectives.code(a) for a in args], dtype=np.int32)
        rows, code = rows[code >= 0], code[code >= 0]
        self.comm_ops.append(
            start_ns=picked.start_ns[rows], end_ns=picked.end_ns[rows], thread=thread[rows], code=code
        )

    def name_codes(self, events: list[Event]) -> CodeArray:
        """(n,) int32: the code of each event's name, -1 where it has none."""
        names = self.names
        return np.array([-1 if event.name is None else names[event.name] for event in events], dtype=np.int32)

    def _add_rare(self, block: Block, roles: SmallArray, rare: IntArray) -> None:
        """Rows of the small categories."""
        unnamed = rare[roles[rare] == Role.NONE]
        legacy: list[int] = []
        for i in unnamed.tolist():
            event = block.events[i]
            if event.ph == "M":
                self._add_label(event)
            elif event.ph == "X" and event.pid == LEGACY_CPU_PID:
                legacy.append(i)
            elif event.ph == "X":
                self.ignored["(no category)"] += 1
        if legacy:
            roles[legacy] = Role.OP
        for i in rare[roles[rare] == Role.UNKNOWN].tolist():
            self.ignored[block.events[i].cat or ""] += 1
        self._add_flows(block, rare[roles[rare] == Role.FLOW])
        for role in (Role.SYNC, Role.EVENT_RECORD):
            rows = rare[roles[rare] == role]
            picked = self.picker.pick(block, rows) if len(rows) else None
            if picked is not None:
                args = _SYNCS.decode([event.args for event in picked.events])
                self.syncs.add(role, picked.events, args, self.lanes)

    def _add_label(self, event: Event) -> None:
        if event.name not in ("process_name", "thread_name"):
            return
        name = as_text(_NAMES.decode([event.args])[0].name)
        if name is None:
            return
        name = redact(name)  # a process title can be a command line
        if event.name == "process_name":
            self.process_names[str(event.pid)] = name
        else:
            self.thread_names[str(event.pid), str(event.tid)] = name

    def _add_flows(self, block: Block, index: IntArray) -> None:
        if not len(index):
            return
        times = TIMES.decode(block.text)
        kept: list[tuple[int, int, int, int, int]] = []
        for i in index.tolist():
            event = block.events[i]
            at = text_ns(bytes(times[i].ts))
            if at is None or event.ph not in ("s", "f"):
                self.picker.unusable += 1
                continue
            flow_id = self.flow_ids[bytes(event.id)]
            thread = self.threads[event.pid, event.tid]
            kept.append((flow_id, event.ph == "s", thread, at, self.names[(event.cat or "").lower()]))
        table = np.array(kept, dtype=np.int64).reshape(-1, 5)
        self.flows.append(
            id=table[:, 0], starts=table[:, 1], thread=table[:, 2], at_ns=table[:, 3], kind=table[:, 4]
        )
