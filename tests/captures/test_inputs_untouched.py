"""The user's files stay as they are, results repeat byte for byte, and what is secret stays inside."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.captures.results import files_of, run
from tests.shared import needs_shared, trace_path

pytestmark = needs_shared

EXPORT = "cs336-zx/gpt2_2.7B_nvtx.sqlite"
TWO_RANKS_EXPORT = "nsysai/mfu_2gpu_after.sqlite"
TRACE = "tracelens-qwen/h100_qwen1.5_0.5b.json.gz"
FOUR_RANKS = "torchrec-a2a"

COMMAND = [sys.executable, "-c", "from analyzer.cli import main; main()"]


def copied(name: str, folder: Path) -> Path:
    """The capture's files alone in a folder of their own."""
    place = folder / "capture"
    place.mkdir()
    for file in files_of(name):
        shutil.copyfile(trace_path(file), place / Path(file).name)
    return place


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Everything in a folder: names, bytes, times of the last change."""
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.rglob("*"))}


@pytest.mark.parametrize("name", [EXPORT, TWO_RANKS_EXPORT, TRACE])
def test_no_command_changes_the_input_or_its_folder(name: str, tmp_path: Path) -> None:
    place = copied(name, tmp_path)
    before = state(place)
    (file,) = place.iterdir()
    for arguments in (
        ("diagnose", file, "-o", tmp_path / "a"),
        ("diagnose", place, "--format", "json"),
        ("diagnose", file, "--boundary", "host", "-o", tmp_path / "b"),
        ("inspect", file),
        ("inspect", place, "--format", "json"),
    ):
        assert run(*arguments).exit_code == 0
    for arguments in (("diagnose", file, "--steps", "^no such range$"), ("inspect", file, "--device", "77")):
        assert run(*arguments).exit_code in (0, 2)
    assert state(place) == before


def test_a_database_in_wal_mode_gets_no_sidecar(tmp_path: Path) -> None:
    place = copied(EXPORT, tmp_path)
    (file,) = place.iterdir()
    with closing(sqlite3.connect(file)) as database:
        database.execute("pragma journal_mode = wal")
    assert [path.name for path in place.iterdir()] == [file.name]
    before = state(place)
    assert run("diagnose", file, "-o", tmp_path / "out").exit_code == 0
    assert state(place) == before


STOP_THERE = """
import sys, time

def stop(*arguments, **options):
    print("there", flush=True)
    time.sleep(120)

from analyzer import pipeline
from analyzer.cli import console, main
from analyzer.report import outputs
{patch}
main()
"""
PLACES = {
    "reading": "console.Bars.advance = stop",
    "analyzing": "pipeline.analyze = stop",
    "writing": "outputs._publish = stop",
}


@pytest.mark.parametrize("name", [EXPORT, TRACE])
@pytest.mark.parametrize("place", list(PLACES))
def test_a_killed_run_leaves_the_input_and_no_report(name: str, place: str, tmp_path: Path) -> None:
    folder = copied(name, tmp_path)
    before = state(folder)
    output = tmp_path / "out"
    program = STOP_THERE.format(patch=PLACES[place])
    arguments = ["diagnose", str(folder), "-o", str(output)]
    with subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        process.kill()
        process.wait(60)
    assert state(folder) == before
    assert not (output / "DIAGNOSIS.md").exists()
    assert not (output / "diagnosis").exists()
    if place == "writing":
        assert [path.name[:12] for path in output.iterdir()] == [".tracebound-"]
    assert run("diagnose", folder, "-o", output).exit_code == 0
    assert (output / "DIAGNOSIS.md").exists()


@pytest.mark.parametrize("name", [TWO_RANKS_EXPORT, FOUR_RANKS])
def test_two_runs_and_two_jobs_give_the_same_bytes(name: str) -> None:
    outputs = []
    for seed, jobs in (("1", "1"), ("2", "1"), ("3", "2")):
        found = subprocess.run(
            [*COMMAND, "diagnose", str(trace_path(name)), "--format", "json", "--jobs", jobs],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            timeout=120,
        )
        outputs.append(found.stdout)
    assert json.loads(outputs[0])["format"] == "tracebound.diagnosis"
    assert outputs[0] == outputs[1]
    assert outputs[0] == outputs[2]


SECRET = "open5esame"
HIDING_PLACES = (
    f"HF_TOKEN={SECRET}",
    f"--api-key {SECRET}",
    f"https://user:{SECRET}@host/path",
    f"Authorization: Bearer {SECRET}",
    f'{{"password": "{SECRET}"}}',
)


def everything_shown(file: Path, folder: Path) -> dict[str, bytes]:
    """All that the commands print and write."""
    shown = {}
    for name, arguments in {
        "diagnose": ("diagnose", file, "-o", folder, "-v"),
        "json": ("diagnose", file, "--format", "json", "-v"),
        "inspect": ("inspect", file),
        "inspect json": ("inspect", file, "--format", "json"),
        "error": ("diagnose", file, "--device", "77", "--debug"),
        "other error": ("diagnose", file, "--ranks", "77", "--debug"),
    }.items():
        result = run(*arguments)
        assert (result.exit_code == 2) == ("error" in name), result.stderr
        shown[name] = result.stdout_bytes + result.stderr_bytes
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 3
    return shown | {str(path): path.read_bytes() for path in files}


# what the user's environment, command line and program said; each text goes into its share of the rows
CHANGED_ROWS = (
    "update META_DATA_CAPTURE set value = :text where (name like '%ARGUMENT%' or name like '%COMMAND%'"
    " or name like '%DIR%' or name like '%USER%' or name like '%FILTER_STRING%' or name like 'PACKAGE%')",
    "update TARGET_INFO_SYSTEM_ENV set value = :text where name not in ('Hostname', 'CudaDriverVersion')",
    "update PROCESSES set name = '/usr/bin/python ' || :text where true",
    "update StringIds set value = :text where id in"
    " (select filenameId from ProcessStreams union select contentId from ProcessStreams)",
    "update StringIds set value = 'worker ' || :text where id in (select nameId from ThreadNames)"
    " and id not in (select nameId from CUPTI_ACTIVITY_KIND_RUNTIME)",
)
NEW_ROWS = (
    "insert into META_DATA_CAPTURE (name, value) values ('PROCESS_0:ENVIRONMENT_VARIABLE', :text)",
    "insert into META_DATA_CAPTURE (name, value) values ('SOMETHING_NEW', :text)",
    "insert into DIAGNOSTIC_EVENT (timestamp, timestampType, source, severity, text, globalPid)"
    " values (0, 1, 1, 3, 'Process was launched with ' || :text, 0)",
)


def plant_in_export(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        for at, text in enumerate(HIDING_PLACES):
            values = {"text": text, "share": at, "shares": len(HIDING_PLACES)}
            for change in CHANGED_ROWS:
                database.execute(f"{change} and rowid % :shares = :share", values)
            for change in NEW_ROWS:
                database.execute(change, values)
        for table in ("META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV", "PROCESSES", "StringIds"):
            column = "name" if table == "PROCESSES" else "value"
            rows = f"select count(*) from {table} where {column} like '%{SECRET}%'"
            assert database.execute(rows).fetchone()[0] > 5
        database.commit()


def test_a_secret_in_an_export_is_in_no_output(tmp_path: Path) -> None:
    (file,) = copied(EXPORT, tmp_path).iterdir()
    plant_in_export(file)
    assert file.read_bytes().count(SECRET.encode()) > 100
    shown = everything_shown(file, tmp_path / "out")
    assert [name for name, data in shown.items() if SECRET.encode() in data] == []
    # the messages that held it are shown without it
    assert b"Process was launched with HF_TOKEN=[redacted]" in shown["inspect json"]


def plant_in_trace(source: Path, target: Path) -> None:
    """Put the secret wherever a trace holds what the user, the job system or the environment said."""
    found: dict[str, Any] = json.loads(gzip.decompress(source.read_bytes()))
    planted = {
        "HF_TOKEN": SECRET,
        "PT_PROFILER_JOB_NAME": SECRET,
        "PT_PROFILER_JOB_VERSION": f"--token {SECRET}",
        "PT_PROFILER_JOB_ATTEMPT_INDEX": SECRET,
        "user_metadata": {"api": {"key": SECRET}, "list": list(HIDING_PLACES)},
        "metadata": [SECRET, {"deep": [SECRET]}],
        "with_stack": SECRET,
        "traceName": f"./traces/run?token={SECRET}",
        "WARNING": [f"started with HF_TOKEN={SECRET}"],
        "cupti_version": SECRET,
    }
    found = {**found, **planted}
    for event in found["traceEvents"]:
        if event.get("ph") == "M" and event["name"] in ("process_name", "process_labels", "thread_name"):
            event["args"] = {"name": f"python --api-key {SECRET}", "labels": f"TOKEN={SECRET}"}
        elif event.get("cat") == "cpu_op":
            event["args"] = {**event["args"], "Concrete Inputs": [SECRET]}
    target.parent.mkdir()
    target.write_text(json.dumps(found))


def test_a_secret_in_a_trace_is_in_no_output(tmp_path: Path) -> None:
    file = tmp_path / "capture" / "rank0.json"
    plant_in_trace(trace_path(TRACE), file)
    assert file.read_bytes().count(SECRET.encode()) > 100
    shown = everything_shown(file, tmp_path / "out")
    assert [name for name, data in shown.items() if SECRET.encode() in data] == []
    assert b"started with HF_TOKEN=[redacted]" in shown["inspect json"]
    assert b"record_shapes" in shown["inspect json"]
