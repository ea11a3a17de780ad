"""What the GPUs are, how they are linked, and what their clocks, power and errors are, by NVML."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from collectors.device.bounded import LIMIT_S, ask
from collectors.device.copy_bandwidth import copy_bandwidth
from collectors.errors import CollectError
from collectors.run_folder import write_whole

_EXAMPLE = """\
example:
  python -m collectors device --json device.json
  CUDA_VISIBLE_DEVICES=2 python -m collectors device

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
    found = ask(limit_s=arguments.limit)
    if arguments.copy_bandwidth:
        found["copy_bandwidth"] = asdict(copy_bandwidth())
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
