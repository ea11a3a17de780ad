"""The summary of a token log, as text. Pure.

Figures are of one request each, then over requests; what overlaps is never added up. Percentiles are nearest-rank:
of n sorted values the one at ``ceil(q * n)``.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence

from collectors.client.answer import Told


def percentile(values: Sequence[int], share: float) -> int:
    """The nearest-rank percentile of at least one value."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def gaps(told: Told) -> list[int]:
    """Times between the receipts of one request's output events, ns; 0 for those of one read."""
    return [after - before for before, after in itertools.pairwise(told.output_ns)]


def first_output_ns(told: Told) -> int | None:
    """From sending to the receipt of the first output event, ns."""
    if told.sent_ns is None or not told.output_ns:
        return None
    return told.output_ns[0] - told.sent_ns


def failures(told: Sequence[Told]) -> str:
    """Outcomes other than complete, with their number: ``disconnected 1, http_status 2``; empty without any."""
    counts = Counter(one.outcome for one in told if one.outcome != "complete")
    return ", ".join(f"{outcome} {count}" for outcome, count in sorted(counts.items()))


def summary(told: Sequence[Told], planned: int, clock: str) -> str:
    """A few lines. Only complete requests behind the warm-up count in the times."""
    return "\n".join([*_requests(told, planned), *_times(told), *_reads(told), clock, _BOUNDARY]) + "\n"


_BOUNDARY = (
    "measured at the client's socket: the times hold the server, the network and this client;"
    " they are not the engine's step times"
)


_HINTS = {
    "not_connected": "check --url, and that the server runs and listens there",
    "http_status": "check --url with its path, --model and --api-key-env",
}
"""What to try where all requests failed alike."""


def _requests(told: Sequence[Told], planned: int) -> Iterator[str]:
    failed = failures(told)
    warmup = sum(one.warmup for one in told)
    unsent = f", {planned - len(told)} not sent" if planned > len(told) else ""
    yield (
        f"requests: {len(told)} of {planned} sent{unsent}, "
        f"{sum(one.outcome == 'complete' for one in told)} complete"
        f"{f', failed: {failed}' if failed else ''}; {warmup} for warm-up"
    )
    for message in list(dict.fromkeys(one.message for one in told if one.outcome != "complete"))[:3]:
        if message:
            yield f"  server or connection said: {_one_line(message)}"
    outcomes = {one.outcome for one in told}
    if len(outcomes) == 1 and (hint := _HINTS.get(outcomes.pop())):
        yield f"  next: {hint}"


def _times(told: Sequence[Told]) -> Iterator[str]:
    measured = [one for one in told if one.outcome == "complete" and not one.warmup]
    first = [value for one in measured if (value := first_output_ns(one)) is not None]
    yield f"time to first output event: {_spread(first)}"
    between = [found for one in measured if (found := gaps(one))]
    medians = [percentile(one, 0.5) for one in between]
    high = [percentile(one, 0.95) for one in between]
    yield f"time between output events, each request's median: {_spread(medians)}"
    yield f"time between output events, each request's p95: {_spread(high)}"
    late = [one.sent_ns - one.planned_ns for one in measured if one.sent_ns and one.planned_ns]
    if late:
        yield f"sent after the planned time: {_spread(late)}"
    if measured and all(one.completion_tokens is not None for one in measured):
        tokens = [one.completion_tokens for one in measured if one.completion_tokens is not None]
        yield f"tokens per answer by the server's usage: median {percentile(tokens, 0.5)}, total {sum(tokens)}"
    else:
        yield "tokens per answer: the server did not tell for every request; an event may hold several tokens"


def _reads(told: Sequence[Told]) -> Iterator[str]:
    """How events came: counts over all requests."""
    per_read = [count for one in told for count in Counter(one.event_reads).values()]
    events = sum(per_read)
    if not events:
        yield "no event was received"
        return
    shared = sum(count for count in per_read if count > 1)
    yield (
        f"events: {events} in {len(per_read)} reads, {events / len(per_read):.2f} per read; "
        f"{shared} ({100 * shared / events:.1f}%) shared a read, at most {max(per_read)} in one; "
        f"{sum(one.split_events for one in told)} spread over several reads"
    )
    late = [value for one in told for value in one.late_ns]
    if late:
        middle, high = (_time(percentile(late, share)) for share in (0.5, 0.95))
        yield f"read after the kernel had the bytes, this client's own lateness: median {middle}, p95 {high}"
    else:
        yield "read after the kernel had the bytes, this client's own lateness: not known"
    early = sum(one.early_events for one in told)
    if early:
        yield f"events that the server says it emitted after their receipt: {early}; the two clocks differ"


def _spread(values: Sequence[int]) -> str:
    if not values:
        return "not measured"
    middle, high = (_time(percentile(values, share)) for share in (0.5, 0.95))
    return f"median {middle}, p95 {high} ({len(values)} requests)"


def _time(value_ns: int) -> str:
    for unit, size in (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)):
        if abs(value_ns) >= size:
            return f"{value_ns / size:.3f} {unit}"
    return f"{value_ns} ns"


def _one_line(text: str) -> str:
    """Text of a stranger on a terminal: printable, on one line, not endless."""
    return "".join(letter if letter.isprintable() else " " for letter in text)[:200]
