"""Two scaling studies: absolute step times and how they scale, told apart, as they can go opposite ways."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.scaling.result import Against, Change, CommonCount, Interval, Scaling, ScalingPoint
from analyzer.uncertain import Uncertain, product_interval


def held_against(this: Scaling, name: str, other: Scaling) -> Against:
    """Hold ``this`` study, after a change, against ``other``, before it."""
    mine, theirs = ({point.ranks: point for point in one.points} for one in (this, other))
    counts = sorted(mine.keys() & theirs.keys())
    common = [_common(mine[ranks], theirs[ranks]) for ranks in counts]
    several = len(counts) > 1
    ends = (counts[0], counts[-1]) if several else None
    speedups = [_speedup([one[ranks] for ranks in ends]) for one in (mine, theirs)] if ends else [None, None]
    return Against(
        other=name,
        common=common,
        fewest=ends[0] if ends else None,
        most=ends[1] if ends else None,
        speedup_this=speedups[0],
        speedup_other=speedups[1],
        speedup_this_ci95=_speedup_ci95(mine, ends),
        speedup_other_ci95=_speedup_ci95(theirs, ends),
        serial_share_this_ci95=None if this.fit is None else this.fit.serial_share_ci95,
        serial_share_other_ci95=None if other.fit is None else other.fit.serial_share_ci95,
        speedup_change=_scaling_change(mine, theirs, ends),
        serial_share_this=None if this.fit is None else this.fit.serial_share,
        serial_share_other=None if other.fit is None else other.fit.serial_share,
        differences=[
            f"{pin}: {other.pins[pin]} before, {value} now"
            for pin, value in this.pins.items()
            if pin in other.pins and other.pins[pin] != value
        ],
    )


def _time(point: ScalingPoint) -> Uncertain:
    return Uncertain(point.mean_step_ns, point.variance_ns2, point.degrees_of_freedom)


def _common(mine: ScalingPoint, theirs: ScalingPoint) -> CommonCount:
    ends = product_interval([(_time(theirs), 1), (_time(mine), -1)])
    return CommonCount(
        ranks=mine.ranks,
        this_ns=mine.mean_step_ns,
        other_ns=theirs.mean_step_ns,
        ratio=theirs.mean_step_ns / mine.mean_step_ns,
        ratio_ci95=ends,
        change=_change(ends),
    )


def _speedup(points: Sequence[ScalingPoint]) -> float:
    return points[0].mean_step_ns / points[1].mean_step_ns


def _speedup_ci95(points: dict[int, ScalingPoint], ends: tuple[int, int] | None) -> Interval | None:
    return (
        None
        if ends is None
        else product_interval([(_time(points[ends[0]]), 1), (_time(points[ends[1]]), -1)])
    )


def _scaling_change(
    mine: dict[int, ScalingPoint], theirs: dict[int, ScalingPoint], ends: tuple[int, int] | None
) -> Change:
    """Of the speedup from the fewest to the most common ranks."""
    if ends is None:
        return "not told"
    fewest, most = ends
    return _change(
        product_interval(
            [
                (_time(mine[fewest]), 1),
                (_time(mine[most]), -1),
                (_time(theirs[fewest]), -1),
                (_time(theirs[most]), 1),
            ]
        )
    )


def _change(ends: Interval | None) -> Change:
    """Whether a ratio that is above 1 where it is better differs from 1 beyond chance."""
    if ends is None or ends[0] <= 1 <= ends[1]:
        return "not told"
    return "better" if ends[0] > 1 else "worse"
