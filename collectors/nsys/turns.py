"""Two nsys that start at one moment can keep each other from starting: those of one host take turns.

Their agents share memory below ``/dev/shm``, so the turn is a lock on that folder: it holds for every container and
user with whom that is shared, and leaves no file behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from collectors.errors import CollectError
from collectors.launch import signals_to

SHARED = Path("/dev/shm")
_WAIT_S = 60.0
"""Longest wait: seven others, each of which takes seconds on a busy host. Then this one starts all the same."""
_POLL_S = 0.05


@dataclass(frozen=True)
class Turn:
    """``lock``: a descriptor that holds the lock; None for one that starts without."""

    lock: int | None

    def end(self) -> None:
        """Let the next one start. May be called again."""
        if self.lock is not None:
            fcntl.flock(self.lock, fcntl.LOCK_UN)


@contextlib.contextmanager
def turn(wait_s: float = _WAIT_S) -> Iterator[Turn]:
    """While the block runs, or until it ends its turn, no other nsys of a collector starts.

    Without a ``/dev/shm`` that can be opened there are no turns. Raises CollectError on SIGINT or SIGTERM during the
    wait.
    """
    try:
        folder = os.open(SHARED, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield Turn(None)
        return
    try:
        yield Turn(folder if _taken(folder, time.monotonic() + wait_s) else None)
    finally:
        os.close(folder)


def _taken(folder: int, until_s: float) -> bool:
    """Whether the lock was had in time."""
    told: list[int] = []
    with signals_to(told.append):
        while not told and time.monotonic() < until_s:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            time.sleep(_POLL_S)
    if told:
        why = f"was not started: signal {told[0]} came while another nsys of this host was starting"
        raise CollectError("nsys", why, "run it again")
    return False
