"""What each change makes of a literal loop, worked out by hand: the step takes 100 us (``builders.two_kernels``).

Host 23 us, then 10 us to the gemm's start, gemm 40, gap 1, norm 20, and 6 us until the wait returns.
"""

from __future__ import annotations

import numpy as np
import pytest

from analyzer.errors import UsageError
from analyzer.model import CopyKind
from tests.builders import Schedule
from tests.predict.builders import after, graph_of, loop, replayed, step_us


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("kernel:gemm=0.5", 80.0),
        ("kernel:gemm=2", 140.0),
        ("kernel:.=0.5", 70.0),
        ("kernel:gemm=0.5+kernel:norm=0", 60.0),
        ("turnaround=0", 99.0),
        ("host=0.5", 88.5),
        ("host-work=0", 77.0),
        ("dispatch=0", 100.0),  # behind the first kernel
        ("output=0", 100.0),  # there is none
        ("no-overhead", 100.0),
        ("no-dependencies", 100.0),
        ("kernel:gemm=0.5+host=0.5", 68.5),
        ("no-sync", 62.0),  # kernels 40 + 1 + 20 + 1: the host works meanwhile
    ],
)
def test_a_step_takes_what_it_must(spec: str, expected: float) -> None:
    assert after(spec) == expected


def test_launches_hold_up_kernels_that_were_hidden_before() -> None:
    """From one gemm's launch to the next: 6 us to the norm's, 10 to its start, 6 for the return, 23 of the host."""
    assert after("kernel:.=0") == 6 + 10 + 6 + 23
    assert after("kernel:.=0+dispatch=0") == 4 + 10 + 6 + 23


def test_small_grids_are_those_that_were_measured_to_be() -> None:
    norms = np.tile([False, True], 6)
    assert after("small-grids=0.5", small=norms) == 90.0
    with pytest.raises(UsageError, match="fits no device work"):
        after("small-grids=0.5")


def test_a_byte_floor_needs_the_bandwidth() -> None:
    with pytest.raises(UsageError, match="memory bandwidth of rank 0's device is not recorded") as refused:
        after("byte-floor:gemm=1MB")
    assert "kernel:REGEX=FACTOR" in refused.value.hint
    with pytest.raises(UsageError, match="fits no kernel"):
        after("byte-floor:attention=1MB")


@pytest.mark.parametrize(
    "spec", ["kernel:attention=0.5", "copies=0.5", "collective=0.5", "collectives-hidden", "no-skew"]
)
def test_what_the_capture_does_not_hold_cannot_be_changed(spec: str) -> None:
    with pytest.raises(UsageError) as refused:
        after(spec)
    assert refused.value.hint


def copies(built: Schedule, at: int) -> Schedule:
    """100 us: a copy of 30 us before the kernel, and 30 us of detokenization after the wait."""
    return (
        built.range(at, at + 99, "step")
        .copy(at, at + 4, runs=(at + 10, at + 40))
        .launch(at + 6, at + 10, runs=(at + 41, at + 54), name="gemm")
        .sync(at + 12, at + 60, stream=7)
        .range(at + 62, at + 92, "detokenize")
    )


def test_copies_and_output_are_changed_by_themselves() -> None:
    assert after("copies=0.5", copies) == 85.0
    assert after("output=0.5", copies, output_ranges="detokenize") == 85.0
    assert after("host-work=0", copies, output_ranges="detokenize") == 90.0


def queues(built: Schedule, at: int) -> Schedule:
    """100 us: a copy out on a second stream waits for the gemm's event, the host for the copy."""
    return (
        built.range(at, at + 99, "step")
        .launch(at, at + 4, runs=(at + 10, at + 50), name="gemm")
        .event_record(at + 5, at + 6, "done")
        .event_wait(at + 7, at + 8, "done", stream=9)
        .copy(at + 9, at + 13, runs=(at + 51, at + 71), kind=CopyKind.DTOH, stream=9)
        .sync(at + 15, at + 76, stream=9)
        .sync(at + 78, at + 80, stream=7)
    )


def test_without_dependencies_streams_run_side_by_side() -> None:
    """The copy no longer holds the host: the gemm does, 50 us after its launch; 5 for the return, 20 of the host."""
    found = replayed(graph_of(loop(queues)), "no-dependencies")
    assert step_us(found) == 50 + 5 + 20
    assert found.notes == ("whether the work may run without these dependencies is not checked",)
