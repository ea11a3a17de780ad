"""Counts of accepted drafted tokens: what was recorded, as arrays of cycles or as totals.

A *cycle* is one verification: up to ``k`` drafted tokens are checked, a prefix of them is accepted, and the verifier
adds one token of its own. So a cycle yields ``accepted + 1`` tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from analyzer.errors import TraceError
from analyzer.model import IntArray

Form = Literal["cycles", "histogram", "positions", "totals"]
MOST_DRAFTED = 1_000
"""Drafted tokens per cycle beyond which a count is taken for something else (a total)."""


@dataclass(frozen=True)
class Cycles:
    """Rows of equal cycles: (n,) int64 each.

    ``times``: how many cycles a row stands for; ``request``: codes from 0, None where nothing tells requests apart.
    ``drafted`` is None where only the longest draft is known and some were shorter.
    """

    form: Form
    draft_tokens: int  # the longest draft
    accepted: IntArray
    drafted: IntArray | None
    times: IntArray
    request: IntArray | None
    drafted_total: int

    @property
    def cycles(self) -> int:
        """How many verifications."""
        return int(self.times.sum())

    @property
    def accepted_total(self) -> int:
        """Accepted drafted tokens of all cycles."""
        return int(self.accepted @ self.times)

    @property
    def requests(self) -> int | None:
        """How many requests; None where nothing tells them apart."""
        return None if self.request is None else int(self.request.max()) + 1


@dataclass(frozen=True)
class Totals:
    """An engine's counters over a whole run. None: not recorded."""

    accepted: int
    cycles: int | None
    drafted: int | None


@dataclass(frozen=True)
class Row:
    """One row as it was read. ``where``: its place in the file, for errors."""

    where: str
    accepted: int
    drafted: int | None = None
    times: int = 1
    request: str | None = None


def cycles_of(path: str, form: Form, rows: Sequence[Row], draft_tokens: int | None) -> Cycles:
    """Rows as arrays. ``draft_tokens``: of each cycle that does not say its own.

    Raises TraceError where a row contradicts itself, or where nothing says how many tokens were drafted.
    """
    rows = [row for row in rows if row.times]
    if not rows:
        raise TraceError(path, "", "holds no cycle", "give one row per verification, or a histogram of them")
    drafted = [_drafted(path, row, draft_tokens) for row in rows]
    named = {row.request is None for row in rows}
    if len(named) > 1:
        odd = next(row for row in rows if row.request is None)
        raise TraceError(path, odd.where, "names no request, while others do", "name the request of each")
    return Cycles(
        form=form,
        draft_tokens=max(drafted),
        accepted=np.array([row.accepted for row in rows], np.int64),
        drafted=np.array(drafted, np.int64),
        times=np.array([row.times for row in rows], np.int64),
        request=None if True in named else _codes([row.request for row in rows]),
        drafted_total=sum(drafts * row.times for drafts, row in zip(drafted, rows, strict=True)),
    )


def _drafted(path: str, row: Row, draft_tokens: int | None) -> int:
    drafted = draft_tokens if row.drafted is None else row.drafted
    if drafted is None:
        raise TraceError(
            path,
            row.where,
            "does not say how many tokens were drafted",
            "give --draft-tokens K, or a column drafted",
        )
    if drafted > MOST_DRAFTED:
        hint = "give the counts of each cycle; totals go into a JSON object with cycles, accepted and drafted"
        raise TraceError(path, row.where, f"{drafted:,} tokens drafted in one cycle are no cycle's", hint)
    if row.accepted > drafted:
        why = f"{row.accepted} tokens are accepted of {drafted} that were drafted"
        hint = "count accepted drafted tokens only: the verifier's own token is none of them; or mend --draft-tokens"
        raise TraceError(path, row.where, why, hint)
    return drafted


def _codes(names: Sequence[str | None]) -> IntArray:
    known: dict[str | None, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], np.int64)


def from_positions(
    path: str, reached: Sequence[int], cycles: int, drafted: int | None, draft_tokens: int | None
) -> Cycles:
    """From how many cycles accepted position 1, 2, ...: as vLLM's ``num_accepted_tokens_per_pos`` counts them.

    ``drafted``: tokens drafted in all. Where they are fewer than a full draft in every cycle, some drafts were shorter
    and nothing tells which.
    """
    longest = draft_tokens or len(reached)
    falling = [cycles, *reached]
    for at, (before, after) in enumerate(zip(falling, reached, strict=False), start=1):
        if after > before:
            why = f"position {at} was accepted {after:,} times, what comes before it {before:,} times"
            raise TraceError(path, f"position {at}", why, "give how many cycles accepted each position")
    if len(reached) > longest or longest > MOST_DRAFTED:
        why = f"{len(reached)} positions for {longest} drafted tokens"
        raise TraceError(path, "", why, "give as many positions as tokens are drafted")
    full = longest * cycles
    total = full if drafted is None else drafted
    if not sum(reached) <= total <= full:
        why = f"{total:,} drafted tokens do not fit {cycles:,} cycles of up to {longest}"
        raise TraceError(path, "", why, "check the counters: they must be of the same span of time")
    ends = [*reached, 0]
    times = np.array([before - after for before, after in zip(falling, ends, strict=True)], np.int64)
    some = np.flatnonzero(times)
    if not len(some):
        raise TraceError(path, "", "holds no cycle", "give counters of at least one verification")
    return Cycles(
        form="positions",
        draft_tokens=longest,
        accepted=some.astype(np.int64),
        drafted=np.full(len(some), longest, np.int64) if total == full else None,
        times=times[some],
        request=None,
        drafted_total=total,
    )


def from_histogram(path: str, cycles_by_accepted: Mapping[int, int], draft_tokens: int | None) -> Cycles:
    """From ``{accepted: cycles}``."""
    rows = [Row(f"accepted {n}", n, None, times) for n, times in sorted(cycles_by_accepted.items())]
    return cycles_of(path, "histogram", rows, draft_tokens)
