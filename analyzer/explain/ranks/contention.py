"""Other work of the same device that runs while a collective does."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from analyzer.across.joint import Joint
from analyzer.across.waits import BoolArray, Calls
from analyzer.explain.rank_report import RankReport
from analyzer.intervals import covered

NOTICEABLE = 0.10
"""A call is contended from this share of its transfer on, on the device of any member."""


def contended(calls: Calls, joint: Joint, reports: Mapping[int, RankReport]) -> BoolArray:
    """(k,) calls whose transfer shares a member's device for a noticeable part; False where nothing is split."""
    found = np.zeros(len(calls), bool)
    for column, rank in enumerate(calls.group.members):
        report, waits = reports[rank], joint.waits[rank]
        rows = np.flatnonzero(calls.split & (calls.group.calls[:, column] >= 0))
        own = calls.group.calls[rows, column]
        keep = waits.split[own]
        rows, own = rows[keep], own[keep]
        arrivals = report.part.arrivals
        since = np.maximum(waits.until_ns[own], arrivals.start_ns[own])
        until = np.maximum(arrivals.end_ns[own], since)
        beside = covered(report.beside, since, until)
        found[rows] |= (beside > 0) & (beside >= NOTICEABLE * (until - since))
    return found
