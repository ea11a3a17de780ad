"""Run a program whose ranks capture a window of steps with torch.profiler, and check what they left.

The program marks its steps itself, with three lines around its loop (see collectors.torch_profiler).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from collectors import closing, manifest
from collectors.errors import CollectError
from collectors.launch import run as run_command
from collectors.manifest import LEFT_BY, Manifest, Pin, RankRecord
from collectors.options import command_option, common_options, given_command
from collectors.processes import RankEnd, first_failure, run_ranks
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
command (with --processes, of the process that failed first); 2 where the command ended well and a rank captured
nothing. On several hosts, run this on each with one shared folder."""


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
        "with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set as torchrun does, and OMP_NUM_THREADS=1 "
        "where it is not set and N is above 1",
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
    try:
        _refuse_ended(folder)
        environment = os.environ | environment_of(str(folder.path), told, pins)
        settled(Settings(), environment)  # says now what every rank would say
        if arguments.processes is None:
            code = _run_one(folder, command, environment)
        else:
            code = _run_several(folder, command, environment, arguments.processes)
        return _checked(folder, code, arguments)
    finally:
        folder.remove_if_unused()


def _run_one(folder: RunFolder, command: Sequence[str], environment: Mapping[str, str]) -> int:
    outcome = run_command(command, environment=environment)
    end = RankEnd(outcome.exit_code, outcome.ended_ns)
    _note_ends(folder, {record.rank: end for record in _of_this_host(folder) if record.pid == outcome.pid})
    return outcome.exit_code


def _run_several(
    folder: RunFolder, command: Sequence[str], environment: Mapping[str, str], count: int
) -> int:
    """The exit code of the rank that failed first: the others often fail because of it."""
    ends = run_ranks(command, count, environment)
    _note_ends(folder, dict(enumerate(ends)))
    first = first_failure(_left(folder, ends))
    return 0 if first is None else ends[first].exit_code


def _left(folder: RunFolder, ends: Sequence[RankEnd]) -> list[RankEnd]:
    """The ends of the ranks at the times at which their loops were left: a process may take long to be gone then."""
    left_ns = {record.rank: record.ended_ns for record in folder.records() if record.ended_ns is not None}
    return [replace(end, ended_ns=left_ns.get(rank, end.ended_ns)) for rank, end in enumerate(ends)]


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


def _of_this_host(folder: RunFolder) -> list[RankRecord]:
    return [record for record in folder.records() if record.host == os.uname().nodename]


def _note_ends(folder: RunFolder, ends: Mapping[int, RankEnd]) -> None:
    """A rank of this host that is gone without a last word was killed; exit code and end where they are known."""
    for record in folder.records():
        ended, end = record, ends.get(record.rank)
        if record.status == "running" and record.host == os.uname().nodename and not is_alive(record):
            note = "the process ended without finishing its record"
            ended = replace(record, status="killed", notes=[*record.notes, note])
        if end is not None:
            ended = replace(ended, exit_code=end.exit_code, ended_ns=ended.ended_ns or end.ended_ns)
        if ended != record:
            folder.write(ended)


def _checked(folder: RunFolder, code: int, arguments: argparse.Namespace) -> int:
    """The exit code, after telling what there is and what is missing."""
    records = folder.records()
    problems = _problems(folder, records, arguments.processes)
    if problems and not code:
        if not records:
            raise CollectError(
                "capture", "no rank called capture()", f"add these lines to the program:\n{LINES}"
            )
        raise CollectError(
            arguments.output,
            "; ".join(problems),
            "see the notes in manifest.json; what the others captured is usable",
        )
    told = {record.rank: record.notes for record in records}
    withheld = {record.rank: record.withheld for record in records}
    failed = [record for record in records if record.status != "complete"]
    if len({record.boot_id for record in failed}) == 1:  # one clock
        sys.stderr.write(closing.first_to_end({record.rank: record.ended_ns for record in failed}))
    if records:
        sys.stderr.write("".join(f"note: {problem}\n" for problem in problems))
    if not problems:
        sys.stderr.write(closing.notes(told))
    sys.stderr.write(closing.withheld(withheld))
    sys.stderr.write(_last_line(arguments.output, records, code))
    return code


def _last_line(output: str, records: Sequence[RankRecord], code: int) -> str:
    """How many steps there are; a loop that ended early has fewer than were asked for, and a note."""
    held = [record for record in records if record.files]
    if not held:
        return closing.nothing_captured("see the notes" if records else "no rank called capture()", code)
    steps = sorted({record.captured_steps or 0 for record in held})
    shown = str(steps[0]) if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
    ranks = closing.ranks_in_words([record.rank for record in held])
    return closing.captured(f"{ranks} captured, {shown} steps", output, code)


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
        elif record.status == "killed":
            problems.append(f"rank {record.rank} was killed{_last(record)}")
        elif record.status != "complete":
            how = "failed" if record.status == "failed" else "has not ended"
            problems.append(f"rank {record.rank} {how}{_last(record)}")
    return problems


def _last(record: RankRecord) -> str:
    """How the rank ended by its last notes: how its loop was left, what is missing."""
    ends = [note for note in record.notes if note.startswith(LEFT_BY)]
    said = list(dict.fromkeys([*ends, *record.notes[-1:]]))
    code = [f"exit code {record.exit_code}"] if record.exit_code else []
    return f" ({'; '.join([*code, *said])})" if code or said else ""
