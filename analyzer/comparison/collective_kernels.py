"""Collectives that are the same to the program, and were run by other kernels: NCCL's algorithm and protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analyzer.comparison.result import Difference
from analyzer.comparison.sides import step_work_of
from analyzer.diagnosis import Diagnosis


def collective_kernels(
    a: Diagnosis, b: Diagnosis, phase_a: str, phase_b: str, ranks: Sequence[tuple[int, int]]
) -> list[Difference]:
    """Operations of both sides that different kernels ran, by name; which kernel is the library's choice."""
    left = _kernels(a, phase_a, (rank for rank, _ in ranks))
    right = _kernels(b, phase_b, (rank for _, rank in ranks))
    return [
        Difference(
            what=f"kernels of collective {operation}", a=_told(left[operation]), b=_told(right[operation])
        )
        for operation in sorted(left.keys() & right.keys())
        if left[operation] != right[operation]
    ]


def _kernels(diagnosis: Diagnosis, phase: str, ranks: Iterable[int]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for rank in ranks:
        for row in step_work_of(diagnosis, phase, rank):
            if row.kind == "collective" and row.kernel is not None:
                found.setdefault(row.name, set()).add(row.kernel)
    return found


def _told(kernels: Iterable[str]) -> str:
    return ", ".join(sorted(kernels))
