"""Roles of runtime and driver calls by name, in every spelling that profilers write."""

from __future__ import annotations

import pytest

from analyzer.cuda_api import DEVICE_ALLOCATION, SUBMISSIONS, CallKind, base_name, call_kind

SPELLINGS = {
    CallKind.LAUNCH: """
        cudaLaunchKernel cudaLaunchKernel_v7000 cudaLaunchKernel_ptsz cudaLaunchKernel_ptsz_v7000 cudaLaunchKernelExC
        cudaLaunchKernelExC_v11060 cudaLaunchKernelExC_ptsz_v11060 cudaLaunch cudaLaunch_v3020
        cudaLaunchCooperativeKernel cudaLaunchCooperativeKernel_v9000 cudaLaunchCooperativeKernelMultiDevice
        cuLaunch cuLaunchKernel cuLaunchKernel_ptsz cuLaunchKernelEx cuLaunchKernelEx_ptsz cuLaunchCooperativeKernel
        hipLaunchKernel hipModuleLaunchKernel hipExtModuleLaunchKernel hipExtLaunchKernel hipLaunchCooperativeKernel
        hipLaunchKernelExC hipDrvLaunchKernelEx""",
    CallKind.GRAPH_LAUNCH: """
        cudaGraphLaunch cudaGraphLaunch_v10000 cudaGraphLaunch_ptsz cudaGraphLaunch_ptsz_v10000 cuGraphLaunch
        cuGraphLaunch_ptsz hipGraphLaunch""",
    CallKind.GRAPH_BUILD: """
        cudaGraphInstantiate cudaGraphInstantiate_v12000 cudaGraphInstantiateWithFlags_v11040 cuGraphInstantiate_v2
        cudaStreamBeginCapture cudaStreamBeginCapture_v10000 cudaStreamEndCapture_ptsz cuStreamBeginCapture_v2
        cudaGraphExecUpdate cudaGraphAddKernelNode hipGraphInstantiate hipStreamBeginCapture""",
    CallKind.COPY_ASYNC: """
        cudaMemcpyAsync cudaMemcpyAsync_v3020 cudaMemcpyAsync_ptsz_v7000 cudaMemcpy2DAsync cudaMemcpy3DAsync_ptsz
        cudaMemcpyToSymbolAsync cudaMemcpyPeerAsync cudaMemcpyPeer cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2_ptsz
        cuMemcpyDtoDAsync cuMemcpyAsync cuMemcpyPeer hipMemcpyAsync hipMemcpyDtoHAsync hipMemcpyWithStreamAsync""",
    CallKind.COPY_SYNC: """
        cudaMemcpy cudaMemcpy_v3020 cudaMemcpy_ptds_v7000 cudaMemcpy2D cudaMemcpyToSymbol cudaMemcpyFromSymbol
        cuMemcpyHtoD_v2 cuMemcpyDtoH_v2 cuMemcpyDtoD_v2 cuMemcpy hipMemcpy hipMemcpyDtoH hipMemcpyHtoD""",
    CallKind.SET: """
        cudaMemset cudaMemset_ptds cudaMemsetAsync cudaMemsetAsync_v3020 cudaMemset2DAsync cuMemsetD8Async
        cuMemsetD32_v2 hipMemset hipMemsetAsync""",
    CallKind.HOST_FUNCTION: "cudaLaunchHostFunc cudaLaunchHostFunc_v10000 cuLaunchHostFunc cudaStreamAddCallback_ptsz",
    CallKind.STREAM_SYNC: """
        cudaStreamSynchronize cudaStreamSynchronize_v3020 cudaStreamSynchronize_ptsz_v7000 cuStreamSynchronize
        cuStreamSynchronize_ptsz hipStreamSynchronize""",
    CallKind.DEVICE_SYNC: """
        cudaDeviceSynchronize cudaDeviceSynchronize_v3020 cudaThreadSynchronize_v3020 cuCtxSynchronize
        hipDeviceSynchronize hipCtxSynchronize""",
    CallKind.EVENT_SYNC: "cudaEventSynchronize cudaEventSynchronize_v3020 cuEventSynchronize hipEventSynchronize",
    CallKind.QUERY: "cudaEventQuery cudaEventQuery_v3020 cuEventQuery cudaStreamQuery_ptsz cuStreamQuery hipEventQuery",
    CallKind.EVENT_RECORD: """
        cudaEventRecord cudaEventRecord_v3020 cudaEventRecord_ptsz cudaEventRecordWithFlags_v11010 cuEventRecord
        cuEventRecord_ptsz cuEventRecordWithFlags hipEventRecord""",
    CallKind.STREAM_WAIT: """
        cudaStreamWaitEvent cudaStreamWaitEvent_v3020 cudaStreamWaitEvent_ptsz_v7000 cuStreamWaitEvent
        cuStreamWaitEvent_ptsz hipStreamWaitEvent""",
    CallKind.ALLOCATE: """
        cudaMalloc cudaMalloc_v3020 cudaMallocHost cudaMallocManaged cudaMallocPitch cudaHostAlloc cudaHostRegister
        cuMemAlloc_v2 cuMemAllocPitch_v2 cuMemAllocHost_v2 cuMemHostAlloc hipMalloc hipHostMalloc""",
    CallKind.FREE: """
        cudaFree cudaFree_v3020 cudaFreeHost cudaHostUnregister cuMemFree_v2 cuMemFreeHost hipFree hipHostFree""",
    CallKind.MODULE_LOAD: """
        cuModuleLoadData cuModuleLoadDataEx cuModuleLoadFatBinary cuLibraryLoadData cuModuleGetFunction
        hipModuleLoad hipModuleLoadData""",
    CallKind.OTHER: """
        cudaMallocAsync cudaMallocAsync_v11020 cudaMallocFromPoolAsync cudaFreeAsync_ptsz cuMemAllocAsync
        cuMemFreeAsync cudaGetDevice cudaSetDevice cudaPointerGetAttributes cudaFuncGetAttributes cudaGraphUpload
        cudaGraphKernelNodeSetParams cudaEventCreateWithFlags cudaEventDestroy cudaStreamCreateWithPriority
        cudaStreamIsCapturing cudaStreamGetCaptureInfo cudaOccupancyMaxActiveBlocksPerMultiprocessor
        cudaGetLastError cudaMemGetInfo cudaGraphMemcpyNodeSetParams cuStreamWaitValue32 cuStreamWriteValue32
        cudaPeekAtLastError __cudaPushCallConfiguration __cudaPopCallConfiguration
        cuLibraryGetKernel""",
}  # fmt: skip
CASES = [(name, kind) for kind, names in SPELLINGS.items() for name in names.split()]


@pytest.mark.parametrize(("name", "kind"), CASES, ids=[name for name, _ in CASES])
def test_role(name: str, kind: CallKind) -> None:
    assert call_kind(name) == kind


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel"),
        ("cudaMemcpy_ptds", "cudaMemcpy"),
        ("cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2"),  # part of the API's own name
        ("cudaGraphInstantiate_v12000", "cudaGraphInstantiate"),
        ("cuLaunchKernelEx", "cuLaunchKernelEx"),
    ],
)
def test_base_name(name: str, base: str) -> None:
    assert base_name(name) == base


def test_submissions_are_the_launch_calls_of_the_contract() -> None:
    put_on_a_stream = {"LAUNCH", "GRAPH_LAUNCH", "COPY_ASYNC", "COPY_SYNC", "SET", "HOST_FUNCTION"}
    assert {kind.name for kind in SUBMISSIONS} == put_on_a_stream


@pytest.mark.parametrize(
    ("name", "allocates"),
    [
        ("cudaMalloc", True), ("cudaMallocManaged", True), ("cudaMallocPitch", True), ("cuMemAlloc_v2", True),
        ("cuMemCreate", True), ("hipMalloc", True), ("cudaMallocHost", False), ("cudaMallocAsync", False),
        ("cudaMallocFromPoolAsync", False), ("cuMemAllocHost_v2", False), ("cuMemAllocAsync", False),
        ("cudaHostAlloc", False), ("cudaFree", False), ("hipHostMalloc", False),
    ],
)  # fmt: skip
def test_device_allocations(name: str, allocates: bool) -> None:
    assert bool(DEVICE_ALLOCATION.match(base_name(name))) == allocates
