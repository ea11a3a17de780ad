"""``tracebound doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from analyzer.cli import options as opt
from analyzer.cli.console import GateError, ending, out
from analyzer.cli.reading import look
from analyzer.version import __version__

if TYPE_CHECKING:
    from analyzer.explain.check_up.examine import Checkup

EXAMPLE = "Example: tracebound doctor trace.sqlite --strict"

GapsFail = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Exit 1 where another capture would answer more, ranks are missing, a file is damaged, or a rank's "
        "capture or command failed.",
    ),
]


def doctor(
    traces: opt.Traces,
    steps: opt.Steps = None,
    rank_regex: opt.RankRegex = None,
    ranks: opt.Ranks = None,
    device: opt.DeviceOption = None,
    manifest: opt.ManifestOption = None,
    output_ranges: opt.OutputRanges = None,
    rules: opt.RulesOption = None,
    jobs: opt.Jobs = 1,
    format_: opt.InspectFormat = opt.Format.MD,
    strict: GapsFail = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Say what a capture can answer.

    Per hypothesis: whether this capture can answer it, why not, and the options of the profiler that would
    close the gap; one capture command with all of them; what is doubtful about each file.
    """
    with ending(debug=debug):
        from analyzer import pipeline
        from analyzer.explain.check_up.examine import examine
        from analyzer.report import doctor_text
        from analyzer.rules import load_rules

        known = load_rules(rules or ())
        settings = pipeline.Options(
            steps=opt.pattern("--steps", steps),
            output_ranges=opt.pattern("--output-ranges", output_ranges),
            rules=tuple(rules or ()),
            jobs=jobs,
        )
        found = look(
            traces, settings, rank_regex=rank_regex, ranks=ranks, device=device, manifest=manifest, quiet=quiet
        )  # fmt: skip
        checkup = examine(
            found.capture,
            found.diagnosis,
            version=__version__,
            steps_missing_because=found.reason,
            rules=known,
        )
        out(checkup.to_json() if format_ is opt.Format.JSON else doctor_text.text(checkup))
        if strict and checkup.failures:
            raise _gate(checkup)


def _gate(checkup: Checkup) -> GateError:
    names = [row.subject if row.what == "hypothesis" else row.what for row in checkup.failures]
    listed = ", ".join(dict.fromkeys(names))
    return GateError(
        checkup.files[0].path,
        "",
        f"{checkup.gaps} gap{'' if checkup.gaps == 1 else 's'}: {listed}",
        "capture again as said above, or leave --strict out",
    )
