"""DataFrame views of an analysis: what the library hands out, and what the CSV tables hold.

Nested figures become flat columns named like their path in the JSON: ``path_ns.launch.latency``.
What was not captured is ``<NA>``, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, get_args

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd

from analyzer.categories import BINDING_NAMES, CATEGORY_NAMES, EXPOSURE_NAMES
from analyzer.diagnosis import (
    ClassTime,
    ClientWindow,
    Collective,
    CollectiveCost,
    Diagnosis,
    GlobalWindow,
    GraphReplay,
    HostRollup,
    KernelShape,
    LateRank,
    LaunchBill,
    Quantiles,
    RangeTime,
    ShapeReplays,
    SmallKernels,
    Spread,
    Window,
)
from analyzer.tables import (
    NO_EVENT,
    TOKEN_PARTS,
    DetailKind,
    DetailTable,
    QueueTable,
    SegmentTable,
    TokenTable,
)

OVERLAPS = ("collective_under_kernel", "copy_under_kernel", "kernel_under_kernel")
WINDOW_COLUMNS = (
    "rank",
    "window",
    "step",
    "phase",
    "start_ns",
    "end_ns",
    "duration_ns",
    "host_start_ns",
    "host_end_ns",
    "warmup",
    "warmup_reasons",
    "outlier",
    "empty",
    "kernels",
    "kernels_in_graphs",
    "launches",
    "graph_replays",
    "collectives",
    "copies",
    "inferred_ns",
    *(f"path_ns.{name}" for name in CATEGORY_NAMES.values()),
    *(f"exposed_ns.{name}" for name in EXPOSURE_NAMES.values()),
    *(f"overlap_ns.{name}" for name in OVERLAPS),
)
BUDGET_COLUMNS = (
    "phase",
    "scope",
    "rank",
    "windows",
    "windows_excluded",
    "outliers",
    "outlier_ns_total",
    "step_ns_total",
    "inferred_ns_total",
    "note",
    *(f"path_ns_total.{name}" for name in CATEGORY_NAMES.values()),
    *(f"exposed_ns_total.{name}" for name in EXPOSURE_NAMES.values()),
)
KERNEL_COLUMNS = (
    "rank",
    "name",
    "kind",
    "class",
    "calls_total",
    "calls_per_step",
    "calls_in_graphs",
    "total_ns",
    "clipped_ns",
    "path_ns",
    "exposed_ns",
    "shapes",
    "coverage",
    "occupancy",
    "limiter",
)
HOST_COLUMNS = ("rank", "phase", "category", "thread", "name", "stack", "frame", "path_ns", "segments",
                "windows", "windows_with")  # fmt: skip
HYPOTHESIS_COLUMNS = (
    "id",
    "phase",
    "scope",
    "rank",
    "verdict",
    "verdict_note",
    "share",
    "share_low",
    "share_high",
    "measured",
    "measured_value",
    "measured_unit",
    "measured_kind",
    "gain_upper_bound_ns",
    "overlaps_with",
    "claim",
    "discriminating_check",
    "intervention",
    "disproof",
    "undo",
)
SEGMENT_COLUMNS = (
    "rank",
    "window",
    "start_ns",
    "end_ns",
    "category",
    "binding",
    "inferred",
    "name",
    "place",
    "correlation",
    "event_start_ns",
    "late_rank",
)


def _parts(type_: Any) -> tuple[str, ...]:
    """The fields of a field that holds order statistics, () of any other."""
    kinds = {type_, *get_args(type_)}
    return next((kind.__struct_fields__ for kind in (Quantiles, Spread) if kind in kinds), ())


def _columns_of(struct: type[msgspec.Struct]) -> tuple[str, ...]:
    """Fields as columns, named as in the JSON; quantiles take one column each."""
    columns: list[str] = []
    for field in msgspec.structs.fields(struct):
        parts = [f".{part}" for part in _parts(field.type)] or [""]
        columns += [field.encode_name + part for part in parts]
    return tuple(columns)


KERNEL_SHAPE_COLUMNS = _columns_of(KernelShape)
CLASS_COLUMNS = _columns_of(ClassTime)
LAUNCH_COLUMNS = _columns_of(LaunchBill)
GRAPH_REPLAY_COLUMNS = _columns_of(GraphReplay)
SHAPE_REPLAY_COLUMNS = _columns_of(ShapeReplays)
SMALL_KERNEL_COLUMNS = _columns_of(SmallKernels)
HOST_ROLLUP_COLUMNS = _columns_of(HostRollup)
RANGE_COLUMNS = _columns_of(RangeTime)
COLLECTIVE_COLUMNS = _columns_of(Collective)
COLLECTIVE_COST_COLUMNS = _columns_of(CollectiveCost)
COLLECTIVE_SIZE_COLUMNS = (
    "group",
    "op",
    "dtype",
    "algorithm",
    "protocol",
    "in_graphs",
    "bytes",
    "calls",
    "median_ns",
    "p05_ns",
    "p95_ns",
    "fitted_ns",
    "fitted_low_ns",
    "fitted_high_ns",
    "contended_calls",
    "contended_ratio",
    "contended_ratio_low",
    "contended_ratio_high",
)
LATE_RANK_COLUMNS = _columns_of(LateRank)
GLOBAL_WINDOW_COLUMNS = _columns_of(GlobalWindow)
CLIENT_WINDOW_COLUMNS = (
    *(name for name in ClientWindow.__struct_fields__ if name != "path_ns"),
    *(f"path_ns.{name}" for name in CATEGORY_NAMES.values()),
)
QUEUE_COLUMNS = tuple(field.name for field in fields(QueueTable))
TOKEN_INSTANTS = ("completion_ns", "held_ns", "emission_ns", "last_emission_ns", "arrival_ns", "receipt_ns")
TOKEN_COLUMNS = (
    "log",
    "request",
    "token",
    "window",
    "zero_ns",
    *TOKEN_INSTANTS,
    "buffering_ns",
    "gap_ns",
    *(f"gap_ns.{name}" for name in TOKEN_PARTS),
)
DETAIL_COLUMNS = ("rank", "window", "lane", "kind", "depth", "start_ns", "end_ns", "name", "class")

Row = tuple[Any, ...]


def window_rows(diagnosis: Diagnosis) -> Iterable[Row]:
    """The rows of ``WINDOW_COLUMNS``, by rank and window."""
    for rank in diagnosis.ranks:
        for window in rank.windows:
            yield (rank.rank, *_window(window))


def _window(window: Window) -> Row:
    return (
        window.index,
        window.step,
        window.phase,
        window.start_ns,
        window.end_ns,
        window.end_ns - window.start_ns,
        window.host_start_ns,
        window.host_end_ns,
        window.warmup,
        " + ".join(window.warmup_reasons),
        window.outlier,
        window.empty,
        window.kernels,
        window.kernels_in_graphs,
        window.launches,
        window.graph_replays,
        window.collectives,
        window.copies,
        window.inferred_ns,
        *_spread(window.path_ns, CATEGORY_NAMES.values()),
        *_spread(window.exposed_ns, EXPOSURE_NAMES.values()),
        *_spread(window.overlap_ns, OVERLAPS),
    )


def _spread(values: dict[str, int] | None, names: Iterable[str]) -> list[int | None]:
    return [None if values is None else values[name] for name in names]


def budget_rows(diagnosis: Diagnosis) -> Iterable[Row]:
    """The rows of ``BUDGET_COLUMNS``."""
    client = diagnosis.service.budget if diagnosis.service is not None else []
    for row in [*diagnosis.budget, *client]:
        yield (
            row.phase,
            row.scope,
            row.rank,
            row.windows,
            row.windows_excluded,
            row.outliers,
            row.outlier_ns_total,
            row.step_ns_total,
            row.inferred_ns_total,
            row.note,
            *_spread(row.path_ns_total, CATEGORY_NAMES.values()),
            *_spread(row.exposed_ns_total, EXPOSURE_NAMES.values()),
        )


def kernel_rows(diagnosis: Diagnosis) -> Iterable[Row]:
    """The rows of ``KERNEL_COLUMNS``."""
    fields = ["class_" if name == "class" else name for name in KERNEL_COLUMNS]
    for row in diagnosis.kernels:
        yield tuple(getattr(row, name) for name in fields)


def host_rows(diagnosis: Diagnosis) -> Iterable[Row]:
    """The rows of ``HOST_COLUMNS``; the range stack is joined with `` > ``, outermost first."""
    for row in diagnosis.host_culprits:
        yield tuple(" > ".join(row.stack) if name == "stack" else getattr(row, name) for name in HOST_COLUMNS)


def hypothesis_rows(diagnosis: Diagnosis) -> Iterable[Row]:
    """The rows of ``HYPOTHESIS_COLUMNS``."""
    for row in diagnosis.hypotheses:
        share, measured = row.share, row.measured
        yield (
            row.id,
            row.phase,
            row.scope,
            row.rank,
            row.verdict,
            row.verdict_note,
            *((share.value, *share.interval) if share else (None, None, None)),
            *((measured.name, measured.value, measured.unit, measured.kind) if measured else (None,) * 4),
            row.gain_upper_bound_ns,
            " + ".join(row.overlaps_with),
            row.claim,
            row.discriminating_check,
            row.intervention,
            row.disproof,
            row.undo,
        )


def struct_rows(rows: Iterable[msgspec.Struct]) -> Iterable[Row]:
    """Rows of the ``*_COLUMNS`` that follow a struct; sizes in x, y and z as ``128x1x1``."""
    plans: dict[type[msgspec.Struct], list[tuple[str, tuple[str, ...]]]] = {}
    for row in rows:
        kind = type(row)
        if kind not in plans:  # types of fields are resolved once, not for every row
            fields = msgspec.structs.fields(kind)
            plans[kind] = [(field.name, _parts(field.type)) for field in fields]
        values: list[Any] = []
        for name, parts in plans[kind]:
            value = getattr(row, name)
            if parts:
                values += [None] * len(parts) if value is None else [getattr(value, part) for part in parts]
            else:
                values.append(_flat(value))
        yield tuple(values)


def collective_size_rows(diagnosis: Diagnosis) -> Iterable[Row]:
    """The rows of ``COLLECTIVE_SIZE_COLUMNS``, in the order of ``alpha_beta``."""
    for row in diagnosis.alpha_beta:
        kind = row.group, row.op, row.dtype, row.algorithm, row.protocol, row.in_graphs
        for point in row.points:
            measured = point.bytes, point.calls, point.median_ns, point.p05_ns, point.p95_ns
            fitted = point.fitted_ns, *(point.fitted_ci95_ns or (None, None))
            ratio = point.contended_ratio, *(point.contended_ratio_ci95 or (None, None))
            yield (*kind, *measured, *fitted, point.contended_calls, *ratio)


def _flat(value: Any) -> Any:
    """One cell: sizes as ``128x1x1``, lists and figures by key (``key:value``) parted by semicolons."""
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    if isinstance(value, dict):
        return "; ".join(f"{key}:{part}" for key, part in value.items())
    return "; ".join(map(str, value)) if isinstance(value, list) else value


def queue_rows(table: QueueTable | None) -> Iterable[Row]:
    """The rows of ``QUEUE_COLUMNS``; no latency where no launch lies in the bin."""
    if table is None:
        return
    columns = [getattr(table, name).tolist() for name in QUEUE_COLUMNS]
    for row in zip(*columns, strict=True):
        yield row if row[5] else (*row[:6], None, None, None)


def detail_rows(diagnosis: Diagnosis, table: DetailTable | None) -> Iterable[Row]:
    """The rows of ``DETAIL_COLUMNS``."""
    detail = diagnosis.detail
    if table is None or detail is None:
        return
    kinds = [kind.name.lower() for kind in DetailKind]
    columns = [getattr(table, name).tolist() for name in
               ("lane", "kind", "depth", "start_ns", "end_ns", "name", "class_")]  # fmt: skip
    for lane, kind, depth, start, end, name, class_ in zip(*columns, strict=True):
        of_class = table.names[class_] if class_ >= 0 else None
        yield (detail.rank, detail.window, table.lanes[lane], kinds[kind], depth, start, end,
               table.names[name], of_class)  # fmt: skip


def client_window_rows(diagnosis: Diagnosis) -> Iterable[Row]:
    """The rows of ``CLIENT_WINDOW_COLUMNS``; none without a token log."""
    plain = [name for name in ClientWindow.__struct_fields__ if name != "path_ns"]
    for window in diagnosis.service.windows if diagnosis.service is not None else ():
        yield (*(getattr(window, name) for name in plain), *window.path_ns.values())


def token_rows(table: TokenTable | None) -> Iterable[Row]:
    """The rows of ``TOKEN_COLUMNS``; what was not logged is None."""
    if table is None:
        return
    instants = [getattr(table, name) for name in TOKEN_INSTANTS]
    for at in range(len(table)):
        window, buffering, gap = (
            None if value < 0 else value
            for value in (int(table.window[at]), int(table.buffering_ns[at]), int(table.gap_ns[at]))
        )
        parts = [None] * len(TOKEN_PARTS) if gap is None else table.part_ns[at].tolist()
        times = [None if column[at] == NO_EVENT else int(column[at]) for column in instants]
        log = int(table.log[at])
        yield (table.logs[log], table.requests[table.request[at]], int(table.token[at]), window,
               table.zero_ns[log], *times, buffering, gap, *parts)  # fmt: skip


def _frame(rows: Iterable[Row], columns: Sequence[str]) -> pd.DataFrame:
    """Columns with the narrowest nullable type, so that "not captured" never turns ints into floats."""
    table = list(rows)
    series = {name: pd.array([row[i] for row in table]) for i, name in enumerate(columns)}
    return pd.DataFrame(series, columns=list(columns))


def windows(diagnosis: Diagnosis) -> pd.DataFrame:
    """One row per step and rank."""
    return _frame(window_rows(diagnosis), WINDOW_COLUMNS)


def kernels(diagnosis: Diagnosis) -> pd.DataFrame:
    """One row per name of device work and rank."""
    return _frame(kernel_rows(diagnosis), KERNEL_COLUMNS)


def hypotheses(diagnosis: Diagnosis) -> pd.DataFrame:
    """One row per candidate explanation."""
    return _frame(hypothesis_rows(diagnosis), HYPOTHESIS_COLUMNS)


def collectives(diagnosis: Diagnosis) -> pd.DataFrame:
    """One row per group and kind of collective; figures by rank as ``rank:value`` texts."""
    return _frame(struct_rows(diagnosis.collectives), COLLECTIVE_COLUMNS)


def late_ranks(diagnosis: Diagnosis) -> pd.DataFrame:
    """One row per rank that others wait for."""
    return _frame(struct_rows(diagnosis.late_ranks), LATE_RANK_COLUMNS)


def segments(table: SegmentTable) -> pd.DataFrame:
    """One row per path segment; texts are categoricals, so millions of rows stay small."""
    return pd.DataFrame(
        {
            "rank": table.rank,
            "window": table.window,
            "start_ns": table.start_ns,
            "end_ns": table.end_ns,
            "category": _coded(table.category, list(CATEGORY_NAMES.values())),
            "binding": _coded(table.binding, list(BINDING_NAMES.values())),
            "inferred": table.inferred,
            "name": _coded(*_distinct(table.name, table.names)),
            "place": _coded(*_distinct(table.place, table.places)),
            "correlation": _known(table.correlation, table.correlation != 0),
            "event_start_ns": _known(table.event_start_ns, table.event_start_ns != NO_EVENT),
            "late_rank": _known(table.late_rank.astype(np.int64), table.late_rank >= 0),
        },
        columns=list(SEGMENT_COLUMNS),
    )


def _known(values: npt.NDArray[np.int64], known: npt.NDArray[np.bool_]) -> Any:
    return pd.arrays.IntegerArray(values, ~known)


def _coded(codes: npt.NDArray[Any], labels: list[str]) -> pd.Categorical:
    return pd.Categorical.from_codes(codes, categories=pd.Index(labels, dtype="str"))


def _distinct(codes: npt.NDArray[np.int32], names: Sequence[str]) -> tuple[npt.NDArray[Any], list[str]]:
    """Codes into distinct names: two kernels may share one text, a categorical may not."""
    first: dict[str, int] = {}
    remap = np.array([first.setdefault(name, len(first)) for name in names] + [-1], dtype=np.int64)
    return remap[codes], list(first)
