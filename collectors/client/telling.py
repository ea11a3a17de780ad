"""The answer to a request made into lines of the token log. Pure.

``collectors.client`` tells what the lines mean.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from typing import Any

from collectors.client.answer import Finished, Job, Line, Target, Told
from collectors.client.events import Chunk, Emitted, MalformedError, read_chunk
from collectors.client.sse import Event, Parser, SseError

SHOWN_HEADERS = frozenset(
    {
        "age", "cache-control", "connection", "content-encoding", "content-length", "content-type", "date",
        "openai-model", "openai-processing-ms", "openai-version", "retry-after", "server", "server-timing",
        "transfer-encoding", "via", "x-accel-buffering", "x-envoy-upstream-service-time", "x-request-id",
    }
)  # fmt: skip
"""Response headers whose values are recorded; of others only the names."""
DONE = "[DONE]"


def tell(target: Target, job: Job, finished: Finished) -> Told:
    """The lines of a request, and what the summary needs of it."""
    return _Telling(target, job, finished).told()


class _Telling:
    """An answer made into lines of the log."""

    def __init__(self, target: Target, job: Job, finished: Finished) -> None:
        self._target, self._job, self._finished = target, job, finished
        self._exchange, self._answer = finished.exchange, finished.answer
        self._ends = [end for end, _ in self._answer.blocks]
        self._done = False
        self._unreadable: str | None = None
        self._index = 0
        self._output_ns: list[int] = []
        self._event_reads: list[int] = []
        self._split = self._early = self._malformed = 0
        self._cut = False
        self._tokens: int | None = None
        self._finish: str | None = None
        self._error: Line | None = None
        self._emitted: Emitted | None = None
        self._message: str | None = None

    def _line(self, kind: str, **fields: Any) -> Line:
        return {"kind": kind, "request": self._job.number, **fields}

    def _request_line(self) -> Line:
        job, exchange, finished = self._job, self._exchange, self._finished
        content = job.prompt.content
        planned = finished.planned_monotonic_ns
        started_ns, started = finished.started_ns, finished.started_monotonic_ns
        kept = {"prompt": self._target.hide(content)} if self._target.keep_text else {}
        return self._line(
            "request",
            warmup=job.warmup,
            prompt_index=job.prompt_index,
            prompt_chars=len(content),
            prompt_bytes=len(content.encode("utf-8", "surrogatepass")),
            prompt_sha256=job.prompt.sha256,
            body_bytes=len(job.body),
            planned_ns=None if planned is None else started_ns - started + planned,
            planned_monotonic_ns=planned,
            started_ns=started_ns,
            started_monotonic_ns=started,
            sent_ns=exchange.sent_ns,
            sent_monotonic_ns=exchange.sent_monotonic_ns,
            written_ns=exchange.written_ns,
            connection=exchange.connection,
            connect_ns=exchange.connect_ns,
            **kept,
        )

    def _events(self) -> list[Event]:
        """The events of the body; none where it is no stream."""
        if not self._answer.streamed:
            return []
        parser, found = Parser(), []
        try:
            found = parser.feed(bytes(self._answer.body))
        except SseError as error:
            self._unreadable = str(error)
        left = parser.finish()
        return [*found, *([] if left is None else [left])]

    def _answer_lines(self) -> list[Line]:
        """Reads in order, each followed by what it completed."""
        exchange, answer = self._exchange, self._answer
        body_bytes = [0] * len(exchange.reads)
        before = 0
        for end, at in answer.blocks:
            body_bytes[at] += end - before
            before = end
        by_read: dict[int, list[Event]] = {}
        for one in self._events():
            by_read.setdefault(self._read_of(one.end), []).append(one)
        lines: list[Line] = []
        for number, read in enumerate(exchange.reads):
            lines.append(
                self._line(
                    "read",
                    read=number,
                    receipt_ns=read.wall_ns,
                    receipt_monotonic_ns=read.monotonic_ns,
                    kernel_ns=read.kernel_ns,
                    bytes=read.bytes,
                    body_bytes=body_bytes[number],
                )
            )
            if number == answer.header_read:
                lines.append(self._response_line(number))
            lines += [self._event_line(one, number) for one in by_read.get(number, [])]
        return lines

    def _read_of(self, end: int) -> int:
        """The read that brought the byte before ``end``."""
        return self._answer.blocks[bisect.bisect_left(self._ends, end)][1]

    def _response_line(self, read: int) -> Line:
        headers = {
            name: self._target.scrub(value) for name, value in self._answer.headers if name in SHOWN_HEADERS
        }
        others = sorted({name for name, _ in self._answer.headers if name not in SHOWN_HEADERS})
        return self._line(
            "response", read=read, status=self._answer.status, headers=headers, other_headers=others
        )

    def _event_line(self, event: Event, read: int) -> Line:
        received = self._exchange.reads[read]
        first = self._read_of(event.start + 1)
        place: Line = {
            "read": read,
            "first_read": first,
            "receipt_ns": received.wall_ns,
            "receipt_monotonic_ns": received.monotonic_ns,
            "bytes": event.end - event.start,
        }
        if event.comment:
            return self._line("comment", **place)
        place = {"index": self._index, **place, "utf8": event.utf8, "whole": event.whole}
        self._index += 1
        self._event_reads.append(read)
        self._split += first != read
        if event.data == DONE:
            self._done = True
            return self._line("done", **place)
        try:
            chunk = read_chunk(event.data, self._target.emitted)
        except MalformedError as error:
            self._malformed += event.whole
            self._cut = not event.whole
            kept = {"data": self._target.scrub(event.data)} if self._target.keep_text else {}
            return self._line("malformed", **place, why=str(error), **kept)
        return self._chunk_line(event, chunk, place)

    def _chunk_line(self, event: Event, chunk: Chunk, place: Line) -> Line:
        if chunk.error is not None:
            self._error = self._told_error(chunk.error)
            return self._line("error", **place, **self._error)
        tokens, told_by = self._tokens_of(chunk)
        output = bool(chunk.text) or bool(tokens)
        if output:
            self._output_ns.append(place["receipt_monotonic_ns"])
        self._finish = chunk.finish_reason or self._finish
        emitted = chunk.emitted
        if emitted is not None:
            self._early += emitted.at_ns > place["receipt_ns"]
            if self._emitted is None or emitted.resolution_ns < self._emitted.resolution_ns:
                self._emitted = emitted
        kept = {"text": self._target.hide(chunk.text)} if self._target.keep_text else {}
        return self._line(
            "event",
            **place,
            type=None if event.type is None else self._target.scrub(event.type),
            choices=chunk.choices,
            output=output,
            text_chars=len(chunk.text),
            tokens=tokens,
            tokens_from=told_by,
            finish_reason=None if chunk.finish_reason is None else self._target.scrub(chunk.finish_reason),
            usage=chunk.usage,
            emitted_ns=None if emitted is None else emitted.at_ns,
            created_s=chunk.created_s,
            **kept,
        )

    def _tokens_of(self, chunk: Chunk) -> tuple[int | None, str | None]:
        """Tokens of the event: told by itself, or by a running ``usage`` against the one before."""
        total, before = chunk.completion_tokens, self._tokens
        self._tokens = before if total is None else total
        if chunk.tokens is not None:
            return chunk.tokens, chunk.tokens_from
        if total is None or not chunk.choices or (before is None and self._output_ns):
            return None, None
        return (total - (before or 0), "usage") if total >= (before or 0) else (None, None)

    def _told_error(self, error: Mapping[str, Any]) -> Line:
        """Type and code; the message, which may quote the prompt, only where text is kept."""
        short: Line = {}
        for name in ("type", "code"):
            value = error.get(name)
            known = isinstance(value, str | int) and not isinstance(value, bool)
            short[f"error_{name}"] = self._target.scrub(str(value))[:100] if known else None
        message = error.get("message")
        if isinstance(message, str):
            self._message = self._target.scrub(message)[:300]
            if self._target.keep_text:
                short["message"] = self._message
        return short

    def _end_line(self) -> Line:
        """How it ended. Comes after ``_answer_lines``, whose counts it tells."""
        answer, finished = self._answer, self._finished
        outcome, detail = self._outcome()
        if answer.body and not answer.streamed:
            self._error = self._body_error()
        return self._line(
            "end",
            outcome=outcome,
            detail=detail,
            ended_ns=finished.ended_ns,
            ended_monotonic_ns=finished.ended_monotonic_ns,
            status=answer.status,
            reads=len(self._exchange.reads),
            events=self._index,
            output_events=len(self._output_ns),
            malformed_events=self._malformed,
            done=self._done,
            body_ended=answer.body_ended,
            finish_reason=None if self._finish is None else self._target.scrub(self._finish),
            completion_tokens=self._tokens,
            emitted_field=None if self._emitted is None else self._emitted.field,
            emitted_resolution_ns=None if self._emitted is None else self._emitted.resolution_ns,
            **(self._error or {}),
        )

    def _body_error(self) -> Line:
        """What a body that is no stream says."""
        text = self._answer.body.decode("utf-8", "replace")
        try:
            error = read_chunk(text, ()).error
        except MalformedError:
            error = None
        return self._told_error(error if error is not None else {"message": text})

    def _outcome(self) -> tuple[str, str | None]:
        answer = self._answer
        if answer.status not in (None, 200):
            return "http_status", f"HTTP {answer.status}"
        if answer.failure is not None and not self._done:
            return answer.failure
        if not answer.streamed:
            return "not_a_stream", "the answer is no stream of server-sent events"
        if self._error is not None:
            return "server_error", "the stream holds an error of the server"
        return self._outcome_of_events()

    def _outcome_of_events(self) -> tuple[str, str | None]:
        if self._unreadable is not None:
            return "malformed_event", self._unreadable
        if self._malformed:
            return "malformed_event", f"events that are no chunks of a completion: {self._malformed}"
        if not self._done and (self._cut or self._finish is None):
            return (
                "cut_off",
                "the stream ended inside an event, or with neither [DONE] nor a reason to finish",
            )
        return "complete", None

    def told(self) -> Told:
        """All of it."""
        lines = [self._request_line(), *self._answer_lines()]
        lines.append(self._end_line())
        return Told(
            number=self._job.number,
            warmup=self._job.warmup,
            outcome=lines[-1]["outcome"],
            lines=lines,
            planned_ns=self._finished.planned_monotonic_ns,
            sent_ns=self._exchange.sent_monotonic_ns,
            output_ns=self._output_ns,
            event_reads=self._event_reads,
            split_events=self._split,
            early_events=self._early,
            late_ns=[
                read.wall_ns - read.kernel_ns for read in self._exchange.reads if read.kernel_ns is not None
            ],
            completion_tokens=self._tokens,
            message=self._message or lines[-1]["detail"],
        )
