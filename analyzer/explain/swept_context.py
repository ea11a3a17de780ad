"""``kv-context`` of a capture by a sweep: what a sweep of this or of like runs says takes the place of "unmeasured"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from analyzer.diagnosis import Hypothesis, Rank, RunFacts, SweepUse, Verdict
from analyzer.diagnosis.sweep import Relation
from analyzer.errors import TraceError
from analyzer.explain.fingerprint import fingerprint
from analyzer.reconstruct.phases import kind_of
from analyzer.swept import Cell, Sweep, from_json
from collectors.manifest import PINS, TOLD_BY_DIAGNOSIS

ID = "kv-context"
PLACED_BY = ("context", "batch", "cache_initialization")
"""Pins that say where a run lies in a sweep: they differ from cell to cell."""
_HELD = tuple(pin for pin in PINS if pin not in (*PLACED_BY, *TOLD_BY_DIAGNOSIS, "input"))
"""Pins that must be equal; the input varies with the context."""


def read_sweep(path: str | Path) -> Sweep:
    """A ``sweep.json``. Raises TraceError."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise TraceError(str(path), "", error.strerror or str(error), "check the path of --sweep") from error
    return from_json(data, str(path))


def sweep_use(
    sweep: Sweep, path: str, time_zero_ns: str | None, ranks: Sequence[Rank], run: RunFacts | None
) -> SweepUse:
    """What ties the sweep's cells to a capture: itself among them, else the pins of the one most like it."""
    mark = fingerprint(time_zero_ns, ranks)
    for cell in sweep.cells:
        if cell.fingerprint == mark and cell.fitted:
            return SweepUse(path=path, phase=sweep.phase, relation="cell", cell=cell.name, pins=[])
        if cell.fingerprint == mark and cell.unlike:
            pins = [one.pin for one in cell.unlike]
            return SweepUse(path=path, phase=sweep.phase, relation="other pins", cell=cell.name, pins=pins)
    mine = _pins(ranks, run)
    fitted = [cell for cell in sweep.cells if cell.fitted] or sweep.cells
    differing, undeclared, _ = min((*_compared(mine, cell), cell.name) for cell in fitted)
    relation: Relation = "other pins" if differing else "undeclared pins" if undeclared else "equal pins"
    at = [cell.name for cell in fitted if _same_place(run, cell)] if relation == "equal pins" else []
    return SweepUse(
        path=path,
        phase=sweep.phase,
        relation=relation,
        cell=at[0] if at else None,
        pins=differing or undeclared,
    )


def _same_place(run: RunFacts | None, cell: Cell) -> bool:
    """Whether a run declares the very context, batch and cache initialization of a cell, and all of them."""
    pins = {} if run is None else run.pins
    return all(pin in pins and pins[pin].value == cell.pins.get(pin) for pin in PLACED_BY)


def _pins(ranks: Sequence[Rank], run: RunFacts | None) -> Mapping[str, str]:
    pins = {} if run is None else {name: pin.value for name, pin in run.pins.items()}
    devices = sorted({rank.device.name for rank in ranks if rank.device and rank.device.name})
    return {**({"hardware": ", ".join(devices)} if devices else {}), **pins}


def _compared(mine: Mapping[str, str], cell: Cell) -> tuple[list[str], list[str]]:
    """Pins that differ, and those that one side does not declare."""
    differing = [pin for pin in _HELD if pin in mine and pin in cell.pins and mine[pin] != cell.pins[pin]]
    return differing, [pin for pin in _HELD if pin not in mine or pin not in cell.pins]


def with_sweep(rows: Sequence[Hypothesis], sweep: Sweep, use: SweepUse, boundary: str) -> list[Hypothesis]:
    """The rows with the sweep's ``kv-context`` in place of their own, for phases of the swept kind.

    ``boundary``: where the steps of this diagnosis end; of steps that end elsewhere a share is that of another whole.
    """
    return [
        row
        if row.id != ID or kind_of(row.phase) != sweep.phase
        else _replaced(row, sweep, use)
        if boundary in sweep.boundary.split(", ") or use.relation == "other pins"
        else _of_other_ends(row, sweep, use, boundary)
        for row in rows
    ]


def _of_other_ends(row: Hypothesis, sweep: Sweep, use: SweepUse, boundary: str) -> Hypothesis:
    """No verdict from shares of steps that end elsewhere."""
    note = (
        f"the sweep {use.path} has steps with the boundary {sweep.boundary} (there {sweep.kv_context.verdict}),"
        f" this diagnosis {boundary}: a share of the one is none of the other, so make the sweep with"
        f" `--boundary {boundary}`"
    )
    unmeasured = sweep.kv_context.verdict == "unmeasured"
    return msgspec.structs.replace(
        row, verdict="unmeasured" if unmeasured else "inconclusive", verdict_note=note
    )


def _replaced(row: Hypothesis, sweep: Sweep, use: SweepUse) -> Hypothesis:
    if use.relation == "other pins":
        note = (
            f"the sweep {use.path} is of other runs that differ in {', '.join(use.pins)}; {row.verdict_note}"
        )
        return msgspec.structs.replace(row, verdict_note=note)
    own = None if use.cell is None else sweep.kv_by_cell.get(use.cell)
    if use.relation == "cell":
        whose = f"of which this capture is the cell {use.cell}"
        if own is None:
            note = f"in the sweep {use.path}, {whose}, no other context stands beside it; {row.verdict_note}"
            return msgspec.structs.replace(row, verdict_note=note)
        note = f"by the sweep {use.path}, {whose}: {own.verdict_note}"
        return msgspec.structs.replace(own, phase=row.phase, verdict_note=note)
    return _of_other_runs(row, sweep, use, own)


def _of_other_runs(row: Hypothesis, sweep: Sweep, use: SweepUse, own: Hypothesis | None) -> Hypothesis:
    """A verdict without times: those are of other executions. With a cell at the very place also its share."""
    if own is not None:
        note = (
            f"by the sweep {use.path} of other runs with equal pins, its cell {use.cell}: {own.verdict_note}"
        )
        return msgspec.structs.replace(
            own, phase=row.phase, verdict_note=note, measured=None, gain_upper_bound_ns=None
        )
    found = sweep.kv_context
    told = "nothing" if found.share is None else f"{100 * found.share.value:.1f} % of their step"
    how = (
        "whose pins equal this one's, none at its context, batch and cache initialization"
        if use.relation == "equal pins"
        else f"and nothing says whether they equal this one in {', '.join(use.pins)}"
    )
    note = (
        f"the sweep {use.path} is of other runs, {how}: there {found.verdict}, {told}, {found.verdict_note}"
    )
    verdict: Verdict = "unmeasured" if found.verdict == "unmeasured" else "inconclusive"
    return msgspec.structs.replace(row, verdict=verdict, verdict_note=note)
