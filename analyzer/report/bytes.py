"""Bytes and floors: what the ledger models, what counters counted, and how the step stands to its floor."""

from __future__ import annotations

from dataclasses import dataclass, field

from analyzer.diagnosis import ByteFloor, Bytes, Diagnosis, MeasuredBytes, RankBytes
from analyzer.report.escape import cell, code, prose
from analyzer.report.numbers import count, fixed, int_ranges, ms, plain, share
from analyzer.report.tables import table

FLOORS_SHOWN = 4
ROWS_SHOWN = 16
KINDS_SHOWN = 40
NAMES_SHOWN = 6
UNKNOWN = "-"
BASIS_WORDS = {"ledger": "the ledger's", "driver": "driver", "datasheet": "datasheet"}
COUNTER_WORDS = {"nsight-compute": "Nsight Compute", "gpu-metrics": "sampled"}
FAR = (
    "Being far above a floor locates no bottleneck; it names an amount of time to explain."
    " A floor is a bound, the bytes are a model, the step is a measurement."
)

COUNTERS_ALONE = "Counted bytes are a measurement. No ledger was given (`--ledger FILE`): there is no floor."


@dataclass(frozen=True)
class BytesView:
    """The compact section, and what stands in the appendix."""

    lines: list[str]
    ranks: str
    kinds: str = ""
    sources: list[str] = field(default_factory=list)


def bytes_view(diagnosis: Diagnosis) -> BytesView | None:
    """None where neither a ledger nor counters were given."""
    known = diagnosis.bytes
    if known is None:
        return None
    lines = [line for floor in known.floors[:FLOORS_SHOWN] for line in _floor(floor, known)]
    if len(known.floors) > FLOORS_SHOWN:
        lines.append(f"{count(len(known.floors) - FLOORS_SHOWN, 'more floor')} in the JSON (bytes.floors).")
    if known.floors:
        lines.append(FAR)
    if not known.ledger:
        lines.append(COUNTERS_ALONE)
    if known.why_no_floor:
        lines.append(f"No floor: {prose(known.why_no_floor)}.")
    lines += [f"**Finding**: {prose(text)}." for text in known.findings]
    return BytesView(lines, _ranks(known.ranks), _kinds(known.ranks), _sources(known))


def _floor(floor: ByteFloor, known: Bytes) -> list[str]:
    where = "all ranks on one clock" if floor.scope == "global" else f"rank {floor.rank}"
    interval = ""
    if floor.step_interval_ns is not None:
        low, high = floor.step_interval_ns
        interval = f" ({_ms(low)} to {_ms(high)} ms, 95 % interval)"
    text = (
        f"**Phase {code(floor.phase, 40)}**, {where}: its bytes take at least {_ms(floor.floor_ns)} ms; the step took"
        f" {_ms(floor.step_ns)} ms{interval}, mean of {count(floor.windows, 'step')}"
    )
    if floor.fraction is not None and floor.unexplained_ns is not None:
        rest = f"{_ms(floor.unexplained_ns)} ms are not explained by bytes"
        text += f": the floor is {share(floor.fraction)} of it, and {rest}"
    lines = [f"{text}. {_tokens(floor)}{_parts(floor)}{_achievable(floor, known)}".rstrip()]
    return [*lines, *(f"{prose(note)[:1].upper()}{prose(note)[1:]}." for note in floor.notes)]


def _tokens(floor: ByteFloor) -> str:
    if floor.ceiling_tokens_per_s is None or floor.observed_tokens_per_s is None:
        return ""
    text = (
        f"At most {_rate(floor.ceiling_tokens_per_s)} tokens/s; observed {_rate(floor.observed_tokens_per_s)}"
    )
    return text + (
        f", {share(floor.fraction_of_ceiling)} of that ceiling. "
        if floor.fraction_of_ceiling is not None
        else ". "
    )


def _rate(value: float) -> str:
    return fixed(round(value * 10), 1)


def _parts(floor: ByteFloor) -> str:
    """Which rank sets it, part by part."""
    if len(floor.parts) == 1 and len(floor.ranks) == 1:
        return ""
    shown = [
        f"{' beside '.join(code(name, 30) for name in part.phases)} {_ms(part.floor_ns)} ms (rank {part.rank})"
        for part in floor.parts[:NAMES_SHOWN]
    ]
    more = f" and {len(floor.parts) - NAMES_SHOWN} more" if len(floor.parts) > NAMES_SHOWN else ""
    return f"Set by {', '.join(shown)}{more}. "


def _achievable(floor: ByteFloor, known: Bytes) -> str:
    """The same at the measured copy bandwidth, which is no bound; and which bandwidth the floor used."""
    rows = [row for row in known.ranks if row.phase == floor.phase and row.rank in floor.ranks]
    used = dict.fromkeys(
        f"{_gb_per_s(row.bandwidth_bytes_per_s)} ({BASIS_WORDS[row.bandwidth_basis]}: {prose(row.bandwidth_source)})"
        for row in rows
        if row.bandwidth_bytes_per_s is not None and row.bandwidth_basis is not None
    )
    text = f"Bandwidth of a device: {'; '.join(list(used)[:NAMES_SHOWN])}." if used else ""
    if floor.achievable_ns is None:
        return text
    reached = (
        f", {share(floor.fraction_of_achievable)} of the step"
        if floor.fraction_of_achievable is not None
        else ""
    )
    return f"{text} At the measured copy bandwidth (no bound): {_ms(floor.achievable_ns)} ms{reached}."


def _ms(ns: float) -> str:
    return ms(round(ns))


def _gb(size: float | None) -> str:
    return UNKNOWN if size is None else fixed(round(size / 1e6), 3)


def _gb_per_s(speed: float | None) -> str:
    return UNKNOWN if speed is None else f"{fixed(round(speed / 1e9), 0)} GB/s"


def _counted(row: RankBytes) -> str:
    return "; ".join(map(_one_counted, row.measured)) or UNKNOWN


def _one_counted(measured: MeasuredBytes) -> str:
    low, high = measured.interval
    open_ = "" if low == high else f" ({_gb(low)} to {'?' if high is None else _gb(high)})"
    part = "" if measured.of_kernel_time >= 1 else f", of {share(measured.of_kernel_time)} of kernel time"
    apart = "" if measured.disagreement is None else f", {100 * measured.disagreement:+.0f} %"
    return f"{_gb(measured.bytes)}{open_} {COUNTER_WORDS[measured.by]}{part}{apart}"


def _ranks(rows: list[RankBytes]) -> str:
    """Modelled and counted side by side; ranks that show the same share a row."""
    if not rows:
        return ""
    groups: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        groups.setdefault(_figures(row), []).append(row.rank)
    cells = [
        [shown[0], int_ranges(sorted(ranks)), *shown[1:]]
        for shown, ranks in list(groups.items())[:ROWS_SHOWN]
    ]
    header = [
        "Phase", "Ranks", "Modelled, GB", "Counted, GB", "Bandwidth, GB/s", "Copies (measured), GB/s", "Floor, ms",
        "Its kernels, ms", "FLOP/byte (model)", "Ridge, FLOP/byte",
    ]  # fmt: skip
    left = len(groups) - ROWS_SHOWN
    return table(header, cells, left=(0, 1, 3)) + (
        f"\n\n{count(left, 'more row')} in the JSON (bytes.ranks)." if left > 0 else ""
    )


def _figures(row: RankBytes) -> tuple[str, ...]:
    ridge = row.ridge_flop_per_byte
    return (
        cell(row.phase, 40),
        _gb(row.modelled_bytes),
        _counted(row),
        UNKNOWN if row.bandwidth_bytes_per_s is None else fixed(round(row.bandwidth_bytes_per_s / 1e9), 0),
        UNKNOWN if row.copy_bytes_per_s is None else fixed(round(row.copy_bytes_per_s / 1e9), 0),
        UNKNOWN if row.floor_ns is None else _ms(row.floor_ns),
        UNKNOWN if row.kernel_ns is None else _ms(row.kernel_ns),
        UNKNOWN if row.flop_per_byte is None else plain(float(f"{row.flop_per_byte:.3g}")) + _partly(row),
        UNKNOWN if ridge is None else f"{ridge:.0f} ({row.ridge_dtype})",
    )


def _partly(row: RankBytes) -> str:
    return "" if row.flop_complete else " or more"


def _kinds(rows: list[RankBytes]) -> str:
    """Bytes by phase of the ledger and kind; ranks that have the same stand together."""
    groups: dict[tuple[str, str, str, int, str, str], list[int]] = {}
    for row in rows:
        for part in row.modelled:
            key = (
                row.phase,
                part.phase,
                part.kind,
                part.bytes,
                ", ".join(part.basis),
                "; ".join(part.sources),
            )
            groups.setdefault(key, []).append(row.rank)
    if not groups:
        return ""
    total = {(row.phase, row.rank): row.modelled_bytes or 0 for row in rows}
    cells = [
        [
            cell(phase, 40),
            cell(of, 40),
            prose(kind),
            int_ranges(sorted(ranks)),
            _gb(size),
            _of_total(size, [total[phase, rank] for rank in ranks]),
            basis,
            cell(source, 70),
        ]
        for (phase, of, kind, size, basis, source), ranks in list(groups.items())[:KINDS_SHOWN]
    ]
    header = ["Phase", "Of the ledger", "Kind", "Ranks", "GB per step", "Of the rank's", "Basis", "Source"]
    left = len(groups) - KINDS_SHOWN
    return table(header, cells, left=(0, 1, 2, 3, 6, 7)) + (
        f"\n\n{count(left, 'more row')} in the JSON (bytes.ranks)." if left > 0 else ""
    )


def _of_total(size: int, totals: list[int]) -> str:
    """Ranks that move the same bytes of a kind can move different ones in all."""
    if not all(totals):
        return UNKNOWN
    least, most = share(size / max(totals)), share(size / min(totals))
    return most if least == most else f"{least.removesuffix(' %')} to {most}"


def _sources(known: Bytes) -> list[str]:
    """What counters were used, and what their files hold that the trace lacks."""
    lines = []
    if known.ledger is not None:
        lines.append(f"Ledger {code(known.ledger)}: {prose(known.ledger_name or '')}. Its bytes are a model.")
    peaks = dict.fromkeys(row.peak_source for row in known.ranks if row.peak_source)
    if peaks:
        lines.append(f"Arithmetic peaks behind the ridge, dense: {'; '.join(map(prose, peaks))}.")
    for source in known.counters:
        if source.kind == "gpu-metrics":
            names = ", ".join(code(name) for name in source.names)
            lines.append(
                f"Rank {source.rank}: sampled {names}. Read as documented; no real export with them was at hand to test"
                " against."
            )
            continue
        whose = "for every rank" if source.rank is None else f"for rank {source.rank}"
        text = (
            f"Nsight Compute {code(source.path)} {whose}: {count(source.launches, 'launch', 'launches')} of"
            f" {count(source.kernels, 'kernel name')}. It ran them one at a time: bytes carry over, durations do not."
        )
        if source.names:
            shown = ", ".join(code(name, 50) for name in source.names[:NAMES_SHOWN])
            more = f" and {len(source.names) - NAMES_SHOWN} more" if len(source.names) > NAMES_SHOWN else ""
            text += f" Not by name in this trace: {shown}{more}."
        lines.append(text)
    return lines
