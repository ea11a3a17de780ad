"""The steps of a run as cycles: one draft and its verification each.

Most engines run a cycle as one step. SGLang marks each forward pass of it: ``step[DRAFT ...]`` (or a loop of them),
``step[VERIFY ...]``, ``step[DRAFT_EXTEND ...]``. There a cycle reaches from the end of one verification to the end of
the next, as windows tile the time; the mean of any one of these phases would leave a part of the cycle out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from analyzer.diagnosis import Diagnosis, GlobalWindow, Window
from analyzer.errors import UsageError
from analyzer.reconstruct.step_markers import clean_name
from analyzer.study.headline import Headline, common_phase, headline, phases

_MODE = re.compile(r"^step\[([A-Z_0-9]+) ")
VERIFY = "VERIFY"
DRAFT = "DRAFT"
PREFERRED = "^decode"
"""Phases that speculation is about, where the run has one."""


@dataclass(frozen=True)
class CycleSteps:
    """Steps in order of time, each one cycle. ``passes``: marked forward passes per cycle; None: steps are cycles."""

    steps: Headline
    passes: float | None


def cycle_steps(name: str, diagnosis: Diagnosis, phase: str | None = None) -> CycleSteps:
    """The steps of the decode phase, or of the one that ``phase`` finds, put together to cycles where they are parts.

    Raises UsageError where the run has no such step, or drafts without a verification.
    """
    pattern = phase if phase is not None else PREFERRED if phases(diagnosis, PREFERRED) else None
    leading = common_phase([(name, diagnosis)], pattern)
    assert leading is not None  # a run shares its phases with itself
    steps = headline(diagnosis, leading)
    windows = _all_windows(diagnosis, steps.rank)
    modes = [_mode(window.step) for window in windows]
    if VERIFY in modes:
        return _put_together(name, steps, windows, modes)
    if any(mode.startswith(DRAFT) for mode in modes):
        why = "has steps that draft, and none that verifies: a cycle cannot be told"
        raise UsageError(name, "", why, "give the time of a whole cycle with --cycle, or a capture with both")
    return CycleSteps(steps, None)


def _all_windows(diagnosis: Diagnosis, rank: int | None) -> Sequence[Window | GlobalWindow]:
    if rank is None:
        return [] if diagnosis.global_ is None else diagnosis.global_.windows
    return next(one.windows for one in diagnosis.ranks if one.rank == rank)


def _mode(step: str) -> str:
    match = _MODE.match(clean_name(step))
    return "" if match is None else match[1]


def _put_together(
    name: str, steps: Headline, windows: Sequence[Window | GlobalWindow], modes: Sequence[str]
) -> CycleSteps:
    """From verification to verification of the phase, without a pass of another kind or one that is left out."""
    ends = [at for at, mode in enumerate(modes) if mode == VERIFY]
    cycles: list[int] = []
    passes = 0
    for before, end in pairwise(ends):
        members = range(before + 1, end + 1)
        own = all(modes[at] == VERIFY or modes[at].startswith(DRAFT) for at in members)
        fit = windows[end].phase == steps.phase and not any(windows[at].left_out for at in members)
        if own and fit:
            cycles.append(windows[end].end_ns - windows[before].end_ns)
            passes += len(members)
    if not cycles:
        why = f"holds no two verifications of phase {steps.phase!r} with nothing but drafts between them"
        raise UsageError(name, "", why, "capture more steps, or give the time of a cycle with --cycle")
    return CycleSteps(replace(steps, step_ns=cycles), passes / len(cycles))
