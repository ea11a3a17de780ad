"""Checked columns become a log: sorted, duplicates refused, disorder counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from analyzer.errors import TraceError
from analyzer.model import QualityEntry
from analyzer.tokens import ABSENT, Clocks, IntArray, TokenLog

STAGES = ("completion_ns", "emission_ns", "arrival_ns", "receipt_ns")
_LEAST_EPOCH_NS, _MOST_EPOCH_NS = 10**18, 4 * 10**18
_LEAST_DIGITS = 8
"""So many emissions end in zeros by chance in one of 10^8 logs."""
_UNITS = ((10**15, "microseconds"), (10**12, "milliseconds"), (10**9, "seconds"))


def build(
    path: str,
    kind: str,
    requests: Sequence[str],
    columns: Mapping[str, IntArray],
    sent_ns: IntArray,
    clocks: Clocks,
    quality: Sequence[QualityEntry],
    *,
    resolution_ns: int | None = None,
    partial: bool = False,
    same_host: bool = False,
) -> TokenLog:
    """A log of the columns ``request`` (index), ``token``, STAGES, all (n,); ``line``: (n,) where each row stands.

    ``resolution_ns``: of the emissions, None: by their digits.
    Raises TraceError without a token, without any time, for instants that are no epoch ns, and for a token
    that is logged twice.
    """
    if not len(columns["request"]):
        raise TraceError(path, "", "holds no token", "log one row per token, from the run that was traced")
    order = np.lexsort((columns["token"], columns["request"]))
    table = {name: column[order] for name, column in columns.items()}
    _refuse_other_units(path, table, sent_ns)
    _refuse_duplicates(path, table, requests)
    known = {name: table[name] != ABSENT for name in STAGES}
    if not (known["emission_ns"].any() or known["receipt_ns"].any()):
        raise TraceError(
            path, "", "no row has a server_emission_ns or a client_receipt_ns", "log at least one of them"
        )
    return TokenLog(
        path=path,
        kind=kind,
        clocks=clocks,
        requests=tuple(requests),
        request=table["request"],
        token=table["token"],
        **{name: table[name] for name in STAGES},
        sent_ns=sent_ns,
        resolution_ns=resolution_ns or _resolution(table["emission_ns"]),
        receipt_resolution_ns=_resolution(table["receipt_ns"]),
        quality=(*quality, *_disorder(path, table)),
        partial=partial,
        same_host=same_host,
    )


def _resolution(instants: IntArray) -> int:
    """The last decimal digit that any of the instants has, ns; 1 where too few tell."""
    known = instants[instants != ABSENT]
    if len(known) < _LEAST_DIGITS:
        return 1
    return int(max(10**power for power in range(10) if not (known % 10**power).any()))


def _refuse_other_units(path: str, table: Mapping[str, IntArray], sent_ns: IntArray) -> None:
    named = [(name, table[name], table["line"]) for name in STAGES]
    for name, values, lines in [*named, ("sent_ns", sent_ns, np.zeros(len(sent_ns), np.int64))]:
        wrong = (values != ABSENT) & ((values < _LEAST_EPOCH_NS) | (values > _MOST_EPOCH_NS))
        if not wrong.any():
            continue
        at = int(np.flatnonzero(wrong)[0])
        value = int(values[at])
        unit = next((word for size, word in _UNITS if size <= value < 4 * size), "")
        why = f"{name} {value} is no time in ns since 1970"
        raise TraceError(
            path,
            f"line {int(lines[at])}" if lines[at] else "",
            why + (f"; it looks like {unit}" if unit else ""),
            "write epoch nanoseconds of the wall clock, whole numbers",
        )


def _refuse_duplicates(path: str, table: Mapping[str, IntArray], requests: Sequence[str]) -> None:
    same = (np.diff(table["request"]) == 0) & (np.diff(table["token"]) == 0)
    if same.any():
        at = int(np.flatnonzero(same)[0]) + 1
        request, token = requests[int(table["request"][at])], int(table["token"][at])
        raise TraceError(
            path,
            f"line {int(table['line'][at])}",
            f"token {token} of request {request} is logged twice",
            "give each request a name of its own, and each of its tokens one row",
        )


def _disorder(path: str, table: Mapping[str, IntArray]) -> list[QualityEntry]:
    """Tokens of a request whose times go backwards."""
    entries = []
    follows = np.diff(table["request"]) == 0
    for name in STAGES:
        values = table[name]
        both = follows & (values[1:] != ABSENT) & (values[:-1] != ABSENT)
        back = int((both & (values[1:] < values[:-1])).sum())
        if back:
            entries.append(
                QualityEntry(
                    "token-times-go-back",
                    back,
                    int(both.sum()),
                    f"tokens whose {name} lies before that of the token before them count with that one's",
                    path,
                )
            )
    return entries
