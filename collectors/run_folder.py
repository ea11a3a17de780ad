"""The folder of one run: a record per rank, their traces, and the manifest made of them.

```
run/
  manifest.json        all ranks, rebuilt whenever a rank has something new to say
  ranks/rank0.json     what rank 0's collector wrote down
  ranks/device0.json   what NVML said of rank 0's node before and after; not there where nobody answered
  rank0.sqlite         its capture (or rank0.pt.trace.json.gz, rank0.tokens.jsonl)
```

Every file appears whole: written under another name, then moved. Several ranks may write at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from collectors import manifest
from collectors.errors import CollectError
from collectors.manifest import ManifestError, RankRecord, TraceFile

_BLOCK = 1 << 20


class RunFolder:
    """Where a run's files go. Raises CollectError for a folder that cannot be made or written.

    ``look_only``: for what is there already; nothing is made or written.
    """

    def __init__(self, path: str | Path, *, look_only: bool = False) -> None:
        self.path = Path(path)
        self._is_new = not self.path.exists()
        if look_only:
            return
        try:
            self._ranks.mkdir(parents=True, exist_ok=True)
            probe = self.path / f".probe-{os.getpid()}"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise CollectError(
                str(path), f"cannot be written ({error.strerror})", "pass another folder with -o"
            ) from error

    def remove_if_unused(self) -> None:
        """Leave no trace of a run of which nothing was written down: an empty folder is taken away again."""
        with contextlib.suppress(OSError):  # a folder that holds anything stays
            self._ranks.rmdir()
            if self._is_new:
                self.path.rmdir()

    @property
    def _ranks(self) -> Path:
        return self.path / "ranks"

    def record_path(self, rank: int) -> Path:
        """Where the record of a rank stands."""
        return self._ranks / f"rank{rank}.json"

    def trace_path(self, rank: int, suffix: str) -> Path:
        """Where a file of a rank goes: ``rank0.sqlite``."""
        return self.path / f"rank{rank}{suffix}"

    def describe(self, path: Path, kind: str) -> TraceFile:
        """A finished file with its size and checksum."""
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        return TraceFile(
            str(path.relative_to(self.path)), kind, path.stat().st_size, f"sha256:{digest.hexdigest()}"
        )

    def records(self) -> list[RankRecord]:
        """What all ranks wrote down so far. Raises ManifestError for a damaged record."""
        return [manifest.read_record(path) for path in sorted(self._ranks.glob("rank*.json"))]

    def records_of(self, collector: str) -> list[RankRecord]:
        """All records. Raises CollectError where one is damaged, or of another collector."""
        try:
            records = self.records()
        except ManifestError as error:
            raise CollectError(str(self.path), str(error), "pass another folder with -o") from error
        others = sorted({record.collector for record in records} - {collector})
        if others:
            raise CollectError(
                str(self.path), f"holds a capture of the collector {others[0]}", "pass another folder with -o"
            )
        return records

    def refuse_used(self, rank: int, collector: str) -> None:
        """Raises CollectError where the folder holds a whole capture of this rank, or one of another collector.

        What an attempt left that did not come to an end is replaced.
        """
        if any(record.rank == rank and record.status == "complete" for record in self.records_of(collector)):
            raise CollectError(
                str(self.path),
                f"holds the capture of rank {rank} already",
                "pass another folder with -o, or remove this one",
            )

    def write(self, record: RankRecord) -> None:
        """Put down one rank's record and make the manifest anew. Raises CollectError where the disk is full."""
        try:
            with self._locked():
                write_whole(self.record_path(record.rank), manifest.encode_record(record))
                self._rebuild()
        except OSError as error:
            raise self._unwritable(error) from error

    def write_device(self, rank: int, told: Mapping[str, Any]) -> str:
        """Put down a rank's device snapshots and tell the file's path in the folder. Raises CollectError."""
        path = self._ranks / f"device{rank}.json"
        try:
            write_whole(path, json.dumps(told, indent=1, allow_nan=False) + "\n")
        except OSError as error:
            raise self._unwritable(error) from error
        return str(path.relative_to(self.path))

    def _unwritable(self, error: OSError) -> CollectError:
        return CollectError(
            str(self.path), f"cannot be written ({error.strerror})", "make room, or pass another folder"
        )

    def _rebuild(self) -> None:
        path = self.path / manifest.NAME
        run_id, created_ns = uuid.uuid4().hex, time.time_ns()
        if path.exists():
            try:
                before = manifest.read(path)
                run_id, created_ns = before.run_id, before.created_ns
            except ManifestError:
                pass  # a damaged one is made anew from the records
        write_whole(
            path, manifest.encode(manifest.assemble(self.records(), run_id=run_id, created_ns=created_ns))
        )

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self._ranks.mkdir(
            parents=True, exist_ok=True
        )  # another host's command may have ended without a record
        with (self._ranks / ".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all. Raises OSError, the old file stays then."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
