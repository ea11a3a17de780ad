"""Several diagnoses, one sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from analyzer.calculators.memory import NS_PER_S
from analyzer.comparison.runs import GUESSED
from analyzer.diagnosis import Diagnosis
from analyzer.errors import UsageError
from analyzer.explain.fingerprint import fingerprint
from analyzer.fits import run_mean
from analyzer.sweep.batching import batching
from analyzer.sweep.cells import AXES, CellData, Given, cell_of, declared_batch, has_joint
from analyzer.sweep.kv_context import kv_rows
from analyzer.sweep.lines import attention_class, lines
from analyzer.sweep.phases import common_kind, generates, phase_in
from analyzer.sweep.pins import undeclared, unlike, varying
from analyzer.swept import Cell, Estimated, Sweep, Unlike
from analyzer.version import __version__

NAMES_SHOWN = 6


def sweep(
    runs: Sequence[Given],
    *,
    phase: str | None = None,
    keep_unlike: bool = False,
    experts: tuple[int, int] | None = None,
) -> Sweep:
    """Lay runs out over context and batch, and fit what the step time does with each.

    Args:
        runs: two or more; where each lies is what its manifest pins or ``declared`` says.
        phase: a regular expression for the phase; by default what most runs have, the most time first.
        keep_unlike: fit cells, too, whose other pins differ from most.
        experts: experts and experts per token of the model, for the union that a batch reads.

    Raises UsageError with fewer than two runs, two of one name, or none that has the phase.

    """
    _checked(runs)
    kind = common_kind([run.diagnosis for run in runs], phase)
    phases = [phase_in(run.diagnosis, kind, declared_batch(run)) for run in runs]
    held = [(run, name) for run, name in zip(runs, phases, strict=True) if name is not None]
    if len(held) < 2:
        why = f"{held[0][0].name!r} alone has a phase {kind!r}"
        hint = "choose a phase that several runs have with --phase, or name the steps with --steps"
        raise UsageError("sweep", "", why, hint)
    joint = all(has_joint(run.diagnosis, name) for run, name in held)
    cells = [cell_of(run, name, joint=joint) for run, name in held]
    different = unlike(cells)
    fitted = [
        cell
        for cell, pins in zip(cells, different, strict=True)
        if (keep_unlike or not pins) and _placed(cell)
    ]
    along = [*lines(fitted, "context"), *lines(fitted, "batch")]
    by_name = {cell.name: cell for cell in cells}
    thresholds = held[0][0].diagnosis.constants.thresholds
    kv, of_cells = kv_rows(kind, along, by_name, thresholds)
    return Sweep(
        tracebound_version=__version__,
        phase=kind,
        boundary=", ".join(sorted({run.diagnosis.step_boundary for run, _ in held})),
        thresholds=dict(thresholds),
        cells=[
            _result(cell, pins, fitted=cell in fitted) for cell, pins in zip(cells, different, strict=True)
        ],
        lines=along,
        batching=batching(fitted, experts),
        experts=experts,
        kv_context=kv,
        kv_by_cell=of_cells,
        cache_undeclared=[cell.name for cell in cells if cell.cache is None],
        unplaced=[*_unplaced(cells), *_without_phase(runs, phases, kind)],
        varying=varying(cells),
        undeclared=undeclared(cells),
        notes=_notes(cells, fitted, joint=joint),
    )


def _checked(runs: Sequence[Given]) -> None:
    if len(runs) < 2:
        raise UsageError(
            "sweep", "", f"{len(runs)} run is no sweep", "give runs of several contexts or batch sizes"
        )
    name, number = Counter(run.name for run in runs).most_common(1)[0]
    if number > 1:
        raise UsageError(name, "", "is given twice", "name each run once; repeats are captures of their own")
    seen: dict[str, str] = {}
    for run in runs:
        other = seen.setdefault(_fingerprint(run.diagnosis), run.name)
        if other != run.name:
            why = f"holds the same capture as {other!r}"
            raise UsageError(run.name, "", why, "name each capture once: a copy is no repeat")


def _fingerprint(diagnosis: Diagnosis) -> str:
    return fingerprint(diagnosis.time_zero_ns, diagnosis.ranks)


def _placed(cell: CellData) -> bool:
    return any(cell.place(axis) is not None for axis in AXES) and _has_length(cell)


def _has_length(cell: CellData) -> bool:
    return bool(cell.steps.sum() > 0 and cell.rank_steps.sum() > 0)


def _result(cell: CellData, pins: list[Unlike], *, fitted: bool) -> Cell:
    mean = run_mean(0, cell.steps)
    rate = NS_PER_S / mean.mean if generates(cell.phase) and mean.mean > 0 else None
    batch = cell.batch.value
    return Cell(
        name=cell.name,
        inputs=[one.path for one in cell.given.diagnosis.inputs],
        run_id=cell.given.diagnosis.run.run_id if cell.given.diagnosis.run is not None else None,
        fingerprint=_fingerprint(cell.given.diagnosis),
        context=cell.context,
        batch=cell.batch,
        cache_initialization=cell.cache,
        cache_source=cell.cache_source,
        pins=dict(cell.pins),
        undeclared=[pin for pin in cell.given.diagnosis.undeclared if pin not in cell.pins],
        unlike=pins,
        fitted=fitted,
        left_out_because="" if fitted else _why_left_out(cell, pins),
        phase=cell.phase,
        scope=cell.scope,
        rank=cell.rank,
        steps=len(cell.steps),
        steps_left_out=cell.left_out,
        step_ns=Estimated(value=mean.mean, ci95=mean.ci95),
        rank_step_ns=float(cell.rank_steps.mean()),
        mean_ns={name: float(part.mean()) for name, part in cell.parts.items()},
        classes=list(cell.classes),
        attention_ns=cell.class_mean(0, attention_class).mean if cell.classes else None,
        replays_unresolved=cell.replays_unresolved,
        tokens_per_s=rate * batch if rate is not None and batch is not None else None,
        tokens_per_s_per_stream=rate,
    )


def _why_left_out(cell: CellData, pins: Sequence[Unlike]) -> str:
    if not _has_length(cell):
        return "its steps have no length"
    if not _placed(cell):
        return "neither context nor batch is declared"
    return f"differs from most in {', '.join(one.pin for one in pins)}"


def _unplaced(cells: Sequence[CellData]) -> list[str]:
    """Where nobody says on which place of an axis cells lie, or says it in no number."""
    found = []
    for axis in AXES:
        places = {cell.name: cell.context if axis == "context" else cell.batch for cell in cells}
        open_ = [name for name, place in places.items() if place.value is None and place.told is None]
        if open_:
            found.append(f"{axis} is undeclared of {_named(open_, len(cells))}")
        found += [
            f"{name}: {axis} is {place.told!r}, no whole number above 0"
            for name, place in places.items()
            if place.value is None and place.told is not None
        ]
    return found


def _named(names: Sequence[str], of: int) -> str:
    if len(names) == of:
        return f"all {of} cells"
    shown = ", ".join(names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more cells"


def _without_phase(runs: Sequence[Given], phases: Sequence[str | None], kind: str) -> list[str]:
    return [
        f"{run.name}: has no phase {kind!r}" for run, phase in zip(runs, phases, strict=True) if phase is None
    ]


def _notes(cells: Sequence[CellData], fitted: Sequence[CellData], *, joint: bool) -> list[str]:
    notes = []
    caches = {cell.cache for cell in fitted}
    if len(caches) > 1:
        words = ", ".join(sorted("undeclared" if cache is None else cache for cache in caches))
        notes.append(
            f"Caches were initialized in several ways ({words}): no line holds cells of two of them."
        )
    notes += _guessed(cells)
    several = max(len(cell.given.diagnosis.ranks) for cell in cells) > 1
    if several and not joint:
        notes.append(
            "Not every run has an account of all ranks together: each cell is its slowest rank's own path."
        )
    if any(cell.batch.source == "step names" for cell in fitted):
        notes.append(
            "The batch of some cells is read off the names of their steps: of one engine, not of the whole group."
        )
    contradicting = [
        cell.name for cell in fitted if cell.batch.source in ("grid", "manifest") and _contradicts(cell)
    ]
    if contradicting:
        notes.append(
            f"The names of the steps tell another batch than is declared: {', '.join(contradicting)}."
        )
    return notes


def _guessed(cells: Sequence[CellData]) -> list[str]:
    """Cells whose steps are no marked steps."""
    rules = {cell.name: cell.given.diagnosis.steps.rule for cell in cells}
    guessed = [name for name, rule in rules.items() if rule == GUESSED]
    notes = []
    if guessed:
        told = "are a sequence of kernels that repeats: whether that is a whole step is a guess"
        notes.append(f"The steps of {', '.join(guessed)} {told}.")
    return notes


def _contradicts(cell: CellData) -> bool:
    return cell.batch_in_names is not None and cell.batch_in_names != cell.batch.value
