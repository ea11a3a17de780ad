"""Small programs of several ranks, spelled by what each rank does in each step, and how to analyze them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from analyzer import pipeline
from analyzer.analysis import Analysis
from analyzer.diagnosis import Collective as Row
from analyzer.diagnosis import Diagnosis, Rank
from fixtures.simulator.collective_rows import kernel_name
from fixtures.simulator.engine import simulate
from fixtures.simulator.kineto_writer import write_kineto
from fixtures.simulator.machine import Machine
from fixtures.simulator.nsys_writer import write_nsys
from fixtures.simulator.program import (
    Collective,
    Cpu,
    Group,
    Launch,
    Op,
    Pop,
    Program,
    Step,
    Stream,
    StreamSync,
    Thread,
)
from fixtures.simulator.program import Rank as ProgramRank
from fixtures.simulator.recording import Recording
from fixtures.simulator.run import Run

Ops = Callable[[int, int], tuple[Op, ...]]
"""What a rank does in a step, by rank and step."""
Form = Literal["kineto", "nsys", "one nsys file"]


def meet(group: str = "tp", op: str = "all_reduce", transfer_ns: int = 20_000, elements: int = 4_096) -> Op:
    """One collective."""
    return Collective(group, op, "BFloat16", elements, transfer_ns, kernel=kernel_name(op))


def work(ns: int, name: str = "gemm") -> Op:
    """One kernel."""
    return Launch(name, duration_ns=ns)


def host(ns: int, name: str = "schedule") -> Op:
    """Work of the CPU other than submitting."""
    return Cpu(ns, name, "op", "framework")


def team(
    ranks: int,
    ops: Ops,
    steps: int = 8,
    groups: tuple[Group, ...] | None = None,
    machine: Machine | None = None,
    pid: Callable[[int], int] = lambda rank: 1_000 + 100 * rank,
    streams: tuple[int, ...] = (7,),
) -> Run:
    """Every rank performs its operations step by step and waits for its stream after each."""
    built = []
    for rank in range(ranks):
        mine: list[Op] = []
        for step in range(steps):
            mine += [Step(f"ProfilerStep#{step}"), *ops(rank, step), StreamSync(), Pop()]
        lanes = tuple(Stream(stream) for stream in streams)
        built.append(ProgramRank(rank, (Thread(tuple(mine), tid=1),), lanes, device=rank, pid=pid(rank)))
    whole = groups or (Group("tp", tuple(range(ranks)), "tp", "1"),)
    return simulate(Program(tuple(built), whole, machine or Machine()))


def written(run: Run, folder: Path, form: Form = "kineto", recording: Recording | None = None) -> list[Path]:
    """The run's files."""
    folder.mkdir(parents=True, exist_ok=True)
    if form == "kineto":
        return write_kineto(run, folder, recording)
    return write_nsys(run, folder, recording, one_file=form == "one nsys file")


def analyzed(run: Run, folder: Path, form: Form = "kineto", recording: Recording | None = None) -> Analysis:
    """What a user gets for the run."""
    return pipeline.analyze(pipeline.read(written(run, folder, form, recording)))


def rank_of(diagnosis: Diagnosis, rank: int) -> Rank:
    """One rank of the result."""
    return next(entry for entry in diagnosis.ranks if entry.rank == rank)


def only(rows: list[Row]) -> Row:
    """The only row of the collectives table."""
    (row,) = rows
    return row


def shown(path: dict[str, int]) -> dict[str, int]:
    """Path time without the zeros."""
    return {category: ns for category, ns in path.items() if ns}
