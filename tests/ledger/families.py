"""Checkpoints of model families: config.json and tensor shapes as published, small or full-size, and their files.

Shapes are written out here on their own: nothing in this module knows the rules that are tested with it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

Shapes = dict[str, tuple[str, tuple[int, ...]]]
BITS = {"BF16": 16, "F16": 16, "F32": 32, "F8_E4M3": 8, "I32": 32, "I64": 64, "U8": 8}


def product(shape: tuple[int, ...]) -> int:
    result = 1
    for extent in shape:
        result *= extent
    return result


def parameters(shapes: Shapes) -> int:
    return sum(product(shape) for _, shape in shapes.values())


def stored_bytes(shapes: Shapes) -> int:
    return sum(product(shape) * BITS[dtype] // 8 for dtype, shape in shapes.values())


def write_headers(folder: Path, config: Mapping[str, Any], shapes: Shapes, shards: int = 1) -> Path:
    """Headers only: each file ends after its header, and an index where there are several."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    names = list(shapes)
    weight_map = {}
    for shard in range(shards):
        mine = names[shard::shards]
        file = "model.safetensors" if shards == 1 else f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        (folder / file).write_bytes(header_of({name: shapes[name] for name in mine}))
        weight_map |= dict.fromkeys(mine, file)
    if shards > 1:
        index = {"metadata": {"total_size": stored_bytes(shapes)}, "weight_map": weight_map}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


NUMPY = {
    "BF16": ml_dtypes.bfloat16,
    "F16": np.float16,
    "F32": np.float32,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "I32": np.int32,
    "I64": np.int64,
    "U8": np.uint8,
}


def write_whole(folder: Path, config: Mapping[str, Any], shapes: Shapes, shards: int = 1) -> Path:
    """The same, written with the data (zeros) by the safetensors library."""
    write_headers(folder, config, shapes, shards)
    for path in folder.glob("*.safetensors"):
        length = struct.unpack("<Q", path.read_bytes()[:8])[0]
        names = json.loads(path.read_bytes()[8 : 8 + length])
        save_file({name: np.zeros(shapes[name][1], NUMPY[shapes[name][0]]) for name in names}, path)
    return folder


def header_of(shapes: Shapes) -> bytes:
    at, header = 0, {}
    for name, (dtype, shape) in shapes.items():
        size = product(shape) * BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text


def llama_config(**changes: Any) -> dict[str, Any]:
    """Llama-3-70B."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 8192,
        "intermediate_size": 28672,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    } | changes


def linear(shapes: Shapes, name: str, out: int, into: int, dtype: str = "BF16") -> None:
    """A matrix as stored: plain, or FP8 with a scale per block of 128 x 128."""
    shapes[f"{name}.weight"] = (dtype, (out, into))
    if dtype == "F8_E4M3":
        shapes[f"{name}.weight_scale_inv"] = ("F32", (-(-out // 128), -(-into // 128)))


def gptq(shapes: Shapes, name: str, out: int, into: int) -> None:
    shapes[f"{name}.qweight"] = ("I32", (into // 8, out))
    shapes[f"{name}.qzeros"] = ("I32", (into // 128, out // 8))
    shapes[f"{name}.scales"] = ("F16", (into // 128, out))
    shapes[f"{name}.g_idx"] = ("I32", (into,))


def awq(shapes: Shapes, name: str, out: int, into: int) -> None:
    shapes[f"{name}.qweight"] = ("I32", (into, out // 8))
    shapes[f"{name}.qzeros"] = ("I32", (into // 128, out // 8))
    shapes[f"{name}.scales"] = ("F16", (into // 128, out))


def packed(shapes: Shapes, name: str, out: int, into: int) -> None:
    """compressed-tensors, 4 bits, groups of 128, with zero points."""
    shapes[f"{name}.weight_packed"] = ("I32", (out, into // 8))
    shapes[f"{name}.weight_scale"] = ("BF16", (out, into // 128))
    shapes[f"{name}.weight_zero_point"] = ("I32", (out // 8, into // 128))
    shapes[f"{name}.weight_shape"] = ("I64", (2,))


def llama(config: Mapping[str, Any], matrix: Any = linear) -> Shapes:
    hidden, inter = config["hidden_size"], config["intermediate_size"]
    head_dim = config.get("head_dim") or hidden // config["num_attention_heads"]
    queries, keys = config["num_attention_heads"] * head_dim, config["num_key_value_heads"] * head_dim
    shapes: Shapes = {"model.embed_tokens.weight": ("BF16", (config["vocab_size"], hidden))}
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        for name, out, into in (
            ("self_attn.q_proj", queries, hidden),
            ("self_attn.k_proj", keys, hidden),
            ("self_attn.v_proj", keys, hidden),
            ("self_attn.o_proj", hidden, queries),
            ("mlp.gate_proj", inter, hidden),
            ("mlp.up_proj", inter, hidden),
            ("mlp.down_proj", hidden, inter),
        ):
            matrix(shapes, at + name, out, into)
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{at}{name}.weight"] = ("BF16", (hidden,))
    shapes["model.norm.weight"] = ("BF16", (hidden,))
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = ("BF16", (config["vocab_size"], hidden))
    return shapes


def qwen_config(**changes: Any) -> dict[str, Any]:
    """Qwen3-235B-A22B."""
    return {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "hidden_size": 4096,
        "moe_intermediate_size": 1536,
        "num_hidden_layers": 94,
        "num_attention_heads": 64,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "vocab_size": 151936,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    } | changes


def qwen(config: Mapping[str, Any], shared: int = 0, stacked: bool = False) -> Shapes:
    """With ``shared``: a shared expert of that width and its gate, and biases, as Qwen2-MoE has them."""
    hidden, inter, experts = config["hidden_size"], config["moe_intermediate_size"], config["num_experts"]
    head_dim = config["head_dim"]
    queries, keys = config["num_attention_heads"] * head_dim, config["num_key_value_heads"] * head_dim
    shapes: Shapes = {"model.embed_tokens.weight": ("BF16", (config["vocab_size"], hidden))}
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        for name, out, into in (
            ("q_proj", queries, hidden),
            ("k_proj", keys, hidden),
            ("v_proj", keys, hidden),
            ("o_proj", hidden, queries),
        ):
            linear(shapes, f"{at}self_attn.{name}", out, into)
            if shared and name != "o_proj":
                shapes[f"{at}self_attn.{name}.bias"] = ("BF16", (out,))
        if not shared:
            shapes[f"{at}self_attn.q_norm.weight"] = ("BF16", (head_dim,))
            shapes[f"{at}self_attn.k_norm.weight"] = ("BF16", (head_dim,))
        linear(shapes, f"{at}mlp.gate", experts, hidden)
        if stacked:
            shapes[f"{at}mlp.experts.gate_up_proj"] = ("BF16", (experts, 2 * inter, hidden))
            shapes[f"{at}mlp.experts.down_proj"] = ("BF16", (experts, hidden, inter))
        else:
            for expert in range(experts):
                feed_forward(shapes, f"{at}mlp.experts.{expert}", inter, hidden)
        if shared:
            feed_forward(shapes, f"{at}mlp.shared_expert", shared, hidden)
            linear(shapes, f"{at}mlp.shared_expert_gate", 1, hidden)
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{at}{name}.weight"] = ("BF16", (hidden,))
    shapes["model.norm.weight"] = ("BF16", (hidden,))
    shapes["lm_head.weight"] = ("BF16", (config["vocab_size"], hidden))
    return shapes


def feed_forward(shapes: Shapes, at: str, inter: int, hidden: int, dtype: str = "BF16") -> None:
    linear(shapes, f"{at}.gate_proj", inter, hidden, dtype)
    linear(shapes, f"{at}.up_proj", inter, hidden, dtype)
    linear(shapes, f"{at}.down_proj", hidden, inter, dtype)


def deepseek_config(**changes: Any) -> dict[str, Any]:
    """DeepSeek-V3."""
    return {
        "architectures": ["DeepseekV3ForCausalLM"],
        "model_type": "deepseek_v3",
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "num_hidden_layers": 61,
        "first_k_dense_replace": 3,
        "num_nextn_predict_layers": 1,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "vocab_size": 129280,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "quantization_config": {
            "quant_method": "fp8",
            "activation_scheme": "dynamic",
            "weight_block_size": [128, 128],
        },
    } | changes


def deepseek(config: Mapping[str, Any], dtype: str = "F8_E4M3") -> Shapes:
    hidden, vocabulary = config["hidden_size"], config["vocab_size"]
    layers, extra = config["num_hidden_layers"], config["num_nextn_predict_layers"]
    shapes: Shapes = {"model.embed_tokens.weight": ("BF16", (vocabulary, hidden))}
    for layer in range(layers + extra):
        at = f"model.layers.{layer}."
        latent_attention(shapes, f"{at}self_attn", config, dtype)
        if layer < config["first_k_dense_replace"]:
            feed_forward(shapes, f"{at}mlp", config["intermediate_size"], hidden, dtype)
        else:
            linear(shapes, f"{at}mlp.gate", config["n_routed_experts"], hidden)
            shapes[f"{at}mlp.gate.e_score_correction_bias"] = ("F32", (config["n_routed_experts"],))
            inter = config["moe_intermediate_size"]
            for expert in range(config["n_routed_experts"]):
                feed_forward(shapes, f"{at}mlp.experts.{expert}", inter, hidden, dtype)
            feed_forward(shapes, f"{at}mlp.shared_experts", inter * config["n_shared_experts"], hidden, dtype)
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{at}{name}.weight"] = ("BF16", (hidden,))
        if layer >= layers:
            for name in ("enorm", "hnorm", "shared_head.norm"):
                shapes[f"{at}{name}.weight"] = ("BF16", (hidden,))
            linear(shapes, f"{at}eh_proj", hidden, 2 * hidden)
            linear(shapes, f"{at}embed_tokens", vocabulary, hidden)
            linear(shapes, f"{at}shared_head.head", vocabulary, hidden)
    shapes["model.norm.weight"] = ("BF16", (hidden,))
    shapes["lm_head.weight"] = ("BF16", (vocabulary, hidden))
    return shapes


def latent_attention(shapes: Shapes, at: str, config: Mapping[str, Any], dtype: str) -> None:
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    queries, latent = config["q_lora_rank"], config["kv_lora_rank"]
    nope, rope, value = config["qk_nope_head_dim"], config["qk_rope_head_dim"], config["v_head_dim"]
    linear(shapes, f"{at}.q_a_proj", queries, hidden, dtype)
    shapes[f"{at}.q_a_layernorm.weight"] = ("BF16", (queries,))
    linear(shapes, f"{at}.q_b_proj", heads * (nope + rope), queries, dtype)
    linear(shapes, f"{at}.kv_a_proj_with_mqa", latent + rope, hidden, dtype)
    shapes[f"{at}.kv_a_layernorm.weight"] = ("BF16", (latent,))
    linear(shapes, f"{at}.kv_b_proj", heads * (nope + value), latent, dtype)
    linear(shapes, f"{at}.o_proj", hidden, heads * value, dtype)
