"""Reading and analyzing a capture, as the commands do it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from analyzer.cli import options as opt
from analyzer.cli.console import Bars
from analyzer.diagnosis import Diagnosis
from analyzer.errors import TraceboundError
from analyzer.model import Capture

if TYPE_CHECKING:
    from analyzer.analysis import Analysis
    from analyzer.pipeline import Options


@dataclass(frozen=True)
class Selection:
    """Which ranks of the files are read, as checked options."""

    rank_regex: str | None
    ranks: list[int] | None
    device: int | None
    manifest: Path | None = None


def settings_of(
    *,
    steps: str | None,
    rules: Sequence[Path] | None,
    jobs: int,
    boundary: opt.Boundary | opt.TraceBoundary = opt.Boundary.DEVICE,
    dispatch: str | None = None,
    output_ranges: str | None = None,
    **more: object,
) -> Options:
    """The options that all commands share, checked. ``more``: further fields of ``pipeline.Options``."""
    from analyzer import pipeline

    shared = pipeline.Options(
        steps=opt.pattern("--steps", steps),
        boundary=boundary.value,
        dispatch=opt.pattern("--dispatch", dispatch),
        output_ranges=opt.pattern("--output-ranges", output_ranges),
        rules=tuple(rules or ()),
        jobs=jobs,
    )
    return replace(shared, **more)  # type: ignore[arg-type]


def analyzed(
    traces: Sequence[str],
    settings: Options,
    which: Selection,
    *,
    quiet: bool,
    refuse: Callable[[Capture], None] = lambda _: None,
) -> Analysis:
    """Read and analyze with ``settings.jobs`` workers. ``refuse`` may raise once the files are read."""
    from analyzer import pipeline

    with (
        Bars(quiet=quiet) as bars,
        pipeline.workers(settings.jobs) as executor,
        pipeline.opened(
            traces,
            rank_regex=which.rank_regex,
            ranks=which.ranks,
            device=which.device,
            manifest=which.manifest,
            executor=executor,
            progress=bars,
        ) as capture,
    ):
        refuse(capture)
        return pipeline.analyze(capture, settings, executor=executor, progress=bars)


@dataclass(frozen=True)
class Looked:
    """A capture and its diagnosis; None where it cannot be analyzed, and then ``reason`` says why."""

    capture: Capture
    diagnosis: Diagnosis | None
    reason: str | None


def look(
    traces: Sequence[str],
    settings: Options,
    *,
    rank_regex: str | None,
    ranks: str | None,
    device: int | None,
    manifest: Path | None,
    quiet: bool,
) -> Looked:
    """Read and, where that is possible, analyze. Raises TraceboundError for what cannot be read."""
    from analyzer import pipeline

    with Bars(quiet=quiet) as bars:
        capture = pipeline.read(
            traces,
            rank_regex=opt.rank_pattern(rank_regex),
            ranks=opt.rank_list(ranks),
            device=device,
            manifest=manifest,
            jobs=settings.jobs,
            progress=bars,
        )
        try:
            return Looked(capture, pipeline.analyze(capture, settings, progress=bars).diagnosis, None)
        except TraceboundError as error:
            # what such a capture holds, and why it cannot be analyzed, is exactly what one asks for
            return Looked(capture, None, f"{error.why}; next: {error.hint}")
