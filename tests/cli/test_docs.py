"""The documentation says what the program does: commands, options, files, categories, links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer.main

from analyzer.categories import CATEGORY_NAMES, EXPOSURE_NAMES
from analyzer.cli import app
from analyzer.report.csv_tables import TABLES
from analyzer.report.labels import CATEGORY_WORDS, EXPOSURE_WORDS, PATH_GROUPS
from collectors.cli import COMMANDS as COLLECTORS
from tests.cli.conftest import run

ROOT = Path(__file__).resolve().parents[2]
CLI = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "reading-a-diagnosis.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _with_subcommands(group: Any, before: str = "") -> dict[str, Any]:
    """Every command by its full name: ``calc`` and ``calc floor``."""
    found = {}
    for name, command in group.commands.items():
        found[before + name] = command
        if hasattr(command, "commands"):
            found |= _with_subcommands(command, f"{before}{name} ")
    return found


COMMANDS = _with_subcommands(typer.main.get_command(app))


def section(command: str) -> str:
    level = "###" if " " in command else "##"
    text = CLI.split(f"\n{level} `tracebound {command}`\n")[1]
    return re.split(r"\n## |\n### `tracebound ", text)[0]


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_each_command_and_option_is_documented(command: str) -> None:
    text = section(command)
    for parameter in COMMANDS[command].params:
        for option in (*parameter.opts, *parameter.secondary_opts):
            if option.startswith("-"):
                assert re.search(rf"`{re.escape(option)}[ `]", text), f"{option} is missing"


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_each_documented_option_exists(command: str) -> None:
    known = {
        option
        for parameter in COMMANDS[command].params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    rows = [line.split(" | ")[0] for line in section(command).splitlines() if line.startswith("| `-")]
    for option in re.findall(r"`(-[-a-z]+)", "\n".join(rows)):
        assert option in known


def test_each_documented_command_exists() -> None:
    collectors = {f"collect {name}" for name in COLLECTORS}
    assert set(re.findall(r"^##+ `tracebound ([\w -]+)`", CLI, re.MULTILINE)) == set(COMMANDS) | collectors


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_each_help_has_an_example_that_the_docs_repeat(command: str) -> None:
    shown = " ".join(run(*command.split(), "--help").output.split())
    example = shown.split("Example: ")[1]
    assert example in CLI


def test_each_file_is_documented() -> None:
    for name in TABLES:
        assert f"`diagnosis/{name}`" in CLI


def test_each_category_and_label_is_explained() -> None:
    for name in (*CATEGORY_NAMES.values(), *EXPOSURE_NAMES.values()):
        assert f"`{name}`" in GUIDE
    assert list(CATEGORY_WORDS) == list(CATEGORY_NAMES.values())
    assert list(EXPOSURE_WORDS) == list(EXPOSURE_NAMES.values())


def test_the_rank_table_shows_each_category_once() -> None:
    grouped = [name for group in PATH_GROUPS.values() for name in group]
    assert sorted(grouped) == sorted(CATEGORY_NAMES.values())


@pytest.mark.parametrize(
    "page",
    ["README.md", "CONTRIBUTING.md", "docs/README.md", "docs/cli.md", "docs/capture.md", "docs/store.md"],
)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_ci_runs_the_readmes_test_command() -> None:
    commands = re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL)
    assert len(commands) == 2
    assert all(command.startswith("python3 -m venv .venv && ") for command in commands)
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert commands[1] in ci
    assert commands[1] in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
