"""What would close a gap: the options of the profiler that made a file, as its version spells them.

Options of nsys: `nsys profile --help` of 2022.4, and the user guides and public command lines since. An
option that a version is not known to have is not named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from analyzer.explain.verdicts.facts import GRID, OUTPUT_RANGE, SM_COUNT
from analyzer.model import Source

NSYS = "nsys-sqlite"
TORCH = "kineto-json"

TRACE_CUDA = "--trace=cuda"
TRACE_NVTX = "--trace=nvtx"
GRAPH_NODES = "--cuda-graph-trace=node"
CUDA_EVENTS = "--cuda-event-trace=true"
FORKED = "--trace-fork-before-exec=true"
ACTIVITIES = "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
SYNC_EVENTS = "experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True)"
NO_STACK = "with_stack=False"

COST = {
    GRAPH_NODES: "records every node of a graph, which slows each replay down: take launch and replay times "
    "from a capture without it",
    CUDA_EVENTS: "puts a device timestamp on every event, which can make streams wait for one another: keep it "
    "for the question about dependencies",
    FORKED: "traces between fork and exec, where a program can crash or deadlock: only for workers that are "
    "forked without exec",
    SYNC_EVENTS: "adds a row per wait and per event: little beside what is recorded anyway",
    NO_STACK: "also takes away which Python code ran: keep a capture with stacks for that question",
}
"""What an option costs, in words; options without an entry cost little."""

EVENT_OPTION_SINCE = (2025, 3)
METRIC_DEVICES_SINCE = (2024, 5)
_SWITCHES_SINCE = (2022, 1)
_NO_SYNC_EVENTS = ("torch 1.8", "torch 1.9 to 1.13")
_FROM_CUDA = frozenset({"call", "kernel", "copy", "set", "graph", "graph-node", "sync"})
_FROM_GRAPH_NODES = frozenset({"kernel", "copy", "set", GRID})


@dataclass(frozen=True)
class Tool:
    """The profiler behind a file."""

    kind: str
    version: tuple[int, int] | None  # nsys only: year and number
    vendor: str
    era: str  # torch only: what the reader says of the release, "" unknown
    can_export_payloads: bool  # nsys only

    @classmethod
    def of(cls, source: Source) -> Tool:
        """Read off what the file says of itself."""
        settings = dict(source.settings)
        found = re.match(r"(20\d\d)\.(\d{1,3})\b", source.profiler_version or "")
        return cls(
            kind=source.kind,
            version=(int(found[1]), int(found[2])) if found and source.kind == NSYS else None,
            vendor=source.vendor,
            era=settings.get("era", ""),
            can_export_payloads="EXPORT_PARAM_INCLUDE_JSON" in settings,
        )

    @property
    def label(self) -> str:
        """As people call it."""
        if self.kind == NSYS:
            return "nsys" if self.version is None else f"nsys {self.version[0]}.{self.version[1]}"
        return f"torch.profiler ({self.era})" if self.era else "torch.profiler"

    def since(self, version: tuple[int, int]) -> bool:
        """Whether this is nsys of at least that version; an unknown one is taken for old."""
        return self.version is not None and self.version >= version


@dataclass(frozen=True)
class Remedy:
    """``closable``: one more capture with the same profiler would close the gap."""

    how: str
    flags: tuple[str, ...] = ()
    closable: bool = False


def for_need(need: str, tool: Tool, held: frozenset[str], *, whole_graphs: bool, forked: bool) -> Remedy:
    """What brings a fact that a hypothesis needs ("a or b": the first).

    ``held``: what the rank's file holds. ``whole_graphs``: replays stand as one row each. ``forked``: other
    processes of the capture have what this one lacks.
    """
    need = need.split(" or ")[0]
    if need == OUTPUT_RANGE:
        return Remedy(
            "mark sampling, detokenization and output by ranges, named with `--output-ranges REGEX`"
        )
    if need == "overhead":
        return without_profiler()
    if whole_graphs and need in _FROM_GRAPH_NODES:
        return graph_nodes(tool)
    if need in (GRID, SM_COUNT):
        return _device_model(tool)
    return _nsys_record(need, held, forked) if tool.kind == NSYS else _torch_record(need, held)


def _nsys_record(need: str, held: frozenset[str], forked: bool) -> Remedy:
    if need == "device":
        extra = (FORKED,) if forked else ()
        return Remedy("record CUDA in the process that uses the GPU", (TRACE_CUDA, *extra), closable=True)
    if need in _FROM_CUDA and held & _FROM_CUDA:
        return Remedy(
            f"`{TRACE_CUDA}` was on and nsys leaves out a table without rows: there may have been none"
        )
    if need in _FROM_CUDA:
        return Remedy("record CUDA", (TRACE_CUDA,), closable=True)
    if need in ("nvtx", "op"):
        return Remedy("record NVTX ranges", (TRACE_NVTX,), closable=True)
    return Remedy(f"no option of nsys is known to record {need}")


def _torch_record(need: str, held: frozenset[str]) -> Remedy:
    if need in _FROM_CUDA and {"kernel", "op"} <= held:
        return Remedy("both activities were recorded: there may have been none")
    if need == "device" or need in _FROM_CUDA or need in ("nvtx", "op"):
        return Remedy("record both activities", (ACTIVITIES,), closable=True)
    return Remedy(f"no option of torch.profiler is known to record {need}")


def _device_model(tool: Tool) -> Remedy:
    if tool.vendor == "rocm":
        return Remedy("traces of ROCm hold no figures that fit")
    if tool.kind == NSYS:
        return Remedy("export the whole report again: the device table was left out", closable=True)
    return Remedy("initialize CUDA before the profiler starts, and keep deviceProperties", closable=True)


def graph_nodes(tool: Tool) -> Remedy:
    """What shows the inside of replays."""
    if tool.kind == NSYS:
        return Remedy("record graphs node by node", (GRAPH_NODES,), closable=True)
    return Remedy("torch.profiler records graphs node by node")


def sync_records(tool: Tool, held: frozenset[str]) -> Remedy:
    """What says which stream or event a blocking call waited for."""
    if tool.kind == NSYS:
        return _nsys_record("sync", held, forked=False)
    return _sync_events(tool)


def event_records(tool: Tool, *, some: bool) -> Remedy:
    """What says which work a device-side wait waits for. ``some``: events were recorded, not all."""
    if some:
        return Remedy("start the capture before these events are recorded; CUPTI of CUDA 12.9 drops the link")
    if tool.kind != NSYS:
        return _sync_events(tool)
    if tool.since(EVENT_OPTION_SINCE):
        return Remedy("record CUDA events", (CUDA_EVENTS,), closable=True)
    return Remedy(f"nsys 2025.3 and later have `{CUDA_EVENTS}`; this one records events with `{TRACE_CUDA}`")


def _sync_events(tool: Tool) -> Remedy:
    if tool.vendor == "rocm":
        return Remedy("torch.profiler records no synchronization on ROCm")
    if tool.era in _NO_SYNC_EVENTS:
        return Remedy("torch 2.1 and later can record synchronization")
    return Remedy("record synchronization (torch 2.1 or later)", (SYNC_EVENTS,), closable=True)


def named_ranges(tool: Tool) -> Remedy:
    """What tells which code the CPU ran."""
    if tool.kind == NSYS:
        return Remedy("put NVTX ranges around the parts of the program", (TRACE_NVTX,), closable=True)
    return Remedy("record CPU activity", (ACTIVITIES,), closable=True)


def without_frames(tool: Tool) -> Remedy:
    """What takes the cost of Python frames away."""
    if tool.kind == NSYS:
        return Remedy("capture without Python sampling and backtraces", closable=True)
    return Remedy("capture without stacks", (NO_STACK,), closable=True)


def without_profiler() -> Remedy:
    """What measures the profiler's own weight."""
    return Remedy("time the same steps without the profiler")


def launch_records(tool: Tool) -> Remedy:
    """What links device work to its launch."""
    if tool.kind == TORCH and tool.era in (*_NO_SYNC_EVENTS, "torch 2.0 to 2.3"):
        return Remedy("torch 2.1 and later record launches through the driver API")
    return Remedy("start the capture while the device is idle, so that no launch lies before it")


def counters_or_ledger(tool: Tool) -> Remedy:
    """What says how near the peaks kernels run: a ledger of the model, or counters."""
    beside = (
        "`tracebound ledger build`, then `tracebound diagnose --ledger FILE`; or Nsight Compute on these kernels, then"
        " `--counters FILE`"
    )
    if tool.kind != NSYS:
        return Remedy(f"{beside}; nsys can sample counters, torch.profiler cannot")
    option = "--gpu-metrics-devices=all" if tool.since(METRIC_DEVICES_SINCE) else "--gpu-metrics-device=all"
    return Remedy(f"{beside}; or `{option}` in the capture")


def collective_metadata(tool: Tool) -> Remedy:
    """Group, size and type of collectives; nsys has sizes only."""
    if tool.kind == TORCH:
        if tool.era == "torch 2.0 to 2.3":
            return Remedy("torch 2.2 and 2.3 record it with `record_shapes=True`")
        return Remedy("torch 2.4 and later record it for collectives launched outside graphs")
    if tool.can_export_payloads:
        return Remedy(
            "`nsys export --include-json=true` brings NCCL's payloads: ranks, and sizes of calls outside graphs"
        )
    return Remedy("newer versions of nsys export the payloads of NCCL's NVTX ranges")


def step_markers(tool: Tool) -> Remedy:
    """What makes steps certain."""
    if tool.kind == NSYS:
        how = "put an NVTX range around each step"
        return Remedy(
            f"{how}, or name ranges that are there with `--steps REGEX`", (TRACE_NVTX,), closable=True
        )
    how = "call `prof.step()` after each step, or put `record_function` around it"
    return Remedy(f"{how}, or name ranges that are there with `--steps REGEX`", closable=True)


def command(tool: Tool, flags: frozenset[str], *, per_rank: bool) -> list[str]:
    """Lines of one capture with all of ``flags``: a shell command, or Python around the steps."""
    return _nsys_command(tool, flags, per_rank) if tool.kind == NSYS else _torch_command(flags)


def collect(tool: Tool, flags: frozenset[str]) -> str:
    """The collector's command for the same capture: it has all options but the costly ones by default."""
    if tool.kind != NSYS:
        return "tracebound collect torch -o run -- COMMAND"
    asked = {GRAPH_NODES: " --graph-nodes", FORKED: " --follow-forks"}
    return (
        f"tracebound collect nsys{''.join(asked[flag] for flag in asked if flag in flags)} -o run -- COMMAND"
    )


def _nsys_command(tool: Tool, flags: frozenset[str], per_rank: bool) -> list[str]:
    name = "rank%q{RANK}" if per_rank else "capture"
    report = "rank0" if per_rank else "capture"
    lighter = " --sample=none --cpuctxsw=none" if tool.since(_SWITCHES_SINCE) else " --sample=none"
    extra = "".join(f" {flag}" for flag in (GRAPH_NODES, CUDA_EVENTS, FORKED) if flag in flags)
    profile = f"nsys profile --trace=cuda,nvtx,osrt{lighter}{extra}"
    output = f"-o {name} COMMAND"
    lines = [f"{profile} {output}"] if not extra else [f"{profile} \\", f"    {output}"]
    return [*lines, f"nsys export --type=sqlite {report}.nsys-rep"]


def _torch_command(flags: frozenset[str]) -> list[str]:
    options = [f"    {ACTIVITIES},", "    schedule=schedule(wait=1, warmup=1, active=5),"]
    options += [f"    {flag}," for flag in (NO_STACK, SYNC_EVENTS) if flag in flags]
    imported = ["from torch._C._profiler import _ExperimentalConfig"] if SYNC_EVENTS in flags else []
    return [
        "from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler",
        *imported,
        "with profile(",
        *options,
        '    on_trace_ready=tensorboard_trace_handler("traces"),',
        ") as prof:",
        "    for batch in batches:",
        "        run_step(batch)",
        "        prof.step()",
    ]
