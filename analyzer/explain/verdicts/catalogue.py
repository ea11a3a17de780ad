"""The hypotheses in words: what each claims, what would decide it, change it, disprove it.

Quantities and checks follow the verdicts contract. What cannot be read off one rank's path (``Open``) is
listed as unmeasured with the capture that would answer it.
"""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.categories import HOST_CATEGORIES, LAUNCH_CATEGORIES, Category
from analyzer.explain.verdicts.facts import (
    DRAM_COUNTERS,
    GRID,
    LEDGER_BYTES,
    LEDGER_FLOP,
    OUTPUT_RANGE,
    SM_COUNT,
    SPLIT,
    TENSOR_COUNTERS,
)

UNKNOWN = frozenset({Category.UNATTRIBUTED})
INSIDE_GRAPH = UNKNOWN | {Category.GRAPH_UNRESOLVED}
"""Gaps and copies inside a replay that was recorded as one row are part of that row."""

COLLECTIVES = INSIDE_GRAPH | {
    Category.COLLECTIVE_TRANSFER,
    Category.COLLECTIVE_WAIT,
    Category.COLLECTIVE_UNSPLIT,
    Category.COLLECTIVE_HOST,
    Category.PRIOR_WORK,
}
"""All path time in which a collective could run, seen or unseen."""

ALL_RANKS = "give the captures of all ranks: transfer and waiting are told apart on one clock"
COUNTERS = "nsys `--gpu-metrics-devices=all`"
CUDA_EVENTS = "nsys `--cuda-event-trace=true`"
PLAIN_STEPS = "time the same steps without the profiler"
"""Advice in general words: ``explain/advice.py`` fits them to a capture."""

UNDO = (
    "undo it if latency, output quality, memory capacity or useful throughput gets worse, "
    "even though this share improved"
)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A hypothesis in words."""

    id: str
    claim: str
    intervention: str
    disproof: str
    discriminating_check: str
    how_to_measure: str
    overlaps_with: tuple[str, ...] = ()
    undo: str = UNDO


@dataclass(frozen=True, kw_only=True)
class Entry(Candidate):
    """One whose share can be measured on the path of one rank."""

    quantity: str
    categories: frozenset[Category]
    could_belong: frozenset[Category]  # counted into the upper end only
    needs: tuple[str, ...]  # facts (record classes and those of facts.py) without which nothing can be said
    beyond: str = ""  # what of it this boundary cannot show: then it is never contradicted


MEASURABLE: tuple[Entry, ...] = (
    Entry(
        id="launch-bound",
        claim="The step waits for the CPU to submit work: launch calls, their latency, dispatch between them.",
        quantity="launch.latency + launch.api + launch.dispatch on the path",
        categories=LAUNCH_CATEGORIES,
        could_belong=UNKNOWN,
        needs=("call",),
        intervention="capture the submission burst in a CUDA graph, or launch fewer kernels (fuse)",
        disproof="the same work replayed from a graph takes as long per step as before",
        discriminating_check="graph-replay comparison of identical work",
        how_to_measure="record CUDA API calls: nsys `--trace=cuda`, torch.profiler with ProfilerActivity.CPU and CUDA",
        overlaps_with=("synchronization",),
        undo=UNDO + "; graphs hold memory for every captured shape",
    ),
    Entry(
        id="host-bound",
        claim="The step waits for CPU work that is not submission: scheduling, preparation, Python, waiting.",
        quantity="host.framework + host.untraced + host.api + host.wait on the path",
        categories=HOST_CATEGORIES,
        could_belong=UNKNOWN | {Category.COLLECTIVE_HOST},
        needs=("call",),
        intervention="shorten, overlap or remove the CPU work that is named for these intervals",
        disproof="with that CPU work removed (or run beforehand) the step takes as long as before",
        discriminating_check="host ranges or sampling on those intervals; same work with the host part removed",
        how_to_measure="record CUDA API calls and host ranges: nsys `--trace=cuda,nvtx,osrt`",
        overlaps_with=("synchronization",),
    ),
    Entry(
        id="device-turnaround",
        claim="Queued kernels lose time between one another although everything was submitted.",
        quantity="gap.dispatch on the path",
        categories=frozenset({Category.GAP_DISPATCH}),
        could_belong=INSIDE_GRAPH,
        needs=("device",),
        intervention="fewer, larger kernels (fusion); graph replay where its turnaround is shorter",
        disproof="with half as many kernels for the same work the gaps on the path stay as long in total",
        discriminating_check="fewer, larger kernels; replay turnaround",
        how_to_measure="record device activity: nsys `--trace=cuda`",
    ),
    Entry(
        id="dependency-stalls",
        claim="Submitted work waits for another stream, an event or a cause that was not recorded.",
        quantity="gap.dependency on the path",
        categories=frozenset({Category.GAP_DEPENDENCY}),
        could_belong=INSIDE_GRAPH,
        needs=("device",),
        intervention="remove or move the dependency that the event and stream graph shows at these gaps",
        disproof="without that dependency the same gaps remain",
        discriminating_check="event and stream graph around the gap",
        how_to_measure=f"record CUDA events: {CUDA_EVENTS}; torch.profiler `enable_cuda_sync_events=True`",
    ),
    Entry(
        id="synchronization",
        claim="The CPU waits for the device and only then prepares and submits what comes next.",
        quantity="host.sync_return + host and launch time between a device-held return and the next device work",
        categories=frozenset({Category.HOST_SYNC_RETURN}),
        could_belong=UNKNOWN,
        needs=("call",),
        intervention="remove the blocking call or move it behind the next submission",
        disproof="with the call removed the device still idles at that place",
        discriminating_check="replay with the call removed",
        how_to_measure="record CUDA API calls: nsys `--trace=cuda`",
        overlaps_with=("launch-bound", "host-bound", "output-path"),
    ),
    Entry(
        id="copies",
        claim="Copies and memory sets hold the step up.",
        quantity="copy on the path",
        categories=frozenset({Category.COPY}),
        could_belong=INSIDE_GRAPH | {Category.PRIOR_WORK},
        needs=("device", "copy"),
        intervention="between host and device: pinned memory, fewer or smaller transfers, overlap with kernels; "
        "on the device: write in place or in the layout that the next kernel reads",
        disproof="with the copies overlapped or removed the step takes as long as before",
        discriminating_check="pinned against pageable, size, direction",
        how_to_measure="record device activity: nsys `--trace=cuda`",
    ),
    Entry(
        id="kernel-bound",
        claim="The step's time is device compute: kernels follow one another without the CPU in between.",
        quantity="kernel + graph.unresolved on the path",
        categories=frozenset({Category.KERNEL, Category.GRAPH_UNRESOLVED}),
        could_belong=UNKNOWN | {Category.PRIOR_WORK},
        needs=("device", "kernel or graph"),
        intervention="faster kernels: better shapes, fusion, less memory traffic, lower precision",
        disproof="a run with the longest kernels shortened (or skipped) takes as long per step",
        discriminating_check="counters or byte floor decide bandwidth, compute or latency",
        how_to_measure="record device activity: nsys `--trace=cuda`",
        overlaps_with=("small-grids", "bandwidth-bound", "compute-bound"),
    ),
    Entry(
        id="small-grids",
        claim="Kernels whose grids leave most of the device without a block hold the path.",
        quantity="path time of kernels whose grid covers less of the device than the threshold",
        categories=frozenset({Category.KERNEL}),
        could_belong=INSIDE_GRAPH,
        needs=("device", "kernel", GRID, SM_COUNT),
        intervention="more blocks for the same work: split the reduction (split-K, split-KV), batch or fuse "
        "small problems, run independent kernels side by side",
        disproof="the same kernels with more blocks for the same work take as long",
        discriminating_check="dimensions, occupancy and memory traffic of these kernels at the same routing",
        how_to_measure="record grids and the device's SM count: nsys `--trace=cuda`, torch.profiler on CUDA",
        overlaps_with=("kernel-bound",),
    ),
    Entry(
        id="output-path",
        claim="The step waits for CPU work on its output: sampling on the host, detokenization, responses.",
        quantity="host.output on the path",
        categories=frozenset({Category.HOST_OUTPUT}),
        could_belong=UNKNOWN,
        needs=("call", OUTPUT_RANGE),
        intervention="move output processing off the thread that submits, or overlap it with the next step",
        disproof="with output processing removed (or run afterwards) the step takes as long as before",
        discriminating_check="device completion against server emission against client receipt",
        how_to_measure="mark output processing by ranges (`--output-ranges REGEX` names them); for the time after "
        "the server: a token log (`--token-log FILE`, docs/service.md)",
        overlaps_with=("synchronization",),
        beyond="transport and buffering after the server's own work are in no trace: a token log tells them",
    ),
    Entry(
        id="profiler-distortion",
        claim="The profiler itself takes part of the step.",
        quantity="profiler on the path",
        categories=frozenset({Category.PROFILER}),
        could_belong=frozenset(),
        needs=("overhead",),
        intervention="record less: shorter ranges, no stacks, no shapes, no memory events",
        disproof="the same steps timed without the profiler take as long",
        discriminating_check="the same steps without the profiler",
        how_to_measure=f"{PLAIN_STEPS}; nsys records its overhead with `--trace=cuda`",
        overlaps_with=("launch-bound", "host-bound"),
    ),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Open(Candidate):
    """One that one capture of one rank cannot support.

    ``ceiling``: path categories that hold all that could belong to it. Where they hold next to nothing the
    hypothesis is contradicted all the same. Empty: nothing on the path bounds it.
    """

    ceiling: frozenset[Category] = frozenset()
    ceiling_words: str = ""


BETWEEN_RANKS: tuple[Entry, ...] = (
    Entry(
        id="collective-transfer",
        claim="Moving data between ranks takes part of the step.",
        quantity="collective.transfer on the path",
        categories=frozenset({Category.COLLECTIVE_TRANSFER}),
        could_belong=INSIDE_GRAPH | {Category.COLLECTIVE_UNSPLIT, Category.COLLECTIVE_HOST},
        needs=("device", SPLIT),
        intervention="fewer or smaller messages, another algorithm or topology, overlap with compute",
        disproof="with messages of half the size the step takes as long",
        discriminating_check="message-size sweep, alpha-beta fit, contention",
        how_to_measure=ALL_RANKS,
        overlaps_with=("collective-late-rank",),
    ),
    Entry(
        id="collective-late-rank",
        claim="Ranks wait in collectives for a late rank.",
        quantity="collective.wait on the path",
        categories=frozenset({Category.COLLECTIVE_WAIT}),
        could_belong=INSIDE_GRAPH | {Category.COLLECTIVE_UNSPLIT, Category.COLLECTIVE_HOST},
        needs=("device", SPLIT),
        intervention="mend what makes the late rank late: its host work, its kernels, its share of the work",
        disproof="with all ranks arriving together the collectives take as long",
        discriminating_check="aligned timelines and the late rank's own cause",
        how_to_measure=ALL_RANKS,
        overlaps_with=("launch-bound", "host-bound", "kernel-bound", "synchronization"),
    ),
)
"""Measured where all ranks of a group are in the capture; elsewhere what ``UNMEASURED`` says of them."""


UNMEASURED: tuple[Open, ...] = (
    Open(
        id="bandwidth-bound",
        claim="Kernels on the path run at the memory bandwidth.",
        discriminating_check="HBM counters beside the byte ledger",
        how_to_measure="a byte ledger (`tracebound ledger build`, then `--ledger`), bytes counted by Nsight Compute "
        f"(`--counters`), or DRAM counters: {COUNTERS}",
        intervention="move fewer bytes: lower precision, fusion, more reuse of what is read",
        disproof="the same kernels with half the bytes take as long",
        ceiling=INSIDE_GRAPH | {Category.KERNEL, Category.PRIOR_WORK},
        ceiling_words="kernels",
        overlaps_with=("kernel-bound",),
    ),
    Open(
        id="compute-bound",
        claim="Kernels on the path run at the arithmetic peak.",
        discriminating_check="tensor-pipe counters on these kernels",
        how_to_measure="a ledger with the arithmetic of its entries (`--ledger`), or tensor-pipe counters: "
        f"{COUNTERS}, or Nsight Compute on the named kernels (`--counters`)",
        intervention="fewer or cheaper operations: lower precision where quality allows, sparsity, less recomputation",
        disproof="the same kernels with half the arithmetic take as long",
        ceiling=INSIDE_GRAPH | {Category.KERNEL, Category.PRIOR_WORK},
        ceiling_words="kernels",
        overlaps_with=("kernel-bound",),
    ),
    Open(
        id="collective-transfer",
        claim="Moving data between ranks takes part of the step.",
        discriminating_check="message-size sweep, alpha-beta fit, contention",
        how_to_measure=ALL_RANKS,
        intervention="fewer or smaller messages, another algorithm or topology, overlap with compute",
        disproof="with messages of half the size the step takes as long",
        ceiling=COLLECTIVES,
        ceiling_words="collectives",
        overlaps_with=("collective-late-rank",),
    ),
    Open(
        id="collective-late-rank",
        claim="Ranks wait in collectives for a late rank.",
        discriminating_check="aligned timelines and the late rank's own cause",
        how_to_measure=ALL_RANKS,
        intervention="mend what makes the late rank late: its host work, its kernels, its share of the work",
        disproof="with all ranks arriving together the collectives take as long",
        ceiling=COLLECTIVES,
        ceiling_words="collectives",
        overlaps_with=("launch-bound", "host-bound", "kernel-bound", "synchronization"),
    ),
    Open(
        id="kv-context",
        claim="Attention and cache traffic grow with context length.",
        discriminating_check="the same output workload at controlled contexts",
        how_to_measure="captures at several context lengths with declared cache initialization, laid out by "
        "`tracebound sweep`; two points do not establish a slope",
        intervention="shorter or compressed context, cache of lower precision, attention that reads less of it",
        disproof="at a tenth of the context the step takes as long",
    ),
)


def _rate(id_: str, peak: str, facts: str, other: str) -> Entry:
    """A hypothesis about a peak where counters or a ledger are given, in the words of ``UNMEASURED``."""
    words = next(entry for entry in UNMEASURED if entry.id == id_)
    return Entry(
        id=id_,
        claim=words.claim,
        quantity=f"path time of kernels near the {peak}",
        categories=frozenset({Category.KERNEL}),
        could_belong=INSIDE_GRAPH | {Category.PRIOR_WORK},
        needs=("device", facts),
        intervention=words.intervention,
        disproof=words.disproof,
        discriminating_check=words.discriminating_check,
        how_to_measure=words.how_to_measure,
        overlaps_with=(*words.overlaps_with, other),
    )


RATES: tuple[Entry, ...] = (
    _rate("bandwidth-bound", "memory bandwidth", f"{DRAM_COUNTERS} or {LEDGER_BYTES}", "compute-bound"),
    _rate("compute-bound", "arithmetic peak", f"{TENSOR_COUNTERS} or {LEDGER_FLOP}", "bandwidth-bound"),
)
"""Measured where counters or a ledger are given; elsewhere what ``UNMEASURED`` says of them."""
