"""What the check-up says of literal captures, and that it agrees with the verdicts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from analyzer.explain.check_up.examine import Answer, Checkup, examine
from analyzer.explain.verdicts.catalogue import MEASURABLE, UNMEASURED
from analyzer.model import Capture, DeviceInfo, Diagnostic, Source, Trace
from analyzer.pipeline import analyze
from analyzer.report.doctor_text import text
from tests.builders import EVERYTHING, Schedule, schedule

IDS = sorted(entry.id for entry in (*MEASURABLE, *UNMEASURED))
SYNC_EVENTS = "experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True)"
ACTIVITIES = "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"


def steps(built: Schedule, count: int = 3) -> Schedule:
    """Marked steps of one launch and one kernel each, under what the test adds."""
    for at in range(0, 100 * count, 100):
        built.range(at, at + 90, "ProfilerStep").op(at, at + 20, "aten::mm")
        built.launch(at + 5, at + 10, runs=(at + 20, at + 80), name="gemm")
    return built


def capture_of(built: Schedule, *, info: DeviceInfo | None = None, **source: Any) -> Capture:
    trace = built.build()
    return capture(trace, info or trace.device_info, **source)


def capture(*parts: Any, missing: tuple[int, ...] = (), **source: Any) -> Capture:
    trace: Trace = parts[0]
    changed = replace(trace, source=replace(trace.source, **source), device_info=parts[1])
    return Capture((changed,), (0,), missing_ranks=missing)


def checkup(what: Schedule | Capture, *, analyzed: bool = True, **source: Any) -> Checkup:
    found = capture_of(what, **source) if isinstance(what, Schedule) else what
    diagnosis = analyze(found, steps="ProfilerStep").diagnosis if analyzed else None
    return examine(found, diagnosis, version="test")


def answer(found: Checkup, id_: str) -> Answer:
    return next(row for row in found.hypotheses if row.id == id_)


def flags(found: Checkup, id_: str) -> list[str]:
    return [flag for limit in answer(found, id_).limits for flag in limit.flags]


def codes(found: Checkup) -> list[str]:
    return [note.code for file in found.files for note in file.notes] + [note.code for note in found.notes]


NSYS_NEW = {"kind": "nsys-sqlite", "profiler_version": "2025.5.1.100"}
NSYS_OLD = {"kind": "nsys-sqlite", "profiler_version": "2024.5.1.100"}
H200 = DeviceInfo(0, name="NVIDIA H200", sm_count=132)


def test_every_hypothesis_stands_there_once_with_and_without_an_analysis() -> None:
    for analyzed in (True, False):
        found = checkup(steps(schedule()), analyzed=analyzed)
        assert sorted(row.id for row in found.hypotheses) == IDS


def test_a_whole_capture_has_no_gap() -> None:
    found = checkup(steps(schedule()), info=H200)
    assert [row.id for row in found.hypotheses if row.answer == "can"] == [
        "launch-bound", "host-bound", "device-turnaround", "dependency-stalls", "synchronization", "copies",
        "kernel-bound", "small-grids",
    ]  # fmt: skip
    assert (found.gaps, found.failures, found.captures) == (0, [], [])


@pytest.mark.parametrize(("row", "word"), [(True, "can"), (False, "partly")])
def test_synchronization_rests_on_the_records_of_blocking_calls(row: bool, word: str) -> None:
    found = checkup(steps(schedule()).sync(92, 99, stream=7, row=row), captured=EVERYTHING - {"sync"})
    assert answer(found, "synchronization").answer == word
    assert flags(found, "synchronization") == ([] if row else [SYNC_EVENTS])


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ({}, [SYNC_EVENTS]),
        ({"settings": (("era", "torch 1.9 to 1.13"),)}, []),
        ({"vendor": "rocm"}, []),
        (NSYS_NEW, ["--cuda-event-trace=true"]),
        (NSYS_OLD, []),
        ({"kind": "nsys-sqlite"}, []),  # an unknown version is taken for old
    ],
)
def test_dependencies_rest_on_event_records(source: dict[str, Any], wanted: list[str]) -> None:
    built = steps(schedule()).event_record(12, 13, "e", row=False).event_wait(14, 15, "e", stream=9)
    built.syncs[-1] = (*built.syncs[-1][:2], 0, False)  # the wait is there, what it waits for is not
    found = checkup(built, **source)
    assert answer(found, "dependency-stalls").answer == "partly"
    assert flags(found, "dependency-stalls") == wanted
    failed = [row.subject for row in found.failures]
    assert ("dependency-stalls" in failed) == bool(wanted)


def test_a_resolved_wait_lacks_nothing() -> None:
    built = steps(schedule()).event_record(12, 13, "e").event_wait(14, 15, "e", stream=9)
    assert answer(checkup(built), "dependency-stalls").answer == "can"


def graphs(whole: bool) -> Schedule:
    built = schedule()
    for at in (0, 100, 200):
        built.range(at, at + 90, "ProfilerStep")
        if whole:
            built.whole_graph(at + 5, at + 10, runs=(at + 20, at + 80))
        else:
            built.graph(at + 5, at + 10, [(at + 20, at + 50, "a", 7), (at + 50, at + 80, "b", 7)])
    return built


def test_whole_graphs_hide_what_runs_inside() -> None:
    found = checkup(graphs(whole=True), info=H200, captured=EVERYTHING - {"kernel", "copy"}, **NSYS_NEW)
    assert {
        row.id: row.answer for row in found.hypotheses if "--cuda-graph-trace=node" in flags(found, row.id)
    } == {
        "device-turnaround": "partly",
        "dependency-stalls": "partly",
        "kernel-bound": "partly",
        "copies": "cannot",
        "small-grids": "cannot",
    }
    assert answer(found, "launch-bound").answer == "can"
    assert "graph replays recorded as one row each (3)" in answer(found, "kernel-bound").limits[0].reason
    (advice,) = found.captures
    assert advice.lines[0].startswith("nsys profile --trace=cuda,nvtx,osrt")
    assert "--cuda-graph-trace=node" in advice.lines[0]
    assert any("slows each replay" in cost for cost in advice.costs)
    assert advice.collect == "tracebound collect nsys --graph-nodes -o run -- COMMAND"
    shown = text(found)
    assert "gaps: another capture would say more on 5 of 15 questions" in shown
    by_collector, by_hand = shown.index(advice.collect), shown.index(advice.lines[0])
    assert shown.index("What to capture, as nsys 2025.5 made this") < by_collector < by_hand


def test_graphs_recorded_by_node_hide_nothing() -> None:
    found = checkup(graphs(whole=False), info=H200)
    assert found.gaps == 0


def test_python_frames_inflate_what_rests_on_the_cpu_only() -> None:
    found = checkup(steps(schedule()).frame(1, 60, "loop.py(7): step"), info=H200)
    inflated = {row.id for row in found.hypotheses if "with_stack=False" in flags(found, row.id)}
    assert inflated == {"launch-bound", "host-bound", "synchronization"}
    assert "python-frames" in codes(found)
    assert "with_stack=False," in [line.strip() for line in found.captures[0].lines]


def test_amd_traces_have_no_coverage_and_no_way_to_it() -> None:
    found = checkup(steps(schedule()), vendor="rocm")
    assert answer(found, "small-grids").answer == "cannot"
    assert [limit.closable for limit in answer(found, "small-grids").limits] == [False]
    assert "small-grids" not in [row.subject for row in found.failures]


def test_without_a_device_table_coverage_is_a_gap() -> None:
    found = checkup(steps(schedule()))
    assert answer(found, "small-grids").answer == "cannot"
    assert [row.subject for row in found.failures] == ["small-grids"]
    assert "device-model-unknown" in codes(found)


def test_a_cpu_only_capture_answers_nothing_and_asks_for_both_activities() -> None:
    built = schedule().range(0, 90, "ProfilerStep").op(0, 20, "aten::mm").range(100, 190, "ProfilerStep")
    found = checkup(built, captured=frozenset({"op", "nvtx"}), vendor="none")
    assert {row.answer for row in found.hypotheses} == {"cannot"}
    assert flags(found, "kernel-bound") == [ACTIVITIES]


def test_two_ranks_one_missing_one_without_device_work() -> None:
    whole, bare = steps(schedule()).build(), schedule().range(0, 90, "ProfilerStep").build()
    bare = replace(bare, source=replace(bare.source, path="other.json", captured=frozenset({"nvtx"})))
    both = Capture((whole, bare), (0, 1), missing_ranks=(2,))
    found = checkup(both)
    (limit,) = answer(found, "kernel-bound").limits
    assert (answer(found, "kernel-bound").answer, limit.ranks) == ("partly", [1])
    assert "missing-ranks" in [row.what for row in found.failures]


def test_workers_without_device_work_may_have_been_forked() -> None:
    whole, bare = steps(schedule()).build(), schedule().range(0, 90, "ProfilerStep").build()
    source = Source("run.sqlite", "nsys-sqlite", "2023.3.1.92", captured=EVERYTHING)
    both = Capture((replace(whole, source=source), replace(bare, source=source)), (0, 1))
    found = checkup(both)
    assert "--trace-fork-before-exec=true" in flags(found, "kernel-bound")
    assert any("deadlock" in cost for cost in found.captures[0].costs)


def test_damage_and_lost_records_are_gaps_and_other_messages_are_none() -> None:
    messages = (
        Diagnostic(2, "12 records were dropped"),
        Diagnostic(2, "no NVTX events"),
        Diagnostic(1, "lost"),
    )
    found = checkup(steps(schedule()), info=H200, partial=True, diagnostics=messages)
    assert [row.what for row in found.failures] == ["damaged-file", "lost-records"]
    assert found.files[0].warnings == ["12 records were dropped", "no NVTX events"]


def test_no_steps_is_a_gap_with_the_marker_to_add() -> None:
    built = schedule().launch(5, 10, runs=(20, 80), name="gemm").op(0, 20, "aten::mm")
    found = capture_of(built, info=H200)
    result = examine(found, analyze(found).diagnosis, version="test")
    assert [row.what for row in result.failures] == ["no-steps"]
    assert "prof.step()" in result.notes[0].close_gap


def test_why_there_is_no_analysis_is_said() -> None:
    found = capture_of(steps(schedule()), info=H200)
    result = examine(found, None, version="test", steps_missing_because="no range matches x")
    assert result.notes[0].text == "no step was found: no range matches x"


def test_rows_are_counted_by_class_and_places_told_from_absence() -> None:
    file = checkup(steps(schedule()).sync(92, 99, stream=7), captured=EVERYTHING - {"os"}).files[0]
    assert {name: rows for name, rows in file.records.items() if rows} == {
        "kernel": 3, "call": 4, "sync": 1, "nvtx": 3, "op": 3,
    }  # fmt: skip
    assert file.records["copy"] == 0
    assert file.not_captured == ["os", "collective-metadata", "metrics", "stream-flags"]


@pytest.mark.parametrize(
    ("version", "option"),
    [("2024.4.1", "--gpu-metrics-device=all"), ("2024.5.1", "--gpu-metrics-devices=all")],
)
def test_counters_go_by_the_name_of_the_version(version: str, option: str) -> None:
    found = checkup(steps(schedule()), kind="nsys-sqlite", profiler_version=version)
    assert f"`{option}`" in answer(found, "bandwidth-bound").limits[0].close_gap


def test_collectives_without_metadata_are_counted() -> None:
    built = steps(schedule()).launch(40, 42, runs=(80, 85), name="ncclDevKernel_AllReduce_Sum_bf16_RING_LL")
    note = next(note for note in checkup(built).files[0].notes if note.code == "collectives-without-metadata")
    assert note.text == "1 of 1 collectives carry no group and no size"


def test_the_answers_agree_with_the_verdicts() -> None:
    for built in (steps(schedule()), graphs(whole=True), graphs(whole=False)):
        found = capture_of(built, captured=EVERYTHING - {"call"})
        diagnosis = analyze(found, steps="ProfilerStep").diagnosis
        result = examine(found, diagnosis, version="test")
        for row in result.hypotheses:
            verdicts = {h.verdict for h in diagnosis.hypotheses if h.id == row.id}
            if row.answer == "cannot":  # a bound on the path may contradict it all the same
                assert verdicts <= {"unmeasured", "contradicted"}, row.id
            else:
                assert "unmeasured" not in verdicts, row.id


def test_what_stands_at_a_peak_takes_a_ledger_or_counters() -> None:
    for id_, what in (("bandwidth-bound", "bytes"), ("compute-bound", "arithmetic")):
        found = answer(checkup(steps(schedule())), id_)
        assert found.answer == "cannot"
        assert found.limits[0].reason == f"takes counters, or a ledger with its {what} that diagnose is given"
        assert "tracebound diagnose --ledger" in found.limits[0].close_gap
