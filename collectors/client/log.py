"""The token log as a file, moved to its place when it is whole; and where answers wait until the run is over."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from collectors.client.answer import Finished, Line
from collectors.client.wire import Read
from collectors.errors import CollectError


class Spool:
    """Finished requests on disk, in a file without a name: memory holds one answer per open request.

    ``put`` from several threads; iterating gives them by number.
    """

    def __init__(self, folder: Path) -> None:
        """Raises CollectError where the file cannot be made."""
        self._folder = folder
        self._lock = threading.Lock()
        self._places: dict[int, int] = {}
        with _told(folder):
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._file.close()

    def put(self, finished: Finished) -> None:
        """Take a request. Raises CollectError where the disk is full."""
        reads = [tuple(read) for read in finished.exchange.reads]
        bare = replace(finished, exchange=replace(finished.exchange, reads=[]))
        with self._lock, _told(self._folder):
            self._places[finished.number] = self._file.tell()
            pickle.dump((bare, reads), self._file)

    def __iter__(self) -> Iterator[Finished]:
        for _, place in sorted(self._places.items()):
            with _told(self._folder):
                self._file.seek(place)
            bare, reads = pickle.load(self._file)
            bare.exchange.reads.extend(Read(*read) for read in reads)
            yield bare


class TokenLog:
    """``with TokenLog(path) as log: log.write(lines)``. Without ``finish`` no file is left."""

    def __init__(self, path: Path) -> None:
        """Raises CollectError where the file cannot be made."""
        self._path = path
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}")
        with _told(self._path):
            self._file = self._temporary.open("w", encoding="ascii")

    def __enter__(self) -> TokenLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        self._temporary.unlink(missing_ok=True)

    def write(self, lines: Sequence[Line]) -> None:
        """Add lines, together. Raises CollectError where the disk is full."""
        text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)
        with _told(self._path):
            self._file.write(text)

    def finish(self) -> Path:
        """Put the file in its place."""
        with _told(self._path):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._temporary.replace(self._path)
        return self._path


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CollectError(
            str(path), f"cannot be written ({error.strerror})", "make room, or pass another folder"
        ) from error
