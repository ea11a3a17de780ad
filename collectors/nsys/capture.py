"""One rank under nsys: run, fetch the report, import it where nsys could not, export, write down what became of it.

The capture is complete if its report was written and exported, whatever the command's exit code; that stands in the
record beside it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from collectors import closing, engines
from collectors.errors import CollectError
from collectors.launch import TIMED_OUT, Identity, identity
from collectors.manifest import Pin, RankRecord, TraceFile
from collectors.nsys import exported, launchers, supervise
from collectors.nsys.installed import Nsys
from collectors.nsys.plan import Wanted, export, importing, plan
from collectors.nsys.turns import SHARED
from collectors.run_folder import RunFolder
from collectors.session import Session

KINDS = {".nsys-rep": "nsys-rep", ".sqlite": "nsys-sqlite", ".qdstrm": "nsys-qdstrm"}
_SOCKET_PATH = 60
"""Longest folder for nsys's temporary files: it makes sockets below, whose paths end at 107 characters."""
_TRIES = 3
"""An nsys 2022 that starts while another one ends fails in about 1 of 25 starts (measured with eight at a time)."""


@dataclass(frozen=True)
class Job:
    """What every rank of this host does. ``limit_s``: for the run, ``finish_s``: for each step after the command."""

    output: str
    nsys: Nsys
    wanted: Wanted
    command: list[str]
    pins: Mapping[str, Pin] = field(default_factory=dict)
    limit_s: float | None = None
    finish_s: float = 600.0


def who_is_it(job: Job, environment: Mapping[str, str]) -> Identity:
    """The rank; around a launcher it stands for several, whose number is not known."""
    who = identity(environment)
    return replace(who, local_rank=None, world_size=None) if launchers.launcher_of(job.command) else who


def capture(job: Job, environment: Mapping[str, str], *, say_notes: bool = True) -> int:
    """Capture this rank. Returns the command's exit code, 124 where the limit ended it.

    ``say_notes``: on standard error, at the end, what the record notes.

    Raises CollectError for whatever keeps the capture from being complete; the record says it too.
    """
    who = who_is_it(job, environment)
    launcher = launchers.launcher_of(job.command)
    folder = RunFolder(job.output)
    folder.refuse_used(who.rank, "nsys")
    session = Session(folder, "nsys", command=job.command, pins=job.pins, environment=environment, who=who)
    with session, _work(folder, who.rank) as work:
        session.note_down(
            profiler="nsys",
            profiler_version=job.nsys.version,
            notes=[launchers.note(launcher)] if launcher else [],
        )
        one = RankCapture(job, session, work, environment)
        try:
            with _told(folder.path):
                ended = one.run()
                files = one.kept()
        except CollectError as error:
            notes = [f"{error.subject}: {error.why}"]
            with _told(folder.path):
                session.finish("failed", one.kept(), exit_code=one.exit_code, notes=notes)
            raise
        if one.unfinished:
            session.finish("killed", files)
            hint = "what it had written was kept; capture again if its end is missing"
            raise CollectError("nsys", one.unfinished, hint)
        session.finish("complete", files, ended_ns=ended.command_ended_ns, exit_code=one.exit_code)
        if say_notes:
            said = say_what_is_noted([session.record], named=who.launcher != "plain")
            sys.stderr.write(said)
        sys.stderr.write(closing.captured(f"rank {who.rank} captured", job.output, one.exit_code or 0))
        return TIMED_OUT if ended.why == supervise.LIMIT else one.exit_code or 0


def say_what_is_noted(records: Sequence[RankRecord], *, named: bool = False) -> str:
    """The notes of the records, and which variables are not in them, as lines."""
    noted = closing.notes({record.rank: record.notes for record in records}, named=named)
    return noted + closing.withheld({record.rank: record.withheld for record in records})


class RankCapture:
    """The steps, and what is known of the command's fate when one of them fails."""

    def __init__(self, job: Job, session: Session, work: Path, environment: Mapping[str, str]) -> None:
        self.job, self.session = job, session
        self.stem = work / f"rank{session.rank}"
        self.exit_code: int | None = None
        self.unfinished = ""
        self._given = environment.get("TMPDIR", "/tmp")
        self._environment = dict(environment)

    def run(self) -> supervise.Ended:
        """All of it, in order. Afterwards report and export stand at the stem."""
        with _temporary(self.stem.parent) as temporary:
            self._environment["TMPDIR"] = str(temporary)
            ended = self._profile()
            self._report(temporary, ended)
            self.export_report(temporary)
        return ended

    def _profile(self) -> supervise.Ended:
        if "," in self._given:
            raise CollectError("TMPDIR", "holds a comma, which nsys cannot pass on", "set another one")
        local = self.session.record.local_rank
        made = plan(
            self.job.wanted,
            self.job.nsys,
            self.stem,
            self.job.command,
            local_rank=local,
            variables=[f"TMPDIR={self._given}"],  # the private one is for nsys alone
        )
        for suffix in KINDS:
            self.session.folder.trace_path(self.session.rank, suffix).unlink(missing_ok=True)
        self.session.note_down(notes=made.notes)
        ended = self._run(made.profile)
        self._say_what_ended_it(ended)
        self.session.note_down(pins={**engines.loaded(ended.files), **self.session.record.pins})
        return ended

    def _run(self, profile: Sequence[str]) -> supervise.Ended:
        """Run nsys, once more where it did not start."""
        for left in reversed(range(_TRIES)):
            ended = supervise.profile(
                profile,
                self._environment,
                secrets.token_hex(8),
                limit_s=self.job.limit_s,
                finish_s=self.job.finish_s,
            )
            if not left or not ended.failed_to_start or any(self._made()):  # a command that ran leaves a file
                break
            sys.stderr.write("note: nsys failed before the command ran; it is started again\n")
            self.session.note_down(notes=["nsys failed before the command ran, and was started again"])
        return ended

    def _made(self) -> Iterator[Path]:
        """Reports and raw streams that nsys has left, also those it had not moved yet."""
        work, temporary = self.stem.parent, Path(self._environment["TMPDIR"])
        for folder in (work, temporary):
            for suffix in (".nsys-rep", ".qdstrm"):
                yield from folder.glob(f"*{suffix}")

    def _say_what_ended_it(self, ended: supervise.Ended) -> None:
        if ended.exit_code is None:
            after = "command" if ended.why == supervise.HUNG else "limit"
            self._unfinished(f"did not end within {self.job.finish_s:g} s after the {after} and was killed")
        elif ended.why == supervise.LIMIT:
            self.session.note_down(notes=[f"ended at the limit of {self.job.limit_s:g} s"])
        elif self._at_bound(ended):
            bound = self.job.wanted.bound_s
            self.session.note_down(
                notes=[f"the capture was bounded to {bound} s (--duration); nsys ends the command then"]
            )

    def _at_bound(self, ended: supervise.Ended) -> bool:
        wanted = self.job.wanted
        lasted_s = (ended.ended_ns - ended.started_ns) / 1e9
        return bool(wanted.bound_s) and lasted_s > wanted.delay_s + wanted.bound_s

    def _command_code(self, ended: supervise.Ended) -> int | None:
        """The command's exit code as nsys gives it, where that is certain."""
        on_signal = ended.signalled or bool(ended.why) or self._at_bound(ended)
        if on_signal and ended.exit_code == 0:
            # nsys 2022 sometimes ends so before the command's own code has reached it.
            self.session.note_down(notes=["ended on a signal: the command's exit code is not known"])
            return None
        return ended.exit_code

    def _unfinished(self, why: str) -> None:
        self.unfinished = why
        self.session.note_down(notes=[f"nsys {why}"])

    def _report(self, temporary: Path, ended: supervise.Ended) -> None:
        """Have a report at the stem, importing the raw stream where that is all there is."""
        report, stream = self.stem.with_suffix(".nsys-rep"), self.stem.with_suffix(".qdstrm")
        left = [*temporary.glob("nsys-report-*.qdstrm")]  # where nsys writes until the capture has ended
        if left and not stream.exists() and not report.exists():
            shutil.move(left[0], stream)
            if not self.unfinished:
                self._unfinished("did not finish its raw stream")
        if not stream.exists() and not report.exists():
            how = "was killed" if ended.exit_code is None else f"ended with exit code {ended.exit_code}"
            raise CollectError("nsys", f"wrote no report; it {how}", self._why_none(ended))
        if not self.unfinished:
            self.exit_code = self._command_code(ended)
        if stream.exists() and (self.unfinished or not report.exists()):
            self._import(stream, report, temporary)

    def _import(self, stream: Path, report: Path, temporary: Path) -> None:
        command = importing(self.job.nsys, self.stem)
        if command is None:
            by_hand = f"QdstrmImporter -i rank{self.session.rank}.qdstrm"
            hint = f"on a machine with the whole Nsight Systems, run: {by_hand}"
            raise CollectError("nsys", "left a raw stream, and its importer is not installed", hint)
        report.unlink(missing_ok=True)  # the importer overwrites nothing
        code, words = supervise.tool(command, self._environment, temporary / "import.log", self.job.finish_s)
        if code != 0 or not report.exists():
            why = _failed(code, words, self.job.finish_s)
            raise CollectError("QdstrmImporter", why, f"the raw stream is kept; {self._room()}")
        stream.unlink()
        if not self.unfinished:
            note = "nsys found no importer, and may have said so: the collector imported the report itself"
            self.session.note_down(notes=[note])

    def _why_none(self, ended: supervise.Ended) -> str:
        wanted = self.job.wanted
        if ended.never_ran and any(SHARED.glob("NSys-*")):
            return (
                "the command was not seen to run: see the messages of nsys above; an nsys that was killed may have "
                f"left its lock: while no nsys runs, remove {SHARED}/NSys-*"
            )
        if wanted.range_name is not None:
            return f"check that a range is called exactly {wanted.range_name!r}, and its domain"
        if wanted.profiler_api:
            return "check that the program calls cudaProfilerStart"
        return f"see its messages above; check --delay; {self._room()}"

    def _room(self) -> str:
        free = shutil.disk_usage(self.session.folder.path).free
        return f"check the room for files ({free >> 20} MiB free)"

    def export_report(self, temporary: Path) -> None:
        """Report to SQLite. Raises CollectError where that fails; the report stays, the half file does not."""
        rank, path = self.session.rank, self.stem.with_suffix(".sqlite")
        command = export(self.job.nsys, self.stem)
        code, words = supervise.tool(command, self._environment, temporary / "export.log", self.job.finish_s)
        why, holds_events = exported.check(path)
        if code != 0 or why:
            path.unlink(missing_ok=True)
            reason = f"{_failed(code, words, self.job.finish_s)}{f'; {why}' if why else ''}"
            again = f"nsys export --type sqlite -o rank{rank}.sqlite rank{rank}.nsys-rep"
            raise CollectError(
                "nsys export", reason, f"the report is kept; with this or a newer nsys, run: {again}"
            )
        try:
            removed = exported.remove_environment(path)
        except sqlite3.Error as error:
            path.unlink(missing_ok=True)
            raise CollectError("nsys export", f"the file cannot be changed ({error})", "make room") from error
        if removed:
            self.session.note_down(
                notes=[
                    f"{removed} environment variables were removed from the .sqlite; the .nsys-rep holds them"
                ]
            )
        if not holds_events:
            self.session.note_down(notes=["the capture holds no events"])

    def kept(self) -> list[TraceFile]:
        """Move what is finished into the run folder and describe it."""
        folder, rank = self.session.folder, self.session.rank
        files: list[TraceFile] = []
        for suffix, kind in KINDS.items():
            made = self.stem.with_suffix(suffix)
            if made.exists():
                path = folder.trace_path(rank, suffix)
                made.replace(path)
                files.append(folder.describe(path, kind))
        return files


def _failed(code: int | None, words: str, limit_s: float) -> str:
    return f"did not end within {limit_s:g} s" if code is None else f"failed (exit code {code}): {words}"


@contextlib.contextmanager
def _told(where: Path) -> Iterator[None]:
    """What the system refuses (no room, no right) becomes an error of ours."""
    try:
        yield
    except OSError as error:
        raise CollectError(
            str(where), f"cannot be written ({error.strerror})", "make room, or pass another folder with -o"
        ) from error


@contextlib.contextmanager
def _work(folder: RunFolder, rank: int) -> Iterator[Path]:
    """A folder for files that are not finished, beside those that are, gone afterwards."""
    with _told(folder.path):
        path = Path(tempfile.mkdtemp(prefix=f".nsys-rank{rank}-", dir=folder.path))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _temporary(work: Path) -> Iterator[Path]:
    """For nsys's temporary files: the raw stream grows there, so on the run's disk where the path is short enough."""
    inside = work.absolute() / "tmp"
    if len(os.fsencode(inside)) <= _SOCKET_PATH:
        inside.mkdir()
        yield inside
        return
    path = Path(tempfile.mkdtemp(prefix="nsys-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
