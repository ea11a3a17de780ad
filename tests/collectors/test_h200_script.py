"""The prepared run for a GPU machine, rehearsed on the CPU: here it tests itself, not a GPU.

On a machine with CUDA the same tests run the tiny model there, graph and all.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]
STEPS = 6


def started(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRACEBOUND_")}
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "h200.py"), str(folder), "--tiny", *options],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import h200

    return h200


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("h200")
    ended = started(folder, "--steps", str(STEPS))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "all figures" in ended.stdout
    return folder


def figures(folder: Path) -> dict[str, Any]:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    found: dict[str, Any] = json.loads((folder / "h200.json").read_text(), parse_constant=refuse)
    return found


def test_the_run_says_where_it_ran_and_what_it_lacked(rehearsal: Path) -> None:
    found = figures(rehearsal)
    assert found["failed"] == []
    assert found["torch"]["torch"] == torch.__version__
    assert found["copy_bandwidth_seen_elsewhere"]["bytes_per_s"] == 4.3e12
    if torch.cuda.is_available():
        assert found["ran_on"] == "CUDA"
        assert found["same_tokens"] is True
        return
    assert "CPU" in found["ran_on"]
    assert found["copy_bandwidth"]["bytes_per_s"] is None
    assert found["graph"] == {"absent": "torch finds no CUDA device"}
    assert found["same_tokens"] is None
    assert "absent" in found["nsys"]


def test_eager_steps_are_timed_plain_and_profiled_and_the_trace_holds_them(rehearsal: Path) -> None:
    eager = figures(rehearsal)["eager"]
    assert eager["plain"]["steps"] == eager["profiled"]["steps"] == STEPS
    assert eager["plain"]["least_ns"] <= eager["plain"]["median_ns"] <= eager["plain"]["most_ns"]
    assert eager["inflation"] == pytest.approx(
        eager["profiled"]["median_ns"] / eager["plain"]["median_ns"], rel=1e-3
    )
    (trace,) = eager["traces"]
    path = rehearsal / trace["path"]
    assert trace["bytes"] == path.stat().st_size
    with gzip.open(path, "rt") as file:
        events = json.load(file)["traceEvents"]
    marks = {event["name"] for event in events if event.get("name", "").startswith("ProfilerStep#")}
    assert len(marks) == trace["marked_steps"] == STEPS
    assert trace["events"]["cpu_op"] == sum(event.get("cat") == "cpu_op" for event in events) > 10 * STEPS
    if not torch.cuda.is_available():
        assert trace["launches_per_step"] is trace["kernels_per_step"] is None


def test_a_folder_that_holds_a_run_is_left_alone(rehearsal: Path) -> None:
    before = (rehearsal / "h200.json").read_bytes()
    ended = started(rehearsal)
    assert ended.returncode == 2
    assert "holds a run already" in ended.stderr
    assert (rehearsal / "h200.json").read_bytes() == before


def test_parts_that_fail_are_said_and_the_rest_goes_on(tmp_path: Path) -> None:
    """No part can end within a hundredth of a second."""
    ended = started(tmp_path, "--limit", "0.01")
    assert ended.returncode == 1
    found = figures(tmp_path)
    assert found["failed"] == ["copy", "eager", "graph"]
    assert found["eager"] == {"failed": "did not end within 0.01 s"}
    assert found["torch"] is None
    assert found["same_tokens"] is None


def test_tables_that_an_export_lacks_are_null(tmp_path: Path, script: ModuleType) -> None:
    with sqlite3.connect(tmp_path / "x.sqlite") as connection:
        connection.execute("create table NVTX_EVENTS (start integer)")
        connection.execute("insert into NVTX_EVENTS values (1)")
    connection.close()
    found = script.rows(tmp_path / "x.sqlite")
    assert found["NVTX_EVENTS"] == 1
    assert found["CUPTI_ACTIVITY_KIND_KERNEL"] is None


def test_launches_and_kernels_are_counted_by_step(tmp_path: Path, script: ModuleType) -> None:
    """Two steps: three launches by either interface, one graph of two kernels; other calls are no launches."""
    import decode_parts

    calls = [
        ("cuda_runtime", "cudaLaunchKernel"),
        ("cuda_runtime", "cudaLaunchKernelExC"),
        ("cuda_driver", "cuLaunchKernelEx"),
        ("cuda_runtime", "cudaGraphLaunch"),
        ("cuda_runtime", "cudaStreamSynchronize"),
    ]
    rows = [
        *calls,
        *[("kernel", "k")] * 5,
        ("user_annotation", "ProfilerStep#6"),
        ("user_annotation", "ProfilerStep#7"),
    ]
    events = [{"ph": "X", "cat": cat, "name": name, "ts": 0, "dur": 1} for cat, name in rows]
    path = tmp_path / "t.trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": [*events, {"ph": "M", "name": "m"}]}).encode()))
    found = decode_parts.counted(path, tmp_path, 2)
    assert (found["launches_per_step"], found["graph_launches_per_step"], found["kernels_per_step"]) == (
        1.5,
        0.5,
        2.5,
    )
    assert (found["marked_steps"], found["path"]) == (2, "t.trace.json.gz")


def test_the_model_decodes_the_same_each_time_and_counts_its_bytes(script: ModuleType) -> None:
    from decode_model import TINY, Decoder

    device = "cuda" if torch.cuda.is_available() else "cpu"
    first, second = Decoder(TINY, device), Decoder(TINY, device)
    tokens = [first.step() for _ in range(TINY.context + 5)]
    assert tokens == [second.step() for _ in range(TINY.context + 5)]
    assert len(set(tokens)) > 5
    assert int(first.place.item()) == 5
    # head and norm; per layer qkv, out, gate and up, down, two norms; 2 bytes each
    assert first.weights_bytes() == 2 * (256 * 64 + 64 + 2 * (4 * 64 * 64 + 3 * 128 * 64 + 2 * 64))
    assert first.cache_bytes() == 2 * 2 * 2 * 64 * 32
