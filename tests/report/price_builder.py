"""A literal price: all-reduces of three sizes that fit 10 us + bytes / 200 GB/s, and one kind without a fit."""

from __future__ import annotations

from typing import Any

from analyzer.diagnosis import AlphaBeta, CollectiveCost, PriceInterval, PriceOfSize

MS = 1_000_000


def point(nbytes: int, median_ns: int, **changes: Any) -> PriceOfSize:
    values: dict[str, Any] = {
        "bytes": nbytes,
        "calls": 40,
        "median_ns": median_ns,
        "p05_ns": median_ns - 300,
        "p95_ns": median_ns + 2_500,
        "fitted_ns": 10_000 + nbytes / 200,
        "fitted_ci95_ns": (9_900 + nbytes / 201, 10_100 + nbytes / 199),
        "contended_calls": 8,
        "contended_ratio": 1.375,
        "contended_ratio_ci95": (1.25, 1.5),
    }
    return PriceOfSize(**{**values, **changes})


def fit(**changes: Any) -> AlphaBeta:
    values: dict[str, Any] = {
        "group": "2",
        "description": "tp",
        "op": "all_reduce",
        "dtype": "BFloat16",
        "family": "nccl",
        "algorithm": None,
        "protocol": None,
        "in_graphs": False,
        "ranks": [0, 1, 2, 3],
        "hosts": ["node0"],
        "topology": None,
        "alpha_ns": 10_000.0,
        "beta_bytes_per_s": 200e9,
        "ci95": PriceInterval(alpha_ns=(9_900.0, 10_100.0), beta_bytes_per_s=(199e9, 201e9)),
        "sizes": 3,
        "range_bytes": (8_192, 2_097_152),
        "calls": 130,
        "calls_split": 120,
        "calls_contended": 24,
        "contended_ratio": 1.375,
        "contended_ratio_ci95": (1.25, 1.5),
        "calls_apart": 2,
        "basis": "uncontended",
        "interval_over": "steps",
        "size_ratio": 256.0,
        "latency_ratio": 2.04,
        "residual_spread": 0.012,
        "reason_if_absent": None,
        "remedy": None,
        "notes": [],
        "points": [point(8_192, 10_041), point(131_072, 10_655), point(2_097_152, 20_486)],
    }
    return AlphaBeta(**{**values, **changes})


def no_fit(**changes: Any) -> AlphaBeta:
    values: dict[str, Any] = {
        "op": "all_gather",
        "alpha_ns": None,
        "beta_bytes_per_s": None,
        "ci95": None,
        "sizes": 1,
        "range_bytes": None,
        "contended_ratio": None,
        "contended_ratio_ci95": None,
        "basis": None,
        "interval_over": None,
        "size_ratio": None,
        "latency_ratio": None,
        "residual_spread": None,
        "reason_if_absent": "all calls have one size, 8,192 bytes: it does not tell alpha from beta",
        "remedy": "capture steps in which this collective has several sizes",
        "points": [
            point(
                8_192,
                9_000,
                fitted_ns=None,
                fitted_ci95_ns=None,
                contended_ratio=None,
                contended_ratio_ci95=None,
            )
        ],
    }
    return fit(**{**values, **changes})


def cost(**changes: Any) -> CollectiveCost:
    """4 calls of 58.7 us in each of two steps of 10 ms; half of the product lies on the path."""
    values: dict[str, Any] = {
        "phase": "decode",
        "scope": "global",
        "rank": None,
        "group": "2",
        "op": "all_reduce",
        "windows": 2,
        "step_ns_total": 20 * MS,
        "calls": 8,
        "calls_per_step": 4.0,
        "median_duration_ns": 58_700,
        "naive_ns_total": 469_600,
        "naive_transfer_ns_total": 320_000,
        "path_ns_total": {"collective.transfer": 200_000, "collective.wait": 0, "collective.unsplit": 34_800},
    }
    return CollectiveCost(**{**values, **changes})


def named(text: str) -> dict[str, Any]:
    """The fields that a capture's or a manifest's texts reach."""
    return {"group": text, "description": text, "op": text, "dtype": text, "algorithm": text, "protocol": text,
            "hosts": [text], "topology": text, "notes": [text]}  # fmt: skip
