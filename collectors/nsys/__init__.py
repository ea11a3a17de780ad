"""Capture each rank with Nsight Systems: report, SQLite export and a record.

One nsys per rank, with the options that the analysis needs and this nsys has. Around a launcher (torchrun, mpirun)
one nsys holds all ranks below it.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from collectors.errors import CollectError
from collectors.manifest import declared
from collectors.nsys.capture import Job, capture, who_is_it
from collectors.nsys.installed import ask
from collectors.nsys.plan import DURATION_S, Wanted, plan
from collectors.nsys.several import capture_all
from collectors.options import command_option, common_options, given_command
from collectors.run_folder import RunFolder

_EXAMPLES = f"""\
examples:
  python -m collectors nsys -o run -- python decode.py
  torchrun --nproc-per-node 4 --no-python python -m collectors nsys -o run -- python train.py
  python -m collectors nsys --profiler-api --graph-nodes -o run -- vllm serve MODEL
  python -m collectors nsys --range steady --dry-run -- python decode.py

Each rank leaves rankN.nsys-rep, rankN.sqlite and ranks/rankN.json in the folder; one that holds a capture of that
rank already is refused. The exit code is the command's (with --processes, that of the one that failed first); 124 past
--limit, 2 if the capture could not be made. Without a range the capture ends after {DURATION_S} s, and nsys then ends
the command (SIGTERM). The .nsys-rep holds the environments of the run and of other processes: pass on the .sqlite,
where they are removed.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    common_options(parser)
    add = parser.add_argument
    add("--dry-run", action="store_true", help="show nsys's command lines; run and write nothing")
    add(
        "--processes",
        type=_count,
        default=1,
        metavar="N",
        help="start the command N times on this host, as N ranks, with RANK, LOCAL_RANK and WORLD_SIZE set as torchrun "
        "does, and OMP_NUM_THREADS=1 where it is not set and N is above 1",
    )
    add("--nsys", default="nsys", metavar="PATH", help="the nsys to use (default: the one on PATH)")
    _what(parser)
    _when(parser)
    command_option(parser)


def _what(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group(
        "what is captured", "by default CUDA, events, NVTX and OS runtime calls"
    ).add_argument
    add(
        "--graph-nodes",
        action="store_true",
        help="the kernels inside CUDA graphs; costs: every node becomes a row, and replays slow down (default: "
        "whole graphs)",
    )
    add("--no-events", action="store_true", help="no CUDA events; their timestamps can make streams wait")
    add(
        "--no-os-runtime",
        action="store_true",
        help="no calls of the OS runtime library (locks, reads, sleeps)",
    )
    add(
        "--nccl",
        action="store_true",
        help="nsys's own tracing of NCCL (nsys 2026, NCCL 2.28); takes the place of NCCL's NVTX ranges, which the "
        "analysis reads",
    )
    add("--cpu-sampling", action="store_true", help="CPU samples and context switches; slows the host down")
    add("--gpu-metrics", action="store_true", help="sample the GPU's counters, where permitted")
    add(
        "--follow-forks",
        action="store_true",
        help="also processes that were forked and did not exec, as Python's fork workers; nsys warns of deadlocks",
    )
    add(
        "--nsys-option",
        action="append",
        default=[],
        metavar="OPTION",
        help="handed to nsys profile as it is, as --nsys-option=--cuda-memory-usage=true; may be repeated",
    )


def _when(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("when")
    either = group.add_mutually_exclusive_group()
    either.add_argument(
        "--range",
        metavar="NAME[@DOMAIN]",
        help="capture the first NVTX range of exactly this name; the command goes on after it",
    )
    either.add_argument(
        "--profiler-api", action="store_true", help="capture from cudaProfilerStart to cudaProfilerStop"
    )
    add = group.add_argument
    add("--delay", type=_seconds, default=0, metavar="S", help="begin S seconds after the start")
    add(
        "--duration",
        type=_seconds,
        metavar="S",
        help=f"end capture and command after S seconds of capture; 0: never (default: {DURATION_S}; "
        "with a range: never)",
    )
    add(
        "--limit", type=_count, metavar="S", help="end the command after S seconds in all (default: no limit)"
    )
    add(
        "--finish-limit",
        type=_count,
        default=600,
        metavar="S",
        help="how long nsys may take after the command, to import and to export, each (default: 600)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Capture, or show what would be run."""
    command = given_command(arguments)
    if shutil.which(command[0]) is None:
        raise CollectError(command[0], "cannot be started (no such program)", "check the command behind --")
    try:
        pins = declared(arguments.pin)
    except ValueError as error:
        raise CollectError("--pin", str(error), "change or leave out the pin") from error
    job = Job(
        output=arguments.output,
        nsys=ask(arguments.nsys, gpu_metrics=arguments.gpu_metrics),
        wanted=_wanted(arguments),
        command=command,
        pins=pins,
        limit_s=arguments.limit,
        finish_s=arguments.finish_limit,
    )
    # Made in any case: what this nsys cannot do is told before anything is written.
    ranks = _ranks(job, arguments.processes)
    shown = _shown(job, ranks)
    if arguments.dry_run:
        sys.stdout.write(shown)
        sys.stderr.write(_would_be_refused(job, [rank for rank, _ in ranks]))
        return 0
    return (
        capture_all(job, arguments.processes) if arguments.processes > 1 else capture(job, dict(os.environ))
    )


def _wanted(arguments: argparse.Namespace) -> Wanted:
    return Wanted(
        graph_nodes=arguments.graph_nodes,
        event_trace=not arguments.no_events,
        os_runtime=not arguments.no_os_runtime,
        nccl=arguments.nccl,
        cpu_sampling=arguments.cpu_sampling,
        gpu_metrics=arguments.gpu_metrics,
        follow_forks=arguments.follow_forks,
        range_name=arguments.range,
        profiler_api=arguments.profiler_api,
        delay_s=arguments.delay,
        duration_s=arguments.duration,
        more=tuple(arguments.nsys_option),
    )


def _ranks(job: Job, processes: int) -> list[tuple[int, int | None]]:
    """Each rank to capture here, and its number on this host."""
    who = who_is_it(job, os.environ)
    return [(who.rank, who.local_rank)] if processes == 1 else [(rank, rank) for rank in range(processes)]


def _shown(job: Job, ranks: Sequence[tuple[int, int | None]]) -> str:
    """One command a line below what it is for, with the files at their final places."""
    lines: list[str] = []
    for rank, local in ranks:
        stem = Path(job.output) / f"rank{rank}"
        made = plan(job.wanted, job.nsys, stem, job.command, local_rank=local)
        for what, command in made.described:
            lines += [f"# rank {rank}: {what}\n", f"{shlex.join(command)}\n"]
    return "".join(lines)


def _would_be_refused(job: Job, ranks: Sequence[int]) -> str:
    """A line where the run itself would not begin, because of what the folder holds; else empty."""
    folder = RunFolder(job.output, look_only=True)
    try:
        for rank in ranks:
            folder.refuse_used(rank, "nsys")
    except CollectError as error:
        return f"warning: without --dry-run this would be refused: {error}\n"
    return ""


def _seconds(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of seconds")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)
