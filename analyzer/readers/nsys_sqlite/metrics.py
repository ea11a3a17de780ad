"""Sampled GPU counters.

Documentation only: no file with these tables was at hand. GPU_METRICS with TARGET_INFO_GPU_METRICS follows
the exporter's schema reference (2026.4), which also says that the GPU id is the lowest byte of ``typeId``;
the JSON form in GENERIC_EVENTS (nsys 2022) follows descriptions of real exports.
"""

from __future__ import annotations

import json

import numpy as np
import sqlalchemy as sa

from analyzer.arrays import group
from analyzer.model import CodeArray, MetricTable
from analyzer.readers.nsys_sqlite.bulk import NO_TIME, Column, Database
from analyzer.readers.nsys_sqlite.ledger import Ledger
from analyzer.readers.nsys_sqlite.strings import Strings

_GPU_ID = 0xFF
_GPU_COUNTER = "%SM%Active%"  # what tells GPU metrics among generic events


def has_metrics(database: Database) -> bool:
    """Whether the export has a place for GPU counters."""
    return database.has("GPU_METRICS", "timestamp", "value") or _has_generic(database)


def read_metrics(database: Database, strings: Strings, ledger: Ledger) -> dict[int, MetricTable]:
    """Counters by GPU id (TARGET_INFO_GPU.id), sorted by time."""
    if database.has("GPU_METRICS", "timestamp", "typeId", "metricId", "value"):
        return _from_table(database, strings, ledger)
    return _from_json(database, strings, ledger) if _has_generic(database) else {}


def _from_table(database: Database, strings: Strings, ledger: Ledger) -> dict[int, MetricTable]:
    columns = (Column("timestamp", missing=NO_TIME), Column("typeId"), Column("metricId"))
    fields = database.integers("GPU_METRICS", columns)
    values = database.reals("GPU_METRICS", "value")
    rows = database.rows("TARGET_INFO_GPU_METRICS", ("typeId", "metricId", "metricName"))
    names: dict[tuple[int, ...], str] = {(kind, metric): str(name) for kind, metric, name in rows if name}
    keys, inverse = group([fields["typeId"], fields["metricId"]])
    codes = [strings.intern(names.get(key, f"<metric {key[1]}>")) for key in keys]
    lookup = np.array(codes, np.int32)
    metric = lookup[inverse] if len(inverse) else np.empty(0, np.int32)
    usable = (fields["timestamp"] != NO_TIME) & np.isfinite(values)
    ledger.add(
        "bad-metric-sample",
        int((~usable).sum()),
        "Counter samples without a time or a value are left out.",
        "GPU_METRICS",
        len(usable),
    )
    gpu = fields["typeId"] & _GPU_ID
    return {
        int(number): _sorted(fields["timestamp"], metric, values, usable & (gpu == number))
        for number in np.unique(gpu)
    }


def _sorted(
    times: np.ndarray[tuple[int], np.dtype[np.int64]],
    metric: CodeArray,
    values: np.ndarray[tuple[int], np.dtype[np.float64]],
    mask: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> MetricTable:
    table = MetricTable(times[mask], metric[mask], values[mask])
    return table.take(np.argsort(table.time_ns, kind="stable"))


def _has_generic(database: Database) -> bool:
    if not database.has("GENERIC_EVENTS", "typeId", "data", "rawTimestamp"):
        return False
    return bool(database.rows("GENERIC_EVENTS", ("typeId",), _is_gpu_sample(), limit=1))


def _is_gpu_sample() -> sa.ColumnElement[bool]:
    return sa.column("data").like(_GPU_COUNTER)


def _from_json(database: Database, strings: Strings, ledger: Ledger) -> dict[int, MetricTable]:
    """One row per sample, a JSON object of metric name → value as text; ``timestamp`` is NULL there."""
    samples: dict[int, tuple[list[int], list[int], list[float]]] = {}
    bad = 0
    columns = ("rawTimestamp", "timestamp", "typeId", "data")
    rows = database.rows("GENERIC_EVENTS", columns, _is_gpu_sample())
    for raw, time, kind, text in rows:
        moment = time if time is not None else raw
        try:
            counters = json.loads(text)
            pairs = [(strings.intern(str(name)), float(value)) for name, value in counters.items()]
        except (ValueError, TypeError, AttributeError):
            bad += 1
            continue
        if not isinstance(moment, int) or not isinstance(kind, int):
            bad += 1
            continue
        times, metrics, values = samples.setdefault(kind & _GPU_ID, ([], [], []))
        times.extend([moment] * len(pairs))
        metrics.extend(code for code, _ in pairs)
        values.extend(value for _, value in pairs)
    ledger.add(
        "bad-metric-sample", bad, "Counter samples that are no JSON object of numbers are left out.",
        "GENERIC_EVENTS", len(rows),
    )  # fmt: skip
    result = {}
    for gpu, (times, metrics, values) in samples.items():
        table = MetricTable(
            np.array(times, np.int64), np.array(metrics, np.int32), np.array(values, np.float64)
        )
        result[gpu] = table.take(np.argsort(table.time_ns, kind="stable"))
    return result
