"""The bytes of a trace file, plain or gzip, as a stream that survives a missing end."""

from __future__ import annotations

import zlib
from pathlib import Path
from types import TracebackType

from analyzer.progress import Progress

GZIP_MAGIC = b"\x1f\x8b"
_CHUNK_BYTES = 1 << 16
_STEP_BYTES = 64  # how finely a damaged chunk is taken apart to keep what precedes the damage


class ByteStream:
    """Reads decompressed bytes; gzip is told by its magic bytes, never by the file's name.

    ``damage`` is None, or says why the compressed stream ended early. Progress is in bytes on disk.
    """

    def __init__(self, path: Path, progress: Progress) -> None:
        self._file = path.open("rb")
        self._progress = progress
        self._pending = self._file.read(len(GZIP_MAGIC))
        self._inflate = zlib.decompressobj(wbits=31) if self._pending == GZIP_MAGIC else None
        self._ended = False
        self.damage: str | None = None

    def __enter__(self) -> ByteStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def read(self, size: int) -> bytes:
        """About ``size`` bytes of text; b"" only at the end of what can be read."""
        parts: list[bytes] = []
        have = 0
        while have < size and not self._ended:
            part = self._next(size - have)
            parts.append(part)
            have += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _next(self, size: int) -> bytes:
        wanted = size if self._inflate is None else _CHUNK_BYTES
        raw = self._pending + self._file.read(wanted)
        self._pending = b""
        self._progress.advance(len(raw))
        if self._inflate is None:
            self._ended = not raw
            return raw
        if not raw:
            self._ended = True
            self.damage = "the gzip stream has no end (the writer was stopped, or the copy is incomplete)"
            return b""
        return self._expand(raw)

    def _expand(self, raw: bytes) -> bytes:
        """The text of one compressed chunk; several gzip members may follow one another."""
        text = b""
        while raw:
            assert self._inflate is not None
            before = self._inflate.copy()
            try:
                text += self._inflate.decompress(raw)
            except zlib.error as error:
                self._ended = True
                self.damage = f"the gzip stream is damaged ({error})"
                return text + _before_damage(before, raw)
            if not self._inflate.eof:
                return text
            raw = self._inflate.unused_data
            if len(raw) < len(GZIP_MAGIC):
                raw += self._file.read(_CHUNK_BYTES)
            if not raw.startswith(GZIP_MAGIC):  # padding after the last member is allowed
                self._ended = True
                return text
            self._inflate = zlib.decompressobj(wbits=31)
        return text


def _before_damage(inflate: zlib._Decompress, raw: bytes) -> bytes:
    """What a damaged chunk still yields up to the damage."""
    text = b""
    for start in range(0, len(raw), _STEP_BYTES):
        try:
            text += inflate.decompress(raw[start : start + _STEP_BYTES])
        except zlib.error:
            return text
    return text
