"""Step time and rates against the batch, as measured at each batch size.

The aggregate rate is batch over mean step: one token per sequence and step. Whether it still rises from one batch size
to another is told by Welch's interval of the logarithm of the two rates' ratio.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from analyzer.calculators.decoding import batching as modelled
from analyzer.calculators.memory import NS_PER_S
from analyzer.fits import run_mean
from analyzer.sweep.cells import CellData
from analyzer.sweep.phases import generates
from analyzer.swept import Batching, BatchPoint, Estimated
from analyzer.uncertain import margin_of


@dataclass(frozen=True)
class _Pooled:
    """The runs of one batch size: mean step with its variance and freedom (0: not known)."""

    batch: int
    cells: tuple[str, ...]
    mean: float
    variance: float
    dof: float

    @property
    def ci95(self) -> tuple[float, float] | None:
        if not self.dof:
            return None
        margin = margin_of([(self.variance, self.dof)])
        return self.mean - margin, self.mean + margin


def batching(cells: Sequence[CellData], experts: tuple[int, int] | None) -> list[Batching]:
    """One account per context and cache initialization with two batch sizes or more.

    ``experts``: experts and experts per token, for the union that a batch reads. A phase that does not generate has no
    account.
    """
    groups: dict[tuple[int | None, str | None], list[CellData]] = {}
    for cell in cells:
        if cell.batch.value is not None and generates(cell.phase):
            groups.setdefault((cell.context.value, cell.cache), []).append(cell)
    order = sorted(groups, key=lambda key: (key[0] is None, key[0] or 0, key[1] is None, key[1] or ""))
    found = []
    for context, cache in order:
        pooled = _pooled(groups[context, cache])
        if len(pooled) > 1:
            stops, statement = _stops(pooled)
            found.append(
                Batching(
                    context=context,
                    cache_initialization=cache,
                    points=_points(pooled, experts),
                    stops_at=stops,
                    statement=statement,
                )
            )
    return found


def _pooled(cells: Sequence[CellData]) -> list[_Pooled]:
    by_batch: dict[int, list[CellData]] = {}
    for cell in cells:
        assert cell.batch.value is not None
        by_batch.setdefault(cell.batch.value, []).append(cell)
    return [_pool(batch, by_batch[batch]) for batch in sorted(by_batch)]


def _pool(batch: int, cells: Sequence[CellData]) -> _Pooled:
    """Several runs: their scatter, at least that of their steps. One run: its steps alone."""
    runs = [run_mean(batch, cell.steps) for cell in cells]
    names = tuple(cell.name for cell in cells)
    mean = float(np.mean([run.mean for run in runs]))
    variances = [run.variance for run in runs if run.variance is not None]
    within = sum(variances) / len(runs) ** 2
    if len(runs) > 1:
        between = float(np.var([run.mean for run in runs], ddof=1)) / len(runs)
        return _Pooled(batch, names, mean, max(between, within), len(runs) - 1)
    return _Pooled(batch, names, mean, within, runs[0].dof)


def _points(pooled: Sequence[_Pooled], experts: tuple[int, int] | None) -> list[BatchPoint]:
    marginal: list[Estimated | None] = [None, *(_marginal(one, two) for one, two in pairwise(pooled))]
    return [
        BatchPoint(
            batch=one.batch,
            cells=list(one.cells),
            step_ns=Estimated(value=one.mean, ci95=one.ci95),
            tokens_per_s=_rate(one, one.batch),
            tokens_per_s_per_stream=_rate(one, 1),
            marginal_ns=added,
            expert_union=_union(one, experts),
        )
        for one, added in zip(pooled, marginal, strict=True)
    ]


def _rate(one: _Pooled, tokens: int) -> Estimated:
    ends = one.ci95
    known = ends is not None and ends[0] > 0
    return Estimated(
        value=tokens * NS_PER_S / one.mean,
        ci95=(tokens * NS_PER_S / ends[1], tokens * NS_PER_S / ends[0]) if known and ends else None,
    )


def _marginal(one: _Pooled, two: _Pooled) -> Estimated:
    added = two.batch - one.batch
    value = (two.mean - one.mean) / added
    if not (one.dof and two.dof):
        return Estimated(value=value, ci95=None)
    margin = margin_of([(one.variance, one.dof), (two.variance, two.dof)]) / added
    return Estimated(value=value, ci95=(value - margin, value + margin))


def _union(one: _Pooled, experts: tuple[int, int] | None) -> float | None:
    if experts is None:
        return None
    return modelled(one.batch, one.mean, experts=experts[0], experts_per_token=experts[1]).expert_union


def _rises(one: _Pooled, two: _Pooled) -> bool:
    """Whether the larger batch is shown to have the higher aggregate rate."""
    gain = math.log(two.batch / one.batch) + math.log(one.mean / two.mean)
    margin = margin_of([(run.variance / run.mean**2, run.dof) for run in (one, two)])
    return gain - margin > 0


def _stops(pooled: Sequence[_Pooled]) -> tuple[int | None, str]:
    if not all(one.dof for one in pooled):
        return None, "Too few steps to tell whether the aggregate rate still rises."
    largest = pooled[-1].batch
    for at, one in enumerate(pooled[:-1]):
        if not any(_rises(one, later) for later in pooled[at + 1 :]):
            text = f"No batch above {one.batch:,} is shown to have a higher aggregate rate, up to {largest:,}"
            return one.batch, f"{text}: between these sizes, at this context, within the noise."
    return (
        None,
        f"The aggregate rate still rises at the largest batch measured, {largest:,}; where it stops is not known.",
    )
