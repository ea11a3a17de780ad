"""Run a program whose ranks capture a window of steps with torch.profiler, and check what they left.

The program marks its steps itself, with three lines around its loop (see collectors.torch_profiler).
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from collectors import manifest
from collectors.errors import CollectError
from collectors.launch import run as run_command
from collectors.manifest import Manifest, Pin, RankRecord
from collectors.options import command_option, common_options, given_command
from collectors.processes import run_ranks
from collectors.run_folder import RunFolder
from collectors.torch_profiler.ranks import is_alive
from collectors.torch_profiler.settings import Settings, environment_of, settled

LINES = """    from collectors.torch_profiler import capture
    with capture() as steps:
        ...  # in the loop, after each step: steps.step()
"""
"""What a program needs."""
_EPILOG = f"""The program needs three lines:

{LINES}
Without this command, capture() only counts steps, so that the lines may stay.

Examples:
  python -m collectors torch -o run --active 20 -- python serve.py --model m
  python -m collectors torch -o run --pin batch=8 -- torchrun --nproc-per-node 8 train.py
  python -m collectors torch -o run --processes 2 -- python replica.py

Each rank leaves rank<N>.pt.trace.json.gz and its record in the run's folder. The exit code is that of the
command; 2 where the command ended well and a rank captured nothing. On several hosts, run this on each with
one shared folder."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options, and the help of the command."""
    parser.description, parser.epilog = __doc__, _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    common_options(parser)
    steps = Settings()
    parser.add_argument(
        "--wait", type=_count, metavar="N", help=f"steps without the profiler, of which all but the first are timed "
        f"to tell what profiling costs (default: the program's, {steps.wait})",
    )  # fmt: skip
    parser.add_argument(
        "--warmup", type=_count, metavar="N", help="steps under the profiler that are thrown away "
        f"(default: the program's, {steps.warmup})",
    )  # fmt: skip
    parser.add_argument(
        "--active",
        type=_count,
        metavar="N",
        help=f"steps to record (default: the program's, {steps.active})",
    )
    for option, what in (
        ("--shapes", "shapes of the inputs of ops"),
        ("--stacks", "Python stacks; steps become much slower"),
        ("--memory", "allocations"),
    ):
        parser.add_argument(
            option, action=argparse.BooleanOptionalAction, help=f"record {what} (default: the program's, no)"
        )
    parser.add_argument(
        "--processes", type=_count, metavar="N", help="start the command N times as ranks 0 to N-1 of this host, "
        "with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set as torchrun does",
    )  # fmt: skip
    command_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command. Returns its exit code; raises CollectError where it ended well and nothing was captured."""
    command = given_command(arguments)
    if arguments.processes == 0:
        raise CollectError("--processes", "is 0", "start at least one")
    told = {
        name: getattr(arguments, name) for name in ("wait", "warmup", "active", "shapes", "stacks", "memory")
    }
    pins = _pins(arguments.pin)
    folder = RunFolder(Path(arguments.output).absolute())
    _refuse_ended(folder)
    environment = os.environ | environment_of(str(folder.path), told, pins)
    settled(Settings(), environment)  # says now what every rank would say
    if arguments.processes is None:
        code = run_command(command, environment=environment).exit_code
        codes = None
    else:
        codes = run_ranks(command, arguments.processes, environment)
        code = next((code for code in codes if code), 0)
    _note_ends(folder, codes)
    return _checked(folder, code, arguments.processes)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _pins(words: Sequence[str]) -> dict[str, Pin]:
    try:
        return manifest.declared(words)
    except ValueError as error:
        raise CollectError("--pin", str(error), "change or leave out the pin") from error


def _refuse_ended(folder: RunFolder) -> None:
    """Another host's ranks of this run may be there already; none of them has ended yet."""
    if any(record.status != "running" for record in folder.records_of("torch")):
        raise CollectError(str(folder.path), "holds a run already", "pass another folder with -o")


def _note_ends(folder: RunFolder, codes: Sequence[int] | None) -> None:
    """A rank of this host that is gone without a last word was killed; exit codes where they are known."""
    for record in folder.records():
        ended = record
        if record.status == "running" and record.host == os.uname().nodename and not is_alive(record):
            note = "the process ended without finishing its record"
            ended = replace(record, status="killed", notes=[*record.notes, note])
        if codes is not None and record.rank < len(codes):
            ended = replace(ended, exit_code=codes[record.rank])
        if ended != record:
            folder.write(ended)


def _checked(folder: RunFolder, code: int, processes: int | None) -> int:
    """The exit code, after telling what is missing."""
    records = folder.records()
    problems = _problems(folder, records, processes)
    if not problems:
        _say_what_is_there(folder, records)
        return code
    if code:
        for problem in problems:
            sys.stderr.write(f"note: {problem}\n")
        return code
    if not records:
        raise CollectError("capture", "no rank called capture()", f"add these lines to the program:\n{LINES}")
    raise CollectError(
        str(folder.path),
        "; ".join(problems),
        "see the notes in manifest.json; what the others captured is usable",
    )


def _say_what_is_there(folder: RunFolder, records: Sequence[RankRecord]) -> None:
    """How many steps there are; a loop that ended early has fewer than were asked for, and a note."""
    steps = sorted({record.captured_steps or 0 for record in records})
    shown = str(steps[0]) if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
    sys.stderr.write(
        f"{len(records)} ranks, {shown} steps; next: tracebound diagnose {shlex.quote(str(folder.path))}\n"
    )
    for note in dict.fromkeys(note for record in records for note in record.notes):
        sys.stderr.write(f"note: {note}\n")


def _problems(folder: RunFolder, records: Sequence[RankRecord], processes: int | None) -> list[str]:
    if not records:
        return ["no rank called capture()"]
    whole: Manifest = manifest.read(folder.path / manifest.NAME)
    missing = whole.missing_ranks
    if processes is not None:
        missing = sorted(set(range(processes)) - {record.rank for record in records})
    problems = [f"rank {rank} did not call capture() with this folder" for rank in missing]
    for record in records:
        if record.host != os.uname().nodename:
            continue  # its own host's command tells
        if not record.files:
            problems.append(f"rank {record.rank} captured nothing{_last(record)}")
        elif record.status != "complete":
            problems.append(f"rank {record.rank} is {record.status}{_last(record)}")
    return problems


def _last(record: RankRecord) -> str:
    return f" ({record.notes[-1]})" if record.notes else ""
