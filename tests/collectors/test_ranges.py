"""Ranges go to what records, under the names that the analyzer knows, and need nothing where nothing records."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from analyzer.pipeline import analyze, read
from analyzer.reconstruct.step_markers import MARKED, OUTPUT_RANGES, phase_of
from collectors import ranges
from collectors.nsys.installed import ask

ROOT = Path(__file__).parents[2]


def python(code: str, *options: str, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [sys.executable, *options, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (ranges.step(7), "tracebound.step#7"),
        (ranges.step(7, batch=8), "tracebound.step[bs=8]#7"),
        (ranges.step("first"), "tracebound.step:first"),
        (ranges.output(), "tracebound.output"),
        (ranges.phase("decode"), "tracebound.phase[decode]"),
    ],
)
def test_names(made: ranges.Range | ranges.Phase, name: str) -> None:
    assert made.name == name


def test_steps_carry_the_phase_around_them() -> None:
    with ranges.phase("prefill"):
        assert ranges.step(1, batch=2).name == "tracebound.step[prefill bs=2]#1"
        with ranges.phase("decode"):
            assert ranges.step(1).name == "tracebound.step[decode]#1"
        assert ranges.step(1).name == "tracebound.step[prefill]#1"
    assert ranges.step(1).name == "tracebound.step#1"


def test_a_phase_ends_with_an_exception_too() -> None:
    with pytest.raises(KeyError), ranges.phase("decode"), ranges.step(0):
        raise KeyError
    assert ranges.step(1).name == "tracebound.step#1"


def test_a_word_that_is_no_phase_is_refused() -> None:
    with pytest.raises(ValueError, match="'warmup' is no phase; use one of prefill, decode, mixed"):
        ranges.phase("warmup")


@pytest.mark.parametrize("word", ranges.PHASES)
def test_the_analyzer_knows_the_names(word: str) -> None:
    with ranges.phase(word):
        name = ranges.step(12, batch=4).name
    assert MARKED.pattern.match(name)
    assert phase_of(name) == word
    assert OUTPUT_RANGES.match(ranges.output().name)


USE = """
import sys
from collectors import ranges
from collectors.nsys.installed import ask
for number in range(3):
    with ranges.phase("decode"), ranges.step(number), ranges.output():
        pass
print([name for name in ("torch", "nvtx") if name in sys.modules])
"""


def test_nothing_is_imported_where_nothing_records() -> None:
    assert python(USE) == "[]\n"


def test_a_listening_tool_without_any_nvtx_is_said_once() -> None:
    """``-S``: no module but the standard library's can be imported."""
    said = python(USE, "-S", environment={"NVTX_INJECTION64_PATH": "/nowhere.so"})
    assert said.splitlines() == ["[]", "ranges are not recorded as NVTX: install nvtx (pip install nvtx)"]


def test_torchs_profiler_records_the_ranges_inside_its_window_only(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(8, 8)

    def work(first: int) -> None:
        for number in range(first, first + 4):
            kind = "prefill" if number % 4 == 0 else "decode"
            with ranges.phase(kind), ranges.step(number, batch=8):
                x @ x
                with ranges.output():
                    x.sum().item()

    with ranges.phase("mixed"):  # open before the recording begins: not recorded itself, but known
        work(0)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            work(4)
            with ranges.step(8):
                x @ x
        work(9)
    profile.export_chrome_trace(str(tmp_path / "rank0.pt.trace.json"))
    capture = read([tmp_path / "rank0.pt.trace.json"])
    steps = analyze(capture).diagnosis.steps
    assert steps.rule == "marked-range"
    (trace,) = capture.traces
    names = [trace.process.names[code] for code in trace.process.host.name]
    found = [name for name in names if name.startswith("tracebound.step")]
    assert found == [
        "tracebound.step[prefill bs=8]#4",
        *[f"tracebound.step[decode bs=8]#{number}" for number in (5, 6, 7)],
        "tracebound.step[mixed]#8",
    ]
    assert names.count("tracebound.output") == 4


@pytest.fixture(scope="module")
def nsys_capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with ranges under the real nsys, as SQLite."""
    pytest.importorskip("nvtx")
    if shutil.which("nsys") is None:
        pytest.skip("nsys is not installed")
    if ask().version < "2023" and tuple(map(int, metadata.version("nvtx").split(".")[:3])) > (0, 2, 11):
        pytest.skip("this nsys records no ranges of an nvtx newer than 0.2.11")
    folder = tmp_path_factory.mktemp("nsys")
    program = USE.replace("pass", "sum(range(1000))")
    words = ["nsys", "-o", "run", "--", sys.executable, "-c", program]
    ended = subprocess.run(
        [sys.executable, "-m", "collectors", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}, cwd=folder,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout
    return folder / "run" / "rank0.sqlite"


def test_nsight_systems_records_the_ranges_as_nvtx(nsys_capture: Path) -> None:
    capture = read([nsys_capture])
    assert analyze(capture).diagnosis.steps.rule == "marked-range"
    (trace,) = capture.traces
    names = [trace.process.names[code] for code in trace.process.host.name]
    assert [name for name in names if "step" in name] == [f"tracebound.step[decode]#{n}" for n in range(3)]
    assert names.count("tracebound.output") == names.count("tracebound.phase[decode]") == 3
