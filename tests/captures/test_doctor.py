"""The check-up of every real capture: complete, in agreement with its verdicts, with options that exist."""

from __future__ import annotations

import ast
import re

import pytest

from analyzer.explain.check_up.examine import CaptureAdvice, Checkup, examine
from analyzer.explain.verdicts.catalogue import MEASURABLE, UNMEASURED
from analyzer.model import RECORD_CLASSES
from analyzer.report import doctor_text
from tests.captures.results import analysis_of, capture_names, capture_of
from tests.shared import needs_shared

pytestmark = needs_shared

NSYS = {
    "--trace=cuda": (2019, 1),
    "--trace=nvtx": (2019, 1),
    "--trace=cuda,nvtx,osrt": (2019, 1),
    "--sample=none": (2019, 1),
    "--cpuctxsw=none": (2022, 1),
    "--cuda-graph-trace=node": (2022, 1),
    "--cuda-graph-trace=graph": (2022, 1),
    "--trace-fork-before-exec=true": (2021, 1),
    "--cuda-event-trace=true": (2025, 3),
    "--gpu-metrics-device=all": (2021, 2),
    "--gpu-metrics-devices=all": (2024, 5),
    "--type=sqlite": (2019, 1),
    "--include-json=true": (2025, 1),
}
"""Options of nsys with the first version that is known to have them."""
OWN = {"--steps", "--output-ranges"}
TORCH_FLAGS = {
    "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
    "with_stack=False",
    "experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True)",
}
TORCH_OPTIONS = {"activities", "schedule", "on_trace_ready", "with_stack", "experimental_config"}


def version_of(found: Checkup) -> tuple[int, int]:
    texts = [file.profiler_version or "" for file in found.files if file.kind == "nsys-sqlite"]
    numbers = [re.match(r"(\d{4})\.(\d+)", text) for text in texts]
    return min((int(m[1]), int(m[2])) if m else (2021, 1) for m in numbers) if numbers else (0, 0)


@pytest.mark.parametrize("name", capture_names())
def test_the_check_up_of_every_capture(name: str) -> None:
    """One test, so that each capture is analyzed once."""
    found = examine(capture_of(name), analysis_of(name).diagnosis, version="test")
    each_hypothesis_is_answered_once_and_as_the_verdicts_say(found, name)
    each_option_exists_in_the_version_that_made_the_file(found)
    each_row_of_a_file_is_counted_in_its_class(found, name)
    the_text_is_short(found)


def each_hypothesis_is_answered_once_and_as_the_verdicts_say(found: Checkup, name: str) -> None:
    diagnosis = analysis_of(name).diagnosis
    ids = [row.id for row in found.hypotheses]
    assert sorted(ids) == sorted(entry.id for entry in (*MEASURABLE, *UNMEASURED))
    for row in found.hypotheses:
        verdicts = {hypothesis.verdict for hypothesis in diagnosis.hypotheses if hypothesis.id == row.id}
        if row.answer == "cannot":  # a bound on the path may contradict it all the same
            assert verdicts <= {"unmeasured", "contradicted"}, row
        else:
            assert verdicts != {"unmeasured"}, row
        assert (row.answer == "can") == (not row.limits), row
        assert all(limit.reason and set(limit.ranks) <= set(found.ranks) for limit in row.limits)
    assert found.gaps == len(found.failures)


def each_option_exists_in_the_version_that_made_the_file(found: Checkup) -> None:
    version = version_of(found)
    kinds = {file.kind for file in found.files}
    limits = [limit for row in found.hypotheses for limit in row.limits]
    notes = [*found.notes, *(note for file in found.files for note in file.notes)]
    flags = {flag for each in (*limits, *notes) for flag in each.flags}
    for flag in flags:
        assert (flag in NSYS and version >= NSYS[flag]) if "nsys-sqlite" in kinds else flag in TORCH_FLAGS
    words = [limit.close_gap for limit in limits if limit.closable] + [note.close_gap for note in notes]
    for option in re.findall(r"`(?:nsys \w+ )?(--[-a-z]+[=a-z]*)", " ".join(words)):
        assert option in OWN or version >= NSYS[option]
    assert all(flag in advice.flags for advice in found.captures for limit in limits for flag in limit.flags)
    for advice in found.captures:
        check_command(advice, version)


def check_command(advice: CaptureAdvice, version: tuple[int, int]) -> None:
    if advice.kind == "nsys-sqlite":
        for option in re.findall(r"--[^ ]+", " ".join(advice.lines)):
            assert version >= NSYS[option]
        return
    program = ast.parse("\n".join(advice.lines))
    calls = {
        c.func.id: c for c in ast.walk(program) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name)
    }
    assert {keyword.arg for keyword in calls["profile"].keywords} <= TORCH_OPTIONS
    imported = {a.name for n in ast.walk(program) if isinstance(n, ast.ImportFrom) for a in n.names}
    assert {name for name in calls if name[0] != "r"} <= imported


def each_row_of_a_file_is_counted_in_its_class(found: Checkup, name: str) -> None:
    capture = capture_of(name)
    device = sum(len(trace.device) for trace in capture.traces)
    counted = [
        sum(file.records.get(kind, 0) for kind in ("kernel", "copy", "set", "graph")) for file in found.files
    ]
    assert sum(counted) == device
    processes = {id(trace.process): trace.process for trace in capture.traces}.values()
    kinds = ("call", "nvtx", "op", "frame", "os", "overhead")
    host = sum(file.records.get(kind, 0) for file in found.files for kind in kinds)
    assert host == sum(len(process.host) for process in processes)
    for file in found.files:
        assert sorted([*file.records, *file.not_captured]) == sorted(RECORD_CLASSES)


def the_text_is_short(found: Checkup) -> None:
    lines = doctor_text.text(found).splitlines()
    paths = {file.path for file in found.files}
    assert [line for line in lines if len(line) > 110 and not any(path in line for path in paths)] == []
    assert len(lines) < 95
