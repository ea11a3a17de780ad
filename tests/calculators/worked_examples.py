"""Every worked example that the project must reproduce: one row, for the function and for the command.

``expected`` is the published number, rounded as published; ``shown`` is what the command's text must hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from analyzer import calculators as calc

MS, US, S = 1e6, 1e3, 1e9  # in ns


@dataclass(frozen=True)
class Example:
    """``figure`` of ``call()`` in units of ``unit`` is ``expected`` at ``digits`` decimals."""

    what: str
    call: Callable[[], calc.Result]
    command: str
    figure: str
    expected: float
    digits: int
    shown: str
    kind: str
    unit: float = 1


def _scaling(one_ms: float, eight_ms: float) -> Callable[[], calc.Result]:
    return lambda: calc.scaling([(1, one_ms * MS), (8, eight_ms * MS)])


def _speculation(acceptance: float) -> Callable[[], calc.Result]:
    return lambda: calc.speculation(
        acceptance, 7, verify_ns=12 * MS, draft_ns=3 * MS, other_ns=1 * MS, baseline_ns=9 * MS
    )


def _floor_one() -> calc.Result:
    return calc.floor([calc.Phase([10e9], [2e12])], observed_ns=20 * MS)


def _collective() -> calc.Result:
    return calc.collective(92, 58.7 * US, step_ns=281.6 * MS, elements=3584, bytes_per_element=4)


def _alpha_beta() -> calc.Result:
    return calc.alpha_beta([(14 * 1024, 58.7 * US), (7 * 1024**2, 85 * US)])


def _amdahl() -> calc.Result:
    return calc.amdahl(0.7, 3, ways=8)


def _whatif() -> calc.Result:
    return calc.whatif({"a": 4.5 * MS, "b": 2 * MS, "launch": 1.5 * MS, "c": 1 * MS}, "launch", 0.5 * MS)


FLOOR = "floor --bytes 10GB --bandwidth 2TB/s --observed 20ms"
COLLECTIVE = "collective --calls 92 --latency 58.7us --step 281.6ms --elements 3584 --element-bytes 4"
ALPHA_BETA = "alpha-beta --point 14KiB=58.7us --point 7MiB=85us"
AMDAHL = "amdahl --phase-share 0.7 --speedup 3 --ways 8"
WHATIF = "whatif --term a=4.5ms --term b=2ms --term launch=1.5ms --term c=1ms --change launch=0.5ms"
FIRST = "scaling --point 1=196.65ms --point 8=80.61ms"
SECOND = "scaling --point 1=60.66ms --point 8=54.33ms"
HIGH = "speculation --acceptance 0.8 --draft-tokens 7 --verify 12ms --draft 3ms --other 1ms --baseline 9ms"
LOW = "speculation --acceptance 0.2 --draft-tokens 7 --verify 12ms --draft 3ms --other 1ms --baseline 9ms"

EXAMPLES: list[Any] = [
    Example("8 ranks x 2 GB at 4.8 TB/s", lambda: calc.floor([calc.Phase([2e9] * 8, [4.8e12] * 8)]),
            "floor --bytes 2GB --ranks 8 --bandwidth 4.8TB/s", "floor_ns", 0.417, 3, "0.416667 ms", "bound", MS),
    Example("10 GB at 2 TB/s", _floor_one, FLOOR, "floor_ns", 5, 9, "5 ms", "bound", MS),
    Example("its ceiling", _floor_one, FLOOR, "ceiling_tokens_per_s", 200, 9, "200 tokens/s", "bound"),
    Example("observed", _floor_one, FLOOR, "observed_tokens_per_s", 50, 9, "50 tokens/s", "measurement"),
    Example("share of the ceiling", _floor_one, FLOOR, "share_of_ceiling", 0.25, 9, "25 %", "bound"),
    Example("unexplained", _floor_one, FLOOR, "unexplained_ns", 15, 9, "15 ms", "bound", MS),
    Example("BF16 matvec, batch 1", lambda: calc.intensity(2),
            "intensity --stored-bytes-per-weight 2", "flop_per_byte", 1, 9, "1 FLOP/byte", "model"),
    Example("0.21 stored bytes per weight", lambda: calc.intensity(0.21),
            "intensity --stored-bytes-per-weight 0.21", "flop_per_byte", 9.5, 1, "9.52381 FLOP/byte", "model"),
    Example("92 calls x 58.7 us", _collective, COLLECTIVE, "total_ns", 5.4004, 9, "5.4004 ms", "model", MS),
    Example("of a 281.6 ms step", _collective, COLLECTIVE, "share_of_step", 0.0192, 4, "1.91776 %", "model"),
    Example("3584 x 4 B", _collective, COLLECTIVE, "payload_bytes", 14_336, 0, "14,336 bytes (14 KiB)", "model"),
    Example("14 KiB against 7 MiB", _alpha_beta, ALPHA_BETA, "size_ratio", 512, 9, "512", "measurement"),
    Example("latency there", _alpha_beta, ALPHA_BETA, "latency_ratio", 1.45, 2, "1.44804", "measurement"),
    Example("16.6 ms / 2790", lambda: calc.slot(16.6 * MS, 2790),
            "slot --step 16.6ms --launches 2790", "slot_ns", 5.95, 2, "5.94982 us", "budget", US),
    Example("12 blocks on 132 SMs", lambda: calc.coverage(12, 132),
            "coverage --blocks 12 --sms 132", "coverage", 0.091, 3, "9.09091 %", "bound"),
    Example("196.65 and 80.61 ms: S", _scaling(196.65, 80.61), FIRST, "serial_ns", 64.03, 2, "64.0329 ms", "fit", MS),
    Example("P", _scaling(196.65, 80.61), FIRST, "parallel_ns", 132.62, 2, "132.617 ms", "fit", MS),
    Example("serial share", _scaling(196.65, 80.61), FIRST, "serial_share", 0.3256, 4, "32.5618 %", "fit"),
    Example("60.66 and 54.33 ms: S", _scaling(60.66, 54.33), SECOND, "serial_ns", 53.43, 2, "53.4257 ms", "fit", MS),
    Example("P", _scaling(60.66, 54.33), SECOND, "parallel_ns", 7.23, 2, "7.23429 ms", "fit", MS),
    Example("serial share", _scaling(60.66, 54.33), SECOND, "serial_share", 0.8807, 4, "88.074 %", "fit"),
    Example("70 % three times faster", _amdahl, AMDAHL, "new_time", 0.5333, 4, "0.533333", "model"),
    Example("serial share then", _amdahl, AMDAHL, "serial_share", 0.5625, 9, "56.25 %", "model"),
    Example("ideal 8-way scaling", _amdahl, AMDAHL, "scaling_speedup", 1.620, 3, "1.62025 x", "bound"),
    Example("4.5 + 2 + 1.5 + 1 ms", _whatif, WHATIF, "before_ns", 9, 9, "9 ms", "measurement", MS),
    Example("launch 1.5 to 0.5 ms", _whatif, WHATIF, "after_ns", 8, 9, "8 ms", "bound", MS),
    Example("at most", _whatif, WHATIF, "speedup", 1.125, 9, "1.125 x", "bound"),
    Example("a = 0.8, k = 7", _speculation(0.8), HIGH, "expected_tokens", 4.161, 3, "4.16114 tokens", "model"),
    Example("its speedup", _speculation(0.8), HIGH, "speedup", 2.34, 2, "2.34064 x", "model"),
    Example("a = 0.2", _speculation(0.2), LOW, "expected_tokens", 1.25, 2, "1.25 tokens", "model"),
    Example("its slowdown", _speculation(0.2), LOW, "speedup", 0.70, 2, "0.703123 x", "model"),
]  # fmt: skip
