"""Sizes of collectives from NCCL's payload: which kernel a range's size belongs to, and which it does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analyzer.model import Trace
from tests.readers.nsys_sqlite.builder import PID, Export, gtid

KERNEL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
COMM = 2**63 + 7


def nccl(export: Export, function: str, start: int, end: int, size: object = None, **more: Any) -> Export:
    """One of NCCL's own ranges; with a payload where a size is given."""
    payload = (
        None if size is None else json.dumps({"NCCL communicator ID": COMM, "Message size [bytes]": size})
    )
    return export.nvtx(function, start, end, **{"domainId": 1, "jsonText": payload, **more})


def launch(
    export: Export, at: int, correlation: int, tid: int = PID, kernel: str = KERNEL, **more: Any
) -> Export:
    """A launch of 2 ns and its kernel, a microsecond later."""
    export.call("cudaLaunchKernelExC_v11060", at, at + 2, correlation, globalTid=gtid(tid=tid))
    return export.kernel(kernel, at + 1_000, at + 1_500, correlationId=correlation, **more)


def sizes(export: Export, folder: Path) -> list[int | None]:
    return told(only(export, folder))


def told(trace: Trace) -> list[int | None]:
    """Recorded size of every kernel, in order."""
    return [trace.collectives[code].bytes if code >= 0 else None for code in trace.device.collective.tolist()]


def only(export: Export, folder: Path) -> Trace:
    (trace,) = export.read(folder)
    return trace


def test_a_call_outside_of_groups_launches_inside_its_range(tmp_path: Path) -> None:
    export = nccl(Export(), "ncclAllReduce", 10, 20, 14_336)
    nccl(launch(export, 12, 1), "ncclAllReduce", 30, 40, 512)
    assert sizes(launch(export, 32, 2), tmp_path) == [14_336, 512]


def test_the_only_call_of_a_group_is_launched_at_its_end(tmp_path: Path) -> None:
    export = nccl(Export(), "ncclGroupStart", 10, 11)
    nccl(nccl(export, "ncclAllReduce", 12, 14, 4_096), "ncclGroupEnd", 15, 25)
    assert sizes(launch(export, 17, 1), tmp_path) == [4_096]


def test_several_calls_of_a_group_in_one_kernel_are_not_told_apart(tmp_path: Path) -> None:
    export = nccl(nccl(Export(), "ncclAllReduce", 12, 14, 4_096), "ncclAllReduce", 15, 16, 8_192)
    launch(nccl(export, "ncclGroupEnd", 17, 25), 18, 1)
    nccl(export, "ncclAllReduce", 30, 40, 64)
    trace = only(launch(export, 32, 2), tmp_path)
    assert told(trace) == [None, 64]
    (entry,) = [e for e in trace.source.quality if e.reason == "collective-size-not-told"]
    assert (entry.count, entry.total) == (1, 2)


def test_captured_calls_launch_nothing_and_lend_no_size(tmp_path: Path) -> None:
    """Calls under capture come before; replayed kernels (with a graph node) have no size."""
    export = nccl(nccl(Export(), "ncclAllReduce", 2, 4, 1), "ncclAllReduce", 5, 6, 2)
    nccl(export, "ncclAllReduce", 10, 20, 4_096)
    launch(export, 12, 1)
    launch(export, 30, 2, graphNodeId=5 << 32 | 1)
    assert sizes(export, tmp_path) == [4_096, None]


def test_threads_do_not_lend_each_other_sizes(tmp_path: Path) -> None:
    export = nccl(Export(), "ncclAllReduce", 10, 20, 4_096, globalTid=gtid(tid=77))
    assert sizes(launch(export, 12, 1), tmp_path) == [None]


@pytest.mark.parametrize("function", ["ncclAllGather", "ncclReduceScatter"])
def test_what_ncc_counts_per_rank_is_that_of_all_ranks(function: str, tmp_path: Path) -> None:
    export = nccl(Export(), function, 10, 20, 4_096)
    assert sizes(launch(export, 12, 1), tmp_path) == [None]  # of how many ranks?
    init = json.dumps({"NCCL communicator ID": COMM, "No. of ranks": 8, "Rank": 3, "CUDA device": 0})
    export.nvtx("ncclCommInitRankConfig", 0, 1, domainId=1, jsonText=init)
    (tmp_path / "told").mkdir()
    assert sizes(export, tmp_path / "told") == [32_768]


@pytest.mark.parametrize("size", [-1, 2**63, "4096", 4_096.0, True, None, [1]])
def test_sizes_that_are_none_count_as_not_recorded(size: object, tmp_path: Path) -> None:
    payload = json.dumps({"Message size [bytes]": size})
    export = nccl(Export(), "ncclAllReduce", 10, 20, jsonText=payload)
    assert sizes(launch(export, 12, 1), tmp_path) == [None]


@pytest.mark.parametrize(
    "text", ['{"Message size [bytes]": ', '["Message size [bytes]"]', '"Message size [bytes]"']
)
def test_broken_payload_breaks_nothing(text: str, tmp_path: Path) -> None:
    export = nccl(Export(), "ncclAllReduce", 10, 20, jsonText=text)
    assert sizes(launch(export, 12, 1), tmp_path) == [None]


@pytest.mark.parametrize("communicator", [[1], {"id": 1}, None])
def test_a_communicator_that_is_no_number_breaks_nothing(communicator: object, tmp_path: Path) -> None:
    payload = {"NCCL communicator ID": communicator, "Message size [bytes]": 64, "No. of ranks": 2}
    export = nccl(Export(), "ncclAllReduce", 10, 20, jsonText=json.dumps(payload))
    assert sizes(launch(export, 12, 1), tmp_path) == [64]


def test_other_kernels_in_the_range_have_no_size(tmp_path: Path) -> None:
    export = nccl(Export(), "ncclAllReduce", 10, 20, 4_096)
    assert sizes(launch(export, 12, 1, kernel="gemm"), tmp_path) == [None]


def test_kernels_without_a_launch_have_no_size(tmp_path: Path) -> None:
    export = nccl(Export(), "ncclAllReduce", 10, 20, 4_096)
    assert sizes(export.kernel(KERNEL, 12, 13, correlationId=9), tmp_path) == [None]
