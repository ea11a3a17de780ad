"""``tracebound whatif``."""

from __future__ import annotations

from typing import Annotated

import typer

from analyzer.cli import options as opt
from analyzer.cli.console import ending, out, warn
from analyzer.cli.reading import Selection, analyzed, settings_of
from analyzer.report.escape import TERMINAL

EXAMPLE = "Example: tracebound whatif eager --change graph-capture --change 'kernel:gemm|nvjet=0.5+host=0.8'"

ChangeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--change",
        metavar="SPEC",
        help="A change to replay, such as graph-capture, kernel:REGEX=0.5, host=0.8, no-skew, no-sync; several joined "
        "by + are one. May be repeated; --list-changes shows all. Default: each explanation's own.",
        show_default=False,
    ),
]
AssumeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--assume",
        metavar="NAME=NS",
        help="What a prediction rests on, such as graph_turnaround_ns=1200 or graph_launch_ns=2500..9000; may be "
        "repeated.",
        show_default=False,
    ),
]


def _listed(asked: bool) -> None:
    if asked:
        from analyzer.predict.assumptions import DEFAULTS, MEANINGS
        from analyzer.predict.changes import FORMS
        from analyzer.report.tables import columns, section

        out(section("Changes", columns(("SPEC", "What it means"), FORMS, left=(0, 1))) + "\n")
        rows = [(name, f"{low:,} to {high:,}", MEANINGS[name]) for name, (low, high) in DEFAULTS.items()]
        out(
            section(
                "Assumptions where a capture shows none (ns)", columns(("NAME", "", ""), rows, left=(0, 2))
            )
        )
        raise typer.Exit


def whatif(
    traces: opt.Traces,
    change: ChangeOption = None,
    assume: AssumeOption = None,
    list_changes: Annotated[
        bool,
        typer.Option(
            "--list-changes", help="Show every change and assumption.", callback=_listed, is_eager=True
        ),
    ] = False,
    steps: opt.Steps = None,
    boundary: opt.TraceBoundaryOption = opt.TraceBoundary.DEVICE,
    rank_regex: opt.RankRegex = None,
    ranks: opt.Ranks = None,
    device: opt.DeviceOption = None,
    manifest: opt.ManifestOption = None,
    dispatch: opt.Dispatch = None,
    output_ranges: opt.OutputRanges = None,
    rules: opt.RulesOption = None,
    jobs: opt.Jobs = 1,
    format_: opt.InspectFormat = opt.Format.MD,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Predict the step time after a change.

    Replays the capture with one thing changed: a range for the mean step, what it rests on, and what the change can
    give at most. Withheld where lags learned on odd steps do not reproduce the even ones within 3 %.
    """
    del list_changes
    with ending(debug=debug):
        from analyzer.report import whatif_text
        from analyzer.report.cautions import cautions

        settings = settings_of(
            steps=steps,
            boundary=boundary,
            dispatch=dispatch,
            output_ranges=output_ranges,
            rules=rules,
            jobs=jobs,
            changes=tuple(change or ()),
            assume=tuple(assume or ()),
            own_changes=not change,
        )
        which = Selection(opt.rank_pattern(rank_regex), opt.rank_list(ranks), device, manifest)
        analysis = analyzed(traces, settings, which, quiet=quiet)
        warn(cautions(analysis.diagnosis, TERMINAL), quiet=quiet, verbose=verbose)
        answer = whatif_text.answer(analysis.diagnosis)
        out(answer.to_json() if format_ is opt.Format.JSON else whatif_text.text(answer.whatif))
