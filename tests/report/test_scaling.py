"""SCALING.md, runs.csv and the figures of a literal study."""

from __future__ import annotations

import csv
import unicodedata
from pathlib import Path

import msgspec
import pytest
from markdown_it import MarkdownIt

from analyzer.report.figures import Figures
from analyzer.report.scaling import render_scaling, terminal_lines
from analyzer.report.scaling_figures import NAMES, figures
from analyzer.report.scaling_outputs import write_scaling
from analyzer.scaling.result import Against, CommonCount, Scaling
from analyzer.scaling.study import Given, study
from tests.report.test_markdown import HOSTILE
from tests.scaling.runs import PINS, alternating, diagnosis

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "scaling.md"


def literal(*lengths: tuple[int, int], batch: str = "8") -> Scaling:
    pins = [PINS] * (len(lengths) - 1) + [{**PINS, "batch": batch}]
    return study(
        [
            Given(f"ranks{ranks}", diagnosis(alternating(us), one), ranks)
            for (ranks, us), one in zip(lengths, pins, strict=True)
        ]
    )


@pytest.fixture(scope="module")
def found() -> Scaling:
    return literal((1, 2_000), (2, 1_250), (4, 800))


def rows(text: str, head: str) -> list[list[str]]:
    """Cells of the table that begins with ``head``, without the header."""
    lines = text[text.index(f"| {head}") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_answer_comes_first(found: Scaling) -> None:
    first, second = render_scaling(found).split("\n\n")[1:3]
    assert first.startswith("From 1 rank to 4 the mean step goes from 2.0")
    assert "efficiency" in first and "(measured)" in first
    assert second.startswith("Fit of `S + P / N`: **S 0.4")
    assert "serial share **2" in second


def test_the_columns_of_categories_sum(found: Scaling) -> None:
    table = rows(render_scaling(found), "What bounds the step")
    *parts, whole = [[float(cell) for cell in row[1:-1]] for row in table]
    assert [round(sum(column), 3) for column in zip(*parts, strict=True)] == whole
    assert found.fit is not None
    assert whole[-2:] == [round(found.fit.serial_ns / 1e6, 3), round(found.fit.parallel_ns / 1e6, 3)]


def test_models_are_labelled(found: Scaling) -> None:
    text = render_scaling(found)
    assert "## Beyond the ranks measured: a model" in text
    model = text.split("## Beyond the ranks measured: a model")[1].split("##")[0]
    assert [row.split("|")[-2].strip() for row in model.splitlines() if row.startswith("| S")] == [
        "model"
    ] * 2
    assert "holds beyond 4 ranks, which nothing here shows" in text


def test_what_grows_is_told_apart_from_serial_time(found: Scaling) -> None:
    assert found.fit is not None and "a price of the ranks" not in render_scaling(found)
    fit = msgspec.structs.replace(found.fit, growing_ns=2e5, own_serial_share=0.1234)
    growing = msgspec.structs.replace(found.categories[0], behaviour="grows")
    text = render_scaling(
        msgspec.structs.replace(found, fit=fit, categories=[growing, *found.categories[1:]])
    )
    assert "Of S, 0.200 ms are added by what grows with the ranks: a price of the ranks" in text
    assert "Without it the serial share is 12.34 %." in text
    assert "P below 0 beyond chance: `kernel`." in text


def test_a_run_that_is_left_out_is_marked() -> None:
    text = render_scaling(literal((1, 2_000), (2, 1_250), (4, 800), batch="16"))
    assert "- ✻ `ranks4` is unlike the others (batch): it is left out." in text
    assert rows(text, "Run ")[2][0] == "✻ `ranks4`"
    assert rows(text, "Pin ") == [["batch", "`8`", "`8`", "`16`"]]


def test_without_a_fit_the_reason_stands() -> None:
    found = literal((1, 2_000), (2, 1_250), batch="16")
    text = render_scaling(found)
    assert "**No fit**: runs that are alike have one rank count only." in text
    drawn = figures(found)
    assert [one.name for one in drawn.not_drawn] == ["categories", "efficiency"]


def against(other_1: float, other_4: float, change: str) -> Against:
    times = [(1, 2e6, other_1), (4, 1e6, other_4)]
    return Against(
        other="old.json",
        common=[
            CommonCount(
                ranks=ranks, this_ns=ns, other_ns=other, ratio=other / ns, ratio_ci95=None, change="better"
            )
            for ranks, ns, other in times
        ],
        fewest=1,
        most=4,
        speedup_this=2.0,
        speedup_other=other_1 / other_4,
        speedup_change=change,  # type: ignore[arg-type]
        serial_share_this=0.4,
        serial_share_other=0.2,
        differences=["runtime: 1 before, 2 now"],
    )


def test_both_facts_are_told_where_they_go_opposite_ways(found: Scaling) -> None:
    text = render_scaling(msgspec.structs.replace(found, against=against(8e6, 2e6, "worse")))
    assert "At 4 ranks the mean step goes from 2.000 to 1.000 ms: **2.000x**, shorter." in text
    assert (
        "From 1 rank to 4 the speedup goes from 4.000x to 2.000x: **scaling got worse**; the fitted serial share goes"
        " from 20.00 % to 40.00 %."
    ) in text
    assert "Absolute performance improved while scaling got worse" in text
    ends = {"speedup_other_ci95": (3.9, 4.1), "serial_share_this_ci95": (0.3, 0.5)}
    held = msgspec.structs.replace(against(8e6, 2e6, "worse"), **ends)
    text = render_scaling(msgspec.structs.replace(found, against=held))
    assert "the speedup goes from 4.000x (95 % interval 3.900 to 4.100) to 2.000x:" in text
    assert "from 20.00 % to 40.00 % (95 % interval 30.00 % to 50.00 %)." in text
    assert "Pinned otherwise: runtime: 1 before, 2 now." in text
    better = render_scaling(msgspec.structs.replace(found, against=against(3e6, 2e6, "better")))
    assert "**scaling got better**" in better and "Absolute performance improved while" not in better


def named(name: str) -> Scaling:
    """A study in which everything that can bear a foreign text bears this one."""
    found = study(
        [
            Given(name, diagnosis(alternating(us), {**PINS, "flags": f"{name}{ranks}"}), ranks)
            for ranks, us in ((1, 2_000), (2, 1_250), (4, 800))
        ]
    )
    runs = [msgspec.structs.replace(run, phase=name, unlike=["batch"]) for run in found.runs]
    changes = {"other": name, "differences": [f"runtime: {name} before, 2 now"]}
    held = msgspec.structs.replace(against(8e6, 2e6, "worse"), **changes)
    return msgspec.structs.replace(found, runs=runs, notes=[name], against=held)


def test_golden(request: pytest.FixtureRequest) -> None:
    """``pytest --update-golden`` rewrites the file; read the difference before you commit it."""
    shown = render_scaling(named("runs/ranks"))
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(shown, encoding="utf-8")
    assert shown == GOLDEN.read_text(encoding="utf-8")


def tokens(text: str) -> list[str]:
    parsed = MarkdownIt("commonmark").enable("table").parse(text)
    return [token.type for token in parsed if token.nesting]


@pytest.mark.parametrize("name", [name for name in HOSTILE if name.strip()])
def test_hostile_names_change_no_structure(name: str) -> None:
    attacked = named(name)
    text = render_scaling(attacked)
    assert tokens(text) == tokens(render_scaling(named("name")))
    for shown in (text, *terminal_lines(attacked)):
        assert not any(unicodedata.category(char) in {"Cc", "Cf"} and char != "\n" for char in shown)


def test_files(found: Scaling, tmp_path: Path) -> None:
    drawn = figures(found)
    assert [one.name for one in drawn.drawn] == list(NAMES)
    report = write_scaling(found, tmp_path, drawn)
    assert report.read_text(encoding="utf-8").count("](scaling/figures/") == 3
    names = sorted(path.name for path in (tmp_path / "scaling" / "figures").iterdir())
    assert names == sorted(f"{name}.{kind}" for name in NAMES for kind in ("png", "svg"))
    assert (tmp_path / "scaling" / "scaling.json").read_bytes() == found.to_json()
    with (tmp_path / "scaling" / "runs.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [(row["run"], row["ranks"], row["used"]) for row in table] == [
        ("ranks1", "1", "true"),
        ("ranks2", "2", "true"),
        ("ranks4", "4", "true"),
    ]
    assert int(table[0]["kernel"]) == found.runs[0].mean_ns["kernel"] == 2_000_000
    write_scaling(found, tmp_path, Figures())
    assert not (tmp_path / "scaling" / "figures").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["SCALING.md", "scaling"]


def test_figures_are_the_same_bytes_each_time(found: Scaling) -> None:
    assert figures(found) == figures(found)
