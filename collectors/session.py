"""What every collector does around its capture: say who this rank is, what runs, what the clocks and devices are.

A session writes its record at once (status ``running``), so that a rank that is killed leaves a usable trace of
itself, and again at the end.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from collectors import clocks
from collectors.device.bounded import BeforeAndAfter
from collectors.device.pins import pins as device_pins
from collectors.device.short import in_short
from collectors.engines import ENGINES, version
from collectors.launch import Identity, identity
from collectors.manifest import Pin, RankRecord, TraceFile
from collectors.run_folder import RunFolder
from collectors.secrets import recorded_environment, shown_command


class Session:
    """One rank's record while its capture is taken. ``with Session(...) as session: ...; session.finish(...)``."""

    def __init__(
        self,
        folder: RunFolder,
        collector: str,
        *,
        command: Sequence[str],
        pins: Mapping[str, Pin],
        environment: Mapping[str, str] | None = None,
        who: Identity | None = None,
        wait_s: float = 10.0,
        engine_here: bool = True,
    ) -> None:
        """``pins``: declared ones; ``wait_s``: how long to wait for rank 0's clock.

        ``engine_here``: False for a client, whose own environment says nothing about the engine: then neither
        versions nor variables are recorded, and no pin is found. Which engine runs, its collector has to see.
        """
        environment = os.environ if environment is None else environment
        who = who or identity(environment)
        kept, withheld = recorded_environment(environment if engine_here else {})
        self.folder = folder
        self._wait_s = wait_s
        self._environment = environment
        self._open = contextlib.ExitStack()
        self.record = RankRecord(
            rank=who.rank,
            collector=collector,
            status="running",
            world_size=who.world_size,
            local_rank=who.local_rank,
            host=socket.gethostname(),
            boot_id=clocks.boot_id(),
            pid=os.getpid(),
            launcher=who.launcher,
            command=shown_command(command),
            started_ns=time.time_ns(),
            collector_version=version("tracebound"),
            anchors=[clocks.anchor()],
            versions=versions() if engine_here else {},
            environment=kept,
            withheld=withheld,
            pins={**(found_pins(command) if engine_here else {}), **pins},
        )

    @property
    def rank(self) -> int:
        """The number of the rank."""
        return self.record.rank

    def __enter__(self) -> Session:
        """Write the first record; bound the clocks where there are other ranks."""
        devices = self._devices = BeforeAndAfter(self._environment)  # asks beside what follows
        self._open.callback(devices.close)
        several = (self.record.world_size or 1) > 1
        if several and self.rank == 0:
            self._open.enter_context(clocks.answering(self.folder.path))
        self.note_down()
        if several and self.rank != 0:
            found, why = clocks.bound(self.folder.path, wait_s=self._wait_s)
            self.note_down(clock_bound=found, notes=[f"clock not compared: {why}"] if why else [])
        pins = device_pins(devices.before())
        self.note_down(device=self._told_devices(), pins={**pins, **self.record.pins})
        return self

    def __exit__(self, *_: object) -> None:
        """Stop answering; a session that was not finished stays ``running``, which readers take for cut off."""
        self._open.close()

    def note_down(self, *, notes: Sequence[str] = (), **fields: Any) -> None:
        """Put what is known by now into the run folder; ``notes`` are added to those before."""
        self.record = replace(self.record, notes=[*self.record.notes, *notes], **fields)
        self.folder.write(self.record)

    def finish(
        self, status: str, files: Sequence[TraceFile] = (), *, ended_ns: int | None = None, **fields: Any
    ) -> None:
        """The last record: ``complete``, ``failed`` or ``killed``.

        ``ended_ns``: when what was captured ended, where that was before now: writing a large capture takes seconds.
        """
        self.note_down(
            status=status,
            files=[*self.record.files, *files],
            ended_ns=time.time_ns() if ended_ns is None else ended_ns,
            anchors=[*self.record.anchors, clocks.anchor()],
            **fields,
        )
        self._devices.after()  # not sooner, since a driver may take seconds to answer
        self.note_down(device=self._told_devices())

    def _told_devices(self) -> dict[str, Any]:
        """The snapshots in short; whole they stand in a file of their own."""
        told = self._devices.record
        answered = any(found and "absent" not in found for found in told.values())
        place = self.folder.write_device(self.rank, told) if answered else None
        return {**{when: in_short(found) for when, found in told.items()}, "file": place}


def versions() -> dict[str, str]:
    """Versions of what decides how an engine runs, of those that are installed here; a command may use others."""
    names = (*ENGINES, "triton", "flashinfer-python", "nvidia-nccl-cu12", "nvidia-nccl-cu13", "nvtx")
    found = {name: version(name) for name in names}
    return {name: told for name, told in found.items() if told is not None}


def found_pins(command: Sequence[str]) -> dict[str, Pin]:
    """Pins that the command line tells: the engine's options."""
    if not command:
        return {}
    return {"flags": Pin(" ".join(shown_command([Path(command[0]).name, *command[1:]])), "found")}
