"""What measured acceptance gains at measured step times: tokens per cycle x baseline step / cycle time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from analyzer.calculators.decoding import acceptance_for, expected_tokens
from analyzer.comparison.headline import world_size
from analyzer.diagnosis import Diagnosis
from analyzer.errors import UsageError
from analyzer.explain.fingerprint import fingerprint
from analyzer.fits import run_mean
from analyzer.speculation.acceptance import measured
from analyzer.speculation.beside import beside
from analyzer.speculation.counts import Cycles, Totals
from analyzer.speculation.cycle_steps import cycle_steps
from analyzer.speculation.ratios import Ratio
from analyzer.speculation.result import Acceptance, Difference, Interval, Model, Speculation, StepTime
from analyzer.uncertain import Uncertain, interval, product_interval
from analyzer.version import __version__

SAME_PINS = ("model", "weights", "precision", "input", "context", "batch", "cache_initialization")
"""Pins that say what was asked of the model. Runtime and flags differ by what turns speculation on."""


@dataclass(frozen=True)
class Timed:
    """A mean time and its error; ``diagnosis`` of the capture that it was measured in, None for a given one."""

    time: StepTime
    error: Uncertain
    diagnosis: Diagnosis | None


def given(mean_ns: float) -> Timed:
    """A time that the user states: it has no interval of its own."""
    time = StepTime(
        source="given",
        inputs=[],
        phase=None,
        shape=None,
        scope=None,
        rank=None,
        steps=None,
        passes_per_step=None,
        mean_ns=mean_ns,
        ci95_ns=None,
    )
    return Timed(time, Uncertain(mean_ns, 0.0, 1.0), None)


def timed(name: str, diagnosis: Diagnosis, phase: str | None = None) -> Timed:
    """The mean step of a capture's decode phase (else of its leading one, or of what the pattern ``phase`` finds).

    Raises UsageError where it has none.
    """
    found = cycle_steps(name, diagnosis, phase)
    steps = found.steps
    mean = run_mean(0.0, steps.step_ns)
    error = Uncertain(mean.mean, mean.variance, mean.dof)
    time = StepTime(
        source="measured",
        inputs=[one.path for one in diagnosis.inputs],
        phase=steps.phase,
        shape=steps.shape,
        scope=steps.scope,
        rank=steps.rank,
        steps=len(steps.step_ns),
        passes_per_step=found.passes,
        mean_ns=mean.mean,
        ci95_ns=interval(error),
    )
    return Timed(time, error, diagnosis)


def speculate(
    source: str, counts: Cycles | Totals, baseline: Timed | None = None, cycle: Timed | None = None
) -> Speculation:
    """Acceptance as counted and, with both times, what it gains. ``cycle``: of one draft and verification."""
    acceptance, tokens = measured(source, counts)
    differences, undeclared = _pins(baseline, cycle)
    why = _withheld(acceptance, baseline, cycle, differences)
    result = Speculation(
        tracebound_version=__version__,
        acceptance=acceptance,
        baseline=None if baseline is None else baseline.time,
        cycle=None if cycle is None else cycle.time,
        breakeven_tokens=None,
        breakeven_ci95=None,
        speedup=None,
        speedup_ci95=None,
        speedup_kind=None,
        speedup_because=why,
        verdict=None,
        model=None,
        differences=differences,
        undeclared=undeclared,
        notes=_notes(baseline, cycle),
        beside=_beside(baseline, cycle),
    )
    if why or baseline is None or cycle is None or tokens is None:
        return result
    return _with_speedup(result, tokens, baseline, cycle)


def _with_speedup(result: Speculation, tokens: Ratio, baseline: Timed, cycle: Timed) -> Speculation:
    timed_both = baseline.diagnosis is not None and cycle.diagnosis is not None
    error = Uncertain(tokens.value, tokens.variance, tokens.dof)
    between = product_interval([(error, 1), (baseline.error, 1), (cycle.error, -1)])
    told = result.acceptance.tokens_ci95
    if between is not None and told is not None and not tokens.variance:
        # all cycles alike: what an unseen kind could still change is the whole interval of the tokens
        between = between[0] * told[0] / tokens.value, between[1] * told[1] / tokens.value
    breakeven = cycle.time.mean_ns / baseline.time.mean_ns
    ends = product_interval([(cycle.error, 1), (baseline.error, -1)]) if timed_both else None
    return msgspec.structs.replace(
        result,
        breakeven_tokens=breakeven,
        breakeven_ci95=ends,
        speedup=tokens.value / breakeven,
        speedup_ci95=between,
        speedup_kind="measurement" if timed_both else "model",
        speedup_because=""
        if between
        else f"no interval: {result.acceptance.tokens_because.removesuffix(': there is no interval')}"
        if tokens.variance is None
        else "no interval: fewer than 5 steps in a capture",
        verdict=_verdict(between),
        model=_model(result.acceptance, breakeven),
    )


def _verdict(between: Interval | None) -> Literal["faster", "slower", "not told"]:
    if between is None or between[0] <= 1 <= between[1]:
        return "not told"
    return "faster" if between[0] > 1 else "slower"


def _model(acceptance: Acceptance, breakeven: float) -> Model | None:
    """The constant-chance model at these times, for full drafts."""
    if acceptance.constant is None or acceptance.draft_tokens is None:
        return None
    never = breakeven > acceptance.draft_tokens + 1
    tokens = expected_tokens(acceptance.constant.chance, acceptance.draft_tokens)
    return Model(
        expected_tokens=tokens,
        speedup=tokens / breakeven,
        breakeven_chance=None if never else acceptance_for(breakeven, acceptance.draft_tokens),
    )


def _withheld(
    acceptance: Acceptance, baseline: Timed | None, cycle: Timed | None, differences: list[Difference]
) -> str:
    """Why no speedup is claimed; empty where one is."""
    missing = [name for name, one in (("the baseline's step", baseline), ("a cycle", cycle)) if one is None]
    if missing:
        return (
            f"the time of {' and of '.join(missing)} is not given: no speedup follows from acceptance alone"
        )
    if acceptance.tokens_per_cycle is None:
        return acceptance.tokens_because
    if differences:
        what = ", ".join(one.what for one in differences)
        return f"the runs were asked for different work, or timed differently ({what}): no speedup is claimed"
    return ""


def _pins(baseline: Timed | None, cycle: Timed | None) -> tuple[list[Difference], list[str]]:
    """What both captures declare unequally of the work asked for, and what either does not declare.

    Raises UsageError where both are one capture.
    """
    if baseline is None or cycle is None or baseline.diagnosis is None or cycle.diagnosis is None:
        return [], []
    a, b = baseline.diagnosis, cycle.diagnosis
    if fingerprint(a.time_zero_ns, a.ranks) == fingerprint(b.time_zero_ns, b.ranks):
        why = "baseline and speculative run are one capture"
        raise UsageError("--speculative", "", why, "give a capture without speculation and one with it")
    left, right = ({} if one.run is None else one.run.pins for one in (a, b))
    pairs = [
        (name, left[name].value, right[name].value) for name in SAME_PINS if name in left and name in right
    ]
    pairs += [
        ("boundary", a.step_boundary, b.step_boundary),
        ("ranks", str(world_size(a)), str(world_size(b))),
        *_shapes(baseline.time, cycle.time),
    ]
    differences = [
        Difference(what=name, baseline=one, speculative=two) for name, one, two in pairs if one != two
    ]
    return differences, sorted({*a.undeclared, *b.undeclared} & {*SAME_PINS})


def _beside(baseline: Timed | None, cycle: Timed | None) -> list[Difference]:
    """What else differs between two captures."""
    if baseline is None or cycle is None or baseline.diagnosis is None or cycle.diagnosis is None:
        return []
    return beside(baseline.diagnosis, baseline.time.phase or "", cycle.diagnosis, cycle.time.phase or "")


def _shapes(a: StepTime, b: StepTime) -> list[tuple[str, str, str]]:
    """Batch shapes as the names of the steps tell them on both sides."""
    return [] if a.shape is None or b.shape is None else [("batch shape of the steps", a.shape, b.shape)]


def _notes(baseline: Timed | None, cycle: Timed | None) -> list[str]:
    notes = [
        "Each verification yields its accepted tokens and one of the verifier's own; a last cycle that the end of a"
        " text cuts short yields fewer."
    ]
    if cycle is not None and cycle.diagnosis is not None:
        notes.append(_cycle_note(cycle.time))
    if baseline is not None and baseline.diagnosis is not None:
        notes.append("A step of the baseline yields one token per sequence.")
    if any(one is not None and one.diagnosis is not None for one in (baseline, cycle)):
        notes.append(
            "The interval is of these captures: how much two runs of one program differ is not in it. Capture each"
            " side again to see."
        )
    sides = (("baseline", baseline), ("speculative run", cycle))
    return [
        *notes,
        *(
            f"The ranks of the {name} are not aligned: its steps are those of the slowest rank."
            for name, one in sides
            if one is not None and _unaligned(one)
        ),
    ]


def _cycle_note(cycle: StepTime) -> str:
    same = "That the counts are of the same run is taken as given."
    if cycle.passes_per_step is None:
        return (
            "The cycle's time is that of a whole step of the speculative run: draft, verification and all else. That"
            f" each of its steps is one cycle is taken as given. {same}"
        )
    return (
        f"A cycle reaches from one verification's end to the next: {cycle.passes_per_step:.1f} marked forward passes on"
        f" average, drafts among them. {same}"
    )


def _unaligned(one: Timed) -> bool:
    return one.diagnosis is not None and one.time.scope == "rank" and world_size(one.diagnosis) > 1
