"""The changes that can be tried, and how a user writes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from analyzer.errors import UsageError


class HostKind(Enum):
    """Kinds of a thread's time, by their columns in ``HostTime``."""

    DISPATCH = "dispatch_ns"
    WORK = "work_ns"
    OUTPUT = "output_ns"
    PROFILER = "profiler_ns"


CPU = (HostKind.DISPATCH, HostKind.WORK, HostKind.OUTPUT)


@dataclass(frozen=True)
class GraphCapture:
    """Every submission burst becomes one graph replay."""


@dataclass(frozen=True)
class Kernels:
    """Kernels whose name matches run ``factor`` times as long."""

    pattern: re.Pattern[str]
    factor: float


@dataclass(frozen=True)
class SmallGrids:
    """Kernels whose grid leaves most of the device without a block run ``factor`` times as long."""

    factor: float


@dataclass(frozen=True)
class Copies:
    """Copies and memory sets run ``factor`` times as long."""

    factor: float


@dataclass(frozen=True)
class ByteFloor:
    """Kernels whose name matches run as long as moving ``bytes`` at the device's memory bandwidth takes."""

    pattern: re.Pattern[str]
    bytes: float


@dataclass(frozen=True)
class Turnaround:
    """Gaps between queued device work, on one stream or inside a replay, are ``factor`` times as long."""

    factor: float


@dataclass(frozen=True)
class NoDependencies:
    """No device work waits for another stream, an event or an unseen cause."""


@dataclass(frozen=True)
class Collectives:
    """Transfers of collectives take ``factor`` times as long, or alpha plus bytes over beta.

    With only one of the two the other is that of the capture, which must then show several sizes.
    """

    factor: float | None = None
    alpha_ns: float | None = None
    bytes_per_s: float | None = None


@dataclass(frozen=True)
class CollectivesHidden:
    """Collectives take no time: nothing waits for them."""


@dataclass(frozen=True)
class Host:
    """CPU time of these kinds takes ``factor`` times as long. Calls themselves and waits do not change."""

    kinds: tuple[HostKind, ...]
    factor: float


@dataclass(frozen=True)
class NoSkew:
    """No collective waits for a late rank; transfers stay."""


@dataclass(frozen=True)
class EvenRanks:
    """No rank has more CPU time or kernel time in a step than the median of all ranks."""


@dataclass(frozen=True)
class NoSync:
    """No call waits for the device any more."""


Change: TypeAlias = (
    GraphCapture | Kernels | SmallGrids | Copies | ByteFloor | Turnaround | NoDependencies | Collectives
    | CollectivesHidden | Host | NoSkew | EvenRanks | NoSync
)  # fmt: skip

_PLAIN: dict[str, Change] = {
    "graph-capture": GraphCapture(),
    "no-sync": NoSync(),
    "no-skew": NoSkew(),
    "even-ranks": EvenRanks(),
    "no-dependencies": NoDependencies(),
    "collectives-hidden": CollectivesHidden(),
    "no-overhead": Host((HostKind.PROFILER,), 0.0),
}
_FACTORS: dict[str, Callable[[float], Change]] = {
    "host": lambda factor: Host(CPU, factor),
    "host-work": lambda factor: Host((HostKind.WORK,), factor),
    "dispatch": lambda factor: Host((HostKind.DISPATCH,), factor),
    "output": lambda factor: Host((HostKind.OUTPUT,), factor),
    "small-grids": SmallGrids,
    "copies": Copies,
    "turnaround": Turnaround,
    "collective": lambda factor: Collectives(factor=factor),
}

FORMS: tuple[tuple[str, str], ...] = (
    ("graph-capture", "every submission burst becomes one CUDA graph replay"),
    ("kernel:REGEX=0.5", "kernels whose name matches run this many times as long"),
    (
        "byte-floor:REGEX=300MB",
        "they run as long as moving so many bytes takes at the device's memory bandwidth",
    ),
    ("small-grids=0.5", "kernels whose grid leaves most of the device empty run this many times as long"),
    ("copies=0.5", "copies and memory sets run this many times as long"),
    ("turnaround=0.5", "gaps between queued device work are this many times as long"),
    ("no-dependencies", "no device work waits for another stream, an event or an unseen cause"),
    ("collective=0.5", "transfers of collectives take this many times as long; waiting changes with them"),
    (
        "collective:alpha=10us,beta=200GB/s",
        "a transfer takes alpha plus its bytes over beta; one of them may be left out",
    ),
    ("collectives-hidden", "nothing waits for a collective"),
    ("no-skew", "no collective waits for a late rank, which stays as late as it is"),
    ("even-ranks", "no rank has more CPU or kernel time in a step than the median of all ranks"),
    ("host=0.8", "CPU time between calls takes this many times as long"),
    ("host-work=0.5", "the same, only CPU time that is neither dispatch nor output"),
    ("dispatch=0.5", "the same, only CPU time between the launches of a burst"),
    ("output=0.5", "the same, only CPU time in output ranges"),
    ("no-sync", "no call waits for the device"),
    ("no-overhead", "without the overhead that the profiler recorded"),
)
"""Every form of a change with what it means; several are joined by +."""

_START = re.compile(
    r"\+(?=(?:" + "|".join(map(re.escape, _PLAIN)) + r")(?:\+|$)"
    r"|(?:" + "|".join(map(re.escape, _FACTORS)) + r")=|(?:kernel|byte-floor|collective):)"
)
_TIMES = {"": 1.0, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_SIZES = {
    "": 1.0, "B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
    "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40,
}  # fmt: skip


def parse(spec: str) -> tuple[Change, ...]:
    """The changes of one SPEC, in their order. Raises UsageError for what is none."""
    return tuple(_parse_one(part) for part in _START.split(spec))


def _parse_one(text: str) -> Change:
    if text in _PLAIN:
        return _PLAIN[text]
    name, _, value = text.rpartition("=")
    if name in _FACTORS:
        return _FACTORS[name](_amount(text, value, {"": 1.0}, "a factor such as 0.5"))
    if text.startswith("collective:"):
        return _alpha_beta(text)
    if name.startswith("kernel:"):
        pattern = _pattern(text, name.removeprefix("kernel:"))
        return Kernels(pattern, _amount(text, value, {"": 1.0}, "a factor such as 0.5"))
    if name.startswith("byte-floor:"):
        pattern = _pattern(text, name.removeprefix("byte-floor:"))
        return ByteFloor(pattern, _amount(text, value, _SIZES, "a size such as 300MB"))
    raise UsageError("--change", text, "is no change", "known are " + ", ".join(form for form, _ in FORMS))


def _alpha_beta(text: str) -> Collectives:
    known: dict[str, float] = {}
    for part in text.removeprefix("collective:").split(","):
        name, _, value = part.partition("=")
        if name == "alpha":
            known[name] = _amount(text, value, _TIMES, "a time such as 10us")
        elif name == "beta":
            known[name] = _amount(text, value.removesuffix("/s"), _SIZES, "a rate such as 200GB/s")
        else:
            raise UsageError(
                "--change",
                text,
                f"{name!r} is neither alpha nor beta",
                "write collective:alpha=10us,beta=200GB/s",
            )
    if known.get("beta") == 0:
        raise UsageError("--change", text, "a bandwidth of 0 moves nothing", "give what the links can do")
    return Collectives(alpha_ns=known.get("alpha"), bytes_per_s=known.get("beta"))


def _pattern(text: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(
            "--change",
            text,
            f"{pattern!r} is no regular expression: {error}",
            r"put \ before each of ( ) [ ] * + ?",
        ) from None


def _amount(text: str, value: str, units: dict[str, float], example: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?(?:e\d+)?)([A-Za-z]*)", value.strip())
    if match is None or match[2] not in units:
        raise UsageError("--change", text, f"{value!r} is not understood", f"give {example}")
    return float(match[1]) * units[match[2]]
