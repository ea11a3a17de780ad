"""Which kind of token log a file is, and which token logs lie in a folder."""

from __future__ import annotations

from pathlib import Path

from analyzer.errors import TraceError
from analyzer.readers.service_log import client_log, generic
from analyzer.tokens import TokenLog

CLIENT_SUFFIX = ".tokens.jsonl"
_OWN_FOLDERS = frozenset(("diagnosis", "comparison"))


def read_token_log(path: str | Path) -> TokenLog:
    """Read one log: Parquet, JSON lines, CSV with a header, or the log of ``tracebound collect client``.

    Decided by content. Raises TraceError for what cannot be read or holds no token.
    """
    path = Path(path)
    head = _head(path)
    if head.startswith(b"PAR1"):
        return generic.read_parquet(path)
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return client_log.read(path) if is_client_log(path) else generic.read_jsonl(path)
    if b"\x00" in head:
        raise TraceError(
            str(path), "", "is no token log: neither text nor Parquet", "give CSV, JSON lines or Parquet"
        )
    return generic.read_csv(path)


def is_client_log(path: Path) -> bool:
    """Whether a file begins like the log that this project's client writes."""
    return client_log.FORMAT.encode() in _head(path)


def find_logs(folder: Path) -> list[Path]:
    """The logs of this project's client in a folder and below, by name."""
    return [
        path
        for path in sorted(folder.rglob(f"*{CLIENT_SUFFIX}"))
        if path.is_file()
        and not _OWN_FOLDERS & set(path.relative_to(folder).parts[:-1])
        and is_client_log(path)
    ]


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(4096)
    except IsADirectoryError as error:
        raise TraceError(str(path), "", "is a folder", "give the token log in it") from error
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
        raise TraceError(str(path), "", why, "check the path and its permissions") from error
