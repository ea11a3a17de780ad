"""A token log on one clock, that of the capture where it can be joined, and the step of each token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from analyzer.explain.service.assign import (
    MOST_SCATTER,
    NO_STEP,
    Assignment,
    better_shift,
    by_completion,
    by_emission,
    scatter_of,
)
from analyzer.explain.service.clocks import Offset, compare
from analyzer.explain.service.device_path import DevicePath
from analyzer.explain.service.gaps import Way, not_back, way_of
from analyzer.tokens import ABSENT, Clocks, IntArray, TokenLog

CAPTURE = "trace"
"""The name that stands for the capture's own clock in ``--token-clock``."""


@dataclass(frozen=True)
class Placed:
    """A log, its clocks by name, and its tokens on one clock. ``zero_ns``: epoch time of 0 on it.

    ``to_server``: server's clock against the device's; ``to_client``: client's against the server's; None where one
    side was not logged. ``assignment``: None where not joined, then ``why`` tells.
    """

    log: TokenLog
    clocks: Clocks
    way: Way
    zero_ns: int
    to_server: Offset | None
    to_client: Offset | None
    assignment: Assignment | None
    why: str
    completion_difference_ns: int | None

    @property
    def assumed(self) -> bool:
        """Whether tokens may be of earlier steps than those that they were given."""
        return self.assignment is not None and self.assignment.method == "latest"

    @property
    def step(self) -> IntArray:
        """(n,) position among the windows of the device path, NO_STEP without one."""
        if self.assignment is None:
            return np.full(len(self.log), NO_STEP, np.int64)
        return self.assignment.step


def place(log: TokenLog, path: DevicePath | None, why_no_path: str, named: Mapping[str, str]) -> Placed:
    """Put a log on one clock. ``named``: device, server, client: what the user calls their clocks."""
    clocks = named_clocks(log, path, named)
    emission, receipt, arrival = log.emission_ns, log.receipt_ns, log.arrival_ns
    to_client = _to_client(log, clocks)
    if to_client is not None:
        receipt, arrival = _moved(receipt, to_client), _moved(arrival, to_client)
    to_server = _to_server(log, clocks)
    if to_server is not None:
        receipt, arrival, emission = (_moved(one, to_server) for one in (receipt, arrival, emission))
    assignment, why = None, why_no_path
    if path is not None:
        assignment, why = _assigned(log, clocks, path, emission, receipt)
    zero = path.zero_ns if assignment is not None and path is not None else None
    if zero is None:
        zero = _first(log.completion_ns, emission, receipt)
    completion, difference = log.completion_ns, None
    if assignment is not None and path is not None:
        completion, difference = _completions(completion, assignment, path.ends_ns + zero)
    # logged too coarsely, an emission seems to come before its cause: it lies within its resolution after that
    early = (completion != ABSENT) & (emission != ABSENT) & (emission < completion)
    emission = np.where(early & (completion - emission < log.resolution_ns), completion, emission)
    instants = (completion, emission, arrival, receipt)
    way = way_of(log.request, *(np.where(one == ABSENT, ABSENT, one - zero) for one in instants))
    return Placed(log, clocks, way, zero, to_server, to_client, assignment, why, difference)


def named_clocks(log: TokenLog, path: DevicePath | None, named: Mapping[str, str]) -> Clocks:
    """The clocks as the user calls them, else the log; of a loopback connection on the capture's host: that host."""
    capture = path.clock if path is not None and path.clock is not None else CAPTURE
    told = {side: capture if name == CAPTURE else name for side, name in named.items()}
    clocks = replace(log.clocks, **told)
    if log.same_host and clocks.server is None and clocks.client == capture:
        return replace(clocks, server=capture)
    return clocks


def _moved(instants: IntArray, offset: Offset) -> IntArray:
    if offset.same:
        return instants
    return np.where(instants == ABSENT, ABSENT, instants - offset.at(instants)).astype(np.int64)


def _to_client(log: TokenLog, clocks: Clocks) -> Offset | None:
    """The client's clock against the server's, from emissions and what the client got."""
    got = np.where(log.arrival_ns == ABSENT, log.receipt_ns, log.arrival_ns)
    both = _in_order(log, log.emission_ns, got)
    if not both.any():
        return None
    return compare(
        log.emission_ns[both],
        got[both],
        (clocks.server, clocks.client),
        resolution_ns=log.receipt_resolution_ns,
        least=_least_offset(log),
    )


def _in_order(log: TokenLog, earlier: IntArray, later: IntArray) -> npt.NDArray[np.bool_]:
    """(n,) tokens with both instants. Stamps that go back within a request tell no offset, where they are the fewer."""
    known: npt.NDArray[np.bool_] = (earlier != ABSENT) & (later != ABSENT)
    ordered: npt.NDArray[np.bool_] = known.copy()
    for instants in (earlier, later):
        ordered &= instants == not_back(log.request, instants)
    return ordered if 2 * ordered.sum() > known.sum() else known


def _least_offset(log: TokenLog) -> tuple[IntArray, IntArray] | None:
    """No token is emitted before its request was sent: ``sent - first emission`` bounds the offset from below.

    (l,) instants of sending and (l,) bounds.
    """
    known = np.flatnonzero((log.emission_ns != ABSENT) & (log.sent_ns[log.request] != ABSENT))
    if not len(known):
        return None
    # the emission is up to its resolution later than it was written
    sent = log.sent_ns[log.request[known]]
    return sent, sent - log.emission_ns[known] - log.resolution_ns + 1


def _to_server(log: TokenLog, clocks: Clocks) -> Offset | None:
    """The server's clock against that of the device completions in the log."""
    both = _in_order(log, log.completion_ns, log.emission_ns)
    if not both.any():
        return None
    return compare(
        log.completion_ns[both],
        log.emission_ns[both],
        (clocks.device, clocks.server),
        resolution_ns=log.resolution_ns,
    )


def _assigned(
    log: TokenLog, clocks: Clocks, path: DevicePath, emission: IntArray, receipt: IntArray
) -> tuple[Assignment | None, str]:
    """The step of each token, or None and why not. Emissions and receipts: on the log's first clock."""
    if path.zero_ns is None:
        return None, "the capture does not know its wall-clock time"
    capture = path.clock if path.clock is not None else CAPTURE
    ends = path.ends_ns + path.zero_ns
    found: Assignment | None = None
    if (log.completion_ns != ABSENT).any():
        why = _other("device completions", "device", clocks.device, capture)
        if not why:
            found = by_completion(log.completion_ns, ends)
    elif path.one_of:
        why = (
            f"{path.one_of}: which of them a token is from cannot be told; log device_completion_ns, or give the"
            " capture of one of them and the log of its tokens"
        )
    elif (emission != ABSENT).any():
        why = _other("emissions", "server", clocks.server, capture)
        if not why:
            found, why = _by_instants(log, emission, log.resolution_ns, "emissions", ends)
    else:
        why = _other("receipts", "client", clocks.client, capture)
        if not why:
            found, why = _by_instants(log, receipt, log.receipt_resolution_ns, "receipts", ends)
    if found is None:
        return None, why
    instants = next(one for one in (log.completion_ns, emission, receipt) if (one != ABSENT).any())
    doubt = _doubt(found, log, instants, ends)
    return (None, doubt) if doubt else (found, "")


def _by_instants(
    log: TokenLog, instants: IntArray, resolution_ns: int, what: str, ends_ns: IntArray
) -> tuple[Assignment | None, str]:
    """The step of each token by its emission or receipt, or None and why these do not tell it."""
    step_ns = float(np.median(np.diff(ends_ns)))
    if resolution_ns > MOST_SCATTER * step_ns:
        return None, (
            f"its {what} are logged to {resolution_ns / 1e6:g} ms, and the capture's steps come every"
            f" {step_ns / 1e6:.3f} ms: which of them a token is from cannot be told; log finer times, or"
            " device_completion_ns"
        )
    last = np.where(instants == ABSENT, ABSENT, instants + (resolution_ns - 1))
    return by_emission(log.request, not_back(log.request, last), ends_ns, whole_requests=_whole(log)), ""


def _doubt(found: Assignment, log: TokenLog, instants: IntArray, ends_ns: IntArray) -> str:
    """Why the tokens are not from these steps, or "". ``instants``: (n,) those that they were sought by."""
    if not (found.step != NO_STEP).any():
        return (
            f"none of its tokens is from a step of the capture{_apart(instants[instants != ABSENT], ends_ns)}"
        )
    off = better_shift(instants, found.step, ends_ns, earlier=found.method == "completion")
    if off is not None:
        return (
            f"it fits the capture's steps far better where its times lie {abs(off) / 1e6:.3f} ms"
            f" {'after' if off > 0 else 'before'} their ends: they are not by the capture's clock"
        )
    scatter = scatter_of(log.completion_ns, found.step, ends_ns) if found.method == "completion" else None
    if scatter is None:
        return ""
    return (
        f"its completions scatter by {scatter / 1e6:.3f} ms around the ends of the capture's steps, which come every"
        f" {float(np.median(np.diff(ends_ns))) / 1e6:.3f} ms: they are of other steps (of another run), or not of the"
        " device's completion"
    )


def _apart(known_ns: IntArray, ends_ns: IntArray) -> str:
    """How far a log lies from the steps, where it does not reach into them."""
    after, before = int(known_ns.min() - ends_ns[-1]), int(ends_ns[0] - known_ns.max())
    if max(after, before) <= 0:
        return ""
    side = (
        f"begins {after / 1e9:.6f} s after the last"
        if after > 0
        else f"ends {before / 1e9:.6f} s before the first"
    )
    return f": it {side} of them was complete (another run, or times of another zone)"


def _whole(log: TokenLog) -> bool:
    """Whether every request has its first token, counted from 0 or 1, and all that follow."""
    starts = np.flatnonzero(np.diff(log.request, prepend=-1))
    firsts, lasts = log.token[starts], log.token[np.append(starts[1:], len(log)) - 1]
    counts = np.diff(np.append(starts, len(log)))
    return bool((firsts == firsts[0]).all() and firsts[0] in (0, 1) and (lasts - firsts + 1 == counts).all())


def _other(what: str, side: str, name: str | None, capture: str) -> str:
    """Why instants are not on the capture's clock, "" where they are."""
    if name == capture:
        return ""
    told = "nothing tells which clock" if name is None else f"the clock of {name}, not that of {capture},"
    return (
        f"{told} its {what} were read from; where it is the capture's, say `--token-clock {side}={CAPTURE}`"
    )


def _completions(logged: IntArray, assignment: Assignment, ends_ns: IntArray) -> tuple[IntArray, int | None]:
    """The capture's completion of each token's step, else the log's; and the median of log minus capture."""
    mine = assignment.step != NO_STEP
    captured = np.where(mine, ends_ns[np.maximum(assignment.step, 0)], ABSENT)
    both = mine & (logged != ABSENT)
    difference = int(np.median((logged - captured)[both])) if both.any() else None
    return np.where(mine, captured, logged).astype(np.int64), difference


def _first(*columns: IntArray) -> int:
    return min(int(one[one != ABSENT].min()) for one in columns if (one != ABSENT).any())
