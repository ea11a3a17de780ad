"""The steps that the budgets leave out because their time lies far outside their phase's, each by name."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from analyzer.diagnosis import GlobalAccount, GlobalWindow, Outlier, Rank, Window
from analyzer.explain.windows import chosen_windows, phases_of


def outliers(ranks: Sequence[Rank], joint: GlobalAccount | None) -> list[Outlier]:
    """Per phase those of all ranks together, then of each rank, in order of time."""
    result = []
    for phase in phases_of(list(ranks)):
        if joint is not None:
            chosen = chosen_windows(joint.windows, phase)
            result += [_outlier(window, chosen.used, None) for window in chosen.outliers]
        for rank in ranks:
            own = chosen_windows(rank.windows, phase)
            result += [_outlier(window, own.used, rank.rank) for window in own.outliers]
    return result


def _outlier(
    window: Window | GlobalWindow, used: Sequence[Window | GlobalWindow], rank: int | None
) -> Outlier:
    """``used``: the steps that the budget rests on, at least one."""
    times = sorted(other.end_ns - other.start_ns for other in used)
    median, duration = times[(len(times) - 1) // 2], window.end_ns - window.start_ns
    means = {name: Fraction(sum(other.path_ns[name] for other in used), len(used)) for name in window.path_ns}
    longer = 1 if duration > median else -1
    most = max(means, key=lambda name: longer * (window.path_ns[name] - means[name]))
    return Outlier(
        phase=window.phase,
        scope="global" if rank is None else "rank",
        rank=rank,
        window=window.index,
        step=window.step,
        duration_ns=duration,
        median_ns=median,
        times_median=duration / median,
        category=most,
        category_ns=window.path_ns[most],
        category_mean_ns=round(means[most]),
    )
