"""Caches and states: windows, replicated heads, latent vectors, linear attention, types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analyzer.errors import TraceError
from tests.ledger import families as fam
from tests.ledger.sums import again, built, entries, flop, size
from tests.ledger.test_families import SMALL_DEEPSEEK, SMALL_LLAMA, SMALL_QWEN

READ, WRITTEN = "keys and values read", "keys and values written"
PER_TOKEN = 2 * 2 * 32 * 2  # keys and values, 2 heads, head size 32, BF16


def llama(folder: Path, layers: int = 6, request: dict[str, Any] | None = None, **changes: Any) -> Any:
    config = fam.llama_config(**SMALL_LLAMA | {"num_hidden_layers": layers} | changes)
    return built(folder, config, fam.llama(config), **{"batch": 3, "context": 100} | (request or {}))


@pytest.mark.parametrize(
    ("changes", "tokens"),
    [
        ({}, 6 * 100),
        ({"sliding_window": None}, 6 * 100),
        ({"sliding_window": 41}, 6 * 40),  # the window holds the new token, too
        ({"sliding_window": 4096}, 6 * 100),
        ({"sliding_window": 41, "use_sliding_window": False}, 6 * 100),
        ({"sliding_window": 41, "use_sliding_window": True, "max_window_layers": 4}, 4 * 100 + 2 * 40),
        (
            {"sliding_window": 41, "layer_types": ["sliding_attention", "full_attention"] * 3},
            3 * 100 + 3 * 40,
        ),
        ({"sliding_window": 41, "model_type": "qwen2"}, 6 * 100),  # off unless use_sliding_window is on
        ({"sliding_window": 41, "model_type": "gemma2"}, 3 * 100 + 3 * 40),
        ({"sliding_window": 41, "sliding_window_pattern": 3}, 2 * 100 + 4 * 40),
        ({"attention_chunk_size": 64}, 5 * 36 + 100),  # Llama 4: all but every fourth
        ({"attention_chunk_size": 64, "no_rope_layer_interval": 3}, 4 * 36 + 2 * 100),
        ({"attention_chunk_size": 64, "no_rope_layers": [1, 0, 1, 1, 1, 0]}, 4 * 36 + 2 * 100),
        (
            {"attention_chunk_size": 64, "layer_types": ["chunked_attention"] * 5 + ["full_attention"]},
            5 * 36 + 100,
        ),
    ],
)
def test_attention_reads_what_its_window_holds(tmp_path: Path, changes: dict[str, Any], tokens: int) -> None:
    ledger = llama(tmp_path, **changes).ledger
    assert size(ledger, name=READ) == 3 * tokens * PER_TOKEN
    assert size(ledger, name=WRITTEN) == 3 * 6 * PER_TOKEN
    assert flop(ledger, kind="kv-cache") == 3 * tokens * 4 * 8 * 32


def test_layer_types_that_are_too_few_or_lack_a_window_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="names 2 layers of num_hidden_layers 6"):
        llama(tmp_path, layer_types=["full_attention"] * 2)
    with pytest.raises(TraceError, match=r"sliding_window\): is missing"):
        llama(tmp_path, layer_types=["sliding_attention"] * 6)


def test_a_type_of_attention_that_is_not_known_is_said(tmp_path: Path) -> None:
    answer = llama(tmp_path, layer_types=["full_attention"] * 5 + ["odd_attention"])
    assert "layer_types of 1 layer with attention is not known: counted as full" in answer.warnings
    assert size(answer.ledger, name=READ) == 3 * 600 * PER_TOKEN


@pytest.mark.parametrize(
    ("dtype", "size_"), [("auto", 2), ("bf16", 2), ("fp8", 1), ("fp8_e5m2", 1), ("fp32", 4)]
)
def test_the_caches_type(tmp_path: Path, dtype: str, size_: int) -> None:
    ledger = llama(tmp_path, request={"cache_dtype": dtype}).ledger
    assert size(ledger, name=READ) == 3 * 600 * PER_TOKEN * size_ // 2
    assert {entry.flop_dtype for entry in entries(ledger, name=READ)} == {"bf16"}


@pytest.mark.parametrize(("tensor", "heads"), [(1, 2), (2, 1), (4, 1), (8, 1)])
def test_heads_are_split_until_each_rank_has_one(tmp_path: Path, tensor: int, heads: int) -> None:
    ledger = llama(tmp_path, request={"tensor": tensor}).ledger
    for rank in range(tensor):
        assert size(ledger, rank, name=READ) == 3 * 600 * PER_TOKEN * heads // 2
        # projections of keys and values follow their heads
        kind = "replicated" if tensor > 2 else "dense"
        assert size(ledger, rank, kind=kind, phase="attention") > 0
    replicated = size(ledger, kind="replicated", name="key/value")
    assert replicated == (6 * 2 * 32 * 256 * 2 if tensor > 2 else 0)


def test_latent_vectors_are_read_whole_by_every_rank(tmp_path: Path) -> None:
    config = fam.deepseek_config(**SMALL_DEEPSEEK)
    ledger = built(tmp_path, config, fam.deepseek(config), batch=3, context=100, tensor=4).ledger
    for rank in range(4):
        assert size(ledger, rank, name="latent vectors read") == 3 * 100 * 3 * (64 + 16) * 2
        assert size(ledger, rank, name="latent vectors written") == 3 * 3 * (64 + 16) * 2


def test_sparse_attention_reads_the_chosen_tokens_and_every_index_key(tmp_path: Path) -> None:
    config = fam.deepseek_config(**SMALL_DEEPSEEK, index_topk=32, index_head_dim=128, index_n_heads=4)
    shapes = fam.deepseek(config)
    for layer in range(3):
        at = f"model.layers.{layer}.self_attn.indexer"
        fam.linear(shapes, f"{at}.wk", 128, 256)
        shapes[f"{at}.k_norm.weight"] = ("BF16", (128,))
    ledger = built(tmp_path, config, shapes, batch=3, context=100).ledger
    assert size(ledger, name="latent vectors read") == 3 * 32 * 3 * 80 * 2
    assert size(ledger, name="indexer keys read") == 3 * 100 * 3 * (128 + 4)
    assert size(ledger, name="indexer", kind="dense") == 3 * 128 * 256 * 2
    (scores,) = entries(
        ledger, name="indexer keys read"
    )  # 2 FLOP per head, element, token, sequence and layer
    assert (scores.flop, scores.flop_dtype) == (2 * 4 * 128 * 100 * 3 * 3, "fp8")
    assert (
        size(again(tmp_path, batch=3, context=20).ledger, name="latent vectors read") == 3 * 20 * 3 * 80 * 2
    )


LINEAR = {"linear_num_key_heads": 4, "linear_num_value_heads": 8, "linear_key_head_dim": 16,
          "linear_value_head_dim": 32, "linear_conv_kernel_dim": 4}  # fmt: skip


def next_like(dims: dict[str, int], **changes: Any) -> tuple[dict[str, Any], fam.Shapes]:
    """Qwen3-Next-like: layer 0 is linear attention, layer 1 full attention."""
    config = fam.qwen_config(
        **SMALL_QWEN | dims | {"layer_types": ["linear_attention", "full_attention"]} | changes
    )
    shapes = {
        name: form
        for name, form in fam.qwen(config).items()
        if not name.startswith("model.layers.0.self_attn")
    }
    at = "model.layers.0.linear_attn"
    keys, values = 4 * 16, 8 * 32
    fam.linear(shapes, f"{at}.in_proj_qkvz", 2 * keys + 2 * values, 64)
    fam.linear(shapes, f"{at}.in_proj_ba", 16, 64)
    fam.linear(shapes, f"{at}.out_proj", 64, values)
    shapes[f"{at}.conv1d.weight"] = ("BF16", (2 * keys + values, 1, 4))
    shapes[f"{at}.A_log"] = ("F32", (8,))
    shapes[f"{at}.dt_bias"] = ("BF16", (8,))
    shapes[f"{at}.norm.weight"] = ("BF16", (32,))
    return config, shapes


@pytest.mark.parametrize("tensor", [1, 2])
def test_linear_attention_has_a_state_instead_of_a_cache(tmp_path: Path, tensor: int) -> None:
    config, shapes = next_like(LINEAR)
    ledger = built(tmp_path, config, shapes, batch=3, context=100, tensor=tensor, state_dtype="fp32").ledger
    assert ledger.uncounted == []
    assert size(ledger, name=READ) == 3 * 100 * 2 * (4 // tensor) * 16 * 2  # of one layer
    assert size(ledger, name="state of linear") == 2 * 3 * (8 // tensor) * 16 * 32 * 4
    assert size(ledger, name="inputs of the short") == 2 * 3 * (2 * 64 + 256) // tensor * 3 * 2
    split = (2 * 64 + 2 * 256 + 16) * 64 + 64 * 256 + (2 * 64 + 256) * 4 + 8
    assert size(ledger, name="linear attention", kind="dense") == (split * 2 + 8 * 4) // tensor
    longer = again(tmp_path, batch=3, context=200, tensor=tensor).ledger
    assert size(longer, kind="recurrent", name="inputs") == size(ledger, kind="recurrent", name="inputs")
    assert (
        size(longer, name="state of linear") == size(ledger, name="state of linear") // 2
    )  # BF16 unless told


def test_a_state_whose_dimensions_are_not_told_is_not_counted(tmp_path: Path) -> None:
    config, shapes = next_like({})
    answer = built(tmp_path, config, shapes)
    assert size(answer.ledger, kind="recurrent") == 0
    assert "the state of 1 layer is not counted: see the ledger's assumptions" in answer.warnings
    assert any(
        "not counted: cache or state of layers 0" in text for text in answer.ledger.workload.assumptions
    )


def test_attention_that_no_rule_knows_is_said(tmp_path: Path) -> None:
    config = fam.llama_config(**SMALL_LLAMA)
    shapes = {
        name.replace("layers.1.self_attn.", "layers.1.mixer."): form
        for name, form in fam.llama(config).items()
    }
    answer = built(tmp_path, config, shapes, context=10)
    assert size(answer.ledger, name=READ) == 10 * PER_TOKEN
    assert any("no rule knows 4 tensors" in text for text in answer.warnings)
    assert any("cache or state of layers 1" in text for text in answer.ledger.workload.assumptions)


def test_a_checkpoint_without_its_ends_is_said(tmp_path: Path) -> None:
    config = fam.llama_config(**SMALL_LLAMA)
    shapes = {name: form for name, form in fam.llama(config).items() if name.startswith("model.layers.")}
    answer = built(tmp_path, config, shapes)
    assert [phase.name for phase in answer.ledger.phase] == ["attention", "feed-forward"]
    assert "no embedding table is among the tensors: its rows are not counted" in answer.warnings
    assert "no output head is among the tensors: it is not counted" in answer.warnings


def test_the_compute_type_comes_from_the_config_or_the_norms(tmp_path: Path) -> None:
    config = fam.llama_config(**SMALL_LLAMA)
    del config["torch_dtype"]
    ledger = built(tmp_path / "a", config, fam.llama(config), context=1).ledger
    assert {entry.dtype for entry in entries(ledger, kind="kv-cache")} == {"BF16"}
    nested = {"model_type": "wrapped", "text_config": config, "torch_dtype": "float16"}
    wrapped = built(tmp_path / "b", nested, fam.llama(config), context=1).ledger
    assert {entry.dtype for entry in entries(wrapped, kind="kv-cache")} == {"F16"}
    shapes = fam.llama(config) | {"model.norm.weight": ("F32", (256,))}
    with pytest.raises(TraceError, match=r"torch_dtype\): is missing, and the norms do not tell it"):
        built(tmp_path / "c", config, shapes)


@pytest.mark.parametrize(
    "quantized",
    [
        {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"},
        {"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"}},
    ],
)
def test_a_checkpoint_that_says_its_cache_is_quantized_is_warned_of(
    tmp_path: Path, quantized: dict[str, Any]
) -> None:
    config = fam.llama_config(**SMALL_LLAMA, quantization_config=quantized)
    (warning,) = [w for w in built(tmp_path, config, fam.llama(config)).warnings if "cache" in w]
    assert "counted as BF16" in warning
    for told in ("fp8", "bf16"):
        assert not [w for w in again(tmp_path, cache_dtype=told).warnings if "KV cache" in w]
    quantized.update({"kv_cache_scheme": None, "kv_cache_quant_algo": None})
    assert not [w for w in built(tmp_path, config, fam.llama(config)).warnings if "KV cache" in w]


def test_a_number_of_layers_beyond_all_models_is_refused(tmp_path: Path) -> None:
    config = fam.llama_config(**SMALL_LLAMA)
    with pytest.raises(TraceError, match="no model has more than 100,000"):
        built(tmp_path, config | {"num_hidden_layers": 10**30}, fam.llama(config))
