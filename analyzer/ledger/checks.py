"""What makes a ledger wrong beyond its types: sizes, ranks, patterns, entries that say the same twice."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from analyzer.ledger.model import DeviceBandwidth, Entry, Layout, Ledger, Phase, Uncounted, Workload

FLOP_DTYPES = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
"""Names of arithmetic types in ledgers: those of the device table's peaks."""
MOST = 2**63 - 1  # of TOML's integers
_STEP = re.compile(r"\.?(\w+)|\[(\d+)\]|\[\.\.\.\]")


class Defect(NamedTuple):
    """A place in the file, in its reader's words, and what is wrong there."""

    where: str
    why: str


def defect_of(ledger: Ledger) -> Defect | None:
    """The first thing that is wrong with a ledger whose types are right; None where nothing is."""
    return next(_defects(ledger), None)


def _defects(ledger: Ledger) -> Iterator[Defect]:
    yield from _workload(ledger.workload)
    most = None
    if ledger.layout is not None:
        yield from _layout(ledger.layout)
        most = ledger.layout.ranks
    if not ledger.phase:
        yield Defect("phase", "there is none; a ledger needs at least one")
    yield from _twice((phase.name for phase in ledger.phase), "phase", "name")
    for number, phase in enumerate(ledger.phase, 1):
        yield from _phase(phase, phase_place(number, phase.name), number, most)
    yield from _devices(ledger.device, most)
    for number, tensor in enumerate(ledger.uncounted, 1):
        yield from _uncounted(tensor, f"uncounted {number}")


def phase_place(number: int, name: str) -> str:
    """Such as ``phase 2 'head'``."""
    return f"phase {number} '{name}'"


def _workload(workload: Workload) -> Iterator[Defect]:
    if not workload.name:
        yield Defect("workload, name", "is empty")
    tokens = workload.tokens_per_step
    if tokens is not None and not (math.isfinite(tokens) and tokens > 0):
        yield Defect("workload, tokens_per_step", f"is {tokens}; it must be a finite number above 0")
    yield from _least(workload.batch, 1, "workload, batch")
    yield from _least(workload.context, 0, "workload, context")
    yield from _pattern(workload.applies_to, "workload, applies_to")


def _layout(layout: Layout) -> Iterator[Defect]:
    yield from _least(layout.ranks, 1, "layout, ranks")
    for name in ("tensor", "expert", "pipeline", "data"):
        size = getattr(layout, name)
        yield from _least(size, 1, f"layout, {name}")
        if size > layout.ranks:
            yield Defect(f"layout, {name}", f"is {size}: more than all {layout.ranks} ranks")


def _phase(phase: Phase, place: str, number: int, most: int | None) -> Iterator[Defect]:
    if not phase.name:
        yield Defect(f"phase {number}, name", "is empty")
    if phase.overlaps_previous and number == 1:
        yield Defect(f"{place}, overlaps_previous", "the first phase has none before it")
    yield from _pattern(phase.kernels, f"{place}, kernels")
    if not phase.entry:
        yield Defect(place, "has no entries; give each phase its bytes, or leave it out")
    seen: dict[tuple[object, ...], int] = {}
    for index, entry in enumerate(phase.entry, 1):
        yield from _entry(entry, f"{place}, entry {index}", most)
        for rank in entry.ranks:
            first = seen.setdefault((entry.kind, entry.name, entry.dtype, rank), index)
            if first != index:
                why = f"says again what entry {first} says of rank {rank}: the same kind, name and dtype"
                yield Defect(f"{place}, entry {index}", f"{why}; give them names that differ")


def _entry(entry: Entry, place: str, most: int | None) -> Iterator[Defect]:
    yield from _ranks(entry.ranks, f"{place}, ranks", most)
    yield from _least(entry.bytes, 0, f"{place}, bytes")
    yield from _least(entry.tensors, 0, f"{place}, tensors")
    yield from _least(entry.flop, 0, f"{place}, flop")
    if not entry.source:
        yield Defect(f"{place}, source", "is empty; say where the figure comes from")
    if entry.flop_dtype is not None and entry.flop_dtype not in FLOP_DTYPES:
        yield Defect(f"{place}, flop_dtype", f"is {entry.flop_dtype!r}; use one of {', '.join(FLOP_DTYPES)}")
    if entry.flop_dtype is not None and entry.flop is None:
        yield Defect(f"{place}, flop_dtype", "stands without flop")


def _ranks(ranks: list[int], place: str, most: int | None) -> Iterator[Defect]:
    if not ranks:
        yield Defect(place, "is empty; name the ranks that the figure is for")
    for before, rank in zip([-1, *ranks], ranks, strict=False):
        if rank < 0:
            yield Defect(place, f"holds {rank}; ranks count from 0")
        elif rank == before:
            yield Defect(place, f"holds rank {rank} twice")
        elif rank < before:
            yield Defect(place, f"rank {rank} comes after {before}; write ranks in rising order")
        if most is not None and rank >= most:
            yield Defect(place, f"holds rank {rank}, but the layout has ranks 0 to {most - 1}")


def _devices(devices: list[DeviceBandwidth], most: int | None) -> Iterator[Defect]:
    taken: dict[int, int] = {}
    for number, device in enumerate(devices, 1):
        place = f"device {number}"
        yield from _ranks(device.ranks, f"{place}, ranks", most)
        for rank in device.ranks:
            first = taken.setdefault(rank, number)
            if first != number:
                yield Defect(place, f"says again what device {first} says of rank {rank}")
        if not device.source:
            yield Defect(f"{place}, source", "is empty; say where the figure comes from")
        if device.bytes_per_s is None and not device.peak_flop_per_s:
            yield Defect(place, "has neither bytes_per_s nor peak_flop_per_s")
        yield from _rates({"bytes_per_s": device.bytes_per_s}, place)
        yield from _rates(device.peak_flop_per_s, f"{place}, peak_flop_per_s")
        for dtype in device.peak_flop_per_s:
            if dtype not in FLOP_DTYPES:
                why = f"names {dtype!r}; use one of {', '.join(FLOP_DTYPES)}"
                yield Defect(f"{place}, peak_flop_per_s", why)


def _rates(rates: Mapping[str, float | None], place: str) -> Iterator[Defect]:
    for name, rate in rates.items():
        if rate is not None and not (math.isfinite(rate) and rate > 0):
            yield Defect(f"{place}, {name}", f"is {rate}; it must be a finite number above 0")


def _uncounted(tensor: Uncounted, place: str) -> Iterator[Defect]:
    yield from _least(tensor.tensors, 1, f"{place}, tensors")
    yield from _least(tensor.bytes, 0, f"{place}, bytes")
    for size in tensor.shape:
        yield from _least(size, 0, f"{place}, shape")


def _least(value: int | None, least: int, place: str) -> Iterator[Defect]:
    if value is not None and value < least:
        yield Defect(place, f"is {value}; it must be {least} or more")
    if value is not None and value > MOST:
        yield Defect(place, f"is {value}; the file holds no more than {MOST}")


def _pattern(pattern: str | None, place: str) -> Iterator[Defect]:
    if pattern is not None:
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            yield Defect(place, f"is no regular expression: {error}")


def _twice(names: Iterable[str], what: str, key: str) -> Iterator[Defect]:
    seen: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        first = seen.setdefault(name, number)
        if first != number:
            yield Defect(f"{what} {number}, {key}", f"'{name}' is the {key} of {what} {first} already")


def place_of(path: str, document: Mapping[str, Any]) -> str:
    """The place ``$.phase[0].entry[1].bytes`` in words: ``phase 1 'attention', entry 2, bytes``."""
    words: list[str] = []
    here: Any = document
    for name, index in _STEP.findall(path.removeprefix("$")):
        if name:
            words.append(name)
            here = here.get(name) if isinstance(here, Mapping) else None
        elif index:
            words[-1] += f" {int(index) + 1}"
            here = here[int(index)] if isinstance(here, list) and int(index) < len(here) else None
            if words[-1].startswith("phase ") and isinstance(here, Mapping) and here.get("name"):
                words[-1] += f" '{here['name']}'"
    return ", ".join(words)
