"""``tracebound sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analyzer.cli import options as opt
from analyzer.cli.console import ending, out, say, written
from analyzer.cli.reading import Selection, settings_of
from analyzer.cli.runs import RUN, diagnosed
from analyzer.errors import UsageError

if TYPE_CHECKING:
    from analyzer.pipeline import Options
    from analyzer.sweep import Given
    from analyzer.swept import Sweep

EXAMPLE = "Example: tracebound sweep --grid grid.csv -o sweep-report"

Runs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RUN...",
        help=f"Runs of several contexts or batch sizes, each {RUN}; its manifest says where it lies.",
        show_default=False,
    ),
]
Grid = Annotated[
    Path | None,
    typer.Option(
        "--grid",
        metavar="FILE",
        help="Runs and where they lie, as CSV: columns run, context, batch, cache_initialization, and any other pin.",
        show_default=False,
    ),
]
Phase = Annotated[
    str | None,
    typer.Option(
        "--phase",
        metavar="REGEX",
        help="The phase to sweep; else the one with the most time.",
        show_default=False,
    ),
]
KeepUnlike = Annotated[
    bool, typer.Option("--keep-unlike", help="Fit cells, too, whose other pins differ from most.")
]
Experts = Annotated[
    str | None,
    typer.Option(
        "--experts",
        metavar="E,K",
        help="Experts and experts per token: adds the experts that a batch reads, as a model.",
        show_default=False,
    ),
]


def sweep(
    runs: Runs = None,
    grid: Grid = None,
    phase: Phase = None,
    keep_unlike: KeepUnlike = False,
    experts: Experts = None,
    steps: opt.Steps = None,
    boundary: opt.TraceBoundaryOption = opt.TraceBoundary.DEVICE,
    rank_regex: opt.RankRegex = None,
    ranks: opt.Ranks = None,
    device: opt.DeviceOption = None,
    dispatch: opt.Dispatch = None,
    output_ranges: opt.OutputRanges = None,
    rules: opt.RulesOption = None,
    jobs: opt.Jobs = 1,
    output: opt.Output = None,
    format_: opt.FormatOption = opt.Format.MD,
    figures: opt.Figures = True,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Step time over context and batch, from several runs.

    Slopes with intervals in all and per category, rates against the batch, and what attention and the KV cache add.
    Where a run lies is what its manifest or the grid file declares. Writes SWEEP.md, and beside it sweep/ with JSON,
    CSV and figures.
    """
    with ending(debug=debug):
        from analyzer.sweep import sweep as swept

        settings = settings_of(
            steps=steps,
            boundary=boundary,
            dispatch=dispatch,
            output_ranges=output_ranges,
            rules=rules,
            jobs=jobs,
            own_changes=False,
        )
        pattern, model = opt.pattern("--phase", phase), _experts(experts)
        which = Selection(opt.rank_pattern(rank_regex), opt.rank_list(ranks), device)
        found = swept(
            _given(runs or [], grid, settings, which, quiet=quiet, verbose=verbose),
            phase=pattern,
            keep_unlike=keep_unlike,
            experts=model,
        )
        report = None
        if format_ is opt.Format.MD or output is not None:
            report = _written(found, Path(output or "."), figures=figures)
        _shout(found)
        if format_ is opt.Format.JSON:
            out(found.to_json())
        elif report is not None:
            from analyzer.report.sweep import terminal_lines

            written(report, terminal_lines(found), quiet=quiet)


def _given(
    runs: list[str], grid: Path | None, settings: Options, which: Selection, *, quiet: bool, verbose: bool
) -> list[Given]:
    """Every run of the command line and of the grid file, analyzed."""
    from analyzer.sweep import Given
    from analyzer.sweep.grid import Planned, read_grid

    planned = [Planned(run, run) for run in runs] + ([] if grid is None else read_grid(grid))
    if not planned:
        raise UsageError("sweep", "", "no run is given", "name runs, or a file of them with --grid FILE")
    return [
        Given(
            one.name,
            diagnosed(one.path, settings, which, quiet=quiet, verbose=verbose),
            one.pins,
            one.where,
        )
        for one in planned
    ]


def _experts(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if len(parts) == 2 and all(part.isascii() and part.isdigit() for part in parts):
        experts, chosen = map(int, parts)
        if 1 <= chosen <= experts:
            return experts, chosen
    raise UsageError(
        "--experts", "", f"{text!r} is no pair E,K with 1 <= K <= E", "write it as --experts 128,8"
    )


def _written(found: Sweep, directory: Path, *, figures: bool) -> Path:
    from analyzer.report.sweep_figures import figures as drawings
    from analyzer.report.sweep_outputs import write_sweep

    return write_sweep(found, directory, drawings(found) if figures else None)


def _shout(found: Sweep) -> None:
    """Also with -q: a slope over an undeclared cache must not pass for one over a declared one."""
    from analyzer.report.sweep import cache_warning

    text = cache_warning(found)
    if text:
        say(f"WARNING: {text}")
