"""Every tensor of a checkpoint: known to a rule, or listed with the reason why it is not counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from analyzer.errors import TraceError
from analyzer.ledger.checkpoint import Checkpoint
from analyzer.ledger.config import ModelConfig
from analyzer.ledger.headers import Tensor
from analyzer.ledger.model import FOREIGN, Uncounted
from analyzer.ledger.names import BEYOND_LAYERS, HEAD_RULE, Known, Rule, beyond, classify
from analyzer.ledger.quantization import PLAIN, Packing, packing
from analyzer.ledger.shares import axes_of, share

TIED = "tied: the head reads the embedding table"
_UNORDERED = "activation order is off (desc_act): kernels do not read it"
_UNNAMED = "the index does not name it"
_HINT = "give the whole checkpoint, with the config.json that belongs to it"


@dataclass(frozen=True, eq=False)
class Form:
    """What many tensors share: those of one form are split alike. ``axes``: a letter per dimension (shares.axes_of)."""

    rule: Rule
    part: str
    dtype: str
    shape: tuple[int, ...]
    axes: str
    packed: Packing


class Item(NamedTuple):
    """A tensor that a step reads."""

    tensor: Tensor
    known: Known
    form: Form


@dataclass(frozen=True)
class Inventory:
    """``uncounted``: with the reason; together with ``items`` and ``embedding`` they are all tensors, each once.

    ``embedding``: the table, of which a step reads rows. Tied: it is the head's item, too.
    """

    items: tuple[Item, ...]
    embedding: Tensor | None
    tied: bool
    uncounted: tuple[tuple[Tensor, str], ...]
    expert_layers: tuple[int, ...]

    @property
    def foreign(self) -> tuple[Tensor, ...]:
        """Those that no rule knows."""
        return tuple(tensor for tensor, why in self.uncounted if why.startswith(FOREIGN))


def take(checkpoint: Checkpoint, model: ModelConfig) -> Inventory:
    """All tensors of ``checkpoint``. TraceError where layers or experts that the config declares are missing."""
    sort = _Sorter(model, checkpoint.tensors)
    items: list[Item] = []
    uncounted: list[tuple[Tensor, str]] = [(tensor, _UNNAMED) for tensor in checkpoint.unnamed]
    embedding: Tensor | None = None
    for _, tensor in sorted(checkpoint.tensors.items()):  # the same ledger however they lie in their files
        known = classify(tensor.name, model.layers)
        if (
            isinstance(known, Known)
            and known.rule.label == "embedding"
            and known.part == "weight"
            and embedding is None
        ):
            embedding = tensor
            continue
        found = sort.item(tensor, known)
        if isinstance(found, str):
            uncounted.append((tensor, found))
        else:
            items.append(found)
    head = [item for item in items if item.known.rule is HEAD_RULE]
    tied = embedding is not None and (model.tied is True or (model.tied is None and not head))
    if tied and embedding is not None:
        unread = {item.tensor.name for item in head if item.known.what != "bias"}
        items = [item for item in items if item.tensor.name not in unread]
        uncounted += [(item.tensor, TIED) for item in head if item.tensor.name in unread]
        items.append(_tied_head(embedding))
    _check_layers(items, model, checkpoint)
    _check_widths(items, model, checkpoint.config_path)
    return Inventory(
        tuple(items), embedding, tied, tuple(uncounted), _expert_layers(items, model, checkpoint)
    )


def _tied_head(embedding: Tensor) -> Item:
    known = Known(HEAD_RULE, "weight", None, None, embedding.name.removesuffix(".weight"), embedding.name)
    return Item(embedding, known, Form(HEAD_RULE, "weight", embedding.dtype, embedding.shape, "oi", PLAIN))


class _Sorter:
    """Makes items of tensors; those alike get one form, so that 90,000 of them take a second."""

    def __init__(self, model: ModelConfig, tensors: Mapping[str, Tensor]) -> None:
        self._model = model
        self._tensors = tensors
        self._forms: dict[tuple[object, ...], Form | str] = {}

    def item(self, tensor: Tensor, known: Known | str | None) -> Item | str:
        """What a step reads of ``tensor``, or why it reads none that could be counted."""
        if known is None:
            return BEYOND_LAYERS if beyond(tensor.name, self._model.layers) else FOREIGN
        if isinstance(known, str):
            return known
        packed = PLAIN
        if tensor.dtype in ("U8", "I32", "U32"):
            packed = packing(tensor, known.part, known.module, self._tensors, self._model.quantization)
        key = (known.pattern, tensor.dtype, tensor.shape, packed)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = self._form(tensor, known, packed)
        return form if isinstance(form, str) else Item(tensor, known, form)

    def _form(self, tensor: Tensor, known: Known, packed: Packing) -> Form | str:
        if known.part in ("g_idx", "weight_g_idx") and not self._model.quantization.ordered:
            return _UNORDERED
        if known.rule.label == "embedding":
            return f"{FOREIGN}: a second or quantized embedding table"
        axes = axes_of(known, tensor, self._model)
        if axes is None:
            return f"{FOREIGN}: named like {known.rule.label}, but {list(tensor.shape)} is no shape of those"
        return Form(known.rule, known.part, tensor.dtype, tensor.shape, axes, packed)


def _check_layers(items: Iterable[Item], model: ModelConfig, checkpoint: Checkpoint) -> None:
    found = {item.known.layer for item in items}
    if not found - {None}:
        first = min(checkpoint.tensors, default="none at all")
        why = f"no rule knows its layers: its tensors are named like {first}"
        raise TraceError(str(checkpoint.folder), "tensors", why, "write the ledger by hand: docs/ledger.md")
    missing = [layer for layer in range(model.layers) if layer not in found]
    if missing:
        shown = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
        why = f"is {model.layers}, but no known tensor belongs to layer {shown}"
        raise TraceError(checkpoint.config_path, "num_hidden_layers", why, _HINT)


def _check_widths(items: Iterable[Item], model: ModelConfig, config_path: str) -> None:
    """The cache is counted by the config's heads: the projections that fill it must have as many outputs."""
    keys, values = model.kv_heads * model.head_dim, model.kv_heads * model.value_head_dim
    wanted = {"o_proj": model.heads * model.value_head_dim}
    if model.latent is None:
        wanted |= {"k_proj": keys, "v_proj": values, "qkv_proj": model.heads * model.head_dim + keys + values}
    else:
        wanted["kv_a_proj_with_mqa"] = model.latent.kv_lora_rank + model.latent.qk_rope_head_dim
    for item in items:
        _, inside, name = item.known.module.rpartition(".self_attn.")
        if not inside or name not in wanted or item.known.what != "weight":
            continue
        matrix = share(item.tensor, item.known, item.form.axes, item.form.packed, 1, 0, model)
        found, side = (matrix.inputs, "inputs") if name == "o_proj" else (matrix.outputs, "outputs")
        if found is not None and found != wanted[name]:
            why = f"{item.tensor.name} has {found} {side}; the heads that are declared need {wanted[name]}"
            raise TraceError(config_path, "num_attention_heads, num_key_value_heads, head_dim", why, _HINT)


def _expert_layers(items: Iterable[Item], model: ModelConfig, checkpoint: Checkpoint) -> tuple[int, ...]:
    """Layers with routed experts; each matrix must be there for each expert."""
    counts: Counter[tuple[int, str]] = Counter()
    for item in items:
        known, layer = item.known, item.known.layer
        if not known.rule.expert or layer is None:
            continue
        if model.experts is None or model.top_k is None:
            what = "num_experts" if model.experts is None else "num_experts_per_tok"
            why = f"is missing, but {item.tensor.name} is a routed expert's"
            raise TraceError(checkpoint.config_path, what, why, _HINT)
        held = item.tensor.shape[0] if known.rule.stacked else 1
        counts[layer, known.pattern] += held
    for (layer, pattern), count in counts.items():
        if count != model.experts:
            why = f"has {count} of the {model.experts} experts that config.json declares"
            where = f"tensors {pattern.replace('#', str(layer), 1).replace('#', '*')}"
            raise TraceError(str(checkpoint.folder), where, why, _HINT)
    return tuple(sorted({layer for layer, _ in counts}))


_BETWEEN_DOTS = re.compile(r"(?<=\.)\d+(?=\.)")


def listed(uncounted: Iterable[tuple[Tensor, str]]) -> list[Uncounted]:
    """Rows for the ledger: tensors that differ only in numbers of their names are one row."""
    groups: dict[tuple[str, str, tuple[int, ...], str], list[Tensor]] = {}
    for tensor, why in uncounted:
        pattern = _BETWEEN_DOTS.sub("*", tensor.name)
        groups.setdefault((pattern, tensor.dtype, tensor.shape, why), []).append(tensor)
    return [
        Uncounted(
            name=tensors[0].name if len(tensors) == 1 else pattern,
            dtype=dtype,
            shape=list(shape),
            bytes=sum(tensor.bytes for tensor in tensors),
            why=why,
            tensors=len(tensors),
        )
        for (pattern, dtype, shape, why), tensors in groups.items()
    ]
