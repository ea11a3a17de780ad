"""Send requests to a streaming OpenAI-compatible endpoint and log when each event reached this client.

The log is rank0.tokens.jsonl in the run's folder; its format stands in ``collectors.client``.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from collectors.client.answer import Job, Line, Told
from collectors.client.http import open_client, require_httpx
from collectors.client.load import Load, Outcome, told_by_signals
from collectors.client.log import Spool, TokenLog
from collectors.client.options import configure
from collectors.client.plan import digest, schedule
from collectors.client.request import perform
from collectors.client.settings import Settings, settings
from collectors.client.summary import failures, summary
from collectors.client.telling import tell
from collectors.client.wire import Wire
from collectors.launch import TIMED_OUT
from collectors.manifest import Pin
from collectors.run_folder import RunFolder
from collectors.session import Session

__all__ = ["configure", "run"]

FORMAT = "tracebound.tokens"
FORMAT_VERSION = 1
KIND = "tokens"
"""The log's kind in the manifest."""
SUFFIX = ".tokens.jsonl"
_SWITCH_S = 0.0001
"""How long a thread whose read returned waits for one that computes; Python's own 5 ms would stand in the receipts."""
_SWITCH_PER_THREAD_S = 0.00005
"""Longer with many threads: each of those that wait wakes up so often."""


def run(arguments: argparse.Namespace) -> int:
    """Send the requests and write the log. 0: all complete; 1: some are not; 124 past ``--limit``; 128 + signal."""
    given = settings(arguments, os.environ)
    version = require_httpx(given.target.url)
    folder = RunFolder(given.output)
    folder.refuse_used(0, "client")
    session = Session(folder, "client", command=given.command, pins=given.pins, engine_here=False)
    with session:
        session.note_down(
            profiler="httpx", profiler_version=version, pins={**_pins(given), **session.record.pins}
        )
        clock = _clock()
        outcome, told, path = _logged(given, folder, session, clock)
        file = folder.describe(path, KIND)
        status, code, notes = _judged(outcome, told, given)
        session.finish(status, [file], exit_code=code, notes=notes)
    sys.stdout.write(f"{folder.path / file.path}\n")
    sys.stdout.write(summary(told, given.requests, _clock_words(clock)))
    return code


def _logged(
    given: Settings, folder: RunFolder, session: Session, clock: Mapping[str, int | None]
) -> tuple[Outcome, list[Told], Path]:
    """Send the requests, then write the log of them. A signal ends the sending, not the writing."""
    jobs = _jobs(given)
    told: list[Told] = []
    with Wire() as wire, open_client(wire) as client, Spool(folder.path) as spool:
        until_ns = None if given.limit_s is None else time.monotonic_ns() + round(given.limit_s * 1e9)

        def one(job: Job) -> bool:
            finished = perform(client, wire, given.target, job, until_ns=until_ns)
            spool.put(finished)
            return finished.stopped

        load = Load(one, wire.stop)
        with told_by_signals(load.signalled), TokenLog(folder.trace_path(session.rank, SUFFIX)) as log:
            outcome = _drive(load, given, jobs, until_ns)
            log.write([_header(given, session, clock)])
            for finished in spool:
                found = tell(given.target, jobs[finished.number], finished)
                log.write(found.lines)
                told.append(replace(found, lines=[]))
            log.write([_last_line(outcome, given)])
            return outcome, told, log.finish()


def _drive(load: Load, given: Settings, jobs: Sequence[Job], until_ns: int | None) -> Outcome:
    due = None
    if given.rate_per_s is not None:
        due = schedule(given.requests, given.rate_per_s, given.spacing, given.seed)
    most_open = given.requests if due is not None else given.concurrency
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, max(_SWITCH_S, most_open * _SWITCH_PER_THREAD_S)))
    try:
        return load.run(jobs, concurrency=given.concurrency, due_ns=due, until_ns=until_ns)
    finally:
        sys.setswitchinterval(before)


def _jobs(given: Settings) -> list[Job]:
    count = len(given.prompts)
    return [
        Job(n, n < given.warmup, given.prompts[n % count], n % count, given.bodies[n % count])
        for n in range(given.requests)
    ]


def _judged(outcome: Outcome, told: Sequence[Told], given: Settings) -> tuple[str, int, list[str]]:
    """Status, exit code and notes of the run."""
    notes = ["times are of the client's boundary: they hold the server, the network and the client"]
    failed = failures(told)
    if failed:
        notes.append(f"requests that did not complete: {failed}")
    unsent = given.requests - outcome.sent
    if unsent:
        notes.append(f"requests that were not sent: {unsent} of {given.requests}")
    if outcome.stopped_by == "limit":
        return "killed", TIMED_OUT, [*notes, f"ended by --limit after {given.limit_s:g} s"]
    if isinstance(outcome.stopped_by, int):
        return "killed", 128 + outcome.stopped_by, [*notes, f"ended by signal {outcome.stopped_by}"]
    return ("failed", 1, notes) if failed else ("complete", 0, notes)


def _pins(given: Settings) -> Mapping[str, Pin]:
    """What the client itself fixes; the user's own pins win."""
    load = f"rate={given.rate_per_s:g}/s {given.spacing} seed={given.seed}" if given.rate_per_s else ""
    shape = f"prompts={len(given.prompts)} sha256={digest(given.prompts)} max_tokens={given.max_tokens}"
    return {
        "model": Pin(given.model, "declared"),
        "input": Pin(
            f"{shape} requests={given.requests} {load or f'concurrency={given.concurrency}'}", "found"
        ),
        "timing_boundary": Pin("client", "found"),
    }


def _last_line(outcome: Outcome, given: Settings) -> Line:
    return {
        "kind": "log_end",
        "requests": outcome.sent,
        "planned": given.requests,
        "stopped_by": outcome.stopped_by,
    }


def _header(given: Settings, session: Session, clock: Mapping[str, int | None]) -> Line:
    record = session.record
    rate = given.rate_per_s
    return {
        "kind": "header",
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "collector_version": record.collector_version,
        "created_ns": time.time_ns(),
        "rank": record.rank,
        "host": record.host,
        "boot_id": record.boot_id,
        "url": given.target.url,
        "endpoint": given.endpoint,
        "model": given.model,
        "tls": given.target.url.startswith("https:"),
        "clock": clock,
        "load": {
            "requests": given.requests,
            "warmup": given.warmup,
            "concurrency": given.concurrency if rate is None else None,
            "rate_per_s": rate,
            "spacing": None if rate is None else given.spacing,
            "seed": None if rate is None else given.seed,
            "limit_s": given.limit_s,
            "request_limit_s": given.target.request_limit_s,
        },
        "body": {"max_tokens": given.max_tokens, "fields": sorted(given.fields), "usage": given.usage},
        "headers": given.header_names,
        "emitted_fields": [field.name for field in given.target.emitted],
        "text_kept": given.target.keep_text,
    }


def _clock() -> dict[str, int | None]:
    """Both clocks' resolution as the system tells it, and the smallest step of the wall clock in a short look."""
    seen = [time.time_ns() for _ in range(1000)]
    steps = [after - before for before, after in itertools.pairwise(seen) if after > before]
    return {
        "wall_resolution_ns": round(time.get_clock_info("time").resolution * 1e9),
        "monotonic_resolution_ns": round(time.get_clock_info("monotonic").resolution * 1e9),
        "smallest_wall_step_ns": min(steps, default=None),
    }


def _clock_words(clock: Mapping[str, int | None]) -> str:
    return (
        f"clock: resolution {clock['wall_resolution_ns']} ns as the system tells it, "
        f"smallest step seen {clock['smallest_wall_step_ns']} ns"
    )
