"""The frozen result of an analysis, module by module of what it tells.

Structs mirror ``diagnosis.json`` field by field; ``None`` is "not captured" (listed in
``unmeasured``), never 0. Units stand in names. Times are ns relative to ``time_zero_ns``.
"""

from __future__ import annotations

from analyzer.diagnosis.bytes import (
    ByteFloor,
    Bytes,
    CounterSource,
    FloorPart,
    KindBytes,
    MeasuredBytes,
    RankBytes,
)
from analyzer.diagnosis.capture import (
    Clock,
    Constants,
    Device,
    DeviceSpan,
    Input,
    PinnedFact,
    Quality,
    RunFacts,
    RunRank,
    SharedDevice,
    Steps,
    Unmeasured,
)
from analyzer.diagnosis.collectives import (
    AlphaBeta,
    Collective,
    CollectiveCost,
    LateRank,
    PriceInterval,
    PriceOfSize,
    Spread,
)
from analyzer.diagnosis.device_work import (
    ClassTime,
    GraphReplay,
    Kernel,
    KernelShape,
    RangeTime,
    SequenceSection,
    ShapeReplays,
    SmallKernels,
    StepSequence,
    StepWork,
)
from analyzer.diagnosis.host_work import HostCulprit, HostRollup, LaunchBill, LookFirst
from analyzer.diagnosis.quantiles import Quantiles
from analyzer.diagnosis.root import FORMAT, FORMAT_VERSION, Detail, Diagnosis
from analyzer.diagnosis.service import ClientWindow, ClockPair, GapPart, Service, Stage, TokenLogRead
from analyzer.diagnosis.steps import Budget, GlobalAccount, GlobalWindow, Outlier, Rank, Window
from analyzer.diagnosis.sweep import SweepUse
from analyzer.diagnosis.verdicts import Evidence, Hypothesis, Measured, MeasureKind, Share, Verdict

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "AlphaBeta",
    "Budget",
    "ByteFloor",
    "Bytes",
    "ClassTime",
    "ClientWindow",
    "Clock",
    "ClockPair",
    "Collective",
    "CollectiveCost",
    "Constants",
    "CounterSource",
    "Detail",
    "Device",
    "DeviceSpan",
    "Diagnosis",
    "Evidence",
    "FloorPart",
    "GapPart",
    "GlobalAccount",
    "GlobalWindow",
    "GraphReplay",
    "HostCulprit",
    "HostRollup",
    "Hypothesis",
    "Input",
    "Kernel",
    "KernelShape",
    "KindBytes",
    "LateRank",
    "LaunchBill",
    "LookFirst",
    "MeasureKind",
    "Measured",
    "MeasuredBytes",
    "Outlier",
    "PinnedFact",
    "PriceInterval",
    "PriceOfSize",
    "Quality",
    "Quantiles",
    "RangeTime",
    "Rank",
    "RankBytes",
    "RunFacts",
    "RunRank",
    "SequenceSection",
    "Service",
    "ShapeReplays",
    "Share",
    "SharedDevice",
    "SmallKernels",
    "Spread",
    "Stage",
    "StepSequence",
    "StepWork",
    "Steps",
    "SweepUse",
    "TokenLogRead",
    "Unmeasured",
    "Verdict",
    "Window",
]
