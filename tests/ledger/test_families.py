"""Ledgers of model families against sums that are worked out here from the config alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analyzer.ledger.model import Uncounted
from analyzer.ledger.summary import device_bandwidth, summarize
from analyzer.report import byte_ledger_text
from tests.ledger import families as fam
from tests.ledger.sums import again, built, entries, flop, size

TB8 = {"tensor": 8}
EP8 = {"tensor": 8, "expert": 8}


@pytest.fixture(scope="module")
def llama_70b(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("llama")
    return fam.write_headers(folder, fam.llama_config(), fam.llama(fam.llama_config()), shards=30)


@pytest.fixture(scope="module")
def qwen_235b(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qwen") / "Qwen3-235B-A22B"
    return fam.write_headers(folder, fam.qwen_config(), fam.qwen(fam.qwen_config()), shards=118)


@pytest.fixture(scope="module")
def deepseek_v3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deepseek")
    config = fam.deepseek_config()
    return fam.write_headers(folder, config, fam.deepseek(config), shards=163)


def test_published_parameter_counts() -> None:
    assert fam.parameters(fam.llama(fam.llama_config())) == 70_553_706_496
    assert fam.parameters(fam.qwen(fam.qwen_config())) == 235_093_634_560
    config = fam.deepseek_config(num_nextn_predict_layers=0)
    shapes = fam.deepseek(config, dtype="BF16")
    assert round(fam.parameters(shapes) / 1e9) == 671


def test_published_numbers_of_weights_that_work_on_a_token(qwen_235b: Path, deepseek_v3: Path) -> None:
    """DeepSeek-V3's README says 36.6 billion with the head; Qwen3 says 22, which hold the 0.6 of the table, too."""
    assert round(flop(again(deepseek_v3).ledger) / 2 / 1e9, 1) == 36.6
    table = 151936 * 4096
    assert round((flop(again(qwen_235b).ledger) / 2 + table) / 1e9, 1) == 22.2


def test_the_documentation_shows_what_show_prints(qwen_235b: Path) -> None:
    ledger = again(qwen_235b, batch=64, context=4096, activations=True, **EP8).ledger
    shown = byte_ledger_text.text(summarize(ledger, *device_bandwidth("NVIDIA H200"))).split("\nAssumed\n")[0]
    page = (Path(__file__).resolve().parents[2] / "docs" / "ledger.md").read_text(encoding="utf-8")
    assert f"```\n{shown.rstrip()}\n```\n" in page


@pytest.mark.parametrize("batch", [1, 64])
def test_llama_70b_on_8_ranks(llama_70b: Path, batch: int) -> None:
    ledger = again(llama_70b, batch=batch, context=4096, **TB8).ledger
    assert ledger.uncounted == []
    assert [phase.name for phase in ledger.phase] == ["embedding", "attention", "feed-forward", "head"]
    hidden, keys, inter, vocabulary = 8192, 1024, 28672, 128256
    for rank in range(8):
        attention = 80 * (2 * hidden * hidden + 2 * keys * hidden)
        assert size(ledger, rank, phase="attention", kind="dense") == attention * 2 // 8
        assert size(ledger, rank, phase="feed-forward", kind="dense") == 80 * 3 * hidden * inter * 2 // 8
        assert size(ledger, rank, phase="head", kind="dense") == vocabulary * hidden * 2 // 8
        assert size(ledger, rank, phase="embedding") == batch * hidden * 2 // 8
        assert size(ledger, rank, kind="replicated", name="norms") == (80 * 2 + 1) * hidden * 2
        per_token = 80 * 2 * 128 * 2  # one key/value head of the eight
        assert size(ledger, rank, kind="kv-cache", name="keys and values read") == batch * 4096 * per_token
        assert size(ledger, rank, kind="kv-cache", name="keys and values written") == batch * per_token
        weights = attention + 80 * 3 * hidden * inter + vocabulary * hidden
        assert flop(ledger, rank, kind="dense") == 2 * batch * weights // 8
        assert flop(ledger, rank, kind="kv-cache") == 80 * 2 * 2 * (64 // 8) * 128 * 4096 * batch
    assert {entry.flop_dtype for entry in entries(ledger) if entry.flop} == {"bf16"}
    assert ledger.workload.tokens_per_step == batch


@pytest.mark.parametrize("batch", [1, 64])
def test_qwen_235b_on_8_ranks(qwen_235b: Path, batch: int) -> None:
    ledger = again(qwen_235b, batch=batch, context=1000, **EP8).ledger
    assert ledger.uncounted == []
    touched = 16 * (1 - (1 - 8 / 128) ** batch)  # of a rank's 16 experts
    for rank in range(8):
        routed = 94 * touched * 3 * 4096 * 1536 * 2
        assert size(ledger, rank, kind="routed") == pytest.approx(routed, abs=1)
        assert flop(ledger, rank, kind="routed") == 94 * batch * 8 * 16 // 128 * 2 * 3 * 4096 * 1536
        assert size(ledger, rank, phase="attention", kind="dense") == 94 * 2 * 4096 * 8192 * 2 // 8
        one_head = 94 * 2 * 128 * 4096 * 2  # four heads on eight ranks: each of them is read by two
        assert size(ledger, rank, kind="replicated", name="key/value") == one_head
        assert size(ledger, rank, kind="replicated", name="router") == 94 * 128 * 4096 * 2
        norms = 94 * (2 * 4096 + 2 * 128) + 4096
        assert size(ledger, rank, kind="replicated", name="norms") == norms * 2
        assert (
            size(ledger, rank, kind="kv-cache", name="keys and values read")
            == batch * 1000 * 94 * 2 * 128 * 2
        )
    assert {entry.basis for entry in entries(ledger, kind="routed")} == {"model"}


@pytest.mark.parametrize("batch", [1, 64])
def test_deepseek_v3_on_8_ranks(deepseek_v3: Path, batch: int) -> None:
    answer = again(deepseek_v3, batch=batch, context=4096, cache_dtype="fp8", **EP8)
    ledger = answer.ledger
    touched = 32 * (1 - (1 - 8 / 256) ** batch)
    expert = 3 * 7168 * 2048
    split = 1536 * 24576 + 512 * 32768 + 16384 * 7168
    down = 7168 * 1536 + 7168 * 576
    for rank in range(8):
        assert size(ledger, rank, kind="routed") == pytest.approx(58 * touched * expert, abs=1)
        assert size(ledger, rank, phase="attention", kind="dense") == 61 * split // 8
        assert size(ledger, rank, kind="replicated", name="latent down") == 61 * down
        dense = 3 * 3 * 7168 * 18432 + 58 * expert
        assert size(ledger, rank, phase="feed-forward", kind="dense") == dense // 8
        assert size(ledger, rank, kind="replicated", name="router") == 58 * 256 * (7168 * 2 + 4)
        norms = 61 * (2 * 7168 + 1536 + 512) + 7168
        assert size(ledger, rank, kind="replicated", name="norms") == norms * 2
        assert size(ledger, rank, phase="head", kind="dense") == 129280 * 7168 * 2 // 8
        # FP8 scales: 4 bytes per block of 128 x 128; 576 outputs are 4.5 blocks, rounded up to 5
        assert size(ledger, rank, kind="quant", name="scales of latent") == 61 * (12 * 56 + 5 * 56) * 4
        blocks = 192 * 12 + 256 * 4 + 56 * 128
        assert size(ledger, rank, kind="quant", name="scales of attention") == 61 * blocks * 4 // 8
        scales = pytest.approx(58 * touched * 3 * 16 * 56 * 4, abs=1)
        assert size(ledger, rank, kind="quant", name="scales of routed") == scales
        assert size(ledger, rank, kind="kv-cache", name="latent vectors read") == batch * 4096 * 61 * 576
        products = 61 * 2 * (128 // 8) * (576 + 512) * 4096 * batch
        assert flop(ledger, rank, kind="kv-cache") == products
        assert flop(ledger, rank, kind="routed") == 58 * 8 * batch * 32 // 256 * 2 * expert
    of_type = {entry.flop_dtype for entry in entries(ledger, kind="routed")}
    assert of_type == {"fp8"}
    assert {entry.flop_dtype for entry in entries(ledger, phase="head", kind="dense")} == {"bf16"}
    assert {entry.dtype for entry in entries(ledger, kind="kv-cache")} == {"F8_E4M3"}


def test_the_layer_for_multi_token_prediction_is_listed_and_not_read(deepseek_v3: Path) -> None:
    ledger = again(deepseek_v3, **EP8).ledger
    without = fam.deepseek(fam.deepseek_config(num_nextn_predict_layers=0))
    extra = fam.stored_bytes(fam.deepseek(fam.deepseek_config())) - fam.stored_bytes(without)
    assert sum(row.bytes for row in ledger.uncounted) == extra
    assert {row.why for row in ledger.uncounted} == {
        "multi-token prediction (beyond num_hidden_layers): not read in ordinary decode"
    }
    (experts,) = (row for row in ledger.uncounted if row.name.endswith("experts.*.gate_proj.weight"))
    assert (experts.tensors, experts.shape, experts.bytes) == (256, [2048, 7168], 256 * 2048 * 7168)


SMALL_LLAMA = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8,
               "num_key_value_heads": 2, "vocab_size": 1000}  # fmt: skip
SMALL_QWEN = {"hidden_size": 64, "moe_intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 8,
              "num_key_value_heads": 4, "head_dim": 16, "num_experts": 8, "num_experts_per_tok": 2,
              "vocab_size": 96}  # fmt: skip
SMALL_DEEPSEEK = {"hidden_size": 256, "intermediate_size": 512, "moe_intermediate_size": 128, "num_hidden_layers": 3,
                  "first_k_dense_replace": 1, "num_attention_heads": 8, "num_key_value_heads": 8, "q_lora_rank": 128,
                  "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32,
                  "n_routed_experts": 8, "num_experts_per_tok": 2, "vocab_size": 512}  # fmt: skip
SMALL = [
    (fam.llama_config(**SMALL_LLAMA), fam.llama),
    (fam.qwen_config(**SMALL_QWEN), fam.qwen),
    (fam.deepseek_config(**SMALL_DEEPSEEK), fam.deepseek),
]


@pytest.mark.parametrize(("config", "shapes_of"), SMALL)
def test_files_of_the_safetensors_library_and_headers_alone_give_the_same_ledger(
    tmp_path: Path, config: dict[str, Any], shapes_of: Any
) -> None:
    shapes = shapes_of(config)
    fam.write_whole(tmp_path / "one" / "m", config, shapes)
    fam.write_whole(tmp_path / "many" / "m", config, shapes, shards=3)
    fam.write_headers(tmp_path / "headers" / "m", config, shapes)
    one, many = again(tmp_path / "one" / "m"), again(tmp_path / "many" / "m")
    assert one == many
    assert one.warnings == ()
    cut = again(tmp_path / "headers" / "m")
    assert cut.ledger.phase == one.ledger.phase
    assert cut.warnings == ("its data is not there or cut off: sizes are those that the headers declare",)


@pytest.mark.parametrize(("config", "shapes_of"), SMALL)
def test_on_one_rank_with_every_expert_touched_the_ledger_holds_the_file(
    tmp_path: Path, config: dict[str, Any], shapes_of: Any
) -> None:
    """Every byte of the checkpoint is read, listed, or in the embedding table of which rows are read."""
    shapes = shapes_of(config)
    ledger = built(tmp_path, config, shapes, batch=100_000).ledger
    weights = sum(size(ledger, kind=kind) for kind in ("routed", "dense", "quant", "replicated"))
    rows = size(ledger, phase="embedding")
    table = config["vocab_size"] * config["hidden_size"] * 2
    listed = sum(row.bytes for row in ledger.uncounted)
    assert weights - rows + table + listed == pytest.approx(fam.stored_bytes(shapes), abs=1)
    assert size(ledger, kind="replicated") == 0  # one rank shares nothing


def test_shared_experts_their_gate_and_biases(tmp_path: Path) -> None:
    """Qwen2-MoE: the shared expert is split, its gate is not; a bias goes with its columns."""
    config = fam.qwen_config(**SMALL_QWEN)
    ledger = built(tmp_path, config, fam.qwen(config, shared=128), tensor=4, expert=4).ledger
    assert ledger.uncounted == []
    assert size(ledger, name="shared experts", kind="dense") == 2 * 3 * 64 * 128 * 2 // 4
    assert size(ledger, name="shared experts' gate", kind="replicated") == 2 * 64 * 2
    matrices, biases = 2 * 2 * 64 * 128 + 2 * 2 * 64 * 64, 2 * (128 + 2 * 64)
    assert size(ledger, phase="attention", kind="dense") == (matrices + biases) * 2 // 4


@pytest.mark.parametrize("form", ["as loaded", "turned", "Granite"])
def test_experts_in_one_tensor_count_like_experts_apart(tmp_path: Path, form: str) -> None:
    config = fam.qwen_config(**SMALL_QWEN)
    apart = built(tmp_path / "apart" / "m", config, fam.qwen(config), batch=3, tensor=4, expert=2).ledger
    shapes = fam.qwen(config, stacked=True)
    if form == "Granite":
        names = {"mlp.experts.gate_up_proj": "block_sparse_moe.input_linear.weight",
                 "mlp.gate.": "block_sparse_moe.router.layer.",
                 "mlp.experts.down_proj": "block_sparse_moe.output_linear.weight"}  # fmt: skip
        for old, new in names.items():
            shapes = {name.replace(old, new): shape for name, shape in shapes.items()}
    if form == "turned":  # other engines keep (expert, in, out)
        shapes = {
            name: (dtype, (shape[0], shape[2], shape[1])) if len(shape) == 3 else (dtype, shape)
            for name, (dtype, shape) in shapes.items()
        }
    stacked = built(tmp_path / "stacked" / "m", config, shapes, batch=3, tensor=4, expert=2).ledger
    for rank in range(4):
        assert size(stacked, rank) == size(apart, rank)
        assert flop(stacked, rank) == flop(apart, rank)
    assert stacked.uncounted == []
    (routed,) = entries(stacked, kind="routed", rank=0)
    assert routed.tensors == 4  # two in each of two layers


def test_mixtral_names(tmp_path: Path) -> None:
    config = fam.qwen_config(**SMALL_QWEN)
    renamed = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2", "mlp.": "block_sparse_moe."}
    shapes: fam.Shapes = {}
    for name, form in fam.qwen(config).items():
        new = name
        for old, other in renamed.items():
            new = new.replace(old, other)
        shapes[new] = form
    named = built(tmp_path / "a" / "m", config, shapes, tensor=4, expert=4, activations=True).ledger
    usual = built(tmp_path / "b" / "m", config, fam.qwen(config), tensor=4, expert=4, activations=True).ledger
    assert [size(named, rank) for rank in range(4)] == [size(usual, rank) for rank in range(4)]
    assert named.uncounted == []


QUANTIZED = [
    ("gptq", {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True}, fam.gptq),
    ("awq", {"quant_method": "awq", "bits": 4, "group_size": 128}, fam.awq),
    (
        "compressed-tensors",
        {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4}}}},
        fam.packed,
    ),
]


@pytest.mark.parametrize(("method", "quantization", "matrix"), QUANTIZED)
@pytest.mark.parametrize("tensor", [1, 2])
def test_four_bit_weights_with_scales_and_zero_points(
    tmp_path: Path, method: str, quantization: dict[str, Any], matrix: Any, tensor: int
) -> None:
    config = fam.llama_config(**SMALL_LLAMA, quantization_config=quantization)
    ledger = built(tmp_path, config, fam.llama(config, matrix), batch=3, tensor=tensor).ledger
    weights = 2 * (2 * 256 * 256 + 2 * 64 * 256 + 3 * 256 * 512)
    packed = sum(entry.bytes for entry in entries(ledger, kind="dense", rank=0) if entry.dtype == "I32")
    assert packed * tensor == weights // 2
    # per group of 128 inputs: a 16-bit scale and a 4-bit zero point per output
    metadata = weights // 128 * 2 + weights // 128 // 2
    order = 0
    if (
        method == "gptq"
    ):  # an index of 4 bytes per input: whole where outputs are split, a part where inputs are
        order = 2 * 4 * (5 * 256 + (256 + 512) // tensor)
    assert size(ledger, kind="quant") == metadata // tensor + order
    products = [entry for entry in entries(ledger, rank=0, kind="dense") if entry.dtype == "I32"]
    assert sum(entry.flop or 0 for entry in products) * tensor == 2 * 3 * weights
    assert {entry.flop_dtype for entry in products} == {"bf16"}  # such kernels compute in 16 bit
    shapes_at_loading = [row for row in ledger.uncounted if row.name.endswith("weight_shape")]
    assert len(ledger.uncounted) == len(shapes_at_loading) == (7 if method == "compressed-tensors" else 0)


def test_an_activation_order_that_is_off_is_not_read(tmp_path: Path) -> None:
    quantization = {"quant_method": "gptq", "bits": 4, "desc_act": False}
    config = fam.llama_config(**SMALL_LLAMA, quantization_config=quantization)
    ledger = built(tmp_path, config, fam.llama(config, fam.gptq)).ledger
    assert sum(row.bytes for row in ledger.uncounted) == 2 * 4 * (6 * 256 + 512)
    assert {row.why[:20] for row in ledger.uncounted} == {"activation order is "}


def test_packed_weights_whose_number_is_not_told_have_bytes_but_no_arithmetic(tmp_path: Path) -> None:
    config = fam.llama_config(**SMALL_LLAMA, quantization_config={"quant_method": "compressed-tensors"})
    ledger = built(tmp_path, config, fam.llama(config, fam.packed)).ledger
    (attention,) = entries(ledger, phase="attention", kind="dense", name="attention projections")
    assert (attention.flop, attention.flop_dtype) == (None, None)
    assert attention.bytes == 2 * (2 * 256 * 256 + 2 * 64 * 256) // 2
    assert any("arithmetic of 14 packed tensors is not told" in text for text in ledger.workload.assumptions)


def test_mxfp4_experts_in_blocks(tmp_path: Path) -> None:
    """gpt-oss: 32 weights in 16 bytes and a scale of one byte; biases; the router has one, too."""
    config = fam.qwen_config(**SMALL_QWEN, quantization_config={"quant_method": "mxfp4"})
    shapes = {name: form for name, form in fam.qwen(config).items() if ".experts." not in name}
    for layer in range(2):
        at = f"model.layers.{layer}.mlp.experts"
        shapes[f"{at}.gate_up_proj_blocks"] = ("U8", (8, 64, 2, 16))
        shapes[f"{at}.gate_up_proj_scales"] = ("U8", (8, 64, 2))
        shapes[f"{at}.gate_up_proj_bias"] = ("BF16", (8, 64))
        shapes[f"{at}.down_proj_blocks"] = ("U8", (8, 64, 1, 16))
        shapes[f"{at}.down_proj_scales"] = ("U8", (8, 64, 1))
        shapes[f"{at}.down_proj_bias"] = ("BF16", (8, 64))
        shapes[f"model.layers.{layer}.mlp.router.bias"] = ("BF16", (8,))
    ledger = built(tmp_path, config, shapes, batch=10_000, tensor=2, expert=2).ledger
    assert ledger.uncounted == []
    weights = 2 * 8 * (64 * 64 + 64 * 32)
    of_type = {entry.dtype: entry for entry in entries(ledger, kind="routed", rank=0)}
    assert of_type["U8"].bytes == weights // 2 // 2
    assert of_type["U8"].flop == 2 * 10_000 * 2 * weights // 8 // 2
    assert of_type["U8"].flop_dtype == "bf16"
    assert of_type["BF16"].bytes == 2 * 8 * (64 + 64) * 2 // 2
    assert size(ledger, name="scales of routed") == weights // 32 // 2


@pytest.mark.parametrize(
    ("quantization", "flop_dtype"),
    [
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"config_groups": {"g": {"weights": {"num_bits": 8}, "input_activations": None}}}, "bf16"),
        ({"config_groups": {"g": {"input_activations": {"num_bits": 8, "type": "float"}}}}, "fp8"),
        (None, "fp8"),
    ],
)
def test_fp8_weights_compute_in_fp8_unless_only_weights_are_quantized(
    tmp_path: Path, quantization: Any, flop_dtype: str
) -> None:
    config = fam.llama_config(**SMALL_LLAMA, quantization_config=quantization)
    shapes = fam.llama(config, lambda *form: fam.linear(*form, dtype="F8_E4M3"))
    ledger = built(tmp_path, config, shapes).ledger
    assert {
        entry.flop_dtype for entry in entries(ledger, phase="attention", name="attention projections")
    } == {flop_dtype}


@pytest.mark.parametrize("where", ["text_config", "hf_quant_config.json"])
def test_how_a_checkpoint_is_quantized_can_stand_elsewhere(tmp_path: Path, where: str) -> None:
    """In the language model's part of a multimodal config; in ModelOpt's own file."""
    config = fam.llama_config(**SMALL_LLAMA)
    shapes = fam.llama(config, lambda *form: fam.linear(*form, dtype="F8_E4M3"))
    weight_only = {"config_groups": {"g": {"weights": {"num_bits": 8}, "input_activations": None}}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps({"quantization": weight_only}))
    if where == "text_config":
        (tmp_path / "hf_quant_config.json").unlink()
        config |= {"text_config": {"quantization_config": weight_only}}
    ledger = built(tmp_path, config, shapes).ledger
    found = {entry.flop_dtype for entry in entries(ledger, phase="feed-forward") if entry.flop}
    assert found == {"bf16"}


def test_a_dense_model_of_a_family_with_experts_writes_none_of_them(tmp_path: Path) -> None:
    config = fam.llama_config(**SMALL_LLAMA)
    plain = built(tmp_path / "plain", config, fam.llama(config)).ledger
    zeros = config | {"num_local_experts": 0, "num_experts_per_tok": 0}
    assert built(tmp_path / "zeros", zeros, fam.llama(config)).ledger.phase == plain.phase


def test_tied_embeddings_are_read_once_as_rows_and_once_as_the_head(tmp_path: Path) -> None:
    config = fam.llama_config(**SMALL_LLAMA, tie_word_embeddings=True)
    shapes = fam.llama(config)
    ledger = built(tmp_path / "a", config, shapes, batch=5).ledger
    assert size(ledger, phase="embedding") == 5 * 256 * 2
    assert size(ledger, phase="head", kind="dense", name="head") == 1000 * 256 * 2
    assert flop(ledger, phase="head") == 2 * 5 * 1000 * 256
    shapes["lm_head.weight"] = ("BF16", (1000, 256))
    again_tied = built(tmp_path / "b", config, shapes, batch=5).ledger
    assert again_tied.phase == ledger.phase
    assert [row.why for row in again_tied.uncounted] == ["tied: the head reads the embedding table"]
    shapes["lm_head.bias"] = ("BF16", (1000,))
    with_bias = built(tmp_path / "d", config, shapes, batch=5).ledger
    assert size(with_bias, phase="head") == size(ledger, phase="head") + 1000 * 2
    del shapes["lm_head.bias"], config["tie_word_embeddings"]
    told_by_the_tensors = built(tmp_path / "c", config, shapes, batch=5).ledger
    assert told_by_the_tensors.uncounted == []
    assert size(told_by_the_tensors, phase="head") == size(ledger, phase="head")


def test_an_embedding_table_on_every_rank_is_counted_per_rank(tmp_path: Path) -> None:
    config = fam.llama_config(**SMALL_LLAMA)
    whole = built(tmp_path, config, fam.llama(config), batch=6, tensor=2, embedding_split=False).ledger
    assert [size(whole, rank, phase="embedding", kind="replicated") for rank in (0, 1)] == [6 * 256 * 2] * 2
    split = again(tmp_path, batch=6, tensor=2).ledger
    assert [size(split, rank, phase="embedding", kind="dense") for rank in (0, 1)] == [3 * 256 * 2] * 2


def test_a_vocabulary_that_does_not_divide_is_split_as_it_is_padded(tmp_path: Path) -> None:
    config = fam.llama_config(**SMALL_LLAMA | {"vocab_size": 1001})
    ledger = built(tmp_path, config, fam.llama(config), tensor=2).ledger
    heads = [size(ledger, rank, phase="head", kind="dense") for rank in (0, 1)]
    assert heads == [501 * 256 * 2, 500 * 256 * 2]


def test_foreign_tensors_are_listed_and_not_guessed(tmp_path: Path) -> None:
    config = fam.llama_config(**SMALL_LLAMA)
    shapes = fam.llama(config)
    plain = built(tmp_path / "a" / "m", config, shapes)
    shapes |= {
        "model.layers.1.self_attn.q_proj.lora_A.weight": ("BF16", (8, 256)),
        "model.layers.0.mixer.in_proj.weight": ("BF16", (64, 256)),
        "model.layers.1.mixer.in_proj.weight": ("BF16", (64, 256)),
        "model.layers.0.mlp.down_proj.odd": ("F32", (3,)),
        "something": ("F32", ()),
        "model.layers.0.self_attn.rotary_emb.inv_freq": ("F32", (16,)),
        "vision_tower.layers.0.self_attn.q_proj.weight": ("BF16", (4, 4)),
    }
    answer = built(tmp_path / "b" / "m", config, shapes)
    assert answer.ledger.phase == plain.ledger.phase
    why = "no rule knows it"
    assert [row for row in answer.ledger.uncounted if row.why == why] == [
        Uncounted(name="model.layers.*.mixer.in_proj.weight", dtype="BF16", shape=[64, 256], bytes=65536, why=why,
                  tensors=2),
        Uncounted(name="model.layers.0.mlp.down_proj.odd", dtype="F32", shape=[3], bytes=12, why=why),
        Uncounted(name="model.layers.1.self_attn.q_proj.lora_A.weight", dtype="BF16", shape=[8, 256], bytes=4096,
                  why=why),
        Uncounted(name="something", dtype="F32", shape=[], bytes=4, why=why),
    ]  # fmt: skip
    assert len(answer.ledger.uncounted) == 6
    (warning,) = (text for text in answer.warnings if why in text or text.startswith("no rule"))
    assert warning.startswith("no rule knows 5 tensors of 69,648 bytes: listed, not counted")


def test_a_known_name_of_an_unknown_shape_is_listed(tmp_path: Path) -> None:
    config = fam.qwen_config(**SMALL_QWEN)
    shapes = fam.qwen(config) | {"model.layers.0.mlp.shared_expert.up_proj.weight": ("BF16", (4, 4, 4, 4))}
    (row,) = built(tmp_path, config, shapes).ledger.uncounted
    assert row.why == "no rule knows it: named like shared experts, but [4, 4, 4, 4] is no shape of those"


def test_plain_weights_that_are_loaded_narrower(tmp_path: Path) -> None:
    config = fam.llama_config(**SMALL_LLAMA)
    shapes = {name: ("F32", shape) for name, (_, shape) in fam.llama(config).items()}
    stored = built(tmp_path, config, shapes).ledger
    loaded = again(tmp_path, weights_dtype="bf16").ledger
    for kind in ("dense", "replicated"):
        assert size(stored, kind=kind) == 2 * size(loaded, kind=kind)
    assert {entry.dtype for entry in entries(loaded, kind="dense")} == {"BF16"}
    assert any(
        "stored as F32, but the config computes in BF16" in text for text in stored.workload.assumptions
    )
    assert flop(stored) == flop(loaded)


def test_a_plain_checkpoint_quantized_on_loading_keeps_head_embedding_router_norms_and_biases(
    tmp_path: Path,
) -> None:
    config = fam.qwen_config(
        num_hidden_layers=1, hidden_size=256, moe_intermediate_size=128, num_attention_heads=4,
        num_key_value_heads=2, head_dim=64, num_experts=8, num_experts_per_tok=8, vocab_size=500,
    )  # fmt: skip
    built(tmp_path, config, fam.qwen(config, shared=128), batch=4)
    ledger = again(tmp_path, batch=4, weights_dtype="fp8").ledger
    wide = 2 * (500 * 256 + 4 * 256 + 3 * 256 + (256 + 128 + 128) + 8 * 256 + 256)
    narrow = 256 * (256 + 128 + 128 + 256) + 3 * 256 * 128 + 8 * 3 * 256 * 128
    held = [entry for kind in ("dense", "routed") for entry in entries(ledger, kind=kind)]
    assert sum(entry.bytes for entry in held if entry.dtype == "F8_E4M3") == narrow
    assert sum(entry.bytes for entry in held if entry.dtype == "BF16") == wide
    assert {entry.flop_dtype for entry in entries(ledger, phase="head") if entry.flop} == {"bf16"}
    assert any(
        "embedding, head, routers, norms and biases stay" in text for text in ledger.workload.assumptions
    )


def test_activations_are_inputs_and_outputs_of_products(tmp_path: Path) -> None:
    config = fam.llama_config(**SMALL_LLAMA)
    ledger = built(tmp_path, config, fam.llama(config), batch=3, tensor=2, activations=True).ledger
    # q, k and v share an input of 256; outputs 128, 32 and 32 on each rank; o: 128 in, 256 out
    attention = 2 * 3 * (256 + 128 + 32 + 32 + 128 + 256) * 2
    # gate and up share one of 256, 256 out each; down: 256 in, 256 out
    feed_forward = 2 * 3 * (256 + 256 + 256 + 256 + 256) * 2
    head = 3 * (256 + 500) * 2
    assert size(ledger, phase="attention", kind="activations") == attention
    assert size(ledger, phase="feed-forward", kind="activations") == feed_forward
    assert size(ledger, phase="head", kind="activations") == head


def test_active_parameters_times_mean_bytes_is_no_method_of_this_project() -> None:
    root = Path(__file__).resolve().parents[2]
    words = "active " + "parameters"
    for folder in ("analyzer", "docs"):
        for path in (root / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".toml"):
                assert words not in path.read_text(encoding="utf-8").lower(), path
