"""Host and device clocks of one rank (attribution, end of section 3)."""

from __future__ import annotations

import pytest

from analyzer.model import CopyKind, MemoryKind
from analyzer.reconstruct.clocks import DeviceClock
from tests.builders import Schedule, account_of, analysis_of, path_of, quality_of, schedule


def launches(count: int, lead: int, last_lead: int | None = None) -> Schedule:
    """Launches every 100 us; each kernel starts ``lead`` us after its call (negative: before it)."""
    built = schedule()
    for i in range(count):
        shift = last_lead if last_lead is not None and i == count - 1 else lead
        at = 100 + 100 * i
        built.launch(at, at + 4, runs=(at + shift, at + shift + 20), name=f"k{i}")
    return built


def clock(built: Schedule) -> DeviceClock:
    return account_of(built).clock


def test_clocks_that_agree_are_left_alone() -> None:
    found = clock(launches(60, 10))
    assert (found.shift_ns, found.correction) == (0, "none")
    assert (found.low_ns, found.high_ns) == (-10_000, None)
    assert (found.pair_count, found.negative_latency_count) == (60, 0)


def test_the_device_is_shifted_by_the_smallest_amount_that_no_start_precedes_its_launch() -> None:
    """59 kernels start 5 us before their call, one 8 us: the device's clock moves by 8."""
    built = launches(60, -5, last_lead=-8)
    found = clock(built)
    assert (found.shift_ns, found.correction, found.negative_latency_count) == (8_000, "shifted", 60)
    assert account_of(built).work.start_ns[0] == 100_000 - 5_000 + 8_000
    assert quality_of(built)["start-before-launch"] == 60
    assert "the device clock was shifted by 8000 ns" in " ".join(analysis_of(built).diagnosis.notes)


def test_fewer_than_50_pairs_are_clipped_and_counted() -> None:
    """
    main       |L 100-104        a negative latency is no latency: the launch began when its work did
    stream 7 |k0 95-115
    """
    built = launches(1, -5)
    found = clock(built)
    assert (found.shift_ns, found.correction, found.negative_latency_count) == (0, "clipped", 1)
    assert path_of(built) == [(95, 115, "kernel", "k0")]
    assert clock(launches(49, -5)).correction == "clipped"
    assert clock(launches(50, -5)).correction == "shifted"


def test_a_synchronization_bounds_the_shift_from_above() -> None:
    """The sync returns 3 us before its kernel's end: the device clock runs ahead by that much or more."""
    built = launches(59, 6)
    built.launch(6100, 6104, runs=(6110, 6150), name="late").sync(6105, 6147, stream=7)
    found = clock(built)
    assert (found.low_ns, found.high_ns, found.early_return_count) == (-6_000, -3_000, 1)
    assert (found.shift_ns, found.correction) == (-3_000, "shifted")
    assert account_of(built).work.end_ns[-1] == 6_147_000


@pytest.mark.parametrize(
    ("host", "api", "bound"),
    [
        (MemoryKind.PAGEABLE, "cudaMemcpyAsync", -4_000),
        (MemoryKind.PINNED, "cudaMemcpy", -4_000),
        (MemoryKind.PINNED, "cudaMemcpyAsync", None),  # returns when it likes
    ],
)
def test_copies_to_the_host_that_block_bound_it_too(host: MemoryKind, api: str, bound: int | None) -> None:
    built = launches(59, 6).copy(6100, 6140, runs=(6110, 6144), kind=CopyKind.DTOH, host=host, api=api)
    assert clock(built).high_ns == bound


def test_bounds_that_leave_no_shift_clip() -> None:
    """Kernels start 5 us before their launch, yet a wait returns 3 us before its work's end."""
    built = launches(59, -5)
    built.launch(6100, 6104, runs=(6110, 6150), name="late").sync(6105, 6147, stream=7)
    found = clock(built)
    assert (found.low_ns, found.high_ns) == (5_000, -3_000)
    assert (found.shift_ns, found.correction) == (0, "clipped")
    assert (found.negative_latency_count, found.early_return_count) == (59, 1)


def test_a_synchronization_of_an_unknown_stream_bounds_nothing() -> None:
    built = launches(59, 6)
    built.launch(6100, 6104, runs=(6110, 6150)).sync(6105, 6147, stream=7, row=False)
    assert clock(built).high_ns is None


@pytest.mark.parametrize(("host", "bound"), [(MemoryKind.PAGEABLE, None), (MemoryKind.PINNED, -3_000)])
def test_a_wait_for_a_staged_copy_bounds_nothing(host: MemoryKind, bound: int | None) -> None:
    """A staged copy's recorded end lies after the return of a wait for it, on agreeing clocks too."""
    built = launches(59, 6).copy(6100, 6104, runs=(6110, 6150), host=host).sync(6105, 6147, stream=7)
    assert clock(built).high_ns == bound
