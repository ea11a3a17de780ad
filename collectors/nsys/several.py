"""Several plain processes on this host, each one a rank under a collector of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.context import SpawnProcess

from collectors import closing
from collectors.errors import CollectError
from collectors.launch import identity, note_on_threads, rank_environment, signals_to
from collectors.manifest import RankRecord
from collectors.nsys import launchers
from collectors.nsys.capture import Job, capture, say_what_is_noted
from collectors.nsys.supervise import POLL_S
from collectors.run_folder import RunFolder


def capture_all(job: Job, count: int) -> int:
    """Start ``count`` ranks, whose nsys take turns, and wait for all.

    Returns the exit code of the one whose command failed first. Raises CollectError where this process is a rank
    itself, or the command starts the ranks.
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
    sys.stderr.write(note_on_threads(count, os.environ))
    context = get_context("spawn")
    ranks: list[SpawnProcess] = []
    told: list[int] = []

    def pass_on(number: int) -> None:
        told.append(number)
        for rank in ranks:
            _send(rank, number)

    with signals_to(pass_on):
        for number in range(count):
            if told:
                break
            rank = context.Process(target=_rank, args=(job, number, count), name=f"rank {number}")
            rank.start()
            ranks.append(rank)
            if told:  # while it was started
                _send(rank, told[-1])
        for rank in ranks:
            rank.join()
    records = [
        record for record in RunFolder(job.output, look_only=True).records() if record.rank < len(ranks)
    ]
    sys.stderr.write(say_what_is_noted(records))
    codes = [rank.exitcode or 0 for rank in ranks]
    missed = 128 + told[0] if len(ranks) < count else 0
    ends = {rank: _ended_ns(rank, records) for rank, code in enumerate(codes) if code}
    sys.stderr.write(closing.first_to_end(ends, sure_ns=round(2e9 * POLL_S)))
    failed = sorted(ends, key=lambda rank: (ends[rank] is None, ends[rank] or 0, rank))
    return next((code if code > 0 else 128 - code for code in (codes[rank] for rank in failed)), missed)


def _ended_ns(rank: int, records: Sequence[RankRecord]) -> int | None:
    """When the command of a rank ended, if it did of itself; its collector may have failed before or after."""
    return next(
        (record.ended_ns for record in records if record.rank == rank and record.status == "complete"), None
    )


def _send(rank: SpawnProcess, number: int) -> None:
    if rank.is_alive() and rank.pid is not None:
        os.kill(rank.pid, number)


def _rank(job: Job, rank: int, count: int) -> None:
    os.setsid()  # a terminal's Ctrl-C reaches the parent alone, which passes it on once
    os.environ.update(rank_environment(rank, count, os.environ))
    try:
        code = capture(job, dict(os.environ), say_notes=False)
    except CollectError as error:
        sys.stderr.write(f"error: rank {rank}: {error}\n")
        code = error.exit_code
    sys.exit(code)
