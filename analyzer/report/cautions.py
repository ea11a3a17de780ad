"""What lowers confidence in a capture: said first, in the report and on the terminal alike.

Most of it are the diagnosis' own notes. There can be one per rank, so notes that differ only in their
numbers are shown a few times and then counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from analyzer.diagnosis import Diagnosis
from analyzer.report.escape import Style
from analyzer.report.labels import CONSTANT_WORDS
from analyzer.report.numbers import count, int_ranges, percent

PROFILER_MESSAGES_SHOWN = 6
NAMES_SHOWN = 8
ALIKE_SHOWN = 3
UNLINKED_WORTH_SAYING = 0.01
SURE = ("exact", "high")
_LOSS = re.compile(r"drop|lost|incomplete|overflow|not all|missing", re.IGNORECASE)


def cautions(diagnosis: Diagnosis, style: Style) -> list[str]:
    """Sentences: what was missing, damaged or contradictory and what that does to the figures."""
    messages = {text for source in diagnosis.inputs for text in source.diagnostics}
    own: list[str] = []
    said: list[str] = []
    for note in diagnosis.notes:
        (said if any(note.endswith(text) for text in messages) else own).append(note)
    return [
        *_bounded(own, style),
        *_steps(diagnosis, style),
        *_warmup(diagnosis, style),
        *_distortion(diagnosis),
        *_unlinked(diagnosis),
        *_assumed(diagnosis, style),
        *_profiler_messages(said, style),
    ]


def ranks_text(ranks: list[int]) -> str:
    """``rank 3`` or ``ranks 0-3, 7``."""
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {int_ranges(sorted(ranks))}"


def _bounded(notes: list[str], style: Style) -> Iterator[str]:
    alike: dict[str, list[str]] = {}
    for note in notes:
        alike.setdefault(re.sub(r"\d+", "#", note), []).append(note)
    for group in alike.values():
        yield from (style.prose(note) for note in group[:ALIKE_SHOWN])
        if len(group) > ALIKE_SHOWN:
            yield f"{count(len(group) - ALIKE_SHOWN, 'more note')} like the last one in the JSON (notes)."


def _steps(diagnosis: Diagnosis, style: Style) -> Iterator[str]:
    steps = diagnosis.steps
    if steps.confidence == "none":
        yield (
            "The whole capture is one window, so its budget mixes whatever ran in it. Name the steps with"
            f" {style.name('--steps REGEX')} where the capture has ranges."
        )
    elif steps.confidence not in SURE:
        yield f"The steps were found with {style.prose(steps.confidence)} confidence: see how, below."


def _warmup(diagnosis: Diagnosis, style: Style) -> Iterator[str]:
    """Phases whose budget rests on flagged steps, because no other are left, or on windows of several steps."""
    noted: dict[str, list[str]] = {}
    client = [] if diagnosis.service is None else diagnosis.service.budget
    for budget in [*diagnosis.budget, *client]:
        phases = noted.setdefault(budget.note, []) if budget.note else []
        if budget.phase not in phases:
            phases.append(budget.phase)
    for note, phases in noted.items():
        shown = ", ".join(style.name(phase) for phase in phases[:NAMES_SHOWN])
        more = f" and {len(phases) - NAMES_SHOWN} more" if len(phases) > NAMES_SHOWN else ""
        yield f"{'Phase' if len(phases) == 1 else 'Phases'} {shown}{more}: {style.prose(note)}"


def _distortion(diagnosis: Diagnosis) -> Iterator[str]:
    for row in diagnosis.hypotheses:
        if row.id == "profiler-distortion" and row.verdict == "supported":
            yield (
                "The profiler itself takes a large part of the step: absolute times are inflated,"
                " and every supported verdict holds under distortion only."
            )
            return


def _unlinked(diagnosis: Diagnosis) -> Iterator[str]:
    events = sum(rank.device_events for rank in diagnosis.ranks)
    unlinked = sum(rank.unlinked_events for rank in diagnosis.ranks)
    prior = sum(rank.prior_events for rank in diagnosis.ranks)
    if events and unlinked >= UNLINKED_WORTH_SAYING * events:
        all_of = "all" if prior == unlinked else f"{prior:,}"
        why = f", {all_of} of them because they were submitted before the capture" if prior else ""
        yield (
            f"{unlinked:,} of {count(events, 'device event')} ({percent(unlinked, events)}) have no launch"
            f" record{why}: why they started when they did is partly unknown."
        )


def _assumed(diagnosis: Diagnosis, style: Style) -> Iterator[str]:
    """Without device work no figure rests on them."""
    names = sorted(
        {name for rank in diagnosis.ranks if rank.device_events for name in rank.constants.assumed}
    )
    if names:
        shown = ", ".join(_constant(name, style) for name in names[:NAMES_SHOWN])
        more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
        yield f"Assumed, because this capture holds no sample of it: {shown}{more}."


def _constant(name: str, style: Style) -> str:
    """``launch_lambda_ns.cudaGraphLaunch``: the launch latency of that call."""
    constant, _, api = name.partition(".")
    words = CONSTANT_WORDS.get(constant, style.name(constant))
    return f"{words} of {style.name(api)}" if api else words


def _profiler_messages(messages: list[str], style: Style) -> Iterator[str]:
    """Messages about lost or missing records; the others are only counted, as most concern other tools."""
    serious = [text for text in messages if _LOSS.search(text)]
    yield from (style.prose(text) for text in serious[:PROFILER_MESSAGES_SHOWN])
    left = len(messages) - len(serious[:PROFILER_MESSAGES_SHOWN])
    if left:
        yield f"{count(left, 'other message')} of the profiler in the JSON (notes)."
