"""What kernel names tell of communication: collectives and their look-alikes, the runtime's copies."""

from __future__ import annotations

import pytest

from analyzer.rules import builtin_rules

RULES = builtin_rules()

COLLECTIVES = {
    # NCCL of every era; RCCL tells no operation
    "ncclAllReduceRingLLKernel_sum_f32(ncclWorkElem)": "all_reduce",
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)": "all_reduce",
    "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)": "send_recv",
    "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)": "all_reduce",
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "all_gather",
    "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "reduce_scatter",
    "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "broadcast",
    "ncclDevKernel_Reduce_Sum_f32_TREE_LL(ncclDevKernelArgsStorage<4096ul>)": "reduce",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)": "send_recv",
    "ncclDevKernelDebug_Generic(ncclDevComm*)": None,
    "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)": None,
    "ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16(ncclSymkDevWorkArgs)": "all_reduce",
    "ncclSymDevKernel_AllGather_LL": "all_gather",
    # engines' own
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)": "all_reduce",
    "void sglang::cross_device_reduce_2stage<__half, 4>(sglang::RankData*)": "all_reduce",
    "void quickreduce::allreduce_prototype_twoshot<quickreduce::CodecFP>()": "all_reduce",
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<1, __half>()": "all_reduce",
    "void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>()": "all_reduce",
    "void (anonymous namespace)::multimem_all_gather_kernel<16>()": "all_gather",
    "<unnamed>::multimem_one_shot_all_reduce_kernel<c10::BFloat16>": "all_reduce",
    "void deep_ep::internode_ll::dispatch<true, false, 7168>(void*)": "dispatch",
    "void deep_ep::intranode::combine<__nv_bfloat16, 8>(__nv_bfloat16*)": "combine",
    "dispatch": "dispatch",  # what nsys leaves of DeepEP's name
    "combine": "combine",
    "void tensorrt_llm::kernels::moeA2ADispatchKernel<8>()": "all_to_all",
    "helixAllToAllKernel": "all_to_all",
    "mscclpp::executionKernel<__half>": None,
    "userbuffers_fp16_sum_inplace_gpu_mc_rs_oop": None,
    "barrier_on_stream_kernel_threadgroup": "barrier",
    "_ZN4vllm26cross_device_reduce_2stageI14__hip_bfloat16Li8EEvPNS_8RankDataE": "all_reduce",
}


@pytest.mark.parametrize(("name", "operation"), COLLECTIVES.items())
def test_collectives(name: str, operation: str | None) -> None:
    assert RULES.is_collective(name)
    assert RULES.collective_operation(name) == operation


@pytest.mark.parametrize(
    "name",
    [
        "oneRankReduce(void*, void*, unsigned long)",  # a communicator of one rank moves nothing
        "void splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>(float*)",
        "void cublasLt::splitKreduce_kernel<32, 16, int>(float*)",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t>>()",
        "void at::native::vectorized_gather_kernel<16, long>(char*)",
        "void vllm::paged_attention_v2_reduce_kernel<__nv_bfloat16, 128>()",
        "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128>>()",
        "flash_fwd_mla_combine_kernel",
        "groupnorm_kernel_dispatch_256",
        "moe_sum_reduce_kernel",
        "triton_poi_fused_all_reduce_mul_3",  # lists what was fused, not what runs there
        "triton_red_fused_all_gather_0",
        "void cub::DeviceReduceKernel<cub::Policy600, float*>()",
        "void at::native::elementwise_kernel<128, 4, allreduce_functor>()",  # a word inside the template
        "void my_kernel(ncclDevComm*)",
        "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
        "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN",
        "resolve_future_token_ids_kernel",
        "loop_broadcast_fusion",
        "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bLi8EEvPT_",
        "kernel",
        "",
    ],
)
def test_look_alikes(name: str) -> None:
    assert not RULES.is_collective(name)


@pytest.mark.parametrize(
    ("name", "copy", "fill"),
    [
        ("__amd_rocclr_copyBuffer", True, False),
        ("__amd_rocclr_copyBufferAligned.kd", True, False),
        ("__amd_rocclr_fillBufferAligned", False, True),
        ("void at::native::direct_copy_kernel_cuda<float>()", False, False),
    ],
)
def test_the_runtimes_blit_kernels(name: str, copy: bool, fill: bool) -> None:
    assert (RULES.is_copy_kernel(name), RULES.is_fill_kernel(name)) == (copy, fill)


@pytest.mark.parametrize(
    ("recorded", "operation"),
    [
        ("_allgather_base", "all_gather"), ("allreduce", "all_reduce"), ("allreduce_coalesced", "all_reduce"),
        ("_reduce_scatter_base", "reduce_scatter"), ("all_to_allv", "all_to_all"), ("alltoall_base", "all_to_all"),
        ("broadcast", "broadcast"), ("send", "send"), ("recv", "recv"), ("barrier", "barrier"),
        ("gather", "gather"), ("reduce", "reduce"),
    ],
)  # fmt: skip
def test_recorded_collective_names_in_one_spelling(recorded: str, operation: str) -> None:
    assert RULES.metadata_operation(recorded) == operation


@pytest.mark.parametrize(
    ("name", "class_", "family", "fused"),
    [
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "collective", "nccl", False),
        ("nccl_ep_jit_ht_dispatch_kernel", "collective.ep", "nccl", False),
        ("void vllm::cross_device_reduce_1stage<float, 8>(x)", "collective", "custom", False),
        ("void quickreduce::allreduce_prototype_twoshot<x>()", "collective", "custom", False),
        (
            "void (anonymous namespace)::multimem_all_gather_kernel<16>()",
            "collective",
            "symmetric_memory",
            False,
        ),
        ("nvshmemi_barrier_on_stream_kernel", "collective", "nvshmem", False),
        ("mscclKernel_Sum_half_LL", "collective", "msccl", False),
        ("kuserbuffers_pushsend", "collective", "userbuffers", False),
        ("void deep_ep::internode_ll::dispatch<true, 7168>(x)", "collective.ep", "deepep", False),
        ("void x::moeA2ADispatchKernel<8>()", "collective.ep", "expert_parallel", False),
        ("void x::allreduce_fusion_kernel_twoshot_sync<1>()", "collective", "custom", True),
        ("void aiter::local_device_load_rmsnorm<x>(y)", "collective", "custom", True),
        ("kernel_gemm_rs", "collective", "custom", True),
        ("ampere_sgemm_128x64_tn", "gemm", None, False),
    ],
)
def test_families_and_fused_kernels(name: str, class_: str, family: str | None, fused: bool) -> None:
    assert RULES.kernel_class(name) == class_
    assert (RULES.collective_family(name), RULES.is_fused_collective(name)) == (family, fused)
