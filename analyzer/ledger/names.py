"""What a tensor is, by its name: one table for model families, one for the parts that a quantized matrix is stored in.

Names are matched with each number between dots replaced by ``#``. A name that no rule matches is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple

PhaseName = Literal["embedding", "attention", "feed-forward", "head"]
Split = Literal[
    "column",  # by output: each rank of the tensor group has some
    "row",  # by input
    "kv",  # by key/value head; heads are replicated where there are more ranks than heads
    "qkv",  # queries, keys and values in one matrix: queries by column, keys and values as kv
    "vocabulary",  # by output, the vocabulary padded to a multiple of the group
    "whole",  # every rank of the tensor group reads it
]
Product = Literal[
    "",  # no matrix product
    "first",  # a matrix product whose input nothing before it has read
    "joined",  # one with the input of the product before it: engines run both as one
]


class Rule(NamedTuple):
    """Tensors of one module. ``expert``: one matrix per expert, or ``stacked`` ones of all experts in one tensor."""

    pattern: str
    label: str
    phase: PhaseName
    split: Split
    product: Product = ""
    expert: bool = False
    stacked: bool = False


class Unread(NamedTuple):
    """Tensors that an ordinary decode step does not read, and why."""

    pattern: str
    why: str


What = Literal["weight", "bias", "metadata", "parameter"]


class Part(NamedTuple):
    """What a tensor's last name says. ``axes``: per number of dimensions, the axes' meaning: o(ut), i(n) or other."""

    what: What
    axes: Mapping[int, str]


class Known(NamedTuple):
    """A tensor that a rule knows."""

    rule: Rule
    part: str
    layer: int | None
    expert: int | None
    module: str  # the name without the part
    pattern: str  # the name with # for each number

    @property
    def what(self) -> What:
        """Of a module's tensors, which this is."""
        return what_of(self.rule, self.part)


_MLP = r"(?:mlp|feed_forward|block_sparse_moe)"
_SHARED = rf"{_MLP}\.shared_experts?\."

LAYER_RULES: tuple[Rule, ...] = (
    Rule(r"self_attn\.q_proj", "attention projections", "attention", "column", "first"),
    Rule(r"self_attn\.[kv]_proj", "attention projections", "attention", "kv", "joined"),
    Rule(r"self_attn\.qkv_proj", "attention projections", "attention", "qkv", "first"),
    Rule(r"self_attn\.o_proj", "attention projections", "attention", "row", "first"),
    Rule(r"self_attn\.q_a_proj", "latent down-projections", "attention", "whole", "first"),
    Rule(r"self_attn\.kv_a_proj_with_mqa", "latent down-projections", "attention", "whole", "joined"),
    Rule(r"self_attn\.fused_qkv_a_proj_with_mqa", "latent down-projections", "attention", "whole", "first"),
    Rule(r"self_attn\.(?:q_b|kv_b)_proj", "attention projections", "attention", "column", "first"),
    Rule(r"self_attn\.indexer\.(?:wq_b|wk|weights_proj)", "indexer", "attention", "whole", "first"),
    Rule(r"self_attn\.indexer\.k_norm", "norms", "attention", "whole"),
    Rule(r"self_attn\.(?:q|k|q_a|kv_a)_(?:layer)?norm", "norms", "attention", "whole"),
    Rule(r"self_attn\.sinks", "attention sinks", "attention", "column"),
    Rule(r"self_attn(?:\.attn)?", "attention scales", "attention", "whole"),
    Rule(r"linear_attn\.in_proj_(?:qkvz|qkv)", "linear attention", "attention", "column", "first"),
    Rule(r"linear_attn\.in_proj_(?:ba|z|b|a)", "linear attention", "attention", "column", "joined"),
    Rule(r"linear_attn\.(?:conv1d|A_log|dt_bias)", "linear attention", "attention", "column"),
    Rule(r"linear_attn\.out_proj", "linear attention", "attention", "row", "first"),
    Rule(r"linear_attn\.norm", "norms", "attention", "whole"),
    Rule(r"input_layernorm", "norms", "attention", "whole"),
    Rule(r"post_attention_layernorm", "norms", "feed-forward", "whole"),
    Rule(r"(?:pre|post)_feedforward_layernorm", "norms", "feed-forward", "whole"),
    Rule(rf"{_MLP}\.(?:gate_proj|gate_up_proj|w1)", "dense feed-forward", "feed-forward", "column", "first"),
    Rule(rf"{_MLP}\.(?:up_proj|w3)", "dense feed-forward", "feed-forward", "column", "joined"),
    Rule(rf"{_MLP}\.(?:down_proj|w2)", "dense feed-forward", "feed-forward", "row", "first"),
    Rule(rf"{_MLP}\.(?:gate|router|router\.layer)", "router", "feed-forward", "whole", "first"),
    Rule(rf"{_MLP}\.gate\.e_score_correction_bias", "router", "feed-forward", "whole"),
    Rule(rf"{_SHARED}(?:gate_proj|gate_up_proj|w1)", "shared experts", "feed-forward", "column", "first"),
    Rule(rf"{_SHARED}(?:up_proj|w3)", "shared experts", "feed-forward", "column", "joined"),
    Rule(rf"{_SHARED}(?:down_proj|w2)", "shared experts", "feed-forward", "row", "first"),
    Rule(rf"{_MLP}\.shared_expert_gate", "shared experts' gate", "feed-forward", "whole", "first"),
    Rule(rf"{_MLP}\.experts\.#\.(?:gate_proj|gate_up_proj|w1)", "routed experts", "feed-forward", "column", "first",
         expert=True),
    Rule(rf"{_MLP}\.experts\.#\.(?:up_proj|w3)", "routed experts", "feed-forward", "column", "joined", expert=True),
    Rule(rf"{_MLP}\.experts\.#\.(?:down_proj|w2)", "routed experts", "feed-forward", "row", "first", expert=True),
    Rule(rf"{_MLP}\.experts\.(?:gate_up_proj|gate_proj)", "routed experts", "feed-forward", "column", "first",
         expert=True, stacked=True),
    Rule(rf"{_MLP}\.experts\.up_proj", "routed experts", "feed-forward", "column", "joined",
         expert=True, stacked=True),
    Rule(rf"{_MLP}\.experts\.down_proj", "routed experts", "feed-forward", "row", "first",
         expert=True, stacked=True),
    Rule(rf"{_MLP}\.input_linear", "routed experts", "feed-forward", "column", "first", expert=True, stacked=True),
    Rule(rf"{_MLP}\.output_linear", "routed experts", "feed-forward", "row", "first", expert=True, stacked=True),
    Rule(r"shared_mlp\.input_linear", "shared experts", "feed-forward", "column", "first"),
    Rule(r"shared_mlp\.output_linear", "shared experts", "feed-forward", "row", "first"),
)  # fmt: skip
"""Modules within a layer. Norms before a block belong to its phase."""

TOP_RULES: tuple[Rule, ...] = (
    Rule(r"embed_tokens", "embedding", "embedding", "vocabulary"),
    Rule(r"norm", "norms", "head", "whole"),
    Rule(r"lm_head", "head", "head", "vocabulary", "first"),
)
HEAD_RULE = TOP_RULES[-1]
"""What the embedding table is read as where the head shares it."""
UNQUANTIZED = ("head", "router", "shared experts' gate")
"""Labels of products whose matrices engines leave as stored where they quantize plain weights on loading."""

UNREAD: tuple[Unread, ...] = (
    Unread(r"(?:model\.)?mtp(?:_layers)?\..*", "multi-token prediction: not read in ordinary decode"),
    Unread(r".*\.rotary_emb\.inv_freq", "a table that engines compute themselves"),
    Unread(
        r"(?:model\.)?(?:visual|vision_tower|vision_model|multi_modal_projector|vision_projector|audio_tower)\..*",
        "vision or audio: not read by a decode step",
    ),
    Unread(r".*\.weight_shape", "a shape that engines read when loading"),
)
BEYOND_LAYERS = "multi-token prediction (beyond num_hidden_layers): not read in ordinary decode"

_VECTOR = {0: "", 1: "o"}
_OUT_IN = {0: "", 1: "o", 2: "oi", 3: "o.."}
_IN_OUT = {1: "o", 2: "io"}
_SCALARS: Mapping[int, str] = {0: "", 1: ".", 2: ".."}
PARTS: Mapping[str, Part] = {
    "weight": Part("weight", _OUT_IN),
    "qweight": Part("weight", {2: "io"}),
    "weight_packed": Part("weight", {2: "oi"}),
    "blocks": Part("weight", {3: "oi."}),
    "bias": Part("bias", _VECTOR),
    "qzeros": Part("metadata", _IN_OUT),
    "scales": Part("metadata", _IN_OUT),
    "g_idx": Part("metadata", {1: "i"}),
    "weight_g_idx": Part("metadata", {1: "i"}),
    "weight_scale_inv": Part("metadata", _OUT_IN),
    "weight_scale": Part("metadata", _OUT_IN),
    "weight_zero_point": Part("metadata", _OUT_IN),
    "block_scales": Part("metadata", {2: "oi"}),
    "weight_scale_2": Part("metadata", _SCALARS),
    "weight_global_scale": Part("metadata", _SCALARS),
    "input_scale": Part("metadata", _SCALARS),
    "input_global_scale": Part("metadata", _SCALARS),
    "input_zero_point": Part("metadata", _SCALARS),
    "k_scale": Part("metadata", _SCALARS),
    "v_scale": Part("metadata", _SCALARS),
    "": Part("parameter", _VECTOR),  # a parameter of its own, without a last name
}
"""Last names of tensors: the matrix itself, packed forms of it, and what belongs to its quantization."""


def what_of(rule: Rule, part: str) -> What:
    """Stacked experts are matrices also where their tensor has no last name."""
    return "weight" if rule.stacked and part == "" else PARTS[part].what


_NUMBER = re.compile(r"(?<=\.)[0-9]{1,9}(?=\.)")
_LAYER = re.compile(r"(?:(?:model|language_model)\.)*layers\.#\.(.+)")
_TOP = re.compile(r"(?:(?:model|language_model)\.)*(.+)")
_STACKED = {"_blocks": "blocks", "_scales": "block_scales", "_bias": "bias"}


def classify(name: str, layers: int) -> Known | str | None:
    """What ``name`` is: a known tensor, the reason why a decode step does not read it, or None for no rule.

    ``layers``: of the model; those beyond are for multi-token prediction.
    """
    numbers = _NUMBER.findall(name)
    pattern = _NUMBER.sub("#", name)
    found = _classified(pattern)
    if not isinstance(found, tuple):
        return found
    rule, part, in_layer = found
    expert = int(numbers[1]) if rule.expert and not rule.stacked else None
    layer = int(numbers[0]) if in_layer else None
    if layer is not None and layer >= layers:
        return BEYOND_LAYERS
    module = name[: -len(part) - 1] if part and name.endswith(f".{part}") else name
    return Known(rule, part, layer, expert, module, pattern)


def beyond(name: str, layers: int) -> bool:
    """Whether an unknown tensor lies in a layer that the model does not count."""
    found = _LAYER.fullmatch(_NUMBER.sub("#", name))
    return found is not None and int(_NUMBER.findall(name)[0]) >= layers


@cache
def _classified(name: str) -> tuple[Rule, str, bool] | str | None:
    for unread in UNREAD:
        if re.fullmatch(unread.pattern, name):
            return unread.why
    inside = _LAYER.fullmatch(name)
    tail = inside.group(1) if inside else _TOP.fullmatch(name)
    text = tail if isinstance(tail, str) else tail.group(1) if tail else name
    for module, part, stacked in _readings(text):
        for rule in LAYER_RULES if inside else TOP_RULES:
            if re.fullmatch(rule.pattern, module) and (rule.stacked or not stacked):
                return rule, part, inside is not None
    return None


def _readings(tail: str) -> list[tuple[str, str, bool]]:
    """Ways to part a name into module and part; true: a way that only stacked experts are named."""
    module, dot, last = tail.rpartition(".")
    readings = [(module, last, False)] if dot and last in PARTS else []
    readings += [(tail[: -len(end)], part, True) for end, part in _STACKED.items() if tail.endswith(end)]
    return [*readings, (tail, "", False)]
