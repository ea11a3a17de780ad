"""What profiling cost, by the run's own steps with and without the profiler: a note, a verdict, a weakness.

The manifest has both median steps of a rank and, since it records them, how sure each is. A cost is claimed only where
the two intervals lie apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from analyzer.diagnosis import Hypothesis, Measured, Share, Verdict
from analyzer.explain.verdicts.hypotheses import decide
from analyzer.model import Capture
from collectors.manifest import Inflation, Interval

ID = "profiler-distortion"
WORTH_SAYING = 1.1
"""Profiled steps so many times as long as plain ones are told before any figure."""
STRENGTH: Mapping[Verdict, int] = {"supported": 3, "inconclusive": 2, "contradicted": 1, "unmeasured": 0}


@dataclass(frozen=True)
class Cost:
    """What the profiler took of one rank's profiled step, as a share of it, 0..1.

    Without intervals ``low`` is 0 and ``high`` is 1: nothing says how far the medians can be trusted.
    """

    rank: int
    of: Inflation
    value: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Whether there are intervals."""
        return self.of.profiled_interval is not None and self.of.plain_interval is not None

    @property
    def words(self) -> str:
        """Both medians with what they rest on."""
        with_it = _median(self.of.profiled_step_ns, self.of.profiled_steps, self.of.profiled_interval)
        without = _median(self.of.plain_step_ns, self.of.plain_steps, self.of.plain_interval)
        return f"{with_it} with the profiler, {without} without it, rank {self.rank}"


def costs(capture: Capture) -> list[Cost]:
    """One per rank whose manifest has both kinds of steps."""
    if capture.run is None:
        return []
    known = [(record.rank, record.inflation) for record in capture.run.ranks]
    return [cost_of(rank, found) for rank, found in known if found is not None and found.profiled_step_ns > 0]


def cost_of(rank: int, found: Inflation) -> Cost:
    """The cost by one rank's medians; ``found.profiled_step_ns`` is not 0."""
    inside, outside = found.profiled_interval, found.plain_interval
    value = _taken(found.profiled_step_ns, found.plain_step_ns)
    if inside is None or outside is None:
        return Cost(rank, found, value, 0.0, 1.0)
    low, high = _taken(inside.low_ns, outside.high_ns), _taken(inside.high_ns, outside.low_ns)
    return Cost(rank, found, value, min(low, value), max(high, value))


def _taken(profiled_ns: int, plain_ns: int) -> float:
    """The part of a profiled step that a plain one does without."""
    return max(0.0, 1.0 - plain_ns / profiled_ns) if profiled_ns > 0 else 0.0


def notes(found: Sequence[Cost]) -> list[str]:
    """One sentence where profiled steps took a tenth longer: claimed, or why it cannot be."""
    slow = [cost for cost in found if cost.of.profiled_step_ns >= WORTH_SAYING * cost.of.plain_step_ns > 0]
    certain = [cost for cost in slow if cost.of.costs]
    if certain:
        cost = max(certain, key=lambda cost: (cost.low, -cost.rank))
        return [
            f"Profiling made steps longer: {cost.words}. It takes {100 * cost.low:.1f} to {100 * cost.high:.1f} % of a "
            "profiled step, and CPU shares are inflated."
        ]
    if not slow:
        return []
    cost = max(slow, key=lambda cost: (cost.value, -cost.rank))
    return [f"Profiling may have made steps longer: {cost.words}. {_why_open(cost)}"]


def _why_open(cost: Cost) -> str:
    if cost.sure:
        return "The intervals overlap, so this is not told from chance."
    return (
        "That is no claim: there is no interval (it takes 6 steps of each), and the difference may be chance."
    )


def distorts(found: Sequence[Cost], limits: Mapping[str, float]) -> str:
    """Why absolute verdicts are weakened, "" where the profiler takes no large part of the step for certain."""
    worst = max(found, key=lambda cost: (cost.low, -cost.rank), default=None)
    if worst is None or worst.low <= limits["distortion_share"]:
        return ""
    return f"profiling takes at least {100 * worst.low:.1f} % of a step, by the run's own plain steps"


def with_cost(row: Hypothesis, found: Sequence[Cost], limits: Mapping[str, float]) -> Hypothesis:
    """The verdict on the profiler with what the run measured of it, where that says more than recorded overhead."""
    if row.id != ID or not found:
        return row
    cost = max(found, key=lambda cost: (STRENGTH[_verdict(cost, limits)], cost.value, -cost.rank))
    verdict = _verdict(cost, limits)
    if STRENGTH[verdict] < STRENGTH[row.verdict]:
        return row
    note = f"by the run's own plain steps: {cost.words}"
    if verdict == "inconclusive" and not cost.of.costs:
        note += f". {_why_open(cost)}"
    return msgspec.structs.replace(
        row,
        rank=cost.rank,
        verdict=verdict,
        verdict_note=note,
        share=Share(value=cost.value, interval=(cost.low, cost.high)),
        measured=Measured(
            name="median profiled step less the median plain step",
            value=float(cost.of.profiled_step_ns - cost.of.plain_step_ns),
            unit="ns",
            kind="measurement",
            rank=cost.rank,
            windows=cost.of.profiled_steps,
        ),
        gain_upper_bound_ns=None,
        evidence=[],
    )


def _verdict(cost: Cost, limits: Mapping[str, float]) -> Verdict:
    return decide(cost.low, cost.high, limits)


def _median(step_ns: int, steps: int, interval: Interval | None) -> str:
    how_sure = "no interval"
    if interval is not None:
        how_sure = f"95 % interval {interval.low_ns / 1e6:,.3f} to {interval.high_ns / 1e6:,.3f}"
    return f"{step_ns / 1e6:,.3f} ms (median of {steps}, {how_sure})"
