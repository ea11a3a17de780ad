"""Whatever stands in config.json or in names, the answer is a ledger or an error that names its place."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.errors import TraceError, UsageError
from analyzer.ledger import files
from analyzer.ledger.names import LAYER_RULES, PARTS
from tests.ledger import families as fam
from tests.ledger.sums import again, built
from tests.ledger.test_families import SMALL_DEEPSEEK, SMALL_QWEN
from tests.ledger.test_layout import FAMILIES

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 300) | st.just(10**30) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = [
    *sorted({key for config, _ in FAMILIES for key in config}),
    "text_config", "layer_types", "sliding_window", "use_sliding_window", "max_window_layers", "dtype",
    "sliding_window_pattern", "attention_chunk_size", "no_rope_layers", "quantization_config", "index_topk",
    "index_head_dim", "linear_num_value_heads", "mamba_ssm_dtype", "compression_config",
]  # fmt: skip


def taken(folder: Path, config: dict[str, Any], shapes: fam.Shapes, **request: Any) -> bool:
    """Whether there is a ledger; it can be written and read."""
    try:
        ledger = built(folder, config, shapes, **request).ledger
    except (TraceError, UsageError) as error:
        assert error.path
        assert error.why
        assert error.hint
        return False
    files.write(ledger, folder / "ledger.toml")
    assert files.read(folder / "ledger.toml") == ledger
    return True


@settings(max_examples=150)
@given(st.integers(0, 2), st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3), st.integers(1, 4))
def test_any_config_gives_a_ledger_or_names_its_fault(
    tmp_path_factory: pytest.TempPathFactory, family: int, changes: dict[str, Any], tensor: int
) -> None:
    config, shapes_of = FAMILIES[family]
    changed = json.loads(json.dumps(config | changes).replace("Infinity", "1e999"))
    taken(tmp_path_factory.mktemp("config"), changed, shapes_of(config), batch=2, context=3, tensor=tensor)


MODULES = [
    *sorted({rule.pattern.replace("\\.", ".") for rule in LAYER_RULES if not set("(|?") & set(rule.pattern)}),
    "self_attn.q_proj", "self_attn.k_proj", "mlp.down_proj", "mlp.experts.0.gate_proj", "mlp.experts.gate_up_proj",
    "mlp.shared_experts.up_proj", "linear_attn.conv1d", "mlp.gate",
]  # fmt: skip


@settings(max_examples=150)
@given(
    st.integers(0, 2),
    st.dictionaries(
        st.builds(
            "model.layers.{}.{}{}".format,
            st.sampled_from([0, 1, 1, 99, "9" * 30]),
            st.sampled_from(MODULES),
            st.sampled_from(["_blocks", "_scales", "_bias", "", *(f".{part}" for part in PARTS if part)]),
        ),
        st.tuples(
            st.sampled_from(["BF16", "F32", "F8_E4M3", "I32", "U8"]),
            st.lists(st.sampled_from([0, 1, 2, 3, 8, 64, 256]), max_size=4).map(tuple),
        ),
        max_size=4,
    ),
    st.sampled_from([1, 2]),
)
def test_any_tensor_with_a_known_name_is_counted_listed_or_refused(
    tmp_path_factory: pytest.TempPathFactory, family: int, more: fam.Shapes, tensor: int
) -> None:
    config, shapes_of = FAMILIES[family]
    taken(
        tmp_path_factory.mktemp("names"), config, shapes_of(config) | more, batch=2, context=3, tensor=tensor
    )


def test_a_model_of_which_no_rule_knows_a_layer_is_refused(tmp_path: Path) -> None:
    shapes: fam.Shapes = {"transformer.h.0.attn.c_attn.weight": ("BF16", (64, 192))}
    with pytest.raises(
        TraceError, match=r"no rule knows its layers: its tensors are named like transformer\.h\.0"
    ):
        built(tmp_path, fam.qwen_config(**SMALL_QWEN), shapes)


def test_a_step_beyond_what_a_file_holds_is_refused(tmp_path: Path) -> None:
    config = fam.qwen_config(**SMALL_QWEN)
    with pytest.raises(UsageError, match=r"--batch, --context .*the file holds no more than"):
        built(tmp_path, config, fam.qwen(config), batch=10**12, context=10**12)


def test_ninety_thousand_tensors_take_seconds(tmp_path: Path) -> None:
    """As many as DeepSeek-V3 has, in small: CPU time, with room for a slow machine."""
    config = fam.deepseek_config(**SMALL_DEEPSEEK | {"num_hidden_layers": 61, "n_routed_experts": 256})
    shapes = fam.deepseek(config)
    assert len(shapes) > 90_000
    fam.write_headers(tmp_path, config, shapes)
    before = time.process_time()
    again(tmp_path, tensor=8, expert=8)
    assert time.process_time() - before < 20
