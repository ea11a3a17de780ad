"""Collective metadata: from the arguments of kernels and ``record_param_comms`` to ``CollectiveInfo``."""

from __future__ import annotations

import re

import numpy as np

from analyzer.model import CodeArray, CollectiveInfo, IntArray
from analyzer.readers.interning import Interner
from analyzer.readers.kineto_json.events import CommArgs, Number, as_int, as_text

_NOT_THERE = -(2**62)
_RANK_LIST = re.compile(r"\[\s*(\d+(?:\s*,\s*\d+)*)\s*\]")


class Collectives:
    """The distinct descriptions of a file; ``code`` is the index into them."""

    def __init__(self) -> None:
        self._infos: Interner[CollectiveInfo] = Interner()

    def __len__(self) -> int:
        return len(self._infos)

    def code(self, args: CommArgs) -> int:
        """Index of what ``args`` describe, -1 where they name no collective."""
        op = as_text(args.op)
        if not op:
            return -1
        group = as_text(args.group)
        info = CollectiveInfo(
            op=op,
            dtype=as_text(args.dtype),
            in_elements=_count(args.in_elements),
            out_elements=_count(args.out_elements),
            group=as_text(args.group_id) if group is None else group,
            group_description=as_text(args.description),
            group_size=_count(args.size),
            group_ranks=_ranks(args),
            sequence=_count(args.sequence),
            src_rank=_count(args.src_rank),
            dst_rank=_count(args.dst_rank),
        )
        return self._infos[info]

    def infos(self) -> tuple[CollectiveInfo, ...]:
        """All descriptions, by code."""
        return tuple(self._infos)


def _count(value: Number) -> int | None:
    """A number that cannot be negative; -1 stands for "none" in the files."""
    number = as_int(value, _NOT_THERE)
    return number if number >= 0 else None


def _ranks(args: CommArgs) -> tuple[int, ...] | None:
    """The ranks of the group. A list that the exporter shortened with "..." comes from start and stride."""
    if isinstance(args.ranks, list):
        ranks = tuple(as_int(rank, -1) for rank in args.ranks)
        return ranks if ranks and min(ranks) >= 0 else None
    match = _RANK_LIST.fullmatch(args.ranks.strip()) if args.ranks else None
    if match is not None:
        return tuple(int(rank) for rank in match.group(1).split(","))
    start, stride, size = _count(args.rank_start), _count(args.rank_stride), _count(args.size)
    if start is None or not stride or not size or not args.ranks or "..." not in args.ranks:
        return None
    return tuple(range(start, start + stride * size, stride))


def inside(
    thread: CodeArray, at_ns: IntArray, op_thread: CodeArray, op_start: IntArray, op_end: IntArray
) -> IntArray:
    """Index of the op on the same thread that contains each instant, -1 where none does.

    Ops of one thread must not overlap each other, except where they are nested: the innermost of two
    levels is found. Shapes (n,) and (m,), result (n,) int64.
    """
    if not len(op_start):
        return np.full(len(at_ns), -1, dtype=np.int64)
    found = np.full(len(at_ns), -1, dtype=np.int64)
    for code in np.unique(op_thread).tolist():
        ops = np.flatnonzero(op_thread == code)
        ops = ops[np.argsort(op_start[ops], kind="stable")]
        rows = np.flatnonzero(thread == code)
        before = np.searchsorted(op_start[ops], at_ns[rows], side="right") - 1
        for back in (0, 1):  # the op that began last, or the one around it
            candidate = before - back
            valid = (candidate >= 0) & (found[rows] < 0)
            op = ops[np.maximum(candidate, 0)]
            hit = valid & (at_ns[rows] < op_end[op])
            found[rows[hit]] = op[hit]
    return found
