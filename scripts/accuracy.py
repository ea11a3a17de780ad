"""Analyze the blind sets and write docs/accuracy.md.

Usage: python scripts/accuracy.py [--only one-rank | several-ranks] [--held-out] [--seeds FIRST-LAST] [--jobs N]

Without ``--held-out`` only the development and the spent sets are made, analyzed and reported. The flag is for the
end: results of a held-out set are not looked at while rules or thresholds may still change. With ``--only`` the
other part of the page stays as it is, as does what ``predictions.py`` writes. With ``--seeds`` the figures of these
seeds are printed and the page stays.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a script: the generator is not part of the installed package

from fixtures import blind, blind_ranks  # noqa: E402
from fixtures.blind import DEVELOPMENT, HELD_OUT, SPENT, figures, sections  # noqa: E402
from fixtures.blind.outcomes import Outcome, outcome_of  # noqa: E402
from fixtures.blind.shares import HYPOTHESES  # noqa: E402
from fixtures.blind_ranks import outcomes as ranks_outcomes  # noqa: E402
from fixtures.blind_ranks import page as ranks_page  # noqa: E402
from fixtures.predictions import page as predictions_page  # noqa: E402

DOCUMENT = ROOT / "docs" / "accuracy.md"
ONE, SEVERAL = "one-rank", "several-ranks"
Found = TypeVar("Found", bound=Outcome)

INTRODUCTION = f"""# Accuracy on blind sets

How often the verdicts are right, measured on simulated captures whose causes are known to the nanosecond. This page is
written by `python scripts/accuracy.py`.

## How the sets are made

`fixtures/blind` draws a loop of 6 to 24 steps from a seed: a serving or a training step on one rank, eager or with
graph replays, one or several streams, one or two host threads, some with Python frames. Into it one or two causes
are planted (in one of eight none), each meant to take 2 % to 60 % of the step; the rest of the step is kernels,
launches or host work. Some loops hold decoys: copies under kernels, profiler overhead while the device is busy, a
thread that has nothing to do with the step. Then it is recorded, as a torch.profiler trace or an Nsight Systems
export: some with a wrong device clock, without synchronization rows, without event rows, with up to 1 % of all rows
lost, with whole-graph rows, with a warm-up or a slow step.

The label is not the intention. For every hypothesis the *true share* is taken from the simulator's recorded causes,
by the definitions of the verdicts and by code of its own (`fixtures/blind/shares.py`), over the same windows that
the diagnosis averages. So every capture labels all hypotheses, planted or not.

Seeds {DEVELOPMENT.start} to {DEVELOPMENT.stop - 1} are the development set; rules and thresholds may be changed
after looking at it. The generator was committed before any capture was analyzed. Seeds {SPENT.start} to
{SPENT.stop - 1} were held out, in three sets, until each was looked at once; what was seen there led to changes, so
they are spent. Seeds {HELD_OUT.start} to {HELD_OUT.stop - 1} were then held out: no capture of them was made before
the rules were final. `python -m fixtures.blind SEED FOLDER` writes a capture that may be looked at, and says what
truly holds.

- *Right*: a cause that truly takes at least {100 * figures.HOLDS:.0f} % of the step is called supported.
  Inconclusive and unmeasured count as wrong.
- *Invented*: supported, though nobody planted it and it truly takes less than {100 * figures.ABSENT:.0f} %.
- *Denied*: contradicted, though it truly takes at least {100 * figures.CLEAR:.0f} %.
- *Interval holds*: the true share lies inside the interval of the report. Counted where the truth or the upper end
  reaches {100 * figures.RELEVANT:.0f} %; intervals around nothing would flatter the figure.

What this cannot show: whether real devices behave like the simulator. Real captures are a
[page of their own](real-traces.md).
"""


def outcomes_of(seeds: Sequence[int], jobs: int, outcome: Callable[[int], Found]) -> list[Found]:
    """All outcomes of a set, with progress on stderr."""
    found = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for one in pool.map(outcome, seeds, chunksize=4):
            found.append(one)
            if len(found) % 24 == 0 or len(found) == len(seeds):
                sys.stderr.write(f"{len(found)} of {len(seeds)} captures\n")
    return found


FIRST_LOOK = """At their one look:

| seeds | rules of commit | right | intervals held | invented | denied |
|---|---|---|---|---|---|
| 240 to 479 | `d1ca3f9cf9` | 522 of 525 (99.4 %) | 1159 of 1228 (94.4 %) | 1 | 0 |
| 480 to 719 | `5b336fa147` | 553 of 557 (99.3 %) | 1146 of 1207 (94.9 %) | 0 | 1 |
| 720 to 959 | `d6088201ef` | 519 of 522 (99.4 %) | 1176 of 1219 (96.5 %) | 1 | 0 |

The invented one (seed 414, `synchronization`) was a fault: copies that wait for themselves at one queue depth were
taken for a full launch queue. The denied one (seed 657, `synchronization`) had contradictory clocks that no shift
mended: nothing on the CPU is called contradicted there any more. Seeds 524 and 645 called time `host-bound` in which
the profiler was at work on a thread that the path does not visit: it is no longer certain. In seed 884 kernels that
were told to wait were bound by a copy that had been submitted after them. All this was mended; the figures below are
with the rules as they are now."""


LAST_LOOK = """At its one look, with the rules of commit `7c4d684502`: right in 567 of 568 (99.8 %), intervals held in
1161 of 1231 (94.3 %), none invented, none denied. Three rules were changed since, and not because of it: of a gap whose
cause is inferred at most 50 us could be the device's turnaround; stream waits that are still pending count; time after
a call that may have waited could be host-bound. The figures below are with the rules of commit"""


def document(
    development: Sequence[Outcome], spent: Sequence[Outcome], held_out: Sequence[Outcome] | None, commit: str
) -> str:
    """The page. ``held_out``: None while nobody has looked; ``commit``: where the rules stood when somebody did."""
    parts = [INTRODUCTION, *section("Development set", development)]
    parts += section("Spent sets: held out until their first look", spent, FIRST_LOOK)
    if held_out is None:
        parts += ["## Held-out set", "", "Not looked at yet."]
    else:
        parts += section("Held-out set", held_out, f"{LAST_LOOK} `{commit}`.")
    return "\n".join(parts) + "\n"


def section(title: str, outcomes: Sequence[Outcome], remark: str = "") -> list[str]:
    """One set as lines of Markdown."""
    return [f"## {title}", "", *([remark, ""] if remark else []), *sections.tables(outcomes, HYPOTHESES)]


def halves(page: str) -> tuple[str, str]:
    """The parts of a page: one rank, several ranks (empty where it has none)."""
    one, title, several = page.partition(ranks_page.TITLE)
    return one.rstrip() + "\n", title + several


def _commit() -> str:
    """The commit that the rules stand at."""
    command = ["git", "rev-parse", "--short=10", "HEAD"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def one_rank(jobs: int, *, held_out: bool) -> str:
    """The part about one rank, measured anew."""
    development, spent = (outcomes_of(seeds, jobs, outcome_of) for seeds in (DEVELOPMENT, SPENT))
    last = outcomes_of(HELD_OUT, jobs, outcome_of) if held_out else None
    return document(development, spent, last, _commit())


def several_ranks(jobs: int, *, held_out: bool) -> str:
    """The part about several ranks, measured anew."""
    outcome = ranks_outcomes.outcome_of
    development, spent = (
        outcomes_of(seeds, jobs, outcome) for seeds in (blind_ranks.DEVELOPMENT, blind_ranks.SPENT)
    )
    last = outcomes_of(blind_ranks.HELD_OUT, jobs, outcome) if held_out else None
    return ranks_page.document(development, spent, last, _commit())


def figures_of(kind: str, seeds: range, jobs: int) -> str:
    """The tables of any seeds."""
    if kind == ONE:
        lines = sections.tables(outcomes_of(seeds, jobs, outcome_of), HYPOTHESES)
    else:
        lines = ranks_page.tables(outcomes_of(seeds, jobs, ranks_outcomes.outcome_of))
    return "\n".join(lines)


def seed_range(text: str) -> range:
    """``7`` or ``7-20``, the last one included."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=(ONE, SEVERAL), help="of these sets, not of the others")
    parser.add_argument("--held-out", action="store_true", help="also analyze the held-out sets")
    parser.add_argument("--seeds", type=seed_range, help="print the figures of these; needs --only")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    if arguments.seeds is not None:
        if arguments.only is None:
            parser.error("--seeds needs --only")
        hidden = {ONE: blind, SEVERAL: blind_ranks}[arguments.only].HELD_OUT
        if not arguments.held_out and set(hidden) & set(arguments.seeds):
            parser.error(f"seeds {hidden.start} to {hidden.stop - 1} are held out")
        sys.stdout.write(figures_of(arguments.only, arguments.seeds, arguments.jobs) + "\n")
        return
    text, title, predicted = DOCUMENT.read_text(encoding="utf-8").partition(predictions_page.TITLE)
    one, several = halves(text)
    if arguments.only != SEVERAL:
        one = one_rank(arguments.jobs, held_out=arguments.held_out)
    if arguments.only != ONE:
        several = several_ranks(arguments.jobs, held_out=arguments.held_out)
    DOCUMENT.write_text(
        f"{one}\n{several.rstrip()}\n" + (f"\n{title}{predicted}" if title else ""), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
