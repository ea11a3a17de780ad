"""Which numbers a report shows, and every form in which a number of the JSON may be shown.

A shown number is in the JSON if it is one of its values, one of them per step (total over windows) or as a
share of its own total; sums are allowed only of a budget's own parts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import accumulate
from typing import Any

from analyzer.report.labels import DEVICE_BUSY, DEVICE_PATH, PATH_GROUPS

NUMBER = re.compile(r"(?<![\w.,#-])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
NOT_FIGURES = (
    r"`[^`]*`",  # names and commands
    r"\]\([^)]*\)",  # link targets
    r"^#+ \d+\. ",  # numbering of findings
    r"\b\d[\d,]* (?:more|other|smaller) (?:\w+)",  # counts of what a table leaves out
    r"and \d+ more",
    r"tracebound [\d.]+",
    r"\b95 % quantile",
    r"(?:profiler|schema|roctracer|CUDA|cuda\w*|nsys|torch\w*) ?v?[\d.]+\w*",  # versions
    r"with 48 KiB",
)


def numbers_of(report: str) -> list[str]:
    """The figures in a report, as shown, without those inside names, links and versions."""
    for pattern in NOT_FIGURES:
        report = re.sub(pattern, " ", report, flags=re.MULTILINE)
    return NUMBER.findall(report)


def shown_forms(data: Any) -> set[str]:
    """Every text that may stand for a number of the JSON."""
    forms = set()
    for value in _numbers(data):
        forms |= _forms(value)
    for text in _texts(data):
        forms |= set(NUMBER.findall(text))
    for number in _derived(data):
        forms |= _forms(number)
    return forms


def _numbers(data: Any) -> Iterator[float]:
    if isinstance(data, bool) or data is None:
        return
    if isinstance(data, int | float):
        yield data
    elif isinstance(data, dict):
        for value in data.values():
            yield from _numbers(value)
    elif isinstance(data, list):
        yield len(data)
        for value in data:
            yield from _numbers(value)


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield key
            yield from _texts(value)
    elif isinstance(data, list):
        for value in data:
            yield from _texts(value)


def _forms(value: float | Fraction) -> set[str]:
    """A value as it is, as a share in percent, and as ns in milliseconds or microseconds."""
    exact = Fraction(value)
    forms = {f"{value:,}", str(value)} if isinstance(value, int) else {f"{float(value):,.6g}"}
    for scale, digits in (
        (1, (0, 1)),
        (100, (0, 1, 2)),
        (Fraction(1, 10**6), (3,)),
        (Fraction(1, 1000), (0, 1, 2)),
    ):
        for decimals in digits:
            units = exact * scale * 10**decimals
            # largest-remainder rounding may show the neighbour on either side
            for rounded in {int(units), int(units) + 1, int(units + Fraction(1, 2))}:
                whole, rest = divmod(rounded, 10**decimals)
                forms.add(f"{whole:,}.{rest:0{decimals}d}" if decimals else f"{whole:,}")
    return forms


def _derived(data: dict[str, Any]) -> Iterator[int | Fraction]:
    for row in data["budget"]:
        yield from _of_budget(row)
    for name in ("launch_bill", "host_culprits", "host_rollups"):
        for row in data[name]:
            yield from _per_step(row)
    for row in data["launch_bill"]:
        if row["kernels_total"] and row["kernels_in_graphs_total"] is not None:
            yield Fraction(row["kernels_in_graphs_total"], row["kernels_total"])
    for row in data["classes"]:
        peers = [r for r in data["classes"] if (r["rank"], r["phase"]) == (row["rank"], row["phase"])]
        yield from _ratio(row["path_ns"], sum(peer["path_ns"] for peer in peers))
    for row in data["small_kernels"]:
        yield from _ratio(row["kernels_total"], row["of_kernels"])
        yield from _ratio(row["total_ns"], row["of_total_ns"])
    for rank in data["ranks"]:
        span = rank["device_span"]
        if span is not None:
            yield span["end_ns"] - span["start_ns"]
        yield from (rank["unlinked_events"] - rank["prior_events"], rank["linked_events"])
        on_path = sum(row["path_ns"] for row in data["kernels"] if row["rank"] == rank["rank"])
        yield from (Fraction(row["path_ns"], on_path) for row in data["kernels"] if on_path)
    for key in ("device_events", "unlinked_events", "prior_events"):
        yield sum(rank[key] for rank in data["ranks"])
    events = sum(rank["device_events"] for rank in data["ranks"])
    yield from _ratio(sum(rank["unlinked_events"] for rank in data["ranks"]), events)
    yield from _of_evidence(data)
    yield from _between_ranks(data)
    yield from _prices(data)
    for phase in {row["phase"] for row in data["budget"]}:
        yield sum(row["phase"] == phase and row["scope"] == "rank" for row in data["budget"])
    yield from _counts(data)
    yield from (Fraction(row["duration_ns"], row["median_ns"]) for row in data["outliers"])


def _of_evidence(data: dict[str, Any]) -> Iterator[int | Fraction]:
    """Lengths of the segments named as evidence, and what they are of the whole quantity."""
    for row in data["hypotheses"]:
        for entry in row["evidence"]:
            length = entry["end_ns"] - entry["start_ns"]
            yield length
            yield from _ratio(length, round(row["measured"]["value"] * row["measured"]["windows"]))


def _prices(data: dict[str, Any]) -> Iterator[int | Fraction]:
    """Costs per step and as shares of the step, bandwidths in GB/s and ratios with two decimals."""
    for row in data["collective_costs"]:
        path = sum(row["path_ns_total"].values())
        for ns in (row["naive_ns_total"], row["naive_transfer_ns_total"] or 0, path):
            yield from _ratio(ns, row["windows"])
            yield from _ratio(ns, row["step_ns_total"])
        yield from (1000 * ratio for ratio in _ratio(row["naive_ns_total"], path))
    for row in data["alpha_beta"]:
        ends = (row["ci95"] or {}).get("beta_bytes_per_s", ())
        yield from (Fraction(value) / 10**6 for value in (row["beta_bytes_per_s"], *ends) if value)
        points = [row, *row["points"]]
        ratios = [
            value for of in points for value in (of["contended_ratio"], *(of["contended_ratio_ci95"] or ()))
        ]
        yield from (Fraction(value) * 1000 for value in (*ratios, row["latency_ratio"]) if value)
    yield sum(row["reason_if_absent"] is not None for row in data["alpha_beta"])


def _between_ranks(data: dict[str, Any]) -> Iterator[Fraction]:
    """How much of the calls' time is waiting, and how much of the global path lies on each rank."""
    for row in data["collectives"]:
        yield from _ratio(sum((row["wait_total_ns"] or {}).values()), row["total_ns"])
    windows = (data["global"] or {"windows": []})["windows"]
    for phase in {window["phase"] for window in windows}:
        mine = [window for window in windows if window["phase"] == phase]
        on_rank: Counter[str] = Counter()
        for window in [window for window in mine if not window["warmup"] and not window["outlier"]] or mine:
            on_rank.update(window["rank_ns"])
        for time in on_rank.values():
            yield from _ratio(time, on_rank.total())


def _counts(data: dict[str, Any]) -> Iterator[int]:
    """How many things there are, by what tells them apart."""
    devices = [(rank["device"] or {}).get("name") for rank in data["ranks"]]
    yield from (devices.count(name) for name in set(devices))
    yield sum(rank["device"] is None for rank in data["ranks"])
    yield from (len({row["reason"] for row in data["quality"]}), 0)
    kinds = [(row["kind"], row["profiler_version"], row["schema_version"]) for row in data["inputs"]]
    yield from (kinds.count(kind) for kind in set(kinds))
    limit = data["constants"]["thresholds"].get("small_grid_coverage", 0)
    yield sum(
        row["path_ns"] > 0 and (row["coverage"] or 1) < limit and not row["class"].startswith("collective")
        for row in data["kernel_shapes"]
    )
    yield from (sum(row["path_ns"] > 0 and row["coverage"] is not None and row["coverage"] < limit
                    and not row["class"].startswith("collective") and row["rank"] == rank["rank"]
                    for row in data["kernel_shapes"]) for rank in data["ranks"])  # fmt: skip


def _of_budget(row: dict[str, Any]) -> Iterator[int | Fraction]:
    """Means per step, shares of the step, and sums of the budget's own parts."""
    windows, step = max(row["windows"], 1), row["step_ns_total"]
    path, exposed = row["path_ns_total"], row["exposed_ns_total"] or {}
    yield row["windows_excluded"] - row["outliers"]
    yield Fraction(step + row["outlier_ns_total"], windows + row["outliers"])
    smallest_first = accumulate(sorted(path.values()))
    groups = [sum(path.get(name, 0) for name in names) for names in PATH_GROUPS.values()]
    sums = [sum(path.get(name, 0) for name in DEVICE_PATH), sum(exposed.get(name, 0) for name in DEVICE_BUSY)]
    for total in (
        step,
        row["inferred_ns_total"],
        *path.values(),
        *exposed.values(),
        *smallest_first,
        *groups,
        *sums,
    ):
        yield from (total, Fraction(total, windows))
        yield from _ratio(total, step)
    # a share of shown shares: each may be off by one unit
    for total in sums:
        yield from (Fraction(total, step) + Fraction(off, 1000) for off in range(-6, 7) if step)


def _per_step(row: dict[str, Any]) -> Iterator[Fraction]:
    for key, value in row.items():
        if isinstance(value, int) and key not in ("windows", "rank"):
            yield Fraction(value, max(row["windows"], 1))


def _ratio(part: int, whole: int) -> Iterable[Fraction]:
    return [Fraction(part, whole)] if whole else []
