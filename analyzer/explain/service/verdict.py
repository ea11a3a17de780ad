"""`output-path` where a token log was joined: its share is of the client's step, not of the device's.

The lower end is what the way after the device holds for certain: where clocks are not one, only what exceeds the
smallest delay. The upper end adds what is unknown, and what a constant delay may hide behind a clock offset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from analyzer.categories import CATEGORY_NAMES, Category
from analyzer.diagnosis import ClientWindow, Hypothesis, Measured, Service, Share
from analyzer.explain.service.client_windows import SCOPE, column, used_windows
from analyzer.explain.verdicts.hypotheses import decide
from analyzer.explain.verdicts.shares import WindowShares, share_of
from analyzer.model import IntArray

ID = "output-path"
QUANTITY = "host.output + service.* on the path to the client's receipt"
_MINE = tuple(
    CATEGORY_NAMES[category]
    for category in (
        Category.HOST_OUTPUT,
        Category.SERVICE_OUTPUT,
        Category.SERVICE_TRANSPORT,
        Category.SERVICE_BUFFERING,
    )
)


def with_service(
    rows: Sequence[Hypothesis], service: Service, limits: Mapping[str, float]
) -> list[Hypothesis]:
    """The hypotheses with `output-path` measured to the client, for every phase that has client windows."""
    return [_measured(row, service, limits) if row.id == ID else row for row in rows]


def _measured(row: Hypothesis, service: Service, limits: Mapping[str, float]) -> Hypothesis:
    windows, _ = used_windows(service.windows, row.phase)
    step = np.array([window.end_ns - window.start_ns for window in windows], np.int64)
    if not step.sum():
        return row
    shares = _shares(windows, service, step)
    value, low, high = share_of(shares)
    high = min(1.0, high + _hidden_ns(service, int(step.mean())) / float(step.mean()))
    verdict = decide(low, high, limits)
    undeclared = row.verdict == "unmeasured"
    if verdict == "contradicted" and undeclared:
        verdict = "inconclusive"
    most = max(float(shares.value.sum()), high * float(step.sum()))
    return msgspec.structs.replace(
        row,
        scope=SCOPE,
        rank=service.rank,
        verdict=verdict,
        verdict_note="; ".join(_notes(windows, service, undeclared=undeclared)),
        share=Share(value=value, interval=(low, high)),
        measured=Measured(
            name=QUANTITY,
            value=float(int(shares.value.sum() / len(windows))),
            unit="ns per step",
            kind="measurement",
            rank=service.rank,
            windows=len(windows),
        ),
        gain_upper_bound_ns=int(np.ceil(most / len(windows))),
        predicted_step_ns=None,
        evidence=[],
    )


def _shares(windows: Sequence[ClientWindow], service: Service, step: IntArray) -> WindowShares:
    """Unsplit time after the device belongs to it as a whole: only what it is made of is not known."""
    unsplit = np.array([window.unsplit_ns for window in windows], np.int64)
    mine = column(windows, _MINE) + unsplit
    if any(log.assignment == "latest" for log in service.logs):
        possible = step  # the tokens may be from steps before those that they were given
    else:
        possible = mine + column(windows, [CATEGORY_NAMES[Category.UNATTRIBUTED]]) - unsplit
    certain = mine - np.array([_inferred(window) for window in windows], np.int64)
    return WindowShares(
        *(one.astype(np.float64) for one in (mine, np.maximum(certain, 0), np.minimum(possible, step), step))
    )


def _inferred(window: ClientWindow) -> int:
    """At most so much of the host's output on the path is inferred."""
    return min(window.inferred_ns, window.path_ns[CATEGORY_NAMES[Category.HOST_OUTPUT]])


def _hidden_ns(service: Service, most_ns: int) -> int:
    """How long a constant delay may be that was taken for clock offset."""
    hidden = 0
    for pair in service.clocks:
        if not pair.one_clock:
            low, high = pair.interval_ns
            hidden += most_ns if low is None or high is None else high - low
    return min(hidden, most_ns)


def _notes(windows: Sequence[ClientWindow], service: Service, *, undeclared: bool) -> list[str]:
    after = sum(window.after_device_ns for window in windows)
    under = sum(window.under_later_steps_ns for window in windows)
    notes = ["share of the step at the client, which ends with the receipt of its last token"]
    if after and 2 * under > after:
        notes.append(
            f"{100 * under / after:.0f} % of the time after the device passed while later steps were already at work:"
            " it delays tokens and bunches them, their rate is that of the steps"
        )
    if any(not pair.one_clock for pair in service.clocks):
        notes.append("clocks are not one: a constant delay is not in the value, only in the upper end")
    if any(log.assignment == "latest" for log in service.logs):
        notes.append(
            "each token counts for the last step that was complete before its emission; an output path longer by"
            " whole steps would look the same, a device_completion_ns column would tell"
        )
    if undeclared:
        notes.append(
            "output processing inside the step is not marked (`--output-ranges REGEX`): it is not in it"
        )
    return notes
