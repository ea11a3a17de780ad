"""What device kernels are, by their names: rules in TOML, the built-in ones and the user's."""

from __future__ import annotations

from analyzer.rules.checks import threshold_problem
from analyzer.rules.load import builtin_rules, load_rules
from analyzer.rules.ruleset import COLLECTIVE, EXPERT_PARALLEL, OTHER, Rules

__all__ = [
    "COLLECTIVE",
    "EXPERT_PARALLEL",
    "OTHER",
    "Rules",
    "builtin_rules",
    "load_rules",
    "threshold_problem",
]
