"""``tracebound history``, and ``--store`` of the commands that fill what it shows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from analyzer.analysis import Analysis
from analyzer.store import Store
from tests.cli.conftest import Stub, run
from tests.report.builder import diagnosis, hypothesis
from tests.report.whatif_builder import change, whatif
from tests.store.runs import MS
from tests.store.runs import run as stored_run


def written(folder: Path, **changes: Any) -> str:
    """A diagnosis.json to compare."""
    folder.mkdir()
    path = folder / "diagnosis.json"
    path.write_bytes(Analysis(diagnosis(**changes), None).to_json())
    return str(path)


def test_diagnose_keeps_a_run_only_where_it_is_asked_to(pipeline: Stub, tmp_path: Path) -> None:
    result = run("diagnose", "decode.sqlite", "-o", str(tmp_path / "report"))
    assert result.exit_code == 0
    assert [one.name for one in tmp_path.iterdir()] == ["report"]
    kept = tmp_path / "kept.sqlite"
    result = run("diagnose", "decode.sqlite", "-o", str(tmp_path / "report"), "--store", str(kept))
    assert (result.exit_code, result.stdout) == (0, f"{tmp_path / 'report' / 'DIAGNOSIS.md'}\n")
    assert f"kept in {kept}: run 1\n" in result.stderr
    again = run("diagnose", "decode.sqlite", "--format", "json", "--store", f"sqlite:///{kept}")
    assert json.loads(again.stdout)["format"] == "tracebound.diagnosis"
    assert f"kept in {kept}: run 1 (was there already)\n" in again.stderr
    quiet = run("diagnose", "decode.sqlite", "--format", "json", "-q", "--store", str(kept))
    assert (quiet.exit_code, quiet.stderr) == (0, "")


def test_a_store_that_cannot_be_used_is_said_before_the_analysis(pipeline: Stub, tmp_path: Path) -> None:
    pipeline.capture = AssertionError("the capture was read")
    trace = tmp_path / "trace.sqlite"
    trace.write_bytes(b"SQLite format 3\0" + bytes(84))
    result = run("diagnose", "decode.sqlite", "-o", str(tmp_path / "report"), "--store", str(trace))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "trace.sqlite: this SQLite database is no store of tracebound" in result.stderr
    assert "  next: name another file with --store FILE" in result.stderr
    assert not (tmp_path / "report").exists()


def test_a_password_is_never_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEBOUND_STORE", f"postgresql://me:hunter2@/kept?host={tmp_path}&password=hunter2")
    for arguments in (["history"], ["history", "--debug"], ["history", "--help"]):
        result = run(*arguments)
        assert "hunter2" not in result.output
    result = run("history", "--store", "mysql://me:hunter2@host/kept", "--debug")
    assert result.exit_code == 2
    assert "hunter2" not in result.output


def test_the_store_may_stand_in_the_environment(
    pipeline: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept.sqlite"
    monkeypatch.setenv("TRACEBOUND_STORE", str(kept))
    assert run("diagnose", "decode.sqlite", "--format", "json").exit_code == 0
    assert "1 run of 1 workload" in " ".join(run("history").stdout.split())  # a long path wraps
    assert run("history", "--store", str(tmp_path / "other.sqlite")).exit_code == 2
    monkeypatch.setenv("TRACEBOUND_STORE", "")
    monkeypatch.chdir(tmp_path)
    assert run("diagnose", "decode.sqlite", "--format", "json").exit_code == 0
    assert [one.name for one in tmp_path.iterdir()] == ["kept.sqlite"]


def test_compare_keeps_both_runs_and_what_came_of_the_prediction(tmp_path: Path) -> None:
    predicted = [hypothesis(predicted_step_ns=(4 * MS, 6 * MS))]
    a = written(tmp_path / "a", hypotheses=predicted, whatif=whatif(change()))
    b = written(tmp_path / "b", time_zero_ns="1712195599519689047")
    kept = tmp_path / "kept.sqlite"
    arguments = ("compare", a, b, "-o", str(tmp_path / "out"), "--no-figures", "--store", str(kept))
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    assert f"kept in {kept}: comparison 1 of run 1 and run 2\n" in result.stderr
    assert "comparison 1 (was there already) of run 1 (was there already)" in run(*arguments).stderr
    found = json.loads(run("history", "--store", str(kept), "--format", "json").stdout)
    (workload,) = found["workloads"]
    assert [one["run"] for one in workload["runs"]] == [1, 2]
    (outcome,) = workload["runs"][0]["predictions"][0]["outcomes"]
    compared = json.loads((tmp_path / "out" / "comparison" / "comparison.json").read_bytes())
    assert outcome["verdict"] == compared["predictions"][0]["verdict"]
    assert outcome["observed_step_ns"] == compared["predictions"][0]["observed_step_ns"]
    assert workload["comparisons"][0]["same_work"] == compared["same_work"]


def test_history_reads_the_file_in_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("history")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "tracebound: tracebound.sqlite: there is no store here\n" in result.stderr
    assert "  next: tracebound diagnose TRACE --store URL makes one" in result.stderr
    assert list(tmp_path.iterdir()) == []
    Store.opened("tracebound.sqlite").record(stored_run())
    result = run("history")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("tracebound.sqlite: 1 run of 1 workload\n")
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_history_of_one_workload(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept.sqlite")
    store = Store.opened(kept)
    store.record(stored_run())
    store.record(stored_run(pins={"model": "other", "batch": "8"}))
    result = run("history", "--store", kept, "--workload", "batch=8", "--workload", "model=other")
    assert "1 run of 1 workload" in " ".join(result.stdout.split())
    assert "pinned: model other, batch 8" in result.stdout
    wrong = run("history", "--store", kept, "--workload", "batch=9")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "no workload matches 'batch=9'" in wrong.stderr
    assert "model=other, batch=8" in wrong.stderr


def test_what_reads_no_store_imports_no_database_driver() -> None:
    """The command line starts without them: they take longer than all else."""
    code = "import analyzer.cli, sys; print(sorted({'sqlalchemy', 'alembic', 'psycopg'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


def test_a_store_that_is_up_to_date_opens_without_alembic(tmp_path: Path) -> None:
    kept = tmp_path / "kept.sqlite"
    Store.opened(str(kept)).record(stored_run())
    code = (
        "import sys; from analyzer.store import Store;"
        f" Store.opened({str(kept)!r}).history(); print(sorted({{'alembic', 'scipy', 'pandas'}} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"
