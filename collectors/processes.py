"""One command as several plain processes on this host, each told which rank it is."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from collectors.errors import CollectError
from collectors.launch import end, note_on_threads, rank_environment, signals_to


@dataclass(frozen=True)
class RankEnd:
    """How the process of a rank ended: exit code, 128 + signal where a signal ended it, and when (wall clock, ns)."""

    exit_code: int
    ended_ns: int


def first_failure(ends: Sequence[RankEnd]) -> int | None:
    """The rank that was the first to end with a code other than 0; None where all ended well."""
    failed = [rank for rank, one in enumerate(ends) if one.exit_code]
    return min(failed, key=lambda rank: ends[rank].ended_ns, default=None)


def run_ranks(command: Sequence[str], count: int, environment: Mapping[str, str]) -> list[RankEnd]:
    """Run ``count`` ranks of a command to their ends and pass signals on to all. Returns how each ended.

    A rank that fails leaves the others running. ``MASTER_ADDR`` and
    ``MASTER_PORT`` are set where the environment has none, so that torch.distributed finds rank 0. Raises
    CollectError where the command cannot be started.
    """
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port()), **environment}
    processes: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int) -> None:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, number)

    sys.stderr.write(note_on_threads(count, environment))
    with signals_to(pass_on):
        try:
            for rank in range(count):
                own = rank_environment(rank, count, common)
                processes.append(subprocess.Popen(command, env=own, start_new_session=True))
        except OSError as error:
            for process in processes:
                end(process, 1.0)
            raise CollectError(
                command[0], f"cannot be started ({error.strerror})", "check the command"
            ) from error
        with ThreadPoolExecutor(count) as waiting:
            return list(waiting.map(_end_of, processes))


def _end_of(process: subprocess.Popen[bytes]) -> RankEnd:
    code = process.wait()
    return RankEnd(128 - code if code < 0 else code, time.time_ns())


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port
