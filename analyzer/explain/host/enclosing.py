"""The innermost of some host records of one thread at given instants."""

from __future__ import annotations

import numpy as np

from analyzer.model import HostTable, IntArray
from analyzer.reconstruct.nesting import innermost


def row_at(host: HostTable, rows: IntArray, instants: IntArray) -> IntArray:
    """(k,) host row, among ``rows`` of one thread in table order, that is innermost at each instant; -1 none."""
    bounds, owner, _ = innermost(host.start_ns[rows], host.end_ns[rows])
    if not len(bounds):
        return np.full(len(instants), -1, np.int64)
    at = np.searchsorted(bounds, instants, side="right") - 1
    found = np.where(at >= 0, owner[np.maximum(at, 0)], -1)
    return np.where(found >= 0, rows[np.maximum(found, 0)], -1)
