"""What lowers confidence in a capture: said first, in the report and on the terminal alike."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.analysis import Diagnosis, Rank
from analyzer.report.escape import Style
from analyzer.report.numbers import count, fixed, int_ranges, percent

DIAGNOSTICS_SHOWN = 6
FILES_SHOWN = 8
UNLINKED_WORTH_SAYING = 0.01


def cautions(diagnosis: Diagnosis, style: Style) -> list[str]:
    """Sentences, the gravest first: what was missing or contradictory and what that does to the figures."""
    return [
        *_partial(diagnosis, style),
        *_missing_ranks(diagnosis),
        *_no_device_work(diagnosis),
        *_steps(diagnosis, style),
        *_warmup(diagnosis, style),
        *_distortion(diagnosis),
        *_clocks(diagnosis),
        *_shared_gpus(diagnosis),
        *_unlinked(diagnosis),
        *_assumed(diagnosis, style),
        *_profiler_messages(diagnosis, style),
        *(style.prose(note) for note in diagnosis.notes),
    ]


def ranks_text(ranks: list[int]) -> str:
    """``rank 3`` or ``ranks 0-3, 7``."""
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {int_ranges(sorted(ranks))}"


def _partial(diagnosis: Diagnosis, style: Style) -> Iterator[str]:
    partial = [source for source in diagnosis.inputs if source.partial]
    for source in partial[:FILES_SHOWN]:
        yield (
            f"{style.name(source.path)} is cut off or damaged: the figures of {ranks_text(source.ranks)}"
            " cover only what could be read."
        )
    if len(partial) > FILES_SHOWN:
        yield f"{count(len(partial) - FILES_SHOWN, 'more file')} cut off or damaged (inputs in the JSON)."


def _missing_ranks(diagnosis: Diagnosis) -> Iterator[str]:
    missing = diagnosis.missing_ranks
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        text = ranks_text(missing)
        yield (
            f"{text[0].upper()}{text[1:]} {verb} missing: whether a collective waits for"
            f" {'it' if len(missing) == 1 else 'them'} cannot be told."
        )


def _no_device_work(diagnosis: Diagnosis) -> Iterator[str]:
    bare = [rank.rank for rank in diagnosis.ranks if rank.device_events == 0]
    if bare:
        yield (
            f"No device work was recorded for {ranks_text(bare)}: device figures there are not captured,"
            " and only the host's view is left."
        )


def _steps(diagnosis: Diagnosis, style: Style) -> Iterator[str]:
    if diagnosis.steps.rule == "none":
        yield (
            "No steps were found: the whole capture is one window, so its budget mixes whatever ran in it."
            " Name the steps with --steps REGEX."
        )
    elif diagnosis.steps.confidence not in ("high", "certain"):
        yield f"The steps were found with {style.prose(diagnosis.steps.confidence)} confidence."


def _warmup(diagnosis: Diagnosis, style: Style) -> Iterator[str]:
    groups: dict[str, list[bool]] = {}
    for rank in diagnosis.ranks:
        for window in rank.windows:
            if not window.empty:
                groups.setdefault(window.phase, []).append(window.warmup)
    phases = [phase for phase, flags in groups.items() if all(flags)]
    for phase in phases[:FILES_SHOWN]:
        yield (
            f"Every step of phase {style.name(phase)} looks like warm-up (allocation, module loading or"
            " graph capture inside): its budget is not the steady state."
        )
    if len(phases) > FILES_SHOWN:
        yield f"So do all steps of {count(len(phases) - FILES_SHOWN, 'more phase')}."


def _distortion(diagnosis: Diagnosis) -> Iterator[str]:
    for row in diagnosis.hypotheses:
        if row.id == "profiler-distortion" and row.verdict == "supported":
            yield (
                "The profiler itself takes a large part of the step: absolute times are inflated,"
                " and every supported verdict holds under distortion only."
            )
            return


def _clocks(diagnosis: Diagnosis) -> Iterator[str]:
    wrong = [rank for rank in diagnosis.ranks if rank.clock.negative_latency_count]
    if not wrong:
        return
    worst = max(wrong, key=lambda rank: (rank.clock.negative_latency_count, -rank.rank))
    yield (
        f"On {ranks_text([rank.rank for rank in wrong])} device work starts before its own launch by the"
        f" raw clocks ({_clock(worst)})."
    )


def _clock(rank: Rank) -> str:
    clock = rank.clock
    pairs = f"rank {rank.rank}: {clock.negative_latency_count:,} of {count(clock.pair_count, 'pair')}"
    if clock.correction == "shifted":
        return f"{pairs}; its device times were shifted by {fixed(clock.device_shift_ns, 3)} µs"
    if clock.correction == "clipped":
        return f"{pairs}; no one shift resolves it, so contradicting intervals were clipped"
    return f"{pairs}; left as recorded"


def _shared_gpus(diagnosis: Diagnosis) -> Iterator[str]:
    groups = {
        tuple(sorted({rank.rank, *rank.shared_gpu_with})) for rank in diagnosis.ranks if rank.shared_gpu_with
    }
    for group in sorted(groups):
        yield (
            f"{count(len(group), 'rank')} ({int_ranges(group)}) share one GPU: what looks idle on one may be"
            " the other's work."
        )


def _unlinked(diagnosis: Diagnosis) -> Iterator[str]:
    events = sum(rank.device_events for rank in diagnosis.ranks)
    unlinked = sum(rank.unlinked_events for rank in diagnosis.ranks)
    if events and unlinked >= UNLINKED_WORTH_SAYING * events:
        yield (
            f"{unlinked:,} of {count(events, 'device event')} ({percent(unlinked, events)}) have no launch"
            " record: why they started when they did is partly unknown."
        )


def _assumed(diagnosis: Diagnosis, style: Style) -> Iterator[str]:
    names = sorted({name for rank in diagnosis.ranks for name in rank.constants.assumed})
    if names:
        shown = ", ".join(style.name(name) for name in names[:FILES_SHOWN])
        more = f" and {len(names) - FILES_SHOWN} more" if len(names) > FILES_SHOWN else ""
        yield f"Assumed, because this capture holds no sample of it: {shown}{more}."


def _profiler_messages(diagnosis: Diagnosis, style: Style) -> Iterator[str]:
    messages = [(source.path, text) for source in diagnosis.inputs for text in source.diagnostics]
    for path, text in messages[:DIAGNOSTICS_SHOWN]:
        yield f"The profiler reports in {style.name(path)}: {style.prose(text[:400])}"
    if len(messages) > DIAGNOSTICS_SHOWN:
        left = len(messages) - DIAGNOSTICS_SHOWN
        yield f"{count(left, 'more message')} of the profiler in the JSON (inputs, diagnostics)."
