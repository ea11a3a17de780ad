"""One change of one term of a critical path, bounded before it is promised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from analyzer.calculators.checks import not_negative
from analyzer.calculators.result import Kind, Result, figure
from analyzer.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class WhatIf(Result):
    """Result of ``whatif``."""

    calculator: ClassVar[str] = "whatif"
    kind: ClassVar[Kind] = "bound"
    before_ns: float = figure("path before", "ns", kind="measurement")
    after_ns: float = figure("path after, at best", "ns")
    saved_ns: float = figure("saved at most", "ns")
    speedup: float = figure("speedup at most", "x")


def whatif(terms_ns: Mapping[str, float], change: str, new_ns: float) -> WhatIf:
    """Set the term ``change`` of exclusive critical-path terms to ``new_ns``; all others stay."""
    terms = {name: not_negative("terms_ns", value, name) for name, value in terms_ns.items()}
    if change not in terms:
        raise UsageError(
            "change", "", f"{change!r} is no term of the path", f"its terms are {', '.join(terms) or 'none'}"
        )
    new = not_negative("new_ns", new_ns)
    before = sum(terms.values())
    after = sum((terms | {change: new}).values())
    if after <= 0 or before <= 0:
        raise UsageError("terms_ns", "", "the path has no time", "give a path that takes more than 0 ns")
    return WhatIf(
        before_ns=before,
        after_ns=after,
        saved_ns=before - after,
        speedup=before / after,
        assumptions=(
            "the terms are exclusive parts of one critical path: they do not overlap and sum to its time",
            "another chain of work may become the longest: the step can only take longer than this",
            "a change removes only what it replaces",
        ),
        cautions=("the change makes the path longer",) if new > terms[change] else (),
    )
