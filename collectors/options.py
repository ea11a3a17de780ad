"""Options that the collectors' commands share."""

from __future__ import annotations

import argparse

from collectors.errors import CollectError
from collectors.manifest import PINS


def common_options(parser: argparse.ArgumentParser) -> None:
    """Options of every collector."""
    parser.add_argument(
        "-o", "--output", default="run", metavar="DIR", help="the run's folder (default: run)"
    )
    parser.add_argument(
        "--pin",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"what the run pins; may be repeated; names: {', '.join(PINS)}",
    )


def command_option(parser: argparse.ArgumentParser) -> None:
    """The command to run, behind ``--``."""
    parser.add_argument("run_command", nargs=argparse.REMAINDER, metavar="-- CMD", help="the command to run")


def given_command(arguments: argparse.Namespace) -> list[str]:
    """The command behind ``--``. Raises CollectError where there is none."""
    words = list(arguments.run_command)
    if words[:1] == ["--"]:
        words = words[1:]
    if not words:
        raise CollectError("command", "there is none", "write it at the end, after --")
    return words
