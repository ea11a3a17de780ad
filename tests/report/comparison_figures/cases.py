"""Comparisons that are hard to draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from analyzer.comparison.result import Comparison
from analyzer.report.labels import CATEGORY_WORDS
from tests.report.comparison_builder import A_NS, MS, US, comparison, times_about, work_check
from tests.report.figures.test_layout import HOSTILE, LONG


def changed_by(changes: Mapping[str, int], base: Mapping[str, int]) -> dict[str, int]:
    """``base`` with ``changes`` added to it."""
    return {name: base.get(name, 0) + changes.get(name, 0) for name in {**base, **changes}}


def all_categories() -> Comparison:
    """Every category differs, the last 5 by little; signs alternate."""
    a_ns = dict.fromkeys(CATEGORY_WORDS, 900 * US)
    changes = {
        name: (-1) ** at * (850 * US - 46 * US * at if at < 18 else 10 * US * at)
        for at, name in enumerate(CATEGORY_WORDS)
    }
    return comparison(a_ns=a_ns, b_ns=changed_by(changes, a_ns))


def one_spike(n: int = 50, spike_ns: int = 95 * MS) -> Comparison:
    """One step of A takes ten times as long as the others."""
    times = times_about(9 * MS, n)
    times[n * 3 // 5] = spike_ns
    return comparison(a_times=times)


def very_long_steps() -> Comparison:
    scaled = {name: 12_345 * ns for name, ns in A_NS.items()}
    return comparison(
        a_ns=scaled,
        b_ns=changed_by({"launch.api": -(12_345 * MS)}, scaled),
        a_times=times_about(sum(scaled.values()), 12_345, 10 * MS),
    )


CASES: dict[str, Callable[[], Comparison]] = {
    "default": comparison,
    "all categories": all_categories,
    "tiny difference": lambda: comparison(b_ns=changed_by({"kernel": -27 * US, "copy": 3 * US}, A_NS)),
    "work differs": lambda: comparison(work=work_check("different")),
    "slower": lambda: comparison(b_ns=changed_by({"host.wait": 30 * MS}, A_NS)),
    "one outlier": one_spike,
    "outlier below": lambda: one_spike(spike_ns=1),
    "one step against 50": lambda: comparison(a_times=[9 * MS]),
    "one step each": lambda: comparison(a_times=[9 * MS], b_times=[8 * MS]),
    "all steps equal": lambda: comparison(a_times=[9 * MS] * 7, b_times=[9 * MS] * 8),
    "no time at all": lambda: comparison(
        a_ns={"kernel": 0}, b_ns={"kernel": 1}, a_times=[0, 0], b_times=[1, 1]
    ),
    "very long steps": very_long_steps,
    "10,000 steps": lambda: comparison(
        a_times=times_about(9 * MS, 10_000, 100), b_times=[*times_about(8 * MS, 9_999, 100), 900 * MS]
    ),
    "long phase": lambda: comparison(phase=LONG, work=work_check("different", LONG)),
    "hostile phase": lambda: comparison(phase=HOSTILE, work=work_check("unverifiable", HOSTILE)),
    "hostile category": lambda: comparison(b_ns={**A_NS, HOSTILE: MS, LONG: MS, "": 2 * MS}),
    "empty phase": lambda: comparison(phase=""),
}
