"""What was read, in a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from analyzer.diagnosis import Diagnosis, Input, RunFacts, Steps
from analyzer.report.cautions import ranks_text
from analyzer.report.escape import Style
from analyzer.report.labels import BOUNDARY_WORDS, RULE_WORDS
from analyzer.report.numbers import count, ms
from analyzer.report.outliers import plural

PHASES_SHOWN = 6
FILES_SHOWN = 8


def reading(diagnosis: Diagnosis, style: Style) -> list[tuple[str, str]]:
    """Pairs of topic and text: files, ranks, device work, steps, boundary."""
    run = [] if diagnosis.run is None else [("Run", _run(diagnosis, diagnosis.run, style))]
    return [
        ("Input", _inputs(diagnosis, style)),
        *run,
        ("Ranks", _ranks(diagnosis, style)),
        ("Device work", _device_work(diagnosis)),
        ("Steps", _steps(diagnosis, style)),
        ("Not measured", _unmeasured(diagnosis, style)),
        ("Boundary", BOUNDARY_WORDS.get(diagnosis.boundary, style.prose(diagnosis.boundary))),
    ]


def _details(source: Input, style: Style) -> str:
    details = [style.prose(source.kind)]
    if source.profiler_version:
        details.append(f"profiler {style.prose(source.profiler_version)}")
    if source.schema_version:
        details.append(f"schema {style.prose(source.schema_version)}")
    return ", ".join(details)


def _inputs(diagnosis: Diagnosis, style: Style) -> str:
    """The files in groups of one kind and version, damaged ones first: they must not hide behind a limit."""
    if not diagnosis.inputs:
        return "none"
    groups: dict[str, list[Input]] = {}
    for source in diagnosis.inputs:
        groups.setdefault(_details(source, style), []).append(source)
    texts = []
    for details, sources in list(groups.items())[:FILES_SHOWN]:
        ordered = sorted(sources, key=lambda source: not source.partial)
        folder = _folder([source.path for source in ordered])
        names = [
            style.name(source.path.removeprefix(folder)) + (" (partial)" if source.partial else "")
            for source in ordered[:FILES_SHOWN]
        ]
        if len(ordered) > FILES_SHOWN:
            names.append(f"and {len(ordered) - FILES_SHOWN} more")
        place = f" in {style.name(folder)}" if folder else ""
        texts.append(f"{count(len(sources), 'file')}{place} ({details}): {', '.join(names)}")
    if len(groups) > FILES_SHOWN:
        texts.append(f"and {len(groups) - FILES_SHOWN} more kinds and versions")
    return "; ".join(texts)


def _run(diagnosis: Diagnosis, run: RunFacts, style: Style) -> str:
    """Whether all ranks are there, and what the run pins. One capture around a launcher may hold several ranks."""
    state = "complete" if run.complete else "partial"
    pins = [
        f"{name.replace('_', ' ')} {style.name(pin.value)}{' (declared)' if pin.source == 'declared' else ''}"
        for name, pin in run.pins.items()
    ]
    ranks = count(len(run.ranks), "rank")
    if any(len(source.ranks) > 1 for source in diagnosis.inputs):
        ranks = f"{count(len(run.ranks), 'capture')} of {count(len(diagnosis.ranks), 'rank')}"
    return f"{ranks} in {style.name(run.manifest)}, {state}; pinned: {', '.join(pins) or 'nothing'}"


def _folder(paths: list[str]) -> str:
    """The folder that several files share, with its slash; empty for one file."""
    if len(paths) < 2:
        return ""
    folders = {path[: path.rfind("/") + 1] for path in paths}
    return folders.pop() if len(folders) == 1 else ""


def _unmeasured(diagnosis: Diagnosis, style: Style) -> str:
    questions = diagnosis.unmeasured
    shown = "; ".join(style.prose(row.what) for row in questions[:PHASES_SHOWN])
    more = f"; and {len(questions) - PHASES_SHOWN} more" if len(questions) > PHASES_SHOWN else ""
    return f"{shown}{more} (how to: see the appendix)" if questions else "none of the questions asked here"


def _ranks(diagnosis: Diagnosis, style: Style) -> str:
    ranks = diagnosis.ranks
    if not ranks:
        return "none"
    # Ranks that share a GPU are counted with the first of them: it is one GPU.
    shown = [
        rank
        for rank in ranks
        if not (rank.device and min(rank.shared_gpu_with, default=rank.rank) < rank.rank)
    ]
    names = Counter(
        (rank.device.name or f"device {rank.device.index}, model not recorded") if rank.device else ""
        for rank in shown
    )
    devices = [
        f"{number} × {style.name(name)}" if name else f"no device ({count(number, 'rank')})"
        for name, number in sorted(names.items())
    ]
    if set(names) == {""}:
        devices = ["no device"]
    basis = f"; told apart by {style.prose(diagnosis.rank_basis)}" if diagnosis.rank_basis else ""
    more = f" and {len(devices) - FILES_SHOWN} more" if len(devices) > FILES_SHOWN else ""
    text = ranks_text([rank.rank for rank in ranks])
    return f"{count(len(ranks), 'rank')} ({text}) on {', '.join(devices[:FILES_SHOWN])}{more}{basis}"


def _device_work(diagnosis: Diagnosis) -> str:
    spans = [(rank, rank.device_span) for rank in diagnosis.ranks if rank.device_span is not None]
    if not spans:
        return "none recorded"
    rank, span = max(spans, key=lambda pair: (pair[1].end_ns - pair[1].start_ns, -pair[0].rank))
    where = f"rank {rank.rank}, the longest: " if len(spans) > 1 else ""
    text = (
        f"{where}{count(rank.device_events, 'event')} over {ms(span.end_ns - span.start_ns)} ms,"
        f" busy {ms(span.busy_ns)} ms, idle {ms(span.idle_ns)} ms"
    )
    if rank.prior_events:
        verb = "was" if rank.prior_events == 1 else "were"
        text += f"; {rank.prior_events:,} of them {verb} submitted before the capture"
    return text


def flagged_steps(steps: Steps, ranks: Sequence[int]) -> str:
    """How many of the first rank's steps are warm-up, how many outliers; whose they are where there are several."""
    counts = ((steps.warmup_count, "warm-up"), (steps.outlier_count, plural(steps.outlier_count)))
    shown = [f"{number:,} as {kind}" for number, kind in counts if number]
    where = f" on rank {ranks[0]}" if len(ranks) > 1 else ""
    return f"flagged{where}: {', '.join(shown)}" if shown else f"none flagged as warm-up or outlier{where}"


def _steps(diagnosis: Diagnosis, style: Style) -> str:
    steps = diagnosis.steps
    if steps.confidence == "none":
        parts = ["none found: the whole capture is one window"]
    else:
        rule = RULE_WORDS.get(steps.rule) or style.prose(steps.rule)
        pattern = f" ({style.name(steps.pattern)})" if steps.pattern is not None else ""
        parts = [
            f"{count(steps.count, 'step')}, found by {rule}{pattern}, confidence"
            f" {style.prose(steps.confidence)}",
            flagged_steps(steps, [rank.rank for rank in diagnosis.ranks]),
        ]
    phases = ", ".join(style.name(phase) for phase in steps.phases[:PHASES_SHOWN])
    if len(steps.phases) > PHASES_SHOWN:
        phases += f" and {len(steps.phases) - PHASES_SHOWN} more"
    parts.append(f"{'phase' if len(steps.phases) == 1 else 'phases'} {phases or 'none'}")
    if steps.detail:
        parts.append(style.prose(steps.detail))
    return "; ".join(parts)
