"""How much of each path segment belongs to a hypothesis: by measurement, for certain, and at most.

At most: what could belong to it by its category (unsplit, unresolved, unattributed), what was inferred
among its siblings, and what only the device clock's uncertainty or another thread's overhead leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from analyzer.categories import CPU_CATEGORIES, Category
from analyzer.explain.bytes.codes import ABOVE, COULD, LIKELY
from analyzer.explain.verdicts.catalogue import Entry
from analyzer.explain.verdicts.path_facts import GAPS, ON_CPU, SMALL, UNKNOWN_GRID, PathFacts
from analyzer.explain.verdicts.shares import WindowShares, window_shares
from analyzer.model import IntArray, SmallArray

LONGEST_TURNAROUND_NS = 50_000
"""So much of a gap with an inferred cause could be the device's turnaround (a few us are usual)."""


_CODES: Mapping[str, Callable[[PathFacts], SmallArray]] = {
    "bandwidth-bound": lambda facts: facts.bandwidth,
    "compute-bound": lambda facts: facts.arithmetic,
}


@dataclass(frozen=True)
class Amounts:
    """(s,) ns over the segments of all windows: the quantity, its certain part, what it holds at most."""

    mine: IntArray
    certain: IntArray
    possible: IntArray

    def per_window(self, length: IntArray, edges: IntArray) -> WindowShares:
        """The same per window; ``edges``: (w + 1,) where each window's segments begin."""
        return window_shares(self.mine, self.certain, self.possible, length, edges)


def amounts(entry: Entry, facts: PathFacts) -> Amounts:
    """What each segment has of the hypothesis.

    Certain: without what is inferred, without what follows a return that may have waited for nothing, and
    without CPU time of unknown use in which the profiler was at work on some thread.
    """
    length = facts.length
    seen = length - facts.unseen_under_overhead
    mine = np.where(facts.in_category(entry.categories), length, 0)
    certain = np.minimum(np.where(facts.inferred, 0, mine), seen)
    if entry.id == "small-grids":
        small = facts.small == SMALL
        mine, certain = np.where(small, mine, 0), np.where(small, certain, 0)
    elif entry.id in _CODES:
        code = _CODES[entry.id](facts)
        mine, certain = np.where(code >= LIKELY, mine, 0), np.where(code >= ABOVE, certain, 0)
    elif entry.id == "synchronization":
        certain = np.minimum(_with(facts, certain, facts.after_certain_wait, inferred=False), seen)
        mine = _with(facts, mine, facts.after_wait, inferred=True)
    possible = np.where(facts.in_category(entry.could_belong), length, mine)
    possible = np.maximum(possible, _doubt(entry, facts))
    return _by_another_clock(facts, Amounts(mine, certain, possible))


def ceiling(categories: frozenset[Category], facts: PathFacts) -> Amounts:
    """Of a quantity that is nowhere told apart: nothing for certain, at most all of ``categories``."""
    possible = np.where(facts.in_category(categories), facts.length, 0)
    return Amounts(possible, np.zeros_like(possible), possible)


def _doubt(entry: Entry, facts: PathFacts) -> IntArray:
    """(s,) ns that another reading of the same records would give to the hypothesis."""
    length = facts.length
    if entry.id in _CODES:
        return np.maximum(np.where(_CODES[entry.id](facts) >= COULD, length, 0), facts.kernels_behind)
    waiting = facts.inferred & facts.in_category(GAPS)
    other_readings: dict[str, Callable[[], IntArray]] = {
        "dependency-stalls": lambda: np.where(waiting, length, 0),
        # a longer wait is no turnaround, whatever it is
        "device-turnaround": lambda: np.where(waiting, np.minimum(length, LONGEST_TURNAROUND_NS), 0),
        "kernel-bound": lambda: facts.kernels_behind,
        "copies": lambda: facts.copies_behind,
        "small-grids": lambda: np.where(facts.small == UNKNOWN_GRID, length, facts.small_behind),
        "profiler-distortion": lambda: facts.overhead,
    }
    if entry.id in other_readings:
        return other_readings[entry.id]()
    doubt = np.where(facts.inferred & facts.in_category(ON_CPU), length, 0)
    if entry.id == "synchronization":
        return _with(facts, doubt, facts.after_possible_wait, inferred=True)
    if entry.id == "host-bound":
        # A wait ends the burst: what comes before its next launch is no dispatch then.
        dispatch = facts.in_category(frozenset({Category.LAUNCH_DISPATCH}))
        return np.maximum(doubt, np.where(dispatch, facts.after_possible_wait, 0))
    return doubt


def _by_another_clock(facts: PathFacts, amounts: Amounts) -> Amounts:
    """The same where a device clock that had to be moved could lie elsewhere in what contradicts nothing.

    A later device makes every wait from a launch to its work longer and every return from a wait shorter.
    """
    mine = amounts.mine > 0
    latency = mine & facts.in_category(frozenset({Category.LAUNCH_LATENCY}))
    back = mine & facts.in_category(frozenset({Category.HOST_SYNC_RETURN}))
    return Amounts(
        amounts.mine,
        np.maximum(amounts.certain - latency * facts.earlier - back * facts.later, 0),
        amounts.possible + latency * facts.later + back * facts.earlier,
    )


def _with(facts: PathFacts, mine: IntArray, after: IntArray, *, inferred: bool) -> IntArray:
    """``mine`` and the host and launch time between each return and the next device work."""
    follows = facts.in_category(CPU_CATEGORIES)
    if not inferred:
        follows &= ~facts.inferred
    return np.where(follows, np.maximum(mine, after), mine)
