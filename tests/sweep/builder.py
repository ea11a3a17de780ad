"""Runs of literal steps: a GEMM, then attention, back to back; what a step takes beyond both is constant."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from zlib import crc32

import msgspec

from analyzer.diagnosis import Diagnosis, PinnedFact, RunFacts
from analyzer.sweep import Given
from tests.builders import analysis_of, schedule

ATTENTION = "flash_fwd_splitkv_kernel"
SPREAD = (-1, 2, 0, -2, 1, 1, -1, 0)
"""Of steps about their mean, us: sums to 0."""


def steps_of(mean_us: int) -> list[int]:
    """Eight steps of attention that vary a little about their mean."""
    return [mean_us + one for one in SPREAD]


@cache
def _diagnosis(
    attention_us: tuple[int, ...], gemm_us: int, phase: str, zero_us: int, kernel: str
) -> Diagnosis:
    built, at = schedule(), zero_us
    for attention in attention_us:
        end = at + 6 + gemm_us + attention
        built.range(at, end + 4, phase)
        built.launch(at + 1, at + 3, runs=(at + 6, at + 6 + gemm_us), name="nvjet_gemm")
        built.launch(at + 3, at + 5, runs=(at + 6 + gemm_us, end), name=kernel)
        built.sync(at + 5, end + 3, stream=7)
        at = end + 5
    return analysis_of(built, steps=f"^{phase}$", own_changes=False).diagnosis


def diagnosis(
    attention_us: Sequence[int],
    gemm_us: int = 50,
    phase: str = "decode",
    zero_us: int = 0,
    kernel: str = ATTENTION,
) -> Diagnosis:
    """Steps of ``gemm_us`` and attention each; ``zero_us`` sets captures of equal steps apart."""
    return _diagnosis(tuple(attention_us), gemm_us, phase, zero_us, kernel)


def run(
    name: str,
    attention_us: Sequence[int] | int,
    *,
    context: int | None = None,
    batch: int | None = 1,
    cache: str | None = "real-prefix",
    gemm_us: int = 50,
    zero_us: int = 0,
    kernel: str = ATTENTION,
    **pins: str,
) -> Given:
    """One cell, declared as a grid file would. An integer is a mean of steps that vary a little."""
    times = steps_of(attention_us) if isinstance(attention_us, int) else attention_us
    told = {"context": context, "batch": batch, "cache_initialization": cache}
    declared = {**{pin: str(value) for pin, value in told.items() if value is not None}, **pins}
    return Given(
        name,
        diagnosis(times, gemm_us, zero_us=zero_us + crc32(name.encode()) % 9_973, kernel=kernel),
        declared,
        "grid.csv (line 2)",
    )


def manifested(given: Given, **pins: str) -> Given:
    """The same run with a manifest of these pins."""
    facts = RunFacts(
        run_id="1",
        manifest="manifest.json",
        complete=True,
        pins={name: PinnedFact(value=value, source="declared") for name, value in pins.items()},
        ranks=[],
    )
    return Given(given.name, msgspec.structs.replace(given.diagnosis, run=facts), given.declared, given.where)
