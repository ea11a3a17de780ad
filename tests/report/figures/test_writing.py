"""Figures in the output directory: written whole, replaced, removed when they no longer belong there."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.analysis import Analysis
from analyzer.report import outputs
from analyzer.report.figures import NAMES, OF_TOKENS, SUFFIXES, Drawn, Figures, NotDrawn, file_names
from tests.cli.conftest import run
from tests.report import builder
from tests.report.figures import tables


def drawn(*names: str) -> Figures:
    """Figures as they would be drawn, without drawing."""
    return Figures(
        tuple(Drawn(name, f"title of {name}", "seen", b"<svg/>", b"png") for name in names),
        tuple(NotDrawn(name, "no data") for name in NAMES if name not in names),
    )


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that the next run draws."""
    names = list(NAMES)
    monkeypatch.setattr(outputs.drawings, "figures", lambda _: drawn(*names))
    return names


def written(directory: Path) -> set[str]:
    return {path.name for path in (directory / "diagnosis" / "figures").glob("*")}


def test_every_figure_lies_there_twice_and_the_report_shows_it(tmp_path: Path, draws: list[str]) -> None:
    report = outputs.write(tables.analysis(), tmp_path)
    assert written(tmp_path) == set(file_names()) == {name + suffix for name in NAMES for suffix in SUFFIXES}
    assert (tmp_path / "diagnosis" / "figures" / "timeline.svg").read_bytes() == b"<svg/>"
    for name in NAMES:
        assert f"(diagnosis/figures/{name}.svg)" in report.read_text(encoding="utf-8")


def test_figures_that_are_not_drawn_again_go_and_the_users_files_stay(
    tmp_path: Path, draws: list[str]
) -> None:
    outputs.write(tables.analysis(), tmp_path)
    (tmp_path / "diagnosis" / "figures" / "mine.svg").write_text("mine")
    draws[:] = ["exposed_time"]
    report = outputs.write(tables.analysis(), tmp_path)
    assert written(tmp_path) == {"exposed_time.svg", "exposed_time.png", "mine.svg"}
    assert "timeline.svg" not in report.read_text(encoding="utf-8")


def test_without_figures_none_is_left_behind(tmp_path: Path, draws: list[str]) -> None:
    outputs.write(tables.analysis(), tmp_path)
    outputs.write(tables.analysis(), tmp_path, figures=False)
    assert not (tmp_path / "diagnosis" / "figures").exists()
    outputs.write(tables.analysis(), tmp_path, figures=False)
    assert not (tmp_path / "diagnosis" / "figures").exists()


def test_a_failed_drawing_leaves_the_old_run_as_it_was(
    tmp_path: Path, draws: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs.write(tables.analysis(), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def fail(_: Analysis) -> Figures:
        raise KeyboardInterrupt

    monkeypatch.setattr(outputs.drawings, "figures", fail)
    with pytest.raises(KeyboardInterrupt):
        outputs.write(tables.analysis(builder.diagnosis(notes=["new"])), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("option", [None, "--figures", "--no-figures"])
def test_the_command_draws_unless_told_otherwise(
    option: str | None, tmp_path: Path, draws: list[str]
) -> None:
    assert run("demo", str(tmp_path / "demo"), "-q").exit_code == 0
    trace = sorted((tmp_path / "demo" / "eager").iterdir())[0]
    options = [] if option is None else [option]
    result = run("diagnose", str(trace), "-q", "-o", str(tmp_path / "out"), *options)
    assert result.exit_code == 0
    expected = set() if option == "--no-figures" else set(file_names())
    assert written(tmp_path / "out") == expected


def test_each_figure_is_described() -> None:
    guide = Path(__file__).parents[3] / "docs" / "reading-a-diagnosis.md"
    section = guide.read_text(encoding="utf-8").split("\n## Figures\n")[1].split("\n## ")[0]
    rows = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
    assert rows == [*NAMES, *OF_TOKENS]
