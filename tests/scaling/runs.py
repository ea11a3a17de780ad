"""Literal runs of a scaling study: steps of given lengths by category, no capture behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from analyzer.categories import CATEGORY_NAMES
from analyzer.comparison.headline import Headline
from analyzer.diagnosis import Device, Diagnosis, PinnedFact, RunFacts
from analyzer.scaling.fit import CountedRun
from tests.builders import analysis_of, schedule

MS = 1_000_000
PINS = {
    "model": "llama",
    "precision": "bf16",
    "weights": "abc",
    "runtime": "vllm 0.9",
    "input": "sharegpt",
    "context": "4096",
    "batch": "8",
    "cache_initialization": "real-prefix",
    "flags": "-tp 1",
    "hardware": "H200",
    "clocks": "1980 MHz",
    "topology": "NVLink",
}


def steps_of(path_ns: Mapping[str, Sequence[int]]) -> Headline:
    """A run's steps, each the sum of its categories."""
    names = CATEGORY_NAMES.values()
    n = len(next(iter(path_ns.values())))
    every = {name: list(path_ns.get(name, [0] * n)) for name in names}
    step_ns = [sum(values[at] for values in every.values()) for at in range(n)]
    mean = {name: round(sum(values) / n) for name, values in every.items()}
    return Headline("decode", "global", None, step_ns, every, mean, 0)


def counted(ranks: int, **path_ns: Sequence[int]) -> CountedRun:
    """``kernel=[...]``, ``collective_transfer=[...]``: ns of each step."""
    return CountedRun(
        ranks, steps_of({name.replace("_", ".", 1): values for name, values in path_ns.items()})
    )


def diagnosis(
    kernel_us: Sequence[int], pins: Mapping[str, str] | None = None, phase: str = "decode", zero_us: int = 0
) -> Diagnosis:
    """A capture of one rank whose steps run one kernel each, as long as ``kernel_us`` says, and 20 us around it.

    ``zero_us`` sets captures of equal steps apart.
    """
    built = schedule()
    at = zero_us
    for length in kernel_us:
        built.range(at, at + length + 20, phase)
        built.launch(at, at + 5, runs=(at + 10, at + 10 + length), name="gemm")
        built.sync(at + 6, at + length + 15, stream=7)
        at += length + 20
    made = analysis_of(built, steps=f"^{phase}$").diagnosis
    return made if pins is None else with_pins(made, pins)


def with_pins(made: Diagnosis, pins: Mapping[str, str]) -> Diagnosis:
    """The same run with a manifest that declares these pins."""
    facts = RunFacts(
        run_id="run",
        manifest="manifest.json",
        complete=True,
        pins={name: PinnedFact(value=value, source="declared") for name, value in pins.items()},
        ranks=[],
    )
    missing = [name for name in PINS if name not in pins]
    return msgspec.structs.replace(made, run=facts, undeclared=missing)


def alternating(mean_us: int, by: int = 2, n: int = 10) -> list[int]:
    """Lengths with exactly that mean."""
    return [mean_us + by, mean_us - by] * (n // 2)


def on_device(made: Diagnosis, name: str) -> Diagnosis:
    device = Device(index=0, uuid=None, name=name, sm_count=None, memory_bytes_per_s=None)
    return msgspec.structs.replace(made, ranks=[msgspec.structs.replace(made.ranks[0], device=device)])
