"""What a ledger file holds: the TOML's tables, field by field.

A ledger is a model of one kind of step: the bytes that each rank moves from and to device memory, counted each
time that they must cross. Caches can serve them instead: a counter measures that, and stands in another column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

FORMAT = "tracebound.ledger"
FORMAT_VERSION = 1

Kind = Literal[
    "routed-experts",
    "dense-weights",  # shared experts among them
    "kv-cache",
    "recurrent-state",
    "activations",
    "quantization-metadata",  # scales and zero points
    "replicated-reads",  # the same tensor read by every rank of a group: norms, routers, embeddings that are not split
]
FOREIGN = "no rule knows it"
"""How ``why`` of a tensor begins that a step may read, but that is not known."""
Basis = Literal["header", "model", "measured", "declared"]
"""Where a figure comes from: a checkpoint's tensor headers, a formula, a measurement, or the user's word."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bytes of one kind that each of ``ranks`` moves per step."""

    kind: Kind
    ranks: list[int]
    bytes: int  # of one rank, per step
    basis: Basis
    source: str
    name: str = ""
    dtype: str | None = None  # as stored and read
    tensors: int | None = None
    flop: int | None = None  # arithmetic of one rank that goes with it, per step; null: not told
    flop_dtype: str | None = None  # fp32, tf32, fp16, bf16, fp8, fp4: whose peak bounds it


class Phase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the step. Serial phases follow one another and their floors add.

    ``overlaps_previous``: it runs beside the phase before it. They share each rank's bandwidth, so their bytes add
    per rank and the slowest rank sets one floor for all of them.
    """

    name: str
    entry: list[Entry]
    overlaps_previous: bool = False
    kernels: str | None = None  # regex of the kernels that move these bytes; null: not told


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What kind of step it is, as far as known."""

    name: str
    tokens_per_step: float | None = None  # that all ranks together yield
    batch: int | None = None
    context: int | None = None
    applies_to: str | None = None  # regex of the diagnosis' phases whose steps these are
    model: str | None = None
    assumptions: list[str] = []


class Layout(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sizes of the parallel groups."""

    ranks: int
    tensor: int = 1
    expert: int = 1
    pipeline: int = 1
    data: int = 1


class DeviceBandwidth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the user knows of the devices better than the table: it goes before all other sources."""

    ranks: list[int]
    source: str
    bytes_per_s: float | None = None
    peak_flop_per_s: dict[str, float] = {}


class Uncounted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tensor of the checkpoint that is in no entry: no rule knows it, or a step does not read it.

    Several that differ only in numbers of their names (``*`` in ``name``) can be one row: ``bytes`` is their sum,
    ``shape`` that of each.
    """

    name: str
    dtype: str
    shape: list[int]
    bytes: int
    why: str
    tensors: int = 1


class Ledger(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    format: str
    format_version: int
    workload: Workload
    phase: list[Phase]
    layout: Layout | None = None
    device: list[DeviceBandwidth] = []
    uncounted: list[Uncounted] = []


def pipelined(ledger: Ledger) -> bool:
    """Whether stages can work on a batch each at the same time: the floors of one batch's stages bound no rate then."""
    return ledger.layout is not None and ledger.layout.pipeline > 1


def together(phases: Sequence[Phase]) -> list[list[Phase]]:
    """The phases in order, those that overlap in one list."""
    parts: list[list[Phase]] = []
    for phase in phases:
        if phase.overlaps_previous and parts:
            parts[-1].append(phase)
        else:
            parts.append([phase])
    return parts
