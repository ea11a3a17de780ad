"""One request to a streaming endpoint: sent, and its answer read to the end.

While the answer streams, only events are cut out of the bytes; their JSON is read when it has ended, so that the
client's own work delays no receipt of the same request.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from collectors.client_telling import DONE, Answer, Job, Target, Telling, Told
from collectors.client_wire import Exchange, Wire
from collectors.sse import Parser, SseError

if TYPE_CHECKING:
    import httpx

DRAIN_S = 2.0
"""How long the end of the body is waited for after ``[DONE]``."""
_ERROR_BYTES = 64 << 10
_NO_STREAM = frozenset({"application/json", "application/problem+json", "text/html"})


def perform(client: httpx.Client, wire: Wire, target: Target, job: Job, *, until_ns: int | None) -> Told:
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
    telling = Telling(target, job, exchange, answer)
    lines = [telling.request_line(started_ns, started), *telling.answer_lines()]
    return telling.told([*lines, telling.end_line(ended_ns, ended)])


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
    except SseError as error:
        answer.failure = ("malformed_event", str(error))


def _read_body(response: httpx.Response, exchange: Exchange, answer: Answer) -> None:
    kind = response.headers.get("content-type", "").split(";")[0].strip().lower()
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if response.status_code != 200 or kind in _NO_STREAM or encoding not in ("", "identity"):
        for block in response.iter_raw():
            answer.other_body += block
            if len(answer.other_body) > _ERROR_BYTES:
                return
        answer.body_ended = True
        return
    parser = Parser()
    for block in response.iter_raw():
        found = parser.feed(block)
        answer.blocks.append((parser.at, len(exchange.reads) - 1))
        answer.events += found
        if not answer.done and any(event.data == DONE and not event.comment for event in found):
            answer.done = True
            exchange.deadline_ns = min(exchange.deadline_ns, time.monotonic_ns() + round(DRAIN_S * 1e9))
    answer.body_ended = True
    left = parser.finish()
    if left is not None:
        answer.events.append(left)
        answer.done = answer.done or left.data == DONE
