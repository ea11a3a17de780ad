"""The command lines of nsys by what is wanted and by what the installed nsys lists; only its help is run."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from collectors.errors import CollectError
from collectors.nsys import launchers
from collectors.nsys.capture import Job, who_is_it
from collectors.nsys.installed import Nsys, ask, find_importer, parse_help, parse_version
from collectors.nsys.plan import Wanted, plan
from tests.collectors import nsys_texts as texts

OLD = Nsys(
    "/o/nsys", "2020.3.4", parse_help(texts.OLD), parse_help(texts.OLD_EXPORT), False, "/h/QdstrmImporter"
)
NEW = Nsys(
    "/n/nsys", "2026.2.1", parse_help(texts.NEW), parse_help(texts.NEW_EXPORT), True, "/n/QdstrmImporter"
)
STEM = Path("run/rank0")
REAL = shutil.which("nsys")


def given(wanted: Wanted, nsys: Nsys, local_rank: int | None = None) -> str:
    """The options between ``profile`` and those that are always the same."""
    words = plan(wanted, nsys, STEM, ["cmd"], local_rank=local_rank).profile
    assert words[:2] == [nsys.path, "profile"]
    assert words[-3:] == ["--force-overwrite=true", "--output=run/rank0", "cmd"]
    return " ".join(words[2:-3])


def test_a_help_text_tells_options_and_their_values() -> None:
    assert set(OLD.profile) == {
        "capture-range", "duration", "output", "sample", "stop-on-range-end", "trace"
    }  # fmt: skip
    assert {"cuda", "nvtx", "osrt", "none"} <= OLD.profile["trace"]
    assert OLD.profile["duration"] == frozenset()
    assert NEW.has("cuda-graph-trace", "node") and NEW.has("capture-range-end", "stop")
    assert not OLD.has("trace", "nccl") and NEW.has("trace", "nccl")
    assert set(NEW.export) == {"include-blobs", "include-json", "output", "quiet"}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (texts.OLD_VERSION, "2020.3.4.32-abc"),
        (texts.NEW_VERSION, "2026.2.1.210-262134210v0"),
        ("no such option", None),
    ],
)
def test_the_version_is_found(text: str, version: str | None) -> None:
    assert parse_version(text) == version


OLD_BASE = "--trace=cuda,nvtx,osrt --sample=none"
NEW_BASE = (
    "--trace=cuda,nvtx,osrt --cuda-graph-trace=graph --cuda-event-trace=true --sample=none --cpuctxsw=none"
)


@pytest.mark.parametrize(
    ("wanted", "nsys", "expected"),
    [
        (Wanted(), OLD, f"{OLD_BASE} --duration=600"),
        (Wanted(), NEW, f"{NEW_BASE} --duration=600"),
        (Wanted(duration_s=0, delay_s=5), NEW, f"{NEW_BASE} --delay=5"),
        (Wanted(graph_nodes=True, duration_s=0), NEW, NEW_BASE.replace("=graph", "=node")),
        (Wanted(event_trace=False, duration_s=0), NEW, NEW_BASE.replace("event-trace=true", "event-trace=false")),
        (Wanted(os_runtime=False, nccl=True, duration_s=0), NEW, NEW_BASE.replace("osrt", "nccl")),
        (Wanted(cpu_sampling=True, duration_s=0), OLD, OLD_BASE.replace("none", "cpu")),
        (Wanted(cpu_sampling=True, duration_s=0), NEW, NEW_BASE.replace("none", "process-tree")),
        (Wanted(follow_forks=True, duration_s=0), NEW, f"{NEW_BASE} --trace-fork-before-exec=true"),
        (
            Wanted(range_name="steady"),
            NEW,
            f"{NEW_BASE} --capture-range=nvtx --nvtx-capture=steady@* --capture-range-end=stop"
            " --env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0",
        ),
        (
            Wanted(range_name="steady@dom", duration_s=9),
            OLD,
            f"{OLD_BASE} --capture-range=nvtx --nvtx-capture=steady@dom --stop-on-range-end=true --duration=9"
            " --env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0",
        ),
        (
            Wanted(profiler_api=True),
            NEW,
            f"{NEW_BASE} --capture-range=cudaProfilerApi --capture-range-end=stop",
        ),
        (
            Wanted(more=("--cuda-memory-usage=true",), duration_s=0),
            OLD,
            f"{OLD_BASE} --cuda-memory-usage=true",
        ),
    ],
)  # fmt: skip
def test_the_options_follow_what_is_wanted_and_what_there_is(
    wanted: Wanted, nsys: Nsys, expected: str
) -> None:
    assert given(wanted, nsys) == expected


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (Wanted(graph_nodes=True), "--graph-nodes: nsys 2020.3.4 has no --cuda-graph-trace=node"),
        (Wanted(nccl=True), "--nccl: nsys 2020.3.4 has no --trace=nccl"),
        (Wanted(follow_forks=True), "--follow-forks: nsys 2020.3.4 has no --trace-fork-before-exec"),
    ],
)
def test_what_was_asked_for_and_is_not_there_is_refused(wanted: Wanted, words: str) -> None:
    with pytest.raises(CollectError, match=words):
        plan(wanted, OLD, STEM, ["cmd"])


def test_what_a_default_could_not_have_is_noted() -> None:
    assert plan(Wanted(), NEW, STEM, ["cmd"]).notes == []
    assert [note.split(":")[0] for note in plan(Wanted(), OLD, STEM, ["cmd"]).notes] == [
        "nsys 2020.3.4 has no --cuda-graph-trace",
        "nsys 2020.3.4 has no --cuda-event-trace",
    ]


@pytest.mark.parametrize(
    ("nsys", "local_rank", "option", "note"),
    [
        (replace(NEW, gpus=(0, 1)), None, " --gpu-metrics-devices=all", ""),
        (replace(NEW, gpus=(0, 1)), 1, " --gpu-metrics-devices=1", "nsys's GPU 1"),
        (replace(NEW, gpus=(0, 1)), 2, "", "not captured: nsys lists no GPU 2"),
        (replace(NEW, gpus_why="Insufficient privilege"), 0, "", "not captured: Insufficient privilege"),
        (OLD, 0, "", "not captured: this version cannot"),
    ],
)
def test_gpu_metrics_only_where_permitted(nsys: Nsys, local_rank: int | None, option: str, note: str) -> None:
    wanted = Wanted(gpu_metrics=True, duration_s=0)
    assert given(wanted, nsys, local_rank) == f"{OLD_BASE if nsys is OLD else NEW_BASE}{option}"
    notes = [one for one in plan(wanted, nsys, STEM, ["cmd"], local_rank=local_rank).notes if "GPU" in one]
    assert len(notes) == bool(note) and note in "".join(notes)


def test_the_raw_stream_is_imported_only_where_nsys_cannot() -> None:
    old, new = (plan(Wanted(), nsys, STEM, ["cmd"]) for nsys in (OLD, NEW))
    assert [words for _, words in old.described[1:]] == [
        ["/h/QdstrmImporter", "-i", "run/rank0.qdstrm"],
        ["/o/nsys", "export", "--type=sqlite", "--force-overwrite=true",
         "--output=run/rank0.sqlite", "run/rank0.nsys-rep"],
    ]  # fmt: skip
    assert new.load is None
    assert new.export == [
        "/n/nsys", "export", "--type=sqlite", "--force-overwrite=true", "--include-json=true", "--quiet=true",
        "--output=run/rank0.sqlite", "run/rank0.nsys-rep",
    ]  # fmt: skip


def test_signs_that_nsys_would_expand_are_escaped() -> None:
    assert "--output=50%%/rank0" in plan(Wanted(), NEW, Path("50%/rank0"), ["cmd"]).profile


def test_variables_are_for_the_command() -> None:
    words = plan(Wanted(range_name="x"), NEW, STEM, ["cmd"], variables=["TMPDIR=/t"]).profile
    assert "--env-var=TMPDIR=/t,NSYS_NVTX_PROFILER_REGISTER_ONLY=0" in words


def test_the_importer_is_looked_for_beside_nsys_first(tmp_path: Path) -> None:
    nsys = tmp_path / "target" / "nsys"
    other = tmp_path / "elsewhere" / "host-linux-x64" / "QdstrmImporter"
    own = tmp_path / "host-linux-x64" / "QdstrmImporter"
    places = [f"{tmp_path}/elsewhere/host*"]
    assert find_importer(nsys, places) == (False, None)
    for importer, expected in ((other, (False, str(other))), (own, (True, str(own)))):
        importer.parent.mkdir(parents=True)
        importer.touch(0o755)
        assert find_importer(nsys, places) == expected


@pytest.mark.parametrize(
    ("command", "launcher"),
    [
        ("python train.py", None),
        ("torchrun --nproc-per-node 2 train.py", "torchrun"),
        ("/usr/bin/mpirun -n 2 train", "mpirun"),
        ("env A=b srun train", "srun"),
        ("python3.11 -m torch.distributed.run train.py", "torch.distributed.run"),
        ("python -m mine", None),
        ("env", None),
    ],
)
def test_launchers_are_recognised(command: str, launcher: str | None) -> None:
    assert launchers.launcher_of(command.split()) == launcher


def test_around_a_launcher_nobody_knows_how_many_ranks_there_are() -> None:
    environment = {"SLURM_PROCID": "2", "SLURM_LOCALID": "0", "SLURM_NTASKS": "4"}
    for program, world in (("torchrun", None), ("python", 4)):
        who = who_is_it(Job("run", NEW, Wanted(), [program, "x.py"]), environment)
        assert (who.rank, who.world_size) == (2, world)


def test_where_a_launcher_hides_ranks_from_nsys_it_is_said() -> None:
    assert "nsys does not follow" in launchers.note("srun")
    assert "other hosts" in launchers.note("mpirun")
    assert launchers.note("torchrun") == "torchrun starts the ranks: one file holds all of this host"


@pytest.mark.skipif(REAL is None, reason="nsys is not installed")
def test_the_installed_nsys_is_understood() -> None:
    nsys = ask(gpu_metrics=True)
    said = subprocess.run(["nsys", "--version"], capture_output=True, text=True, check=True).stdout
    assert nsys.version in said and nsys.version[:2] == "20"
    for option, value in (("trace", "osrt"), ("capture-range", "nvtx"), ("sample", "none")):
        assert nsys.has(option, value), option
    assert {"type", "output"} <= set(nsys.export)
    assert bool(nsys.gpus) != bool(nsys.gpus_why)


def test_a_program_that_is_not_nsys_is_refused() -> None:
    with pytest.raises(CollectError, match="does not answer like nsys"):
        ask("true")
    with pytest.raises(CollectError, match="is not installed, or not on PATH"):
        ask("no-such-nsys")
