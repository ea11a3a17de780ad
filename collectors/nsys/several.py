"""Several plain processes on this host, each one a rank under a collector of its own."""

from __future__ import annotations

import os
import sys
from multiprocessing import get_context

from collectors.errors import CollectError
from collectors.launch import identity, rank_environment, signals_to
from collectors.nsys import launchers
from collectors.nsys.capture import Job, capture


def capture_all(job: Job, count: int) -> int:
    """Start ``count`` ranks and wait for all. Returns the exit code of the first one whose code is not 0.

    Raises CollectError where this process is a rank itself, or the command starts the ranks.
    """
    who = identity(os.environ)
    if who.launcher != "plain":
        raise CollectError(
            "--processes",
            f"this process is rank {who.rank} already",
            f"leave it to {who.launcher}, or unset its variables",
        )
    launcher = launchers.launcher_of(job.command)
    if launcher is not None:
        raise CollectError("--processes", f"{launcher} starts the ranks already", "leave the option out")
    context = get_context("spawn")
    ranks = [
        context.Process(target=_rank, args=(job, rank, count), name=f"rank {rank}") for rank in range(count)
    ]
    for rank in ranks:
        rank.start()

    def pass_on(number: int) -> None:
        for rank in ranks:
            if rank.is_alive() and rank.pid is not None:
                os.kill(rank.pid, number)

    with signals_to(pass_on):
        for rank in ranks:
            rank.join()
    codes = [rank.exitcode or 0 for rank in ranks]
    return next((code if code > 0 else 128 - code for code in codes if code), 0)


def _rank(job: Job, rank: int, count: int) -> None:
    os.setsid()  # a terminal's Ctrl-C reaches the parent alone, which passes it on once
    os.environ.update(rank_environment(rank, count, {}))
    try:
        code = capture(job, dict(os.environ))
    except CollectError as error:
        sys.stderr.write(f"error: rank {rank}: {error}\n")
        code = error.exit_code
    sys.exit(code)
