"""Which reader a file belongs to, decided by its content; and which files a path stands for."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from analyzer.errors import TraceError
from analyzer.model import Trace
from analyzer.progress import NoProgress, Progress
from analyzer.readers import describe
from analyzer.readers.run import how_a_run_ended

_HEAD_BYTES = 256
_JSON_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*[{\[]")
_GLOB = re.compile(r"[*?\[]")
_DIGITS = re.compile(r"(\d+)")
_OWN_FOLDERS = frozenset(("diagnosis", "comparison"))  # what this tool writes beside its reports
_NO_PROGRESS = NoProgress()


def read_file(path: str | Path, progress: Progress = _NO_PROGRESS) -> list[Trace]:
    """The traces of one file, whatever its name. Raises ``TraceError`` that says what it looks like.

    A binary report is exported into a temporary folder first; ``Source.path`` stays the given path.
    """
    path = Path(path)
    head = _head(path)
    if head.startswith(describe.NSYS_REPORT_MAGIC):
        return _read_report(path, progress)
    if head.startswith(describe.SQLITE_MAGIC):
        from analyzer.readers import nsys_sqlite

        if not nsys_sqlite.looks_like(path):
            why = "is a SQLite database, but none of its tables is one of Nsight Systems"
            raise TraceError(str(path), "", why, describe.ACCEPTED)
        return nsys_sqlite.read(path, progress)
    if head.startswith(describe.GZIP_MAGIC) or _JSON_START.match(head):
        from analyzer.readers import kineto_json

        return kineto_json.read(path, progress)
    what = describe.looks_like(head)
    raise TraceError(str(path), "", f"is no trace: it looks like {what}", describe.ACCEPTED)


def is_trace(path: Path) -> bool:
    """Whether the content of a file is of a kind that ``read_file`` accepts."""
    head = _head(path)
    if head.startswith(describe.NSYS_REPORT_MAGIC):
        return True
    if head.startswith(describe.SQLITE_MAGIC):
        from analyzer.readers import nsys_sqlite

        return nsys_sqlite.looks_like(path)
    if head.startswith(describe.GZIP_MAGIC) or _JSON_START.match(head):
        from analyzer.readers import kineto_json

        return kineto_json.looks_like(path)
    return False


def expand(paths: Sequence[str | Path]) -> list[Path]:
    """The trace files that ``paths`` stand for, each once, in natural order (rank2 before rank10).

    A file is taken as it is. Folders (searched recursively) and glob patterns yield the files whose content
    is that of a trace, without this tool's own outputs. Where an exported ``x.sqlite`` lies beside its
    ``x.nsys-rep``, the export is taken alone. Raises ``TraceError`` for a path that does not exist and for
    a folder or pattern without a trace.
    """
    found: dict[Path, Path] = {}
    for given in paths:
        for path in _expand_one(given):
            found.setdefault(path.resolve(), path)
    exports = {path.with_suffix("") for path in found if path.suffix == ".sqlite"}
    kept = [
        path
        for resolved, path in found.items()
        if resolved.suffix != ".nsys-rep" or resolved.with_suffix("") not in exports
    ]
    return sorted(kept, key=natural_key)


def natural_key(path: Path | str) -> tuple[tuple[tuple[int, int, str], ...], ...]:
    """Sort key in which numbers inside names count as numbers."""
    return tuple(
        tuple((0, int(piece), "") if piece.isdigit() else (1, 0, piece) for piece in _DIGITS.split(part))
        for part in Path(path).parts
    )


def _expand_one(given: str | Path) -> list[Path]:
    path = Path(given).expanduser()
    if path.is_dir():
        return _traces_in(path)
    if path.exists():
        return [path]
    if not _GLOB.search(str(path)):
        raise TraceError(str(given), "", "does not exist", "check the path")
    first = next(i for i, part in enumerate(path.parts) if _GLOB.search(part))
    matches = sorted(Path(*path.parts[:first]).glob(str(Path(*path.parts[first:]))))
    traces = [match for match in matches if match.is_file() and is_trace(match)]
    for match in matches:
        if match.is_dir() and not path.name.startswith("**"):
            traces += _walk(match)
    if not traces:
        why = f"the pattern matches {len(matches)} paths, none of them a trace"
        raise TraceError(str(given), "", why, "check the pattern; " + describe.ACCEPTED)
    return traces


def _traces_in(folder: Path) -> list[Path]:
    traces = _walk(folder)
    if not traces:
        if any(folder.glob("rank*.tokens.jsonl")):
            why = "holds a client's token log and no trace"
            hint = "give the folder of the engine's capture, and this one with --token-log"
            raise TraceError(str(folder), "", why, hint)
        untraced = how_a_run_ended(folder)
        if untraced:
            why = f"no rank of this run left a trace ({untraced})"
            raise TraceError(str(folder), "", why, "see the notes in its manifest.json, and capture again")
        raise TraceError(str(folder), "", "the folder holds no trace", describe.ACCEPTED)
    return traces


def _walk(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not _OWN_FOLDERS & set(path.relative_to(folder).parts[:-1]) and is_trace(path)
    ]


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except IsADirectoryError as error:
        raise TraceError(str(path), "", "is a folder", "give the trace files in it") from error
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
        raise TraceError(str(path), "", why, "check the path and its permissions") from error


def _read_report(path: Path, progress: Progress) -> list[Trace]:
    from analyzer.readers import nsys_report, nsys_sqlite

    with tempfile.TemporaryDirectory(prefix="tracebound-") as folder:
        exported = nsys_report.export_report(path, Path(folder))
        try:
            traces = nsys_sqlite.read(exported, progress)
        except TraceError as error:
            raise TraceError(str(path), error.where, error.why, error.hint) from error
    return [replace(trace, source=replace(trace.source, path=str(path))) for trace in traces]
