"""What a rank reads of single tensors: fused matrices, biases, scales of shared blocks, arithmetic types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ledger import families as fam
from tests.ledger.sums import again, built, entries, flop, size
from tests.ledger.test_families import SMALL_DEEPSEEK, SMALL_LLAMA, SMALL_QWEN

CONFIG = fam.llama_config(
    **SMALL_LLAMA
)  # 2 layers, hidden 256, 8 heads and 2 key/value heads of 32, inner 512


@pytest.mark.parametrize("tensor", [1, 2, 4])
def test_fused_matrices_are_split_like_those_that_they_are_of(tmp_path: Path, tensor: int) -> None:
    apart = built(
        tmp_path / "apart", CONFIG, fam.llama(CONFIG), batch=3, tensor=tensor, activations=True
    ).ledger
    shapes = {
        name: form
        for name, form in fam.llama(CONFIG).items()
        if not any(part in name for part in ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"))
    }
    for layer in range(2):
        fam.linear(shapes, f"model.layers.{layer}.self_attn.qkv_proj", (8 + 2 + 2) * 32, 256)
        fam.linear(shapes, f"model.layers.{layer}.mlp.gate_up_proj", 2 * 512, 256)
    fused = built(tmp_path / "fused", CONFIG, shapes, batch=3, tensor=tensor, activations=True).ledger
    assert fused.uncounted == []
    for rank in range(tensor):
        assert size(fused, rank) == size(apart, rank)
        assert flop(fused, rank) == flop(apart, rank)
        assert size(fused, rank, kind="activations") == size(apart, rank, kind="activations")


def test_a_bias_behind_a_sum_over_ranks_is_read_by_the_first_alone(tmp_path: Path) -> None:
    shapes = fam.llama(CONFIG)
    plain = built(tmp_path / "plain", CONFIG, shapes, tensor=2).ledger
    for layer in range(2):
        shapes[f"model.layers.{layer}.self_attn.o_proj.bias"] = ("BF16", (256,))
        shapes[f"model.layers.{layer}.self_attn.q_proj.bias"] = ("BF16", (256,))
    biased = built(tmp_path / "biased", CONFIG, shapes, tensor=2).ledger
    extra = [size(biased, rank) - size(plain, rank) for rank in (0, 1)]
    assert extra == [2 * (256 + 128) * 2, 2 * 128 * 2]


@pytest.mark.parametrize(("channels", "blocks", "mine"), [(128, 1, 1), (256, 2, 1), (384, 3, 2)])
def test_the_scale_of_a_block_that_two_ranks_share_is_read_by_both(
    tmp_path: Path, channels: int, blocks: int, mine: int
) -> None:
    """128 expert channels on two ranks: each has 64 of the one block's; of 384 each has a block and a half."""
    config = fam.deepseek_config(
        **SMALL_DEEPSEEK | {"num_nextn_predict_layers": 0, "moe_intermediate_size": channels}
    )
    whole = built(tmp_path, config, fam.deepseek(config), batch=10**5).ledger
    split = again(tmp_path, batch=10**5, tensor=2).ledger
    per_block = 2 * 8 * 3 * 2 * 4  # layers, experts, matrices, blocks across the hidden size of 256, bytes
    assert size(whole, name="scales of routed") == blocks * per_block
    assert [size(split, rank, name="scales of routed") for rank in (0, 1)] == [mine * per_block] * 2
    assert [size(split, rank, kind="routed") for rank in (0, 1)] == [size(whole, kind="routed") // 2] * 2


def test_inputs_of_fp8_products_are_read_in_fp8(tmp_path: Path) -> None:
    config = CONFIG | {"quantization_config": {"quant_method": "fp8"}}
    shapes = fam.llama(config, lambda *form: fam.linear(*form, dtype="F8_E4M3"))
    ledger = built(tmp_path, config, shapes, batch=3, activations=True).ledger
    inputs, outputs = 256 + 256, 256 + 64 + 64 + 256
    assert size(ledger, phase="attention", kind="activations") == 2 * 3 * (inputs + outputs * 2)


def nvfp4(shapes: fam.Shapes, name: str, out: int, into: int) -> None:
    shapes[f"{name}.weight"] = ("U8", (out, into // 2))
    shapes[f"{name}.weight_scale"] = ("F8_E4M3", (out, into // 16))
    shapes[f"{name}.weight_scale_2"] = ("F32", ())
    shapes[f"{name}.input_scale"] = ("F32", ())


def int8(shapes: fam.Shapes, name: str, out: int, into: int) -> None:
    shapes[f"{name}.weight"] = ("U8", (out, into))
    shapes[f"{name}.weight_scale"] = ("BF16", (out, 1))


GROUP = {"weights": {"num_bits": 8}, "input_activations": {"num_bits": 8, "type": "int"}}
NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4"}


@pytest.mark.parametrize(
    ("matrix", "quantization", "flop_dtype", "bits", "scale_bytes"),
    [
        (nvfp4, NVFP4, "fp4", 4, lambda out, into: out * into // 16 + 8),
        (int8, {"config_groups": {"g": GROUP}}, None, 8, lambda out, into: out * 2),
        (
            int8,
            {"config_groups": {"g": GROUP | {"input_activations": None}}},
            "bf16",
            8,
            lambda out, into: out * 2,
        ),
    ],
)
def test_weights_of_eight_and_four_bits(
    tmp_path: Path, matrix: Any, quantization: Any, flop_dtype: str | None, bits: int, scale_bytes: Any
) -> None:
    config = CONFIG | {"quantization_config": quantization}
    ledger = built(tmp_path, config, fam.llama(config, matrix), batch=3).ledger
    assert ledger.uncounted == []
    forms = [(256, 256), (64, 256), (64, 256), (256, 256), (512, 256), (512, 256), (256, 512)]
    weights = 2 * sum(out * into for out, into in forms)
    products = [entry for entry in entries(ledger, kind="dense") if entry.dtype == "U8"]
    assert sum(entry.bytes for entry in products) == weights * bits // 8
    assert sum(entry.flop or 0 for entry in products) == 2 * 3 * weights
    assert {entry.flop_dtype for entry in products} == {flop_dtype}
    assert size(ledger, kind="quant") == 2 * sum(scale_bytes(out, into) for out, into in forms)


def test_layers_that_a_four_bit_checkpoint_left_wider_compute_in_their_own_type(tmp_path: Path) -> None:
    config = CONFIG | {"quantization_config": NVFP4}
    shapes = fam.llama(config, lambda *form: fam.linear(*form, dtype="F8_E4M3"))
    ledger = built(tmp_path, config, shapes).ledger
    assert {entry.flop_dtype for entry in entries(ledger, name="attention projections")} == {"fp8"}
    assert {entry.flop_dtype for entry in entries(ledger, phase="head", name="head")} == {"bf16"}


def test_a_group_with_both_scales_and_packed_weights_in_uint8(tmp_path: Path) -> None:
    """compressed-tensors' NVFP4: two weights per byte under another name."""
    config = CONFIG | {
        "quantization_config": {
            "quant_method": "compressed-tensors",
            "config_groups": {
                "g": {
                    "weights": {"num_bits": 4, "type": "float"},
                    "input_activations": {"num_bits": 4, "type": "float"},
                }
            },
        }
    }

    def matrix(shapes: fam.Shapes, name: str, out: int, into: int) -> None:
        shapes[f"{name}.weight_packed"] = ("U8", (out, into // 2))
        shapes[f"{name}.weight_scale"] = ("F8_E4M3", (out, into // 16))
        shapes[f"{name}.weight_global_scale"] = ("F32", (1,))

    ledger = built(tmp_path, config, fam.llama(config, matrix), batch=3, tensor=2).ledger
    products = [entry for entry in entries(ledger, kind="dense", rank=1) if entry.dtype == "U8"]
    weights = 2 * (2 * 256 * 256 + 2 * 64 * 256 + 3 * 256 * 512)
    assert sum(entry.bytes for entry in products) == weights // 2 // 2
    assert sum(entry.flop or 0 for entry in products) == 2 * 3 * weights // 2
    assert {entry.flop_dtype for entry in products} == {"fp4"}


def test_eight_bit_gptq_is_told_by_its_bits(tmp_path: Path) -> None:
    config = CONFIG | {"quantization_config": {"quant_method": "gptq", "bits": 8}}

    def matrix(shapes: fam.Shapes, name: str, out: int, into: int) -> None:
        shapes[f"{name}.qweight"] = ("I32", (into // 4, out))
        shapes[f"{name}.qzeros"] = ("I32", (into // 128, out // 4))
        shapes[f"{name}.scales"] = ("F16", (into // 128, out))

    ledger = built(tmp_path, config, fam.llama(config, matrix)).ledger
    products = [entry for entry in entries(ledger, kind="dense") if entry.dtype == "I32"]
    weights = 2 * (2 * 256 * 256 + 2 * 64 * 256 + 3 * 256 * 512)
    assert sum(entry.bytes for entry in products) == weights
    assert sum(entry.flop or 0 for entry in products) == 2 * weights


def test_what_a_ledger_takes_for_granted_stands_in_it(tmp_path: Path) -> None:
    config = fam.qwen_config(
        **SMALL_QWEN | {"num_key_value_heads": 2, "sliding_window": 9, "use_sliding_window": True}
    )
    shapes = fam.qwen(config)
    del shapes["lm_head.weight"]
    shapes["odd"] = ("F32", (2,))
    config["tie_word_embeddings"] = True
    ledger = built(
        tmp_path, config, shapes, batch=8, context=5, tensor=4, data=2, pipeline=2, expert=2, cache_dtype="fp8",
        weights_dtype="fp16", activations=True,
    ).ledger  # fmt: skip
    expected = [
        "one decode step",
        "weights that are stored as plain floating point are loaded and read as F16",
        "the head reads the embedding table (tied)",
        "rank = (data x stages + stage) x tensor + place in the tensor group (data 2, stages 2, tensor 4)",
        "experts lie in consecutive blocks on 2 shares of a stage's ranks, in rank order, each split over 2 ranks",
        "each data replica holds attention, dense and shared weights",
        "stages hold 1, 1 layers and follow one another",
        "phases are serial: an all-reduce (or all-to-all)",
        "routed experts, model: uniform expectation 8 x (1 - (1 - 2/8)^4) = 5.46875 distinct experts",
        "uniform routing is the most that independent tokens touch",
        "every sequence has 5 tokens in the cache, stored as F8_E4M3",
        "2 key/value heads are replicated over 4 ranks: each reads one head",
        "attention in 2 of 2 layers reaches back 9 tokens at most",
        "activations: each matrix product reads its input once",
        "arithmetic is that of matrix products and of attention over the cache",
        "not counted: 1 tensor of 8 bytes (no rule knows it)",
    ]
    found = [text for text in ledger.workload.assumptions if not text.startswith("its data is not there")]
    assert [text[: len(start)] for text, start in zip(found, expected, strict=True)] == expected
