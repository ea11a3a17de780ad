"""Figures over tokens: stages of their way, parts of the gaps between them, each with its interval."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from analyzer.diagnosis import GapPart, Stage
from analyzer.explain.service.assign import NO_STEP
from analyzer.explain.service.clocks import Offset
from analyzer.explain.service.gaps import Gaps
from analyzer.explain.service.placed import Placed
from analyzer.stats import quantile
from analyzer.tables import TOKEN_PARTS
from analyzer.tokens import ABSENT, IntArray

STAGES = ("output", "transport", "buffering")
FloatArray = npt.NDArray[np.float64]
DRAWS = 1_000
MOST_RESAMPLED = 4_000
"""Groups; of more the mean is as good as normal."""
NORMAL_95 = 1.96


def stages(logs: Sequence[Placed]) -> list[Stage]:
    """Every stage that any log tells. What several tokens share counts once."""
    result = []
    for name in STAGES:
        values, groups, doubt, above, at_least = [], [], [], False, False
        for number, placed in enumerate(logs):
            found, group = _of_stage(placed, name)
            if not len(found):
                continue
            values.append(found)
            groups.append(group + (number << 48))
            doubt.append((len(found), *_doubt(placed, name, found)))
            above |= _above(placed, name)
            at_least |= _at_least(placed, name)
        if values:
            stage = _stage(name, np.concatenate(values), np.concatenate(groups), doubt, above=above)
            result.append(msgspec.structs.replace(stage, at_least=at_least))
    return result


def _at_least(placed: Placed, name: str) -> bool:
    """Whether more of the stage may lie where nothing tells of it."""
    if name == "output":
        return placed.assumed
    return name == "buffering" and bool(placed.way.held_unknown().any())


def _of_stage(placed: Placed, name: str) -> tuple[IntArray, IntArray]:
    """Durations and the step (else the row) each is from: one per emission, per read, per token."""
    duration = placed.way.stages()[name]
    shared = {"output": placed.way.emission_ns, "transport": placed.way.receipt_ns}.get(name)
    rows = np.flatnonzero(duration != ABSENT)
    if shared is not None and len(rows):
        rows = rows[::-1]  # the last of those that share it: its step is known for certain
        key = np.stack([placed.way.request[rows], shared[rows]], axis=1)
        rows = np.sort(rows[np.unique(key, axis=0, return_index=True)[1]])
    step = placed.step[rows]
    return duration[rows], np.where(step == NO_STEP, rows + (1 << 32), step)


def _doubt(placed: Placed, name: str, values: IntArray) -> tuple[int, int]:
    """By how much the mean may be too large and too small for the log's resolution and the clocks."""
    late, read_late = placed.log.resolution_ns - 1, placed.log.receipt_resolution_ns - 1
    offset = _offset(placed, name)
    if name == "buffering":
        return late + read_late, late + read_late
    low, high = (0, late) if name == "output" else (late, read_late)
    if offset is not None and not offset.same:
        # the smallest one seen is larger than the smallest there is, by about the distance to the next
        two = np.partition(values, 1)[:2] if len(values) > 1 else np.zeros(2, np.int64)
        high += offset.drift_doubt_ns + int(two.max() - two.min())
        low += offset.drift_excess_ns
    return low, high


def _offset(placed: Placed, name: str) -> Offset | None:
    return {"output": placed.to_server, "transport": placed.to_client}.get(name)


def _above(placed: Placed, name: str) -> bool:
    offset = _offset(placed, name)
    return offset is not None and not offset.same


def _stage(
    name: str, values: IntArray, groups: IntArray, doubt: Sequence[tuple[int, int, int]], *, above: bool
) -> Stage:
    low, high = mean_interval(values, groups)
    count = sum(n for n, _, _ in doubt)
    return Stage(
        name=name,
        count=len(values),
        mean_ns=round(float(values.mean())),
        mean_interval_ns=(
            max(0, low - sum(n * less for n, less, _ in doubt) // count),
            high + -(-sum(n * more for n, _, more in doubt) // count),
        ),
        median_ns=quantile(values, 0.5),
        p95_ns=quantile(values, 0.95),
        above_smallest=above,
    )


def mean_interval(values: IntArray, groups: IntArray) -> tuple[int, int]:
    """95 % interval of the mean over groups (steps), whose values hang together: studentized bootstrap, seeded.

    Delays are skewed to the right, and a percentile interval of so few steps ends too low; dividing by each sample's
    own standard error mends that (Efron, Tibshirani: An Introduction to the Bootstrap, 12.5). One group: the mean.
    """
    _, inverse = np.unique(groups, return_inverse=True)
    sums = np.asarray(np.bincount(inverse, weights=values.astype(np.float64)), np.float64)
    counts = np.asarray(np.bincount(inverse), np.float64)
    mean, error = _mean_and_error(sums[None], counts[None])
    if len(sums) < 2 or error[0] == 0:
        return int(np.floor(mean[0])), int(np.ceil(mean[0]))
    low, high = -NORMAL_95, NORMAL_95
    if len(sums) <= MOST_RESAMPLED:
        generator = np.random.default_rng(20240229)
        rows = generator.integers(0, len(sums), size=(DRAWS, len(sums)))
        means, errors = _mean_and_error(sums[rows], counts[rows])
        distance = (means - mean[0])[errors > 0] / errors[errors > 0]
        if len(distance):
            low, high = np.quantile(distance, (0.025, 0.975)).tolist()
    return int(np.floor(mean[0] - high * error[0])), int(np.ceil(mean[0] - low * error[0]))


def _mean_and_error(sums: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(d,) mean of each sample (d, g) of groups and its standard error as a ratio, linearized."""
    total = counts.sum(axis=1)
    mean = sums.sum(axis=1) / total
    n = sums.shape[1]
    left = sums - mean[:, None] * counts
    error = np.sqrt((left * left).sum(axis=1) * (n / max(n - 1, 1))) / total
    return mean, error


def gap_parts(logs: Sequence[Placed], gaps: Sequence[Gaps], groups: IntArray) -> list[GapPart]:
    """The parts of all gaps of all logs; ``groups``: (g,) the step of each gap."""
    part_ns = np.concatenate([one.part_ns for one in gaps])
    if not len(part_ns):
        return []
    whole = int(part_ns.sum()) // len(part_ns)
    doubts = [(len(one.token), _gap_doubt(placed, whole)) for placed, one in zip(logs, gaps, strict=True)]
    return [
        GapPart(
            name=name,
            total_ns=int(part_ns[:, at].sum()),
            median_ns=quantile(part_ns[:, at], 0.5),
            p95_ns=quantile(part_ns[:, at], 0.95),
            mean_interval_ns=_widened(
                mean_interval(part_ns[:, at], groups),
                [(n, *doubt.get(name, (0, 0))) for n, doubt in doubts],
                whole,
            ),
        )
        for at, name in enumerate(TOKEN_PARTS)
    ]


def _widened(
    interval: tuple[int, int], doubts: Sequence[tuple[int, int, int]], most_ns: int
) -> tuple[int, int]:
    """An interval of a mean, by what each log's gaps (how many) may be too large and too small; at most ``most_ns``."""
    count = sum(n for n, _, _ in doubts)
    low = interval[0] - sum(n * less for n, less, _ in doubts) // count
    high = interval[1] + -(-sum(n * more for n, _, more in doubts) // count)
    return max(0, low), max(interval[1], min(high, most_ns))


def _gap_doubt(placed: Placed, most_ns: int) -> dict[str, tuple[int, int]]:
    """By part: by how much its mean may be too large and too small, at most ``most_ns``.

    An instant that is logged too coarsely moves time between the parts on its both sides. A constant delay that was
    taken for clock offset is missing in its own part, and what comes before it is too large by as much.
    """
    emitted, read = placed.log.resolution_ns - 1, placed.log.receipt_resolution_ns - 1
    to_server, to_client = (
        0 if one is None else one.hidden_ns(most_ns) for one in (placed.to_server, placed.to_client)
    )
    assumed = most_ns if placed.assumed else 0
    before = min(to_server + to_client, most_ns)
    doubt = {
        "device": (before + read + assumed, read),
        "output": (to_client + read, to_server + emitted + read + assumed),
        "transport": (emitted + read, to_client + read),
        "buffering": (before + emitted + read, emitted + read),
        "unsplit": (before + read, read + assumed),
    }
    return {name: (min(less, most_ns), min(more, most_ns)) for name, (less, more) in doubt.items()}
