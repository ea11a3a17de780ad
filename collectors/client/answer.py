"""What the client's parts hand on to one another: a request as planned, its answer as it came, what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from collectors.client.events import EmittedField
from collectors.client.plan import Prompt
from collectors.client.wire import Exchange

Line = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One request as planned. ``planned_monotonic_ns``: when an open loop has it due, else None."""

    number: int
    warmup: bool
    prompt: Prompt
    prompt_index: int
    body: bytes
    planned_monotonic_ns: int | None = None


@dataclass(frozen=True)
class Target:
    """Where requests go, and how answers are told.

    ``hide`` takes the credentials that were sent out of a text; ``scrub`` also what looks like one.
    """

    url: str
    headers: Mapping[str, str]
    emitted: Sequence[EmittedField]
    keep_text: bool
    hide: Callable[[str], str]
    scrub: Callable[[str], str]
    request_limit_s: float


@dataclass
class Answer:
    """What came back, before it is told."""

    status: int | None = None
    header_read: int | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)
    streamed: bool = False
    """The body may be a stream of events; else it is an error, or an answer all at once."""
    body: bytearray = field(default_factory=bytearray)
    blocks: list[tuple[int, int]] = field(default_factory=list)
    """End offset in the body and number of the read, per piece that httpx handed on."""
    body_ended: bool = False
    failure: tuple[str, str] | None = None
    """Outcome and detail of what went wrong on the way."""


@dataclass(frozen=True)
class Finished:
    """A request whose answer has ended, before it is told. Times as in the log's ``request`` and ``end``."""

    number: int
    planned_monotonic_ns: int | None
    started_ns: int
    started_monotonic_ns: int
    ended_ns: int
    ended_monotonic_ns: int
    exchange: Exchange
    answer: Answer

    @property
    def stopped(self) -> bool:
        """Whether the end of the run cut it."""
        return self.answer.failure is not None and self.answer.failure[0] == "stopped"


@dataclass(frozen=True)
class Told:
    """One request's lines and what the summary needs. Times are monotonic ns of the client.

    ``output_ns``: receipts of events that carry something the model made; ``event_reads``: the read of every event;
    ``late_ns``: from the kernel's time to the receipt, of reads that have both.
    """

    number: int
    warmup: bool
    outcome: str
    lines: list[Line]
    planned_ns: int | None
    sent_ns: int | None
    output_ns: list[int]
    event_reads: list[int]
    split_events: int
    early_events: int
    late_ns: list[int]
    completion_tokens: int | None
    message: str | None
