"""Processes that make, migrate and write one store at the same time lose nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from analyzer.store import Store, StoreError, record
from analyzer.store.engine import engine_for, writing
from analyzer.store.url import parse
from tests.store.runs import CAPTURED_NS, DAY_NS, compared, run
from tests.store.writer import COMMON, own

PROCESSES = 4
RUNS = 6
ROOT = Path(__file__).resolve().parents[2]


def start(where: str, folder: Path) -> list[subprocess.Popen[str]]:
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.store.writer", where, str(number), str(RUNS), str(folder)],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for number in range(PROCESSES)
    ]  # fmt: skip
    deadline = time.monotonic() + 60
    while len(list(folder.glob("ready-*"))) < PROCESSES and time.monotonic() < deadline:
        time.sleep(0.01)
    (folder / "go").touch()
    return started


def test_processes_that_write_at_once_lose_nothing(where: str, tmp_path: Path) -> None:
    ended = [(process.communicate(timeout=120)[0], process.returncode) for process in start(where, tmp_path)]
    assert ended == [("", 0)] * PROCESSES
    (workload,) = Store.opened(where, create=False).history().workloads
    days = [COMMON, *(own(number, place) for number in range(PROCESSES) for place in range(RUNS))]
    assert [one.captured_ns for one in workload.runs] == [str(CAPTURED_NS + day * DAY_NS) for day in days]
    common, *others = workload.runs
    assert sorted((row.a, row.b) for row in workload.comparisons) == sorted(
        (common.run, one.run) for one in others
    )
    assert len(common.predictions[0].outcomes) == PROCESSES * RUNS
    for one in workload.runs:
        assert [(budget.phase, sum(budget.path_ns.values())) for budget in one.budgets] == [
            ("prefill", 10_000_000), ("decode", 10_000_000),
        ]  # fmt: skip


def test_a_run_that_fails_leaves_nothing_half_written(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    store = Store.opened(where)
    monkeypatch.setattr(record, "comparison_row", fail)
    with pytest.raises(KeyboardInterrupt):
        store.record_comparison(compared(), run(0), run(1))
    assert store.history().workloads == []


def test_a_writer_that_holds_a_file_too_long_is_named(tmp_path: Path) -> None:
    path = tmp_path / "kept.sqlite"
    store = Store.opened(str(path), lock_wait_s=0.1)
    with (
        writing(engine_for(parse(str(path)))),
        pytest.raises(StoreError, match=r"(?s)kept\.sqlite: .*locked.*another process holds it"),
    ):
        store.record(run())
    assert store.record(run()).new


def test_a_reader_does_not_wait_for_a_writer(where: str) -> None:
    store = Store.opened(where, lock_wait_s=0.1)
    store.record(run())
    with writing(engine_for(parse(where))) as connection:
        connection.execute(sa.text("UPDATE runs SET boundary = 'host'"))
        (workload,) = Store.opened(where, create=False, lock_wait_s=0.1).history().workloads
        assert workload.runs[0].boundary == "device"
