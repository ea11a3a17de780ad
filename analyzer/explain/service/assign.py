"""Which step each token is from.

By the device completion that the log has: the step that ends nearest to it. Else by the emission: the last step that
was complete when the token was emitted, one step per token of a request, in order. An output path that is longer than
a step emits a token when later steps are complete already: then another delay fits better. A delay is preferred where
with it alone every token of whole requests has a step and every step a token, or where the time from completion to
emission scatters clearly less with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.tokens import ABSENT, IntArray

NO_STEP = -1
CLEARLY = 1.25
"""By so much less the delays have to scatter with one assignment than with every other."""
MOST_STEPS_LATE = 4
TRIES_PER_STEP = 2
LEAST_TO_JUDGE = 8
LEAST_COMPLETIONS = 3
MOST_SCATTER = 0.4
"""Of a step. At half a step to either side each completion would fit any step as well as its own."""
FAR_CLEARER = 2.0
"""By so much less the instants have to scatter around other steps for their clock not to be believed."""
MOST_STEPS_OFF = 200
SEVERAL_A_STEP = 0.1
"""More of the emissions of several tokens than this come after too few steps: some step has several (speculation)."""
EVER = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Assignment:
    """``step``: (n,) position among the windows, NO_STEP without one. ``method``: how it was found.

    ``completion`` (by the log's own column), ``fit`` (this delay alone fits), ``latest`` (assumed: a delay longer by
    whole steps fits as well). ``ambiguous``: tokens between steps, that more than one token of the request claims,
    emitted together with others by steps that nothing tells, or without an instant; ``outside``: those from steps
    before or after the windows.
    """

    step: IntArray
    method: str
    ambiguous: int
    outside: int


def by_completion(completion_ns: IntArray, ends_ns: IntArray) -> Assignment:
    """The window that ends nearest, if the completion lies nearer to its end than half of that window away."""
    step = np.full(len(completion_ns), NO_STEP, np.int64)
    known = np.flatnonzero(completion_ns != ABSENT)
    if not len(ends_ns) or not len(known):
        return Assignment(step, "completion", len(completion_ns) - len(known), len(known))
    at = np.clip(np.searchsorted(ends_ns, completion_ns[known]), 1, max(len(ends_ns) - 1, 1))
    before, after = at - 1, np.minimum(at, len(ends_ns) - 1)
    earlier = completion_ns[known] - ends_ns[before] <= ends_ns[after] - completion_ns[known]
    nearest = np.where(earlier, before, after)
    lengths = np.diff(ends_ns)
    length = lengths[np.maximum(nearest - 1, 0)] if len(lengths) else np.zeros(len(nearest), np.int64)
    near = 2 * np.abs(completion_ns[known] - ends_ns[nearest]) <= length
    step[known[near]] = nearest[near]
    within = (completion_ns[known] > ends_ns[0]) & (completion_ns[known] < ends_ns[-1])
    between = int((~near & within).sum())
    return Assignment(step, "completion", between + len(step) - len(known), int((~near).sum()) - between)


def scatter_of(completion_ns: IntArray, step: IntArray, ends_ns: IntArray) -> int | None:
    """How far apart completions lie around the ends of their steps, if too far to tell which step each is from.

    Completions of other steps than the capture's lie anywhere between two ends. None: they tell the steps. Between
    the 10 % and the 90 % quantile, each completion once: tokens of one step are no more than one.
    """
    times, first = np.unique(completion_ns, return_index=True)
    mine = step[first] != NO_STEP
    if mine.sum() < LEAST_COMPLETIONS or len(ends_ns) < 2:
        return None
    low, high = np.quantile(times[mine] - ends_ns[step[first][mine]], (0.1, 0.9))
    scatter = int(high - low)
    return scatter if scatter > MOST_SCATTER * np.median(np.diff(ends_ns)) else None


def better_shift(instants: IntArray, step: IntArray, ends_ns: IntArray, *, earlier: bool) -> int | None:
    """By how many ns the instants lie after steps that they fit far better than their own, if there are such steps.

    Instants by another clock than the steps' lie at the same distance from the wrong ones only as far as steps are
    alike. ``earlier``: whether steps before the own ones count, too. None: nothing speaks against the own steps.
    """
    mine = np.flatnonzero(step != NO_STEP)
    at, one = np.unique(step[mine], return_index=True)  # a token of each step tells enough
    times = instants[mine][one]
    best, off = float("inf"), None
    most = min(MOST_STEPS_OFF, len(ends_ns) - 1)
    for shift in range(-most if earlier else 1, most + 1):
        moved = at + shift
        inside = (moved >= 0) & (moved < len(ends_ns))
        if not shift or inside.sum() < LEAST_TO_JUDGE or 2 * inside.sum() < len(at):
            continue
        spread = _spread(moved[inside], times[inside], ends_ns)
        own = _spread(at[inside], times[inside], ends_ns)  # of the same tokens: others may scatter more
        if FAR_CLEARER * spread < own and spread < best:
            best, off = spread, int(np.median(times[inside] - ends_ns[moved[inside]]))
    return off


def by_emission(
    request: IntArray, emission_ns: IntArray, ends_ns: IntArray, *, whole_requests: bool
) -> Assignment:
    """Tokens (n,) sorted by (request, token) against ``ends_ns``: (w,) ends of windows with work, ascending.

    ``emission_ns`` does not go back within a request. Tokens that were emitted together are from the last step if it
    is the only one since the emission before, from as many steps if just so many lie since then and no step of the log
    has several tokens of a request; else the last of them alone has a step. ``whole_requests``: each has its first.
    """
    n = len(request)
    known = np.flatnonzero(emission_ns != ABSENT)
    if len(ends_ns) < 2 or not len(known):
        return Assignment(np.full(n, NO_STEP, np.int64), "latest", n - len(known), len(known))
    together = _groups(request[known], emission_ns[known])
    first = known[np.flatnonzero(np.diff(together, prepend=-1))]
    usual = int(np.median(np.diff(ends_ns)))
    tries: list[tuple[IntArray, int]] = []
    late = [
        (number * usual // TRIES_PER_STEP, usual) for number in range(MOST_STEPS_LATE * TRIES_PER_STEP + 1)
    ]
    # a run that is emitted as a whole after the last step is another one, however well its tokens may be counted
    overlaps = int(emission_ns[known].min()) <= int(ends_ns[-1])
    for delay, after_end in [*late, (0, EVER if overlaps else usual)]:
        found, ambiguous = latest_steps(request[first], emission_ns[first], ends_ns, delay, after_end)
        tries.append((found, ambiguous))
    guessed = [_spread_out(found, request[first], together) for found, _ in tries]
    spread_out = [steps for steps, _ in guessed]
    perfect = [
        whole_requests
        and _one_to_one(found, len(ends_ns))
        and not any(np.array_equal(found, other) for other in spread_out[:at])
        for at, found in enumerate(spread_out)
    ]
    best, method = _best([found for found, _ in tries], perfect, emission_ns[first], ends_ns)
    step = np.full(n, NO_STEP, np.int64)
    steps, told = guessed[best]
    step[known] = np.where(told, steps, NO_STEP)
    outside = max(0, int((steps == NO_STEP).sum()) - tries[best][1])
    return Assignment(step, method, int((step == NO_STEP).sum()) - outside, outside)


def _groups(request: IntArray, emission_ns: IntArray) -> IntArray:
    """(n,) number of the emission that each token came with."""
    new = (np.diff(request, prepend=-1) != 0) | (np.diff(emission_ns, prepend=emission_ns[0]) != 0)
    return np.cumsum(new).astype(np.int64) - 1


def _spread_out(
    of_emission: IntArray, request: IntArray, together: IntArray
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """(n,) the step of each token, from those of emissions (e,), and whether something tells it; ``request``: (e,)."""
    count = np.bincount(together, minlength=len(of_emission))
    before = np.concatenate(([NO_STEP], of_emission[:-1]))
    follows = (np.diff(request, prepend=-1) == 0) & (before != NO_STEP)
    room = np.where(follows, of_emission - before, count)
    back = np.cumsum(count)[together] - 1 - np.arange(len(together))
    apart = (
        (room >= count)[together] & (of_emission[together] - back >= 0) & (of_emission[together] != NO_STEP)
    )
    result: IntArray = np.where(apart, of_emission[together] - back, of_emission[together])
    one_step = follows & (room == 1)
    several = follows & (count > 1)
    several_a_step = bool((several & (room < count)).sum() > SEVERAL_A_STEP * several.sum())
    one_each = (~follows | (room == count)) & (not several_a_step)
    return result, (back == 0) | one_step[together] | one_each[together]


def _one_to_one(step: IntArray, windows: int) -> bool:
    """Whether every token has a step and every step a token."""
    return bool((step != NO_STEP).all()) and len(np.unique(step)) == windows


def _best(
    tries: list[IntArray], perfect: list[bool], emission_ns: IntArray, ends_ns: IntArray
) -> tuple[int, str]:
    """Which assignment, and whether something decides for it."""
    if sum(perfect) == 1:
        return perfect.index(True), "fit"
    matched = [int((step != NO_STEP).sum()) for step in tries]
    # the last try gives steps to tokens long after the last one: only where all fits
    candidates = [at for at, count in enumerate(matched[:-1]) if 2 * count >= max(matched[:-1])] or [0]
    candidates = [
        at
        for k, at in enumerate(candidates)
        if not any(np.array_equal(tries[at], tries[o]) for o in candidates[:k])
    ]
    spreads = [_spread(tries[at], emission_ns, ends_ns) for at in candidates]
    order = np.argsort(spreads, kind="stable")
    if len(order) > 1 and max(matched) >= LEAST_TO_JUDGE:
        first, second = (spreads[at] for at in order[:2])
        if second > CLEARLY * first:
            return candidates[int(order[0])], "fit"
    return candidates[0], "latest"


def _spread(step: IntArray, emission_ns: IntArray, ends_ns: IntArray) -> float:
    """Scatter of the delays: between the 10 % and the 90 % quantile, at least 1 ns."""
    mine = step != NO_STEP
    if mine.sum() < 2:
        return float("inf")
    low, high = np.quantile(emission_ns[mine] - ends_ns[step[mine]], (0.1, 0.9))
    return max(float(high - low), 1.0)


def latest_steps(
    request: IntArray, emission_ns: IntArray, ends_ns: IntArray, delay_ns: int, after_end_ns: int
) -> tuple[IntArray, int]:
    """The last step at least ``delay_ns`` before each emission; of tokens that share one the earlier ones go back.

    Tokens due longer than ``after_end_ns`` after the last step are of none.
    """
    due = emission_ns - delay_ns
    step = np.searchsorted(ends_ns, due, side="right") - 1
    result = np.full(len(step), NO_STEP, np.int64)
    inside = np.flatnonzero(due - ends_ns[-1] <= after_end_ns)  # of each request those that come first
    if not len(inside):
        return result, 0
    first = np.diff(request[inside], prepend=request[inside[0]] - 1) != 0
    number = np.cumsum(first) - 1
    place = np.arange(len(inside)) - np.flatnonzero(first)[number]
    # Strictly increasing steps, each as late as its token and those after it allow: k_i <= latest_i and
    # k_i <= k_(i+1) - 1, so k_i - i is a running minimum from behind. Requests lie too far apart to touch.
    shift = number * (len(ends_ns) + len(step) + 1) - place
    allowed = np.minimum.accumulate((step[inside] + shift)[::-1])[::-1] - shift
    result[inside] = np.maximum(allowed, NO_STEP)
    return result, int(((allowed < 0) & (step[inside] >= 0)).sum())
