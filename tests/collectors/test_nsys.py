"""Captures with the real nsys: times against the program's own, ranks, failures.

A stand-in plays nsys only where it must hang, and where no capture is made.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from collectors import manifest
from collectors.cli import main
from collectors.errors import CollectError
from collectors.manifest import RankRecord
from collectors.nsys import exported
from collectors.nsys.capture import Job, RankCapture
from collectors.nsys.installed import ask
from collectors.nsys.plan import Wanted
from collectors.run_folder import RunFolder
from collectors.session import Session
from tests.collectors import nsys_texts as texts

ROOT = Path(__file__).parents[2]
PYTHON = sys.executable
WITHIN_NS = 50_000
"""How far a range may begin before, or after, the two times that the program read around its beginning (or its end)."""
PLAIN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("RANK", "LOCAL_RANK", "WORLD_SIZE", "OMPI_", "PMI_", "MV2_", "SLURM_"))
}

PROGRAM = """
import json, os, sys, tempfile, time
import nvtx
rank, times = os.environ.get("RANK", "0"), []
for step in range(5):
    before = time.time_ns()
    with nvtx.annotate(f"step {step}"):
        inside = time.time_ns()
        time.sleep(0.01)
        last = time.time_ns()
    times.append([f"step {step}", before, inside, last, time.time_ns()])
said = {"times": times, "temporary": tempfile.gettempdir(), "world": os.environ.get("WORLD_SIZE")}
with open(f"{sys.argv[1]}/said{rank}.json", "w") as file:
    json.dump(said, file)
sys.exit(7 if rank == "1" else 0)
"""
WINDOW = """
import nvtx, time
for at in range(3):
    with nvtx.annotate("window", domain="mine"):
        with nvtx.annotate(f"inside {at}"):
            time.sleep(0.01)
"""

real = pytest.mark.skipif(shutil.which("nsys") is None, reason="nsys is not installed")


def needs_ranges() -> None:
    """The nvtx package, in a version whose ranges the installed nsys records."""
    pytest.importorskip("nvtx")
    version, nsys = importlib.metadata.version("nvtx"), ask().version
    if tuple(map(int, version.split(".")[:3])) > (0, 2, 11) and nsys < "2023":
        pytest.skip(f"nsys {nsys} records no ranges of nvtx {version}; 0.2.11 works")


@dataclass(frozen=True)
class Done:
    """One finished run of the collector."""

    folder: Path
    code: int
    said: str

    @property
    def records(self) -> list[RankRecord]:
        return manifest.read(self.folder / "run" / "manifest.json").ranks


def collect(folder: Path, *words: str, **how: object) -> Done:
    """Run the collector; the run folder is ``folder/run``."""
    environment = {**PLAIN, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
    environment.update(how.pop("environment", {}))  # type: ignore[call-overload]
    done = subprocess.run(
        [PYTHON, "-m", "collectors", "nsys", "-o", str(folder / "run"), *words],
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=200, check=False, **how,  # type: ignore[call-overload]
    )  # fmt: skip
    assert "Traceback" not in done.stdout, done.stdout
    return Done(folder, done.returncode, done.stdout)


def leftovers(folder: Path) -> list[str]:
    """Whatever is in the run folder beside what belongs there."""
    names = sorted(path.name for path in (folder / "run").iterdir())
    return [name for name in names if name not in ("manifest.json", "ranks") and not name.startswith("rank")]


@pytest.fixture(scope="session")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Two plain processes; rank 1 ends with 7."""
    needs_ranges()
    folder = tmp_path_factory.mktemp("nsys")
    return collect(
        folder, "--processes", "2", "--pin", "batch=8", "--", PYTHON, "-c", PROGRAM, str(folder),
        environment={
            "HF_TOKEN": "hf_NotARealToken123", "NCCL_ALGO": "Ring", "VLLM_API_KEY": "hf_NotARealToken123",
        },
    )  # fmt: skip


@real
def test_each_rank_leaves_report_export_and_record(two_ranks: Done) -> None:
    assert two_ranks.code == 7, two_ranks.said
    assert manifest.read(two_ranks.folder / "run" / "manifest.json").complete
    for rank, record in enumerate(two_ranks.records):
        assert (record.status, record.exit_code) == ("complete", 7 * rank)
        assert (record.rank, record.local_rank, record.world_size) == (rank, rank, 2)
        assert [file.path for file in record.files] == [f"rank{rank}.nsys-rep", f"rank{rank}.sqlite"]
        assert record.profiler == "nsys" and record.profiler_version
        assert record.pins["batch"].value == "8"
        for file in record.files:
            assert (two_ranks.folder / "run" / file.path).stat().st_size == file.bytes
    assert leftovers(two_ranks.folder) == []


@real
def test_ranges_lie_where_the_program_said(two_ranks: Done) -> None:
    read_file = pytest.importorskip("analyzer.readers.registry").read_file
    ranges = pytest.importorskip("analyzer.model").HostKind.RANGE
    worst = 0
    for rank in (0, 1):
        said = json.loads((two_ranks.folder / f"said{rank}.json").read_text())
        (trace,) = read_file(two_ranks.folder / "run" / f"rank{rank}.sqlite")
        host = trace.process.host
        found = {
            trace.process.name_of(host.name[row]): (
                int(host.start_ns[row]) + trace.epoch_zero_ns,
                int(host.end_ns[row]) + trace.epoch_zero_ns,
            )
            for row in (host.kind == ranges).nonzero()[0]
        }
        assert set(found) == {name for name, *_ in said["times"]}
        for name, before, inside, last, after in said["times"]:
            start, stop = found[name]
            worst = max(worst, before - start, start - inside, last - stop, stop - after)
    assert worst < WITHIN_NS


@real
def test_the_command_keeps_its_own_temporary_folder(two_ranks: Done) -> None:
    said = json.loads((two_ranks.folder / "said0.json").read_text())
    assert (said["temporary"], said["world"]) == (str(two_ranks.folder), "2")


@real
def test_no_environment_is_left_in_the_export(two_ranks: Done) -> None:
    content = (two_ranks.folder / "run" / "rank0.sqlite").read_bytes()
    assert b"hf_NotARealToken123" not in content
    assert b"NCCL_ALGO=Ring" in content and b"WORLD_SIZE=2" in content
    (removed,) = [note for note in two_ranks.records[0].notes if "environment variables were removed" in note]
    assert f"note: rank 0: {removed}\n" in two_ranks.said or f"note: {removed}\n" in two_ranks.said


@real
def test_what_is_left_out_and_how_the_command_ended_is_said(two_ranks: Done) -> None:
    folder = two_ranks.folder / "run"
    assert "note: not recorded, as their values look like credentials: VLLM_API_KEY\n" in two_ranks.said
    assert f"rank 0 captured; next: tracebound diagnose {folder}\n" in two_ranks.said
    assert (
        f"rank 1 captured; the command ended with exit code 7; next: tracebound diagnose {folder}\n"
        in two_ranks.said
    )
    if "Importer error status" in two_ranks.said:
        assert (
            "nsys found no importer, and may have said so: the collector imported the report"
            in two_ranks.said
        )
    assert [record.launcher for record in two_ranks.records] == ["processes", "processes"]


@real
def test_an_engine_that_is_installed_and_not_loaded_pins_nothing(two_ranks: Done) -> None:
    pytest.importorskip("torch")
    assert ["runtime" in record.pins for record in two_ranks.records] == [False, False]


@real
def test_of_ranks_that_fail_the_first_decides_on_the_exit_code(tmp_path: Path) -> None:
    """Rank 1 ends with 7 in its first second, rank 0 with 1 three seconds after that."""
    program = (
        "import os, sys, time, pathlib; here = pathlib.Path(sys.argv[1]); r = os.environ['RANK']\n"
        "if r == '0':\n"
        "    while not (here / 'gone').exists(): time.sleep(0.01)\n"
        "    time.sleep(3); sys.exit(1)\n"
        "time.sleep(1); (here / 'gone').touch(); sys.exit(7)\n"
    )
    done = collect(tmp_path, "--processes", "2", "--", PYTHON, "-c", program, str(tmp_path))
    assert [record.exit_code for record in done.records] == [1, 7]
    assert done.code == 7, done.said
    assert "note: rank 1 was the first to end, " in done.said


@real
def test_a_launcher_that_nsys_runs_is_no_rank(tmp_path: Path) -> None:
    """torchrun and two ranks, without a GPU and without ranges: only OS calls tell who did what."""
    pytest.importorskip("torch.distributed.run")
    analyzer = pytest.importorskip("analyzer")
    outputs = pytest.importorskip("analyzer.report.outputs")
    (tmp_path / "busy.py").write_text(
        "import pathlib, time\nuntil = time.monotonic() + 3\n"
        "while time.monotonic() < until: pathlib.Path(__file__).read_text(); sum(range(100_000))\n"
    )
    launcher = (PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    done = collect(tmp_path, "--", *launcher, str(tmp_path / "busy.py"))
    assert done.code == 0, done.said
    assert done.records[0].pins["runtime"].value.startswith("torch ")  # torchrun is a part of it
    capture = analyzer.read(tmp_path / "run")
    assert capture.ranks == (0, 1)
    (source,) = capture.sources
    (entry,) = [row for row in source.quality if row.reason == "process-without-rank"]
    assert (entry.count, entry.total) == (1, 3)
    assert "waited for child processes while the others ran" in entry.effect
    report = outputs.write(analyzer.analyze(capture), tmp_path, figures=False).read_text()
    assert "- **Run**: 1 capture of 2 ranks in " in report
    assert "- **Ranks**: 2 ranks (ranks 0-1)" in report


@real
def test_a_range_bounds_the_capture_and_the_command_goes_on(tmp_path: Path) -> None:
    """Around a launcher, which here only starts the program."""
    needs_ranges()
    (tmp_path / "torchrun").write_text(f'#!/bin/sh\nexec {PYTHON} "$@"\n')
    (tmp_path / "torchrun").chmod(0o755)
    program = [str(tmp_path / "torchrun"), "-c", f"{WINDOW}raise SystemExit(5)"]
    done = collect(tmp_path, "--range", "window", "--gpu-metrics", "--", *program)
    assert done.code == 5, done.said
    (record,) = done.records
    assert (record.status, record.exit_code, record.world_size) == ("complete", 5, None)
    with sqlite3.connect(tmp_path / "run" / "rank0.sqlite") as database:
        rows = database.execute(
            "SELECT coalesce(text, (SELECT value FROM StringIds WHERE id = textId)) FROM NVTX_EVENTS WHERE end > start"
        ).fetchall()
    database.close()
    assert sorted(text for (text,) in rows) == ["inside 0", "window"]
    assert "torchrun starts the ranks: one file holds all of this host" in record.notes
    if not any("GPU metrics are" in note for note in record.notes):
        assert any(note.startswith("GPU metrics not captured: ") for note in record.notes)


@real
def test_a_range_that_never_begins_is_an_error_although_nsys_says_nothing(tmp_path: Path) -> None:
    done = collect(tmp_path, "--range", "window", "--", PYTHON, "-c", "raise SystemExit(0)")
    assert done.code == 2
    assert "nsys: wrote no report; it ended with exit code 0; next: check that a range is called" in done.said
    (record,) = done.records
    assert (record.status, record.exit_code, record.files) == ("failed", None, [])
    assert any("wrote no report" in note for note in record.notes)
    assert leftovers(tmp_path) == []


@real
@pytest.mark.parametrize(
    ("option", "code", "note"),
    [
        ("--limit", 124, "ended at the limit of 3 s"),
        ("--duration", 143, "the capture was bounded to 3 s (--duration); nsys ends the command then"),
    ],
)
def test_at_a_bound_the_capture_is_kept(option: str, code: int, note: str, tmp_path: Path) -> None:
    done = collect(tmp_path, option, "3", "--", PYTHON, "-c", "import time; time.sleep(100)")
    assert done.code == code, done.said
    (record,) = done.records
    assert (record.status, record.exit_code) == ("complete", 128 + signal.SIGTERM)
    assert note in record.notes
    assert {file.kind for file in record.files} == {"nsys-rep", "nsys-sqlite"}


UNKNOWN_CODE = "ended on a signal: the command's exit code is not known"


@real
def test_after_a_signal_an_exit_code_of_0_is_not_believed(tmp_path: Path) -> None:
    """nsys 2022 sometimes says 0 there although the command said otherwise."""
    program = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); time.sleep(100)"
    done = collect(tmp_path, "--limit", "3", "--", PYTHON, "-c", program)
    assert done.code == 124, done.said
    (record,) = done.records
    assert (record.status, record.exit_code) == ("complete", None)
    assert UNKNOWN_CODE in record.notes


@real
def test_a_signal_ends_all_ranks_and_their_captures_are_kept(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys, time; signal.signal(15, lambda *_: sys.exit(5)); "
        f"open(f'{tmp_path}/ready' + os.environ['RANK'], 'w'); time.sleep(100)"
    )
    process = subprocess.Popen(
        [PYTHON, "-m", "collectors", "nsys", "-o", "run", "--processes", "2", "--", PYTHON, "-c", program],
        env={**PLAIN, "PYTHONPATH": str(ROOT)}, cwd=tmp_path,
    )  # fmt: skip
    while not all((tmp_path / f"ready{rank}").exists() for rank in (0, 1)):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    code = process.wait(100)
    records = Done(tmp_path, code, "").records
    assert [one.status for one in records] == ["complete"] * 2
    # nsys 2022 rarely ends with 0 before it has learned the command's code.
    codes = {one.exit_code for one in records}
    assert codes <= {5, None} and code == (5 if 5 in codes else 0)
    unknown = [one for one in records if UNKNOWN_CODE in one.notes]
    assert unknown == [one for one in records if one.exit_code is None]


@real
def test_a_report_that_cannot_be_exported_is_kept(tmp_path: Path) -> None:
    """The real exporter, given what is no report."""
    job = Job(str(tmp_path / "run"), ask(), Wanted(), ["true"])
    folder = RunFolder(job.output)
    (tmp_path / "rank0.nsys-rep").write_bytes(b"NVIDIA Tegra Profiler Report, but nothing more")
    with Session(folder, "nsys", command=job.command, pins={}, environment=PLAIN) as session:
        one = RankCapture(job, session, tmp_path, PLAIN)
        with pytest.raises(
            CollectError, match=r"nsys export: failed .*; next: the report is kept; .* nsys export --type"
        ):
            one.export_report(tmp_path)
        assert [file.path for file in one.kept()] == ["rank0.nsys-rep"]
    assert not (tmp_path / "rank0.sqlite").exists()


@real
def test_a_full_disk_is_an_error_and_no_hang(tmp_path: Path) -> None:
    """Files may not grow beyond 1 MiB, which nsys's raw stream does."""
    size = 1 << 20
    done = collect(
        tmp_path, "--finish-limit", "20", "--", PYTHON, "-c", "pass",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )  # fmt: skip
    assert done.code == 2
    assert "error: " in done.said and "check the room for files" in done.said
    (record,) = done.records
    assert (record.status, record.exit_code) == ("failed", None)
    assert not (tmp_path / "run" / "rank0.sqlite").exists()


@real
def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    done = collect(tmp_path, "--dry-run", "--processes", "2", "--", "sh", "-c", "echo 'a b'")
    assert done.code == 0
    assert not (tmp_path / "run").exists()
    lines = done.said.splitlines()
    assert lines[0] == "# rank 0: capture"
    assert lines[1].split()[1] == "profile" and lines[1].endswith("""sh -c 'echo '"'"'a b'"'"''""")
    assert lines[-2] == "# rank 1: SQLite export"
    assert " export " in lines[-1] and lines[-1].endswith("run/rank1.nsys-rep")
    importers = [(before, line) for before, line in itertools.pairwise(lines) if "Importer -i" in line]
    assert all("finds no importer itself" in before for before, _ in importers)


@real
def test_a_dry_run_into_a_used_folder_says_that_the_run_would_be_refused(tmp_path: Path) -> None:
    record = RankRecord(rank=1, collector="nsys", status="complete")
    RunFolder(tmp_path / "run").write(record)
    before = sorted(tmp_path.rglob("*"))
    done = collect(tmp_path, "--dry-run", "--processes", "2", "--", "true")
    assert done.code == 0
    why = f"{tmp_path / 'run'}: holds the capture of rank 1 already; next: pass another folder"
    assert f"warning: without --dry-run this would be refused: {why}" in done.said
    assert sorted(tmp_path.rglob("*")) == before
    assert "warning" not in collect(tmp_path, "--dry-run", "--", "true").said


def test_without_nsys_the_way_to_get_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "cmd").symlink_to("/bin/true")
    done = collect(tmp_path, "--", "cmd", environment={"PATH": str(tmp_path / "bin")})
    assert done.code == 2
    assert "nsys: is not installed, or not on PATH; next: install Nsight Systems" in done.said


# -- what needs no capture --------------------------------------------------------------------------

STAND_IN = f"""#!{PYTHON}
import os, pathlib, shutil, signal, subprocess, sys, time
words = sys.argv[1:]
if "--version" in words:
    print({texts.NEW_VERSION!r})
elif "--help" in words:
    print({texts.NEW!r} if words[0] == "profile" else {texts.NEW_EXPORT!r})
elif words[0] == "profile":
    stem = next(word.split("=", 1)[1] for word in words if word.startswith("--output="))
    pathlib.Path(stem + ".qdstrm").write_bytes(b"raw")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    here = pathlib.Path(sys.argv[0]).parent
    program = shutil.copy(shutil.which("sleep"), here / f"nsys-agent{{os.getpid()}}")
    agent = subprocess.Popen(["sleep", "1000"], executable=program, start_new_session=True)
    (here / "pids").write_text(f"{{os.getpid()}} {{agent.pid}}")
    command = words[[word.startswith("--") for word in words].index(False, 1):]
    subprocess.run(command, start_new_session=True)
    while True:
        time.sleep(1)
"""


def stand_in(folder: Path) -> Path:
    """A program that answers like nsys, runs the command, and then does not end."""
    path = folder / "bin" / "nsys"
    path.parent.mkdir()
    path.write_text(STAND_IN)
    path.chmod(0o755)
    return path


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("how", [("--finish-limit", "1"), ("--finish-limit", "1", "--limit", "1")])
def test_an_nsys_that_hangs_is_ended_and_its_stream_kept(tmp_path: Path, how: tuple[str, ...]) -> None:
    """After the command has ended; at the limit the command is still there, and is ended with it."""
    nsys = stand_in(tmp_path)
    wait = "1000" if "--limit" in how else "0.3"
    other = subprocess.Popen(["sleep", "1000"])  # not ours: must live on
    try:
        done = collect(tmp_path, "--nsys", str(nsys), *how, "--", "sleep", wait)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
    assert done.code == 2, done.said
    until = time.monotonic() + 20
    pids = [int(pid) for pid in (nsys.parent / "pids").read_text().split()]
    while any(runs(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(runs(pid) for pid in pids)
    (record,) = done.records
    assert (record.status, record.exit_code) == ("failed", None)
    assert [(file.path, file.kind) for file in record.files] == [("rank0.qdstrm", "nsys-qdstrm")]
    after = "limit" if "--limit" in how else "command"
    assert f"nsys did not end within 1 s after the {after} and was killed" in record.notes
    assert leftovers(tmp_path) == []


def stand_in_that(folder: Path, does_first: str) -> Path:
    """One that does something before all else, and ends when its command has ended."""
    nsys = stand_in(folder)
    begin, end = "    stem = next(", "    while True:\n        time.sleep(1)\n"
    assert begin in STAND_IN and end in STAND_IN
    nsys.write_text(STAND_IN.replace(begin, does_first + begin).replace(end, "    agent.kill()\n"))
    return nsys


TURN = """\
    turn = pathlib.Path(sys.argv[0]).parent / 'turn'
    turn.open('x').close()  # ends this nsys where another one is starting
    time.sleep(0.5)
    turn.unlink()
"""


def test_ranks_of_one_host_start_one_after_another(tmp_path: Path) -> None:
    """Two nsys 2022 that start at the same moment can trip over each other's semaphore, and one gives up."""
    nsys = stand_in_that(tmp_path, TURN)
    command = ("sh", "-c", f"touch {tmp_path}/ran$RANK; sleep 0.7")
    done = collect(tmp_path, "--nsys", str(nsys), "--processes", "3", "--", *command)
    assert "FileExistsError" not in done.said
    assert sorted(path.name for path in tmp_path.glob("ran*")) == ["ran0", "ran1", "ran2"]


def test_so_do_ranks_that_another_launcher_starts(tmp_path: Path) -> None:
    nsys = stand_in_that(tmp_path, TURN)
    command = ("sh", "-c", f"touch {tmp_path}/ran$RANK; sleep 0.7")

    def one(rank: int) -> Done:
        environment = {"RANK": str(rank), "WORLD_SIZE": "1", "LOCAL_RANK": str(rank)}
        return collect(tmp_path, "--nsys", str(nsys), "--", *command, environment=environment)

    with ThreadPoolExecutor(3) as several:
        ended = list(several.map(one, range(3)))
    assert not any("FileExistsError" in done.said for done in ended)
    assert sorted(path.name for path in tmp_path.glob("ran*")) == ["ran0", "ran1", "ran2"]


FAILS = """\
    with (pathlib.Path(sys.argv[0]).parent / "starts").open("a+") as starts:
        starts.write("x")
        starts.seek(0)
        if len(starts.read()) <= FAILING:
            agent = shutil.copy(shutil.which("sleep"), pathlib.Path(sys.argv[0]).parent / f"nsys-agent{starts.tell()}")
            subprocess.Popen(["sleep", "1000"], executable=agent, start_new_session=True)
            sys.exit(1)
"""


@pytest.mark.parametrize(("failing", "ran"), [(1, True), (3, False)])
def test_an_nsys_that_fails_before_the_command_runs_is_started_again(
    failing: int, ran: bool, tmp_path: Path
) -> None:
    """As nsys 2022 does, which leaves its agent there."""
    nsys = stand_in_that(tmp_path, FAILS.replace("FAILING", str(failing)))
    done = collect(tmp_path, "--nsys", str(nsys), "--", "sh", "-c", f"echo ran >> {tmp_path}/ran; sleep 0.3")
    assert done.said.count("it is started again") == min(failing, 2)
    assert (tmp_path / "ran").exists() == ran
    assert not ran or (tmp_path / "ran").read_text() == "ran\n"
    (record,) = done.records
    assert any("was started again" in note for note in record.notes)
    if not ran:
        assert "wrote no report; it ended with exit code 1" in done.said


def test_an_nsys_that_refuses_its_options_is_not(tmp_path: Path) -> None:
    nsys = stand_in_that(tmp_path, "    sys.exit('what is that option')\n")
    done = collect(tmp_path, "--nsys", str(nsys), "--", "true")
    assert done.code == 2
    assert done.said.count("what is that option") == 1
    assert "started again" not in done.said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "command: there is none"),
        (["--", "no-such-program"], "no-such-program: cannot be started"),
        (["--pin", "modle=x", "--", "true"], "one of these names"),
        (["--processes", "2", "--", "torchrun", "x.py"], "--processes: torchrun starts the ranks already"),
        (["-o", "/proc/none/run", "--", "true"], "/proc/none/run: cannot be written"),
    ],
)
def test_what_cannot_be_done_is_told(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in set(os.environ) - set(PLAIN):
        monkeypatch.delenv(name)
    (tmp_path / "torchrun").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    nsys = stand_in(tmp_path)
    assert main(["nsys", "--nsys", str(nsys), *words]) == 2
    assert said in capsys.readouterr().err


def test_what_this_nsys_cannot_do_is_told_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nsys = stand_in(tmp_path)
    nsys.write_text(STAND_IN.replace(repr(texts.NEW), repr(texts.OLD)))
    run = tmp_path / "run"
    assert main(["nsys", "--nsys", str(nsys), "--graph-nodes", "-o", str(run), "--", "true"]) == 2
    assert "--graph-nodes: nsys 2026.2.1.210-262134210v0 has no --cuda-graph-trace" in capsys.readouterr().err
    assert not run.exists()


def test_a_rank_does_not_start_further_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "3")
    assert main(["nsys", "--nsys", str(stand_in(tmp_path)), "--processes", "2", "--", "true"]) == 2
    assert "this process is rank 3 already" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["--limit", "0"], ["--delay", "1.5"], ["--range", "x", "--profiler-api"], ["--bad"]]
)
def test_bad_usage_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as told:
        main(["nsys", *words, "--", "true"])
    assert told.value.code == 2
    assert words[0] in capsys.readouterr().err


def test_an_export_that_was_cut_short_is_told_from_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    assert exported.check(path) == ("no SQLite file was written", False)
    path.write_bytes(b"no database at all")
    assert "damaged" in exported.check(path)[0]
    for tables, (why, events) in {
        ("StringIds", "ProcessStreams"): ("cut short", False),
        ("StringIds", "TARGET_INFO_SYSTEM_ENV"): ("", False),
        ("META_DATA_CAPTURE", "CUPTI_ACTIVITY_KIND_KERNEL"): ("", True),
    }.items():
        path.unlink()
        database = sqlite3.connect(path)
        for table in tables:
            database.execute(f"CREATE TABLE {table} (name TEXT, value TEXT)")
        database.close()
        found = exported.check(path)
        assert (why in found[0], bool(found[0]), found[1]) == (True, bool(why), events)


@pytest.mark.parametrize(
    ("where", "before", "after", "removed"),
    [
        ("TARGET_INFO_SYSTEM_ENV DeviceEnvironment", "HOME=/h\0RANK=1\0A=b", "RANK=1", 2),
        (
            "TARGET_INFO_SYSTEM_ENV DeviceEnvironment",
            "HOME=/;NCCL_ALGO=Ring;VLLM_API_KEY=x",
            "NCCL_ALGO=Ring",
            2,
        ),
        ("TARGET_INFO_SYSTEM_ENV Hostname", "a=b", "a=b", 0),
        ("META_DATA_CAPTURE X:ENVIRONMENT_VARIABLE", "HF_TOKEN=x", "", 1),
        ("META_DATA_CAPTURE X:ENVIRONMENT_VARIABLE", "SLURM_STEP_ID=0", "SLURM_STEP_ID=0", 0),
        ("StringIds -", "_=/bin/x\0HF_TOKEN=x", "", 2),
        ("StringIds -", "void kernel<a=b>(int)", "void kernel<a=b>(int)", 0),
    ],
)
def test_only_variables_that_a_manifest_may_hold_stay(
    where: str, before: str, after: str, removed: int, tmp_path: Path
) -> None:
    table, name = where.split()
    path = tmp_path / "x.sqlite"
    database = sqlite3.connect(path)
    database.execute(f"CREATE TABLE {table} (name TEXT, value TEXT)")
    database.execute(f"INSERT INTO {table} VALUES (?, ?)", (name, before))
    database.commit()
    database.close()
    assert exported.remove_environment(path) == removed
    database = sqlite3.connect(path)
    assert database.execute(f"SELECT value FROM {table}").fetchall() == [(after,)]
    database.close()
