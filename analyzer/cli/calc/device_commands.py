"""Calculators about the device: memory, launches, collectives, grids and occupancy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from analyzer import calculators
from analyzer.calculators import quantities
from analyzer.cli import options as opt
from analyzer.cli.calc.answer import CalcFormat, answer
from analyzer.cli.console import ending
from analyzer.errors import UsageError

MAX_RANKS = 1_000_000

Step = Annotated[str, typer.Option("--step", metavar="TIME", help="Time of one step, such as 16.6ms.")]
Bandwidth = typer.Option("--bandwidth", metavar="RATE", help="Memory bandwidth, such as 4.8TB/s.")


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    commands: list[tuple[str, Callable[..., None], str]] = [
        ("floor", floor, "floor --bytes 10GB --bandwidth 2TB/s --observed 20ms"),
        ("intensity", intensity, "intensity --stored-bytes-per-weight 0.21"),
        ("slot", slot, "slot --step 16.6ms --launches 2790"),
        ("collective", collective, "collective --calls 92 --latency 58.7us --step 281.6ms"),
        ("alpha-beta", alpha_beta, "alpha-beta --point 14KiB=58.7us --point 7MiB=85us"),
        ("coverage", coverage, "coverage --blocks 12 --sms 132"),
        (
            "occupancy",
            occupancy,
            "occupancy --compute-capability 9.0 --threads-per-block 384 --registers-per-thread 168",
        ),
    ]
    for name, command, example in commands:
        app.command(name, epilog=f"\b\nExample: tracebound calc {example}", no_args_is_help=True)(command)


def floor(
    bytes_: Annotated[
        list[str],
        typer.Option(
            "--bytes",
            metavar="SIZE[,SIZE...]",
            help="Bytes that a phase moves: one size for every rank, or one per rank. Repeat for serial phases.",
        ),
    ],
    bandwidth: Annotated[
        str,
        typer.Option(
            metavar="RATE[,RATE...]", help="Memory bandwidth, such as 4.8TB/s: one for all, or one per rank."
        ),
    ],
    ranks: Annotated[
        int | None, typer.Option(metavar="N", help="Number of ranks, where one size stands for all.")
    ] = None,
    observed: Annotated[
        str | None, typer.Option(metavar="TIME", help="Measured time of the same step, such as 20ms.")
    ] = None,
    tokens: Annotated[float, typer.Option(metavar="N", help="Tokens that one step yields.")] = 1,
    format_: CalcFormat = opt.Format.MD,
    debug: opt.Debug = False,
) -> None:
    """Least time that moved bytes take.

    Bytes / bandwidth. The slowest rank sets a phase; serial phases add. With --observed also what
    the floor leaves unexplained.
    """
    with ending(debug=debug):
        rows = [[quantities.size_bytes("--bytes", part) for part in row.split(",")] for row in bytes_]
        speeds = [quantities.rate_bytes_per_s("--bandwidth", part) for part in bandwidth.split(",")]
        count = _rank_count(ranks, [len(speeds), *map(len, rows)])
        answer(
            format_,
            calculators.floor,
            phases=[
                calculators.Phase(_for_each("--bytes", row, count), _for_each("--bandwidth", speeds, count))
                for row in rows
            ],
            observed_ns=None if observed is None else quantities.time_ns("--observed", observed),
            tokens=tokens,
        )


def _rank_count(ranks: int | None, lengths: list[int]) -> int:
    if ranks is None:
        return max(lengths)
    if not 1 <= ranks <= MAX_RANKS:
        raise UsageError("--ranks", "", f"{ranks} ranks", f"give a whole number from 1 to {MAX_RANKS:,}")
    return ranks


def _for_each(option: str, values: list[float], count: int) -> list[float]:
    if len(values) not in (1, count):
        raise UsageError(
            option, "", f"{len(values)} values for {count} ranks", "give one for all ranks, or one per rank"
        )
    return values * (count if len(values) == 1 else 1)


def intensity(
    stored_bytes_per_weight: Annotated[
        float, typer.Option(metavar="BYTES", help="Bytes per weight as stored, with scales: 2 for BF16.")
    ],
    batch: Annotated[int, typer.Option(metavar="N", help="Tokens that one read of the weights serves.")] = 1,
    flop_per_weight: Annotated[
        float, typer.Option(metavar="FLOP", help="Arithmetic per weight and token.")
    ] = 2,
    peak: Annotated[
        str | None, typer.Option(metavar="RATE", help="Dense peak of the dtype, such as 989TFLOP/s.")
    ] = None,
    bandwidth: Annotated[str | None, Bandwidth] = None,
    format_: CalcFormat = opt.Format.MD,
    debug: opt.Debug = False,
) -> None:
    """Arithmetic per byte of weights.

    With --peak and --bandwidth also the roof over it.
    """
    with ending(debug=debug):
        answer(
            format_,
            calculators.intensity,
            stored_bytes_per_weight=stored_bytes_per_weight,
            batch=batch,
            flop_per_weight=flop_per_weight,
            peak_flop_per_s=None if peak is None else quantities.rate_flop_per_s("--peak", peak),
            bytes_per_s=None if bandwidth is None else quantities.rate_bytes_per_s("--bandwidth", bandwidth),
        )


def slot(
    step: Step,
    launches: Annotated[int, typer.Option(metavar="N", help="Launches in one step, on one rank.")],
    format_: CalcFormat = opt.Format.MD,
    debug: opt.Debug = False,
) -> None:
    """Time slot per launch: a budget.

    The step's time shared out over its launches; not what a launch costs.
    """
    with ending(debug=debug):
        answer(format_, calculators.slot, step_ns=quantities.time_ns("--step", step), launches=launches)


def collective(
    calls: Annotated[int, typer.Option(metavar="N", help="Calls in one step, on one rank.")],
    latency: Annotated[
        str, typer.Option(metavar="TIME", help="Measured time of one whole call, such as 58.7us.")
    ],
    step: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time of one step, such as 281.6ms.")
    ] = None,
    elements: Annotated[int | None, typer.Option(metavar="N", help="Elements that one call carries.")] = None,
    element_bytes: Annotated[
        float | None, typer.Option(metavar="BYTES", help="Bytes of one element.")
    ] = None,
    format_: CalcFormat = opt.Format.MD,
    debug: opt.Debug = False,
) -> None:
    """Calls times latency, and payload.

    A latency that measures the whole call already holds its payload.
    """
    with ending(debug=debug):
        answer(
            format_,
            calculators.collective,
            calls=calls,
            latency_ns=quantities.time_ns("--latency", latency),
            step_ns=None if step is None else quantities.time_ns("--step", step),
            elements=elements,
            bytes_per_element=element_bytes,
        )


def alpha_beta(
    point: Annotated[
        list[str],
        typer.Option(metavar="SIZE=TIME", help="A measured latency, such as 14KiB=58.7us. Repeat."),
    ],
    at: Annotated[
        str | None, typer.Option(metavar="SIZE", help="A size inside the fitted range to ask for.")
    ] = None,
    topology: Annotated[str | None, typer.Option(metavar="TEXT", help="What connects the ranks.")] = None,
    ranks: Annotated[str | None, typer.Option(metavar="TEXT", help="How many ranks took part.")] = None,
    dtype: Annotated[str | None, typer.Option(metavar="TEXT", help="Type of the elements.")] = None,
    synchronization: Annotated[
        str | None, typer.Option(metavar="TEXT", help="How the ranks were synchronized before a call.")
    ] = None,
    concurrency: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What else ran on device and links.")
    ] = None,
    format_: CalcFormat = opt.Format.MD,
    debug: opt.Debug = False,
) -> None:
    """Fit latency over size.

    latency = alpha + bytes / beta. Exact through two points, least squares through more; one size, or
    a size outside the range, is refused.
    """
    with ending(debug=debug):
        said = (topology, ranks, dtype, synchronization, concurrency)
        context = dict(zip(calculators.FIT_CONTEXT, said, strict=True))
        answer(
            format_,
            calculators.alpha_beta,
            points=[_point(text) for text in point],
            at_bytes=None if at is None else quantities.size_bytes("--at", at),
            context={name: value for name, value in context.items() if value is not None},
        )


def _point(text: str) -> tuple[float, float]:
    size, equals, latency = text.partition("=")
    if not equals:
        raise UsageError("--point", "", f"{text!r} is not SIZE=TIME", "write it as --point 14KiB=58.7us")
    return quantities.size_bytes("--point", size), quantities.time_ns("--point", latency)


def coverage(
    blocks: Annotated[int, typer.Option(metavar="N", help="Blocks of the grid.")],
    sms: Annotated[int, typer.Option(metavar="N", help="SMs of the device.")],
    blocks_per_sm: Annotated[
        int | None, typer.Option(metavar="N", help="Blocks that one SM holds, as calc occupancy says.")
    ] = None,
    format_: CalcFormat = opt.Format.MD,
    debug: opt.Debug = False,
) -> None:
    """Share of the SMs that a grid reaches.

    With --blocks-per-sm also its waves, and the tail of the last.
    """
    with ending(debug=debug):
        answer(
            format_, calculators.coverage, blocks=blocks, sm_count=sms, resident_blocks_per_sm=blocks_per_sm
        )


def occupancy(
    compute_capability: Annotated[str, typer.Option(metavar="X.Y", help="Such as 9.0 for H100 and H200.")],
    threads_per_block: Annotated[int, typer.Option(metavar="N", help="Threads of a block.")],
    registers_per_thread: Annotated[int, typer.Option(metavar="N", help="32-bit registers of a thread.")],
    shared_static: Annotated[
        str, typer.Option(metavar="SIZE", help="Static shared memory of a block, such as 16KiB.")
    ] = "0",
    shared_dynamic: Annotated[
        str, typer.Option(metavar="SIZE", help="Dynamic shared memory of a block, such as 200KiB.")
    ] = "0",
    carveout_pct: Annotated[
        int, typer.Option(metavar="PCT", help="Preferred share of shared memory; -1: the driver's default.")
    ] = -1,
    block_barriers: Annotated[int, typer.Option(metavar="N", help="Barriers that a block uses.")] = 1,
    format_: CalcFormat = opt.Format.MD,
    debug: opt.Debug = False,
) -> None:
    """How full an SM can get, and why no more.

    Theoretical occupancy on NVIDIA devices, compute capability 7.0 to 12.0.
    """
    with ending(debug=debug):
        answer(
            format_,
            calculators.occupancy,
            capability=compute_capability,
            threads_per_block=threads_per_block,
            registers_per_thread=registers_per_thread,
            shared_bytes_static=_whole_bytes("--shared-static", shared_static),
            shared_bytes_dynamic=_whole_bytes("--shared-dynamic", shared_dynamic),
            carveout_pct=carveout_pct,
            block_barriers=block_barriers,
        )


def _whole_bytes(option: str, text: str) -> int:
    size = quantities.size_bytes(option, text)
    if size != int(size):
        raise UsageError(option, "", f"{text!r} is no whole number of bytes", "write it as 16KiB or 16384")
    return int(size)
