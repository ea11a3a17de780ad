"""One command as several plain processes on this host, each told which rank it is."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping, Sequence

from collectors.errors import CollectError
from collectors.launch import end, rank_environment, signals_to


def run_ranks(command: Sequence[str], count: int, environment: Mapping[str, str]) -> list[int]:
    """Run ``count`` ranks of a command to their ends and pass signals on to all. Returns their exit codes.

    128 + signal for one that a signal ended. A rank that fails leaves the others running. ``MASTER_ADDR`` and
    ``MASTER_PORT`` are set where the environment has none, so that torch.distributed finds rank 0. Raises
    CollectError where the command cannot be started.
    """
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port()), **environment}
    processes: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int) -> None:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, number)

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
        codes = [process.wait() for process in processes]
    return [128 - code if code < 0 else code for code in codes]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port
