"""``tracebound compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analyzer.cli import history as keeping
from analyzer.cli import options as opt
from analyzer.cli.console import ending, out, written
from analyzer.cli.reading import Selection, settings_of
from analyzer.cli.runs import RUN, diagnosed

if TYPE_CHECKING:
    from analyzer.comparison.result import Comparison

EXAMPLE = "Example: tracebound compare eager graph -o comparison"

A = Annotated[str, typer.Argument(metavar="A", help=f"The run before: {RUN}.")]
B = Annotated[str, typer.Argument(metavar="B", help="The run after, likewise.")]
Tested = Annotated[
    list[str] | None,
    typer.Option(
        "--tested",
        metavar="ID|SPEC",
        help="A hypothesis or change of A's predictions that B made, such as host-bound or kernel:.=0.5; may be "
        "repeated. That B captured graphs shows by itself.",
        show_default=False,
    ),
]


def compare(
    a: A,
    b: B,
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
    tested: Tested = None,
    store: opt.StoreOption = None,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Hold two runs against each other.

    First whether they did the same work, then what differs in step time and where, which kernels were replaced at
    their place, and which batch shapes were replayed. No speedup is claimed where the work is not the same. Options
    hold for both; a diagnosis.json stays as it was made. Writes COMPARISON.md, and beside it comparison/ with JSON and
    figures.
    """
    with ending(debug=debug):
        from analyzer.comparison.runs import compare as compared

        settings = settings_of(
            steps=steps,
            boundary=boundary,
            dispatch=dispatch,
            output_ranges=output_ranges,
            rules=rules,
            jobs=jobs,
        )
        kept = keeping.opened(store)
        which = Selection(opt.rank_pattern(rank_regex), opt.rank_list(ranks), device)
        sides = [diagnosed(side, settings, which, quiet=quiet, verbose=verbose) for side in (a, b)]
        comparison = compared(sides[0], sides[1], tested=tuple(tested or ()))
        report = None
        if format_ is opt.Format.MD or output is not None:
            report = _written(comparison, Path(output or "."), figures=figures)
        keeping.record_comparison(kept, comparison, *sides, quiet=quiet)
        if format_ is opt.Format.JSON:
            out(comparison.to_json())
        elif report is not None:
            from analyzer.report.comparison import terminal_lines

            written(report, terminal_lines(comparison), quiet=quiet)


def _written(comparison: Comparison, directory: Path, *, figures: bool) -> Path:
    from analyzer.report.comparison_figures import figures as drawings
    from analyzer.report.comparison_outputs import write_comparison

    return write_comparison(comparison, directory, drawings(comparison) if figures else None)
