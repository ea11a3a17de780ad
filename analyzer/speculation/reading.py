"""Files of accepted drafts: CSV, JSON or JSON lines; what a file is, is decided by its content.

- one row per cycle: ``accepted`` and, where known, ``drafted`` and ``request``;
- a histogram: rows ``accepted``, ``cycles``, or a JSON object ``{"0": 120, "1": 80}``;
- counters by position: ``cycles`` and ``accepted_per_position``, also by vLLM's names;
- totals: ``accepted``, ``cycles``, ``drafted``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from analyzer.errors import TraceError
from analyzer.speculation.counts import Cycles, Row, Totals, cycles_of, from_histogram, from_positions

HINT = "docs/speculation.md shows what such a file holds"
_NAMES = {
    "cycles": ("cycles", "num_drafts"),
    "accepted": ("accepted", "num_accepted_tokens"),
    "drafted": ("drafted", "num_draft_tokens"),
    "positions": ("accepted_per_position", "num_accepted_tokens_per_pos"),
}
"""Our names first, then those of vLLM's counters (``vllm:spec_decode_*``)."""
_COLUMNS = ("accepted", "drafted", "cycles", "request")
_MOST = 2**53
"""Counts beyond it are no counts."""


def read_counts(path: Path, draft_tokens: int | None = None) -> Cycles | Totals:
    """Read one file. ``draft_tokens``: tokens drafted per cycle where the file does not say.

    Raises TraceError for what cannot be read, naming the place in the file.
    """
    name = str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "is no UTF-8 text"
        raise TraceError(name, "", f"cannot be read: {why}", "give a CSV, JSON or JSON lines file") from None
    start = text.lstrip()[:1]
    if not start:
        raise TraceError(name, "", "is empty", HINT)
    if start not in "[{" and not start.isdigit():
        return _csv(name, text, draft_tokens)
    try:
        document = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return _rows(name, list(_lines(name, text)), draft_tokens)
    if isinstance(document, list):
        rows = [_row(name, f"item {at}", item) for at, item in enumerate(document, start=1)]
        return _rows(name, rows, draft_tokens)
    if isinstance(document, dict):
        return _document(name, document, draft_tokens)
    return cycles_of(name, "cycles", [_row(name, "line 1", document)], draft_tokens)


def _lines(name: str, text: str) -> Iterable[Row]:
    for at, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            item = msgspec.json.decode(line)
        except msgspec.DecodeError as error:
            raise TraceError(name, f"line {at}", f"is no JSON: {error}", HINT) from None
        yield _row(name, f"line {at}", item)


def _row(name: str, where: str, item: object) -> Row:
    """One cycle: a number of accepted tokens, or an object."""
    if not isinstance(item, dict):
        return Row(where, _number(name, where, "accepted", item))
    drafted, times, request = item.get("drafted"), item.get("cycles"), item.get("request")
    return Row(
        where,
        _number(name, where, "accepted", item.get("accepted")),
        None if drafted is None else _number(name, where, "drafted", drafted),
        1 if times is None else _number(name, where, "cycles", times),
        None if request is None else str(request),
    )


def _document(name: str, document: Mapping[str, Any], draft_tokens: int | None) -> Cycles | Totals:
    if isinstance(document.get("histogram"), dict):
        stated = document.get("draft_tokens")
        drafts = draft_tokens if stated is None else _number(name, "draft_tokens", "draft_tokens", stated)
        cycles = from_histogram(name, _histogram(name, document["histogram"]), drafts)
        _same_sums(name, document, cycles)
        return cycles
    if document and all(key.isdecimal() for key in document):
        return from_histogram(name, _histogram(name, document), draft_tokens)
    found = {what: _found(document, names) for what, names in _NAMES.items()}
    positions = found.pop("positions")
    numbers = {
        what: None if value is None else _number(name, what, what, value) for what, value in found.items()
    }
    verified, drafted, accepted = numbers["cycles"], numbers["drafted"], numbers["accepted"]
    if isinstance(positions, list) and verified is not None:
        reached = [_number(name, f"position {at}", "count", one) for at, one in enumerate(positions, start=1)]
        if accepted is not None and accepted != sum(reached):
            why = f"{accepted:,} accepted tokens, but the positions sum to {sum(reached):,}"
            raise TraceError(name, "", why, "take all counters at the same moment")
        return from_positions(name, reached, verified, drafted, draft_tokens)
    if accepted is None:
        raise TraceError(name, "", "holds no counts of accepted tokens", HINT)
    return _totals(name, Totals(accepted, verified, drafted))


def _same_sums(name: str, document: Mapping[str, Any], counts: Cycles) -> None:
    """Totals beside a histogram are those of its cycles, or of another span of time."""
    sums = {"cycles": counts.cycles, "accepted": counts.accepted_total, "drafted": counts.drafted_total}
    for what, summed in sums.items():
        given = _found(document, _NAMES[what])
        stated = None if given is None else _number(name, what, what, given)
        if stated is not None and stated != summed:
            why = f"{what} is {stated:,}, but the histogram sums to {summed:,}"
            hint = "take all counters at the same moment; of drafts of several lengths give one row per cycle"
            raise TraceError(name, what, why, hint)


def _totals(name: str, totals: Totals) -> Totals:
    if totals.drafted is not None and totals.accepted > totals.drafted:
        why = f"{totals.accepted:,} tokens are accepted of {totals.drafted:,} drafted"
        raise TraceError(name, "", why, "give accepted drafted tokens; the verifier's own are none of them")
    if totals.cycles == 0:
        raise TraceError(name, "cycles", "is 0", "give counters of at least one verification")
    return totals


def _found(document: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((document[name] for name in names if document.get(name) is not None), None)


def _histogram(name: str, items: Mapping[str, Any]) -> dict[int, int]:
    return {
        _number(name, "histogram", "accepted", accepted): _number(
            name, f"accepted {accepted}", "cycles", times
        )
        for accepted, times in items.items()
    }


def _csv(name: str, text: str, draft_tokens: int | None) -> Cycles:
    reader = csv.DictReader(io.StringIO(text), strict=True)
    fields = [field.strip() for field in reader.fieldnames or ()]
    reader.fieldnames = fields
    twice = next((column for column in _COLUMNS if fields.count(column) > 1), None)
    if twice is not None:
        raise TraceError(name, "line 1", f"has two columns {twice}", "give each column a name of its own")
    if "accepted" not in fields:
        raise TraceError(name, "line 1", "has no column accepted", HINT)
    try:
        rows = [_csv_row(name, f"line {reader.line_num}", item) for item in reader]
    except csv.Error as error:
        raise TraceError(name, f"line {reader.line_num}", f"is no CSV: {error}", HINT) from None
    return _rows(name, rows, draft_tokens, histogram="cycles" in fields)


def _rows(name: str, rows: list[Row], draft_tokens: int | None, *, histogram: bool = False) -> Cycles:
    """Rows of one cycle or of many. A single row of many may be totals: it is refused where it reads as both."""
    if len(rows) == 1 and rows[0].times > 1 and (rows[0].drafted or 0) >= rows[0].times:
        row = rows[0]
        why = f"{row.drafted:,} drafted tokens and {row.times:,} cycles in the only row: a kind of cycle, or totals?"
        hint = "write totals as a JSON object with cycles, accepted and drafted"
        raise TraceError(name, row.where, why, hint)
    many = histogram or any(row.times != 1 for row in rows)
    return cycles_of(name, "histogram" if many else "cycles", rows, draft_tokens)


def _csv_row(name: str, where: str, item: Mapping[str | None, Any]) -> Row:
    if None in item or None in item.values():
        raise TraceError(name, where, "has not as many fields as the header", HINT)
    drafted, times, request = item.get("drafted"), item.get("cycles"), item.get("request")
    return Row(
        where,
        _number(name, where, "accepted", item["accepted"]),
        None if drafted is None or not drafted.strip() else _number(name, where, "drafted", drafted),
        1 if times is None else _number(name, where, "cycles", times),
        None if request is None or not request.strip() else request.strip(),
    )


def _number(name: str, where: str, what: str, value: object) -> int:
    """A count: a whole number from 0, as a number or in digits."""
    number = _whole(value)
    if number is None or not 0 <= number <= _MOST:
        shown = "missing" if value is None else f"{value!r:.40}"
        raise TraceError(name, where, f"{what} is {shown}, no count", "give whole numbers from 0")
    return number


def _whole(value: object) -> int | None:
    if isinstance(value, str):
        digits = value.strip()
        return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 20 else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
