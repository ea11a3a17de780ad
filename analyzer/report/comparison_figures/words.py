"""What the figures of a comparison say alike: phase, scope, boundary, and what must not be overlooked."""

from __future__ import annotations

from analyzer.comparison.result import Comparison, PhasePair
from analyzer.report.figures.text import shown
from analyzer.report.labels import BOUNDARY_WORDS

_MOST_REASON = 240
_WORK_WORDS = {"different": "work differs", "unverifiable": "work unverifiable"}


def phase_text(pair: PhasePair) -> str:
    """The phase, or both where the sides call it by different names."""
    if pair.phase_a == pair.phase_b:
        return f"phase {shown(pair.phase_a, 40) or 'without a name'}"
    return f"phases {shown(pair.phase_a, 30)} (A) and {shown(pair.phase_b, 30)} (B)"


def warnings(comparison: Comparison) -> list[str]:
    """What a title adds: a difference that is none, and work that is not known to be the same."""
    found = [] if comparison.step_delta_ns.shown else ["no difference shown"]
    return found + [word for work, word in _WORK_WORDS.items() if work == comparison.same_work]


def title(comparison: Comparison, text: str) -> str:
    """``text`` about the headline phase, and the warnings."""
    phase = phase_text(comparison.pairs[0])
    return "; ".join([f"{phase[:1].upper()}{phase[1:]}, {text}", *warnings(comparison)])


def subtitle(comparison: Comparison) -> str:
    """Whose steps, where they end, and the reasons behind what the title says."""
    pair = comparison.pairs[0]
    reasons = [comparison.step_delta_ns.because]
    if comparison.same_work in _WORK_WORDS:
        reasons.append(f"work: {comparison.same_work_because}")
    sentences = [f"{_scope(pair)}; {_boundary(comparison)}", *(shown(one, _MOST_REASON) for one in reasons)]
    return " ".join(f"{one[:1].upper()}{one[1:]}." for one in sentences if one)


def _scope(pair: PhasePair) -> str:
    if pair.rank_a is None:
        return "all ranks together"
    return (
        f"rank {pair.rank_a}" if pair.rank_a == pair.rank_b else f"rank {pair.rank_a} (A), {pair.rank_b} (B)"
    )


def _boundary(comparison: Comparison) -> str:
    a, b = (
        BOUNDARY_WORDS.get(side.boundary, shown(side.boundary, 30)).partition(":")[0]
        for side in (comparison.a, comparison.b)
    )
    return f"boundary: {a}" if a == b else f"boundary: {a} (A), {b} (B)"
