"""The whole result: everything that reports, comparisons and the store need."""

from __future__ import annotations

import msgspec

from analyzer.diagnosis.bytes import Bytes
from analyzer.diagnosis.capture import Constants, Input, Quality, RunFacts, SharedDevice, Steps, Unmeasured
from analyzer.diagnosis.collectives import AlphaBeta, Collective, CollectiveCost, LateRank
from analyzer.diagnosis.device_work import (
    ClassTime,
    GraphReplay,
    Kernel,
    KernelShape,
    RangeTime,
    ShapeReplays,
    SmallKernels,
    StepSequence,
    StepWork,
)
from analyzer.diagnosis.host_work import HostCulprit, HostRollup, LaunchBill, LookFirst
from analyzer.diagnosis.service import Service
from analyzer.diagnosis.steps import Budget, GlobalAccount, Outlier, Rank
from analyzer.diagnosis.sweep import SweepUse
from analyzer.diagnosis.verdicts import Hypothesis
from analyzer.predicted import WhatIf

FORMAT = "tracebound.diagnosis"
FORMAT_VERSION = 1


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """The step that the timeline shows, and why that one."""

    rank: int
    window: int
    step: str
    phase: str
    why: str
    events: int
    left_out: int  # the shortest records beyond the limit


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What ``diagnosis.json`` holds. The tables travel beside it (``tables``)."""

    format: str
    format_version: int
    tracebound_version: str
    time_zero_ns: str | None
    inputs: list[Input]
    boundary: str
    constants: Constants  # of the first rank; each rank carries its own
    steps: Steps
    ranks: list[Rank]
    missing_ranks: list[int]
    rank_basis: str
    global_: GlobalAccount | None = msgspec.field(name="global", default=None)
    budget: list[Budget]
    outliers: list[Outlier] = []
    collectives: list[Collective] = []
    late_ranks: list[LateRank] = []
    alpha_beta: list[AlphaBeta] = []
    collective_costs: list[CollectiveCost] = []
    kernels: list[Kernel]
    host_culprits: list[HostCulprit]
    hypotheses: list[Hypothesis]
    whatif: WhatIf | None = None
    service: Service | None = None  # None without a token log
    run: RunFacts | None = None  # None without a manifest
    undeclared: list[str]
    unmeasured: list[Unmeasured]
    quality: list[Quality]
    ranges: list[RangeTime] = []
    kernel_shapes: list[KernelShape] = []
    classes: list[ClassTime] = []
    launch_bill: list[LaunchBill] = []
    graph_replays: list[GraphReplay] = []
    shape_replays: list[ShapeReplays] = []
    small_kernels: list[SmallKernels] = []
    step_work: list[StepWork] = []
    step_sequences: list[StepSequence] = []
    host_rollups: list[HostRollup] = []
    look_first: list[LookFirst] = []
    detail: Detail | None = None
    rules: list[str] = []  # rules files read after the built-in one
    shared_devices: list[SharedDevice] = []
    bytes: Bytes | None = None  # None: neither a ledger nor counters were given
    sweep: SweepUse | None = None  # that ``kv-context`` was given
    notes: list[str]

    @property
    def step_boundary(self) -> str:
        """Where the steps of ``ranks``, ``global`` and ``budget`` end: those of the client stand in ``service``."""
        return "device" if self.boundary == "client" else self.boundary
