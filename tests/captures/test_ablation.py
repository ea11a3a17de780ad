"""Records that are missing make a verdict weaker, never the opposite of what it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer import pipeline
from analyzer.diagnosis import Diagnosis
from tests.captures.ablate import EVENTS, RANGES, SYNC, without
from tests.captures.results import analysis_of
from tests.shared import needs_shared

pytestmark = needs_shared

SAME_STEPS = [
    (name, what)
    for name, kinds in {
        "alpa/jax_mem.sqlite": (SYNC, EVENTS),
        "alpa/nccl_init_nokernel.sqlite": (SYNC, RANGES),
        "astra-megatron-tp8": (EVENTS,),
        "cs336-zx/gpt2_2.7B_cudagraph.sqlite": (SYNC,),
        "cs336-zx/gpt2_2.7B_eager.sqlite": (SYNC,),
        "cs336-zx/gpt2_2.7B_nvtx.sqlite": (SYNC, RANGES, EVENTS),
        "fuser/nvfuser_h100x8.sqlite": (SYNC, RANGES),
        "fuser/nvfuser_h200.sqlite": (SYNC, RANGES),
        "hta-cp/alexnet.json.gz": (SYNC, RANGES, EVENTS),
        "hta-cp/simple_add_input.json.gz": (SYNC, RANGES),
        "hta-nccl-meta/nccl_data.json.gz": (EVENTS,),
        "kineto-tb/resnet50_nw4.pt.trace.json.gz": (EVENTS,),
        "mirage/sm100_moe_b200.sqlite": (SYNC, EVENTS),
        "mordred/old_nometa.sqlite": (SYNC,),
        "mordred/old_nometa_b.sqlite": (SYNC,),
        "nsysai/h100_2gpu_1s.sqlite": (SYNC, RANGES),
        "nsysai/mfu_2gpu_after.sqlite": (SYNC, RANGES),
        "nsysai/mfu_2gpu_before.sqlite": (SYNC, RANGES),
        "nsysai/mock.sqlite": (SYNC,),
        "pipit/cloverleaf_cuda.sqlite": (SYNC,),
        "pipit/saxpy-mpi-cuda_perlmutter0.sqlite": (RANGES,),
        "tracelens-vllm/vllm_decode_capture.pt.trace.json.gz": (RANGES,),
    }.items()
    for what in kinds
]
OTHER_STEPS = [
    "astra-megatron-tp8",
    "hta-diff/trace_diff_test.json.gz",
    "hta-nccl-meta/nccl_data.json.gz",
    "odd/cpu_only_gloo_rank34.pt.trace.json.gz",
    "odd/mi250_rocm62.json.gz",
    "odd/rank_non_gpu.json.gz",
    "torchrec-a2a",
    "torchrec-resnet18",
    "tracelens-ddp/mi300_resnet_actckpt_rank0of8.json.gz",
    "tracelens-qwen/h100_qwen1.5_0.5b.json.gz",
    "tracelens-qwen/mi300_qwen1.5_0.5b.json.gz",
    "tracelens-sglang/sglang_qwen3_8b_decode.json.gz",
    "tracelens-sglang/sglang_qwen3_8b_prefilldecode.json.gz",
    "tracelens-vllm/vllm_decode_fullgraph.json.gz",
    "tracelens-vllm/vllm_piecewise.json.gz",
]
"""Captures whose steps were marked by the ranges that are taken out."""

OPPOSITE = {"supported": "contradicted", "contradicted": "supported"}


def ablated(name: str, what: str, folder: Path, *, drop: bool = False) -> Diagnosis:
    paths, removed = without(name, what, folder, drop=drop)
    assert removed > 0
    return pipeline.analyze(pipeline.read(paths)).diagnosis


def verdicts(diagnosis: Diagnosis, phase: str) -> dict[str, str]:
    return {row.id: row.verdict for row in diagnosis.hypotheses if row.phase == phase}


def flipped(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return [id_ for id_ in before if after[id_] == OPPOSITE.get(before[id_])]


@pytest.mark.parametrize(("name", "what"), SAME_STEPS)
def test_no_verdict_turns_into_its_opposite(name: str, what: str, tmp_path: Path) -> None:
    whole = analysis_of(name).diagnosis
    less = ablated(name, what, tmp_path)
    assert less.steps.rule == whole.steps.rule
    assert less.steps.phases == whole.steps.phases
    for phase in whole.steps.phases:
        assert flipped(verdicts(whole, phase), verdicts(less, phase)) == []


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("alpa/jax_mem.sqlite", SYNC),
        ("cs336-zx/gpt2_2.7B_nvtx.sqlite", RANGES),
        ("cs336-zx/gpt2_2.7B_nvtx.sqlite", EVENTS),
        ("mirage/sm100_moe_b200.sqlite", SYNC),
        ("mordred/old_nometa.sqlite", SYNC),
    ],
)
def test_nor_where_the_table_is_absent(name: str, what: str, tmp_path: Path) -> None:
    whole = analysis_of(name).diagnosis
    less = ablated(name, what, tmp_path, drop=True)
    assert len(less.unmeasured) > len(whole.unmeasured)
    assert less.steps.phases == whole.steps.phases
    for phase in whole.steps.phases:
        assert flipped(verdicts(whole, phase), verdicts(less, phase)) == []


@pytest.mark.parametrize("name", OTHER_STEPS)
def test_nor_where_the_marks_of_the_steps_are_gone(name: str, tmp_path: Path) -> None:
    whole = analysis_of(name).diagnosis
    less = ablated(name, RANGES, tmp_path)
    assert less.steps.rule != whole.steps.rule
    # other steps, other phases: the longest phase of each speaks
    before, after = verdicts(whole, whole.steps.phases[0]), verdicts(less, less.steps.phases[0])
    assert flipped(before, after) == []


def test_a_flip_is_seen() -> None:
    assert flipped(
        {"copies": "supported", "a": "inconclusive"}, {"copies": "contradicted", "a": "supported"}
    ) == ["copies"]
