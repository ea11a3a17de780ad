"""Decoding: speculative decoding and batching, as models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from analyzer.calculators.checks import not_negative, positive, share, together, whole
from analyzer.calculators.memory import NS_PER_S
from analyzer.calculators.result import Kind, Result, figure
from analyzer.errors import UsageError

_BISECTIONS = 200


@dataclass(frozen=True, kw_only=True)
class Speculation(Result):
    """Result of ``speculation``."""

    calculator: ClassVar[str] = "speculation"
    kind: ClassVar[Kind] = "model"
    expected_tokens: float = figure("expected tokens per verification", "tokens")
    round_ns: float | None = figure("time of one round", "ns")
    speedup: float | None = figure("speedup over decoding without", "x")
    breakeven_tokens: float | None = figure("tokens per verification that break even", "tokens")
    breakeven_acceptance: float | None = figure("acceptance that breaks even", "share")


def expected_tokens(acceptance: float, draft_tokens: int) -> float:
    """``(1 - a^(k+1)) / (1 - a)``, ``k + 1`` at a = 1: the accepted prefix and the verifier's own token."""
    if acceptance == 1:
        return draft_tokens + 1
    if acceptance == 0:
        return 1
    return -math.expm1((draft_tokens + 1) * math.log(acceptance)) / (1 - acceptance)


def speculation(
    acceptance: float,
    draft_tokens: int,
    *,
    verify_ns: float | None = None,
    draft_ns: float | None = None,
    other_ns: float = 0,
    baseline_ns: float | None = None,
) -> Speculation:
    """Expected tokens of speculative decoding and, with the costs given, its speedup.

    Args:
        acceptance: chance that a drafted token is accepted, given that all before it were.
        draft_tokens: tokens drafted per verification.
        verify_ns: time of one verification.
        draft_ns: time to draft all ``draft_tokens``.
        other_ns: whatever else one round takes.
        baseline_ns: time per token without speculation.

    """
    chance, drafted = share("acceptance", acceptance), whole("draft_tokens", draft_tokens, 1)
    other = not_negative("other_ns", other_ns)
    tokens = expected_tokens(chance, drafted)
    cost = breakeven = speedup = None
    names = ("verify_ns", "draft_ns", "baseline_ns")
    if together(names, (verify_ns, draft_ns, baseline_ns)):
        cost = positive("verify_ns", verify_ns or 0) + not_negative("draft_ns", draft_ns or 0) + other
        baseline = positive("baseline_ns", baseline_ns or 0)
        breakeven, speedup = cost / baseline, tokens * baseline / cost
    elif other > 0:
        raise UsageError("verify_ns", "", "is missing", f"give all of {', '.join(names)} with other_ns")
    never = breakeven is not None and breakeven > drafted + 1
    return Speculation(
        expected_tokens=tokens,
        round_ns=cost,
        speedup=speedup,
        breakeven_tokens=breakeven,
        breakeven_acceptance=None if breakeven is None or never else acceptance_for(breakeven, drafted),
        assumptions=(
            "each drafted token is accepted with the same chance, independent of the others; an average "
            "acceptance counter of an engine is not that chance",
            "the costs stay the same at every acceptance, and batch and context are those of the baseline",
        ),
        cautions=_speculation_cautions(never, speedup),
    )


def acceptance_for(tokens: float, draft_tokens: int) -> float:
    """The acceptance at which ``tokens`` are expected (by bisection: they only rise with it)."""
    low, high = 0.0, 1.0
    if tokens <= 1:
        return low
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if expected_tokens(middle, draft_tokens) < tokens:
            low = middle
        else:
            high = middle
    return high


def _speculation_cautions(never: bool, speedup: float | None) -> tuple[str, ...]:
    if never:
        return ("no acceptance breaks even: one round costs more than all its tokens without speculation",)
    return ("a slowdown at these costs",) if speedup is not None and speedup < 1 else ()


@dataclass(frozen=True, kw_only=True)
class Batching(Result):
    """Result of ``batching``."""

    calculator: ClassVar[str] = "batching"
    kind: ClassVar[Kind] = "model"
    tokens_per_s: float = figure("tokens per second of all streams", "tokens/s")
    tokens_per_s_per_stream: float = figure("tokens per second of one stream", "tokens/s")
    expert_union: float | None = figure("experts read per layer and step", "experts")
    expert_union_share: float | None = figure("share of the experts", "share")
    expert_reads_growth: float | None = figure("experts read / those of one token", "x")


def batching(
    batch: int, step_ns: float, *, experts: int | None = None, experts_per_token: int | None = None
) -> Batching:
    """``batch / step``, and the experts that a batch touches, ``E (1 - (1 - k/E)^B)``, of E with k each."""
    streams, step = whole("batch", batch, 1), positive("step_ns", step_ns)
    union = total = chosen = None
    if together(("experts", "experts_per_token"), (experts, experts_per_token)):
        total, chosen = (
            whole("experts", experts or 0, 1),
            whole("experts_per_token", experts_per_token or 0, 1),
        )
        if chosen > total:
            raise UsageError(
                "experts_per_token", "", f"{chosen} is more than there are", f"give 1 to {total}"
            )
        union = (
            float(total) if chosen == total else -total * math.expm1(streams * math.log1p(-chosen / total))
        )
    return Batching(
        tokens_per_s=streams * NS_PER_S / step,
        tokens_per_s_per_stream=NS_PER_S / step,
        expert_union=union,
        expert_union_share=None if union is None or total is None else union / total,
        expert_reads_growth=None if union is None or chosen is None else union / chosen,
        assumptions=(
            "every stream yields one token per step; the step time is that of this very batch size, and grows "
            "with it",
            *(
                [
                    "experts: routing is uniform and independent; real routing is skewed and mostly touches fewer"
                ]
                if union is not None
                else []
            ),
        ),
    )
