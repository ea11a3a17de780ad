"""``tracebound ledger``: byte ledgers built from checkpoints, and shown."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from analyzer.cli import options as opt
from analyzer.cli.console import ending, out, say, warn
from analyzer.errors import UsageError
from analyzer.report.escape import terminal, visible

app = typer.Typer(
    name="ledger",
    help="Byte ledgers: what each rank must move from and to device memory in a step.",
    epilog="Example: tracebound ledger show ledger.toml --device 'NVIDIA H200'",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


class Embedding(StrEnum):
    """How ranks of a tensor group hold the embedding table."""

    SPLIT = "split"
    REPLICATED = "replicated"


@app.command(
    epilog="\b\nExample: tracebound ledger build Qwen3-235B-A22B -o ledger.toml --tensor 8 --expert 8 --batch 64"
    " --context 4096",
    no_args_is_help=True,
)
def build(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            metavar="CHECKPOINT_DIR",
            help="A folder with config.json and safetensors files; only their headers are read.",
            show_default=False,
        ),
    ],
    batch: Annotated[int, typer.Option(metavar="N", help="Sequences of one step, of all ranks together.")],
    context: Annotated[
        int, typer.Option(metavar="TOKENS", help="Tokens of each sequence in the cache before the step.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The ledger to write.")],
    tensor: Annotated[int, typer.Option(metavar="N", help="Ranks that split each matrix.")] = 1,
    expert: Annotated[int, typer.Option(metavar="N", help="Shares of the routed experts.")] = 1,
    pipeline: Annotated[int, typer.Option(metavar="N", help="Stages that the layers are divided over.")] = 1,
    data: Annotated[int, typer.Option(metavar="N", help="Replicas that share the batch.")] = 1,
    stage_layers: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Layers of each stage, such as 31,30.", show_default=False),
    ] = None,
    cache_dtype: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="Type of the KV cache, such as fp8. Default: as computed."),
    ] = None,
    weights_dtype: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE", help="What plain floating-point weights are loaded as. Default: as stored."
        ),
    ] = None,
    state_dtype: Annotated[
        str | None, typer.Option(metavar="TYPE", help="Type of recurrent states. Default: the config's.")
    ] = None,
    routing: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Measured tokens per expert, CSV or JSON. Default: uniform expectation."
        ),
    ] = None,
    embedding: Annotated[
        Embedding,
        typer.Option(help="The embedding table: split over the tensor group, or whole on each rank."),
    ] = Embedding.SPLIT,
    activations: Annotated[
        bool,
        typer.Option("--activations/--no-activations", help="Count inputs and outputs of matrix products."),
    ] = True,
    name: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The workload's name in the ledger.")
    ] = None,
    applies_to: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Phases of a diagnosis whose steps these are.")
    ] = None,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    debug: opt.Debug = False,
) -> None:
    """Build a ledger from a checkpoint's headers.

    Tensor by tensor, for one decode step in a parallel layout. Tensors that no rule knows are listed, not guessed.
    """
    with ending(debug=debug):
        from analyzer.ledger import build as building
        from analyzer.ledger import files

        request = building.Request(
            batch=batch,
            context=context,
            tensor=tensor,
            expert=expert,
            pipeline=pipeline,
            data=data,
            stage_layers=None if stage_layers is None else _layers(stage_layers),
            cache_dtype=cache_dtype,
            weights_dtype=weights_dtype,
            state_dtype=state_dtype,
            routing=routing,
            activations=activations,
            embedding_split=embedding is Embedding.SPLIT,
            name=name,
            applies_to=opt.pattern("--applies-to", applies_to),
        )
        built = building.build(checkpoint, request)
        files.write(built.ledger, output)
        warn([terminal(text) for text in built.warnings], quiet=quiet, verbose=verbose)
        if not quiet:
            say(f"next: tracebound ledger show {visible(str(output))}")
        out(f"{visible(str(output))}\n")


def _layers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(
            "--stage-layers", "", f"{text!r} is no list of numbers", "write it as 31,30"
        ) from None


@app.command(
    epilog="Example: tracebound ledger show ledger.toml --device 'NVIDIA H200'",
    no_args_is_help=True,
)
def show(
    ledger: Annotated[Path, typer.Argument(metavar="LEDGER", help="A ledger file.", show_default=False)],
    device: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The GPU as its driver names it: the floor at its bandwidth."),
    ] = None,
    bandwidth: Annotated[
        str | None, typer.Option(metavar="RATE", help="Memory bandwidth of each rank, such as 4.8TB/s.")
    ] = None,
    format_: opt.InspectFormat = opt.Format.MD,
    debug: opt.Debug = False,
) -> None:
    """Show a ledger's sums.

    Per phase and kind the bytes of a step, least and most of a rank, and arithmetic per byte; with a bandwidth the
    floor.
    """
    with ending(debug=debug):
        from analyzer import strict_json
        from analyzer.calculators import quantities
        from analyzer.ledger import files, summary
        from analyzer.report import byte_ledger_text

        if device is not None and bandwidth is not None:
            raise UsageError("--device", "", "stands beside --bandwidth", "give one of them")
        rate, source = None, ""
        if device is not None:
            rate, source = summary.device_bandwidth(device)
        elif bandwidth is not None:
            rate, source = quantities.rate_bytes_per_s("--bandwidth", bandwidth), "--bandwidth"
        found = summary.summarize(files.read(ledger), rate, source)
        out(strict_json.encode(found) if format_ is opt.Format.JSON else byte_ledger_text.text(found))
