"""What was run: the one file of a run folder that says how a capture came about and what it pins.

Standard library only: collectors write it inside somebody's engine, the analyzer reads it back. Fields are a
promise to users: additions are free, a change of meaning bumps ``FORMAT_VERSION``. What nobody could find out
is null or listed as undeclared, never guessed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from collectors.secrets import is_secret

FORMAT = "tracebound.manifest"
FORMAT_VERSION = 1
NAME = "manifest.json"
"""The file's name in a run folder."""

PINS = {
    "model": "the model's name or path",
    "precision": "types of weights, activations and KV cache",
    "weights": "hash of the weights, or the revision they were loaded from",
    "runtime": "the engine and its version",
    "flags": "the engine's options",
    "hardware": "the devices",
    "clocks": "the devices' clocks and power limits",
    "topology": "how the devices are linked",
    "input": "what was asked of the model: data set or prompt shape, and its seed",
    "context": "tokens of context per sequence",
    "batch": "sequences per step over the whole group",
    "cache_initialization": "what the caches held when the run began",
    "timing_boundary": "where a step begins and ends: device, host or client",
}
"""What a run must pin to be compared with another one."""

TOLD_BY_DIAGNOSIS = frozenset(("timing_boundary",))
"""Pins that are not undeclared where nobody declares them: a diagnosis names its boundary itself."""

STATUSES = ("running", "complete", "failed", "killed")
LEFT_BY = "the program's loop was left by"
"""How a note begins that says which exception ended a rank's loop."""
T = TypeVar("T")


class ManifestError(Exception):
    """A manifest that cannot be used: file, place in it, reason, what to try next."""

    def __init__(self, path: str, where: str, why: str, hint: str) -> None:
        super().__init__(f"{path}{f', {where}' if where else ''}: {why}; next: {hint}")
        self.path, self.where, self.why, self.hint = path, where, why, hint


@dataclass(frozen=True)
class Pin:
    """One pinned fact. ``source``: ``declared`` by the user, or ``found`` on the machine."""

    value: str
    source: str


@dataclass(frozen=True)
class TraceFile:
    """A file of the run folder, by its path in it.

    ``kind``: nsys-sqlite, nsys-rep, nsys-qdstrm (a raw stream that could not be imported), kineto-json, tokens, log.
    """

    path: str
    kind: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Anchor:
    """The wall clock read between two readings of the monotonic clock, ``width_ns`` apart."""

    monotonic_ns: int
    wall_ns: int
    width_ns: int


@dataclass(frozen=True)
class ClockBound:
    """How much must be added to this rank's wall clock to get the reference rank's, for certain, ns.

    Bounds from messages there and back: no message arrives before it was sent.
    """

    reference_rank: int
    low_ns: int
    high_ns: int
    rounds: int


@dataclass(frozen=True)
class Interval:
    """Where the median of steps like these lies, at 95 %: from ``low_ns`` to ``high_ns``."""

    low_ns: int
    high_ns: int


@dataclass(frozen=True)
class Inflation:
    """Median step of one loop with the profiler and without it, ns; of how many steps each.

    ``profiled_interval``, ``plain_interval``: of each median; null where there are fewer than 6 steps, and in
    manifests from before these fields.
    """

    profiled_step_ns: int
    plain_step_ns: int
    profiled_steps: int
    plain_steps: int
    profiled_interval: Interval | None = None
    plain_interval: Interval | None = None

    @property
    def ratio(self) -> float:
        """Profiled over plain."""
        return self.profiled_step_ns / self.plain_step_ns

    @property
    def costs(self) -> bool | None:
        """Whether profiling made steps longer for certain: its interval lies above the other. None: no intervals."""
        if self.profiled_interval is None or self.plain_interval is None:
            return None
        return self.profiled_interval.low_ns > self.plain_interval.high_ns


@dataclass(frozen=True)
class RankRecord:
    """What one rank's collector wrote down. Times are wall-clock ns; null: not known.

    ``steps``: how the steps were told (``marked``: the program said so), ``device``: what NVML said before and after,
    in short, and the file that has it whole (null: nobody answered), ``withheld``: names of environment variables
    whose value looks like a secret.
    """

    rank: int
    collector: str
    status: str
    world_size: int | None = None
    local_rank: int | None = None
    host: str | None = None
    boot_id: str | None = None
    pid: int | None = None
    launcher: str | None = None
    command: list[str] = field(default_factory=list)
    exit_code: int | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    collector_version: str | None = None
    profiler: str | None = None
    profiler_version: str | None = None
    files: list[TraceFile] = field(default_factory=list)
    anchors: list[Anchor] = field(default_factory=list)
    clock_bound: ClockBound | None = None
    inflation: Inflation | None = None
    steps: str | None = None
    captured_steps: int | None = None
    versions: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    withheld: list[str] = field(default_factory=list)
    device: dict[str, Any] | None = None
    pins: dict[str, Pin] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Manifest:
    """One run. ``complete``: every rank of the world is here and ended with its capture written."""

    run_id: str
    created_ns: int
    complete: bool
    ranks: list[RankRecord]
    pins: dict[str, Pin]
    undeclared: list[str]
    missing_ranks: list[int]
    format: str = FORMAT
    format_version: int = FORMAT_VERSION


def declared(words: Sequence[str]) -> dict[str, Pin]:
    """Pins from ``NAME=VALUE`` words. Raises ValueError for unknown names and for values that look like secrets."""
    pins: dict[str, Pin] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not value or name not in PINS:
            known = ", ".join(PINS)
            what = "is no name of a pin" if equals and value else "has no value"
            raise ValueError(f"{name!r} {what}; write NAME=VALUE with one of these names: {known}")
        if is_secret(value):
            raise ValueError(f"the value of {name} looks like a credential; manifests are passed around")
        pins[name] = Pin(value, "declared")
    return pins


def assemble(records: Sequence[RankRecord], *, run_id: str, created_ns: int) -> Manifest:
    """The manifest of what the ranks wrote down."""
    ranks = sorted(records, key=lambda record: record.rank)
    pins = _common_pins(ranks)
    known = {record.rank for record in ranks}
    world = max([*(record.world_size or 0 for record in ranks), *(rank + 1 for rank in known)], default=0)
    missing = sorted(set(range(world)) - known)
    done = all(record.status == "complete" for record in ranks)
    return Manifest(
        run_id=run_id,
        created_ns=created_ns,
        complete=bool(ranks) and done and not missing,
        ranks=ranks,
        pins=dict(sorted(pins.items())),
        undeclared=[name for name in PINS if name not in pins and name not in TOLD_BY_DIAGNOSIS],
        missing_ranks=missing,
    )


def _common_pins(ranks: Sequence[RankRecord]) -> dict[str, Pin]:
    """The pins of all ranks: declared ones win; where ranks differ, each rank's value is told."""
    common: dict[str, Pin] = {}
    for name in PINS:
        held = [(record.rank, record.pins[name]) for record in ranks if name in record.pins]
        told = [(rank, pin) for rank, pin in held if pin.source == "declared"] or held
        values = list(dict.fromkeys(pin.value for _, pin in told))
        if len(values) == 1:
            common[name] = told[0][1]
        elif values:
            text = "; ".join(
                f"rank {', '.join(str(rank) for rank, pin in told if pin.value == value)}: {value}"
                for value in values
            )
            common[name] = Pin(text, told[0][1].source)
    return common


def encode(manifest: Manifest) -> str:
    """Strict JSON, newline at the end."""
    return json.dumps(asdict(manifest), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def encode_record(record: RankRecord) -> str:
    """One rank's record as strict JSON."""
    return json.dumps(asdict(record), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def read(path: str | Path) -> Manifest:
    """A manifest read back. Raises ManifestError."""
    data = _json_of(path)
    if data.get("format") != FORMAT:
        raise ManifestError(
            str(path), "format", f"is {data.get('format')!r}, not {FORMAT!r}", "pass the folder of a run"
        )
    version = data.get("format_version")
    if version != FORMAT_VERSION:
        newer = isinstance(version, int) and version > FORMAT_VERSION
        raise ManifestError(
            str(path),
            "format_version",
            f"{version!r} is not the version that this tracebound reads ({FORMAT_VERSION})",
            "update tracebound" if newer else "collect the run again",
        )
    return _typed(Manifest, data, str(path), "")


def read_record(path: str | Path) -> RankRecord:
    """One rank's record read back. Raises ManifestError."""
    return _typed(RankRecord, _json_of(path), str(path), "")


def differing_pins(one: Manifest, other: Manifest) -> dict[str, tuple[str | None, str | None]]:
    """Pins whose values differ, None where undeclared; those that neither declares are no difference."""
    names = sorted({*one.pins, *other.pins})
    values = {
        name: tuple(m.pins[name].value if name in m.pins else None for m in (one, other)) for name in names
    }
    return {name: (a, b) for name, (a, b) in values.items() if a != b}


def _json_of(path: str | Path) -> dict[str, Any]:
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ManifestError(str(path), "", error.strerror or str(error), "check the path") from error
    except ValueError as error:
        raise ManifestError(str(path), "", f"is no JSON ({error})", "collect the run again") from error
    if not isinstance(data, dict):
        raise ManifestError(str(path), "", "holds no JSON object", "collect the run again")
    return data


def _typed(kind: type[T], data: object, path: str, where: str) -> T:
    """A dataclass from JSON; fields that this version does not know are left out."""
    if not isinstance(data, dict):
        raise ManifestError(path, where, "is no JSON object", "collect the run again")
    hints = get_type_hints(kind)
    given = {}
    for one in fields(kind):  # type: ignore[arg-type]
        if one.name in data:
            place = f"{where}.{one.name}" if where else one.name
            given[one.name] = _value(hints[one.name], data[one.name], path, place)
    try:
        return kind(**given)
    except TypeError as error:
        raise ManifestError(path, where, f"lacks a field ({error})", "collect the run again") from error


def _value(hint: Any, value: object, path: str, where: str) -> Any:
    if hint is Any:
        return value
    origin, inner = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return None if value is None else _value(inner[0], value, path, where)
    if origin is list and isinstance(value, list):
        return [_value(inner[0], one, path, f"{where}[{at}]") for at, one in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        return {str(key): _value(inner[1], one, path, f"{where}.{key}") for key, one in value.items()}
    if hasattr(hint, "__dataclass_fields__"):
        return _typed(hint, value, path, where)
    if origin is None and isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
        return value
    wanted = getattr(origin or hint, "__name__", str(hint))
    raise ManifestError(path, where, f"is {type(value).__name__}, not {wanted}", "collect the run again")
