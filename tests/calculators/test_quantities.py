"""Sizes, times and rates as people write them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from analyzer.calculators.quantities import rate_bytes_per_s, rate_flop_per_s, size_bytes, time_ns
from analyzer.errors import UsageError


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (size_bytes, "2GB", 2_000_000_000),
        (size_bytes, "2 GiB", 2 * 1024**3),
        (size_bytes, "7MiB", 7_340_032),
        (size_bytes, "1.5kB", 1500),
        (size_bytes, "1KB", 1000),
        (size_bytes, "14336", 14_336),
        (size_bytes, "1e9", 1_000_000_000),
        (size_bytes, "1PiB", 1024**5),
        (time_ns, "58.7us", 58_700),
        (time_ns, "58.7\N{MICRO SIGN}s", 58_700),
        (time_ns, "16.6ms", 16_600_000),
        (time_ns, "0.1ns", 0.1),
        (time_ns, "2s", 2_000_000_000),
        (time_ns, "-1ms", -1_000_000),
        (rate_bytes_per_s, "4.8TB/s", 4_800_000_000_000),
        (rate_bytes_per_s, "1GiB/s", 1024**3),
        (rate_flop_per_s, "989TFLOP/s", 989e12),
        (rate_flop_per_s, "1.5PFLOPS", 1.5e15),
    ],
)
def test_read(read: Callable[[str, str], float], text: str, expected: float) -> None:
    assert read("--option", text) == expected


@pytest.mark.parametrize(
    ("read", "text", "why"),
    [
        (time_ns, "16.6", "the unit is missing"),
        (time_ns, "5min", "the unit 'min' is not known"),
        (time_ns, "nan", "is no quantity"),
        (time_ns, "", "is no quantity"),
        (size_bytes, "inf", "is no quantity"),
        (size_bytes, "2Gb", "the unit 'Gb' is not known"),
        (size_bytes, "2gb", "the unit 'gb' is not known"),
        (size_bytes, "7,168", "is not known"),
        (size_bytes, "1e999999999GB", "is not known"),  # and comes back at once
        (size_bytes, "1e999GB", "is too large"),
        (rate_bytes_per_s, "4.8TB", "the unit 'TB' is not known"),
        (rate_bytes_per_s, "4800", "the unit is missing"),
        (rate_flop_per_s, "989TB/s", "the unit 'TB/s' is not known"),
    ],
)
def test_refused(read: Callable[[str, str], float], text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        read("--option", text)
    assert caught.value.path == "--option"
    assert "write " in caught.value.hint
