"""Simulated programs through the whole analyzer, and what to compare."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from analyzer import pipeline
from analyzer.analysis import Analysis
from analyzer.categories import CATEGORY_NAMES, Category
from analyzer.diagnosis import Rank
from fixtures.simulator.engine import simulate
from fixtures.simulator.kineto_writer import write_kineto
from fixtures.simulator.nsys_writer import write_nsys
from fixtures.simulator.random_programs import Level, random_program
from fixtures.simulator.recording import CAPTURE_EPOCH_NS, Recording
from fixtures.simulator.run import Run
from fixtures.simulator.truth import Truth, truth_of

COUNT = int(os.environ.get("TRACEBOUND_PROGRAMS", "50"))
"""Programs per law: 50 in an ordinary run, 2,000 in ``scripts/nightly``."""
FIRST = int(os.environ.get("TRACEBOUND_FIRST_SEED", "0"))
SEEDS = range(FIRST, FIRST + COUNT)
PREDICTED = range(FIRST, FIRST + int(os.environ.get("TRACEBOUND_PREDICTED_PROGRAMS", "50")))
"""Programs whose changes are all simulated: 50 in an ordinary run, 600 in ``scripts/nightly``."""

Piece = tuple[int, int, str]


def run_of(seed: int, level: Level, ranks: int = 1) -> tuple[Run, Truth]:
    """A random program, simulated, with its truth."""
    run = simulate(random_program(seed, level, ranks=ranks))
    return run, truth_of(run)


def analyzed(
    run: Run, folder: Path, form: str, recording: Recording | None = None, **options: object
) -> Analysis:
    """What the analyzer says of the run, written as ``kineto`` or ``nsys``."""
    folder.mkdir(parents=True, exist_ok=True)
    write = write_kineto if form == "kineto" else write_nsys
    return pipeline.analyze(pipeline.read(write(run, folder, recording)), **options)


def merged(pieces: Iterable[Piece]) -> list[Piece]:
    """Neighbours of one label joined."""
    result: list[Piece] = []
    for start, end, label in pieces:
        if result and result[-1][2] == label and result[-1][1] == start:
            result[-1] = (result[-1][0], end, label)
        else:
            result.append((start, end, label))
    return result


def path_of(analysis: Analysis, rank: int, window: int) -> list[Piece]:
    """Path of one window on the simulator's clock, neighbours of one category joined."""
    table = analysis.segment_table
    assert table is not None
    assert analysis.diagnosis.time_zero_ns is not None
    zero = int(analysis.diagnosis.time_zero_ns) - CAPTURE_EPOCH_NS
    rows = (table.rank == rank) & (table.window == window)
    return merged(
        (start + zero, end + zero, CATEGORY_NAMES[Category(category)])
        for start, end, category in zip(
            table.start_ns[rows].tolist(),
            table.end_ns[rows].tolist(),
            table.category[rows].tolist(),
            strict=True,
        )
    )


def true_path(truth: Truth, rank: int, window: int) -> list[Piece]:
    """The same from the simulator."""
    return merged(
        (segment.start_ns, segment.end_ns, CATEGORY_NAMES[segment.category])
        for segment in truth.ranks[rank][window].path
    )


def mislabelled(mine: list[Piece], true: list[Piece]) -> int:
    """Time in which two partitions of one window carry different labels, ns."""
    cuts = sorted({edge for piece in mine + true for edge in piece[:2]})

    def label(pieces: list[Piece], instant: int) -> str:
        at = bisect_right(pieces, (instant, 1 << 62, "")) - 1
        return pieces[max(at, 0)][2]

    return sum(high - low for low, high in pairwise(cuts) if label(mine, low) != label(true, low))


def rank_of(analysis: Analysis, rank: int) -> Rank:
    """One rank of the result."""
    return next(entry for entry in analysis.diagnosis.ranks if entry.rank == rank)
