"""The check-up as text for a terminal: answers first, then what to capture, then the files."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from analyzer.explain.check_up.examine import Answer, AnswerWord, CaptureAdvice, Checkup, Limit
from analyzer.explain.check_up.files import FileCheck, Note
from analyzer.report.cautions import ranks_text
from analyzer.report.escape import visible
from analyzer.report.labels import RULE_WORDS
from analyzer.report.numbers import count
from analyzer.report.record_words import records_in_words
from analyzer.report.tables import section

WIDTH = 110
WARNINGS_SHOWN = 3
FILES_SHOWN = 4
GROUPS_SHOWN = 4
_TITLES: dict[AnswerWord, str] = {"can": "Can answer", "partly": "Answers in part", "cannot": "Cannot answer"}


def text(checkup: Checkup) -> str:
    """The whole check-up, lines of at most WIDTH columns apart from commands and paths."""
    sections = ["\n".join(_head(checkup)) + "\n"]
    for word, title in _TITLES.items():
        rows = [row for row in checkup.hypotheses if row.answer == word]
        if rows:
            answers = "\n".join(_answers(rows, checkup.ranks))
            sections.append(section(f"{title} ({len(rows)})", answers))
    for advice in checkup.captures:
        sections.append(
            section(f"What to capture, as {visible(advice.tool, 60)} made this", "\n".join(_advice(advice)))
        )
    sections.append(section("Files", "\n".join(_files(checkup.files))))
    return "\n".join(sections)


def _wrapped(words: str, indent: str, first: str = "") -> list[str]:
    """``words`` (safe text) on lines of WIDTH columns."""
    return textwrap.wrap(
        words, WIDTH, initial_indent=indent + first, subsequent_indent=indent + " " * len(first),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _head(checkup: Checkup) -> Iterator[str]:
    what = f"{count(len(checkup.files), 'file')}, {ranks_text(checkup.ranks)}; {_steps(checkup)}"
    yield from _wrapped(what, "")
    for note in checkup.notes:
        yield from _note(note, "")
    if checkup.gaps:
        closable = sum(row.what == "hypothesis" for row in checkup.failures)
        others = [row.what for row in checkup.failures if row.what != "hypothesis"]
        parts = (
            [f"another capture would say more on {closable} of {len(checkup.hypotheses)} questions"]
            if closable
            else []
        )
        parts += [f"{name.replace('-', ' ')} ({others.count(name)})" for name in dict.fromkeys(others)]
        yield from _wrapped(f"{count(checkup.gaps, 'gap')}: {', '.join(parts)}", "")
    else:
        yield "No gap: another capture of this kind would not answer more."


def _steps(checkup: Checkup) -> str:
    steps = checkup.steps
    if steps is None or steps.confidence == "none":
        return "no steps"
    rule = RULE_WORDS.get(steps.rule) or visible(steps.rule, 40)
    return f"{count(steps.count, 'step')}, found by {rule}, confidence {visible(steps.confidence, 20)}"


def _note(note: Note, indent: str) -> list[str]:
    words = (visible(note.text, 240), visible(note.close_gap, 240))
    return _wrapped("; ".join(filter(None, words)), indent, "- ")


def _answers(rows: Sequence[Answer], ranks: Sequence[int]) -> Iterator[str]:
    """Hypotheses with the same limits share their lines."""
    groups: dict[str, tuple[list[str], list[Limit]]] = {}
    for row in rows:
        groups.setdefault(repr(row.limits), ([], row.limits))[0].append(row.id)
    for ids, limits in groups.values():
        yield from _wrapped(", ".join(ids), "  ")
        for limit in limits:
            reason, remedy = _reason(limit, ranks), visible(limit.close_gap, 240)
            if limit.closable:
                yield from _wrapped(reason, "      ")
                yield from _wrapped(": ".join(filter(None, (remedy, " ".join(limit.flags)))), "      ", "-> ")
            else:
                yield from _wrapped("; ".join(filter(None, (reason, remedy))), "      ")


def _reason(limit: Limit, ranks: Sequence[int]) -> str:
    words = visible(limit.reason, 400)
    return words if set(limit.ranks) == set(ranks) else f"{words} ({ranks_text(limit.ranks)})"


def _advice(advice: CaptureAdvice) -> Iterator[str]:
    yield f"  {advice.collect}"
    yield "  or by hand:"
    yield from (f"    {line}" for line in advice.lines)
    for cost in advice.costs:
        yield from _wrapped(cost, "", "- ")


def _files(files: Sequence[FileCheck]) -> Iterator[str]:
    """Files that hold the same kinds of records and raise the same notes are described once."""
    groups: dict[tuple[object, ...], list[FileCheck]] = {}
    for file in files:
        held = tuple((name, bool(rows)) for name, rows in file.records.items())
        groups.setdefault((file.profiler, held, tuple(note.code for note in file.notes)), []).append(file)
    for number, members in enumerate(groups.values()):
        if number == GROUPS_SHOWN:
            yield "and more files: --format json lists all"
            return
        for file in members[:FILES_SHOWN]:
            yield f"{visible(file.path, 200)} ({ranks_text(file.ranks)})"
        if len(members) > FILES_SHOWN:
            yield f"and {count(len(members) - FILES_SHOWN, 'more file')} like these: --format json lists all"
        yield from _group(members)


def _group(members: Sequence[FileCheck]) -> Iterator[str]:
    file = members[0]
    held = [
        f"{records_in_words([name])} {_span(name, members)}" for name, rows in file.records.items() if rows
    ]
    empty = [name for name, rows in file.records.items() if not rows]
    yield from _wrapped(f"{visible(file.profiler, 60)}: {', '.join(held) or 'no rows'}", "  ")
    if empty:
        yield from _wrapped(f"places without rows: {records_in_words(empty)}", "  ")
    yield from _wrapped(f"not captured: {records_in_words(file.not_captured) or 'nothing missing'}", "  ")
    for note in file.notes:
        yield from _note(note, "  ")
    alike: dict[str, list[str]] = {}
    for message in (message for member in members for message in member.warnings):
        alike.setdefault(re.sub(r"\d+", "0", message), []).append(message)
    for messages in list(alike.values())[:WARNINGS_SHOWN]:
        more = f" (and {len(messages) - 1} like it)" if messages[1:] else ""
        yield from _wrapped(f"the profiler warns: {visible(messages[0], 200)}{more}", "  ", "- ")
    if len(alike) > WARNINGS_SHOWN:
        yield f"  - and {count(len(alike) - WARNINGS_SHOWN, 'more warning')}: --format json lists all"


def _span(name: str, members: Sequence[FileCheck]) -> str:
    rows = [member.records[name] for member in members]
    return f"{min(rows):,}" if min(rows) == max(rows) else f"{min(rows):,} to {max(rows):,}"
