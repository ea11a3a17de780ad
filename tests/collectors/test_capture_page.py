"""docs/capture.md and the options in docs/cli.md: what they tell to type is typed here, in this order, by a shell."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from collectors.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "capture.md").read_text(encoding="utf-8")
CLI = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"(?:<!-- (needs [a-z A-Z]+) -->\n)?```(\w+)\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Block:
    needs: str
    language: str
    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


BLOCKS = [Block(*match) for match in BLOCK.findall(PAGE)]
RUN_HERE = [line for block in BLOCKS if block.language == "sh" and not block.needs for line in block.lines]
ELSEWHERE = [
    line
    for block in BLOCKS
    if block.language == "sh" and block.needs
    for line in block.lines
    if "tracebound collect" in line
]


def missing_for(line: str) -> str:
    """What a command of the page needs that is not here."""
    if "collect nsys" in line and shutil.which("nsys") is None:
        return "nsys is not installed"
    if ("collect torch" in line or "torchrun" in line) and importlib.util.find_spec("torch") is None:
        return "torch is not installed"
    return ""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs that the page asks to save."""
    folder = tmp_path_factory.mktemp("desk")
    for name, mark in (("loop.py", "dist.all_reduce"), ("plain.py", "for number in range")):
        (text,) = [block.text for block in BLOCKS if block.language == "python" and mark in block.text]
        (folder / name).write_text(text)
    return folder


def test_the_commands_of_the_page_run_as_they_stand_there(desk: Path) -> None:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    ran, without = 0, set()
    for line in RUN_HERE:
        reason = missing_for(line) or next((why for folder, why in without if f" {folder}" in line), "")
        if reason:
            made = re.search(r"-o (\S+)", line)
            without |= {(made[1], reason)} if made else set()
            continue
        done = subprocess.run(line, shell=True, cwd=desk, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        ran += 1
    assert ran > 0
    if not without:
        assert ran == len(RUN_HERE)
        report = (desk / "report" / "DIAGNOSIS.md").read_text(encoding="utf-8")
        assert "**Run**: 2 ranks" in report
        assert "20 steps, found by torch.profiler's step markers" in report
        assert "batch `64` (declared)" in report
        assert (desk / "nsys-run" / "rank0.sqlite").exists()


@pytest.mark.parametrize("line", ELSEWHERE)
def test_commands_for_other_machines_are_understood(line: str) -> None:
    words = shlex.split(line)
    name, *rest = words[words.index("collect") + 1 :]
    parser = argparse.ArgumentParser()
    importlib.import_module(COMMANDS[name]).configure(parser)
    arguments = parser.parse_args(rest)
    if hasattr(arguments, "run_command"):
        assert arguments.run_command[0] == "--"
        assert len(arguments.run_command) > 2


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_stands_in_the_command_line_page_and_no_other(name: str) -> None:
    section = CLI.split(f"\n### `tracebound collect {name}`\n")[1]
    section = re.split(r"\n##+ ", section)[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `-")]
    told = set(re.findall(r"`(--?[a-z-]+)", "\n".join(rows)))
    parser = argparse.ArgumentParser(add_help=False)
    importlib.import_module(COMMANDS[name]).configure(parser)
    assert told == {option for action in parser._actions for option in action.option_strings}


@pytest.mark.parametrize("name", COMMANDS)
def test_each_help_explains_every_option(name: str) -> None:
    parser = argparse.ArgumentParser(add_help=False)
    importlib.import_module(COMMANDS[name]).configure(parser)
    assert all(action.help for action in parser._actions)


def test_the_ranges_of_the_page_can_be_opened() -> None:
    (shown,) = [block.text for block in BLOCKS if block.language == "python" and "ranges.phase" in block.text]
    exec(compile(shown, "capture.md", "exec"), {"number": 3})
