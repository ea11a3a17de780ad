"""Predict and re-simulate the held-out programs, replay the shared captures, write their part of docs/accuracy.md.

Usage: python scripts/predictions.py [--seeds FIRST-LAST] [--held-out] [--jobs N] [FOLDER]

FOLDER: the shared captures, ../shared/traces. With ``--seeds`` the figures of these are printed and the page stays;
``--held-out`` allows held-out ones among them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]  # run as a script: neither is part of the installed package

from real_traces import captures as capture_files  # noqa: E402

from fixtures.predictions import HELD_OUT, page  # noqa: E402
from fixtures.predictions.captures import CaptureAnswer, answer_of  # noqa: E402
from fixtures.predictions.outcomes import Outcome, outcome_of  # noqa: E402

DOCUMENT = ROOT / "docs" / "accuracy.md"


def outcomes_of(seeds: Sequence[int], jobs: int) -> list[Outcome]:
    """All outcomes, with progress on stderr."""
    found: list[Outcome] = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for one in pool.map(outcome_of, seeds, chunksize=4):
            found.append(one)
            if len(found) % 24 == 0 or len(found) == len(seeds):
                sys.stderr.write(f"{len(found)} of {len(seeds)} programs\n")
    return found


def answers_of(folder: Path) -> list[CaptureAnswer]:
    """All captures of a folder that are not refused. Reports are left out: not everybody can export them."""
    found = [
        answer_of(path.relative_to(folder).as_posix(), path)
        for path in capture_files(folder)
        if path.suffix != ".nsys-rep"
    ]
    return [answer for answer in found if answer is not None]


def renewed(text: str, part: str) -> str:
    """The page with this part in place of the old one, which is its end."""
    return text.partition(page.TITLE)[0].rstrip() + "\n\n" + part


def seed_range(text: str) -> range:
    """``7`` or ``7-20``, the last one included."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main() -> None:
    """Write the part, or print figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT.parent / "shared" / "traces")
    parser.add_argument("--seeds", type=seed_range, help="print the figures of these")
    parser.add_argument("--held-out", action="store_true", help="allow held-out seeds there")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    if arguments.seeds is not None:
        if not arguments.held_out and set(HELD_OUT) & set(arguments.seeds):
            parser.error(f"seeds {HELD_OUT.start} to {HELD_OUT.stop - 1} are held out")
        sys.stdout.write("\n".join(page.tables(outcomes_of(arguments.seeds, arguments.jobs))) + "\n")
        return
    if not arguments.folder.is_dir():
        parser.error(f"{arguments.folder} is no folder of captures")
    command = ["git", "rev-parse", "--short=10", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    outcomes = outcomes_of(HELD_OUT, arguments.jobs)
    part = page.document(outcomes, answers_of(arguments.folder), commit)
    DOCUMENT.write_text(renewed(DOCUMENT.read_text(encoding="utf-8"), part), encoding="utf-8")


if __name__ == "__main__":
    main()
