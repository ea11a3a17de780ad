"""What a built ledger takes for granted, in sentences for its readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from analyzer.ledger.cache import CacheStep
from analyzer.ledger.config import ModelConfig
from analyzer.ledger.dtypes import FLOATS
from analyzer.ledger.inventory import Inventory
from analyzer.ledger.layout import Parallel
from analyzer.ledger.model import FOREIGN
from analyzer.ledger.names import HEAD_RULE
from analyzer.ledger.routing import Routing
from analyzer.ledger.weights import Step


@dataclass(frozen=True)
class Facts:
    """All that a ledger was built from. ``stateless``: layers whose cache or state is not counted; ``odd_layers``:
    with attention of a type that is not known.
    """

    model: ModelConfig
    layout: Parallel
    inventory: Inventory
    routing: Routing | None
    step: Step
    cache: CacheStep
    unknown_arithmetic: tuple[str, ...]
    stateless: tuple[int, ...]
    odd_layers: tuple[int, ...]
    notes: tuple[str, ...]


def assumptions(facts: Facts) -> list[str]:
    """In the order of their weight for the figures."""
    return [
        *facts.notes,
        *_step(facts),
        *_layout(facts),
        *_routing(facts),
        *_cache(facts),
        *_products(facts),
        *_left_out(facts),
    ]


def counted(number: int, noun: str) -> str:
    """``1 tensor``, ``1,564 tensors``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def missing(facts: Facts) -> Iterator[str]:
    """Ends of the model that the checkpoint lacks."""
    if facts.inventory.embedding is None:
        yield "no embedding table is among the tensors: its rows are not counted"
    if not any(item.known.rule is HEAD_RULE for item in facts.inventory.items):
        yield "no output head is among the tensors: it is not counted"


def _step(facts: Facts) -> Iterator[str]:
    yield "one decode step: each sequence reads its cache and yields one token; each weight that it needs is read once"
    if facts.step.weights_dtype is None:
        stored: Counter[str] = Counter()
        for item in facts.inventory.items:
            if item.tensor.dtype in FLOATS and item.known.what == "weight":
                stored[item.tensor.dtype] += item.tensor.bytes
        usual = max(stored, key=lambda dtype: stored[dtype], default=facts.step.compute_dtype)
        yield "weights are read in the type in which the headers store them"
        if usual != facts.step.compute_dtype:
            yield (
                f"most plain weights are stored as {usual}, but the config computes in {facts.step.compute_dtype}: "
                "an engine may load them so (--weights-dtype)"
            )
    elif facts.step.weights_dtype in FLOATS:
        yield f"weights that are stored as plain floating point are loaded and read as {facts.step.weights_dtype}"
    else:
        yield (
            f"matrices of attention, feed-forward parts and experts that are stored as plain floating point are"
            f" quantized on loading and read as {facts.step.weights_dtype}, without scales; embedding, head, routers,"
            " norms and biases stay as stored"
        )
    if facts.inventory.tied:
        yield "the head reads the embedding table (tied)"


def _layout(facts: Facts) -> Iterator[str]:
    layout = facts.layout
    if layout.ranks == 1:
        return
    yield (
        "rank = (data x stages + stage) x tensor + place in the tensor group"
        f" (data {layout.data}, stages {layout.pipeline}, tensor {layout.tensor})"
    )
    if layout.expert > 1:
        split = "" if layout.expert_tensor == 1 else f", each split over {layout.expert_tensor} ranks"
        yield f"experts lie in consecutive blocks on {layout.expert} shares of a stage's ranks, in rank order{split}"
    elif facts.routing is not None and layout.tensor > 1:
        yield f"each expert is split over the {layout.tensor} tensor-parallel ranks"
    if layout.data > 1:
        yield "each data replica holds attention, dense and shared weights and reads them for its part of the batch"
    if layout.pipeline > 1:
        yield (
            f"stages hold {', '.join(map(str, layout.stage_layers))} layers and follow one another for a batch; other"
            " batches in flight are not in this ledger"
        )
    if layout.tensor > 1:
        yield (
            "phases are serial: an all-reduce (or all-to-all) after attention and after the feed-forward part of each"
            " layer makes ranks wait for the slowest"
        )


def _routing(facts: Facts) -> Iterator[str]:
    routing = facts.routing
    if routing is None:
        return
    yield f"routed experts, {routing.basis}: {routing.source}"
    if routing.uniform is not None:
        yield (
            "uniform routing is the most that independent tokens touch: preferred experts, or tokens that choose alike,"
            " touch fewer; a single rank's experts can be touched more than expected. --routing takes measured counts"
        )


def _cache(facts: Facts) -> Iterator[str]:
    model, cache = facts.model, facts.cache
    yield f"every sequence has {cache.context} tokens in the cache, stored as {cache.cache_dtype}"
    if model.latent is not None:
        yield (
            "latent vectors are read whole by every rank of the tensor group; products absorb the up-projection"
            " kv_b_proj, which is counted as stored (engines can keep its halves in another type)"
        )
        if model.latent.index_topk is not None:
            yield f"sparse attention reads at most {model.latent.index_topk} tokens per sequence"
    elif facts.layout.tensor > model.kv_heads:
        yield f"{model.kv_heads} key/value heads are replicated over {facts.layout.tensor} ranks: each reads one head"
    windowed = sum(kind in ("sliding", "chunked") for kind in model.layer_kinds)
    if windowed and model.window is not None:
        yield f"attention in {windowed} of {model.layers} layers reaches back {model.window} tokens at most"
    if model.linear is not None:
        yield f"states of linear attention are kept as {cache.state_dtype}" + (
            "" if model.state_dtype else " (or what --state-dtype says: the config does not tell)"
        )


def _products(facts: Facts) -> Iterator[str]:
    if facts.step.activations:
        yield (
            "activations: each matrix product reads its input once and writes its output once; the L2 cache can hold"
            " them, so this part may not reach device memory (--no-activations leaves it out)"
        )
    else:
        yield "activations are left out"
    yield "arithmetic is that of matrix products and of attention over the cache; elementwise work counts as none"
    if facts.unknown_arithmetic:
        count, first = len(set(facts.unknown_arithmetic)), facts.unknown_arithmetic[0]
        yield f"arithmetic of {counted(count, 'packed tensor')} is not told (how many weights they hold), as of {first}"


def _left_out(facts: Facts) -> Iterator[str]:
    if facts.stateless:
        layers = ", ".join(map(str, facts.stateless[:5])) + (", ..." if len(facts.stateless) > 5 else "")
        yield f"not counted: cache or state of layers {layers}, whose kind or dimensions no rule knows"
    if facts.odd_layers:
        yield (
            f"layer_types of {counted(len(facts.odd_layers), 'layer')} with attention is not known: counted as full,"
            f" from layer {facts.odd_layers[0]}"
        )
    yield from missing(facts)
    reasons: dict[str, list[int]] = {}
    for tensor, why in facts.inventory.uncounted:
        reasons.setdefault(FOREIGN if why.startswith(FOREIGN) else why, []).append(tensor.bytes)
    for why, sizes in reasons.items():
        yield f"not counted: {counted(len(sizes), 'tensor')} of {sum(sizes):,} bytes ({why})"
