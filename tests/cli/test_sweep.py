"""``tracebound sweep``: captures of a simulated program with known slopes, laid out by grid file and manifest."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from collectors.manifest import RankRecord, declared
from collectors.run_folder import RunFolder
from fixtures.planted.sweep import Truth, decode, write_cell
from tests.cli.conftest import run

TRUTH = Truth(20_000, 2_000, 40_000, 3_000, step_noise=0.003, run_noise=0.0005)
CELLS = [(1_024, 2), (8_192, 2), (32_768, 2), (8_192, 8), (8_192, 4)]


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of TRUTH; the grid file beside them."""
    folder = tmp_path_factory.mktemp("sweep")
    draw = random.Random("sweep/cli")
    rows = ["run,context,batch,cache_initialization"]
    for context, batch in CELLS:
        name = f"c{context}-b{batch}"
        write_cell(decode(TRUTH, context, batch, draw, steps=10), folder / name, nsys=False)
        rows.append(f"{name},{context},{batch},real-prefix")
    (folder / "grid.csv").write_text("\n".join(rows) + "\n")
    return folder


def variant(grid: Path, name: str, *lines: str) -> str:
    path = grid / name
    path.write_text("\n".join(["run,context,batch,cache_initialization", *lines]) + "\n")
    return str(path)


def test_known_slopes_are_recovered_and_written(grid: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run("sweep", "--grid", str(grid / "grid.csv"), "-o", str(out))
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f"{out / 'SWEEP.md'}\n"
    assert {path.name for path in out.iterdir()} == {"SWEEP.md", "sweep"}
    found = json.loads((out / "sweep" / "sweep.json").read_bytes())
    assert (found["format"], found["format_version"]) == ("tracebound.sweep", 1)
    lines = {(line["axis"], line["at"]): line for line in found["lines"]}
    for key, truth in ((("context", 2), TRUTH.over_context(2)), (("batch", 8_192), TRUTH.over_batch(8_192))):
        low, high = lines[key]["slope"]["ci95"]
        assert low <= truth <= high
        assert high - low < 0.25 * truth
        parts = sum(part["value"] for part in lines[key]["categories"].values())
        assert parts == pytest.approx(lines[key]["slope"]["value"])
    assert found["kv_context"]["verdict"] == "supported"
    assert found["cache_undeclared"] == []
    report = (out / "SWEEP.md").read_text()
    for name in ("step_over_context", "step_over_batch", "rates"):
        assert f"(sweep/figures/{name}.svg)" in report
        assert (out / "sweep" / "figures" / f"{name}.svg").exists()
    cells = (out / "sweep" / "cells.csv").read_text().splitlines()
    assert len(cells) == 1 + len(CELLS)
    assert (out / "sweep" / "slopes.csv").read_text().startswith("axis,at,")


def test_two_flat_points_are_refused(tmp_path: Path) -> None:
    truth = Truth(20_000, 0, 40_000, 3_000, step_noise=0.003, run_noise=0.0005)
    draw = random.Random("sweep/flat")
    for context in (1_024, 65_536):
        write_cell(decode(truth, context, 2, draw, steps=8), tmp_path / f"flat-{context}", nsys=True)
    path = tmp_path / "flat.csv"
    path.write_text(
        "run,context,batch,cache_initialization\nflat-1024,1024,2,synthetic\nflat-65536,65536,2,synthetic\n"
    )
    result = run("sweep", "--grid", str(path), "-o", str(tmp_path / "out"), "--no-figures")
    assert result.exit_code == 0, result.stderr
    assert "two points: neither a slope nor constancy is established" in result.stderr
    report = (tmp_path / "out" / "SWEEP.md").read_text()
    assert "not O(1), however flat" in report
    found = json.loads((tmp_path / "out" / "sweep" / "sweep.json").read_bytes())
    assert [line["finding"] for line in found["lines"]] == ["two points"]
    assert found["kv_context"]["verdict"] == "inconclusive"


def test_an_undeclared_cache_is_shouted_also_when_quiet(grid: Path, tmp_path: Path) -> None:
    path = variant(
        grid, "undeclared.csv", "c1024-b2,1024,2,", "c8192-b2,8192,2,", "c32768-b2,32768,2,real-prefix"
    )
    result = run("sweep", "--grid", path, "-o", str(tmp_path), "--no-figures", "-q")
    assert result.exit_code == 0, result.stderr
    assert "WARNING: CACHE INITIALIZATION UNDECLARED of c1024-b2, c8192-b2" in result.stderr
    report = (tmp_path / "SWEEP.md").read_text()
    assert report.index("CACHE INITIALIZATION UNDECLARED") < report.index("## The grid")
    found = json.loads((tmp_path / "sweep" / "sweep.json").read_bytes())
    assert found["cache_undeclared"] == ["c1024-b2", "c8192-b2"]
    assert found["kv_context"]["verdict"] == "inconclusive"


def test_json_alone_writes_no_file_and_repeats_to_the_byte(
    grid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, again = (
        run("sweep", "--grid", str(grid / "grid.csv"), "--format", "json", "-q", "--experts", "64,4")
        for _ in range(2)
    )
    assert (first.exit_code, list(tmp_path.iterdir())) == (0, [])
    assert first.stdout == again.stdout
    found = json.loads(first.stdout)
    assert found["experts"] == [64, 4]
    assert found["batching"][0]["points"][0]["expert_union"] == pytest.approx(64 * (1 - (1 - 4 / 64) ** 2))


def test_a_diagnosis_takes_the_sweeps_verdict(grid: Path, tmp_path: Path) -> None:
    swept = run("sweep", "--grid", str(grid / "grid.csv"), "-o", str(tmp_path), "--no-figures", "-q")
    assert swept.exit_code == 0, swept.stderr
    result = run(
        "diagnose", str(grid / "c32768-b2"), "--sweep", str(tmp_path / "sweep" / "sweep.json"), "--format", "json", "-q"
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["sweep"]["relation"] == "cell"
    (row,) = (row for row in found["hypotheses"] if row["id"] == "kv-context")
    assert row["verdict"] == "supported"
    bad = run("diagnose", str(grid / "c32768-b2"), "--sweep", str(grid / "grid.csv"), "-q")
    assert bad.exit_code == 2
    assert "pass a sweep.json that tracebound sweep wrote" in bad.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--experts", "4,64"], "'4,64' is no pair E,K with 1 <= K <= E"),
        (["--phase", "("], "is no regular expression"),
        (["--phase", "prefill"], "'prefill' matches none of decode"),
        (["--grid", "none.csv"], "No such file"),
    ],
)
def test_bad_usage_says_what_to_do(grid: Path, tmp_path: Path, arguments: list[str], reason: str) -> None:
    given = ["--grid", str(grid / "grid.csv")] if "--grid" not in arguments else []
    result = run("sweep", *given, *arguments, "-o", str(tmp_path / "out"), "--no-figures")
    assert result.exit_code == 2
    assert reason in result.stderr
    assert "next:" in result.stderr
    assert not (tmp_path / "out").exists()


def test_no_run_and_one_run_are_no_sweep(grid: Path) -> None:
    assert "no run is given" in run("sweep", "-q").stderr
    assert "1 run is no sweep" in run("sweep", str(grid / "c1024-b2"), "-q").stderr


def collected(folder: Path, context: int, draw: random.Random) -> Path:
    """A run folder as the collectors leave it, its place pinned in the manifest."""
    home = RunFolder(folder / f"run-{context}")
    path = write_cell(decode(TRUTH, context, 2, draw, steps=8), folder / f"made-{context}", nsys=True)
    place = home.path / path.name
    place.write_bytes(path.read_bytes())
    pins = declared([f"context={context}", "batch=2", "cache_initialization=seek", "model=toy"])
    record = RankRecord(rank=0, collector="nsys", status="complete", world_size=1, pins=pins)
    home.write(replace(record, files=[home.describe(place, "nsys-sqlite")]))
    return home.path


def test_runs_lie_where_their_manifests_pin_them(tmp_path: Path) -> None:
    draw = random.Random("sweep/manifest")
    runs = [str(collected(tmp_path, context, draw)) for context in (1_024, 8_192, 32_768)]
    result = run("sweep", *runs, "--format", "json", "-q")
    assert result.exit_code == 0, result.stderr
    assert "UNDECLARED" not in result.stderr
    found = json.loads(result.stdout)
    assert [(cell["context"]["value"], cell["context"]["source"]) for cell in found["cells"]] == [
        (1_024, "manifest"),
        (8_192, "manifest"),
        (32_768, "manifest"),
    ]
    (line,) = found["lines"]
    assert (line["at"], line["cache_initialization"], line["finding"]) == (2, "seek", "grows")
    low, high = line["slope"]["ci95"]
    assert low <= TRUTH.over_context(2) <= high
