"""What a reader of a scaling study must know of its runs before the figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analyzer.comparison.runs import GUESSED
from analyzer.fits import MIN_STEPS
from analyzer.study.scaling_pins import PROFILER
from analyzer.study.scaling_runs import StudyRun


def notes_on(runs: Sequence[StudyRun]) -> list[str]:
    """What the captures show of unequal work, of steps that say little, and of ranks that were not captured."""
    return [*_other_work(runs), *_other_steps(runs), *(note for run in runs for note in _other_ranks(run))]


def _other_work(runs: Sequence[StudyRun]) -> list[str]:
    """What the captures themselves show of unequal work, whatever is declared."""
    notes = []
    if len({run.steps.phase for run in runs}) > 1:
        told = _each(runs, lambda run: repr(run.steps.phase))
        notes.append(
            f"No phase bears the same name in all runs: each is represented by its leading one ({told})."
        )
    if len({run.steps.shape for run in runs} - {None}) > 1:
        told = _each(runs, lambda run: run.steps.shape or "not told")
        notes.append(f"The names of the steps tell different batch shapes ({told}): not the same work.")
    if len({_devices(run) for run in runs} - {""}) > 1:
        told = _each(runs, lambda run: _devices(run) or "not recorded")
        notes.append(f"The captures show different devices ({told}): the fit mixes devices and ranks.")
    if len({run.pins[PROFILER] for run in runs}) > 1:
        told = _each(runs, lambda run: run.pins[PROFILER])
        notes.append(
            f"The runs were recorded in different ways ({told}): what recording cost differs, most of all on the CPU."
        )
    return notes


def _other_steps(runs: Sequence[StudyRun]) -> list[str]:
    """What limits how far a run's steps speak for it."""
    notes = []
    guessed = [run for run in runs if run.given.diagnosis.steps.rule == GUESSED]
    if guessed:
        names = ", ".join(run.given.name for run in guessed)
        notes.append(
            f"The steps of {names} are a sequence of kernels that repeats: whether such a unit is a whole step is a"
            " guess. Name the steps with --steps."
        )
    few = [run for run in runs if len(run.steps.step_ns) < MIN_STEPS]
    if few:
        names = ", ".join(run.given.name for run in few)
        notes.append(f"Fewer than {MIN_STEPS} steps in {names}: there is no interval.")
    slowest = sorted({run.ranks for run in runs if run.steps.rank is not None and run.ranks > 1})
    if slowest:
        counts = ", ".join(map(str, slowest))
        notes.append(
            f"Ranks are not aligned in the runs of {counts} ranks: a step is that of the slowest rank there, not of all"
            " ranks together."
        )
    return notes


def _other_ranks(run: StudyRun) -> list[str]:
    captured, name = len(run.given.diagnosis.ranks), run.given.name
    if captured > run.ranks:
        return [f"{name} holds {captured} ranks, but is declared as {run.ranks}."]
    if captured < run.ranks:
        return [
            f"Of the {run.ranks} ranks of {name}, {captured} were captured: what the others did is not in its step."
        ]
    return []


def _devices(run: StudyRun) -> str:
    names = {rank.device.name for rank in run.given.diagnosis.ranks if rank.device and rank.device.name}
    return ", ".join(sorted(names))


def _each(runs: Sequence[StudyRun], told: Callable[[StudyRun], str]) -> str:
    return ", ".join(f"{told(run)} at {run.ranks}" for run in runs)
