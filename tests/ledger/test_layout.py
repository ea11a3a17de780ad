"""Ranks and what they hold: literal layouts, refusals, and sums over ranks for any layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.errors import TraceError, UsageError
from analyzer.ledger.layout import Parallel, parallel
from tests.ledger import families as fam
from tests.ledger.sums import again, built, entries, flop, size
from tests.ledger.test_families import SMALL_DEEPSEEK, SMALL_LLAMA, SMALL_QWEN


def layout(tensor: int = 1, expert: int = 1, pipeline: int = 1, data: int = 1, layers: int = 8) -> Parallel:
    return parallel(
        tensor=tensor, expert=expert, pipeline=pipeline, data=data, layers=layers, stage_layers=None
    )


def test_ranks_count_tensor_then_stages_then_replicas() -> None:
    found = layout(tensor=2, pipeline=3, data=2, layers=6)
    assert found.ranks == 12
    assert [[found.rank(stage, place) for place in range(4)] for stage in range(3)] == [
        [0, 1, 6, 7],
        [2, 3, 8, 9],
        [4, 5, 10, 11],
    ]
    assert [found.stage_of(layer) for layer in range(6)] == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("tensor", "expert", "data", "places", "copies", "replicas"),
    [
        (8, 8, 1, [(rank, 0) for rank in range(8)], 1, 1),
        (4, 1, 1, [(0, 0), (0, 1), (0, 2), (0, 3)], 1, 1),
        (4, 2, 1, [(0, 0), (0, 1), (1, 0), (1, 1)], 1, 1),
        (2, 4, 2, [(0, 0), (1, 0), (2, 0), (3, 0)], 1, 2),  # experts over both replicas
        (2, 2, 2, [(0, 0), (1, 0), (0, 0), (1, 0)], 2, 1),  # each replica has all experts
        (1, 2, 4, [(0, 0), (1, 0), (0, 0), (1, 0)], 2, 2),
    ],
)
def test_experts_lie_in_rank_order(
    tensor: int, expert: int, data: int, places: list[tuple[int, int]], copies: int, replicas: int
) -> None:
    found = layout(tensor=tensor, expert=expert, data=data)
    assert [found.expert_place(place) for place in range(found.ranks_per_stage)] == places
    assert (found.expert_copies, found.replicas_per_expert_group) == (copies, replicas)


@pytest.mark.parametrize(
    ("sizes", "option"),
    [
        ({"tensor": 0}, "--tensor"),
        ({"data": -1}, "--data"),
        ({"tensor": 4, "expert": 3}, "--expert"),
        ({"tensor": 4, "expert": 6, "data": 2}, "--expert"),
        ({"tensor": 4, "expert": 12, "data": 2}, "--expert"),
        ({"tensor": 4, "expert": 8, "data": 1}, "--expert"),
        ({"pipeline": 3}, "--pipeline"),
    ],
)
def test_layouts_that_do_not_divide_are_refused(sizes: dict[str, int], option: str) -> None:
    with pytest.raises(UsageError) as caught:
        layout(**sizes)
    assert caught.value.path == option


@pytest.mark.parametrize("stages", [(4, 3), (8,), (9, -1), (3, 3, 2)])
def test_stages_must_hold_all_layers(stages: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="must name 2 stages with 8 layers in all"):
        parallel(tensor=1, expert=1, pipeline=2, data=1, layers=8, stage_layers=stages)


def test_pipeline_stages_have_their_layers_and_the_ends_of_the_model(tmp_path: Path) -> None:
    config = fam.llama_config(**SMALL_LLAMA | {"num_hidden_layers": 3})
    ledger = built(
        tmp_path, config, fam.llama(config), batch=4, context=10, tensor=2, pipeline=2, stage_layers=(2, 1)
    ).ledger
    assert [phase.name for phase in ledger.phase] == [
        "stage 0 embedding", "stage 0 attention", "stage 0 feed-forward",
        "stage 1 attention", "stage 1 feed-forward", "stage 1 head",
    ]  # fmt: skip
    ranks = [sorted({rank for entry in phase.entry for rank in entry.ranks}) for phase in ledger.phase]
    assert ranks == [[0, 1]] * 3 + [[2, 3]] * 3
    one_layer = 3 * 256 * 512 * 2 // 2
    assert size(ledger, 0, phase="feed-forward", kind="dense") == 2 * one_layer
    assert size(ledger, 2, phase="feed-forward", kind="dense") == one_layer
    assert size(ledger, 0, kind="kv-cache", name="keys and values read") == 2 * 4 * 10 * 2 * 32 * 2


def test_replicas_share_the_batch_and_read_their_own_weights(tmp_path: Path) -> None:
    config = fam.qwen_config(**SMALL_QWEN)
    one = built(tmp_path, config, fam.qwen(config), batch=4, context=5, tensor=2).ledger
    two = again(tmp_path, batch=8, context=5, tensor=2, data=2).ledger
    for rank in range(4):
        assert size(two, rank) == size(one, rank % 2)
        assert flop(two, rank) == flop(one, rank % 2)
    assert two.workload.tokens_per_step == 8


def test_experts_over_replicas_see_the_tokens_of_all(tmp_path: Path) -> None:
    """Two replicas of 4 tokens each: each expert can be chosen by 8 tokens, and lies on one of the 4 ranks."""
    config = fam.qwen_config(**SMALL_QWEN)
    ledger = built(tmp_path, config, fam.qwen(config), batch=8, tensor=2, data=2, expert=4).ledger
    touched = 2 * (1 - (1 - 2 / 8) ** 8)
    for rank in range(4):
        assert size(ledger, rank, kind="routed") == pytest.approx(2 * touched * 3 * 64 * 32 * 2, abs=1)
        assert flop(ledger, rank, kind="routed") == 2 * (8 * 2 // 4) * 2 * 3 * 64 * 32


@pytest.mark.parametrize(
    ("changes", "request_", "place", "why"),
    [
        ({}, {"tensor": 16}, "--tensor", "8 attention heads"),
        ({}, {"tensor": 3}, "--tensor", "8 attention heads"),
        (
            {"num_key_value_heads": 4, "num_attention_heads": 12},
            {"tensor": 3},
            "--tensor",
            "4 key/value heads",
        ),
        ({"intermediate_size": 100}, {"tensor": 8}, "tensor model.layers.0.mlp.", "does not divide by 8"),
        ({}, {"expert": 2, "tensor": 2}, "--expert", "no routed experts"),
        ({}, {"routing": "counts.csv"}, "--routing", "no routed experts"),
        ({}, {"data": 2, "batch": 3}, "--batch", "do not share evenly"),
        ({}, {"batch": 0}, "--batch", "is 0"),
        ({}, {"context": -1}, "--context", "is -1"),
        ({}, {"cache_dtype": "fp7"}, "--cache-dtype", "'fp7'"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(
    tmp_path: Path, changes: dict[str, Any], request_: dict[str, Any], place: str, why: str
) -> None:
    config = fam.llama_config(**SMALL_LLAMA | changes | {"head_dim": 32})
    with pytest.raises(UsageError) as caught:
        built(tmp_path, config, fam.llama(config), **request_)
    assert caught.value.path.startswith(place)
    assert why in caught.value.why


def test_experts_must_divide(tmp_path: Path) -> None:
    config = fam.qwen_config(**SMALL_QWEN | {"num_experts": 6})
    with pytest.raises(UsageError, match="is 4, which does not divide 6 experts"):
        built(tmp_path, config, fam.qwen(config), tensor=4, expert=4)


@pytest.mark.parametrize(
    ("changes", "where", "why"),
    [
        ({"num_hidden_layers": 3}, "num_hidden_layers", "no known tensor belongs to layer 2"),
        (
            {"num_experts": 16},
            "tensors model.layers.0.mlp.experts.*.down_proj.weight",
            "has 8 of the 16 experts",
        ),
        ({"num_experts": None}, "num_experts", "is missing"),
        ({"num_experts_per_tok": None}, "num_experts_per_tok", "is missing"),
        ({"hidden_size": None}, "hidden_size", "is missing"),
        ({"vocab_size": "many"}, "vocab_size", "'many'"),
        ({"num_attention_heads": True}, "num_attention_heads", "True"),
        ({"num_key_value_heads": 3}, "num_key_value_heads", "does not divide 8 heads"),
        (
            {"head_dim": 32},
            "num_attention_heads, num_key_value_heads, head_dim",
            "k_proj.weight has 64 outputs",
        ),
        ({"torch_dtype": "float7"}, "torch_dtype", "'float7'"),
        (
            {"quantization_config": {"quant_method": "bitsandbytes"}},
            "quantization_config",
            "flattens matrices",
        ),
    ],
)
def test_a_config_that_does_not_belong_to_the_tensors_is_refused(
    tmp_path: Path, changes: dict[str, Any], where: str, why: str
) -> None:
    config = fam.qwen_config(**SMALL_QWEN)
    with pytest.raises(TraceError) as caught:
        built(tmp_path, config | changes, fam.qwen(config))
    assert caught.value.where == where
    assert why in caught.value.why


FAMILIES = [
    (fam.llama_config(**SMALL_LLAMA), fam.llama),
    (fam.qwen_config(**SMALL_QWEN), fam.qwen),
    (fam.deepseek_config(**SMALL_DEEPSEEK | {"num_nextn_predict_layers": 0}), fam.deepseek),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [
        fam.write_headers(tmp_path_factory.mktemp("family"), config, shapes_of(config))
        for config, shapes_of in FAMILIES
    ]


@settings(max_examples=40)
@given(
    family=st.integers(0, 2),
    tensor=st.sampled_from([1, 2, 4]),
    data=st.sampled_from([1, 2]),
    share=st.sampled_from([0, 1, 2, 3]),
    batch=st.integers(1, 40),
)
def test_shares_of_the_ranks_sum_to_the_whole(
    folders: list[Path], family: int, tensor: int, data: int, share: int, batch: int
) -> None:
    """Split tensors of one replica's ranks sum to what one rank alone reads; replicated ones are whole on each."""
    expert = 1 if family == 0 else min(2**share, tensor * data)
    replicas = max(1, expert // tensor)
    one = again(folders[family], batch=batch * replicas).ledger
    many = again(folders[family], batch=batch * data, tensor=tensor, data=data, expert=expert).ledger
    alone = {kind: size(one, kind=kind) for kind in ("dense", "routed", "quant")}
    ranks = tensor * data
    norms = size(many, kind="replicated")
    split = sum(size(many, rank, kind="dense") for rank in range(ranks))
    rows = sum(size(one, phase="embedding") for _ in range(data)) / replicas
    if tensor == 1:
        assert split == data * (alone["dense"] - size(one, phase="embedding")) + rows
    elif family != 0:  # the Llama-like one replicates key/value heads on 4 ranks
        assert split + data * norms == data * (alone["dense"] - size(one, phase="embedding")) + rows
    routed = sum(size(many, rank, kind="routed") for rank in range(ranks))
    copies = data // replicas
    assert routed == pytest.approx(copies * alone["routed"], abs=ranks)
    products = sum(flop(many, rank, kind="routed") for rank in range(ranks))
    assert products == pytest.approx(copies * flop(one, kind="routed"), abs=ranks)


@settings(max_examples=30)
@given(
    family=st.integers(0, 2),
    batch=st.integers(1, 500),
    more=st.integers(1, 500),
    context=st.integers(0, 5000),
    longer=st.integers(0, 5000),
    tensor=st.sampled_from([1, 4]),
)
def test_more_sequences_or_longer_ones_never_move_fewer_bytes(
    folders: list[Path], family: int, batch: int, more: int, context: int, longer: int, tensor: int
) -> None:
    expert = 1 if family == 0 else tensor
    layout_ = {"tensor": tensor, "expert": expert, "activations": True}
    less = again(folders[family], batch=batch, context=context, **layout_).ledger
    greater = again(folders[family], batch=batch + more, context=context + longer, **layout_).ledger
    for rank in range(tensor):
        assert size(less, rank) <= size(greater, rank)
        assert flop(less, rank) <= flop(greater, rank)
    dense = [size(ledger, kind="dense", phase="feed-forward") for ledger in (less, greater)]
    assert dense[0] == dense[1]  # weights are read once, whatever the batch


@settings(max_examples=25)
@given(
    family=st.integers(0, 2),
    foreign=st.dictionaries(
        st.text("abc.#0123456789_", min_size=1, max_size=20),
        st.tuples(
            st.sampled_from(["BF16", "F32", "I32"]), st.lists(st.integers(0, 5), max_size=3).map(tuple)
        ),
        max_size=5,
    ),
)
def test_every_tensor_is_counted_or_listed_once(
    tmp_path_factory: pytest.TempPathFactory, family: int, foreign: fam.Shapes
) -> None:
    config, shapes_of = FAMILIES[family]
    shapes = shapes_of(config) | foreign
    ledger = built(tmp_path_factory.mktemp("foreign"), config, shapes, batch=10**6).ledger
    listed = sum(row.tensors for row in ledger.uncounted)
    counted = sum(entry.tensors or 0 for entry in entries(ledger))
    assert counted + listed == len(shapes)
    assert sum(row.bytes for row in ledger.uncounted) == fam.stored_bytes(foreign)
