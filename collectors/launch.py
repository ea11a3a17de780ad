"""One collector per rank: who this process is, and how a command is run under supervision.

Works under torchrun, mpirun, srun and for plain processes; nothing but the environment tells which rank this is.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from collectors.errors import CollectError

_LAUNCHERS = (
    ("torchrun", "RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("mpirun", "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    ("mpirun", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE"),
    ("srun", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
)
"""Launcher and its variables for rank, rank on this host, and number of ranks. The innermost launcher comes first."""
VARIABLES = frozenset(name for _, *names in _LAUNCHERS for name in names)
"""All variables that tell a rank."""
LAUNCHER = "TRACEBOUND_LAUNCHER"
"""Says that the variables of torchrun were set by ``--processes`` of a collector."""
PROCESSES = "processes"
_TORCHRUN = "TORCHELASTIC_RUN_ID"
"""torchrun itself sets this beside the ranks."""
THREADS = "OMP_NUM_THREADS"
TIMED_OUT = 124
"""Exit code of a command that ran past its time limit, as ``timeout`` has it."""


@dataclass(frozen=True)
class Identity:
    """Which rank this process is; ``launcher``: ``processes`` where a collector's ``--processes`` started it.

    ``plain`` where nothing in the environment tells.
    """

    rank: int
    local_rank: int | None
    world_size: int | None
    launcher: str


def identity(environment: Mapping[str, str]) -> Identity:
    """The rank by the variables of the launcher. Raises CollectError for one that is no number."""
    for launcher, rank, local, size in _LAUNCHERS:
        if rank in environment:
            return Identity(
                _number(environment, rank),
                _number(environment, local) if local in environment else None,
                _number(environment, size) if size in environment else None,
                PROCESSES if launcher == "torchrun" and _is_of_processes(environment) else launcher,
            )
    return Identity(0, None, None, "plain")


def _is_of_processes(environment: Mapping[str, str]) -> bool:
    return environment.get(LAUNCHER) == PROCESSES and _TORCHRUN not in environment


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment[name]
    if not text.isdecimal():
        raise CollectError(name, f"is {text!r}, not a rank's number", "unset it, or start under the launcher")
    return int(text)


def rank_environment(rank: int, world_size: int, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of one of several plain processes on this host, spelled as torchrun does.

    As torchrun does, several processes get one OpenMP thread each where the environment does not say how many: with as
    many as there are cores each, they would take the cores from one another.
    """
    own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world_size), LAUNCHER: PROCESSES}
    threads = {THREADS: "1"} if sets_threads(world_size, environment) else {}
    return {**environment, **threads, **own}


def sets_threads(world_size: int, environment: Mapping[str, str]) -> bool:
    """Whether ``rank_environment`` decides on the number of threads."""
    return world_size > 1 and THREADS not in environment


def note_on_threads(world_size: int, environment: Mapping[str, str]) -> str:
    """A line for standard error where it does; else empty."""
    if not sets_threads(world_size, environment):
        return ""
    return f"note: {THREADS}=1 in each of the {world_size} processes, as torchrun sets it; set it for another number\n"


@dataclass(frozen=True)
class Outcome:
    """How a command ended. ``exit_code``: its own, 128 + signal where a signal ended it, 124 past the limit."""

    exit_code: int
    timed_out: bool
    started_ns: int
    ended_ns: int
    pid: int


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    limit_s: float | None = None,
    grace_s: float = 5.0,
) -> Outcome:
    """Run a command in a process group of its own and pass signals on to it.

    Past ``limit_s`` the group gets SIGTERM, after ``grace_s`` more SIGKILL. Raises CollectError where the command
    cannot be started.
    """
    started = time.time_ns()
    try:
        process = subprocess.Popen(command, env=environment, start_new_session=True)
    except OSError as error:
        raise CollectError(
            command[0], f"cannot be started ({error.strerror})", "check the command"
        ) from error
    with passing_signals_on(process):
        timed_out = False
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            timed_out, code = True, end(process, grace_s)
    if timed_out:
        code = TIMED_OUT
    elif code < 0:
        code = 128 - code
    return Outcome(code, timed_out, started, time.time_ns(), process.pid)


def end(process: subprocess.Popen[bytes], grace_s: float) -> int:
    """End a process with its group, politely first."""
    _signal(process, signal.SIGTERM)
    try:
        return process.wait(grace_s)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)
        return process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    if process.poll() is None:
        os.killpg(process.pid, number)


@contextmanager
def passing_signals_on(process: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """SIGINT and SIGTERM go to the process's group while the block runs; only in the main thread.

    Yields the numbers passed on so far.
    """
    passed: list[int] = []

    def pass_on(number: int) -> None:
        passed.append(number)
        _signal(process, number)

    with signals_to(pass_on):
        yield passed


@contextmanager
def signals_to(handle: Callable[[int], None]) -> Iterator[None]:
    """SIGINT and SIGTERM are handled by their number while the block runs; only in the main thread."""

    def told(number: int, _: FrameType | None) -> None:
        handle(number)

    before = {number: signal.signal(number, told) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
