"""The command lines of nsys: a pure function of what is wanted, what the installed nsys can do, and the paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from collectors.errors import CollectError
from collectors.nsys.installed import Nsys, gpu_metrics_option

DURATION_S = 600
"""Bound of a capture that no range ends: a report grows by megabytes a second."""
NEWER = "install a newer nsys, or leave the option out"


@dataclass(frozen=True)
class Wanted:
    """What the user asked for. ``duration_s``: None for the default bound, 0 for none. Times in seconds."""

    graph_nodes: bool = False
    event_trace: bool = True
    os_runtime: bool = True
    nccl: bool = False
    cpu_sampling: bool = False
    gpu_metrics: bool = False
    follow_forks: bool = False
    range_name: str | None = None
    profiler_api: bool = False
    delay_s: int = 0
    duration_s: int | None = None
    more: tuple[str, ...] = ()

    @property
    def bound_s(self) -> int:
        """Seconds after which nsys ends the capture, 0 for never."""
        if self.duration_s is not None:
            return self.duration_s
        return 0 if self.range_name is not None or self.profiler_api else DURATION_S


@dataclass(frozen=True)
class Plan:
    """Command lines for one rank. ``load`` makes a report of the raw stream, where nsys cannot do it itself."""

    profile: list[str]
    load: list[str] | None
    export: list[str]
    notes: list[str]

    @property
    def described(self) -> list[tuple[str, list[str]]]:
        """Those that will run, in this order, each with what it is for."""
        load = (
            [("a report of what nsys left, as it finds no importer itself", self.load)] if self.load else []
        )
        return [("capture", self.profile), *load, ("SQLite export", self.export)]


def plan(
    wanted: Wanted,
    nsys: Nsys,
    stem: Path,
    command: Sequence[str],
    *,
    local_rank: int | None = None,
    variables: Sequence[str] = (),
) -> Plan:
    """All command lines for a rank whose files are ``stem`` with a suffix.

    ``variables``: ``NAME=VALUE`` for the command alone. Raises CollectError where this nsys cannot do what was asked.
    """
    notes: list[str] = []
    given = [
        f"--trace={_traces(wanted, nsys)}",
        *_cuda(wanted, nsys, notes),
        *_sampling(wanted, nsys),
        *_gpu_metrics(wanted, nsys, local_rank, notes),
        *_window(wanted, nsys),
        *_forks(wanted, nsys),
    ]
    names = [*variables]
    if wanted.range_name is not None:
        names.append("NSYS_NVTX_PROFILER_REGISTER_ONLY=0")  # else only registered strings start a capture
    if names:
        given.append(f"--env-var={','.join(names)}")
    output = str(stem).replace("%", "%%")  # nsys expands %p and the like
    profile = [nsys.path, "profile", *given, *wanted.more, "--force-overwrite=true", f"--output={output}"]
    load = None if nsys.imports_itself else importing(nsys, stem)
    return Plan([*profile, *command], load, export(nsys, stem), notes)


def importing(nsys: Nsys, stem: Path) -> list[str] | None:
    """Raw stream to report; the importer writes beside its input and overwrites nothing. None without an importer."""
    return [nsys.importer, "-i", f"{stem}.qdstrm"] if nsys.importer else None


def export(nsys: Nsys, stem: Path) -> list[str]:
    """Report to SQLite, with the payloads of NVTX ranges (NCCL's ranks and sizes) where this nsys exports them."""
    payloads = ["--include-json=true"] if "include-json" in nsys.export else []
    quiet = ["--quiet=true"] if "quiet" in nsys.export else []
    product, report = f"{stem}.sqlite", f"{stem}.nsys-rep"
    return [
        *(nsys.path, "export", "--type=sqlite", "--force-overwrite=true"),
        *(*payloads, *quiet, f"--output={product}", report),
    ]


def _need(nsys: Nsys, asked: str, option: str, value: str | None = None) -> None:
    if not nsys.has(option, value):
        what = f"--{option}={value}" if value else f"--{option}"
        raise CollectError(asked, f"nsys {nsys.version} has no {what}", NEWER)


def _traces(wanted: Wanted, nsys: Nsys) -> str:
    """NCCL's calls come with NVTX; its own tracing would take the place of those ranges, so only on request."""
    names = ["cuda", "nvtx", *(["osrt"] if wanted.os_runtime else [])]
    if wanted.nccl:
        _need(nsys, "--nccl", "trace", "nccl")
        names.append("nccl")
    return ",".join(names)


def _cuda(wanted: Wanted, nsys: Nsys, notes: list[str]) -> list[str]:
    given: list[str] = []
    if wanted.graph_nodes:
        _need(nsys, "--graph-nodes", "cuda-graph-trace", "node")
    if nsys.has("cuda-graph-trace"):
        given.append(f"--cuda-graph-trace={'node' if wanted.graph_nodes else 'graph'}")
    else:
        notes.append(f"nsys {nsys.version} has no --cuda-graph-trace: its own default held")
    if nsys.has("cuda-event-trace"):
        given.append(f"--cuda-event-trace={'true' if wanted.event_trace else 'false'}")
    else:
        notes.append(
            f"nsys {nsys.version} has no --cuda-event-trace: event records as its CUDA trace has them"
        )
    return given


def _sampling(wanted: Wanted, nsys: Nsys) -> list[str]:
    # Listed since 2021; before that the process tree was called cpu.
    mode = (
        ("process-tree" if nsys.has("sample", "process-tree") else "cpu") if wanted.cpu_sampling else "none"
    )
    given = [f"--sample={mode}"]
    if nsys.has("cpuctxsw"):
        given.append(f"--cpuctxsw={'process-tree' if wanted.cpu_sampling else 'none'}")
    return given


def _gpu_metrics(wanted: Wanted, nsys: Nsys, local_rank: int | None, notes: list[str]) -> list[str]:
    """A GPU's counters serve one nsys at a time, so each rank takes the one of its own number."""
    if not wanted.gpu_metrics:
        return []
    option = gpu_metrics_option(nsys.profile)
    if option is None or not nsys.gpus:
        notes.append(f"GPU metrics not captured: {nsys.gpus_why or 'this version cannot sample them'}")
        return []
    if local_rank is None:
        return [f"--{option}=all"]
    if local_rank not in nsys.gpus:
        notes.append(f"GPU metrics not captured: nsys lists no GPU {local_rank} for local rank {local_rank}")
        return []
    notes.append(f"GPU metrics are those of nsys's GPU {local_rank}, taken for local rank {local_rank}'s")
    return [f"--{option}={local_rank}"]


def _window(wanted: Wanted, nsys: Nsys) -> list[str]:
    given: list[str] = []
    if wanted.range_name is not None:
        _need(nsys, "--range", "capture-range", "nvtx")
        # A name without a domain means the range in whatever domain.
        name = wanted.range_name if "@" in wanted.range_name else f"{wanted.range_name}@*"
        given += ["--capture-range=nvtx", f"--nvtx-capture={name}"]
    if wanted.profiler_api:
        _need(nsys, "--profiler-api", "capture-range", "cudaProfilerApi")
        given.append("--capture-range=cudaProfilerApi")
    if given and nsys.has("capture-range-end", "stop"):
        given.append("--capture-range-end=stop")  # nsys's own default ends the command with the range
    elif given and nsys.has("stop-on-range-end"):
        given.append("--stop-on-range-end=true")
    if wanted.delay_s:
        given.append(f"--delay={wanted.delay_s}")
    if wanted.bound_s:
        given.append(f"--duration={wanted.bound_s}")
    return given


def _forks(wanted: Wanted, nsys: Nsys) -> list[str]:
    if not wanted.follow_forks:
        return []
    _need(nsys, "--follow-forks", "trace-fork-before-exec")
    return ["--trace-fork-before-exec=true"]
