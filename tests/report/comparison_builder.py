"""A literal comparison, small enough to check by hand: 50 decode steps, A of 9 ms against B of 8 ms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from analyzer.comparison.result import (
    Comparison,
    PhasePair,
    Replayed,
    SameWork,
    Side,
    StepDelta,
    StepTimes,
    WorkCheck,
)

US = 1_000
MS = 1_000_000
A_NS = {"kernel": 6 * MS, "launch.api": 1_500 * US, "launch.latency": 500 * US, "host.framework": MS}
"""Mean step of A by category."""
B_NS = {"kernel": 6_100 * US, "launch.api": 500 * US, "launch.latency": 600 * US, "host.framework": 800 * US}
MARGIN_NS = 40 * US
"""Half of the interval that the difference of the means is given."""
REPLAYED = Replayed(kernels=5_000, in_graphs=0, whole_replays=0, share=0.0)


def times_about(mean_ns: int, n: int = 50, step_ns: int = 2 * US) -> list[int]:
    """``n`` step times with exactly that mean, ``step_ns`` (even) apart, in an order that looks like no trend.

    Closer together where the first of them would be below 0.
    """
    apart = min(step_ns, mean_ns // n * 2)
    order = sorted(range(n), key=lambda at: at * 37 % 101)
    return [mean_ns + (2 * at - (n - 1)) * (apart // 2) for at in order]


def step_times(times_ns: Sequence[int], mean_ns: int) -> StepTimes:
    ordered = sorted(times_ns) or [mean_ns]
    low, middle, high = (ordered[int(q * (len(ordered) - 1))] for q in (0.05, 0.5, 0.95))
    return StepTimes(n=len(times_ns), median=middle, mean=mean_ns, p05=low, p95=high)


def side(phase: str, times_ns: Sequence[int], mean_ns: int, **changes: Any) -> Side:
    values: dict[str, Any] = {
        "inputs": ["run.sqlite"],
        "kinds": ["nsys-sqlite"],
        "boundary": "device",
        "steps_rule": "marked-range",
        "phase": phase,
        "scope": "rank",
        "rank": 0,
        "ranks": [0],
        "step_ns": step_times(times_ns, mean_ns),
        "step_times_ns": list(times_ns),
        "warmup_excluded": 3,
        "replayed": REPLAYED,
        "replayed_kernel_share": 0.0,
    }
    return Side(**{**values, **changes})


def step_delta(a: StepTimes, b: StepTimes, margin_ns: int = MARGIN_NS) -> StepDelta:
    """B minus A with an interval of ``margin_ns`` to both sides; none of fewer than 5 steps."""
    mean = b.mean - a.mean
    if min(a.n, b.n) < 5:
        return StepDelta(
            mean=mean,
            median=b.median - a.median,
            ci95=None,
            shown=False,
            because="fewer than 5 steps on one side",
        )
    shown = abs(mean) > margin_ns
    place = "includes 0" if not shown else "lies above 0" if mean > 0 else "lies below 0"
    low, high = mean - margin_ns, mean + margin_ns
    told = " to ".join(f"{100 * end / a.mean:+.1f} %" if a.mean else f"{end:+,} ns" for end in (low, high))
    return StepDelta(
        mean=mean,
        median=b.median - a.median,
        ci95=(low, high),
        shown=shown,
        because=f"the 95 % interval of the difference, {told}, {place}",
    )


def phase_pair(
    a: Side, b: Side, a_ns: Mapping[str, int], b_ns: Mapping[str, int], work: WorkCheck
) -> PhasePair:
    proven = work.same_work in ("identical", "equivalent") and b.step_ns.mean > 0
    return PhasePair(
        phase_a=a.phase,
        phase_b=b.phase,
        scope=a.scope,
        rank_a=a.rank,
        rank_b=b.rank,
        a=a.step_ns,
        b=b.step_ns,
        step_delta_ns=step_delta(a.step_ns, b.step_ns),
        delta_ns={name: b_ns.get(name, 0) - a_ns.get(name, 0) for name in {**a_ns, **b_ns}},
        a_ns=dict(a_ns),
        b_ns=dict(b_ns),
        work=work,
        speedup=a.step_ns.mean / b.step_ns.mean if proven else None,
        speedup_ci95=_ratio_interval(a.step_ns, b.step_ns) if proven else None,
        replayed_a=a.replayed,
        replayed_b=b.replayed,
    )


def _ratio_interval(a: StepTimes, b: StepTimes, margin_ns: int = MARGIN_NS) -> tuple[float, float] | None:
    """All of the margin on A's side: 1 is inside where the difference is not shown."""
    if min(a.n, b.n) < 5:
        return None
    return ((a.mean - margin_ns) / b.mean, (a.mean + margin_ns) / b.mean)


def work_check(same_work: SameWork = "identical", because: str = "") -> WorkCheck:
    reasons = {
        "identical": "every step launched the same: 100 kernels",
        "equivalent": "all collectives and copies are equal, and 1.00% of A's and 1.20% of B's device time per step"
        " has no partner: 100 kernels",
        "different": "30.00% of A's and 12.00% of B's device time per step has no partner: 100 kernels",
        "unverifiable": "no device work was recorded on either side",
    }
    return WorkCheck(
        same_work=same_work,
        because=because or reasons[same_work],
        unmatched_share_a=0.0,
        unmatched_share_b=0.0,
        differences=[],
    )


def comparison(
    *,
    a_ns: Mapping[str, int] = A_NS,
    b_ns: Mapping[str, int] = B_NS,
    a_times: Sequence[int] | None = None,
    b_times: Sequence[int] | None = None,
    phase: str = "decode",
    work: WorkCheck | None = None,
    **changes: Any,
) -> Comparison:
    """Mean steps by category and step times of both sides; what follows from them is filled in.

    ``changes`` are fields of ``Comparison``, put in as they are.
    """
    mean_a, mean_b = sum(a_ns.values()), sum(b_ns.values())
    a = side(phase, times_about(mean_a) if a_times is None else a_times, mean_a)
    b = side(phase, times_about(mean_b) if b_times is None else b_times, mean_b)
    pair = phase_pair(a, b, a_ns, b_ns, work or work_check())
    result = Comparison(
        tracebound_version="0.1.0",
        a=a,
        b=b,
        same_work=pair.work.same_work,
        same_work_because=pair.work.because,
        level="kernels",
        differences=pair.work.differences,
        checks=[],
        step_delta_ns=pair.step_delta_ns,
        delta_ns=pair.delta_ns,
        speedup=pair.speedup,
        speedup_ci95=pair.speedup_ci95,
        speedup_because="",
        pairs=[pair],
        unpaired_phases=[],
        changes=[],
        predictions=[],
        undeclared=[],
        notes=[],
    )
    return msgspec.structs.replace(result, **changes)
