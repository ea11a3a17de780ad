"""``python -m collectors torch`` around real programs: one process, several, and gloo ranks under torchrun."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from analyzer.pipeline import analyze, read
from collectors import manifest
from collectors.cli import main
from collectors.launch import identity
from collectors.processes import RankEnd, first_failure, run_ranks
from tests.collectors.torch_programs import LOOP, RANKS

ROOT = Path(__file__).parents[2]
CYCLE = ("--wait", "4", "--warmup", "1", "--active", "5")
STEPS = tuple(f"ProfilerStep#{number}" for number in range(5, 10))


def collect(
    folder: Path, *words: str, options: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "collectors", "torch", "-o", str(folder), *options, "--", *words],
        env={**clean(), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
    )


def clean() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE") and "TRACEBOUND" not in k}


def torchrun(folder: Path, ranks: int, **environment: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("torch.distributed.run")
    program = folder.with_suffix(".py")
    program.write_text(RANKS)
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks))
    return collect(
        folder,
        *(sys.executable, *launcher, str(program)),
        options=(*CYCLE, "--pin", "batch=4"),
        **environment,
    )


# -- ranks under torchrun ---------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[2, 4])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    folder = tmp_path_factory.mktemp("ranks") / "run"
    done = torchrun(folder, request.param)
    assert done.returncode == 0, done.stderr
    return folder, request.param


def test_every_rank_leaves_a_record_and_a_file(run: tuple[Path, int]) -> None:
    folder, ranks = run
    whole = manifest.read(folder / "manifest.json")
    assert whole.complete
    assert whole.pins["batch"] == manifest.Pin("4", "declared")
    assert [record.rank for record in whole.ranks] == list(range(ranks))
    for record in whole.ranks:
        assert (record.world_size, record.local_rank, record.launcher) == (ranks, record.rank, "torchrun")
        assert [file.path for file in record.files] == [f"rank{record.rank}.pt.trace.json.gz"]
        assert (record.captured_steps, record.steps) == (5, "marked")
        assert record.notes[-1].startswith("profiling cost not ")  # three plain steps have no interval
        if record.inflation is None:  # they may be slower than profiled ones, too, in a loop that just began
            assert "still warming up" in record.notes[-1]
        else:
            assert (record.inflation.plain_steps, record.inflation.costs) == (3, None)
    assert [record.clock_bound for record in whole.ranks] == [
        None,
        *[manifest.ClockBound(0, 0, 0, 0)] * (ranks - 1),
    ]
    names = {path.name for path in folder.iterdir()}
    assert names == {"ranks", "manifest.json", *(f"rank{rank}.pt.trace.json.gz" for rank in range(ranks))}


def test_the_analyzer_reads_them_with_their_ranks_and_steps(run: tuple[Path, int]) -> None:
    folder, ranks = run
    capture = read(sorted(folder.glob("*.gz")))
    assert capture.ranks == tuple(range(ranks))
    assert [trace.world_size for trace in capture.traces] == [ranks] * ranks
    found = analyze(read(folder)).diagnosis
    assert (found.steps.rule, found.steps.count) == ("profiler-step", 5)
    assert found.boundary == "host"
    assert [rank.clock.offset_ns for rank in found.ranks] == [0] * ranks
    assert all(rank.device_span is None and len(rank.windows) == 5 for rank in found.ranks)
    assert found.rank_basis == "the run's manifest"
    assert found.run is not None
    assert found.run.complete
    for trace in capture.traces:
        names = [trace.process.names[code] for code in trace.process.host.name]
        assert tuple(name for name in names if name.startswith("ProfilerStep#")) == STEPS
        assert sum(name == "gloo:all_reduce" for name in names) == 5


def test_one_killed_rank_leaves_the_others_captures(tmp_path: Path) -> None:
    done = torchrun(tmp_path / "run", 2, KILLED_RANK="1")
    assert done.returncode == 1  # torchrun's
    assert "note: rank 1 captured nothing (the process ended without finishing its record)" in done.stderr
    whole = manifest.read(tmp_path / "run" / "manifest.json")
    first, second = whole.ranks
    assert not whole.complete
    assert (second.status, second.files) == ("killed", [])
    assert first.status in ("failed", "killed")  # by the broken connection, or by torchrun's SIGTERM
    assert first.captured_steps == 3
    capture = read(tmp_path / "run")
    assert (capture.ranks, capture.missing_ranks) == ((0,), (1,))
    found = analyze(capture).diagnosis
    assert found.steps.count == 3
    assert found.run is not None
    assert not found.run.complete
    assert any(note.startswith("Rank 1: its capture was cut off") for note in found.notes)


# -- plain programs ---------------------------------------------------------------------------------


def test_plain_processes_are_ranks(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    done = collect(tmp_path / "run", sys.executable, "-c", LOOP, options=("--processes", "2"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("work done after 12 steps") == 2
    whole = manifest.read(tmp_path / "run" / "manifest.json")
    assert whole.complete
    assert [(r.rank, r.world_size, r.exit_code) for r in whole.ranks] == [(0, 2, 0), (1, 2, 0)]
    assert [record.launcher for record in whole.ranks] == ["processes", "processes"]
    assert [(record.ended_ns or 0) > (record.started_ns or 0) for record in whole.ranks] == [True, True]
    assert done.stderr.endswith(
        f"ranks 0 and 1 captured, 5 steps; next: tracebound diagnose {tmp_path / 'run'}\n"
    )
    capture = read(sorted((tmp_path / "run").glob("*.gz")))
    assert capture.ranks == (0, 1)


def test_a_program_without_the_three_lines_is_told_which(tmp_path: Path) -> None:
    done = collect(tmp_path, sys.executable, "-c", "pass")
    assert done.returncode == 2
    assert done.stderr.startswith("error: capture: no rank called capture(); next: add these lines")
    assert "steps.step()" in done.stderr
    assert not list(tmp_path.glob("ranks/*.json"))


def test_the_code_of_a_program_that_fails_comes_first_and_no_empty_folder_is_left(tmp_path: Path) -> None:
    done = collect(tmp_path / "run", sys.executable, "-c", "raise SystemExit(7)")
    assert done.returncode == 7
    assert done.stderr == (
        "nothing was captured (no rank called capture()); the command ended with exit code 7; "
        "next: see its messages above, and run it without the collector\n"
    )
    assert not (tmp_path / "run").exists()


def test_a_program_that_fails_after_its_capture_has_its_code_in_the_record_and_the_last_line(
    tmp_path: Path,
) -> None:
    pytest.importorskip("torch")
    done = collect(tmp_path / "run", sys.executable, "-c", f"{LOOP}\nsys.exit(7)")
    assert done.returncode == 7
    last = done.stderr.splitlines()[-1]
    assert last.startswith(
        "rank 0 captured, 5 steps; the command ended with exit code 7; next: tracebound diagnose"
    )
    (record,) = manifest.read(tmp_path / "run" / "manifest.json").ranks
    assert (record.status, record.exit_code) == ("complete", 7)


def test_of_ranks_that_fail_the_first_is_named_and_its_code_is_the_commands(tmp_path: Path) -> None:
    """Rank 1 leaves with 7; rank 0 leaves 0.3 s later, with 1."""
    pytest.importorskip("torch")
    fails = LOOP.replace(
        "        steps.step()\n",
        "        steps.step()\n"
        "        if number == 7 and os.environ['RANK'] == '1': sys.exit(7)\n"
        "        if number == 7:\n"
        "            import pathlib, time\n"
        "            while '\"status\": \"failed\"' not in (pathlib.Path(os.environ['TRACEBOUND_RUN'])\n"
        "                / 'ranks' / 'rank1.json').read_text(): time.sleep(0.01)\n"
        "            raise RuntimeError('the other one is gone')\n",
    )
    done = collect(tmp_path / "run", sys.executable, "-c", fails, options=("--processes", "2"))
    assert done.returncode == 7
    assert "note: rank 1 was the first to end, " in done.stderr
    assert "note: rank 1 failed (exit code 7; the program's loop was left by SystemExit(7); " in done.stderr
    assert "note: rank 0 failed (exit code 1; the program's loop was left by RuntimeError; " in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith(
        "ranks 0 and 1 captured, 3 steps; the command ended with exit code 7; next: tracebound"
    )


def test_the_first_to_leave_its_loop_gives_the_code_though_its_process_takes_longer_to_end(
    tmp_path: Path,
) -> None:
    """Rank 1 leaves with 7 and is gone a second later; rank 0 leaves and is gone in the meantime."""
    pytest.importorskip("torch")
    fails = LOOP.replace(
        "        steps.step()\n",
        "        steps.step()\n"
        "        if number == 7 and os.environ['RANK'] == '1':\n"
        "            import atexit, time\n"
        "            atexit.register(time.sleep, 2)\n"
        "            sys.exit(7)\n"
        "        if number == 7:\n"
        "            import pathlib, time\n"
        "            while '\"status\": \"failed\"' not in (pathlib.Path(os.environ['TRACEBOUND_RUN'])\n"
        "                / 'ranks' / 'rank1.json').read_text(): time.sleep(0.01)\n"
        "            raise RuntimeError('the other one is gone')\n",
    )
    done = collect(tmp_path / "run", sys.executable, "-c", fails, options=("--processes", "2"))
    assert "note: rank 1 was the first to end, " in done.stderr
    assert done.returncode == 7


def test_a_rank_that_never_called_is_named(tmp_path: Path) -> None:
    """Without torch: what the command checks are records, here one of rank 0, which ended well."""
    program = (
        "import os\nfrom collectors.run_folder import RunFolder\nfrom collectors.session import Session\n"
        "if os.environ['RANK'] == '0':\n"
        "    folder = RunFolder(os.environ['TRACEBOUND_RUN'])\n"
        "    with Session(folder, 'torch', command=['x'], pins={}) as session:\n"
        "        (folder.path / 'f').write_text('')\n"
        "        session.finish('complete', [folder.describe(folder.path / 'f', 'log')])\n"
    )
    done = collect(tmp_path, sys.executable, "-c", program, options=("--processes", "2"))
    assert done.returncode == 2
    assert "rank 1 did not call capture()" in done.stderr
    assert "rank 0" not in done.stderr


def test_a_folder_that_holds_a_run_is_refused_before_the_program(tmp_path: Path) -> None:
    (tmp_path / "ranks").mkdir()
    old = manifest.RankRecord(rank=3, collector="torch", status="complete")
    (tmp_path / "ranks" / "rank3.json").write_text(manifest.encode_record(old))
    done = collect(tmp_path, sys.executable, "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (2, "")
    assert "holds a run already; next: pass another folder with -o" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["torch", "-o", "{}", "--active", "0", "--", "true"], "is no cycle of steps"),
        (["torch", "-o", "{}", "--processes", "0", "--", "true"], "--processes: is 0"),
        (
            ["torch", "-o", "{}", "--pin", "colour=red", "--", "true"],
            "--pin: 'colour' is no name of a pin; write NAME=VALUE",
        ),
        (["torch", "-o", "{}"], "command: there is none"),
        (["torch", "-o", "{}", "--", "no-such-program"], "no-such-program: cannot be started"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.format(tmp_path / "run") for word in words]) == 2
    assert message in capsys.readouterr().err


def test_the_help_tells_the_three_lines_and_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["torch", "--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0
    for words in (
        "--wait N",
        "--warmup N",
        "--active N",
        "--processes N",
        "with capture() as steps:",
        "torchrun",
    ):
        assert words in text


# -- several processes ------------------------------------------------------------------------------


def test_each_process_is_told_its_rank_and_where_rank_zero_is(tmp_path: Path) -> None:
    program = (
        "import json, os, sys\n"
        "open(os.path.join(sys.argv[1], os.environ['RANK']), 'w').write(json.dumps(dict(os.environ)))"
    )
    ends = run_ranks([sys.executable, "-c", program, str(tmp_path)], 2, clean())
    assert [end.exit_code for end in ends] == [0, 0]
    told = [json.loads((tmp_path / str(rank)).read_text()) for rank in (0, 1)]
    assert [identity(t) for t in told] == [identity({**t, "WORLD_SIZE": "2"}) for t in told]
    assert [t["RANK"] for t in told] == ["0", "1"]
    assert told[0]["MASTER_PORT"] == told[1]["MASTER_PORT"]
    assert told[0]["MASTER_ADDR"] == "127.0.0.1"


def test_the_exit_codes_of_all_come_back_and_who_failed_first() -> None:
    """Rank 1 ends half a second after rank 2."""
    program = (
        "import os, sys; r = int(os.environ['RANK'])\n"
        "if r == 2: os.kill(os.getpid(), 9)\n"
        "if r == 1:\n    import time; time.sleep(0.5)\n"
        "sys.exit(r)"
    )
    ends = run_ranks([sys.executable, "-c", program], 3, clean())
    assert [end.exit_code for end in ends] == [0, 1, 128 + 9]
    assert first_failure(ends) == 2
    assert ends[2].ended_ns < ends[1].ended_ns


@pytest.mark.parametrize(
    ("ends", "first"),
    [
        ([RankEnd(0, 5), RankEnd(0, 1)], None),
        ([RankEnd(1, 9), RankEnd(7, 8), RankEnd(0, 1)], 1),
        ([], None),
    ],
)
def test_the_first_failure_is_the_first_in_time(ends: list[RankEnd], first: int | None) -> None:
    assert first_failure(ends) == first


def test_a_signal_reaches_every_process(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        f"open(os.path.join({str(tmp_path)!r}, os.environ['RANK']), 'w').close()\n"
        "time.sleep(60)"
    )
    code = (
        "import os, sys\nfrom collectors.processes import run_ranks\n"
        "sys.exit([end.exit_code for end in "
        f"run_ranks([sys.executable, '-c', {program!r}], 2, os.environ)] != [5, 5])"
    )
    process = subprocess.Popen([sys.executable, "-c", code], env={**clean(), "PYTHONPATH": str(ROOT)})
    while len(list(tmp_path.iterdir())) < 2 and process.poll() is None:
        pass
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
