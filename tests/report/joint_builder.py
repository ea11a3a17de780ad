"""A literal joint answer: rank 1 of 4 is late in 14 of 16 calls of group tp, because its CPU schedules."""

from __future__ import annotations

from typing import Any

from analyzer.diagnosis import Budget, Collective, GlobalAccount, GlobalWindow, LateRank, Spread
from tests.report.builder import path
from tests.report.price_builder import cost, fit, named, no_fit

MS = 1_000_000


def collective(**changes: Any) -> Collective:
    values: dict[str, Any] = {
        "group": "2",
        "description": "tp",
        "parallelism": "tensor",
        "op": "all_reduce",
        "dtype": "BFloat16",
        "bytes": 65_536,
        "family": "nccl",
        "in_graphs": False,
        "ranks": [0, 1, 2, 3],
        "missing_ranks": [],
        "calls_total": 16,
        "calls_per_step": 8.0,
        "total_ns": 12 * MS,
        "split_calls": 16,
        "unsplit": {},
        "class_": "skew-dominated",
        "class_note": "3 calls of equal size without skew take 21000 ns",
        "transfer_ns": Spread(median=22_000, p95=26_000),
        "wait_ns": {0: 180_000, 1: 0, 2: 175_000, 3: 190_000},
        "wait_total_ns": {0: 3 * MS, 1: 10_000, 2: 3 * MS, 3: 3 * MS},
        "arrival_spread_ns": Spread(median=190_000, p95=410_000),
        "duration_ns": {0: 202_000, 1: 22_000, 2: 197_000, 3: 212_000},
        "shortest_ns": Spread(median=22_000, p95=25_000),
        "baseline_ns": 21_000,
        "baseline_calls": 3,
        "late_rank_counts": {0: 0, 1: 14, 2: 1, 3: 0},
        "late_undecided": 1,
        "late_rank_steps": {1: 2},
        "steps": 2,
        "latest_observed": {},
        "observed_only": False,
        "assumed_complete": False,
    }
    return Collective(**{**values, **changes})


def late_rank(**changes: Any) -> LateRank:
    values: dict[str, Any] = {
        "rank": 1,
        "group": "2",
        "late_calls": 14,
        "alone_last_calls": 14,
        "of_calls": 16,
        "late_steps": 2,
        "of_steps": 2,
        "behind_ns": Spread(median=178_000, p95=400_000),
        "wait_total_ns": 9 * MS,
        "cause_ns": {"host.framework": 2 * MS, "launch.dispatch": 500_000},
        "cause": "its CPU did other work than submitting (80 % of that time)",
        "suspects": ["scheduler.step", "aten::mm"],
    }
    return LateRank(**{**values, **changes})


def global_window(index: int = 0, **changes: Any) -> GlobalWindow:
    values: dict[str, Any] = {
        "index": index,
        "step": f"decode {index}",
        "phase": "decode",
        "start_ns": (20 + 10 * index) * MS,
        "end_ns": (30 + 10 * index) * MS,
        "warmup": False,
        "warmup_reasons": [],
        "empty": False,
        "path_ns": path(kernel=4 * MS, collective_transfer=MS, host_framework=3 * MS, launch_dispatch=2 * MS),
        "inferred_ns": 0,
        "windows": {0: index, 1: index, 2: index, 3: index},
        "last_rank": 3,
        "ranks_visited": [1, 3],
        "rank_ns": {0: 0, 1: 7 * MS, 2: 0, 3: 3 * MS},
        "late_ranks": [1],
        "late_calls": {1: 7},
        "late_wait_ns": {1: 2 * MS},
        "waited_ns": 2 * MS,
        "waited_at_most_ns": 2 * MS,
        "launch_stagger_ns": 120_000,
    }
    return GlobalWindow(**{**values, **changes})


def joint(text: str | None = None) -> dict[str, Any]:
    """The fields of a diagnosis that several ranks fill; ``text`` wherever a capture's text can stand."""
    if text is None:
        rows, late, phase, step = [collective()], [late_rank()], "decode", {}
        prices, costs = [fit(notes=["a note on this fit"]), no_fit()], [cost()]
    else:
        odd = {
            "group": text,
            "description": text,
            "op": text,
            "dtype": text,
            "family": text,
            "class_note": text,
        }
        rows = [collective(**odd), collective(**odd, split_calls=0, unsplit={text: 16}, transfer_ns=None)]
        late = [late_rank(group=text, cause=text, suspects=[text])]
        prices = [fit(**named(text)), no_fit(**named(text), reason_if_absent=text, remedy=text)]
        costs = [cost(phase=text, group=text, op=text)]
        phase, step = text, {"phase": text, "step": text, "warmup_reasons": [text]}
    windows = [global_window(0, **step), global_window(1, **step)]
    return {
        "global_": GlobalAccount(reference_rank=0, windows=windows),
        "collectives": rows,
        "late_ranks": late,
        "alpha_beta": prices,
        "collective_costs": costs,
        "joint_budget": Budget(
            phase=phase,
            scope="global",
            rank=None,
            windows=2,
            windows_excluded=0,
            step_ns_total=20 * MS,
            path_ns_total={name: 2 * ns for name, ns in windows[0].path_ns.items()},
            exposed_ns_total=None,
            inferred_ns_total=0,
            note="",
        ),
    }
