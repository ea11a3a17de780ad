"""Runs nsys under limits: it can hang, also after the command has ended, and then what it wrote is to be kept."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from collectors import launch
from collectors.errors import CollectError
from collectors.nsys import processes, turns

LIMIT, HUNG = "limit", "hung"
POLL_S = 0.2
"""How often is looked whether the command still runs."""
_START_POLL_S = 0.05
"""The same before it was first seen, so that a short one is."""
_TURN_S = 20.0
"""How long the next nsys waits for a command that is not seen to run."""
_AGENT_S = 5.0
"""For nsys's agent to end by itself: one that is killed meanwhile can leave the memory it shares locked."""
_LATER = 0.25
"""The next look at what the command has loaded is so much later, of the time since it began."""
_KILL_S = 5.0
_COMMAND_S = 30.0
_WORDS = 400


@dataclass(frozen=True)
class Ended:
    """How nsys ended. ``exit_code``: the command's, which nsys passes on; None where nsys had to be killed.

    ``why``: empty where nsys ended by itself, else ``limit`` or ``hung``. ``signalled``: a signal was passed on to it.
    ``command_ended_ns``: when a command that ended by itself was last seen to run, at most ``POLL_S`` before its end.
    ``files``: those of installed Python packages that the command was seen to have loaded. ``left_over``:
    whether nsys's agent had to be killed after nsys had ended.
    """

    exit_code: int | None
    why: str
    started_ns: int
    ended_ns: int
    signalled: bool = False
    command_ended_ns: int | None = None
    files: frozenset[str] = frozenset()
    left_over: bool = False

    @property
    def never_ran(self) -> bool:
        """Whether nsys failed by itself, and the command was never seen to run."""
        return bool(self.exit_code) and not self.why and self.command_ended_ns is None

    @property
    def failed_to_start(self) -> bool:
        """Whether nsys failed so surely before it ran the command that it may be started again."""
        return self.never_ran and self.left_over and not self.signalled


def profile(
    command: Sequence[str],
    environment: Mapping[str, str],
    token: str,
    *,
    limit_s: float | None,
    finish_s: float,
) -> Ended:
    """Run ``nsys profile``. ``limit_s``: seconds for all of it; ``finish_s``: for nsys after the command.

    Until the command is first seen to run, no other nsys of this host starts.

    At the limit nsys is asked to stop: it ends the command and writes its report. What does not end then is killed,
    of the processes that carry the token. Raises CollectError where nsys cannot be started.
    """
    environment = {**environment, processes.VARIABLE: token}
    with turns.turn() as turn:
        started = time.time_ns()
        try:
            process = subprocess.Popen(command, env=environment, start_new_session=True)
        except OSError as error:
            raise CollectError(command[0], f"cannot be started ({error.strerror})", "check --nsys") from error
        with launch.passing_signals_on(process) as passed:
            watch = _Watch(process, token, finish_s, turn)
            why = _wait(process, watch, None if limit_s is None else time.monotonic() + limit_s)
            code = process.poll() if not why else _stop(process, token, why, finish_s)
            ended = time.time_ns()
            left_over = code is not None and processes.end_nsys(token, _AGENT_S)
            if code is None:
                processes.end_all(token)
    if code is not None and code < 0:
        code = 128 - code
    return Ended(
        code, why, started, ended,
        signalled=bool(passed),
        command_ended_ns=None if why else watch.last_seen_ns,
        files=frozenset(watch.files),
        left_over=left_over,
    )  # fmt: skip


class _Watch:
    """Notices that the command is gone and nsys is not. Looks at the whole machine only when what it knew has ended."""

    def __init__(
        self, process: subprocess.Popen[bytes], token: str, finish_s: float, turn: turns.Turn
    ) -> None:
        self._process, self._token, self._finish_s, self._turn = process, token, finish_s, turn
        self._known: set[int] = set()
        self._seen_s = time.monotonic()
        self.last_seen_ns: int | None = None
        """When the command was last seen to run, wall clock."""
        self.files: set[str] = set()
        """Of installed packages, that the command was seen to have loaded."""
        self._began_s = self._look_s = 0.0
        self._next_s = 0.0

    @property
    def started(self) -> bool:
        """Whether the command was seen to run."""
        return self.last_seen_ns is not None

    def hung(self) -> bool:
        """Whether nsys has gone on for too long without a command."""
        now = time.monotonic()
        self._known = {pid for pid in self._known if processes.alive(pid)}
        if not self._known and now >= self._next_s:
            self._known = processes.command_pids(self._token, self._process.pid)
            self._next_s = now + (1.0 if self.started else 0.0)
        if self._known:
            if not self.started:
                self._began_s = now
                self._turn.end()
            self._seen_s, self.last_seen_ns = now, time.time_ns()
            self._look(now)
        elif not self.started and now - self._seen_s > _TURN_S:
            self._turn.end()
        return now - self._seen_s > self._finish_s

    def _look(self, now: float) -> None:
        """Rarer and rarer, as it holds the command up for a moment: engines are loaded early."""
        if now >= self._look_s:
            self._known |= processes.command_pids(self._token, self._process.pid)  # what it started since
            self.files |= processes.installed_files(self._known)
            self._look_s = now + _LATER * (now - self._began_s)


def _wait(process: subprocess.Popen[bytes], watch: _Watch, until_s: float | None) -> str:
    while True:
        try:
            process.wait(POLL_S if watch.started else _START_POLL_S)
        except subprocess.TimeoutExpired:
            if until_s is not None and time.monotonic() > until_s:
                return LIMIT
            if watch.hung():
                return HUNG
        else:
            return ""


def _stop(process: subprocess.Popen[bytes], token: str, why: str, finish_s: float) -> int | None:
    """Its exit code, None where it had to be killed."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(min(_COMMAND_S, finish_s) if why == LIMIT else _KILL_S)
    if why == LIMIT:
        processes.end_command(token, process.pid)  # a command that ignores SIGTERM, for which nsys waits
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(finish_s)
    processes.end_all(token)
    launch.end(process, 0)
    return None


def tool(
    command: Sequence[str], environment: Mapping[str, str], said: Path, limit_s: float
) -> tuple[int | None, str]:
    """Run the importer or the exporter: its exit code, None past the limit, and its last words (file ``said``)."""
    with said.open("wb") as file:
        try:
            process = subprocess.Popen(
                command,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return 127, f"cannot be started ({error.strerror})"
        with launch.passing_signals_on(process):
            try:
                code: int | None = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                launch.end(process, _KILL_S)
                code = None
    lines = said.read_text(errors="replace").replace("\r", "\n").splitlines()
    kept = [line.strip() for line in lines if line.strip() and "%" not in line]  # without progress bars
    return code, " ".join(kept)[-_WORDS:] or "it said nothing"
