"""Binary ``.nsys-rep`` reports: only nsys itself can read them, so they are exported with it first."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from analyzer.errors import TraceError
from analyzer.readers.nsys_sqlite.bulk import Database
from analyzer.readers.nsys_sqlite.reader import has_event_table

MAGIC = b"NVIDIA Tegra Profiler Report"
"""First bytes of a report, seen in reports of 2022 and 2023; the name of the file proves nothing."""

EXPORT_TIMEOUT_S = 1800.0
_REASON_LENGTH = 400


def looks_like(path: Path) -> bool:
    """Whether the file is a binary report of Nsight Systems, decided by its first bytes."""
    with path.open("rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def export_command(report: Path, product: Path, nsys: str = "nsys") -> list[str]:
    """The command line that exports ``report`` to the SQLite file ``product``, an existing one replaced."""
    return [
        nsys,
        "export",
        "--type",
        "sqlite",
        "--force-overwrite",
        "true",
        "-o",
        str(product),
        str(report),
    ]


def export_report(path: Path, out_dir: Path, timeout_s: float = EXPORT_TIMEOUT_S) -> Path:
    """Exports a report into ``out_dir`` (created) with the nsys on PATH; nothing is written elsewhere.

    Returns the path of the SQLite file, which has at least one table of events. Raises ``TraceError`` with
    the command to run elsewhere and nsys's own reason where there is no nsys, it refuses, does not end in
    ``timeout_s`` seconds, or leaves a stub behind (an nsys older than the report does).
    """
    nsys = shutil.which("nsys")
    if nsys is None:
        raise _refused(path, "a binary report can only be read by nsys, which is not on PATH")
    out_dir.mkdir(parents=True, exist_ok=True)
    product = out_dir.resolve() / f"{path.stem}.sqlite"
    product.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="nsys-", dir=out_dir) as scratch:
        code, said = _run(export_command(path.resolve(), product, nsys), Path(scratch), path, timeout_s)
    if code != 0 or not product.exists():
        product.unlink(missing_ok=True)
        raise _refused(path, f"nsys export failed (exit status {code}): {said}")
    _verify(path, product, said)
    return product


def _run(command: list[str], scratch: Path, report: Path, timeout_s: float) -> tuple[int, str]:
    """Exit status and the last words of nsys."""
    environment = {**os.environ, "TMPDIR": str(scratch)}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            cwd=scratch,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _refused(report, f"nsys export did not end within {timeout_s:g} seconds") from None
    except OSError as error:
        raise _refused(report, f"nsys cannot be started: {error.strerror}") from error
    lines = done.stdout.decode("utf-8", "replace").split("\n")
    said = " ".join(line.strip() for line in lines if line.strip())
    return done.returncode, said[-_REASON_LENGTH:] or "it said nothing"


def _verify(report: Path, product: Path, said: str) -> None:
    """Refuses a stub: an nsys older than the report may fail midway and still leave a database."""
    try:
        with Database(product) as database:
            usable = has_event_table(database)
    except TraceError as error:
        product.unlink()
        raise _refused(report, f"nsys export left an unreadable file: {error.why}") from error
    if not usable:
        product.unlink()
        raise _refused(report, f"nsys export left a file without events: {said}")


def _refused(report: Path, why: str) -> TraceError:
    command = shlex.join(export_command(report, Path(f"{report.stem}.sqlite")))
    hint = f"on a machine with the nsys that recorded it, or a newer one, run: {command}"
    return TraceError(str(report), "", why, f"{hint} - then give the .sqlite file")
