"""The inspection as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.report.escape import visible
from analyzer.report.inspection import InspectedInput, InspectedRank, Inspection, Work
from analyzer.report.labels import RULE_WORDS
from analyzer.report.numbers import count, int_ranges, ms, share
from analyzer.report.reading import flagged_steps
from analyzer.report.record_words import records_in_words
from analyzer.report.tables import columns, section

TOP = 10
FILES_SHOWN = 16
RANKS_SHOWN = 24
STREAMS_SHOWN = 6


def _name(text: str | None, limit: int = 72) -> str:
    return visible(text, limit) if text else "-"


def text(inspection: Inspection) -> str:
    """Sections: inputs, ranks, steps, device work, collectives, ledger."""
    sections = [
        section("Inputs", "\n".join(_inputs(inspection))),
        section("Ranks", _ranks(inspection)),
        section("Steps", _steps(inspection)),
        section("Device work with the largest sums of durations", _work(inspection.device_work)),
        section("Collectives by name", _work(inspection.collectives)),
        section("What could not be used", _ledger(inspection)),
    ]
    return "\n".join(sections)


def _inputs(inspection: Inspection) -> Iterator[str]:
    """Files that hold the same kinds of records under the same settings are described once."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for source in inspection.inputs:
        groups.setdefault(tuple(_input(source)), []).append(source.path)
    for lines, paths in groups.items():
        yield from (_name(path, 200) for path in paths[:FILES_SHOWN])
        if len(paths) > FILES_SHOWN:
            yield f"and {count(len(paths) - FILES_SHOWN, 'more file')}: --format json lists all"
        yield from lines


def _input(source: InspectedInput) -> Iterator[str]:
    partial = ", cut off or damaged" if source.partial else ""
    profiler, schema = _name(source.profiler_version), _name(source.schema_version)
    yield f"  {source.kind}, profiler {profiler}, schema {schema}{partial}"
    yield f"  captured: {records_in_words(source.captured) or 'nothing'}"
    yield f"  not captured: {records_in_words(source.not_captured) or 'nothing missing'}"
    if source.settings:
        yield "  settings: " + ", ".join(
            f"{_name(key)}={_name(value)}" for key, value in source.settings.items()
        )
    for message in source.diagnostics[:TOP]:
        yield f"  the profiler reports: {_name(message, 200)}"
    if len(source.diagnostics) > TOP:
        yield f"  and {count(len(source.diagnostics) - TOP, 'more message')}"


def _ranks(inspection: Inspection) -> str:
    rows = [_rank(rank) for rank in inspection.ranks[:RANKS_SHOWN]]
    header = ["Rank", "Device", "Model", "Process", "Host", "Device events", "Host records", "Streams"]
    lines = [columns(header, rows, left=(1, 2, 3, 4, 7))]
    left = len(inspection.ranks) - RANKS_SHOWN
    if left > 0:
        lines.append(f"and {count(left, 'more rank')}: --format json lists all")
    if inspection.missing_ranks:
        lines.append(f"missing: {int_ranges(inspection.missing_ranks)}")
    if inspection.rank_basis:
        lines.append(f"told apart by {_name(inspection.rank_basis, 200)}")
    return "\n".join(lines)


def _rank(rank: InspectedRank) -> list[str]:
    streams = ", ".join(f"{row.stream} ({row.events:,})" for row in rank.streams[:STREAMS_SHOWN])
    if len(rank.streams) > STREAMS_SHOWN:
        streams += f" and {len(rank.streams) - STREAMS_SHOWN} more"
    return [
        str(rank.rank),
        "-" if rank.device is None else str(rank.device.index),
        _name(rank.device.name if rank.device else None, 40),
        _name(rank.pid, 24),
        _name(rank.host, 32),
        f"{rank.device_events:,}",
        f"{rank.host_records:,}",
        streams or "-",
    ]


def _steps(inspection: Inspection) -> str:
    steps = inspection.steps
    if steps is None:
        return f"none: {_name(inspection.steps_missing_because, 400)}"
    if steps.confidence == "none":
        return "none found: the whole capture is one window"
    rule = RULE_WORDS.get(steps.rule) or _name(steps.rule)
    pattern = f" ({_name(steps.pattern)})" if steps.pattern is not None else ""
    lines = [
        f"{count(steps.count, 'step')}, found by {rule}{pattern}, confidence"
        f" {_name(steps.confidence)}; {flagged_steps(steps, [rank.rank for rank in inspection.ranks])}",
        f"phases: {', '.join(_name(phase, 40) for phase in steps.phases[:TOP]) or 'none'}",
    ]
    return "\n".join([*lines, _name(steps.detail, 400)] if steps.detail else lines)


def _work(work: list[Work]) -> str:
    """One row per name over all ranks."""
    if not work:
        return "none"
    groups: dict[tuple[str, str, str | None], list[Work]] = {}
    for row in work:
        groups.setdefault((row.name, row.kind, row.operation), []).append(row)
    totals = sorted(groups.items(), key=lambda item: -sum(row.total_ns for row in item[1]))
    rows = [
        [
            kind if operation is None else f"{kind} ({visible(operation, 24)})",
            f"{len(members):,}",
            f"{sum(row.calls for row in members):,}",
            ms(sum(row.total_ns for row in members)),
            _name(name),
        ]
        for (name, kind, operation), members in totals[:TOP]
    ]
    table = columns(["Kind", "Ranks", "Calls", "Sum, ms", "Name"], rows, left=(0, 4))
    left = len(totals) - TOP
    return f"{table}\nand {count(left, 'more name')}: --format json lists all" if left > 0 else table


def _ledger(inspection: Inspection) -> str:
    if not inspection.quality:
        return "nothing: everything in the capture could be used"
    rows = [
        [
            visible(row.reason, 60),
            f"{row.count:,}",
            "-" if row.share is None else share(row.share, 2),
            visible(row.effect, 120),
            _name(row.place),
        ]
        for row in inspection.quality
    ]
    return columns(["Reason", "Count", "Share", "Effect", "Where"], rows, left=(0, 3, 4))
