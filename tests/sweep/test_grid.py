"""Grid files: every defect at its line and column; what grid, manifest and step names say of a place."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.errors import TraceError, UsageError
from analyzer.sweep import sweep
from analyzer.sweep.grid import cache_kind, number_in, read_grid
from tests.sweep.builder import manifested, run


def grid(folder: Path, text: str) -> Path:
    path = folder / "grid.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_grid_names_runs_beside_itself_and_leaves_empty_pins_open(tmp_path: Path) -> None:
    path = grid(
        tmp_path,
        "run, context,batch,cache_initialization,model\n"
        'a,1024,8,real-prefix,m\n"b,c","4,096 tokens",,"Real Prefix",\n\n',
    )
    one, two = read_grid(path)
    assert (one.name, one.path) == ("a", str(tmp_path / "a"))
    assert one.pins == {"context": "1024", "batch": "8", "cache_initialization": "real-prefix", "model": "m"}
    assert two.name == "b,c"
    assert two.pins == {"context": "4,096 tokens", "cache_initialization": "Real Prefix"}
    assert two.where.endswith("(line 3)")


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ("run,contxt\na,1\n", "line 1, column 'contxt'", "is no column"),
        ("run,context,context\na,1,1\n", "line 1, column 'context'", "twice"),
        ("context\n1\n", "line 1", "no column 'run'"),
        ("run,context\na,8k\n", "line 2, column 'context'", "'8k' is no whole number of tokens"),
        ("run,batch\na,0\n", "line 2, column 'batch'", "no whole number of sequences"),
        ("run,context\n,5\n", "line 2, column 'run'", "is empty"),
        ("run,context\na\n", "line 2", "has 1 fields, the header 2"),
        ('run,context\n"a,5\n', "line 2", "is no CSV"),
        ("run,context\n", "", "holds no run"),
        ("", "line 1", "no column 'run'"),
    ],
)
def test_a_defect_is_named_at_its_place(tmp_path: Path, text: str, where: str, why: str) -> None:
    with pytest.raises(TraceError) as error:
        read_grid(grid(tmp_path, text))
    assert error.value.where == where
    assert why in error.value.why


def test_a_missing_grid_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="No such file"):
        read_grid(tmp_path / "none.csv")


def test_numbers_and_caches_have_one_spelling() -> None:
    assert [number_in(text) for text in ("8192", "8,192", "8_192 tokens", " 7 ")] == [8192, 8192, 8192, 7]
    assert [number_in(text) for text in ("8k", "0", "1.5", "-3", "8,19", "")] == [None] * 6
    assert [cache_kind(text) for text in ("Real_Prefix", "SEEK", "warm, by hand")] == [
        "real-prefix",
        "seek",
        "warm, by hand",
    ]


def test_a_manifest_places_a_run_and_the_grid_fills_what_it_leaves_open() -> None:
    pins = {"context": "2048 tokens", "cache_initialization": "Real prefix"}
    one = manifested(run("a", 30, context=None, batch=4, cache=None), **pins)
    found = sweep([one, run("b", 40, context=4_096, batch=4)])
    cell = found.cells[0]
    assert (cell.context.value, cell.context.source) == (2_048, "manifest")
    assert (cell.batch.value, cell.batch.source) == (4, "grid")
    assert (cell.cache_initialization, cell.cache_source) == ("real-prefix", "manifest")
    assert len(found.lines) == 1


def test_grid_and_manifest_that_contradict_one_another_are_refused() -> None:
    one = manifested(run("a", 30, context=1_024), context="2048")
    with pytest.raises(UsageError) as error:
        sweep([one, run("b", 40, context=4_096)])
    assert "'1024'" in error.value.why and "'2048'" in error.value.why
    assert error.value.path == "grid.csv (line 2)"
    same = manifested(run("a", 30, context=1_024), context="1,024 tokens")
    assert sweep([same, run("b", 40, context=4_096)]).cells[0].context.source == "grid"


def test_a_context_that_is_no_number_lies_nowhere_and_is_listed() -> None:
    odd = manifested(run("a", 30, context=None, batch=None), context="8k")
    found = sweep([odd, run("b", 40, context=4_096), run("c", 50, context=8_192)])
    assert not found.cells[0].fitted
    assert "a: context is '8k', no whole number above 0" in found.unplaced
    assert found.lines[0].cells == ["b", "c"]


def test_one_run_and_the_same_run_twice_are_refused() -> None:
    with pytest.raises(UsageError, match="is no sweep"):
        sweep([run("a", 30, context=1_000)])
    one = run("a", 30, context=1_000)
    with pytest.raises(UsageError, match="given twice"):
        sweep([one, one])
    copy = type(one)("copy", one.diagnosis, one.declared)
    with pytest.raises(UsageError, match="holds the same capture as 'a'"):
        sweep([one, copy])
