"""`output-path` where a token log was joined: its share is of the client's step, not of the device's.

The lower end is what the way after the device holds for certain: where clocks are not one, only what exceeds the
smallest delay. The upper end adds what is unknown, and what a constant delay may hide behind a clock offset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
CLAIM = "The client waits for what comes after the device: output processing, transport, buffering."


class _Words(NamedTuple):
    """What to change where one part holds the most, and what would show that it was no cause."""

    intervention: str
    disproof: str


_WORDS = {
    "service.output": _Words(
        "shorten output processing in the server (detokenization, stop checks, serialization), or move it off the"
        " path to the emission",
        "with that processing removed tokens are emitted as late after device completion as before",
    ),
    "service.transport": _Words(
        "take proxies and slow links out of the way, or keep connections open; a client on the server's host tells"
        " what the network holds",
        "a client on the server's own host receives tokens as late after their emission",
    ),
    "service.buffering": _Words(
        "emit each token as it is made and have it passed on at once: the server's stream interval, buffering of"
        " proxies, coalescing of small packets, a client that reads late",
        "with one token per emission and buffering off tokens are still received together",
    ),
    "host.output": _Words(
        "move output processing off the thread that submits, or overlap it with the next step",
        "with output processing removed (or run afterwards) the step takes as long as before",
    ),
}
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
    rows: Sequence[Hypothesis], service: Service, limits: Mapping[str, float], distorted: str
) -> list[Hypothesis]:
    """The hypotheses with `output-path` measured to the client, for every phase that has client windows.

    ``distorted``: why absolute verdicts are weakened, or "".
    """
    return [_measured(row, service, limits, distorted) if row.id == ID else row for row in rows]


def _measured(row: Hypothesis, service: Service, limits: Mapping[str, float], distorted: str) -> Hypothesis:
    windows, _ = used_windows(service.windows, row.phase)
    step = np.array([window.end_ns - window.start_ns for window in windows], np.int64)
    if not step.sum():
        note = "the token log that was given tells nothing of these steps"
        return msgspec.structs.replace(row, verdict_note="; ".join(filter(None, (row.verdict_note, note))))
    shares = _shares(windows, service, step)
    value, low, high = share_of(shares)
    coarse = max((log.receipt_resolution_ns - 1 for log in service.logs if log.joined), default=0)
    low = max(0.0, low - coarse / float(step.mean()))
    high = min(1.0, high + (coarse + _hidden_ns(service, int(step.mean()))) / float(step.mean()))
    verdict = decide(low, high, limits)
    undeclared = row.verdict == "unmeasured"
    if verdict == "contradicted" and undeclared:
        verdict = "inconclusive"
    weakened = [f"supported, under distortion: {distorted}"] if verdict == "supported" and distorted else []
    work = sum(window.recorded_work_ns for window in windows)
    words = _WORDS[_largest(windows)]
    return msgspec.structs.replace(
        row,
        scope=SCOPE,
        rank=service.rank,
        verdict=verdict,
        verdict_note="; ".join([*weakened, *_notes(windows, service, undeclared=undeclared)]),
        share=Share(value=value, interval=(low, high)),
        measured=Measured(
            name=QUANTITY,
            value=float(int(shares.value.sum() / len(windows))),
            unit="ns per step",
            kind="measurement",
            rank=service.rank,
            windows=len(windows),
        ),
        # what is recorded work of steps stays, however fast tokens get to the client
        gain_upper_bound_ns=-(-(int(step.sum()) - work) // len(windows)),
        claim=CLAIM,
        intervention=words.intervention,
        disproof=words.disproof,
        predicted_step_ns=None,
        evidence=[],
    )


def _largest(windows: Sequence[ClientWindow]) -> str:
    return max(_MINE, key=lambda name: sum(window.path_ns[name] for window in windows))


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
    """How long a delay may be that was taken for clock offset, or for drift."""
    hidden = 0
    for pair in service.clocks:
        if not pair.one_clock:
            low, high = pair.interval_ns
            hidden += most_ns if low is None or high is None else high - low + pair.drift_doubt_ns
    return min(hidden, most_ns)


def _notes(windows: Sequence[ClientWindow], service: Service, *, undeclared: bool) -> list[str]:
    after = sum(window.after_device_ns for window in windows)
    under = sum(window.under_later_steps_ns for window in windows)
    notes = [
        "share of the step at the client, which ends with the receipt of its last token: not to be added to shares of"
        " the device's step"
    ]
    if after and 2 * under > after:
        notes.append(
            f"{100 * under / after:.0f} % of the time after the device passed while later steps were at work: it delays"
            " and bunches tokens, and does not lower their rate"
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
