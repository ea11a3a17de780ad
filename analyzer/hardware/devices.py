"""A small table of GPUs: memory bandwidth and dense peaks of devices whose figures are documented.

Only for what a trace does not record; the trace's own figures come first. A name alone does not say
which device it is ("NVIDIA H100" covers several), so the key is name, compute capability, SM count and
memory size, and a combination that is not in the table has no row. Slices (MIG) have other SM counts and
names, and so no row either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from analyzer.hardware.limits import Capability

Confidence = Literal["confirmed", "documented", "third-party"]

_GIB = 1024**3
# What CUDA sees of a device sold as n GB: n GiB less what the driver and in-line ECC keep.
_LEAST_VISIBLE = 0.90
_MOST_VISIBLE = 1.005


@dataclass(frozen=True)
class DeviceRow:
    """One product. Peaks are dense (no 2:4 sparsity); 16-bit ones accumulate in fp32.

    ``confidence``: "confirmed" - bandwidth from the vendor, and the driver's own record in a trace agrees
    with the key; "documented" - from the vendor only; "third-party" - at least one figure is not.
    """

    name: str
    name_pattern: str  # matches the whole name that the driver reports
    capability: Capability
    sm_count: int
    memory_gb: int
    datasheet_bytes_per_s: float
    peak_flop_per_s: Mapping[str, float]  # by fp32, tf32, fp16, bf16, fp8, fp4
    sources: tuple[str, ...]
    confidence: Confidence
    driver_bytes_per_s: float | None = field(default=None)  # as recorded in traces, where larger or known

    def matches(
        self, name: str, capability: Capability | None, sm_count: int | None, memory_bytes: int | None
    ) -> bool:
        """Whether what is recorded fits this product; None is "not recorded"."""
        return (
            re.fullmatch(self.name_pattern, name, re.IGNORECASE) is not None
            and capability in (None, self.capability)
            and sm_count in (None, self.sm_count)
            and (
                memory_bytes is None
                or _LEAST_VISIBLE <= memory_bytes / (self.memory_gb * _GIB) <= _MOST_VISIBLE
            )
        )


def _peaks(**tera: float) -> dict[str, float]:
    """TFLOP/s by dtype as FLOP/s; ``half`` is fp16 and bf16 alike."""
    half = tera.pop("half", None)
    both = {} if half is None else {"fp16": half, "bf16": half}
    return {dtype: round(value * 1e12) for dtype, value in (tera | both).items()}


_A100 = _peaks(fp32=19.5, tf32=156, half=312)
_H100_SXM = _peaks(fp32=67, tf32=495, half=989, fp8=1979)
_MI300 = _peaks(fp32=163.4, tf32=653.7, half=1307.4, fp8=2614.9)
_DRIVER = "driver figures in public traces"

DEVICES: tuple[DeviceRow, ...] = (
    DeviceRow("V100 SXM2 16 GB", r"Tesla V100-SXM2-16GB", (7, 0), 80, 16, 900e9, _peaks(fp32=15.7, fp16=125),
              ("NVIDIA V100 datasheet", _DRIVER), "confirmed"),
    DeviceRow("V100 SXM2 32 GB", r"Tesla V100-(SXM2|DGXS)-32GB", (7, 0), 80, 32, 900e9,
              _peaks(fp32=15.7, fp16=125), ("NVIDIA V100 datasheet", _DRIVER), "confirmed"),
    DeviceRow("T4", r"(Tesla |NVIDIA )?T4", (7, 5), 40, 16, 320e9, _peaks(fp32=8.1, fp16=65),
              ("public comparison tables; some datasheets say 300 GB/s",), "third-party"),
    DeviceRow("A100 SXM 40 GB", r"(NVIDIA )?A100-SXM4-40GB", (8, 0), 108, 40, 1555e9, _A100,
              ("NVIDIA A100 datasheet", _DRIVER), "confirmed", 1_555_200_000_000),
    DeviceRow("A100 SXM 80 GB", r"(NVIDIA )?A100-SXM4-80GB", (8, 0), 108, 80, 2039e9, _A100,
              ("NVIDIA A100 datasheet", _DRIVER), "confirmed", 2_039_040_000_000),
    DeviceRow("A100 PCIe 80 GB", r"(NVIDIA )?A100 80GB PCIe", (8, 0), 108, 80, 1935e9, _A100,
              ("NVIDIA A100 datasheet", _DRIVER), "confirmed", 1_935_360_000_000),
    DeviceRow("A10", r"(NVIDIA )?A10", (8, 6), 72, 24, 600e9, _peaks(fp32=31.2, tf32=62.5, half=125),
              ("NVIDIA A10 datasheet; SM count from peak, clock and rate",), "documented"),
    DeviceRow("L4", r"(NVIDIA )?L4", (8, 9), 58, 24, 300e9, _peaks(fp32=30.3, tf32=60, half=121, fp8=242),
              ("NVIDIA L4 datasheet; SM count from peak, clock and rate",), "documented"),
    DeviceRow("L40S", r"(NVIDIA )?L40S", (8, 9), 142, 48, 864e9,
              _peaks(fp32=91.6, tf32=183, half=362, fp8=733),
              ("NVIDIA L40S datasheet; SM count from peak, clock and rate",), "documented"),
    DeviceRow("H100 SXM", r"(NVIDIA )?H100 80GB HBM3", (9, 0), 132, 80, 3350e9, _H100_SXM,
              ("NVIDIA H100 datasheet", _DRIVER), "confirmed", 3_352_320_000_000),
    DeviceRow("H100 PCIe", r"(NVIDIA )?H100 PCIe", (9, 0), 114, 80, 2000e9,
              _peaks(fp32=51, tf32=378, half=756, fp8=1513),
              ("NVIDIA H100 datasheet; SM count from peak, clock and rate",), "documented"),
    DeviceRow("H200 SXM", r"(NVIDIA )?H200", (9, 0), 132, 141, 4800e9, _H100_SXM,
              ("NVIDIA H200 datasheet", _DRIVER), "confirmed", 4_916_736_000_000),
    DeviceRow("H20", r"(NVIDIA )?H20", (9, 0), 78, 96, 4000e9,
              _peaks(fp32=44, tf32=74, half=148, fp8=296),
              ("NVIDIA's figures for H20; SM count and peaks from public notes",), "third-party"),
    DeviceRow("B200", r"(NVIDIA )?B200", (10, 0), 148, 180, 7700e9,
              _peaks(fp32=75, tf32=1100, half=2250, fp8=4500, fp4=9000),
              ("NVIDIA HGX B200 specification (early sheets: 8000 GB/s)", _DRIVER),
              "confirmed", 7_672_320_000_000),
    DeviceRow("GeForce RTX 4090", r"(NVIDIA )?GeForce RTX 4090", (8, 9), 128, 24, 1008e9,
              _peaks(fp32=82.6, tf32=82.6, half=165.2, fp8=330.3),
              ("public comparison tables",), "third-party"),
    DeviceRow("GeForce RTX 5090", r"(NVIDIA )?GeForce RTX 5090", (12, 0), 170, 32, 1792e9,
              _peaks(half=209.5, fp8=419, fp4=1676),
              ("NVIDIA RTX Blackwell whitepaper; SM count from public tables",), "third-party"),
    DeviceRow("GeForce RTX 3090", r"(NVIDIA )?GeForce RTX 3090", (8, 6), 82, 24, 936e9, {},
              (_DRIVER,), "confirmed", 936_096_000_000),
    DeviceRow("GeForce RTX 3080", r"(NVIDIA )?GeForce RTX 3080", (8, 6), 68, 10, 760e9, {},
              (_DRIVER,), "confirmed", 760_080_000_000),
    DeviceRow("Quadro RTX 6000", r"Quadro RTX 6000", (7, 5), 72, 24, 672e9, {},
              (_DRIVER,), "confirmed", 672_096_000_000),
    # Traces of this device can have no name; (9, 4), 304 compute units and the memory size fit no other.
    DeviceRow("Instinct MI300X", r"((AMD )?Instinct MI300X( OAM)?)?", (9, 4), 304, 192, 5300e9, _MI300,
              ("AMD MI300X data sheet", "AMD ROCm accelerator specifications", _DRIVER), "confirmed"),
    DeviceRow("Instinct MI325X", r"((AMD )?Instinct MI325X( OAM)?)?", (9, 4), 304, 256, 6000e9, _MI300,
              ("AMD ROCm accelerator specifications",), "documented"),
    DeviceRow("Instinct MI355X", r"(AMD )?Instinct MI355X( OAM)?", (9, 5), 256, 288, 8000e9,
              _peaks(fp32=157.3),
              ("AMD ROCm accelerator specifications",), "documented"),
)  # fmt: skip


def look_up(
    name: str | None, capability: Capability | None, sm_count: int | None, memory_bytes: int | None
) -> DeviceRow | None:
    """The one row that fits what is recorded; None where none fits or more than one does.

    ``memory_bytes`` is the device's total memory as the driver reports it. None is "not recorded"; a
    device without a name needs all three others.
    """
    if not name and None in (capability, sm_count, memory_bytes):
        return None
    fitting = [row for row in DEVICES if row.matches(name or "", capability, sm_count, memory_bytes)]
    return fitting[0] if len(fitting) == 1 else None


@dataclass(frozen=True)
class BandwidthBasis:
    """The bandwidth of a floor, bytes/s, and where it comes from."""

    bytes_per_s: float
    basis: Literal["driver", "datasheet"]
    source: str


def floor_bandwidth(row: DeviceRow | None, recorded_bytes_per_s: float | None) -> BandwidthBasis | None:
    """The larger of datasheet and driver figure: only with it bytes / bandwidth is a true lower bound.

    ``recorded_bytes_per_s`` is the trace's own figure. None where neither is known.
    """
    found: list[BandwidthBasis] = []
    if recorded_bytes_per_s:
        found.append(BandwidthBasis(recorded_bytes_per_s, "driver", "recorded in the trace"))
    if row is not None:
        if row.driver_bytes_per_s is not None:
            found.append(BandwidthBasis(row.driver_bytes_per_s, "driver", f"{row.name}: {_DRIVER}"))
        found.append(BandwidthBasis(row.datasheet_bytes_per_s, "datasheet", f"{row.name}: {row.sources[0]}"))
    return max(found, key=lambda basis: basis.bytes_per_s, default=None)
