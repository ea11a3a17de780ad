"""Requests sent as planned: a closed loop that keeps so many open, or an open loop that sends by the clock."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType

from collectors.client.answer import Job

MOST_OPEN = 1024
"""Threads, and with it requests, that an open loop has open at once; later ones are sent late, which the log tells."""
_LEAD_NS = 20_000_000
_OVER = b"\0"


@dataclass(frozen=True)
class Outcome:
    """How a run ended. ``stopped_by``: a signal's number, ``limit``, or None where all requests were sent and ended."""

    sent: int
    stopped_by: int | str | None


class Load:
    """One run. ``perform(job)`` sends a request and waits for its end: True where ``cut()`` ended it.

    ``cut()`` ends the requests that are open.
    """

    def __init__(self, perform: Callable[[Job], bool], cut: Callable[[], None]) -> None:
        self._perform, self._cut = perform, cut
        self._stop = threading.Event()
        self._stopped_by: int | str | None = None
        self._until_ns: int | None = None

    def run(
        self,
        jobs: Sequence[Job],
        *,
        concurrency: int,
        due_ns: Sequence[int] | None = None,
        until_ns: int | None = None,
    ) -> Outcome:
        """Send all requests. ``due_ns``: when each is due after the start, for an open loop.

        ``until_ns``: monotonic end; requests that are not sent by then are not sent. What ``perform`` raises ends the
        run and is raised.
        """
        self._until_ns = until_ns
        workers = concurrency if due_ns is None else min(len(jobs), MOST_OPEN)
        futures: list[Future[bool | None]] = []
        with ThreadPoolExecutor(workers) as pool:
            try:
                if due_ns is None:
                    futures = [pool.submit(self._one, job) for job in jobs]
                else:
                    self._send_by_the_clock(pool, jobs, due_ns, until_ns, futures)
                left = None if until_ns is None else max(0.0, (until_ns - time.monotonic_ns()) / 1e9)
                done, open_ones = wait(futures, left, FIRST_EXCEPTION)
                if open_ones:
                    self._end(None if any(future.exception() for future in done) else "limit")
            finally:
                if any(not future.done() for future in futures):
                    self._end(None)
        cut = [one for future in futures if (one := future.result()) is not None]
        if (len(cut) < len(jobs) or any(cut)) and self._stopped_by is None:
            self._stopped_by = "limit"
        return Outcome(len(cut), self._stopped_by)

    def _send_by_the_clock(
        self,
        pool: ThreadPoolExecutor,
        jobs: Sequence[Job],
        due_ns: Sequence[int],
        until_ns: int | None,
        futures: list[Future[bool | None]],
    ) -> None:
        start = time.monotonic_ns() + _LEAD_NS
        for job, due in zip(jobs, due_ns, strict=True):
            planned = start + due
            give_up = until_ns is not None and planned >= until_ns
            wake = until_ns if give_up and until_ns is not None else planned
            while not self._stop.is_set() and (left := wake - time.monotonic_ns()) > 0:
                self._stop.wait(left / 1e9)
            if give_up or self._stop.is_set():
                return
            futures.append(pool.submit(self._one, replace(job, planned_monotonic_ns=planned)))

    def _one(self, job: Job) -> bool | None:
        over = self._until_ns is not None and time.monotonic_ns() >= self._until_ns
        return None if over or self._stop.is_set() else self._perform(job)

    def signalled(self, number: int) -> None:
        """End the run because of a signal."""
        self._end(number)

    def _end(self, by: int | str | None) -> None:
        if not self._stop.is_set():
            self._stopped_by = by
            self._stop.set()
        self._cut()


@contextmanager
def told_by_signals(told: Callable[[int], None]) -> Iterator[None]:
    """SIGINT and SIGTERM go to ``told`` while the block runs, where this is the main thread.

    The handler only writes into a pipe: it may have interrupted the holder of any lock.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = os.pipe()

    def handler(number: int, _: FrameType | None) -> None:
        os.write(writing, bytes([number]))

    def watch() -> None:
        while (number := os.read(reading, 1)) != _OVER:
            told(number[0])

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
        os.write(writing, _OVER)
        watcher.join()
        os.close(reading)
        os.close(writing)
