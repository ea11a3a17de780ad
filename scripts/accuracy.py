"""Analyze the blind sets and write docs/accuracy.md.

Usage: python scripts/accuracy.py [--held-out] [--jobs N]

Without ``--held-out`` only the development and the spent set are made, analyzed and reported. The flag is for the
end: results of the held-out set are not looked at while rules or thresholds may still change.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a script: the generator is not part of the installed package

from fixtures.blind import DEVELOPMENT, HELD_OUT, SPENT, figures  # noqa: E402
from fixtures.blind.figures import BANDS, VERDICTS, Row, Score  # noqa: E402
from fixtures.blind.outcomes import Outcome, outcome_of  # noqa: E402
from fixtures.blind.shares import HYPOTHESES  # noqa: E402

DOCUMENT = ROOT / "docs" / "accuracy.md"
SHOWN = 40
"""At most this many wrong answers are listed."""

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


def outcomes_of(seeds: Sequence[int], jobs: int) -> list[Outcome]:
    """All outcomes of a set, with progress on stderr."""
    found = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for outcome in pool.map(outcome_of, seeds, chunksize=4):
            found.append(outcome)
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
1161 of 1231 (94.3 %), none invented, none denied. One rule was changed since, and not because of it: of a gap whose
cause is inferred at most 50 us could be the device's turnaround. The figures below are with the rules of commit"""


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
    lines = [f"## {title}", "", *([remark, ""] if remark else [])]
    for part in (_bars, _by_hypothesis, _confusion, _calibration, _wrong):
        lines += [*part(outcomes), ""]
    return lines


def _bars(outcomes: Sequence[Outcome]) -> Iterator[str]:
    rows = figures.rows_of(outcomes)
    total = figures.score(rows)
    unusable = sum(bool(outcome.problem) for outcome in outcomes)
    complete = sum(outcome.complete for outcome in outcomes)
    yield f"{len(outcomes)} captures, {complete} of them complete with exact clocks."
    if unusable:
        yield f"In {unusable} the steps were found otherwise than by their markers; they are left out."
    yield ""
    yield "| figure | measured | required |"
    yield "|---|---|---|"
    yield f"| right where a cause holds at least 15 % | {_of(total.right, total.holding)} | 95 % |"
    yield f"| intervals that hold the true share | {_of(total.inside, total.intervals)} | 90 % |"
    yield f"| invented causes | {len(figures.invented(rows))} | 0 |"
    yield f"| denied causes | {len(figures.denied(rows))} | 0 |"
    yield f"| supported, truly below 10 % | {len(figures.overstated(rows))} | - |"
    yield f"| contradicted, truly above 2 % | {len(figures.understated(rows))} | - |"


def _by_hypothesis(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield "| hypothesis | holds at least 15 % | right | intervals hold | mean error of the share | unmeasured |"
    yield "|---|---|---|---|---|---|"
    for name in HYPOTHESES:
        found = figures.score(figures.rows_of(outcomes, name))
        yield f"| `{name}` | {found.holding} | {_right(found)} | {_of(found.inside, found.intervals)} | " + (
            f"{_points(found.mean_error)} | {found.unmeasured} |"
        )


def _right(found: Score) -> str:
    return _of(found.right, found.holding) if found.holding else "-"


def _confusion(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield "Captures by true share and verdict; in each cell the planted ones + the others:"
    yield ""
    yield "| hypothesis | true share | " + " | ".join(VERDICTS) + " |"
    yield "|---|---|" + "---|" * len(VERDICTS)
    for name in HYPOTHESES:
        counts = figures.confusion(figures.rows_of(outcomes, name))
        for at, (low, high) in enumerate(BANDS):
            cells = [_cell(counts[at, verdict, True], counts[at, verdict, False]) for verdict in VERDICTS]
            span = _span(low, high)
            yield f"| `{name}` | {span} | " + " | ".join(cells) + " |"


def _span(low: float, high: float) -> str:
    return f"{100 * low:.0f} to {100 * high:.0f} %" if high <= 1 else f"{100 * low:.0f} % and more"


def _cell(planted: int, others: int) -> str:
    return f"{planted} + {others}" if planted or others else ""


def _calibration(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield "Calibration of the intervals. They are widened by what is inferred or unattributed and by a bootstrap over"
    yield "the windows; the truth is that of the same windows: in complete captures they should nearly always hold it."
    yield ""
    yield "| captures | intervals | truth below | inside | above | width: median | 90 % | largest |"
    yield "|---|---|---|---|---|---|---|---|"
    parts = (
        ("complete, exact clocks", [outcome for outcome in outcomes if outcome.complete]),
        ("the others", [outcome for outcome in outcomes if not outcome.complete]),
        ("all", list(outcomes)),
    )
    for name, members in parts:
        rows = figures.rows_of(members)
        found, width = figures.score(rows), figures.widths(rows)
        shares = (_of(n, found.intervals) for n in (found.below, found.inside, found.above))
        spread = (_points(figures.quantile(width, share)) for share in (0.5, 0.9, 1.0))
        yield f"| {name} | {found.intervals} | " + " | ".join((*shares, *spread)) + " |"
    yield ""
    places = figures.tenths(figures.rows_of(outcomes))
    yield "Truths inside their interval, by tenth of it from the lower to the upper end: " + (
        ", ".join(map(str, places)) + "."
    )


def _wrong(outcomes: Sequence[Outcome]) -> Iterator[str]:
    rows = figures.rows_of(outcomes)
    wrong = {
        "not supported": figures.missed(rows),
        "invented": figures.invented(rows),
        "denied": figures.denied(rows),
        "supported below 10 %": figures.overstated(rows),
        "contradicted above 2 %": figures.understated(rows),
    }
    listed: dict[tuple[int, str], Row] = {}
    kinds: dict[tuple[int, str], list[str]] = {}
    for kind, members in wrong.items():
        for seed, answer in members:
            listed[seed, answer.hypothesis] = (seed, answer)
            kinds.setdefault((seed, answer.hypothesis), []).append(kind)
    if not listed:
        yield "No verdict was wrong."
        return
    yield (
        "Every wrong verdict:"
        if len(listed) <= SHOWN
        else f"The first {SHOWN} of {len(listed)} wrong verdicts:"
    )
    yield ""
    yield "| seed | hypothesis | true share | reported | interval | verdict | wrong because |"
    yield "|---|---|---|---|---|---|---|"
    for key in sorted(listed)[:SHOWN]:
        seed, answer = listed[key]
        span = "-" if answer.low is None else f"{_points(answer.low)} to {_points(answer.high)}"
        yield (
            f"| {seed} | `{answer.hypothesis}` | {_points(answer.truth)} | {_points(answer.value)} | {span} | "
            + (f"{answer.verdict} | {', '.join(kinds[key])} |")
        )


def _of(count: int, whole: int) -> str:
    return f"{count} of {whole} ({100 * count / whole:.1f} %)" if whole else "0 of 0"


def _points(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f} %"


def _commit() -> str:
    """The commit that the rules stand at."""
    command = ["git", "rev-parse", "--short=10", "HEAD"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--held-out", action="store_true", help="also analyze the held-out set")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    development = outcomes_of(DEVELOPMENT, arguments.jobs)
    spent = outcomes_of(SPENT, arguments.jobs)
    held_out = outcomes_of(HELD_OUT, arguments.jobs) if arguments.held_out else None
    DOCUMENT.write_text(document(development, spent, held_out, _commit()), encoding="utf-8")


if __name__ == "__main__":
    main()
