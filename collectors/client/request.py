"""One request to a streaming endpoint: sent, and its answer read to the end.

Nothing is made of the bytes here but the place where they stand: cutting them into events waits until the run is over,
so that the client's own work delays no receipt.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from collectors.client.answer import Answer, Finished, Job, Target
from collectors.client.wire import Exchange, Wire

if TYPE_CHECKING:
    import httpx

DRAIN_S = 2.0
"""How long the end of the body is waited for after ``[DONE]``."""
MAX_BODY_BYTES = 256 << 20
"""An answer longer than this is given up rather than held in memory."""
_ERROR_BYTES = 64 << 10
_NO_STREAM = frozenset({"application/json", "application/problem+json", "text/html"})
_DONE = re.compile(rb"(?:^|[\r\n])data: ?\[DONE\][\r\n]+$")
_DONE_BYTES = 32


def perform(client: httpx.Client, wire: Wire, target: Target, job: Job, *, until_ns: int | None) -> Finished:
    """Send one request and read its answer; whatever goes wrong is an outcome, not an exception.

    ``until_ns``: monotonic end of the whole run, None without one.
    """
    started_ns, started = time.time_ns(), time.monotonic_ns()
    deadline = started + round(target.request_limit_s * 1e9)
    exchange = wire.begin(deadline if until_ns is None else min(deadline, until_ns))
    answer = Answer()
    _converse(client, target, job, exchange, answer)
    ended_ns, ended = time.time_ns(), time.monotonic_ns()
    run_over = wire.stopped or (until_ns is not None and ended >= until_ns)
    if run_over and answer.failure is not None and answer.failure[0] in ("limit", "disconnected"):
        answer.failure = ("stopped", "the run ended before the answer did")
    return Finished(
        job.number, job.planned_monotonic_ns, started_ns, started, ended_ns, ended, exchange, answer
    )


def _converse(client: httpx.Client, target: Target, job: Job, exchange: Exchange, answer: Answer) -> None:
    import httpcore

    try:
        with client.stream("POST", target.url, content=job.body, headers=dict(target.headers)) as response:
            answer.status = response.status_code
            answer.header_read = len(exchange.reads) - 1
            answer.headers = [(name.lower(), value) for name, value in response.headers.multi_items()]
            _read_body(response, exchange, answer)
    except httpcore.TimeoutException:
        answer.failure = ("limit", "no end of the answer by then")
    except httpcore.ConnectError as error:
        answer.failure = ("not_connected", target.scrub(str(error)))
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        cut = not exchange.reads or exchange.reads[-1].bytes == 0 or isinstance(error, httpcore.NetworkError)
        answer.failure = ("disconnected" if cut else "malformed_http", target.scrub(str(error)))


def _read_body(response: httpx.Response, exchange: Exchange, answer: Answer) -> None:
    kind = response.headers.get("content-type", "").split(";")[0].strip().lower()
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    plain = encoding in ("", "identity")
    answer.streamed = response.status_code == 200 and kind not in _NO_STREAM and plain
    most = MAX_BODY_BYTES if answer.streamed else _ERROR_BYTES
    body, blocks, reads = answer.body, answer.blocks, exchange.reads
    for block in response.iter_raw():
        body += block
        blocks.append((len(body), len(reads) - 1))
        if answer.streamed and _DONE.search(body[-_DONE_BYTES:]):
            exchange.deadline_ns = min(exchange.deadline_ns, time.monotonic_ns() + round(DRAIN_S * 1e9))
        if len(body) > most:
            if answer.streamed:
                answer.failure = ("too_long", f"the answer is longer than {most} bytes")
            return
    answer.body_ended = True
