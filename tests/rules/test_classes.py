"""What the built-in rules say of kernel names: tables of names, both spellings, and the traps."""

from __future__ import annotations

import time

import pytest

from analyzer.kernel_names import base_name, full_name
from analyzer.rules import OTHER, builtin_rules
from tests.rules.names import names

RULES = builtin_rules()
KNOWN, HELD_OUT = names("kernel_names.txt"), names("held_out_names.txt")
SPELLINGS = names("spellings.txt")
CUTLASS = (
    "void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x128_32x5_tn_align8>(T1::Params)"
)
DISTRIBUTION = "void at::native::distribution_elementwise_grid_stride_kernel<float, 4, normal_kernel>(x)"


@pytest.mark.parametrize(("name", "class_"), [*KNOWN, *HELD_OUT])
def test_names(name: str, class_: str) -> None:
    assert RULES.kernel_class(name) == class_


def test_the_tables_hold_what_they_promise() -> None:
    assert len({name for name, _ in KNOWN}) > 450
    assert len({name for name, _ in HELD_OUT}) == 151
    assert not {name for name, _ in KNOWN} & {name for name, _ in HELD_OUT}


@pytest.mark.parametrize(("nsys", "kineto"), [*zip(SPELLINGS[::2], SPELLINGS[1::2], strict=True)])
def test_one_kernel_in_two_spellings(nsys: tuple[str, str], kineto: tuple[str, str]) -> None:
    (one, class_), (other, _) = nsys, kineto
    assert RULES.kernel_class(one) == RULES.kernel_class(other) == class_
    assert base_name(one) == base_name(other)


@pytest.mark.parametrize(
    ("name", "class_"),
    [
        # an epilogue's name inside a GEMM's or a convolution's
        (CUTLASS, "gemm"),
        ("volta_scudnn_128x64_relu_interior_nn_v1", "conv"),
        # combine: split attention, expert parallelism, tokens
        ("flash_fwd_mla_combine_kernel", "attention.combine"),
        ("void deep_ep::legacy::intranode::combine<__nv_bfloat16, 8>(x)", "collective.ep"),
        ("_combine_sampled_and_draft_tokens_kernel", "spec_decode"),
        # dispatch
        ("groupnorm_kernel_dispatch_512", "norm"),
        ("void deep_ep::internode::dispatch<false, 8>(x)", "collective.ep"),
        # reduce
        ("void cublasLt::splitKreduce_kernel<32, 16, int>(x)", "gemm.splitk"),
        ("moe_sum_reduce_kernel", "moe.permute"),
        ("_ZN5aiter16kn_mla_reduce_v1I4TestE", "attention.combine"),
        ("void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float>(x)", "loss"),
        ("void vllm::cross_device_reduce_2stage<__half, 8>(x)", "collective"),
        ("void minimax_reduce_qk_rms_kernel_lamport<__half>(x)", "collective"),
        # gather, scatter, broadcast
        ("void at::native::vectorized_gather_kernel<16, long>(x)", "index"),
        ("ep_scatter", "moe.permute"),
        ("void vllm::cp_gather_cache<float>(x)", "kv_cache"),
        ("loop_broadcast_fusion_2", "elementwise"),
        # what compilers list is not what runs
        ("triton_poi_fused_constant_pad_nd_moe_forward_0", "elementwise"),
        ("triton_red_fused__softmax_all_reduce_layer_norm_7", "reduction"),
        ("triton__0d1d2d3d4de", "fused"),
        # conv is not convert, norm is not normal, gemm is not Gemma, fill is not prefill
        ("convert_kernel", "copy"),
        (DISTRIBUTION, "random"),
        ("_gemma_rms_norm", "norm"),
        ("void flashinfer::BatchPrefillWithPagedKVCacheKernel<x>(y)", "attention"),
        # a word in the arguments
        ("void my_kernel<softmax, attention, gemm>(flash::Params, ncclDevComm*)", OTHER),
        # contentless
        ("kernel_0", OTHER), ("fusion", "fused"), ("kernel_mha", "attention"), ("device_kernel", OTHER), ("", OTHER),
        # fused communication
        ("void aiter::local_device_load_rmsnorm_naive<__hip_bfloat16>(x)", "collective"),
        ("void tensorrt_llm::kernels::moefinalize_allreduce_fusion_kernel_oneshot_lamport<x>(y)", "collective"),
        ("void deep_gemm::sm100_fp8_mega_moe_impl<x>(y)", "moe.gemm"),
    ],
)  # fmt: skip
def test_traps(name: str, class_: str) -> None:
    assert RULES.kernel_class(name) == class_


def test_a_20_kb_name_is_looked_at_in_its_beginning_only() -> None:
    name = (
        "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<" + "cute::C<1>, " * 1800 + ">>()"
    )
    assert len(name) > 20_000
    assert (RULES.kernel_class(name), len(full_name(name)) <= 4096) == ("gemm", True)


def test_20000_distinct_names_are_quick() -> None:
    """Every name once: about a second. The bound leaves room for a slow and busy core."""
    rules = builtin_rules()
    known = [*KNOWN, *HELD_OUT]
    mine = [f"{known[at % len(known)][0].split('(')[0]}_{at}<{at}>(x)" for at in range(20_000)]
    before = time.process_time()
    for name in mine:
        rules.kernel_class(name)
    assert len(set(mine)) == 20_000
    assert time.process_time() - before < 10
