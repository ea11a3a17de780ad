"""The token log of ``tracebound collect client``: events that carry output become tokens.

Its format is documented in ``collectors.client``. Requests of the warm-up and events without output are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import numpy as np

from analyzer.errors import TraceError
from analyzer.model import QualityEntry
from analyzer.readers.service_log.build import STAGES, build
from analyzer.tokens import ABSENT, Clocks, TokenLog

FORMAT, FORMAT_VERSION = "tracebound.tokens", 1
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class _Line(msgspec.Struct):
    """What this reader needs of any line; ``kind`` says which."""

    kind: str
    format_version: int = 0
    host: str | None = None
    url: str = ""
    request: int = -1
    warmup: bool = False
    sent_ns: int | None = None
    read: int = -1
    kernel_ns: int | None = None
    receipt_ns: int | None = None
    emitted_ns: int | None = None
    output: bool = False
    tokens: int | None = None
    emitted_resolution_ns: int | None = None
    outcome: str = ""


@dataclass
class _Found:
    """Rows as they come."""

    host: str | None = None
    url: str = ""
    rows: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    sent: dict[int, int] = field(default_factory=dict)
    warmup: set[int] = field(default_factory=set)
    arrival: dict[tuple[int, int], int] = field(default_factory=dict)
    tokens: dict[int, int] = field(default_factory=dict)
    resolution_ns: int = 1
    incomplete: int = 0
    untold: int = 0
    damaged: list[int] = field(default_factory=list)
    whole: bool = False


def read(path: Path) -> TokenLog:
    """Read one log. Raises TraceError for another version and for a log without output."""
    found, decoder = _Found(), msgspec.json.Decoder(_Line)
    with path.open("rb") as file:
        for number, text in enumerate(file, 1):
            try:
                line = decoder.decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError):
                found.damaged.append(number)
                continue
            if line.kind == "header" and line.format_version != FORMAT_VERSION:
                raise TraceError(
                    str(path),
                    f"line {number}",
                    f"is a token log of format version {line.format_version}; this reads {FORMAT_VERSION}",
                    "read it with the version of tracebound that wrote it",
                )
            _take(found, line, number)
    if not found.rows:
        raise TraceError(
            str(path),
            "",
            "no request behind the warm-up received any output",
            "see the outcomes in its end lines; send more requests, or lower --warmup",
        )
    return _log(path, found)


def _take(found: _Found, line: _Line, number: int) -> None:
    if line.kind == "header":
        found.host, found.url = line.host, line.url
    elif line.kind == "request":
        if line.warmup:
            found.warmup.add(line.request)
        found.sent[line.request] = ABSENT if line.sent_ns is None else line.sent_ns
    elif line.kind == "read":
        found.arrival[line.request, line.read] = ABSENT if line.kernel_ns is None else line.kernel_ns
    elif line.kind == "event" and line.output and line.request not in found.warmup:
        _take_event(found, line, number)
    elif line.kind == "end":
        found.incomplete += line.outcome != "complete" and line.request not in found.warmup
        found.resolution_ns = max(found.resolution_ns, line.emitted_resolution_ns or 1)
    elif line.kind == "log_end":
        found.whole = True


def _take_event(found: _Found, line: _Line, number: int) -> None:
    """An event of several tokens is as many rows; one that does not tell is one."""
    found.untold += line.tokens is None
    first = found.tokens.get(line.request, 0)
    count = 1 if line.tokens is None else line.tokens
    emitted = ABSENT if line.emitted_ns is None else line.emitted_ns
    receipt = ABSENT if line.receipt_ns is None else line.receipt_ns
    arrival = found.arrival.get((line.request, line.read), ABSENT)
    for token in range(first, first + count):
        found.rows.append((line.request, token, emitted, arrival, receipt, number))
    found.tokens[line.request] = first + count


def _log(path: Path, found: _Found) -> TokenLog:
    columns = np.array(found.rows, np.int64).T
    numbers, request = np.unique(columns[0], return_inverse=True)
    table = dict(zip(("token", "emission_ns", "arrival_ns", "receipt_ns", "line"), columns[1:], strict=True))
    table |= {"request": request.astype(np.int64), "completion_ns": np.full(len(request), ABSENT, np.int64)}
    assert set(STAGES) < set(table)
    return build(
        str(path),
        "client",
        [str(number) for number in numbers.tolist()],
        table,
        np.array([found.sent.get(number, ABSENT) for number in numbers.tolist()], np.int64),
        Clocks(client=found.host),
        _quality(path, found),
        resolution_ns=found.resolution_ns,
        partial=not found.whole,
        same_host=(urlsplit(found.url).hostname or "") in _LOOPBACK,
    )


def _quality(path: Path, found: _Found) -> list[QualityEntry]:
    entries = []

    def note(reason: str, count: int, total: int | None, effect: str, place: str = "") -> None:
        if count:
            entries.append(QualityEntry(reason, count, total, effect, f"{path}{place}"))

    note(
        "token-line-skipped", len(found.damaged), None, "tokens on damaged lines are missing",
        f", first on line {found.damaged[0]}" if found.damaged else "",
    )  # fmt: skip
    note("token-log-cut-off", int(not found.whole), None, "the log has no last line: requests may be missing")
    note(
        "request-incomplete", found.incomplete, len(found.sent),
        "requests that did not complete count as far as they came",
    )  # fmt: skip
    note(
        "event-without-token-count", found.untold, len(found.rows),
        "an event that does not tell how many tokens it holds counts as one token",
    )  # fmt: skip
    return entries
