"""Captures with the real torch.profiler, in one process: window, record, and every way a block can end."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from analyzer.pipeline import analyze, read
from collectors import manifest
from collectors.engines import ENGINES
from collectors.errors import CollectError
from collectors.manifest import Inflation, Interval, RankRecord
from collectors.torch_profiler import Capture, capture
from collectors.torch_profiler.step_times import StepTimes, interval_of_median
from tests.collectors.torch_programs import FULL_DISK, LOOP

torch = pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
FILE = "rank0.pt.trace.json.gz"
MS = 1_000_000


@pytest.fixture(autouse=True)
def plain_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """One rank, nothing said by the environment, one thread."""
    for name in [*(n for n in os.environ if n.startswith("TRACEBOUND_")), "RANK", "WORLD_SIZE", "LOCAL_RANK"]:
        monkeypatch.delenv(name, raising=False)
    torch.set_num_threads(1)


def loop(steps: Capture, count: int) -> None:
    x = torch.ones(8, 8)
    for _ in range(count):
        x = torch.relu(x @ x) / 8
        steps.step()


def record(folder: Path, rank: int = 0) -> RankRecord:
    return manifest.read_record(folder / "ranks" / f"rank{rank}.json")


def steps_found(file: Path) -> tuple[str, ...]:
    """Names of the steps that the analyzer finds."""
    (trace,) = read([file]).traces
    names = [trace.process.names[code] for code in trace.process.host.name]
    return tuple(name for name in names if name.startswith("ProfilerStep#") and name[13:].isdecimal())


def left_over(folder: Path) -> list[str]:
    """Files that belong to no finished capture."""
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def started(folder: Path | None, program: str = LOOP, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *([] if folder is None else [str(folder)])],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
    )


# -- the window -------------------------------------------------------------------------------------


def test_a_window_of_steps_becomes_a_file_and_a_record(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with capture(run, wait=5, warmup=2, active=6, pins={"batch": "8"}) as steps:
        loop(steps, 15)
    assert steps.count == 15
    assert steps_found(run / FILE) == tuple(f"ProfilerStep#{number}" for number in range(7, 13))
    found = analyze(read([run / FILE])).diagnosis.steps
    assert (found.rule, found.count) == ("profiler-step", 6)
    whole = manifest.read(run / "manifest.json")
    (rank,) = whole.ranks
    assert whole.complete
    assert whole.pins["batch"].value == "8"
    assert (rank.collector, rank.status, rank.steps, rank.captured_steps) == (
        "torch",
        "complete",
        "marked",
        6,
    )
    assert (rank.profiler, rank.profiler_version) == ("torch.profiler", torch.__version__)
    assert rank.versions["torch"] == torch.__version__
    assert rank.pins["runtime"].value.split()[0] in ENGINES
    assert [(file.path, file.kind) for file in rank.files] == [(FILE, "kineto-json")]
    assert rank.files[0].bytes == (run / FILE).stat().st_size
    assert not left_over(run)


def test_plain_and_profiled_steps_are_timed(tmp_path: Path) -> None:
    """Of 5 plain steps the first is left out."""
    with capture(tmp_path, wait=5, warmup=1, active=4) as steps:
        loop(steps, 10)
    rank = record(tmp_path)
    if rank.inflation is None:  # how long steps take is the machine's affair
        assert any("still warming up" in note for note in rank.notes)
    else:
        assert (rank.inflation.plain_steps, rank.inflation.profiled_steps) == (4, 4)
        assert rank.inflation.plain_step_ns > 0


@pytest.mark.parametrize(
    ("plain", "profiled", "expected", "said"),
    [
        (  # the intervals lie apart: nothing to note
            [100, 103, 101, 104, 102, 105],
            [*range(150, 156), 900],
            Inflation(153, 102, 7, 6, Interval(150, 900), Interval(100, 105)),
            "",
        ),
        (  # one plain step took as long as a profiled one
            [MS, MS, MS, MS, MS, 2 * MS],
            [2 * MS] * 6,
            Inflation(2 * MS, MS, 6, 6, Interval(2 * MS, 2 * MS), Interval(MS, 2 * MS)),
            "profiling cost not told from chance: steps took 1.000 ms (median of 6, 95 % interval 1.000 to 2.000) "
            "before the window and 2.000 ms (median of 6, 95 % interval 2.000 to 2.000) in it; the intervals "
            "overlap: more steps (--wait, --active) would narrow them",
        ),
        (
            [2 * MS] * 6,
            [MS] * 6,
            None,
            "profiling cost not measured: steps took 2.000 ms (median of 6, 95 % interval 2.000 to 2.000) before "
            "the window and 1.000 ms (median of 6, 95 % interval 1.000 to 1.000) in it; a profiler makes no step "
            "faster, so the loop was still warming up in the plain steps, or something else slowed them: raise --wait, "
            "so that they come later",
        ),
        (
            [MS, MS, MS],
            [2 * MS] * 6,
            Inflation(2 * MS, MS, 6, 3, Interval(2 * MS, 2 * MS), None),
            "profiling cost not certain: steps took 1.000 ms (median of 3, no interval) before the window and "
            "2.000 ms (median of 6, 95 % interval 2.000 to 2.000) in it; an interval takes 6 of each: raise --wait",
        ),
        ([100] * 3, [96] * 3, Inflation(96, 100, 3, 3), "raise --wait and --active"),
        ([100] * 3, [94] * 3, None, "a profiler makes no step faster"),
        ([100, 100], [150] * 9, None, "2 plain and 9 profiled steps were timed, 3 of each are needed"),
    ],
)
def test_what_profiling_costs_is_told_with_its_intervals_and_claimed_where_they_lie_apart(
    plain: list[int], profiled: list[int], expected: Inflation | None, said: str
) -> None:
    times = StepTimes()
    times.plain_ns, times.profiled_ns = plain, profiled
    found, why = times.inflation()
    assert found == expected
    assert said in why
    assert bool(said) == bool(why)
    assert (found is not None and bool(found.costs)) == (why == "")


@pytest.mark.parametrize(
    ("count", "expected"),
    [(5, None), (6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (20, (6, 15)), (100, (40, 61))],
)
def test_the_interval_of_a_median_is_that_of_the_tables_for_the_sign_test(
    count: int, expected: tuple[int, int] | None
) -> None:
    """David and Nagaraja, Order Statistics, table of distribution-free intervals at 95 %."""
    found = interval_of_median(list(range(count, 0, -1)))
    assert (None if found is None else (found.low_ns, found.high_ns)) == expected


@pytest.mark.parametrize(("wait", "active", "plain"), [(0, 5, 0), (3, 5, 2), (9, 2, 8)])
def test_with_too_few_steps_the_cost_is_unknown_and_the_reason_said(
    wait: int, active: int, plain: int, tmp_path: Path
) -> None:
    with capture(tmp_path, wait=wait, warmup=1, active=active) as steps:
        loop(steps, wait + 1 + active)
    rank = record(tmp_path)
    assert (rank.status, rank.inflation) == ("complete", None)
    why = f"profiling cost not measured: {plain} plain and {active} profiled steps were timed"
    assert any(note.startswith(why) for note in rank.notes)


def test_shapes_stacks_and_memory_are_recorded_where_asked_for(tmp_path: Path) -> None:
    signs = ("Input Dims", "python_function", "[memory]")
    for name, wanted in (("with", True), ("without", False)):
        with capture(
            tmp_path / name, wait=0, warmup=1, active=1, shapes=wanted, stacks=wanted, memory=wanted
        ) as steps:
            loop(steps, 2)
        text = gzip.decompress((tmp_path / name / FILE).read_bytes()).decode()
        assert [sign in text for sign in signs] == [wanted] * 3


def test_without_warmup_steps_the_record_says_so(tmp_path: Path) -> None:
    with capture(tmp_path, wait=0, warmup=0, active=2) as steps:
        loop(steps, 2)
    assert steps_found(tmp_path / FILE) == ("ProfilerStep#0", "ProfilerStep#1")
    assert any(note.startswith("no warm-up steps") for note in record(tmp_path).notes)


def test_without_a_folder_steps_are_only_counted() -> None:
    program = (
        "import sys\nfrom collectors.torch_profiler import capture\n"
        "with capture() as steps:\n    steps.step(); steps.step()\n"
        "print(steps.count, 'torch' in sys.modules)"
    )
    assert started(None, program).stdout == "2 False\n"


# -- the environment --------------------------------------------------------------------------------


def test_the_environment_wins_over_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEBOUND_RUN", str(tmp_path / "told"))
    monkeypatch.setenv("TRACEBOUND_WAIT", "1")
    monkeypatch.setenv("TRACEBOUND_ACTIVE", "2")
    monkeypatch.setenv("TRACEBOUND_PINS", '{"model": "m"}')
    with capture(tmp_path / "given", wait=5, warmup=1, active=20, pins={"model": "n", "batch": "1"}) as steps:
        loop(steps, 5)
    assert not (tmp_path / "given").exists()
    assert steps_found(tmp_path / "told" / FILE) == ("ProfilerStep#2", "ProfilerStep#3")
    pins = record(tmp_path / "told").pins
    assert (pins["model"].value, pins["batch"].value) == ("m", "1")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("TRACEBOUND_ACTIVE", "many", "'many', not a number of steps"),
        ("TRACEBOUND_ACTIVE", "0", "is no cycle of steps"),
        ("TRACEBOUND_STACKS", "yes", "set 1 or 0"),
        ("TRACEBOUND_PINS", "model=m", "is no JSON"),
        ("TRACEBOUND_PINS", '{"colour": "red"}', "'colour' is no name of a pin"),
    ],
)
def test_what_the_environment_cannot_mean_is_refused(
    name: str, value: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(CollectError, match=words):
        capture()


def test_an_environment_that_disagrees_with_torch_distributed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = torch.distributed
    distributed.init_process_group(
        "gloo", store=distributed.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1
    )
    try:
        monkeypatch.setenv("RANK", "1")
        with (
            pytest.raises(CollectError, match="rank: is 1 of None by the environment"),
            capture(tmp_path / "run"),
        ):
            pass
    finally:
        distributed.destroy_process_group()
    assert not list((tmp_path).glob("run/ranks/*.json"))


def test_torch_distributed_tells_what_the_environment_does_not(tmp_path: Path) -> None:
    """Initialized inside the block, before the window."""
    distributed = torch.distributed
    with capture(tmp_path / "run", wait=1, warmup=1, active=1) as steps:
        assert record(tmp_path / "run").world_size is None
        distributed.init_process_group(
            "gloo", store=distributed.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1
        )
        try:
            loop(steps, 3)
        finally:
            distributed.destroy_process_group()
    assert (record(tmp_path / "run").world_size, record(tmp_path / "run").status) == (1, "complete")


def test_a_rank_that_is_another_when_the_window_begins_ends_the_capture_not_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        pytest.raises(CollectError, match="was 0 when capture\\(\\) began, is 1 now"),
        capture(tmp_path, wait=1, warmup=1, active=1) as steps,
    ):
        monkeypatch.setenv("RANK", "1")
        loop(steps, 3)
        assert steps.count == 3
    assert record(tmp_path).status == "failed"


# -- ends -------------------------------------------------------------------------------------------


def test_a_loop_that_ends_early_leaves_its_whole_steps(tmp_path: Path) -> None:
    """The step that had begun when the loop ended is in the file, but not under a step's name."""
    with capture(tmp_path, wait=1, warmup=1, active=20) as steps:
        loop(steps, 6)
    assert steps_found(tmp_path / FILE) == tuple(f"ProfilerStep#{number}" for number in (2, 3, 4, 5))
    rank = record(tmp_path)
    assert (rank.status, rank.captured_steps) == ("complete", 4)
    assert "the loop ended after 6 steps, with 4 of 20 recorded (wait 1, warmup 1)" in rank.notes


@pytest.mark.parametrize("count", [0, 2, 3])
def test_a_loop_that_ends_before_the_window_has_captured_nothing(count: int, tmp_path: Path) -> None:
    with capture(tmp_path, wait=2, warmup=1, active=2) as steps:
        loop(steps, count)
    rank = record(tmp_path)
    assert (rank.status, rank.files, rank.captured_steps) == ("failed", [], None)
    assert rank.notes[-1] == f"the loop ended after {count} steps, with 0 of 2 recorded (wait 2, warmup 1)"
    assert not (tmp_path / FILE).exists()
    assert not left_over(tmp_path)


@pytest.mark.parametrize("count", [4, 9])
def test_an_exception_of_the_program_passes_and_the_capture_is_kept(count: int, tmp_path: Path) -> None:
    """In the middle of the window, and after it."""
    with (
        pytest.raises(KeyError, match="the program's"),
        capture(tmp_path, wait=1, warmup=1, active=4) as steps,
    ):
        loop(steps, count)
        raise KeyError("the program's")
    rank = record(tmp_path)
    assert (rank.status, rank.captured_steps) == ("failed", min(count - 2, 4))
    assert len(steps_found(tmp_path / FILE)) == min(count - 2, 4)
    assert "the program's loop was left by KeyError" in rank.notes


def test_an_exit_that_says_success_is_none_of_failure(tmp_path: Path) -> None:
    with pytest.raises(SystemExit), capture(tmp_path, wait=0, warmup=1, active=2) as steps:
        loop(steps, 3)
        raise SystemExit(0)
    assert record(tmp_path).status == "complete"


def test_a_killed_process_leaves_a_running_record_and_its_place_to_the_next(tmp_path: Path) -> None:
    killed = started(tmp_path, SIGNAL="9", SIGNAL_AT="2")
    assert killed.returncode == -signal.SIGKILL
    rank = record(tmp_path)
    assert (rank.status, rank.ended_ns) == ("running", None)
    assert not manifest.read(tmp_path / "manifest.json").complete
    with capture(tmp_path, wait=0, warmup=1, active=2) as steps:
        loop(steps, 3)
    assert record(tmp_path).status == "complete"


def test_killed_after_the_window_the_capture_is_there(tmp_path: Path) -> None:
    killed = started(tmp_path, SIGNAL="9", SIGNAL_AT="11")
    assert killed.returncode == -signal.SIGKILL
    assert len(steps_found(tmp_path / FILE)) == 5
    assert (record(tmp_path).status, record(tmp_path).captured_steps) == ("running", 5)


def test_sigterm_ends_the_program_with_what_was_captured(tmp_path: Path) -> None:
    ended = started(tmp_path, SIGNAL="15", SIGNAL_AT="7")
    assert ended.returncode == 128 + signal.SIGTERM
    assert "work done" not in ended.stdout
    assert (record(tmp_path).status, record(tmp_path).captured_steps) == ("killed", 2)
    assert len(steps_found(tmp_path / FILE)) == 2


def test_a_programs_own_handler_of_sigterm_stays(tmp_path: Path) -> None:
    def own(*_: object) -> None:
        seen.append("own")

    seen: list[str] = []
    before = signal.signal(signal.SIGTERM, own)
    try:
        with capture(tmp_path, wait=0, warmup=1, active=1) as steps:
            os.kill(os.getpid(), signal.SIGTERM)
            loop(steps, 2)
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == ["own"]
    assert record(tmp_path).status == "complete"


def test_the_handler_of_sigterm_is_taken_away_again(tmp_path: Path) -> None:
    with capture(tmp_path, wait=0, warmup=1, active=1) as steps:
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        loop(steps, 2)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


# -- misuse and faults ------------------------------------------------------------------------------


def test_nested_captures_are_refused(tmp_path: Path) -> None:
    with capture(tmp_path / "a", wait=0, warmup=1, active=1) as steps:
        with pytest.raises(CollectError, match="one is running in this process"), capture(tmp_path / "b"):
            pass
        loop(steps, 2)
    assert record(tmp_path / "a").status == "complete"
    assert not (tmp_path / "b").exists()


def test_a_capture_is_used_once(tmp_path: Path) -> None:
    once = capture(tmp_path, wait=0, warmup=1, active=1)
    with once:
        loop(once, 2)
    with pytest.raises(CollectError, match="was used already"), once:
        pass


def test_a_folder_that_holds_this_ranks_capture_is_refused(tmp_path: Path) -> None:
    with capture(tmp_path, wait=0, warmup=1, active=1) as steps:
        loop(steps, 2)
    with pytest.raises(CollectError, match="holds the capture of rank 0 already"), capture(tmp_path):
        pass


def test_a_rank_that_another_process_captures_is_refused(tmp_path: Path) -> None:
    """The record of a process that still runs: this test's parent."""
    from dataclasses import replace

    with capture(tmp_path, wait=0, warmup=1, active=1) as steps:
        loop(steps, 2)
    other = replace(record(tmp_path), status="running", pid=os.getppid())
    (tmp_path / "ranks" / "rank0.json").write_text(manifest.encode_record(other))
    with (
        pytest.raises(CollectError, match=f"process {os.getppid()} captures rank 0 into it"),
        capture(tmp_path),
    ):
        pass


def test_step_outside_the_block_warns_and_counts_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    steps = capture(tmp_path, wait=0, warmup=1, active=1)
    steps.step()
    with steps:
        loop(steps, 2)
    steps.step()
    assert steps.count == 2
    assert [r.getMessage() for r in caplog.records] == ["step() outside the block of capture(): not counted"]


def test_a_folder_that_cannot_be_written_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CollectError, match="cannot be written"), capture(tmp_path / "file" / "run"):
        pytest.fail("the block ran")


def test_a_full_disk_ends_the_capture_not_the_program(tmp_path: Path) -> None:
    done = started(tmp_path, FULL_DISK)
    assert "all 50 steps were done" in done.stdout
    assert done.returncode == 1
    assert f"CollectError: {tmp_path / FILE}: " in done.stderr
    assert not (tmp_path / FILE).exists()
    assert not left_over(tmp_path)
    rank = record(tmp_path)
    assert (rank.status, rank.files) == ("failed", [])
    assert rank.notes[-1].startswith("the capture failed: ")


@pytest.mark.parametrize("ends", [None, KeyError])
def test_beside_another_profiler_the_program_and_that_profiler_go_on(
    ends: type[Exception] | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def block() -> None:
        with profile, capture(tmp_path, wait=1, warmup=0, active=2) as steps:
            loop(steps, 4)
            reached.append(steps.count)
            if ends is not None:
                raise ends

    reached: list[int] = []
    profile = torch.profiler.profile()
    with pytest.raises(ends or CollectError) as caught:
        block()
    assert reached == [4]
    told = str(caught.value) if ends is None else caught.value.__notes__[0]
    assert "torch.profiler: another profiler records in this process" in told
    assert sum(event.name == "aten::relu" for event in profile.events()) == 4
    assert record(tmp_path).status == "failed"
    assert "the program goes on" in caplog.text


def test_a_profiler_that_begins_inside_the_window_ends_the_capture_not_the_program(tmp_path: Path) -> None:
    reached: list[int] = []
    with (
        pytest.raises(CollectError, match="another profiler ended the recording"),
        capture(tmp_path, wait=0, warmup=1, active=4) as steps,
    ):
        loop(steps, 2)
        with torch.profiler.profile():
            loop(steps, 1)
        loop(steps, 3)
        reached.append(steps.count)
    assert reached == [6]
    assert record(tmp_path).status == "failed"
    assert not (tmp_path / FILE).exists()


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Callable[[], None] | None:
    """A test that left a capture running would spoil the next one's."""
    from collectors.torch_profiler import recorder

    assert not recorder._entered
    return None
