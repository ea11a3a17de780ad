"""The command line of the collectors: ``tracebound collect``, or ``python -m collectors`` beside an engine.

Standard library only, so that it starts wherever the engine does. A command is a module with ``configure(parser)``
(its options and its help) and ``run(arguments)`` (does the work, returns the exit code).
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from collectors.errors import CollectError
from collectors.manifest import ManifestError

COMMANDS: dict[str, str] = {
    "nsys": "collectors.nsys",
    "torch": "collectors.torch_profiler.command",
    "client": "collectors.client.command",
    "device": "collectors.device.command",
}
"""Command and the module that holds it, imported when it is asked for."""


def main(argv: Sequence[str] | None = None, prog: str = "python -m collectors") -> int:
    """Run one command. Returns its exit code; 2 for bad usage and for what stops a collector."""
    words = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in words if not word.startswith("-")), None)
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Capture a run on the target ranks, with all that a later reader needs.",
        epilog=f"Example: {prog} nsys -o run -- python decode.py",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        wanted = command in (None, name)
        loaded = importlib.import_module(module) if wanted else None
        sub = commands.add_parser(name, help=(loaded.__doc__ or "").splitlines()[0] if loaded else None)
        if loaded is not None:
            loaded.configure(sub)
    arguments = parser.parse_args(words)
    try:
        code: int = importlib.import_module(COMMANDS[arguments.command]).run(arguments)
    except (CollectError, ManifestError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return code
