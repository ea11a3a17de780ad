"""Calculators about steps: scaling, one change, speculation, batching."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated

import typer

from analyzer import calculators
from analyzer.calculators import quantities
from analyzer.cli import options as opt
from analyzer.cli.calc.answer import CalcFormat, answer
from analyzer.cli.console import ending
from analyzer.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    commands: list[tuple[str, Callable[..., None], str]] = [
        ("amdahl", amdahl, "amdahl --phase-share 0.7 --speedup 3 --ways 8"),
        ("scaling", scaling, "scaling --point 1=196.65ms --point 8=80.61ms"),
        (
            "whatif",
            whatif,
            "whatif --term kernels=4.5ms --term waits=2ms --term launch=1.5ms --term output=1ms "
            "--change launch=0.5ms",
        ),
        (
            "speculation",
            speculation,
            "speculation --acceptance 0.8 --draft-tokens 7 --verify 12ms --draft 3ms --other 1ms "
            "--baseline 9ms",
        ),
        ("batching", batching, "batching --batch 8 --step 20ms --experts 256 --experts-per-token 8"),
    ]
    for name, command, example in commands:
        app.command(name, epilog=f"\b\nExample: tracebound calc {example}", no_args_is_help=True)(command)


def amdahl(
    phase_share: Annotated[float, typer.Option(metavar="SHARE", help="Share of the time, 0 to 1.")],
    speedup: Annotated[float, typer.Option(metavar="X", help="How many times faster the phase gets.")],
    ways: Annotated[
        int | None, typer.Option(metavar="N", help="Then spread the phase over N ranks, ideally.")
    ] = None,
    format_: CalcFormat = opt.Format.MD,
    debug: opt.Debug = False,
) -> None:
    """What one faster phase gives the whole.

    And with --ways how the rest then limits scaling.
    """
    with ending(debug=debug):
        answer(format_, calculators.amdahl, phase_share=phase_share, speedup=speedup, ways=ways)


def scaling(
    point: Annotated[
        list[str], typer.Option(metavar="RANKS=TIME", help="A measured time, such as 8=80.61ms. Repeat.")
    ],
    format_: CalcFormat = opt.Format.MD,
    debug: opt.Debug = False,
) -> None:
    """Fit serial and parallel time.

    T(N) = S + P / N at several rank counts N. Two points solve exactly, and absorb communication and
    everything else; more give residuals.
    """
    with ending(debug=debug):
        answer(format_, calculators.scaling, points=[_point(text) for text in point])


def _point(text: str) -> tuple[int, float]:
    match = re.fullmatch(r"\s*(\d{1,9})\s*=(.*)", text, re.ASCII | re.DOTALL)
    if match is None:
        raise UsageError("--point", "", f"{text!r} is not RANKS=TIME", "write it as --point 8=80.61ms")
    return int(match[1]), quantities.time_ns("--point", match[2])


def whatif(
    term: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=TIME", help="An exclusive part of the critical path, such as launch=1.5ms. Repeat."
        ),
    ],
    change: Annotated[
        str, typer.Option(metavar="NAME=TIME", help="The part that changes, and its new time.")
    ],
    format_: CalcFormat = opt.Format.MD,
    debug: opt.Debug = False,
) -> None:
    """Bound what one change gives at most.

    One part of a critical path gets another time; all others stay.
    """
    with ending(debug=debug):
        terms: dict[str, float] = {}
        for text in term:
            name, value = _named_time("--term", text)
            if name in terms:
                raise UsageError("--term", "", f"{name!r} is given twice", "give each part another name")
            terms[name] = value
        changed, new_ns = _named_time("--change", change)
        answer(format_, calculators.whatif, terms_ns=terms, change=changed, new_ns=new_ns)


def _named_time(option: str, text: str) -> tuple[str, float]:
    name, equals, value = text.rpartition("=")
    if not (equals and name.strip()):
        raise UsageError(option, "", f"{text!r} is not NAME=TIME", f"write it as {option} launch=1.5ms")
    return name.strip(), quantities.time_ns(option, value)


def speculation(
    acceptance: Annotated[
        float, typer.Option(metavar="SHARE", help="Chance that a drafted token is accepted, 0 to 1.")
    ],
    draft_tokens: Annotated[int, typer.Option(metavar="N", help="Tokens drafted per verification.")],
    verify: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time of one verification, such as 12ms.")
    ] = None,
    draft: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time to draft all these tokens, such as 3ms.")
    ] = None,
    other: Annotated[str, typer.Option(metavar="TIME", help="What else one round takes.")] = "0ms",
    baseline: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time per token without speculation, such as 9ms.")
    ] = None,
    format_: CalcFormat = opt.Format.MD,
    debug: opt.Debug = False,
) -> None:
    """Model speculative decoding.

    Expected tokens of one verification, and with the costs the speedup and where it breaks even.
    """
    with ending(debug=debug):
        answer(
            format_,
            calculators.speculation,
            acceptance=acceptance,
            draft_tokens=draft_tokens,
            verify_ns=None if verify is None else quantities.time_ns("--verify", verify),
            draft_ns=None if draft is None else quantities.time_ns("--draft", draft),
            other_ns=quantities.time_ns("--other", other),
            baseline_ns=None if baseline is None else quantities.time_ns("--baseline", baseline),
        )


def batching(
    batch: Annotated[int, typer.Option(metavar="N", help="Streams that decode together.")],
    step: Annotated[
        str, typer.Option(metavar="TIME", help="Time of one step at this batch size, such as 20ms.")
    ],
    experts: Annotated[int | None, typer.Option(metavar="N", help="Routed experts of a layer.")] = None,
    experts_per_token: Annotated[
        int | None, typer.Option(metavar="N", help="Experts that one token is routed to.")
    ] = None,
    format_: CalcFormat = opt.Format.MD,
    debug: opt.Debug = False,
) -> None:
    """Rate of a batch, and experts touched.

    Experts: how many a batch reads if routing were uniform.
    """
    with ending(debug=debug):
        answer(
            format_,
            calculators.batching,
            batch=batch,
            step_ns=quantities.time_ns("--step", step),
            experts=experts,
            experts_per_token=experts_per_token,
        )
