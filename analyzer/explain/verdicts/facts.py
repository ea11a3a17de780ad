"""What a rank's capture holds, in the words in which hypotheses say what they need.

Record classes come from the reader (``Source.captured``); the others are derived from what the rows hold.
"""

from __future__ import annotations

import numpy as np

from analyzer.explain.device.grids import blocks_of, sm_count
from analyzer.model import HostKind, Trace
from analyzer.reconstruct.step_markers import OUTPUT_RANGES, clean_names

GRID = "grid size"
SM_COUNT = "SM count"
OUTPUT_RANGE = "output range"
SPLIT = "all ranks on one clock"
DRAM_COUNTERS = "DRAM counters"
TENSOR_COUNTERS = "tensor pipe counters"
LEDGER_BYTES = "byte ledger"
LEDGER_FLOP = "arithmetic in the ledger"

HOW_TO_RECORD = {
    GRID: "record CUDA activity in full: nsys `--trace=cuda`, torch.profiler with ProfilerActivity.CUDA",
    SM_COUNT: "keep the device table: nsys exports TARGET_INFO_GPU by default, torch.profiler writes "
    "deviceProperties where CUDA was initialized before it started; ROCm traces give none that fits",
    OUTPUT_RANGE: "mark sampling, detokenization and output by ranges and name them with `--output-ranges REGEX`",
}


def recorded(trace: Trace, *, output_ranges: bool | None = None) -> frozenset[str]:
    """Record classes and derived facts of one rank.

    ``output_ranges``: whether ranges declared as output were found; None: only engines' own names count.
    """
    facts = set(trace.source.captured)
    if np.any(blocks_of(trace.device) > 0):
        facts.add(GRID)
    if sm_count(trace) is not None:
        facts.add(SM_COUNT)
    if _names_output(trace) if output_ranges is None else output_ranges:
        facts.add(OUTPUT_RANGE)
    return frozenset(facts)


def _names_output(trace: Trace) -> bool:
    host = trace.process.host
    ranges = np.isin(host.kind, (HostKind.RANGE, HostKind.SPAN, HostKind.OP, HostKind.FRAME))
    return bool(np.any(ranges & clean_names(trace.process.names).matching(OUTPUT_RANGES.match)[host.name]))
