"""Facts about real captures that were found by independent means."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

import pytest

from analyzer.diagnosis import Rank
from tests.captures.results import (
    analysis_of,
    capture_names,
    covered,
    database,
    files_of,
    hypotheses_of,
    json_events,
    of_categories,
    span_ns,
    windows_of,
)
from tests.shared import needs_shared, trace_path

pytestmark = needs_shared

MS = 1_000_000
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver", "runtime")
SUBMITS = re.compile("cuda(Launch|Memcpy|Memset)")
IDLE = ("idle.host", "idle.launch", "idle.dependency", "idle.unlinked", "idle.profiler", "idle.after_last")

CUDA_GRAPH = "cs336-zx/gpt2_2.7B_cudagraph.sqlite"
EAGER = "cs336-zx/gpt2_2.7B_eager.sqlite"
NVTX = "cs336-zx/gpt2_2.7B_nvtx.sqlite"
TWO_H100 = "nsysai/h100_2gpu_1s.sqlite"
QWEN = "tracelens-qwen/h100_qwen1.5_0.5b.json.gz"
DDP = "tracelens-ddp/mi300_resnet_actckpt_rank0of8.json.gz"
HTA_DIFF = "hta-diff/trace_diff_test.json.gz"
HTA_NCCL = "hta-nccl-meta/nccl_data.json.gz"
VLLM = "tracelens-vllm/vllm_decode_fullgraph.json.gz"
SGLANG = "tracelens-sglang/sglang_qwen3_8b_decode.json.gz"
RESNET18 = "torchrec-resnet18"


def rank_of(name: str, at: int = 0) -> Rank:
    return analysis_of(name).diagnosis.ranks[at]


def milliseconds(name: str, rank: int = 0) -> list[float]:
    return [round((w.end_ns - w.start_ns) / MS, 2) for w in windows_of(name, rank)]


def path_total(name: str, *categories: str, rank: int = 0) -> int:
    return sum(w.path_ns[category] for w in windows_of(name, rank) for category in categories)


def exposed_total(name: str, *labels: str, rank: int = 0) -> int:
    return sum((w.exposed_ns or {})[label] for w in windows_of(name, rank) for label in labels)


def verdicts(name: str, id_: str) -> set[str]:
    return {row.verdict for row in hypotheses_of(analysis_of(name), id_)}


def unlinked_spans(name: str) -> list[tuple[int, int]]:
    """Device events of a JSON trace whose correlation no call has."""
    events = json_events(name)
    known = {event["args"].get("correlation") for event in of_categories(events, *CALLS)}
    device = of_categories(events, *DEVICE)
    return [span_ns(event) for event in device if event["args"].get("correlation") not in known]


def test_whole_graph_rows_are_busy_time() -> None:
    with database(trace_path(CUDA_GRAPH)) as file:
        (rows,) = file.execute(
            "select count(*), sum(end - start), max(end) - min(start) from CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
        )
    assert rows == (10, 7_811_141_695, 7_811_297_244)
    assert len(windows_of(CUDA_GRAPH)) == 10
    assert exposed_total(CUDA_GRAPH, "graph.unresolved") == rows[1]
    assert path_total(CUDA_GRAPH, "graph.unresolved") == pytest.approx(rows[1], rel=1e-6)
    assert verdicts(CUDA_GRAPH, "kernel-bound") == {"supported"}
    assert verdicts(CUDA_GRAPH, "launch-bound") == {"contradicted"}
    idle = exposed_total(CUDA_GRAPH, *IDLE)
    assert idle < 0.001 * rows[2]


@pytest.mark.parametrize("rank", [0, 1])
def test_a_capture_that_copies(rank: int) -> None:
    with database(trace_path(TWO_H100)) as file:
        pids = [pid for (pid,) in file.execute("select distinct globalPid from CUPTI_ACTIVITY_KIND_KERNEL")]
        (copies,) = file.execute(
            "select sum(end - start) from CUPTI_ACTIVITY_KIND_MEMCPY where globalPid = ?",
            [sorted(pids)[rank]],
        )
        (kernels,) = file.execute(
            "select sum(end - start) from CUPTI_ACTIVITY_KIND_KERNEL where globalPid = ?",
            [sorted(pids)[rank]],
        )
    assert copies[0] == pytest.approx(940.5 * MS, rel=2e-4)
    assert kernels[0] == pytest.approx(22.4 * MS, rel=2e-3)
    (span,) = milliseconds(TWO_H100, rank)
    assert span == pytest.approx(969.4, abs=0.2)
    rows = [row for row in analysis_of(TWO_H100).diagnosis.kernels if row.rank == rank]
    assert sum(row.total_ns for row in rows if row.kind == "copy") == copies[0]
    assert sum(row.total_ns for row in rows if row.kind == "kernel") == kernels[0]
    busy = exposed_total(TWO_H100, "kernel", "copy", "prior_work", rank=rank)
    assert busy == pytest.approx(copies[0] + kernels[0], rel=1e-3)


def test_copies_are_what_the_two_gpus_do() -> None:
    assert verdicts(TWO_H100, "copies") == {"supported"}
    for other in ("launch-bound", "host-bound", "synchronization"):
        assert verdicts(TWO_H100, other) == {"contradicted"}


def test_half_of_the_two_gpus_work_has_no_launch_and_keeps_its_time() -> None:
    joined = """select count(*) from CUPTI_ACTIVITY_KIND_{} as row where exists (
        select 1 from CUPTI_ACTIVITY_KIND_RUNTIME as call
        where call.correlationId = row.correlationId and call.globalTid / 16777216 = row.globalPid / 16777216)"""
    with database(trace_path(TWO_H100)) as file:
        linked = {
            kind: file.execute(joined.format(kind)).fetchone()[0] for kind in ("KERNEL", "MEMCPY", "MEMSET")
        }
        total = {
            kind: file.execute(f"select count(*) from CUPTI_ACTIVITY_KIND_{kind}").fetchone()[0]
            for kind in linked
        }
    assert (linked["KERNEL"], total["KERNEL"]) == (1632, 3442)
    assert (linked["MEMCPY"], total["MEMCPY"]) == (438, 904)
    ranks = analysis_of(TWO_H100).diagnosis.ranks
    assert sum(rank.linked_events for rank in ranks) == sum(linked.values())
    assert sum(rank.unlinked_events for rank in ranks) == sum(total.values()) - sum(linked.values())


@pytest.mark.parametrize(
    ("name", "events", "sum_ms"), [(QWEN, 509, 13.74), (DDP, 968, 31.83), (HTA_DIFF, 614, 56.517)]
)
def test_work_from_before_the_capture(name: str, events: int, sum_ms: float) -> None:
    spans = unlinked_spans(name)
    total = sum(end - start for start, end in spans)
    assert (len(spans), total / MS) == (events, pytest.approx(sum_ms, abs=0.01))
    rank = rank_of(name)
    assert (rank.unlinked_events, rank.prior_events, rank.prior_ns) == (events, events, total)


def test_prior_work_of_an_inference_step() -> None:
    device = of_categories(json_events(QWEN), *DEVICE)
    assert len(device) == rank_of(QWEN).device_events == 1707
    assert covered(map(span_ns, device)) == pytest.approx(45.65 * MS, rel=1e-3)
    assert path_total(QWEN, "prior_work") == pytest.approx(13.5 * MS, rel=0.01)
    assert exposed_total(QWEN, "prior_work") == pytest.approx(13.5 * MS, rel=0.01)


def test_prior_work_of_a_training_step() -> None:
    assert milliseconds(DDP)[0] == 49.06
    assert (windows_of(DDP)[0].exposed_ns or {})["prior_work"] == pytest.approx(27.77 * MS, rel=1e-3)
    assert exposed_total(DDP, "prior_work") == (windows_of(DDP)[0].exposed_ns or {})["prior_work"]


def test_prior_work_of_the_recommender() -> None:
    wall = covered(unlinked_spans(HTA_DIFF))
    assert wall == pytest.approx(36.6 * MS, rel=2e-3)
    # a tenth of a millisecond or so lies under kernels of the step, which the exposure counts as kernels
    assert wall - 0.3 * MS < exposed_total(HTA_DIFF, "prior_work") <= wall


@pytest.mark.parametrize(("name", "replayed", "kernels"), [(VLLM, 421, 425), (SGLANG, 544, 555)])
def test_one_replay_brings_most_of_the_kernels(name: str, replayed: int, kernels: int) -> None:
    events = json_events(name)
    (replay,) = [event for event in events if event["name"] == "hipGraphLaunch"]
    rows = of_categories(events, "kernel")
    inside = [row for row in rows if row["args"]["correlation"] == replay["args"]["correlation"]]
    assert (len(inside), len(rows)) == (replayed, kernels)
    (window,) = windows_of(name)
    assert (window.kernels_in_graphs, window.graph_replays) == (replayed, 1)
    found = [row for row in analysis_of(name).diagnosis.kernels if row.kind == "kernel"]
    assert sum(row.calls_total for row in found) == kernels
    assert sum(row.calls_in_graphs for row in found) == replayed
    assert sum(row.total_ns for row in found) == sum(end - start for start, end in map(span_ns, rows))
    calls = [span_ns(event) for event in of_categories(events, *CALLS)]
    assert window.path_ns["launch.api"] + window.path_ns["launch.latency"] <= sum(b - a for a, b in calls)


def test_a_training_step_that_the_host_bounds() -> None:
    assert milliseconds(HTA_NCCL) == [221.86, 219.82, 224.96]
    events = json_events(HTA_NCCL)
    device = [span_ns(event) for event in of_categories(events, *DEVICE)]
    calls = [span_ns(event) for event in of_categories(events, *CALLS) if SUBMITS.match(event["name"])]
    offset = _offset(device, rank_of(HTA_NCCL))
    for window, idle_ms in zip(windows_of(HTA_NCCL), (172.4, 170.1, 166.6), strict=True):
        low, high = window.start_ns, window.end_ns
        busy = sum((window.exposed_ns or {})[label] for label in ("kernel", "collective", "copy"))
        assert busy == covered(device, low + offset, high + offset)
        assert (high - low - busy) / MS == pytest.approx(idle_ms, abs=0.1)
        cpu = sum(ns for category, ns in window.path_ns.items() if category.startswith(("launch.", "host.")))
        assert cpu > 0.99 * (high - low)
        assert window.path_ns["kernel"] == pytest.approx(0.25 * MS, abs=0.02 * MS)
        launching = covered(calls, low + offset, high + offset)
        assert window.path_ns["launch.api"] == pytest.approx(launching, rel=0.02)
    assert verdicts(HTA_NCCL, "kernel-bound") == {"contradicted"}


def _offset(device: list[tuple[int, int]], rank: Rank) -> int:
    """From the result's clock to the file's: the first device event is the same one."""
    assert rank.device_span is not None
    return min(start for start, _ in device) + rank.clock.device_shift_ns - rank.device_span.start_ns


def test_a_recommenders_steps_and_replays() -> None:
    assert milliseconds(HTA_DIFF)[:4] == [157.41, 117.13, 114.80, 123.10]
    events = json_events(HTA_DIFF)
    replays = {event["args"]["correlation"] for event in events if event["name"] == "cudaGraphLaunch"}
    kernels = of_categories(events, "kernel")
    inside = [event for event in kernels if event["args"]["correlation"] in replays]
    assert (len(replays), len(inside), len(kernels)) == (12, 4464, 9876)
    windows = windows_of(HTA_DIFF)
    assert sum(window.graph_replays for window in windows) == 12
    assert sum(window.kernels_in_graphs for window in windows) == 4464
    rows = [row for row in analysis_of(HTA_DIFF).diagnosis.kernels if row.kind == "kernel"]
    assert sum(row.calls_total for row in rows) == 9876
    assert sum(row.calls_in_graphs for row in rows) == 4464


@pytest.mark.parametrize(("name", "held"), [(EAGER, 3437), (NVTX, 1052)])
def test_a_full_launch_queue_is_not_work_of_the_cpu(name: str, held: int) -> None:
    with database(trace_path(name)) as file:
        (slow,) = file.execute(
            "select count(*), sum(end - start) from CUPTI_ACTIVITY_KIND_RUNTIME join StringIds on nameId = id "
            "where value like 'cudaLaunchKernel%' and end - start > 100000"
        )
    assert slow[0] >= held
    assert rank_of(name).held_launches == held
    assert verdicts(name, "kernel-bound") == {"supported"}
    assert verdicts(name, "launch-bound") == {"contradicted"}
    steady = [window for window in windows_of(name) if not window.left_out]
    launching = sum(w.path_ns["launch.api"] + w.path_ns["launch.latency"] for w in steady)
    assert launching < 0.01 * slow[1]


def test_a_rank_whose_device_clock_is_behind() -> None:
    events = json_events(f"{RESNET18}/dp2_rank1.pt.trace.json.gz")
    called = {event["args"].get("correlation"): span_ns(event)[0] for event in of_categories(events, *CALLS)}
    device = of_categories(events, *DEVICE)
    early = [called[row["args"]["correlation"]] - span_ns(row)[0] for row in device]
    assert (sum(by > 0 for by in early), len(early)) == (224, 225)
    rank = rank_of(RESNET18, 1)
    assert (rank.clock.negative_latency_count, rank.clock.pair_count) == (224, 225)
    assert rank.clock.correction == "shifted"
    assert rank.clock.device_shift_ns == max(early)
    notes = [row for row in analysis_of(RESNET18).diagnosis.quality if row.reason == "start-before-launch"]
    assert ("rank 1", 224) in [(row.place, row.count) for row in notes]
    assert any("224 of 225" in note for note in analysis_of(RESNET18).diagnosis.notes)


def nsys_sums(name: str) -> dict[str, tuple[int, int]]:
    """Count and time per kernel name, by SQL."""
    with database(trace_path(name)) as file:
        tables = {table for (table,) in file.execute("select name from sqlite_master")}
        if "CUPTI_ACTIVITY_KIND_KERNEL" not in tables:
            return {}
        rows = file.execute(
            "select coalesce(long.value, short.value) as name, count(*), sum(end - start) "
            "from CUPTI_ACTIVITY_KIND_KERNEL left join StringIds as long on long.id = demangledName "
            "left join StringIds as short on short.id = shortName group by name"
        )
        return {text: (count, time) for text, count, time in rows}


def json_sums(files: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Count and time per kernel name, by the standard library."""
    times: defaultdict[str, list[int]] = defaultdict(list)
    for file in files:
        for event in of_categories(json_events(file), "kernel"):
            start, end = span_ns(event)
            times[event["name"]].append(end - start)
    return {text: (len(values), sum(values)) for text, values in times.items()}


@pytest.mark.parametrize("name", capture_names())
def test_time_per_kernel_name_is_the_files_own(name: str) -> None:
    expected = nsys_sums(name) if name.endswith(".sqlite") else json_sums(files_of(name))
    calls: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for row in analysis_of(name).diagnosis.kernels:
        if row.kind == "kernel":
            calls[row.name] += row.calls_total
            times[row.name] += row.total_ns + row.clipped_ns
    assert {text: (calls[text], times[text]) for text in calls} == expected
