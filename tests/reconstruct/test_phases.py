"""Phases by kind of work and batch shape."""

from __future__ import annotations

import pytest

from analyzer.reconstruct.step_markers import Shape, shape_of
from tests.builders import Schedule, account_of, schedule


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("execute_context_0(0)_generation_8(8)", Shape("batch", 8)),
        ("execute_context_0(0)_generation_8(24)", Shape("batch", 8)),  # speculative: still 8 requests
        ("execute_context_2(700)_generation_8(8)", Shape("tokens", 708)),
        ("execute_context_2(700)_generation_0(0)", Shape("tokens", 700)),
        (
            "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)",
            Shape("batch", 32),
        ),
        ("step[EXTEND bs=15 toks=15360]", Shape("tokens", 15_360)),
        ("step[DECODE bs=32]", Shape("batch", 32)),
        ("step[DECODE bs=32 toks=32]", Shape("batch", 32)),
        ("[Executor] _forward_step 12: 3 ctx reqs, 900 ctx tokens, 5 gen reqs", Shape("tokens", 905)),
        ("[Executor] _forward_step 12: 3 ctx reqs, 5 gen reqs", Shape("batch", 8)),  # tokens not told
        ("[Executor] _forward_step 12: 0 ctx reqs, 5 gen reqs", Shape("batch", 5)),
        ("decode[bs=7/8 tok=7 p=0 d=7]", Shape("batch", 7)),
        ("tracebound.step[decode bs=8]#12", Shape("batch", 8)),
        ("tracebound.step[decode]#12", None),
        ("my step bs=16", Shape("batch", 16)),
        ("batch_size: 4", Shape("batch", 4)),
        ("ProfilerStep#12", None),
        ("execute_context_0(0)_generation_0(0)", None),
        ("jobs=3", None),
        ("batch 0.5", None),
    ],
)
def test_what_a_step_name_tells_of_its_shape(name: str, shape: Shape | None) -> None:
    assert shape_of(name) == shape


def decode_steps(*batches: int) -> Schedule:
    """One step of 100 us per batch, each with one kernel."""
    built = schedule()
    for at, batch in enumerate(batches):
        start = 100 * at
        built.range(start, start + 50, f"execute_context_0(0)_generation_{batch}({batch})")
        built.launch(start + 1, start + 5, runs=(start + 11, start + 90), name="k")
    return built


def phases_of(built: Schedule) -> list[str]:
    return [window.phase for window in account_of(built).windows]


def test_each_of_a_few_batch_shapes_is_a_phase_of_its_own() -> None:
    assert phases_of(decode_steps(8, 8, 6, 8)) == [
        "decode batch 8", "decode batch 8", "decode batch 6", "decode batch 8"
    ]  # fmt: skip


def test_a_single_batch_shape_needs_no_name() -> None:
    assert phases_of(decode_steps(8, 8)) == ["decode", "decode"]


def test_many_batch_shapes_are_banded_by_powers_of_two() -> None:
    assert phases_of(decode_steps(1, 2, 3, 4, 5, 8, 9, 33)) == [
        "decode batch 1", "decode batch 2", "decode batch 3-4", "decode batch 3-4", "decode batch 5-8",
        "decode batch 5-8", "decode batch 9-16", "decode batch 33-64",
    ]  # fmt: skip


def test_steps_without_a_known_marker_are_split_by_the_batch_their_name_tells() -> None:
    built = schedule()
    for at, batch in enumerate((4, 4, 16, 4)):
        start = 100 * at
        built.range(start, start + 50, f"iteration bs={batch}")
        built.launch(start + 1, start + 5, runs=(start + 11, start + 90), name="k")
    windows = account_of(built, steps="iteration").windows
    assert [window.phase for window in windows] == [
        "step batch 4", "step batch 4", "step batch 16", "step batch 4"
    ]  # fmt: skip
