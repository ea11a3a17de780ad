"""What the GPUs are, how they are linked, and what their clocks, power and errors are, by NVML."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from collectors.device.bounded import LIMIT_S, ask
from collectors.device.copy_bandwidth import copy_bandwidth
from collectors.errors import CollectError
from collectors.manifest import ManifestError
from collectors.run_folder import RunFolder, write_whole

_EXAMPLE = """\
example:
  python -m collectors device --json device.json
  CUDA_VISIBLE_DEVICES=2 python -m collectors device
  python -m collectors device --copy-bandwidth --into run

Fields that device or driver do not answer are null and stand in "not_read" with the reason. Where there is no
driver, no device or no pynvml, the JSON is {"absent": REASON}, and the exit code is 0 all the same.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of ``device``."""
    parser.description = "Print what NVML says of this node's GPUs as JSON."
    parser.epilog = _EXAMPLE
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--json", metavar="FILE", help="write the JSON to FILE instead of printing it")
    parser.add_argument(
        "--copy-bandwidth",
        action="store_true",
        help="also measure how fast the device copies within its memory (torch with CUDA; it disturbs "
        "whatever runs there for some seconds)",
    )
    parser.add_argument(
        "--into",
        metavar="RUN",
        help="with --copy-bandwidth: also put the figure into the manifest of a finished run, for all of its ranks or"
        " those of --rank: a diagnosis shows it beside the floor",
    )
    parser.add_argument("--rank", metavar="N", type=int, help="with --into: only for this rank")
    parser.add_argument(
        "--limit",
        type=float,
        default=LIMIT_S,
        metavar="SECONDS",
        help=f"how long to wait for NVML (default: {LIMIT_S:g})",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print or write the snapshot. Raises CollectError for a limit that is none and a file that cannot be written."""
    if not arguments.limit > 0:
        raise CollectError("--limit", f"{arguments.limit:g} s is no time", "pass a number above 0")
    if arguments.into is not None and not arguments.copy_bandwidth:
        raise CollectError("--into", "there is nothing to put there", "pass --copy-bandwidth as well")
    found = ask(limit_s=arguments.limit)
    if arguments.copy_bandwidth:
        found["copy_bandwidth"] = asdict(copy_bandwidth())
        if arguments.into is not None:
            put_into(arguments.into, arguments.rank, found["copy_bandwidth"])
    text = json.dumps(found, indent=1, allow_nan=False) + "\n"
    if arguments.json is None:
        sys.stdout.write(text)
        return 0
    try:
        write_whole(Path(arguments.json), text)
    except OSError as error:
        raise CollectError(
            arguments.json, f"cannot be written ({error.strerror})", "pass another file"
        ) from error
    return 0


def put_into(run: str, rank: int | None, copies: Mapping[str, Any]) -> None:
    """Add measured copies to the records of a run. Raises CollectError where nothing was measured or no record is."""
    if copies["bytes_per_s"] is None:
        raise CollectError("--into", f"nothing was measured ({copies['absent']})", "run it where the GPU is")
    try:
        records = [one for one in RunFolder(run, look_only=True).records() if rank in (None, one.rank)]
    except ManifestError as error:
        raise CollectError(run, str(error), "pass the folder of a run") from error
    if not records:
        whose = "no rank" if rank is None else f"no rank {rank}"
        raise CollectError(run, f"holds the record of {whose}", "pass the folder of a run, with ranks/ in it")
    folder = RunFolder(run)
    for record in records:
        folder.write(replace(record, device={**(record.device or {}), "copy_bandwidth": dict(copies)}))
