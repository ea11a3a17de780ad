"""What led to each collective of a rank, back to the collective before: pieces that a global path is made of.

A path through several ranks leaves a rank where it waited and goes on where the late rank arrived. Each rank
therefore hands out the stretch of path before every one of its collectives, and before the end of every
window; together they are no longer than the paths of its windows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.model import IntArray
from analyzer.reconstruct.critical_path import Chain, Memory, Path, Walker, join_paths
from analyzer.reconstruct.windows import Window


@dataclass(frozen=True)
class Chains:
    """One chain per anchor: first the (c,) collectives, then the (w,) ends of the windows.

    Times on the rank's corrected clock. A window that ends neither with device work nor on a thread, as an empty
    one may, has an empty chain that leads nowhere. No stretch is told twice: where two chains meet, the later names
    the other.
    """

    path: Path  # the segments of all chains, each in time order
    edges: IntArray  # (c + w + 1,) where each chain's segments begin
    high_ns: IntArray  # (c + w,) where each ends: the body of a collective begins there
    reached: IntArray  # (c + w,) collective that it leads to, -1: none
    merged: IntArray  # (c + w,) chain that goes on from there, -1: none; then nothing earlier is known
    at_ns: IntArray  # (c + w,) instant at which it leaves off
    low_ns: int  # when the rank's first record begins

    def __len__(self) -> int:
        return len(self.reached)


def find_chains(walker: Walker, windows: tuple[Window, ...], rows: IntArray, low_ns: int) -> Chains:
    """The chains of one rank; ``rows``: its collectives, indices into Work."""
    stops = np.zeros(len(walker.work), bool)
    stops[rows] = True
    memory = Memory(stops)
    position = {row: at for at, row in enumerate(rows.tolist())}
    ends: IntArray = np.array([window.end_ns for window in windows], np.int64)
    instants = np.concatenate((walker.work.end_ns[rows], ends))
    found: list[Chain | None] = [None] * len(instants)
    number: list[int] = []  # anchor of each chain, in the order in which they were walked
    for anchor in np.argsort(instants, kind="stable").tolist():
        window = None if anchor < len(rows) else windows[anchor - len(rows)]
        row, thread = (int(rows[anchor]), -1) if window is None else (window.row, window.thread)
        instant = int(instants[anchor])
        if row is None and thread < 0:
            found[anchor] = _nothing(instant, -1)
        elif window is not None and row is not None and stops[row]:
            found[anchor] = _nothing(instant, row)
        else:
            number.append(anchor)
            found[anchor] = walker.chain(low_ns, instant, row, memory, thread=thread)
    chains = [chain for chain in found if chain is not None]
    return Chains(
        path=join_paths([chain.path for chain in chains]),
        edges=np.cumsum([0, *(len(chain.path) for chain in chains)]),
        high_ns=np.array([chain.high_ns for chain in chains], np.int64),
        reached=np.array([position.get(chain.reached, -1) for chain in chains], np.int64),
        merged=np.array([number[c.merged] if c.merged >= 0 else -1 for c in chains], np.int64),
        at_ns=np.array([chain.at_ns for chain in chains], np.int64),
        low_ns=low_ns,
    )


def _nothing(instant: int, reached: int) -> Chain:
    return Chain(join_paths([]), instant, reached, -1, instant)
