"""A small capture with its steps, and token logs of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from analyzer import pipeline
from analyzer.analysis import Analysis
from analyzer.model import Capture
from fixtures.simulator import program as p
from fixtures.simulator.decode_loop import eager, single_gpu
from fixtures.simulator.engine import simulate
from fixtures.simulator.kineto_writer import write_kineto
from fixtures.simulator.recording import CAPTURE_EPOCH_NS

STEPS = 12


def one_gpu(folder: Path) -> Capture:
    return pipeline.read(write_kineto(simulate(single_gpu(STEPS)), folder))


def two_gpus(folder: Path) -> Capture:
    return pipeline.read(write_kineto(simulate(eager(2, STEPS, 2)), folder))


def two_engines(folder: Path) -> Capture:
    """Two ranks that have no collective in common."""
    program = replace(eager(2, STEPS, 2), groups=())
    ranks = tuple(
        replace(rank, threads=(replace(rank.threads[0], ops=tuple(
            op for op in rank.threads[0].ops if not isinstance(op, p.Collective)
        )),))
        for rank in program.ranks
    )  # fmt: skip
    return pipeline.read(write_kineto(simulate(replace(program, ranks=ranks)), folder))


def without_output_ranges(folder: Path) -> Capture:
    """The loop on one GPU with ranges of which none is known as output."""
    program = single_gpu(STEPS)
    rank = program.ranks[0]
    ops = tuple(
        replace(op, name="sample", declared=None)
        if isinstance(op, p.Push) and op.declared == "output"
        else op
        for op in rank.threads[0].ops
    )
    program = replace(program, ranks=(replace(rank, threads=(replace(rank.threads[0], ops=ops),)),))
    return pipeline.read(write_kineto(simulate(program), folder))


def ends(analysis: Analysis) -> list[int]:
    """When each step was complete, ns after the capture's zero."""
    diagnosis = analysis.diagnosis
    windows = diagnosis.ranks[0].windows if diagnosis.global_ is None else diagnosis.global_.windows
    assert int(diagnosis.time_zero_ns or 0) == CAPTURE_EPOCH_NS
    return [window.end_ns for window in windows]


def log_of(
    folder: Path, rows: list[tuple[str, int, int | None, int | None, int | None]], name: str = "tokens.csv"
) -> Path:
    """Rows of request, token, completion, emission, receipt; times are ns after the capture's zero."""
    head = "request,token,device_completion_ns,server_emission_ns,client_receipt_ns"
    lines = [
        ",".join([request, str(token), *("" if t is None else str(t + CAPTURE_EPOCH_NS) for t in times)])
        for request, token, *times in rows
    ]
    path = folder / name
    path.write_text("\n".join([head, *lines]) + "\n", encoding="ascii")
    return path
