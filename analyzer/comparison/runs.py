"""Two diagnoses, one comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from analyzer.analysis import Analysis
from analyzer.comparison.changes import work_changes
from analyzer.comparison.collective_kernels import collective_kernels
from analyzer.comparison.distortion import distortion_notes
from analyzer.comparison.pairs import PROVEN, compared_pairs, phase_pairs
from analyzer.comparison.predictions import held_predictions
from analyzer.comparison.replays import fallback_notes, graph_uses, shape_uses
from analyzer.comparison.result import (
    Comparison,
    Difference,
    PhasePair,
    ShapeUse,
    Side,
    WorkCheck,
)
from analyzer.comparison.sides import budget_of, step_times_of
from analyzer.comparison.work import ORDER
from analyzer.diagnosis import Diagnosis
from analyzer.errors import UsageError
from analyzer.explain.fingerprint import fingerprint
from analyzer.version import __version__

GUESSED = "kernel-period"
"""The rule that takes a repeating sequence of kernels for a step."""
WORK_PINS = ("model", "precision", "weights", "input", "context", "batch", "cache_initialization")
"""Pins that say what was asked of the model; the others say on what and how it ran."""


def compare_analyses(analysis: Analysis, other: Analysis) -> Comparison:
    """Hold another analysis (B) against one (A): see :func:`compare`."""
    return compare(analysis.diagnosis, other.diagnosis)


def compare(a: Diagnosis, b: Diagnosis, tested: Collection[str] = ()) -> Comparison:
    """Hold run B against run A. Differences are B minus A.

    ``tested``: hypotheses or changes, as A's diagnosis predicts them, that B is known to have made. That it
    captured graphs shows by itself.

    Raises UsageError where one of them has no step to compare, or A predicted no such change.
    """
    phases, alone = phase_pairs(a, b)
    pins = _pins(a, b)
    pairs = compared_pairs(a, b, phases, lambda work: _limited(work, a, b, pins))
    if not pairs:
        sides = [name for name, side in (("A", a), ("B", b)) if not side.budget]
        where = " and ".join(sides) if sides else "A and B"
        why = "holds no step" if sides else "have no rank in common"
        raise UsageError(
            where, "", why, "name the steps with --steps, or choose ranks that both have with --ranks"
        )
    head = pairs[0]
    ranks = _ranks(pairs, head)
    work = work_changes(a, b, head.phase_a, head.phase_b, ranks)
    side_a, side_b = _side(a, head, first=True), _side(b, head, first=False)
    return Comparison(
        tracebound_version=__version__,
        a=side_a,
        b=side_b,
        same_work=head.work.same_work,
        same_work_because=head.work.because,
        level=_level(a, b, head),
        differences=head.work.differences,
        checks=[*_checks(a, b, head), *collective_kernels(a, b, head.phase_a, head.phase_b, ranks), *pins],
        step_delta_ns=head.step_delta_ns,
        delta_ns=head.delta_ns,
        speedup=head.speedup,
        speedup_ci95=head.speedup_ci95,
        speedup_because=_speedup_because(a, b, head),
        pairs=pairs,
        unpaired_phases=alone,
        changes=work.changes,
        replaced=work.replaced,
        matched_by="place" if work.by_place else "name",
        matched_because=work.because,
        predictions=held_predictions(a, head, tested),
        undeclared=sorted({*a.undeclared, *b.undeclared}),
        notes=[
            *_one_capture(a, b),
            *distortion_notes(a, b, side_a, side_b),
            *_replay_notes(pairs, side_b.shapes),
            *_notes(head),
            *_worst(pairs, head),
        ],
    )


def _pins(a: Diagnosis, b: Diagnosis) -> list[Difference]:
    """Pins of both runs that differ."""
    left, right = ({} if one.run is None else one.run.pins for one in (a, b))
    return [
        Difference(what=f"pin {name}", a=left[name].value, b=right[name].value)
        for name in left
        if name in right and left[name].value != right[name].value
    ]


def _limited(work: WorkCheck, a: Diagnosis, b: Diagnosis, pins: Iterable[Difference]) -> WorkCheck:
    """What equal launches are worth: nothing where other work was asked for, little where steps are guessed."""
    if work.same_work not in PROVEN:
        return work
    asked = [pin.what for pin in pins if pin.what.removeprefix("pin ") in WORK_PINS]
    if asked:
        told = f"what they launched is {work.same_work}"
        why = f"the runs were asked for different work ({', '.join(asked)}), although {told}"
        return msgspec.structs.replace(work, same_work="different", because=why)
    if GUESSED in (a.steps.rule, b.steps.rule):
        why = (
            "the steps of one side are a sequence of kernels that repeats: equal work per step follows from that, and"
            " whether such a unit is a whole step is a guess"
        )
        return msgspec.structs.replace(work, same_work="unverifiable", because=why)
    return work


def _side(diagnosis: Diagnosis, head: PhasePair, *, first: bool) -> Side:
    phase, rank = (head.phase_a, head.rank_a) if first else (head.phase_b, head.rank_b)
    budget = budget_of(diagnosis, phase, rank)
    assert budget is not None
    replayed = head.replayed_a if first else head.replayed_b
    ranks = [one.rank for one in diagnosis.ranks]
    return Side(
        inputs=[one.path for one in diagnosis.inputs],
        kinds=sorted({one.kind for one in diagnosis.inputs}),
        boundary=diagnosis.step_boundary,
        steps_rule=diagnosis.steps.rule,
        phase=phase,
        scope=head.scope,
        rank=rank,
        ranks=ranks,
        step_ns=head.a if first else head.b,
        step_times_ns=step_times_of(diagnosis, budget),
        warmup_excluded=budget.windows_excluded,
        replayed=replayed,
        replayed_kernel_share=replayed.share,
        graphs=graph_uses(diagnosis, ranks),
        shapes=shape_uses(diagnosis, ranks),
    )


def _ranks(pairs: Iterable[PhasePair], head: PhasePair) -> list[tuple[int, int]]:
    """The ranks that the headline rests on."""
    if head.rank_a is not None and head.rank_b is not None:
        return [(head.rank_a, head.rank_b)]
    return sorted(
        (pair.rank_a, pair.rank_b)
        for pair in pairs
        if (pair.phase_a, pair.phase_b) == (head.phase_a, head.phase_b)
        and pair.rank_a is not None
        and pair.rank_b is not None
    )


def _checks(a: Diagnosis, b: Diagnosis, head: PhasePair) -> list[Difference]:
    """What else must be equal: how steps were timed and found, and on what."""
    facts = [
        ("boundary", a.step_boundary, b.step_boundary),
        ("how steps were found", a.steps.rule, b.steps.rule),
        ("phase", head.phase_a, head.phase_b),
        ("ranks", _numbers(a), _numbers(b)),
        ("devices", _devices(a), _devices(b)),
        ("profiler", _profilers(a), _profilers(b)),
    ]
    return [Difference(what=what, a=one, b=two) for what, one, two in facts if one != two]


def _numbers(diagnosis: Diagnosis) -> str:
    return ", ".join(str(rank.rank) for rank in diagnosis.ranks)


def _devices(diagnosis: Diagnosis) -> str:
    names = {rank.device.name or "not recorded" if rank.device else "none" for rank in diagnosis.ranks}
    return ", ".join(sorted(names))


def _profilers(diagnosis: Diagnosis) -> str:
    return ", ".join(sorted({f"{one.kind} {one.profiler_version or ''}".strip() for one in diagnosis.inputs}))


def _level(a: Diagnosis, b: Diagnosis, head: PhasePair) -> str:
    if a.step_boundary == "host" or b.step_boundary == "host":
        return "host"
    return "whole replays" if head.replayed_a.whole_replays or head.replayed_b.whole_replays else "kernels"


def _speedup_because(a: Diagnosis, b: Diagnosis, head: PhasePair) -> str:
    if a.step_boundary != b.step_boundary:
        return "no speedup is claimed: the steps were timed at different boundaries"
    if head.work.same_work not in PROVEN:
        return f"no speedup is claimed: the work is {head.work.same_work}"
    if head.speedup is None:
        return "no speedup is claimed: B's steps have no length"
    return "" if head.step_delta_ns.shown else f"no difference is shown: {head.step_delta_ns.because}"


def _one_capture(a: Diagnosis, b: Diagnosis) -> list[str]:
    """Whether both sides are one capture, under whatever names, as far as a wall clock tells."""
    if a.time_zero_ns is None or fingerprint(a.time_zero_ns, a.ranks) != fingerprint(b.time_zero_ns, b.ranks):
        return []
    return ["A and B are one capture: nothing was run again, and that no difference is shown is no evidence."]


def _notes(head: PhasePair) -> list[str]:
    if head.phase_a == head.phase_b:
        return []
    return [f"No phase bears the same name in both runs: {head.phase_a!r} is held against {head.phase_b!r}."]


def _worst(pairs: Iterable[PhasePair], head: PhasePair) -> list[str]:
    """Pairs whose work fares worse than the headline's."""
    worse = [pair for pair in pairs if ORDER.index(pair.work.same_work) > ORDER.index(head.work.same_work)]
    phases = dict.fromkeys(pair.phase_a for pair in worse)
    return [f"The work of phase {phase!r} is not proven to be the same." for phase in phases]


def _replay_notes(pairs: Iterable[PhasePair], shapes: Sequence[ShapeUse]) -> list[str]:
    """What of B replays no graph, or a part only, while other shapes or phases do."""
    if shapes:
        return fallback_notes("B", shapes)
    heads: dict[str, PhasePair] = {}
    for pair in pairs:
        heads.setdefault(pair.phase_b, pair)
    replaying = {
        phase
        for phase, pair in heads.items()
        if _replays(pair.replayed_b.share, pair.replayed_b.whole_replays)
    }
    if not replaying:
        return []
    return [
        f"Phase {phase!r} of B replays no graph, while {', '.join(map(repr, sorted(replaying)))} does."
        for phase in heads
        if phase not in replaying
    ]


def _replays(share: float | None, whole: int) -> bool:
    return whole > 0 or bool(share)
