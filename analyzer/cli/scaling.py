"""``tracebound scaling``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from analyzer.cli import options as opt
from analyzer.cli.console import ending, out, written
from analyzer.cli.reading import Selection, settings_of
from analyzer.cli.runs import RUN, diagnosed
from analyzer.errors import TraceError, UsageError

if TYPE_CHECKING:
    from analyzer.scaling.result import Scaling

EXAMPLE = "Example: tracebound scaling ranks1 ranks2 ranks4 ranks8 -o scaling-study"

Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        help=f"Runs of different rank counts, each with all its ranks: {RUN}.",
        show_default=False,
    ),
]
RanksOf = Annotated[
    list[str] | None,
    typer.Option(
        "--ranks-of",
        metavar="RUN=N",
        help="Ranks of a run, given as among RUN..., where its capture does not tell; may be repeated.",
        show_default=False,
    ),
]
Phase = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX", help="Phase of all runs; else the leading one that all have.", show_default=False
    ),
]
KeepUnlike = Annotated[
    bool, typer.Option("--keep-unlike", help="Fit also runs that are unlike most of the others.")
]
AgainstOption = Annotated[
    Path | None,
    typer.Option(
        "--against",
        metavar="FILE",
        help="The scaling.json of an earlier study: what got better, the step times or their scaling.",
        show_default=False,
    ),
]


def scaling(
    runs: Runs,
    ranks_of: RanksOf = None,
    phase: Phase = None,
    keep_unlike: KeepUnlike = False,
    against: AgainstOption = None,
    steps: opt.Steps = None,
    boundary: opt.TraceBoundaryOption = opt.TraceBoundary.DEVICE,
    rank_regex: opt.RankRegex = None,
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
    """Fit the step time over the ranks.

    T(N) = S + P / N, whole and by category: exact through two runs, least squares with residuals through more; measured
    speedup and efficiency. Options hold for all runs; a diagnosis.json stays as it was made. Writes SCALING.md, and
    beside it scaling/ with JSON, CSV and figures.
    """
    with ending(debug=debug):
        from analyzer.scaling.study import Given, study

        settings = settings_of(
            steps=steps,
            boundary=boundary,
            dispatch=dispatch,
            output_ranges=output_ranges,
            rules=rules,
            jobs=jobs,
            own_changes=False,
        )
        declared = _declared(ranks_of or (), runs)
        wanted = opt.pattern("--phase", phase)
        earlier = None if against is None else (str(against), _earlier(against))
        which = Selection(opt.rank_pattern(rank_regex), None, None)
        given = [
            Given(run, diagnosed(run, settings, which, quiet=quiet, verbose=verbose), declared.get(run))
            for run in runs
        ]
        result = study(given, phase=wanted, keep_unlike=keep_unlike, against=earlier)
        report = None
        if format_ is opt.Format.MD or output is not None:
            report = _written(result, Path(output or "."), figures=figures)
        if format_ is opt.Format.JSON:
            out(result.to_json())
        elif report is not None:
            from analyzer.report.scaling import terminal_lines

            written(report, terminal_lines(result), quiet=quiet)


def _declared(words: Sequence[str], runs: Sequence[str]) -> dict[str, int]:
    """``["slow=8"]`` as a mapping."""
    result: dict[str, int] = {}
    for word in words:
        run, _, number = word.rpartition("=")
        if not (number.isascii() and number.isdecimal() and 0 < int(number) <= opt.MAX_RANKS):
            raise UsageError(
                "--ranks-of", "", f"{word!r} is not RUN=N", "write it as --ranks-of old.sqlite=8"
            )
        if run not in runs:
            raise UsageError(
                "--ranks-of", "", f"{run!r} is none of the runs", "write the run as among RUN..."
            )
        result[run] = int(number)
    return result


def _earlier(path: Path) -> Scaling:
    from analyzer.scaling.result import FORMAT, FORMAT_VERSION, Scaling

    hint = "give the scaling.json that an earlier tracebound scaling wrote"
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Scaling)
    except OSError as error:
        raise TraceError(str(path), "", f"cannot be read: {error.strerror}", hint) from None
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise TraceError(str(path), "", f"is no scaling study: {error}", hint) from None
    if (found.format, found.format_version) != (FORMAT, FORMAT_VERSION):
        raise TraceError(str(path), "format", f"is {found.format!r} {found.format_version}", hint)
    return found


def _written(result: Scaling, directory: Path, *, figures: bool) -> Path:
    from analyzer.report.scaling_figures import figures as drawings
    from analyzer.report.scaling_outputs import write_scaling

    return write_scaling(result, directory, drawings(result) if figures else None)
