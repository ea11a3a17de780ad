"""Cycles of runs that mark each forward pass, and of runs whose steps are cycles."""

from __future__ import annotations

import pytest

from analyzer.diagnosis import Diagnosis
from analyzer.errors import UsageError
from analyzer.speculation.counts import from_histogram
from analyzer.speculation.cycle_steps import cycle_steps
from analyzer.speculation.speedup import speculate, timed
from tests.builders import analysis_of, schedule

DRAFT, VERIFY, EXTEND = "step[DRAFT bs=8]", "step[VERIFY bs=8]", "step[EXTEND bs=1 toks=512]"


def passes(*marked: tuple[str, int]) -> Diagnosis:
    """Forward passes one after the other, each with one kernel of so many us, 20 us around it."""
    built = schedule()
    at = 0
    for name, length in marked:
        built.range(at, at + length + 20, name)
        kernel = "draft" if "DRAFT" in name else "prefill" if "EXTEND" in name else "gemm"
        built.launch(at, at + 5, runs=(at + 10, at + 10 + length), name=kernel)
        built.sync(at + 6, at + length + 15, stream=7)
        at += length + 20
    return analysis_of(built, steps=r"^step\[").diagnosis


def test_a_cycle_reaches_from_verification_to_verification() -> None:
    found = cycle_steps("run", passes(*[(DRAFT, 100), (DRAFT, 100), (VERIFY, 400)] * 8))
    assert found.steps.step_ns == [(120 + 120 + 420) * 1_000] * 7  # the first has no verification before it
    assert found.passes == 3
    assert found.steps.phase.startswith("decode")


def test_a_prefill_between_is_no_part_of_a_cycle() -> None:
    plain = [(DRAFT, 100), (VERIFY, 400)]
    found = cycle_steps("run", passes(*plain * 4, (EXTEND, 5_000), *plain * 5))
    assert found.steps.step_ns == [540_000] * 7  # of 9 verifications 8 follow another, one of them a prefill
    assert found.passes == 2


def test_steps_of_other_engines_are_cycles() -> None:
    found = cycle_steps("run", passes(*[("step[DECODE bs=8]", 400)] * 8))
    assert found.passes is None
    assert set(found.steps.step_ns) <= {420_000, 410_000}  # the first begins with its own range


def test_drafts_without_a_verification_are_refused() -> None:
    with pytest.raises(UsageError, match="none that verifies"):
        cycle_steps("run", passes(*[(DRAFT, 100)] * 8))
    with pytest.raises(UsageError, match="no two verifications of phase"):
        cycle_steps("run", passes((DRAFT, 100), (VERIFY, 400)))


def test_the_speedup_counts_the_drafts() -> None:
    """420 us a token against cycles of 660 us: 1.571 tokens break even, not 1."""
    counts = from_histogram("file", {0: 20, 1: 16, 2: 64}, 2)
    plain = timed("plain", passes(*[("step[DECODE bs=8]", 400)] * 12))
    drafted = timed("drafted", passes(*[(DRAFT, 100), (DRAFT, 100), (VERIFY, 400)] * 12))
    found = speculate("file", counts, plain, drafted)
    assert found.breakeven_tokens == pytest.approx(660 / 420, rel=0.01)
    assert any("3.0 marked forward passes on average" in note for note in found.notes)


def test_other_batches_in_the_names_have_no_speedup() -> None:
    counts = from_histogram("file", {0: 20, 1: 16, 2: 64}, 2)
    plain = timed("plain", passes(*[("step[DECODE bs=16]", 400)] * 8))
    drafted = timed("drafted", passes(*[(DRAFT, 100), (VERIFY, 400)] * 8))
    found = speculate("file", counts, plain, drafted)
    assert found.speedup is None
    assert [(one.what, one.baseline, one.speculative) for one in found.differences] == [
        ("batch shape of the steps", "batch 16", "batch 8")
    ]
