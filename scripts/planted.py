"""Draw planted cases, analyze them, write ``docs/planted-truth.md``.

Usage: python scripts/planted.py [--cases N] [--first SEED] [--jobs N]

Without ``--cases`` 600 of each; with fewer the figures are printed and the page stays.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]  # run as a script: the fixtures are no part of the installed package

from fixtures.planted.answer import Answer  # noqa: E402
from fixtures.planted.page import page, rows_of  # noqa: E402
from fixtures.planted.terms import PLANTED  # noqa: E402

DOCUMENT = ROOT / "docs" / "planted-truth.md"
CASES = 600


def answers_of(task: tuple[int, int]) -> list[Answer]:
    """The answers of one case: which kind, which seed."""
    kind, seed = task
    return PLANTED[kind].answers_of(seed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 where a term is not as required."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args(arguments)
    found: dict[str, list[Answer]] = {}
    fulfilled = True
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        for kind, planted in enumerate(PLANTED):
            tasks = [(kind, given.first + case) for case in range(given.cases)]
            each = pool.map(answers_of, tasks, chunksize=4)
            found[planted.title] = [one for answers in each for one in answers]
            for row in rows_of(planted, found[planted.title]):
                fulfilled &= row.fulfilled(planted.widths[row.term])
                sys.stderr.write(f"{planted.title}: {row}\n")
    if given.cases == CASES and given.first == 0:
        DOCUMENT.write_text(page(found), encoding="utf-8")
        sys.stderr.write(f"{DOCUMENT.relative_to(ROOT)} written\n")
    return 0 if fulfilled else 1


if __name__ == "__main__":
    raise SystemExit(main())
