"""Measures reading and diagnosing of large generated traces, as ratios within one run.

``python -m benchmarks.run`` from the repository's root; ``--scale 0.1`` for a tenth of the sizes, ``--only
ranks`` for one table.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import kineto, nsys, ranks
from benchmarks.memory import watch

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 3600
MIB = 1 << 20
GROWTH_LIMIT = 13
"""Ten times the events may take this many times as long."""
RANKS = (8, 16, 32, 64)
RANK_EVENTS = 20_000
"""Events of each rank's file."""


@dataclass(frozen=True)
class Cost:
    """What a task cost: the median run by CPU time. Worker processes count in all three."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


@dataclass(frozen=True)
class Capture:
    """A generated file: how it is written, and what stands in it."""

    name: str
    unit: str
    write: Callable[[Path], int]


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    capture: str
    task: str
    count: int
    size: int
    cost: Cost


def measure(task: str, path: Path, runs: int) -> Cost:
    """Run a task ``runs`` times, each in a process of its own."""
    costs = []
    command = [sys.executable, "-m", "benchmarks.tasks", task, str(path)]
    for _ in range(runs):
        with (
            tempfile.TemporaryFile() as printed,
            subprocess.Popen(command, cwd=ROOT, stdout=printed) as process,
        ):
            peak = watch(process, TIMEOUT_S)
            printed.seek(0)
            lines = printed.read().splitlines()
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        cost = Cost(**json.loads(lines[-1]))  # after what the task printed
        costs.append(replace(cost, peak_bytes=max(peak, cost.peak_bytes)))
    return sorted(costs, key=lambda cost: cost.cpu_s)[(runs - 1) // 2]


def captures(scale: float) -> tuple[list[tuple[Capture, list[str]]], list[tuple[Capture, Capture]]]:
    """Captures with the tasks to run on them, and pairs of a capture and one ten times as large."""

    def kineto_events(events: float, ops: int = 480) -> Callable[[Path], int]:
        return lambda path: kineto.write(path, round(events * scale), ops)

    def kineto_kernels(kernels: float) -> Callable[[Path], int]:
        return lambda path: kineto.write_kernels(path, max(20, round(kernels * scale)))

    def nsys_kernels(kernels: float, ops: int = 4000) -> Callable[[Path], int]:
        return lambda path: nsys.write(path, round(kernels * scale), ops)

    reading = [
        (
            Capture("torch.profiler", "events", kineto_events(1.5e6)),
            ["msgspec typed parse", "json.load", "read", "diagnose"],
        ),
        (Capture("nsys", "rows", nsys_kernels(2e6)), ["SQL aggregate", "read", "diagnose"]),
    ]
    small_steps = 15 * kineto.EVENTS_PER_OP
    growth = [
        (
            Capture("torch.profiler, no step markers", "events", kineto_kernels(2e5)),
            Capture("torch.profiler, no step markers", "events", kineto_kernels(2e6)),
        ),
        (
            Capture("torch.profiler, small steps", "events", kineto_events(1e3 * small_steps, 15)),
            Capture("torch.profiler, small steps", "events", kineto_events(1e4 * small_steps, 15)),
        ),
        (
            Capture("nsys, large steps", "rows", nsys_kernels(2e5)),
            Capture("nsys, large steps", "rows", nsys_kernels(2e6)),
        ),
        (
            Capture("nsys, small steps", "rows", nsys_kernels(1e3 * 40, 40)),
            Capture("nsys, small steps", "rows", nsys_kernels(1e4 * 40, 40)),
        ),
    ]
    return reading, growth


def _on(capture: Capture, tasks: list[str], folder: Path, runs: int) -> Iterator[Row]:
    path = folder / ("trace.json" if capture.name.startswith("torch") else "trace.sqlite")
    count = capture.write(path)
    for task in tasks:
        _say(f"{capture.name}: {count:,} {capture.unit}: {task}")
        yield Row(capture.name, task, count, path.stat().st_size, measure(task, path, runs))
    path.unlink()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def report(scale: float, runs: int, folder: Path, only: str | None = None) -> str:
    """Measure everything, or the table called ``only``, and return it as Markdown."""
    tables = [TABLES[only]] if only else list(TABLES.values())
    return "\n\n".join("\n".join(table(scale, runs, folder)) for table in tables) + "\n"


def _reading_table(scale: float, runs: int, folder: Path) -> list[str]:
    reading, _ = captures(scale)
    lines = [
        "| capture | task | CPU s | wall s | peak MiB | CPU against the first |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for capture, tasks in reading:
        rows = list(_on(capture, tasks, folder, runs))
        lines += [
            f"| {row.capture}, {row.count:,} {capture.unit}, {row.size / MIB:.0f} MiB | {row.task} "
            f"| {row.cost.cpu_s:.1f} | {row.cost.wall_s:.1f} | {row.cost.peak_bytes / MIB:.0f} "
            f"| {_ratio(row.cost, rows[0].cost)} |"
            for row in rows
        ]
    return lines


def _growth_table(scale: float, runs: int, folder: Path) -> list[str]:
    _, growth = captures(scale)
    lines = ["| diagnose | ten times as much | CPU s | growth | peak MiB | peak / file |"]
    lines += ["|---|---|--:|--:|--:|--:|"]
    for small, large in growth:
        (first,) = _on(small, ["diagnose"], folder, runs)
        (second,) = _on(large, ["diagnose"], folder, runs)
        lines.append(
            f"| {small.name}, {first.count:,} {small.unit} | {second.count:,} "
            f"| {first.cost.cpu_s:.1f} → {second.cost.cpu_s:.1f} | {_ratio(second.cost, first.cost)} "
            f"| {first.cost.peak_bytes / MIB:.0f} → {second.cost.peak_bytes / MIB:.0f} "
            f"| {second.cost.peak_bytes / second.size:.1f} |"
        )
    return lines


def _ranks_table(scale: float, runs: int, folder: Path) -> list[str]:
    """Time and memory per rank against those of the fewest ranks; the most ranks with two jobs as well."""
    lines = [
        f"| diagnose of | events | files, MiB | CPU s | wall s | CPU per rank against {RANKS[0]} | peak MiB "
        f"| peak per rank against {RANKS[0]} |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    first = None
    for count in RANKS:
        files = folder / f"{count} ranks"
        files.mkdir()
        events = ranks.write(files, count, round(RANK_EVENTS * scale))
        size = sum(path.stat().st_size for path in files.iterdir())
        for task in ("diagnose ranks", "diagnose ranks, 2 jobs")[: 1 + (count == RANKS[-1])]:
            _say(f"{count} ranks: {events:,} events: {task}")
            cost = measure(task, files, runs)
            first = first or cost
            share = count / RANKS[0]
            lines.append(
                f"| {task.replace('diagnose', str(count))} | {events:,} | {size / MIB:.0f} | {cost.cpu_s:.1f} "
                f"| {cost.wall_s:.1f} | {cost.cpu_s / first.cpu_s / share:.2f} "
                f"| {cost.peak_bytes / MIB:.0f} | {cost.peak_bytes / first.peak_bytes / share:.2f} |"
            )
        shutil.rmtree(files)
    return lines


def _comparing_table(scale: float, runs: int, folder: Path) -> list[str]:
    """What comparisons cost: the part of diagnose that serves them alone, and two diagnoses held against each other."""
    reading, _ = captures(scale)
    lines = [
        "| capture | diagnose, CPU s | work of the steps and its order, CPU s | part of diagnose | compare, CPU s "
        "| against diagnose |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for capture, _tasks in reading:
        whole, work, compared = _on(capture, ["diagnose", "step work", "compare"], folder, runs)
        lines.append(
            f"| {capture.name}, {whole.count:,} {capture.unit} | {whole.cost.cpu_s:.1f} | {work.cost.cpu_s:.2f} "
            f"| {_share(work.cost, whole.cost)} | {compared.cost.cpu_s:.2f} | {_share(compared.cost, whole.cost)} |"
        )
    return lines


def _share(cost: Cost, base: Cost) -> str:
    return f"{cost.cpu_s / base.cpu_s:.3f}" if base.cpu_s > 0 else "-"


TABLES: dict[str, Callable[[float, int, Path], list[str]]] = {
    "reading": _reading_table,
    "growth": _growth_table,
    "ranks": _ranks_table,
    "comparing": _comparing_table,
}


def _ratio(cost: Cost, base: Cost) -> str:
    return f"{cost.cpu_s / base.cpu_s:.1f}" if base.cpu_s > 0 else "-"


def main() -> None:
    """Parse the command line, measure, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="part of the full sizes (default 1)")
    parser.add_argument("--runs", type=int, default=1, help="runs per task; the median counts (default 1)")
    parser.add_argument("--only", choices=sorted(TABLES), help="one table (default: all)")
    parser.add_argument("--output", type=Path, help="a file for the tables, else they are printed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tables = report(options.scale, options.runs, Path(folder), options.only)
    if options.output:
        options.output.write_text(tables, encoding="utf-8")
    else:
        print(tables)


if __name__ == "__main__":
    main()
