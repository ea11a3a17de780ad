"""``tracebound calc``: the worked examples, strict JSON, refusals, and the outputs that the docs show."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from analyzer.cli.calc import app
from tests.calculators.worked_examples import EXAMPLES, Example
from tests.cli.conftest import run

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "calculators.md").read_text(encoding="utf-8")
NAMES = [
    "floor", "intensity", "slot", "collective", "alpha-beta", "coverage", "occupancy", "amdahl", "scaling",
    "whatif", "speculation", "batching",
]  # fmt: skip


def calc(command: str, *more: str) -> Any:
    result = run("calc", *shlex.split(command), *more)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    return result


def no_constant(text: str) -> None:
    raise AssertionError(f"{text} is no JSON")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.figure}: {example.what}")
def test_the_command_gives_the_number_and_its_kind(example: Example) -> None:
    found = json.loads(calc(example.command, "--format", "json").stdout, parse_constant=no_constant)
    figure = next(figure for figure in found["figures"] if figure["name"] == example.figure)
    assert round(figure["value"] / example.unit, example.digits) == example.expected
    assert figure["kind"] == example.kind
    rows = [[cell.strip() for cell in line.split("|")] for line in calc(example.command).stdout.splitlines()]
    assert any(row[2:4] == [example.shown, example.kind] for row in rows if len(row) == 5)


@pytest.mark.parametrize("name", NAMES)
def test_each_answer_is_labelled_and_says_what_it_assumes(name: str) -> None:
    example = run("calc", name, "--help").stdout.split("Example: tracebound calc ")[1]
    found = json.loads(calc(example, "--format", "json").stdout, parse_constant=no_constant)
    assert (found["format"], found["format_version"], found["calculator"]) == ("tracebound.calc", 1, name)
    assert found["kind"] in ("budget", "bound", "model", "fit")
    assert found["inputs"]
    assert found["assumptions"]
    assert calc(example).stdout.startswith(f"# {name}: {found['kind']}\n")


def test_the_twelve_calculators_are_there() -> None:
    assert list(typer.main.get_command(app).commands) == NAMES  # type: ignore[attr-defined]


def test_inputs_are_repeated_as_they_were_understood() -> None:
    command = "floor --bytes 10GB,8GB --bytes 2GiB --bandwidth 2TB/s --observed 20ms"
    found = json.loads(calc(command, "--format", "json").stdout)
    speeds = [2e12, 2e12]
    assert found["inputs"] == {
        "phases": [
            {"bytes_per_rank": [10e9, 8e9], "bytes_per_s": speeds},
            {"bytes_per_rank": [2 * 1024**3] * 2, "bytes_per_s": speeds},
        ],
        "observed_ns": 20e6,
        "tokens": 1,
    }


def test_a_figure_without_its_input_is_null_and_not_in_the_text() -> None:
    found = json.loads(calc("coverage --blocks 12 --sms 132", "--format", "json").stdout)
    assert {item["name"]: item["value"] for item in found["figures"]} == {
        "coverage": 12 / 132,
        "waves": None,
        "last_wave_blocks": None,
        "tail": None,
    }
    assert "waves" not in calc("coverage --blocks 12 --sms 132").stdout


@pytest.mark.parametrize(
    ("command", "option", "why"),
    [
        ("floor --bytes -2GB --bandwidth 2TB/s", "--bytes", "-2000000000 is negative"),
        ("floor --bytes 2GB --bandwidth 0TB/s", "--bandwidth", "is not above 0"),
        ("floor --bytes 2GB,3GB --bandwidth 2TB/s --ranks 8", "--bytes", "2 values for 8 ranks"),
        ("floor --bytes 2GB --bandwidth 2TB/s --ranks 0", "--ranks", "0 ranks"),
        ("intensity --stored-bytes-per-weight nan", "--stored-bytes-per-weight", "no finite number"),
        ("intensity --stored-bytes-per-weight 2 --peak 989TFLOP/s", "--bandwidth", "is missing"),
        ("slot --step 16.6 --launches 2790", "--step", "the unit is missing"),
        ("slot --step 16.6ms --launches 0", "--launches", "0 is less than 1"),
        ("collective --calls 92 --latency 58.7us --elements 5", "--element-bytes", "is missing"),
        ("alpha-beta --point 14KiB=58.7us", "--point", "1 size"),
        ("alpha-beta --point 14KiB", "--point", "is not SIZE=TIME"),
        ("alpha-beta --point 1KiB=5us --point 2KiB=6us --at 3KiB", "--at", "outside the fitted range"),
        ("coverage --blocks 12 --sms 0", "--sms", "0 is less than 1"),
        (
            "occupancy --compute-capability 11.0 --threads-per-block 32 --registers-per-thread 32",
            "--compute-capability",
            "unknown here",
        ),
        (
            "occupancy --compute-capability 9.0 --threads-per-block 32 --registers-per-thread 32 "
            "--shared-static 0.5",
            "--shared-static",
            "no whole number of bytes",
        ),
        ("amdahl --phase-share 70 --speedup 3", "--phase-share", "70 is no share"),
        ("amdahl --phase-share 0.7 --speedup 3 --ways 1", "--ways", "1 is less than 2"),
        ("scaling --point 8=80ms", "--point", "1 rank count"),
        ("scaling --point eight=80ms --point 1=9ms", "--point", "is not RANKS=TIME"),
        ("whatif --term a=-1ms --change a=1ms", "--term (a)", "-1000000 is negative"),
        ("whatif --term a=1ms --change b=1ms", "--change", "'b' is no term"),
        ("whatif --term a=1ms --term a=2ms --change a=1ms", "--term", "given twice"),
        ("whatif --term 1ms --change a=1ms", "--term", "is not NAME=TIME"),
        ("speculation --acceptance 1.2 --draft-tokens 7", "--acceptance", "1.2 is no share"),
        (
            "speculation --acceptance 0.5 --draft-tokens 7 --verify 1ms --draft 1ms",
            "--baseline",
            "is missing",
        ),
        (
            "batching --batch 8 --step 20ms --experts 8 --experts-per-token 9",
            "--experts-per-token",
            "9 is more",
        ),
    ],
)
def test_a_refusal_names_the_option_and_the_reason(command: str, option: str, why: str) -> None:
    result = run("calc", *shlex.split(command))
    assert result.exit_code == 2
    assert result.stdout == ""
    first, hint = result.stderr.splitlines()
    assert first.startswith(f"tracebound: {option}: ")
    assert why in first
    assert hint.startswith("  next: ")
    assert not re.search(r"\b[a-z]+_[a-z_]+\b", hint)


def test_text_from_the_command_line_cannot_steer_a_terminal() -> None:
    result = calc("alpha-beta --point 1KiB=5us --point 2KiB=6us --topology '\x1b[31mred'")
    assert "\x1b" not in result.stdout


BLOCKS = re.findall(r"```console\n\$ tracebound calc (.*)\n((?:.|\n)*?)```", PAGE)


@pytest.mark.parametrize(("command", "shown"), BLOCKS, ids=[command for command, _ in BLOCKS])
def test_the_docs_show_what_is_printed(command: str, shown: str) -> None:
    assert calc(command).stdout == shown


def test_the_docs_have_a_section_and_an_example_for_each() -> None:
    assert re.findall(r"^## (.*)", PAGE, re.MULTILINE) == NAMES
    assert {command.split()[0] for command, _ in BLOCKS} == set(NAMES)
