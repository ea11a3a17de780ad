"""What the collectors' lines cost inside a program: ``python -m benchmarks.collectors``.

CPU time of loops of many calls; the least of several repeats counts, less that of a function that does nothing.
Shares are those of a step of 1 ms.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import timeit
from collections.abc import Callable
from pathlib import Path

from collectors import ranges
from collectors.torch_profiler import Capture, capture

STEP_NS = 1_000_000
REPEATS = 7


def per_call_ns(call: Callable[[], object], count: int) -> float:
    """Cost of one call in ns: the least of several loops, without the loop and the call of a function itself."""

    def nothing() -> None:
        pass

    def least(what: Callable[[], object]) -> float:
        return min(timeit.repeat(what, timer=time.process_time, number=count, repeat=REPEATS)) * 1e9 / count

    return max(least(call) - least(nothing), 0.0)


class Empty:
    """The least that any context manager written in Python does."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def range_costs(count: int) -> dict[str, float]:
    """Costs per range in ns while nothing records."""

    def empty() -> None:
        with Empty():
            pass

    def step() -> None:
        with ranges.step(7):
            pass

    def batch() -> None:
        with ranges.step(7, batch=8):
            pass

    def phase() -> None:
        with ranges.phase("decode"):
            pass

    def output() -> None:
        with ranges.output():
            pass

    named = {
        "an empty context manager, to compare": empty,
        "range step(7), nothing records": step,
        "range step(7, batch=8), nothing records": batch,
        'range phase("decode"), nothing records': phase,
        "range output(), nothing records": output,
    }
    return {name: per_call_ns(call, count) for name, call in named.items()}


def step_costs(count: int) -> dict[str, float]:
    """Costs in ns per ``steps.step()`` outside of the window, and inside it beside torch's own."""
    costs: dict[str, float] = {}
    with capture() as steps:
        costs["without a folder"] = per_call_ns(steps.step, count)
    with tempfile.TemporaryDirectory() as folder:
        with capture(Path(folder) / "before", wait=1 << 60) as steps:
            costs["before the window"] = per_call_ns(steps.step, count)
        with capture(Path(folder) / "after", wait=0, warmup=1, active=1) as steps:
            _pass_window(steps)
            costs["after the window"] = per_call_ns(steps.step, count)
        inside = min(count, 1000)
        with capture(Path(folder) / "inside", wait=0, warmup=1, active=inside * REPEATS) as steps:
            steps.step()
            costs["inside the window (torch's step with its range)"] = (
                min(timeit.repeat(steps.step, timer=time.process_time, number=inside, repeat=REPEATS - 1))
                * 1e9
                / inside
            )
    return costs


def _pass_window(steps: Capture) -> None:
    for _ in range(3):
        steps.step()


def table(count: int) -> str:
    """All costs as Markdown."""
    rows = ["| what | ns per call | share of a 1 ms step |", "|---|---:|---:|"]
    named = range_costs(count)
    named |= {f"`steps.step()` {name}": ns for name, ns in step_costs(count).items()}
    return "\n".join([*rows, *(f"| {name} | {ns:,.0f} | {ns / STEP_NS:.3%} |" for name, ns in named.items())])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="calls per loop (default: 100000)")
    print(table(parser.parse_args().count))


if __name__ == "__main__":
    main()
