"""What makes two diagnoses the same, two captures the same, and two runs the same workload."""

from __future__ import annotations

import hashlib

import msgspec

from analyzer import strict_json
from analyzer.comparison.result import Comparison, Side
from analyzer.comparison.runs import WORK_PINS
from analyzer.diagnosis import DeviceSpan, Diagnosis, Rank


class _Captured(msgspec.Struct, frozen=True):
    """What a capture holds whichever way it is analyzed."""

    time_zero_ns: str | None
    ranks: list[tuple[int, str, int | None, str | None, int, DeviceSpan | None]]


class _Workload(msgspec.Struct, frozen=True):
    pins: list[tuple[str, str | None]]


def diagnosis_fingerprint(diagnosis: Diagnosis) -> str:
    """SHA-256 of what a diagnosis says, apart from where its files lay and from sentences that may name them.

    The same for one that was read back from ``diagnosis.json``: a float that is whole is an int before and 1.0 after.
    """
    run = diagnosis.run
    bare = msgspec.structs.replace(
        diagnosis,
        inputs=[msgspec.structs.replace(one, path="") for one in diagnosis.inputs],
        ranks=[msgspec.structs.replace(rank, source="") for rank in diagnosis.ranks],
        hypotheses=[msgspec.structs.replace(row, evidence=[]) for row in diagnosis.hypotheses],
        run=None if run is None else msgspec.structs.replace(run, manifest=""),
        rank_basis="",
        unmeasured=[],
        quality=[],
        notes=[],
        rules=[],
    )
    return _digest(msgspec.json.decode(strict_json.encode(bare), type=Diagnosis))


def capture_fingerprint(diagnosis: Diagnosis) -> str:
    """SHA-256 of which ranks ran when and how much their devices did: the same by other options or versions."""
    return _digest(_Captured(diagnosis.time_zero_ns, [_rank(rank) for rank in diagnosis.ranks]))


def _rank(rank: Rank) -> tuple[int, str, int | None, str | None, int, DeviceSpan | None]:
    device = rank.device
    index, uuid = (None, None) if device is None else (device.index, device.uuid)
    return rank.rank, rank.pid, index, uuid, rank.device_events, rank.device_span


def workload_key(diagnosis: Diagnosis) -> str:
    """SHA-256 of the pins that say what was asked of the model (``WORK_PINS``), undeclared ones as such."""
    pins = {} if diagnosis.run is None else diagnosis.run.pins
    return _digest(_Workload([(name, pins[name].value if name in pins else None) for name in WORK_PINS]))


def comparison_fingerprint(comparison: Comparison, run_a: str, run_b: str) -> str:
    """SHA-256 of what a comparison says of two runs, given by their fingerprints, apart from where files lay."""
    bare = msgspec.structs.replace(
        comparison, a=_without_paths(comparison.a), b=_without_paths(comparison.b), notes=[]
    )
    return hashlib.sha256(f"{run_a}\n{run_b}\n".encode() + strict_json.encode(bare)).hexdigest()


def _without_paths(side: Side) -> Side:
    return msgspec.structs.replace(side, inputs=[])


def _digest(value: msgspec.Struct) -> str:
    return hashlib.sha256(strict_json.encode(value)).hexdigest()
