"""The changes that can be tried, and how a user writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from analyzer.errors import UsageError

_FORMS = (
    "graph-capture, kernel:REGEX=0.5, byte-floor:REGEX=300MB, collective=0.5, collective:alpha=10us,beta=200GB/s (or one of them), "
    "host=0.8, no-skew, no-sync, collectives-hidden; several at once joined by +"
)


@dataclass(frozen=True)
class GraphCapture:
    """Every submission burst becomes one graph replay."""


@dataclass(frozen=True)
class Kernels:
    """Kernels whose name matches run ``factor`` times as long."""

    pattern: re.Pattern[str]
    factor: float


@dataclass(frozen=True)
class ByteFloor:
    """Kernels whose name matches run as long as moving ``bytes`` at the device's memory bandwidth takes."""

    pattern: re.Pattern[str]
    bytes: float


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
    """CPU time between calls takes ``factor`` times as long; the calls themselves do not change."""

    factor: float


@dataclass(frozen=True)
class NoSkew:
    """No collective waits for a late rank; transfers stay."""


@dataclass(frozen=True)
class NoSync:
    """No call waits for the device any more."""


Change: TypeAlias = (
    GraphCapture | Kernels | ByteFloor | Collectives | CollectivesHidden | Host | NoSkew | NoSync
)

_PLAIN: dict[str, Change] = {
    "graph-capture": GraphCapture(),
    "collectives-hidden": CollectivesHidden(),
    "no-skew": NoSkew(),
    "no-sync": NoSync(),
}
_START = re.compile(
    r"\+(?=(?:graph-capture|collectives-hidden|no-skew|no-sync)(?:\+|$)|(?:kernel|byte-floor):|collective[:=]|host=)"
)
_UNITS = {"": 1.0, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_SIZES = {"": 1.0, "B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def parse(spec: str) -> tuple[Change, ...]:
    """The changes of one SPEC, in their order. Raises UsageError for what is none."""
    return tuple(_parse_one(part) for part in _START.split(spec))


def _parse_one(text: str) -> Change:
    if text in _PLAIN:
        return _PLAIN[text]
    name, _, value = text.rpartition("=")
    if name == "host":
        return Host(_factor(text, value))
    if name == "collective":
        return Collectives(factor=_factor(text, value))
    if text.startswith("collective:"):
        return _alpha_beta(text)
    if name.startswith("kernel:"):
        return Kernels(_pattern(text, name.removeprefix("kernel:")), _factor(text, value))
    if name.startswith("byte-floor:"):
        pattern = _pattern(text, name.removeprefix("byte-floor:"))
        return ByteFloor(pattern, _amount(text, value, _SIZES, "a size such as 300MB"))
    raise UsageError("--change", text, "is no change", f"known are {_FORMS}")


def _alpha_beta(text: str) -> Collectives:
    known: dict[str, float] = {}
    for part in text.removeprefix("collective:").split(","):
        name, _, value = part.partition("=")
        if name == "alpha":
            known["alpha"] = _amount(text, value, _UNITS, "a time such as 10us")
        elif name == "beta":
            known["beta"] = _amount(text, value.removesuffix("/s"), _SIZES, "a rate such as 200GB/s")
        else:
            raise UsageError("--change", text, f"{name!r} is neither alpha nor beta", "write collective:alpha=10us,beta=200GB/s")
    if known.get("beta") == 0:
        raise UsageError("--change", text, "a bandwidth of 0 moves nothing", "give what the links can do")
    return Collectives(alpha_ns=known.get("alpha"), bytes_per_s=known.get("beta"))


def _pattern(text: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError("--change", text, f"{pattern!r} is no regular expression: {error}", "escape ( ) [ ] * +") from None


def _factor(text: str, value: str) -> float:
    return _amount(text, value, {"": 1.0}, "a factor such as 0.5")


def _amount(text: str, value: str, units: dict[str, float], example: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?(?:e\d+)?)([A-Za-z]*)", value.strip())
    if match is None or match[2] not in units:
        raise UsageError("--change", text, f"{value!r} is not understood", f"give {example}")
    return float(match[1]) * units[match[2]]
