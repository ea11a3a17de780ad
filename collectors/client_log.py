"""The token log as a file: written line by line beside its place, moved there when it is whole."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

from collectors.client_telling import Line
from collectors.errors import CollectError


class TokenLog:
    """``with TokenLog(path) as log: log.write(lines)``; several threads may write.

    Without ``finish`` no file is left.
    """

    def __init__(self, path: Path) -> None:
        """Raises CollectError where the file cannot be made."""
        self._path = path
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}")
        self._lock = threading.Lock()
        with self._telling():
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
        with self._lock, self._telling():
            self._file.write(text)

    def finish(self) -> Path:
        """Put the file in its place."""
        with self._telling():
            self._file.flush()
            os.fsync(self._file.fileno())
            self._temporary.replace(self._path)
        return self._path

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CollectError(
                str(self._path), f"cannot be written ({error.strerror})", "make room, or pass another folder"
            ) from error
