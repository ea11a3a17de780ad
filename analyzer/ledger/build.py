"""A ledger from a checkpoint's tensor headers, its config, the parallel layout, and what a step's batch is.

Totals come tensor by tensor: from the dtype and shape in the header, the share that the layout gives each rank, and for
routed experts from the tokens that reach each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from analyzer.errors import TraceError, UsageError
from analyzer.ledger.assumptions import Facts, assumptions, counted, missing
from analyzer.ledger.books import Books
from analyzer.ledger.cache import Cache, CacheStep
from analyzer.ledger.checkpoint import Checkpoint, read_checkpoint
from analyzer.ledger.checks import defect_of
from analyzer.ledger.config import ModelConfig, model_config
from analyzer.ledger.dtypes import ARITHMETIC, NAMES
from analyzer.ledger.inventory import Inventory, listed, take
from analyzer.ledger.layout import Parallel, parallel
from analyzer.ledger.model import FORMAT, FORMAT_VERSION, Layout, Ledger, Workload
from analyzer.ledger.routing import Routing, measured_routing, uniform_routing
from analyzer.ledger.shares import check_heads
from analyzer.ledger.weights import Step, Weights


@dataclass(frozen=True)
class Request:
    """The step. ``batch``: sequences of the whole group; ``context``: tokens of each that are in the cache before it.

    Types by their usual names (bf16, fp8); None: what the config or the headers say. ``routing``: a file of counts.
    """

    batch: int
    context: int
    tensor: int = 1
    expert: int = 1
    pipeline: int = 1
    data: int = 1
    stage_layers: tuple[int, ...] | None = None
    cache_dtype: str | None = None
    weights_dtype: str | None = None
    state_dtype: str | None = None
    routing: str | Path | None = None
    activations: bool = True
    embedding_split: bool = True
    name: str | None = None
    applies_to: str | None = None


@dataclass(frozen=True)
class Built:
    """A ledger, and what its reader should be warned of."""

    ledger: Ledger
    warnings: tuple[str, ...]


def build(folder: str | Path, request: Request) -> Built:
    """The ledger of one decode step. TraceError for a checkpoint that cannot be used, UsageError for a wrong layout."""
    checkpoint = read_checkpoint(folder)
    model = model_config(checkpoint.config, checkpoint.config_path, checkpoint.folder.resolve().name)
    layout = parallel(
        tensor=request.tensor,
        expert=request.expert,
        pipeline=request.pipeline,
        data=request.data,
        layers=model.layers,
        stage_layers=request.stage_layers,
    )
    check_heads(model, layout.tensor, checkpoint.config_path)
    tokens = _tokens(request, layout)
    inventory = take(checkpoint, model)
    routing = _routing(request, model, layout, inventory, tokens)
    compute = _compute_dtype(model, inventory, checkpoint)
    cache_step = CacheStep(
        tokens,
        request.context,
        _named("--cache-dtype", request.cache_dtype) or compute,
        _named("--state-dtype", request.state_dtype) or model.state_dtype or compute,
        compute,
    )
    step = Step(
        tokens,
        compute,
        _named("--weights-dtype", request.weights_dtype),
        request.activations,
        request.embedding_split,
    )
    books = Books(layout)
    weights = Weights(books, model, step)
    weights.book(inventory, routing)
    attention, linear, neither = _mixers(inventory, model)
    Cache(books, model, cache_step).book(attention, linear if model.linear is not None else ())
    stateless = neither if model.linear is not None else (*neither, *linear)
    facts = Facts(
        model=model,
        layout=layout,
        inventory=inventory,
        routing=routing,
        step=step,
        cache=cache_step,
        unknown_arithmetic=tuple(weights.unknown_arithmetic),
        stateless=stateless,
        odd_layers=tuple(layer for layer in attention if model.layer_kinds[layer] == "other"),
        notes=(*checkpoint.notes, *_cache_note(request, model, cache_step)),
    )
    ledger = _ledger(request, facts, books)
    defect = defect_of(ledger)
    if defect is not None:  # tensors are in bounds, so it is the step that is beyond what a file holds
        raise UsageError("--batch, --context", defect.where, defect.why, "give the sizes of a real step")
    return Built(ledger, _warnings(facts))


def _cache_note(request: Request, model: ModelConfig, step: CacheStep) -> tuple[str, ...]:
    if request.cache_dtype is not None or not model.quantization.cache:
        return ()
    return (
        f"the config says that the KV cache is quantized, and it is counted as {step.cache_dtype}: if the engine"
        " follows it, give --cache-dtype fp8",
    )


def _tokens(request: Request, layout: Parallel) -> int:
    """Sequences of one data replica, one token each."""
    for option, value, least in (("--batch", request.batch, 1), ("--context", request.context, 0)):
        if value < least:
            raise UsageError(option, "", f"is {value}", f"give {least} or more")
    if request.batch % layout.data:
        why = f"is {request.batch}, which {layout.data} data-parallel replicas do not share evenly"
        raise UsageError("--batch", "", why, "give the batch of the whole group, a multiple of --data")
    return request.batch // layout.data


def _routing(
    request: Request, model: ModelConfig, layout: Parallel, inventory: Inventory, tokens: int
) -> Routing | None:
    if not inventory.expert_layers:
        if layout.expert > 1:
            raise UsageError(
                "--expert", "", "the checkpoint has no routed experts", "leave --expert out; use --tensor"
            )
        if request.routing is not None:
            raise UsageError("--routing", "", "the checkpoint has no routed experts", "leave --routing out")
        return None
    experts, top_k = model.experts or 0, model.top_k or 0
    if experts % layout.expert:
        why = f"is {layout.expert}, which does not divide {experts} experts"
        raise UsageError("--expert", "", why, "give a divisor of the number of experts")
    if top_k > experts:
        raise UsageError("--routing", "", f"top-k {top_k} of {experts} experts", "check config.json")
    reaching = tokens * layout.replicas_per_expert_group
    if request.routing is None:
        return uniform_routing(experts, top_k, reaching)
    if layout.expert_copies > 1:
        why = f"counts of all {layout.data} replicas do not tell which replica's experts were touched"
        raise UsageError(
            "--routing", "", why, f"use --expert {layout.tensor * layout.data}, or one replica's step"
        )
    return measured_routing(request.routing, inventory.expert_layers, experts, top_k, reaching)


def _compute_dtype(model: ModelConfig, inventory: Inventory, checkpoint: Checkpoint) -> str:
    """What the config says, else the type of the norms: they are never quantized."""
    if model.compute_dtype is not None:
        return model.compute_dtype
    stored = {item.tensor.dtype for item in inventory.items if item.known.rule.label == "norms"}
    if len(stored) == 1 and stored <= set(ARITHMETIC):
        return stored.pop()
    raise TraceError(
        checkpoint.config_path,
        "torch_dtype",
        "is missing, and the norms do not tell it",
        "add it to config.json",
    )


def _named(option: str, name: str | None) -> str | None:
    if name is None or name == "auto":
        return None
    if name.lower() not in NAMES:
        raise UsageError(option, "", f"is {name!r}, an unknown type", f"use one of {', '.join(NAMES)}")
    return NAMES[name.lower()]


def _mixers(
    inventory: Inventory, model: ModelConfig
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Layers with attention, with linear attention, and with neither that a rule knows."""
    attention, linear = set(), set()
    for item in inventory.items:
        if item.known.layer is not None and ".self_attn" in item.tensor.name:
            attention.add(item.known.layer)
        elif item.known.layer is not None and ".linear_attn" in item.tensor.name:
            linear.add(item.known.layer)
    neither = tuple(layer for layer in range(model.layers) if layer not in attention and layer not in linear)
    return tuple(sorted(attention)), tuple(sorted(linear)), neither


def _ledger(request: Request, facts: Facts, books: Books) -> Ledger:
    layout = facts.layout
    return Ledger(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        workload=Workload(
            name=request.name or f"decode, batch {request.batch}, context {request.context}",
            tokens_per_step=float(request.batch),
            batch=request.batch,
            context=request.context,
            applies_to=request.applies_to,
            model=facts.model.name,
            assumptions=assumptions(facts),
        ),
        phase=books.phases(),
        layout=Layout(
            ranks=layout.ranks,
            tensor=layout.tensor,
            expert=layout.expert,
            pipeline=layout.pipeline,
            data=layout.data,
        ),
        uncounted=listed(facts.inventory.uncounted),
    )


def _warnings(facts: Facts) -> tuple[str, ...]:
    foreign = facts.inventory.foreign
    found = list(facts.notes)
    if foreign:
        names = ", ".join(tensor.name for tensor in foreign[:3]) + (", ..." if len(foreign) > 3 else "")
        size = sum(tensor.bytes for tensor in foreign)
        tensors = counted(len(foreign), "tensor")
        found.append(f"no rule knows {tensors} of {size:,} bytes: listed, not counted ({names})")
    if facts.stateless:
        layers = counted(len(facts.stateless), "layer")
        found.append(f"the state of {layers} is not counted: see the ledger's assumptions")
    if facts.odd_layers:
        layers = counted(len(facts.odd_layers), "layer")
        found.append(f"layer_types of {layers} with attention is not known: counted as full")
    return (*found, *missing(facts))
