"""A literal diagnosis, small enough to check by hand: 3 decode steps of 10 ms and 1 prefill step."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from analyzer.analysis import Analysis
from analyzer.categories import CATEGORY_NAMES, EXPOSURE_NAMES, Binding, Category
from analyzer.diagnosis import (
    FORMAT,
    FORMAT_VERSION,
    Budget,
    Clock,
    Constants,
    Device,
    DeviceSpan,
    Diagnosis,
    Evidence,
    HostCulprit,
    Hypothesis,
    Input,
    Kernel,
    Measured,
    Quality,
    Rank,
    Share,
    Steps,
    Unmeasured,
    Window,
)
from analyzer.tables import NO_EVENT, SegmentTable
from tests.report.whatif_builder import change, whatif

MS = 1_000_000


def path(**parts: int) -> dict[str, int]:
    """All categories, zeros included; ``launch_latency=5`` sets ``launch.latency``."""
    return _filled(CATEGORY_NAMES.values(), parts)


def exposed(**parts: int) -> dict[str, int]:
    """All exposure labels, zeros included."""
    return _filled(EXPOSURE_NAMES.values(), parts)


def _filled(names: Any, parts: dict[str, int]) -> dict[str, int]:
    by_word = {name.replace(".", "_"): name for name in names}
    values = dict.fromkeys(names, 0)
    values.update({by_word[word]: value for word, value in parts.items()})
    return values


CONSTANTS = Constants(
    launch_lambda_ns={"cudaLaunchKernel": (3_900, 9_800), "cudaGraphLaunch": (5_000, 20_000)},
    launch_samples={"cudaLaunchKernel": 812, "cudaGraphLaunch": 0},
    stream_tau_ns=900,
    turnaround_ns=2_000,
    turnaround_samples=431,
    event_hop_ns=5_000,
    quiet_ns=20_000,
    burst_gap_ns={"decode-main": 140_000},
    queue_depth_limit=1_021,
    uncertainty_ns=None,
    assumed=["launch_lambda_ns.cudaGraphLaunch"],
    thresholds={"supported": 0.1, "contradicted": 0.02},
)
CLOCK = Clock(
    offset_ns=0,
    drift_ppb=None,
    interval_ns=None,
    uncertainty_ns=None,
    reference_rank=0,
    device_shift_ns=0,
    device_interval_ns=(-1_200, 3_900),
    negative_latency_count=0,
    early_return_count=0,
    pair_count=812,
    correction="none",
)
DECODE_PATH = path(
    kernel=2 * MS + 333_333,
    launch_latency=MS,
    launch_dispatch=4 * MS + 333_333,
    host_framework=2 * MS,
    gap_dispatch=333_334,
)
DECODE_EXPOSED = exposed(kernel=4 * MS, idle_host=5 * MS + 1, idle_launch=MS - 1)


def window(index: int, phase: str = "decode", warmup: bool = False, **changes: Any) -> Window:
    values: dict[str, Any] = {
        "index": index,
        "step": f"{phase} {index}",
        "phase": phase,
        "start_ns": index * 10 * MS,
        "end_ns": (index + 1) * 10 * MS,
        "host_start_ns": index * 10 * MS - 2 * MS,
        "host_end_ns": (index + 1) * 10 * MS - MS,
        "warmup": warmup,
        "warmup_reasons": ["allocates device memory"] if warmup else [],
        "empty": False,
        "path_ns": DECODE_PATH,
        "exposed_ns": DECODE_EXPOSED,
        "inferred_ns": 2 * MS,
        "overlap_ns": {
            "collective_under_kernel": 0,
            "copy_under_kernel": 0,
            "kernel_under_kernel": 0,
        },
        "kernels": 96,
        "kernels_in_graphs": 0,
        "launches": 96,
        "graph_replays": 0,
        "collectives": 0,
        "copies": 1,
    }
    return Window(**{**values, **changes})


def rank(number: int = 0, **changes: Any) -> Rank:
    values: dict[str, Any] = {
        "rank": number,
        "host": "node-a",
        "pid": "4711",
        "source": "decode.sqlite",
        "device": Device(
            index=0, uuid=None, name="NVIDIA H200", sm_count=132, memory_bytes_per_s=4_800_000_000_000
        ),
        "device_span": DeviceSpan(start_ns=0, end_ns=50 * MS, busy_ns=20 * MS, idle_ns=30 * MS),
        "device_events": 485,
        "linked_events": 480,
        "unlinked_events": 5,
        "prior_events": 2,
        "prior_ns": 21_000,
        "held_launches": 0,
        "shared_gpu_with": [],
        "clock": CLOCK,
        "constants": CONSTANTS,
        "windows": [
            window(0, "prefill"),
            window(1, warmup=True),
            window(2),
            window(3),
            window(4),
        ],
    }
    return Rank(**{**values, **changes})


def budget(phase: str = "decode", number: int | None = 0, windows: int = 3, **changes: Any) -> Budget:
    values: dict[str, Any] = {
        "phase": phase,
        "scope": "rank",
        "rank": number,
        "windows": windows,
        "windows_excluded": 0,
        "step_ns_total": 10 * MS * windows,
        "path_ns_total": {name: value * windows for name, value in DECODE_PATH.items()},
        "exposed_ns_total": {name: value * windows for name, value in DECODE_EXPOSED.items()},
        "inferred_ns_total": 2 * MS * windows,
        "note": "",
    }
    return Budget(**{**values, **changes})


def hypothesis(name: str = "launch-bound", **changes: Any) -> Hypothesis:
    values: dict[str, Any] = {
        "id": name,
        "phase": "decode",
        "scope": "rank",
        "rank": 0,
        "claim": "The step waits for the CPU to submit device work.",
        "verdict": "supported",
        "verdict_note": "",
        "share": Share(value=0.533, interval=(0.481, 0.612)),
        "overlaps_with": [],
        "measured": Measured(
            name="launch time on the path per step",
            value=5_333_333.0,
            unit="ns per step",
            kind="measurement",
            rank=0,
            windows=3,
        ),
        "gain_upper_bound_ns": 5_333_333,
        "intervention": "Capture the decode step in a CUDA graph.",
        "predicted_step_ns": None,
        "disproof": "A graph replay of identical work takes as long as the eager step.",
        "undo": "Undo it if memory no longer fits, or if the latency of another phase grows.",
        "discriminating_check": "Compare with a graph replay of identical work.",
        "evidence": [
            Evidence(
                file="segments.csv",
                line=7,
                rank=0,
                window=2,
                start_ns=20 * MS,
                end_ns=21 * MS,
                event="gemm_kernel",
                input="decode.sqlite",
                event_start_ns=20 * MS,
            )
        ],
    }
    return Hypothesis(**{**values, **changes})


def unmeasured_hypothesis(name: str) -> Hypothesis:
    return hypothesis(
        name,
        verdict="unmeasured",
        claim="",
        share=None,
        measured=None,
        gain_upper_bound_ns=None,
        verdict_note="Hardware counters were not captured.",
        intervention="",
        disproof="",
        undo="",
        discriminating_check="Hardware counters beside the byte ledger.",
        evidence=[],
    )


def kernel(name: str = "gemm_kernel", **changes: Any) -> Kernel:
    values: dict[str, Any] = {
        "rank": 0,
        "name": name,
        "kind": "kernel",
        "class_": "gemm",
        "calls_total": 384,
        "calls_per_step": 96.0,
        "calls_in_graphs": 0,
        "total_ns": 16 * MS,
        "clipped_ns": 0,
        "path_ns": 7 * MS,
        "exposed_ns": 12 * MS,
        "shapes": 1,
        "coverage": 0.0909,
        "occupancy": None,
        "limiter": None,
    }
    return Kernel(**{**values, **changes})


def culprit(name: str = "aten::linear", **changes: Any) -> HostCulprit:
    values: dict[str, Any] = {
        "rank": 0,
        "phase": "decode",
        "category": "launch.dispatch",
        "thread": "decode-main",
        "name": name,
        "stack": ["decode", "model.forward", name],
        "frame": None,
        "path_ns": 13 * MS,
        "segments": 288,
        "windows": 3,
        "windows_with": 3,
    }
    return HostCulprit(**{**values, **changes})


def diagnosis(**changes: Any) -> Diagnosis:
    values: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "tracebound_version": "0.1.0",
        "time_zero_ns": "1712195495519689047",
        "inputs": [
            Input(
                path="decode.sqlite",
                kind="nsys-sqlite",
                profiler_version="2024.5.1",
                schema_version="3.15.0",
                ranks=[0],
                partial=False,
                captured=["kernel", "call", "nvtx"],
                settings={"cuda-graph-trace": "node"},
                diagnostics=[],
            )
        ],
        "boundary": "device",
        "constants": CONSTANTS,
        "steps": Steps(
            rule="regex",
            pattern="decode|prefill",
            count=5,
            warmup_count=1,
            confidence="high",
            phases=["prefill", "decode"],
            detail="",
        ),
        "ranks": [rank()],
        "missing_ranks": [],
        "rank_basis": "one device in one file",
        "budget": [budget("prefill", windows=1), budget(windows_excluded=1)],
        "kernels": [kernel(), kernel("rms_norm<float>", class_="norm", path_ns=3, total_ns=MS)],
        "host_culprits": [culprit(), culprit("scheduler.step", category="host.framework", path_ns=6 * MS)],
        "hypotheses": [
            hypothesis(),
            hypothesis(
                "kernel-bound",
                claim="The step waits for kernels.",
                verdict="inconclusive",
                share=Share(value=0.2333, interval=(0.08, 0.2333)),
            ),
            unmeasured_hypothesis("bandwidth-bound"),
        ],
        "whatif": whatif(),
        "undeclared": ["weights hash", "batch"],
        "unmeasured": [
            Unmeasured(what="HBM traffic", how_to_measure="Capture with --gpu-metrics-devices=all.")
        ],
        "quality": [
            Quality(
                reason="unlinked-device-event",
                count=3,
                share=0.0062,
                effect="Their start cannot be explained by a launch.",
                place="decode.sqlite",
            )
        ],
        "notes": [],
    }
    return Diagnosis(**{**values, **changes})


def segments() -> SegmentTable:
    return SegmentTable(
        rank=np.array([0, 0], np.int32),
        window=np.array([2, 2], np.int32),
        start_ns=np.array([20 * MS, 21 * MS], np.int64),
        end_ns=np.array([21 * MS, 30 * MS], np.int64),
        category=np.array([Category.LAUNCH_LATENCY, Category.KERNEL], np.int8),
        binding=np.array([Binding.SUBMISSION, Binding.WORK], np.int8),
        inferred=np.array([False, True]),
        name=np.array([-1, 0], np.int32),
        place=np.array([1, 0], np.int32),
        correlation=np.array([17, 0], np.int64),
        event_start_ns=np.array([NO_EVENT, 5], np.int64),
        late_rank=np.array([-1, -1], np.int32),
        names=("gemm_kernel", "gemm_kernel"),
        places=("device 0 stream 7", "thread 4711"),
    )


def analysis(**changes: Any) -> Analysis:
    return Analysis(diagnosis(**changes), segments())


def hostile(text: str) -> Diagnosis:
    """The small diagnosis with ``text`` wherever a capture's text can stand."""
    small = diagnosis()
    replace = msgspec.structs.replace
    return diagnosis(
        inputs=[
            replace(
                small.inputs[0],
                path=text,
                kind=text,
                profiler_version=text,
                schema_version=text,
                diagnostics=[text],
                partial=True,
                settings={text: text},
            )
        ],
        ranks=[
            rank(
                host=text,
                pid=text,
                source=text,
                device=replace(small.ranks[0].device, name=text, uuid=text),  # type: ignore[type-var]
                windows=[window(0, phase=text, step=text, warmup=True, warmup_reasons=[text])],
            )
        ],
        rank_basis=text,
        budget=[budget(text, note=text)],
        steps=replace(small.steps, rule=text, pattern=text, phases=[text], detail=text, confidence=text),
        kernels=[kernel(text, class_=text, kind=text, limiter=text)],
        host_culprits=[culprit(text, thread=text, stack=[text, "x"], frame=text, phase=text)],
        hypotheses=[
            hypothesis(
                phase=text,
                claim=text,
                verdict_note=text,
                intervention=text,
                disproof=text,
                undo=text,
                discriminating_check=text,
                measured=replace(small.hypotheses[0].measured, name=text),  # type: ignore[type-var]
                evidence=[
                    Evidence(
                        file=text,
                        line=2,
                        rank=0,
                        window=0,
                        start_ns=0,
                        end_ns=1,
                        event=text,
                        input=text,
                        event_start_ns=0,
                    )
                ],
            )
        ],
        whatif=whatif(change(phase=text, notes=[text]), withheld="", assumptions=[]),
        undeclared=[text],
        unmeasured=[Unmeasured(what=text, how_to_measure=text)],
        quality=[Quality(reason=text, count=1, share=None, effect=text, place=text)],
        notes=[text],
    )
