"""Each token's way from the device to the client, and its gap to the token before it, as a partition.

The way of a token, in order of time (``Way``): it is complete on the device; held until the last token that is emitted
together with it is complete; processed until the emission; held until the last token that is read together with it is
emitted; under way until the client's kernel has it; held there until the client reads it. Holding is buffering.

A gap ``[receipt of the token before, receipt)`` is cut at those instants, backwards from its end; what lies before the
token's completion is the device's. Where an instant was not logged, the parts on its both sides are not told apart
(``unsplit``). The parts sum to the gap to the nanosecond; nothing is counted twice, since each is cut where the one
behind it begins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.tables import TOKEN_PARTS
from analyzer.tokens import ABSENT, IntArray

DEVICE, OUTPUT, TRANSPORT, BUFFERING, UNSPLIT = range(len(TOKEN_PARTS))
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Way:
    """Instants (n,) of tokens sorted by (request, token), on one clock; ABSENT where not known.

    ``completion <= held <= emission <= last_emission <= arrival <= receipt`` where known: ``held`` when the last token
    of its emission was complete, ``last_emission`` when the last token of its read was emitted.
    """

    request: IntArray
    completion_ns: IntArray
    held_ns: IntArray
    emission_ns: IntArray
    last_emission_ns: IntArray
    arrival_ns: IntArray
    receipt_ns: IntArray

    def stages(self) -> dict[str, IntArray]:
        """(n,) ns spent in each stage, ABSENT where an end of it is not known: output, transport, buffering."""
        output = _between(self.held_ns, self.emission_ns)
        transport = _between(self.last_emission_ns, self.arrival_ns)
        holding = [
            _between(self.completion_ns, self.held_ns),  # ABSENT counts as none: see held_unknown
            _between(self.emission_ns, self.last_emission_ns),
            _between(self.arrival_ns, self.receipt_ns),
        ]
        known = (holding[1] != ABSENT) & (holding[2] != ABSENT)
        total = sum(np.where(part == ABSENT, 0, part) for part in holding)
        return {
            "output": output,
            "transport": transport,
            "buffering": np.where(known, total, ABSENT).astype(np.int64),
        }

    def held_unknown(self) -> BoolArray:
        """(n,) tokens that were emitted together with later ones, and were complete nothing tells when."""
        with_next = np.zeros(len(self.request), bool)
        with_next[:-1] = (np.diff(self.request) == 0) & (np.diff(self.emission_ns) == 0)
        unknown: BoolArray = with_next & (self.completion_ns == ABSENT)
        return unknown


def _between(start: IntArray, end: IntArray) -> IntArray:
    known = (start != ABSENT) & (end != ABSENT)
    return np.where(known, np.maximum(end - start, 0), ABSENT).astype(np.int64)


def way_of(
    request: IntArray,
    completion_ns: IntArray,
    emission_ns: IntArray,
    arrival_ns: IntArray,
    receipt_ns: IntArray,
) -> Way:
    """The way of tokens sorted by (request, token), from instants on one clock, put in order.

    A later instant is right where two contradict one another: what comes before a receipt is cut at the receipt.
    """
    receipt = not_back(request, receipt_ns)
    emission = not_back(request, emission_ns)
    held = _last_of_run(request, emission, completion_ns)
    last_emission = _last_of_run(request, receipt, emission)
    arrival = np.where(arrival_ns == ABSENT, receipt, arrival_ns)
    instants = [completion_ns, held, emission, last_emission, arrival, receipt]
    for at in range(len(instants) - 2, -1, -1):
        instants[at] = _at_most(instants[at], instants[at + 1 :])
    return Way(request, *instants)


def _at_most(values: IntArray, later: list[IntArray]) -> IntArray:
    """``values`` cut at the first later instant that is known."""
    for bound in later:
        values = np.where((values != ABSENT) & (bound != ABSENT), np.minimum(values, bound), values)
    return values


def not_back(request: IntArray, values: IntArray) -> IntArray:
    """Known values that do not go back within a request; ``request``: (n,) ascending."""
    result = values.copy()
    known = np.flatnonzero(values != ABSENT)
    # by their ranks: instants themselves leave no room to set requests apart
    instants, rank = np.unique(values[known], return_inverse=True)
    apart = (np.cumsum(np.diff(request[known], prepend=-1) != 0) - 1) * len(instants)
    result[known] = instants[np.maximum.accumulate(rank + apart) - apart]
    return result


def _last_of_run(request: IntArray, shared: IntArray, values: IntArray) -> IntArray:
    """(n,) the greatest of ``values`` among neighbours of one request with the same known ``shared``.

    ABSENT where that of the last neighbour is not known: it may be greater.
    """
    if not len(request):
        return values
    new = (np.diff(request, prepend=-1) != 0) | (np.diff(shared, prepend=shared[0]) != 0) | (shared == ABSENT)
    starts = np.flatnonzero(new)
    last = values[np.append(starts[1:], len(values)) - 1]
    greatest = np.where(last == ABSENT, ABSENT, np.maximum.reduceat(values, starts))
    result: IntArray = greatest[np.cumsum(new) - 1]
    return result


@dataclass(frozen=True)
class Gaps:
    """Gaps between receipts of neighbouring tokens of one request. ``token``: (g,) row of the later one.

    ``part_ns``: (g, 5) by TOKEN_PARTS; each row sums to ``gap_ns``.
    """

    token: IntArray
    gap_ns: IntArray
    part_ns: IntArray


def gaps_of(way: Way) -> Gaps:
    """Every gap whose both receipts are known."""
    pair = np.flatnonzero(
        (np.diff(way.request) == 0) & (way.receipt_ns[1:] != ABSENT) & (way.receipt_ns[:-1] != ABSENT)
    )
    token = pair + 1
    begin, end = way.receipt_ns[pair], way.receipt_ns[token]
    parts = split(way, token, begin)
    return Gaps(token, end - begin, parts)


def split(way: Way, token: IntArray, begin_ns: IntArray) -> IntArray:
    """(t, 5) how ``[begin_ns, receipt)`` of tokens (t,) is made up."""
    chain = (
        (BUFFERING, way.arrival_ns),
        (TRANSPORT, way.last_emission_ns),
        (BUFFERING, way.emission_ns),
        (OUTPUT, way.held_ns),
        (BUFFERING, way.completion_ns),
    )
    parts = np.zeros((len(token), len(TOKEN_PARTS)), np.int64)
    upper = np.maximum(way.receipt_ns[token], begin_ns)
    unknown = np.zeros(len(token), bool)  # since the last known instant one was not logged
    for label, instants in chain:
        instant = instants[token]
        known = instant != ABSENT
        lower = np.where(known, np.clip(instant, begin_ns, upper), upper)
        _add(parts, np.where(unknown, UNSPLIT, label), upper - lower)
        unknown = np.where(known, False, True)
        upper = lower
    _add(parts, np.where(unknown, UNSPLIT, DEVICE), upper - begin_ns)
    return parts


def _add(parts: IntArray, label: IntArray, amount_ns: IntArray) -> None:
    parts[np.arange(len(parts)), label] += amount_ns
