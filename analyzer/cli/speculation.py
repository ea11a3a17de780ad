"""``tracebound speculation``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analyzer.cli import options as opt
from analyzer.cli.console import ending, out, written
from analyzer.cli.reading import Selection, settings_of
from analyzer.cli.runs import RUN, diagnosed
from analyzer.errors import UsageError

if TYPE_CHECKING:
    from analyzer.pipeline import Options
    from analyzer.speculation.speedup import Timed

EXAMPLE = "Example: tracebound speculation --accepted accepted.csv --baseline plain --speculative drafted"

Accepted = Annotated[
    Path,
    typer.Option(
        metavar="FILE",
        help="Counts of accepted drafted tokens: CSV, JSON or JSON lines, one row per verification or a histogram.",
    ),
]
DraftTokens = Annotated[
    int | None,
    typer.Option(
        metavar="K", min=1, help="Tokens drafted per cycle, where the file does not say.", show_default=False
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(metavar="RUN", help=f"A capture without speculation: {RUN}.", show_default=False),
]
Speculative = Annotated[
    str | None,
    typer.Option(metavar="RUN", help="A capture with it, whose steps are cycles.", show_default=False),
]
BaselineStep = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Time per token without speculation, if not captured: 9ms."),
]
Cycle = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Time of one draft and verification, if not captured: 16ms."),
]
Phase = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX",
        help="Phase of both captures; else decode, or the one with most time.",
        show_default=False,
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Write the report there. Default: to stdout.",
        show_default=False,
    ),
]


def speculation(
    accepted: Accepted,
    draft_tokens: DraftTokens = None,
    baseline: Baseline = None,
    speculative: Speculative = None,
    baseline_step: BaselineStep = None,
    cycle: Cycle = None,
    phase: Phase = None,
    steps: opt.Steps = None,
    rank_regex: opt.RankRegex = None,
    ranks: opt.Ranks = None,
    device: opt.DeviceOption = None,
    rules: opt.RulesOption = None,
    jobs: opt.Jobs = 1,
    output: Output = None,
    format_: opt.FormatOption = opt.Format.MD,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Measure what speculative decoding gains.

    Tokens per cycle and acceptance by position from counted cycles, with intervals; whether one chance describes
    them; and the speedup at the step times of two captures. Prints the report; with --output it is written instead.
    """
    with ending(debug=debug):
        from analyzer.report.speculation import render_speculation, terminal_lines, write_speculation
        from analyzer.speculation.reading import read_counts
        from analyzer.speculation.speedup import speculate

        settings = settings_of(steps=steps, rules=rules, jobs=jobs, own_changes=False)
        which = Selection(opt.rank_pattern(rank_regex), opt.rank_list(ranks), device)
        wanted = opt.pattern("--phase", phase)
        counts = read_counts(accepted, draft_tokens)
        sides = [
            _timed(option, run, time, settings, which, wanted, quiet=quiet, verbose=verbose)
            for option, run, time in (
                ("--baseline", baseline, baseline_step),
                ("--speculative", speculative, cycle),
            )
        ]
        result = speculate(str(accepted), counts, *sides)
        report = None if output is None else write_speculation(result, Path(output))
        if format_ is opt.Format.JSON:
            out(result.to_json())
        elif report is None:
            out(render_speculation(result))
        else:
            written(report, terminal_lines(result), quiet=quiet)


def _timed(
    option: str,
    run: str | None,
    time: str | None,
    settings: Options,
    which: Selection,
    phase: str | None,
    *,
    quiet: bool,
    verbose: bool,
) -> Timed | None:
    """A side's time, measured in a capture or given; None where neither is there."""
    from analyzer.calculators import quantities
    from analyzer.speculation.speedup import given, timed

    if run is not None and time is not None:
        other = "--baseline-step" if option == "--baseline" else "--cycle"
        raise UsageError(option, "", f"stands beside {other}", "give the capture or the time")
    if run is not None:
        return timed(run, diagnosed(run, settings, which, quiet=quiet, verbose=verbose), phase)
    if time is None:
        return None
    return given(quantities.time_ns("--baseline-step" if option == "--baseline" else "--cycle", time))
