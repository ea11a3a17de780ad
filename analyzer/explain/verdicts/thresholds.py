"""Every threshold of a verdict, shown in the report and settable. The defaults stand in the built-in rules."""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.errors import UsageError
from analyzer.rules import Rules, threshold_problem


def resolve(overrides: Mapping[str, float], rules: Rules) -> dict[str, float]:
    """The rules' thresholds with the command line's values. UsageError names the valid ones."""
    for name, value in overrides.items():
        problem = threshold_problem(name, value, rules.thresholds)
        if problem is not None:
            raise UsageError("--threshold", name, *problem)
    return {**rules.thresholds, **overrides}
