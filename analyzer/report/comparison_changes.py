"""What ran differently, as tables: work replaced at its place, added, removed, slower, faster."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.comparison.result import Comparison, PlacedWork, Replaced, WorkChange
from analyzer.report.escape import cell, prose
from analyzer.report.numbers import count, ms, signed_ms
from analyzer.report.tables import table

CHANGES_SHOWN = 12
NAMES_SHOWN = 4
_LONGEST = 60


def changes_intro(comparison: Comparison) -> str:
    """How work was matched and how much of it differs."""
    words = ("added", "removed", "slower", "faster")
    number = {word: sum(row.change == word for row in comparison.changes) for word in words}
    told = [f"{many:,} {word}" for word, many in number.items() if many]
    if comparison.replaced:
        told.insert(0, f"{len(comparison.replaced):,} replaced at {_places(comparison.replaced)}")
    hidden = sum(row.change == "not known" for row in comparison.changes)
    if hidden:
        told.append(
            f"{hidden:,} that only one side shows, which may run inside the replays that the other recorded as"
            " one row each"
        )
    same = sum(row.change == "same" for row in comparison.changes)
    return (
        f"Device work in a mean step, {_matched(comparison)}: {', '.join(told) or 'nothing changed'};"
        f" {same:,} within 5 % per call. Durations are summed over streams and ranks (no wall time); those of"
        " collectives include waiting."
    )


def _places(rows: Sequence[Replaced]) -> str:
    return count(sum(row.places for row in rows), "place")


def _matched(comparison: Comparison) -> str:
    if comparison.matched_by == "place":
        text = "matched by its place in the step"
        return f"{text} ({prose(comparison.matched_because)})" if comparison.matched_because else text
    why = f" ({prose(comparison.matched_because)})" if comparison.matched_because else ""
    return f"matched by what it is, not by its place{why}"


def replaced(rows: Sequence[Replaced]) -> str:
    """Work of A and what stands at its place in B; "" where nothing was replaced."""
    if not rows:
        return ""
    cells = [
        [
            _names(row.a),
            _names(row.b),
            "the step's start" if row.after is None else cell(row.after.name, 40),
            f"{row.places:,}",
            ms(row.ns_a),
            ms(row.ns_b),
            signed_ms(row.ns_b - row.ns_a),
        ]
        for row in rows[:CHANGES_SHOWN]
    ]
    header = ["Of A", "Replaced in B by", "After", "Places", "A, ms", "B, ms", "B - A, ms"]
    return table(header, cells, left=(0, 1, 2)) + _more(len(rows))


def _names(works: Sequence[PlacedWork]) -> str:
    """Names side by side, each cut on its own so that all are seen."""
    longest = _LONGEST * 2 // min(len(works) + 1, NAMES_SHOWN)
    told = " + ".join(cell(_name(work), longest) for work in works[:NAMES_SHOWN])
    return told if len(works) <= NAMES_SHOWN else f"{told} + {len(works) - NAMES_SHOWN} more"


def _name(work: PlacedWork) -> str:
    return f"{work.name} ({work.detail})" if work.detail else work.name


def changes(rows: Sequence[WorkChange]) -> str:
    """Work that one side lacks, or whose calls last longer or shorter."""
    told = [row for row in rows if row.change not in ("same", "not known")]
    if not told:
        return "None."
    cells = [
        [
            row.change,
            cell(f"{row.name} ({row.detail})" if row.detail else row.name, 80),
            _calls(row.calls_a),
            _calls(row.calls_b),
            _time(row.ns_a),
            _time(row.ns_b),
            signed_ms((row.ns_b or 0) - (row.ns_a or 0)),
        ]
        for row in told[:CHANGES_SHOWN]
    ]
    header = ["Change", "Work", "Calls, A", "Calls, B", "A, ms", "B, ms", "B - A, ms"]
    return table(header, cells, left=(0, 1)) + _more(len(told))


def _more(number: int) -> str:
    return f"\n\n{count(number - CHANGES_SHOWN, 'more row')} in the JSON." if number > CHANGES_SHOWN else ""


def _calls(number: float | None) -> str:
    return "-" if number is None else f"{number:,.4g}"


def _time(ns: int | None) -> str:
    return "-" if ns is None else ms(ns)
