"""The text of ``tracebound history``: the golden one, its width, and what hostile names may not do to it."""

from __future__ import annotations

import unicodedata
from itertools import count
from pathlib import Path

import msgspec
import pytest

from analyzer.diagnosis import Budget, Diagnosis
from analyzer.history import History
from analyzer.report import history_text
from analyzer.store import Store
from tests.report.builder import budget, hypothesis, path, rank, window
from tests.report.test_markdown import HOSTILE
from tests.store.runs import CAPTURED_NS, DAY_NS, MS, PINS, checked, compared, run

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "history.txt"
replace = msgspec.structs.replace
AFTER = path(kernel=3 * MS, launch_latency=MS, host_framework=4 * MS + 500_000, gap_dispatch=1)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A new store; every record is made an hour after the one before."""
    clock = count(CAPTURED_NS + 30 * DAY_NS, 3_600_000_000_000)
    monkeypatch.setattr("analyzer.store.store.time.time_ns", lambda: next(clock))
    return Store.opened(str(tmp_path / "tracebound.sqlite"))


def text(store: Store) -> str:
    return history_text.text(replace(store.history(), store="tracebound.sqlite"))


def budget_rows(shown: str) -> list[list[str]]:
    return [line.split() for line in shown.splitlines() if line.startswith("  1  2024-")]


def after(number: int) -> Diagnosis:
    """A run with shorter steps, of all ranks together."""
    of_all = Budget(
        phase="decode", scope="global", rank=None, windows=3, windows_excluded=0, step_ns_total=3 * (8_500_000 + 1),
        path_ns_total={name: 3 * ns for name, ns in AFTER.items()}, exposed_ns_total=None, inferred_ns_total=0,
        note="",
    )  # fmt: skip
    return run(number, budget=[of_all, budget()], ranks=[rank(), rank(1)])


def test_golden(store: Store, request: pytest.FixtureRequest) -> None:
    """``pytest --update-golden`` rewrites the file; read the difference before you commit it."""
    store.record(run(0))
    store.record(run(0, tracebound_version="0.2.0"))
    store.record_comparison(compared(checked("confirmed", 5_900_000)), run(0), after(1))
    store.record_comparison(compared(checked("not-tested", None)), run(0), run(2))
    unlike = replace(
        compared(), same_work="different", speedup=None,
        step_delta_ns=replace(compared().step_delta_ns, ci95=None, shown=False),
    )  # fmt: skip
    store.record_comparison(unlike, after(1), run(2))
    store.record(
        run(5, pins={}, time_zero_ns=None, hypotheses=[], budget=[budget("prefill"), budget(windows=3)])
    )
    shown = text(store)
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(shown, encoding="utf-8")
    assert shown == GOLDEN.read_text(encoding="utf-8")


def wide(name: str) -> Diagnosis:
    """Every text of a capture is ``name``; figures have many digits."""
    long = run(
        pins={"model": name, "batch": name},
        budget=[budget(name, 127, 12_345, path_ns_total=path(kernel=10**14, copy=10**13), step_ns_total=11 * 10**13)],
        hypotheses=[hypothesis(name, phase=name, intervention=name, predicted_step_ns=(10**9, 2 * 10**9))],
        ranks=[rank(127, windows=[window(0, phase=name, step=name)])],
        tracebound_version=name,
        boundary=name,
    )  # fmt: skip
    return replace(long, inputs=[replace(long.inputs[0], path=name)] * 8)


@pytest.mark.parametrize("name", ["x" * 500, "a b " * 200, *HOSTILE])
def test_names_change_no_structure_and_lines_stay_narrow(store: Store, name: str) -> None:
    for number in range(12):
        store.record(replace(wide(name), time_zero_ns=str(number)))
    head = replace(compared().pairs[0], phase_a=name, phase_b=name)
    found = replace(
        compared(checked(hypothesis=name, predicted_step_ns=(10**9, 2 * 10**9))), same_work_because=name, pairs=[head]
    )  # fmt: skip
    store.record_comparison(found, wide(name), run(1))
    shown = text(store)
    assert max(len(line) for line in shown.splitlines()) <= history_text.WIDTH
    assert not any(unicodedata.category(char) in {"Cc", "Cf"} and char != "\n" for char in shown)


def test_parts_that_are_shown_sum_to_the_mean_that_is_shown(store: Store) -> None:
    third = {"kernel": 1_000_333, "copy": 333, "launch.api": 334, "host.wait": 1_333_333, "unattributed": 1}
    store.record(run(budget=[budget(path_ns_total=third, windows=1, step_ns_total=sum(third.values()))]))
    (row,) = budget_rows(text(store))
    mean, *parts = (round(float(cell) * 1000) for cell in row[-6:])
    assert sum(parts) == mean == 2_334


@pytest.mark.parametrize(
    ("mean_ns", "shown"), [(99_999_999, "100.000"), (100 * MS, "100.0"), (20_000 * MS, "20,000")]
)
def test_long_steps_have_fewer_decimals(store: Store, mean_ns: int, shown: str) -> None:
    one = budget(path_ns_total={"kernel": mean_ns}, windows=1, step_ns_total=mean_ns)
    store.record(run(budget=[one], ranks=[rank(windows=[])]))
    (row,) = budget_rows(text(store))
    assert row[-7:-4] == ["-", shown, shown]


def test_the_slowest_rank_stands_for_a_run_without_a_common_account(store: Store) -> None:
    store.record(
        run(budget=[budget(), budget(number=0, step_ns_total=60 * MS, path_ns_total={"kernel": 60 * MS})])
    )
    assert "20.000" in text(store)


def test_only_the_latest_runs_are_shown_and_the_rest_is_counted(store: Store) -> None:
    for number in range(history_text.RUNS_SHOWN + 3):
        store.record(run(number))
    shown = text(store)
    assert "and 3 earlier runs: --format json lists all" in shown
    assert " 3: captured" not in shown
    assert " 4: captured" in shown


def test_phases_beyond_the_first_are_counted(store: Store) -> None:
    store.record(run(budget=[budget(f"decode {number}") for number in range(9)], ranks=[rank(windows=[])]))
    assert "and 3 more phases: --format json lists all" in text(store)


def test_an_empty_store_says_so() -> None:
    empty = History(tracebound_version="0.1.0", store="kept.sqlite", workloads=[])
    assert history_text.text(empty) == "kept.sqlite: 0 runs of 0 workloads\n"


def test_pins_of_a_workload_stand_at_its_head(store: Store) -> None:
    store.record(run(pins=PINS))
    assert "pinned: model llama-8b, precision bf16, batch 1\n" in text(store)
