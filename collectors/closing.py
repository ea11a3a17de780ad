"""What a collector says when its capture is done: what there is, how the command ended, what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

MOST_NOTES = 20
"""More lines of notes are left to the manifest."""


def captured(what: str, folder: str, exit_code: int) -> str:
    """The last line where there is a capture. ``what``: who captured what; ``folder``: as the user wrote it."""
    ended = f"; the command ended with exit code {exit_code}" if exit_code else ""
    return f"{what}{ended}; next: tracebound diagnose {shlex.quote(folder)}\n"


def nothing_captured(why: str, exit_code: int) -> str:
    """The last line where a command failed and left no capture."""
    return (
        f"nothing was captured ({why}); the command ended with exit code {exit_code}; next: see its messages above, "
        "and run it without the collector\n"
    )


def ranks_in_words(ranks: Sequence[int]) -> str:
    """``rank 3``, ``ranks 0 and 2``, ``ranks 0-7``; one that is given twice counts once."""
    numbers = sorted(set(ranks))
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = [
        word
        for run in runs
        for word in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(number) for number in run])
    ]
    return f"ranks {', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else f"ranks {words[0]}"


def notes(per_rank: Mapping[int, Sequence[str]], *, named: bool = False) -> str:
    """The notes of all ranks, one a line, each with the ranks that it is of.

    All have it where none is named; ``named``: there are other ranks that these are not told from, so name them always.
    """
    ranks_of: dict[str, list[int]] = {}
    for rank, said in sorted(per_rank.items()):
        for note in said:
            ranks_of.setdefault(note, []).append(rank)
    lines = []
    for note, ranks in ranks_of.items():
        whose = f"{ranks_in_words(ranks)}: " if named or len(set(ranks)) < len(per_rank) else ""
        lines.append(f"note: {whose}{note}\n")
    left = len(lines) - MOST_NOTES
    return "".join(lines[:MOST_NOTES]) + (f"note: {left} more in manifest.json\n" if left > 0 else "")


def first_to_end(ended_ns: Mapping[int, int | None], *, sure_ns: int = 0) -> str:
    """Which of the ranks that failed was the first to end, as a line; empty where that is not known.

    ``ended_ns``: of each of them, by one clock; ``sure_ns``: ends that lie closer cannot be told apart.
    """
    known = sorted((time_ns, rank) for rank, time_ns in ended_ns.items() if time_ns is not None)
    if len(known) < max(len(ended_ns), 2) or known[1][0] - known[0][0] <= sure_ns:
        return ""
    (first_ns, first), (second_ns, _) = known[:2]
    return (
        f"note: rank {first} was the first to end, {(second_ns - first_ns) / 1e9:.3f} s before the next one\n"
    )


def withheld(per_rank: Mapping[int, Sequence[str]]) -> str:
    """Which variables' values are not in the record, as a line; empty where none was held back."""
    names = sorted({name for names in per_rank.values() for name in names})
    if not names:
        return ""
    return f"note: not recorded, as their values look like credentials: {', '.join(names)}\n"
