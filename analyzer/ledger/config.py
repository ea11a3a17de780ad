"""What config.json tells of a model: the dimensions that tensor headers do not show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from analyzer.errors import TraceError
from analyzer.ledger.dtypes import NAMES
from analyzer.ledger.quantization import Quantization, quantization

LayerKind = Literal["full", "sliding", "chunked", "other"]
_EVERY_NTH_IS_FULL = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6, "cohere2": 4}
"""Model types whose older configs leave out which layers slide: all but every n-th (transformers' defaults)."""
_MOST_LAYERS = 100_000
_ROTARY_INTERVAL = 4  # transformers' default for Llama 4
_HINT = "give the config.json that belongs to the checkpoint"


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention: the cache holds one compressed vector per token for all heads."""

    kv_lora_rank: int
    qk_rope_head_dim: int
    index_topk: int | None  # sparse attention: tokens that are read per sequence
    index_head_dim: int | None
    index_heads: int | None


@dataclass(frozen=True)
class Linear:
    """Gated delta-rule layers: a state matrix per value head, and a short convolution."""

    key_heads: int
    value_heads: int
    key_head_dim: int
    value_head_dim: int
    conv_kernel: int


@dataclass(frozen=True)
class ModelConfig:
    """Dimensions of the language model. ``layer_kinds``: how much of the cache attention in each layer reads."""

    name: str
    layers: int
    hidden: int
    vocabulary: int
    heads: int
    kv_heads: int
    head_dim: int
    value_head_dim: int
    latent: Latent | None
    linear: Linear | None
    experts: int | None
    top_k: int | None
    tied: bool | None  # None: the config does not say
    compute_dtype: str | None  # a header's name
    state_dtype: str | None
    layer_kinds: tuple[LayerKind, ...]
    window: int | None
    quantization: Quantization


class Keys:
    """Values of one JSON object, checked; errors name the file and the key."""

    def __init__(self, values: Mapping[str, Any], path: str) -> None:
        self.values = values
        self.path = path

    def count(self, *names: str) -> int | None:
        """The first of ``names`` that is there and not null, as a whole number above 0."""
        for name in names:
            value = self.values.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise TraceError(self.path, name, f"is {value!r}; a whole number above 0 is needed", _HINT)
            return value
        return None

    def some(self, *names: str) -> int | None:
        """The same, where 0 says that the model has none (dense models of families with experts write it)."""
        return self.count(*(name for name in names if self.values.get(name) != 0))

    def need(self, *names: str) -> int:
        """The same, and an error where none is there."""
        value = self.count(*names)
        if value is None:
            raise TraceError(self.path, names[0], "is missing", _HINT)
        return value

    def dtype(self, *names: str) -> str | None:
        """A dtype by its name in torch, as a header has it."""
        for name in names:
            value = self.values.get(name)
            if isinstance(value, str) and value not in ("auto", ""):
                known = NAMES.get(value.removeprefix("torch."))
                if known is None:
                    raise TraceError(self.path, name, f"is {value!r}, an unknown type", _HINT)
                return known
        return None


def model_config(config: Mapping[str, Any], path: str, folder: str) -> ModelConfig:
    """The language model's dimensions in ``config`` (of a multimodal model: its ``text_config``)."""
    text = config.get("text_config")
    keys = Keys({**config, **text} if isinstance(text, dict) else config, path)
    heads, hidden = keys.need("num_attention_heads", "n_head"), keys.need("hidden_size", "n_embd")
    head_dim = keys.count("head_dim") or hidden // heads
    layers = keys.need("num_hidden_layers", "n_layer")
    if layers > _MOST_LAYERS:
        raise TraceError(
            path, "num_hidden_layers", f"is {layers}: no model has more than {_MOST_LAYERS:,}", _HINT
        )
    kinds, window = _layer_kinds(keys, layers)
    return ModelConfig(
        name=_name(config, folder),
        layers=layers,
        hidden=hidden,
        vocabulary=keys.need("vocab_size"),
        heads=heads,
        kv_heads=keys.count("num_key_value_heads") or heads,
        head_dim=head_dim,
        value_head_dim=keys.count("v_head_dim") or head_dim,
        latent=_latent(keys),
        linear=_linear(keys),
        experts=keys.some("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"),
        top_k=keys.some("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk"),
        tied=_tied(keys),
        compute_dtype=keys.dtype("dtype", "torch_dtype"),
        state_dtype=keys.dtype("mamba_ssm_dtype", "mamba_ssm_cache_dtype"),
        layer_kinds=kinds,
        window=window,
        quantization=quantization(keys.values, path),
    )


def _name(config: Mapping[str, Any], folder: str) -> str:
    named = config.get("architectures")
    architecture = named[0] if isinstance(named, list) and named else config.get("model_type")
    return f"{folder} ({architecture})" if isinstance(architecture, str) else folder


def _tied(keys: Keys) -> bool | None:
    value = keys.values.get("tie_word_embeddings")
    return value if isinstance(value, bool) else None


def _latent(keys: Keys) -> Latent | None:
    rank = keys.count("kv_lora_rank")
    if rank is None:
        return None
    return Latent(
        rank,
        keys.need("qk_rope_head_dim"),
        keys.count("index_topk"),
        keys.count("index_head_dim"),
        keys.count("index_n_heads"),
    )


def _linear(keys: Keys) -> Linear | None:
    if keys.count("linear_num_value_heads") is None:
        return None
    return Linear(
        key_heads=keys.need("linear_num_key_heads"),
        value_heads=keys.need("linear_num_value_heads"),
        key_head_dim=keys.need("linear_key_head_dim"),
        value_head_dim=keys.need("linear_value_head_dim"),
        conv_kernel=keys.need("linear_conv_kernel_dim"),
    )


def _layer_kinds(keys: Keys, layers: int) -> tuple[tuple[LayerKind, ...], int | None]:
    """How far attention reaches back in each layer, and the window of those with one."""
    types = keys.values.get("layer_types")
    window = keys.count("sliding_window")
    if isinstance(types, list):
        if len(types) < layers:
            raise TraceError(
                keys.path, "layer_types", f"names {len(types)} layers of num_hidden_layers {layers}", _HINT
            )
        kinds = tuple(_kind(kind) for kind in types[:layers])
        if "sliding" in kinds and window is None:
            raise TraceError(
                keys.path, "sliding_window", "is missing, but layer_types has sliding layers", _HINT
            )
        return kinds, keys.need("attention_chunk_size") if "chunked" in kinds else window
    full: LayerKind = "full"
    chunk = keys.count("attention_chunk_size")
    if chunk is not None:
        return _chunked(keys, layers), chunk
    used = keys.values.get("use_sliding_window")
    if window is None or used is False or (used is None and _says_whether_it_slides(keys)):
        return (full,) * layers, None
    every = keys.count("sliding_window_pattern") or _EVERY_NTH_IS_FULL.get(str(keys.values.get("model_type")))
    if every is not None:
        return tuple("sliding" if (layer + 1) % every else "full" for layer in range(layers)), window
    first = keys.values.get("max_window_layers") if keys.values.get("use_sliding_window") is True else None
    start = first if isinstance(first, int) else 0
    return tuple("sliding" if layer >= start else "full" for layer in range(layers)), window


def _says_whether_it_slides(keys: Keys) -> bool:
    """Qwen models write a window that counts only with use_sliding_window, which is off by default."""
    return str(keys.values.get("model_type")).startswith("qwen")


def _chunked(keys: Keys, layers: int) -> tuple[LayerKind, ...]:
    """Llama 4 without layer_types: layers with rotary embeddings look at their chunk, all but every n-th."""
    rotary = keys.values.get("no_rope_layers")  # despite its name, 1 is a layer that has them
    if isinstance(rotary, list) and len(rotary) >= layers:
        return tuple("chunked" if flag else "full" for flag in rotary[:layers])
    every = keys.count("no_rope_layer_interval") or _ROTARY_INTERVAL
    return tuple("chunked" if (layer + 1) % every else "full" for layer in range(layers))


def _kind(name: object) -> LayerKind:
    known: dict[str, LayerKind] = {
        "full_attention": "full",
        "attention": "full",
        "sliding_attention": "sliding",
        "chunked_attention": "chunked",
    }
    return known.get(name, "other") if isinstance(name, str) else "other"
