"""The command line: options in, stages called, files and messages out. The only module that prints."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from analyzer.cli import calc
from analyzer.cli import compare as comparing
from analyzer.cli import history as keeping
from analyzer.cli import ledger as bytes_moved
from analyzer.cli import options as opt
from analyzer.cli import scaling as scales
from analyzer.cli import speculation as speculating
from analyzer.cli import sweep as sweeping
from analyzer.cli import whatif as predicting
from analyzer.cli.console import GateError, ending, out, say, warn, written
from analyzer.cli.doctor import EXAMPLE, doctor
from analyzer.cli.reading import Selection, analyzed, look, settings_of
from analyzer.diagnosis import Diagnosis
from analyzer.errors import TraceboundError
from analyzer.model import Capture
from analyzer.report.escape import TERMINAL, visible
from analyzer.version import __version__

app = typer.Typer(
    name="tracebound",
    help="Explains an LLM engine's step time from Nsight Systems and torch.profiler traces.",
    epilog="Example: tracebound diagnose trace.sqlite -o report",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        out(f"tracebound {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    del version


@app.command(
    epilog="Example: tracebound diagnose trace.sqlite --steps '^decode' -o report",
    no_args_is_help=True,
)
def diagnose(
    traces: opt.Traces,
    steps: opt.Steps = None,
    step_index: opt.StepIndex = None,
    boundary: opt.BoundaryOption = opt.Boundary.DEVICE,
    rank_regex: opt.RankRegex = None,
    ranks: opt.Ranks = None,
    device: opt.DeviceOption = None,
    manifest: opt.ManifestOption = None,
    dispatch: opt.Dispatch = None,
    output_ranges: opt.OutputRanges = None,
    token_log: opt.TokenLogs = None,
    token_clock: opt.TokenClock = None,
    rules: opt.RulesOption = None,
    threshold: opt.Threshold = None,
    ledger: opt.LedgerOption = None,
    counters: opt.CountersOption = None,
    sweep: opt.SweepOption = None,
    jobs: opt.Jobs = 1,
    output: opt.Output = None,
    format_: opt.FormatOption = opt.Format.MD,
    figures: opt.Figures = True,
    store: opt.StoreOption = None,
    strict: opt.Strict = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Explain each step's time.

    Writes DIAGNOSIS.md, and beside it diagnosis/ with every figure as JSON and CSV.
    """
    with ending(debug=debug):
        from analyzer.report import outputs
        from analyzer.report.cautions import cautions

        settings = settings_of(
            steps=steps,
            boundary=boundary,
            dispatch=dispatch,
            output_ranges=output_ranges,
            rules=rules,
            jobs=jobs,
            step_index=opt.step_index(step_index),
            thresholds=opt.thresholds(threshold),
            ledger=ledger,
            counters=tuple(counters or ()),
            sweep=None if sweep is None else str(sweep),
            token_logs=_token_logs(traces, token_log),
            token_clocks=opt.token_clocks(token_clock),
        )
        kept = keeping.opened(store)
        which = Selection(opt.rank_pattern(rank_regex), opt.rank_list(ranks), device, manifest)
        refuse = _refuse_partial if strict else _refuse_nothing
        analysis = analyzed(traces, settings, which, quiet=quiet, refuse=refuse)
        warn(cautions(analysis.diagnosis, TERMINAL), quiet=quiet, verbose=verbose)
        report = None
        if format_ is opt.Format.MD or output is not None:
            report = outputs.write(analysis, Path(output or "."), figures=figures)
        keeping.record(kept, analysis.diagnosis, quiet=quiet)
        if format_ is opt.Format.JSON:
            out(analysis.to_json())
        elif report is not None:
            written(report, _findings(analysis.diagnosis), quiet=quiet)


def _token_logs(traces: Sequence[str], given: list[Path] | None) -> tuple[Path, ...]:
    """Those that were given, else those of our own client beside the traces."""
    from analyzer.intake import find_token_logs

    return tuple(given) if given else tuple(find_token_logs(list(traces)))


def _refuse_nothing(_: Capture) -> None:
    """Damaged files are used as far as they go."""


def _refuse_partial(capture: Capture) -> None:
    partial = [source.path for source in capture.sources if source.partial]
    if partial:
        raise GateError(
            partial[0],
            "",
            "the file is cut off or damaged"
            + (f", and so are {len(partial) - 1} more" if len(partial) > 1 else ""),
            "capture again, or leave --strict out to use what can be read",
        )


def _findings(diagnosis: Diagnosis) -> list[str]:
    from analyzer.report.findings import FINDINGS_SHOWN, share_text, supported, whose_step

    rows = supported(diagnosis)[:FINDINGS_SHOWN]
    if not rows:
        return [f"no explanation is supported by this capture; {_left(diagnosis)}"]
    return [
        f"supported: {visible(row.id, 60)}, {share_text(row)} of {whose_step(diagnosis, row)},"
        f" phase {visible(row.phase, 60)}{'' if row.rank is None else f', rank {row.rank}'}"
        for row in rows
    ]


def _left(diagnosis: Diagnosis) -> str:
    """What the report has instead of a supported explanation; open is what it calls so."""
    verdicts = [row.verdict for row in diagnosis.hypotheses if row.verdict != "inconclusive" or row.share]
    if "inconclusive" in verdicts:
        return "the report says which are open"
    if "unmeasured" in verdicts:
        return "none is open, some are unmeasured: tracebound doctor says what would measure them"
    return "none is open"


@app.command(epilog="Example: tracebound inspect trace.sqlite --format json", no_args_is_help=True)
def inspect(
    traces: opt.Traces,
    steps: opt.Steps = None,
    rank_regex: opt.RankRegex = None,
    ranks: opt.Ranks = None,
    device: opt.DeviceOption = None,
    manifest: opt.ManifestOption = None,
    rules: opt.RulesOption = None,
    jobs: opt.Jobs = 1,
    format_: opt.InspectFormat = opt.Format.MD,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Show what a capture holds.

    Ranks, devices, streams, versions, what was and what was not captured, the steps found, the largest
    kernels, collectives, and what could not be used.
    """
    with ending(debug=debug):
        from analyzer import pipeline
        from analyzer.report import inspection, inspection_text
        from analyzer.rules import load_rules

        known = load_rules(rules or ())
        settings = pipeline.Options(steps=opt.pattern("--steps", steps), rules=tuple(rules or ()), jobs=jobs)
        looked = look(
            traces,
            settings,
            rank_regex=rank_regex,
            ranks=ranks,
            device=device,
            manifest=manifest,
            quiet=quiet,
        )
        found = inspection.inspect(
            looked.capture,
            version=__version__,
            steps=None if looked.diagnosis is None else looked.diagnosis.steps,
            steps_missing_because=looked.reason,
            quality=None if looked.diagnosis is None else looked.diagnosis.quality,
            rules=known,
        )
        out(found.to_json() if format_ is opt.Format.JSON else inspection_text.text(found))


app.command(epilog=comparing.EXAMPLE, no_args_is_help=True)(comparing.compare)

app.command(epilog=sweeping.EXAMPLE, no_args_is_help=True)(sweeping.sweep)

app.command(epilog=predicting.EXAMPLE, no_args_is_help=True)(predicting.whatif)

app.command(epilog=scales.EXAMPLE, no_args_is_help=True)(scales.scaling)

app.command(epilog=speculating.EXAMPLE, no_args_is_help=True)(speculating.speculation)

app.command(epilog=keeping.EXAMPLE)(keeping.history)

app.command(epilog=EXAMPLE, no_args_is_help=True)(doctor)


@app.command(epilog="Example: tracebound demo demo", no_args_is_help=True)
def demo(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Where the example goes.")],
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Write the example captures.

    A small decode loop on 8 ranks, eager and captured in CUDA graphs, and what a diagnosis of it can be given besides:
    what README and docs use.
    """
    with ending(debug=debug):
        from analyzer import example

        try:
            written = example.write(Path(directory))
        except OSError as error:
            raise TraceboundError(
                str(error.filename or directory),
                "",
                f"cannot write the example: {error.strerror or error}",
                "choose another directory",
            ) from None
        for path in written:
            out(f"{visible(str(path))}\n")
        if not quiet:
            target = visible(shlex.quote(str(Path(directory) / "eager")))
            say(f"next: tracebound diagnose {target}")


@app.command(
    add_help_option=False,
    context_settings={
        "ignore_unknown_options": True,
        "allow_extra_args": True,
        "allow_interspersed_args": False,  # what follows belongs to the collector, its -- and --help included
        "help_option_names": [],
    },
)
def collect(context: typer.Context) -> None:
    """Capture a run on the target ranks, with the manifest of what was run.

    The collectors are `python -m collectors` as well, which needs nothing but Python.
    """
    from collectors import cli as collectors

    raise typer.Exit(collectors.main(context.args, prog="tracebound collect"))


app.add_typer(bytes_moved.app)

app.add_typer(calc.app)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Entry point of the ``tracebound`` command."""
    for stream in (sys.stdout, sys.stderr):
        # a terminal that cannot show a character gets its number, not a traceback
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    app(args=None if arguments is None else list(arguments), prog_name="tracebound")
    raise SystemExit(0)
