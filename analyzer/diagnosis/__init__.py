"""The frozen result of an analysis, module by module of what it tells.

Structs mirror ``diagnosis.json`` field by field; ``None`` is "not captured" (listed in
``unmeasured``), never 0. Units stand in names. Times are ns relative to ``time_zero_ns``.
"""

from __future__ import annotations

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
from analyzer.diagnosis.collectives import Collective, LateRank, Spread
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
from analyzer.diagnosis.verdicts import Evidence, Hypothesis, Measured, MeasureKind, Share, Verdict

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "Budget",
    "ClassTime",
    "ClientWindow",
    "Clock",
    "ClockPair",
    "Collective",
    "Constants",
    "Detail",
    "Device",
    "DeviceSpan",
    "Diagnosis",
    "Evidence",
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
    "LateRank",
    "LaunchBill",
    "LookFirst",
    "MeasureKind",
    "Measured",
    "Outlier",
    "PinnedFact",
    "Quality",
    "Quantiles",
    "RangeTime",
    "Rank",
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
    "TokenLogRead",
    "Unmeasured",
    "Verdict",
    "Window",
]
