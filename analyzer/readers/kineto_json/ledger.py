"""What of a file could not be used as it stands, as lines of the data-quality ledger."""

from __future__ import annotations

from analyzer.model import QualityEntry
from analyzer.readers.kineto_json.blocks import EventBlocks
from analyzer.readers.kineto_json.columns import Rows
from analyzer.readers.kineto_json.tables import Tables


def quality_of(
    rows: Rows, blocks: EventBlocks, damage: str | None, tables: Tables
) -> tuple[QualityEntry, ...]:
    """The entries with a count above zero, in a fixed order. ``damage``: of the compressed stream."""
    total = blocks.count
    entries: list[QualityEntry] = []

    def note(reason: str, count: int, effect: str, place: str = "", of: int | None = total) -> None:
        if count:
            entries.append(QualityEntry(reason, count, of, effect, place))

    if blocks.truncated is not None:
        why = f"; {damage}" if damage else ""
        note(
            "truncated-file",
            1,
            "everything after the cut is missing: the end of the run, and where the members after the "
            "events are lost also the rank and the time base",
            blocks.truncated + why,
            of=None,
        )
    elif damage:
        note("gzip-without-end", 1, "none: the JSON text itself is complete", damage, of=None)
    note(
        "bad-event-skipped",
        blocks.skipped.count,
        "events that are no valid JSON are missing",
        str(blocks.skipped),
        of=total + blocks.skipped.count,
    )
    note(
        "bad-event-repaired",
        blocks.repaired.count,
        "names may differ from the original in quotes and backslashes; times are as written",
        str(blocks.repaired),
    )
    note(
        "names-repaired",
        blocks.characters.count,
        "control characters and broken UTF-8 in names were replaced",
        str(blocks.characters),
    )
    note("negative-duration", rows.picker.negative_durations, "these events count with a duration of 0")
    note("unusable-event", rows.picker.unusable, "events without a usable start or duration are left out")
    note(
        "time-outside-epoch",
        tables.outside_epoch,
        "events whose time is no epoch time, in a file whose times are, are left out",
    )
    note(
        "flow-unpaired",
        tables.unpaired_flows,
        "hand-overs with one end only are left out",
        of=len(rows.flows),
    )
    if tables.call_processes > 1:
        note(
            "several-processes",
            tables.call_processes,
            "ids count per process: in a merged file, launches of different processes can be mixed up",
            of=None,
        )
    for category, count in sorted(rows.ignored.items()):
        note("unknown-category", count, "events of this category are left out", category)
    return tuple(entries)
