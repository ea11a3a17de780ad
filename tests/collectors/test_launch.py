"""Which rank a process is, how commands are run and ended, and how two hosts' clocks are bounded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from collectors import clocks, manifest
from collectors.errors import CollectError
from collectors.launch import TIMED_OUT, Identity, identity, note_on_threads, rank_environment, run
from collectors.run_folder import RunFolder
from collectors.session import Session

PYTHON = sys.executable


@pytest.mark.parametrize(
    ("environment", "who"),
    [
        ({}, Identity(0, None, None, "plain")),
        ({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8"}, Identity(3, 1, 8, "torchrun")),
        ({"RANK": "3"}, Identity(3, None, None, "torchrun")),
        (
            {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4"},
            Identity(2, 0, 4, "mpirun"),
        ),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, Identity(1, None, 2, "mpirun")),
        ({"SLURM_PROCID": "5", "SLURM_LOCALID": "1", "SLURM_NTASKS": "16"}, Identity(5, 1, 16, "srun")),
        # torchrun inside an srun allocation: the inner launcher knows
        (
            {"RANK": "9", "WORLD_SIZE": "16", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"},
            Identity(9, None, 16, "torchrun"),
        ),
    ],
)
def test_the_environment_tells_the_rank(environment: dict[str, str], who: Identity) -> None:
    assert identity(environment) == who


def test_a_rank_that_is_no_number_is_refused() -> None:
    with pytest.raises(CollectError, match="RANK: is 'first'"):
        identity({"RANK": "first"})


def test_plain_processes_are_told_apart_like_those_of_torchrun() -> None:
    told = rank_environment(2, 4, {"A": "b"})
    assert identity(told) == Identity(2, 2, 4, "processes")
    assert (told["RANK"], told["LOCAL_RANK"], told["WORLD_SIZE"]) == ("2", "2", "4")
    # a torchrun that one of them starts gives its own ranks
    inner = {**told, "RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "x"}
    assert identity(inner) == Identity(1, 1, 2, "torchrun")


@pytest.mark.parametrize(
    ("count", "environment", "threads"),
    [(2, {}, "1"), (1, {}, None), (2, {"OMP_NUM_THREADS": "6"}, "6")],
)
def test_several_processes_get_one_thread_each_unless_the_user_says_how_many(
    count: int, environment: dict[str, str], threads: str | None
) -> None:
    assert rank_environment(0, count, environment).get("OMP_NUM_THREADS") == threads
    said = note_on_threads(count, environment)
    assert said.startswith("note: OMP_NUM_THREADS=1 in each of the 2 processes") == (threads == "1")
    assert bool(said) == (threads == "1")


@pytest.mark.parametrize(("code", "expected"), [("pass", 0), ("raise SystemExit(7)", 7)])
def test_the_exit_code_is_passed_through(code: str, expected: int) -> None:
    before = time.time_ns()
    outcome = run([PYTHON, "-c", code])
    assert (outcome.exit_code, outcome.timed_out) == (expected, False)
    assert before <= outcome.started_ns <= outcome.ended_ns <= time.time_ns()


def test_a_command_that_a_signal_ended_has_the_shells_code() -> None:
    assert run([PYTHON, "-c", "import os; os.kill(os.getpid(), 9)"]).exit_code == 128 + 9


def test_a_command_that_is_not_there_is_refused() -> None:
    with pytest.raises(CollectError, match="no-such-program: cannot be started"):
        run(["no-such-program"])


def test_past_the_limit_the_whole_group_is_ended(tmp_path: Path) -> None:
    """The child ignores SIGTERM, and so does its own child."""
    child = "import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"
    code = (
        f"import subprocess,sys; p=subprocess.Popen([sys.executable,'-c',{child!r}]);"
        f"open({str(tmp_path / 'pid')!r},'w').write(str(p.pid)); {child}"
    )
    outcome = run([PYTHON, "-c", code], limit_s=1.5, grace_s=0.3)
    assert (outcome.exit_code, outcome.timed_out) == (TIMED_OUT, True)
    pid = int((tmp_path / "pid").read_text())
    for _ in range(100):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    raise AssertionError("the grandchild lives on")


def test_signals_are_passed_on(tmp_path: Path) -> None:
    """The collector gets SIGINT; the command ends in its own way, and its exit code is passed through."""
    command = (
        "import signal,sys,time; signal.signal(2, lambda *_: sys.exit(5)); "
        f"open({str(tmp_path / 'ready')!r},'w'); time.sleep(60)"
    )
    code = (
        f"from collectors.launch import run; raise SystemExit(run([{PYTHON!r}, '-c', {command!r}]).exit_code)"
    )
    process = subprocess.Popen([PYTHON, "-c", code], cwd=Path(__file__).parents[2])
    while not (tmp_path / "ready").exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 5


# -- clocks -----------------------------------------------------------------------------------------


def test_an_anchor_pairs_both_clocks() -> None:
    found = clocks.anchor()
    apart = time.time_ns() - time.monotonic_ns()
    assert 0 <= found.width_ns < 1_000_000
    assert abs(found.wall_ns - found.monotonic_ns - apart) < 5_000_000


def test_one_kernel_has_one_clock(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with clocks.answering(folder.path):
        found, why = clocks.bound(folder.path)
    assert (found, why) == (manifest.ClockBound(0, 0, 0, 0), "")
    assert not list((folder.path / "ranks").glob("clock*"))


def test_messages_bound_the_clocks_of_two_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another kernel by its name: then messages are exchanged, and the true offset, none, lies between."""
    folder = RunFolder(tmp_path / "run")
    with clocks.answering(folder.path):
        monkeypatch.setattr(clocks, "boot_id", lambda: "another kernel")
        found, why = clocks.bound(folder.path)
    assert why == ""
    assert found is not None
    assert found.low_ns <= 0 <= found.high_ns
    assert found.high_ns - found.low_ns < 5_000_000
    assert found.rounds == 64


def test_a_rank_zero_that_does_not_answer_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path / "run")
    assert clocks.bound(folder.path, wait_s=0.1) == (None, "rank 0 did not answer within 0.1 s")
    gone = {"addresses": ["127.0.0.1"], "port": 9, "token": "00" * 16, "boot_id": "another"}
    (folder.path / "ranks" / clocks.SERVER).write_text(json.dumps(gone))
    found, why = clocks.bound(folder.path)
    assert found is None
    assert why == "rank 0 could not be reached at 127.0.0.1"


def test_a_stranger_gets_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path / "run")
    with clocks.answering(folder.path):
        path = folder.path / "ranks" / clocks.SERVER
        where = json.loads(path.read_text())
        path.write_text(json.dumps(where | {"token": "00" * 16}))
        monkeypatch.setattr(clocks, "boot_id", lambda: "another kernel")
        assert clocks.bound(folder.path)[0] is None


# -- sessions ---------------------------------------------------------------------------------------


def test_a_session_writes_down_who_it_is_at_once_and_how_it_ended(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    environment = {"NCCL_ALGO": "Ring", "VLLM_API_KEY": "x", "HOME": "/h"}
    pins = manifest.declared(["batch=8"])
    with Session(
        folder, "torch", command=["python", "--api-key", "x"], pins=pins, environment=environment
    ) as session:
        early = manifest.read(folder.path / "manifest.json")
        assert (early.complete, early.ranks[0].status, early.ranks[0].exit_code) == (False, "running", None)
        folder.trace_path(0, ".json").write_text("{}")
        session.finish(
            "complete", [folder.describe(folder.trace_path(0, ".json"), "kineto-json")], exit_code=0
        )
    whole = manifest.read(folder.path / "manifest.json")
    (record,) = whole.ranks
    assert whole.complete
    assert (record.environment, record.withheld) == ({"NCCL_ALGO": "Ring"}, ["VLLM_API_KEY"])
    assert record.command == ["python", "--api-key", "[redacted]"]
    assert record.pins["batch"].value == "8"
    assert "[redacted]" in record.pins["flags"].value
    assert len(record.anchors) == 2
    assert (
        record.started_ns is not None and record.ended_ns is not None and record.started_ns <= record.ended_ns
    )


def test_ranks_compare_their_clocks_while_they_start(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")

    def rank(number: int) -> None:
        environment = {"RANK": str(number), "WORLD_SIZE": "3"}
        with Session(folder, "torch", command=["x"], pins={}, environment=environment) as session:
            barrier.wait()
            session.finish("complete")

    barrier = threading.Barrier(3)
    threads = [threading.Thread(target=rank, args=(number,)) for number in (2, 1, 0)]
    for thread in threads:
        thread.start()
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    whole = manifest.read(folder.path / "manifest.json")
    assert whole.complete
    assert [record.clock_bound for record in whole.ranks] == [None, *[manifest.ClockBound(0, 0, 0, 0)] * 2]
