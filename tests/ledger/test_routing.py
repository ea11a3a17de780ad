"""Tokens per expert: the uniform expectation, and files of measured counts."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import TraceError, UsageError
from analyzer.ledger.routing import Load, measured_routing, uniform_routing
from tests.ledger import families as fam
from tests.ledger.sums import again, built, entries, flop, size
from tests.ledger.test_families import SMALL_QWEN

CONFIG = fam.qwen_config(**SMALL_QWEN)  # layers 0 and 1, 8 experts, top-k 2
EXPERT = 3 * 64 * 32 * 2  # bytes of one


@pytest.mark.parametrize(
    ("experts", "top_k", "tokens", "distinct"),
    [(256, 8, 1, 8), (256, 8, 2, 15.75), (4, 2, 2, 3), (4, 4, 1, 4), (128, 8, 10**6, 128)],
)
def test_the_uniform_expectation(experts: int, top_k: int, tokens: int, distinct: float) -> None:
    routing = uniform_routing(experts, top_k, tokens)
    assert experts * routing.load(0, 0).touched == pytest.approx(distinct, rel=1e-12)
    assert experts * routing.load(3, 1).tokens == pytest.approx(tokens * top_k)
    assert routing.basis == "model"


def test_the_expectation_is_the_mean_of_uniform_choices() -> None:
    draw = random.Random(7)
    steps = [len({expert for _ in range(6) for expert in draw.sample(range(16), 3)}) for _ in range(20_000)]
    expected = 16 * uniform_routing(16, 3, 6).load(0, 0).touched
    assert sum(steps) / len(steps) == pytest.approx(expected, abs=0.05)


def test_choosing_among_groups_first_does_not_change_it() -> None:
    """Two of four groups of four, then three of their eight: each expert is as likely as without groups."""
    draw = random.Random(8)

    def token() -> list[int]:
        groups = draw.sample(range(4), 2)
        return draw.sample([4 * group + place for group in groups for place in range(4)], 3)

    steps = [len({expert for _ in range(6) for expert in token()}) for _ in range(20_000)]
    expected = 16 * uniform_routing(16, 3, 6).load(0, 0).touched
    assert sum(steps) / len(steps) == pytest.approx(expected, abs=0.05)


@given(st.integers(1, 64), st.integers(1, 8), st.lists(st.floats(0.01, 1), min_size=1, max_size=16))
def test_preferred_experts_touch_fewer(tokens: int, top_k: int, weights: list[float]) -> None:
    """The uniform figure is the most: the union is concave in each expert's share of the tokens."""
    experts = len(weights)
    top_k = min(top_k, experts)
    shares = [min(1.0, top_k * weight / sum(weights)) for weight in weights]
    union = sum(1 - (1 - share) ** tokens for share in shares)
    assert union <= experts * uniform_routing(experts, top_k, tokens).load(0, 0).touched + 1e-9


def csv_of(rows: list[tuple[Any, ...]], header: str = "step,layer,expert,tokens") -> str:
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


# 4 tokens, top-k 2: 8 choices per layer and step
STEPS = csv_of([
    (7, 0, 0, 4), (7, 0, 5, 4), (7, 1, 1, 2), (7, 1, 2, 2), (7, 1, 7, 4),
    (8, 0, 0, 1), (8, 0, 1, 3), (8, 0, 6, 4), (8, 1, 0, 0), (8, 1, 3, 4), (8, 1, 4, 4),
])  # fmt: skip


def with_file(folder: Path, text: str, **request: Any) -> Any:
    (folder / "counts").write_text(text)
    return again(folder, **{"batch": 4, "routing": folder / "counts", "tensor": 2, "expert": 2} | request)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fam.write_headers(tmp_path / "m", CONFIG, fam.qwen(CONFIG))


def test_counted_steps_tell_the_distinct_experts_of_each_rank(folder: Path) -> None:
    ledger = with_file(folder, STEPS).ledger
    # rank 0 (experts 0 to 3): step 7 has {0} and {1, 2}, step 8 {0, 1} and {3}: 6 in two steps
    # rank 1 (experts 4 to 7): step 7 has {5} and {7}, step 8 {6} and {4}: 4 in two steps
    assert [size(ledger, rank, kind="routed") for rank in (0, 1)] == [6 * EXPERT // 2, 4 * EXPERT // 2]
    # tokens: rank 0 has 4 + 4 and 4 + 4 in two steps, rank 1 the same
    assert [flop(ledger, rank, kind="routed") for rank in (0, 1)] == [8 * EXPERT] * 2
    routed = entries(ledger, kind="routed")
    assert {(entry.basis, entry.source) for entry in routed} == {
        ("measured", "checkpoint headers; counts: 2 steps")
    }


def test_json_of_steps_says_the_same(folder: Path) -> None:
    document = {
        "steps": [
            {"0": [4, 0, 0, 0, 0, 4, 0, 0], "1": [0, 2, 2, 0, 0, 0, 0, 4]},
            {"0": [1, 3, 0, 0, 0, 0, 4, 0], "1": [0, 0, 0, 4, 4, 0, 0, 0]},
        ]
    }
    assert with_file(folder, json.dumps(document)).ledger.phase == with_file(folder, STEPS).ledger.phase


def test_means_leave_the_distinct_experts_a_model(folder: Path) -> None:
    means = csv_of(
        [(layer, expert, 1.0) for layer in (0, 1) for expert in range(8)], "layer,expert,mean_tokens"
    )
    ledger = with_file(folder, means).ledger
    uniform = again(folder, batch=4, tensor=2, expert=2).ledger
    assert [size(ledger, rank, kind="routed") for rank in (0, 1)] == [
        size(uniform, rank, kind="routed") for rank in (0, 1)
    ]
    assert {entry.basis for entry in entries(ledger, kind="routed")} == {"model"}
    skewed = json.dumps({"mean_tokens": {str(layer): [4, 2, 1, 0.5, 0.5, 0, 0, 0] for layer in (0, 1)}})
    found = measured_routing(_written(folder, skewed), [0, 1], 8, 2, 4)
    assert found.load(0, 0) == Load(1.0, 4)
    assert found.load(1, 1) == Load(1 - 0.5**4, 2)
    assert found.load(1, 7) == Load(0.0, 0)


def _written(folder: Path, text: str) -> Path:
    path = folder / "counts"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ("", "line 1", "the first line must be step,layer,expert,tokens"),
        ("a,b\n", "line 1", "the first line must be"),
        ("step,layer,expert,tokens\n", "", "holds no counts"),
        (STEPS + "9,0,0\n", "line 13", "another number of fields"),
        (STEPS + "9,x,0,1\n", "line 13", "'x' is no number of a layer"),
        (STEPS + "9,0,0,1.5\n", "line 13", "'1.5' is no whole number"),
        (STEPS + "9,0,0,-1\n", "line 13", "-1 is no number of tokens"),
        (STEPS + "8,0,0,1\n", "line 13", "counts expert 0 of layer 0 again"),
        (STEPS + "9,0,0,8\n", "step 9", "has no counts of layer 1"),
        (STEPS.replace("8,0,6,4", "8,0,6,5"), "step 8, layer 0", "sum to 9; top-k times the tokens of a step are 8"),
        (STEPS.replace("8,0,6,4", "8,0,8,4"), "step 8, layer 0", "has expert 8; the model has 0 to 7"),
        (STEPS + "8,5,0,8\n", "step 8", "has counts of layer 5, which has no routed experts"),
        ('{"steps": []}', "", "needs either steps (not empty) or mean_tokens"),
        ('{"steps": [], "more": 1}', "", "unknown field"),
        ('{"steps": [{"0": [1.5]}]}', "", "Expected `int`"),
        ('{"mean_tokens": {"zero": [1]}}', "step 1", "'zero' is no number"),
        ('{"mean_tokens": {"0": [-1]}}', "step 1, layer 0, expert 0", "-1.0 is no number of tokens"),
        ("layer,expert,mean_tokens\n0,0,nan\n", "line 2", "nan is no number of tokens"),
    ],
)  # fmt: skip
def test_files_that_do_not_fit_are_refused(folder: Path, text: str, where: str, why: str) -> None:
    with pytest.raises(TraceError) as caught:
        with_file(folder, text)
    assert caught.value.where == where
    assert why in caught.value.why


def test_counts_of_replicas_that_hold_all_experts_are_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="do not tell which replica's experts were touched"):
        with_file(folder, STEPS, data=2, batch=4)
    with pytest.raises(TraceError, match="No such file"):
        again(folder, batch=4, routing=folder / "absent.csv")


@given(st.data())
def test_measured_bytes_are_those_of_the_experts_that_were_touched(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Any steps: bytes of all ranks together are the mean over steps of the distinct experts, layer by layer."""
    tokens = data.draw(st.integers(1, 5))
    steps = data.draw(st.integers(1, 3))
    expert = data.draw(st.sampled_from([1, 2, 4]))
    chosen = {
        (step, layer): [
            choice
            for _ in range(tokens)
            for choice in data.draw(st.sampled_from([(0, 1), (2, 7), (0, 5), (3, 4)]))
        ]
        for step in range(steps)
        for layer in range(2)
    }
    rows = [
        (step, layer, number, picks.count(number))
        for (step, layer), picks in chosen.items()
        for number in set(picks)
    ]
    folder = tmp_path_factory.mktemp("measured")
    built(folder, CONFIG, fam.qwen(CONFIG))
    ledger = with_file(folder, csv_of(rows), batch=tokens, tensor=4, expert=expert).ledger
    distinct = sum(len(set(picks)) for picks in chosen.values())
    total = sum(size(ledger, rank, kind="routed") for rank in range(4))
    assert total == pytest.approx(distinct * EXPERT / steps, abs=4)
