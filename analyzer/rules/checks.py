"""The checks of a rules file's values. Each raises UsageError with the file, the place and a way out."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analyzer.errors import UsageError
from analyzer.rules.ruleset import COLLECTIVE, EXPERT_PARALLEL, OTHER

LONGEST_PATTERN = 2_000
MOST_PATTERNS = 1_000
_WORD = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
_CLASS = re.compile(r"[a-z][a-z0-9_]{0,39}(?:\.[a-z0-9_]{1,40})?", re.ASCII)
_RESERVED = (COLLECTIVE, EXPERT_PARALLEL, OTHER, "set", "graph")


def only_keys(table: Mapping[str, Any], allowed: Sequence[str], path: str, place: str) -> None:
    """Refuse a key that has no meaning here."""
    unknown = sorted(set(table) - set(allowed))
    if unknown:
        raise UsageError(
            path, place, f"the key {unknown[0]!r} has no meaning here", "use " + ", ".join(allowed)
        )


def text(table: Mapping[str, Any], key: str, path: str, place: str) -> str | None:
    """The string at ``key``, None where it is absent."""
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise UsageError(path, place, f"{key} is no string", f'write {key} = "..."')
    return value


def word(table: Mapping[str, Any], key: str, path: str, place: str) -> str | None:
    """A name of lower-case letters, digits and underscores."""
    value = text(table, key, path, place)
    if value is not None and not _WORD.fullmatch(value):
        raise UsageError(
            path,
            place,
            f"{key} = {value!r} is no name",
            "use at most 40 lower-case letters, digits and underscores, a letter first",
        )
    return value


def flag(table: Mapping[str, Any], key: str, path: str, place: str) -> bool:
    """A boolean, False where it is absent."""
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise UsageError(path, place, f"{key} is neither true nor false", f"write {key} = true")
    return value


def class_name(table: Mapping[str, Any], path: str, place: str) -> str:
    """The class of a kernel rule: one of the built-in ones or a new one."""
    value = text(table, "class", path, place)
    if value is None:
        raise UsageError(path, place, "has no class", 'add a line such as class = "gemm"')
    if value in (COLLECTIVE, EXPERT_PARALLEL):
        raise UsageError(
            path, place, f"{value!r} is no class of local kernels", "write the rule as [[collective]]"
        )
    if value in _RESERVED:
        raise UsageError(path, place, f"the class {value!r} has its own meaning", "choose another name")
    if not _CLASS.fullmatch(value):
        raise UsageError(
            path,
            place,
            f"{value!r} is no class name",
            "use lower-case letters, digits and underscores, at most one dot: attention, moe.gemm",
        )
    return value


def collective_class(table: Mapping[str, Any], path: str, place: str) -> str:
    """``collective`` or ``collective.ep``."""
    value = table.get("class", COLLECTIVE)
    if value not in (COLLECTIVE, EXPERT_PARALLEL):
        raise UsageError(
            path,
            place,
            f"class = {value!r} is none of a collective",
            f'use class = "{COLLECTIVE}" or class = "{EXPERT_PARALLEL}"',
        )
    return str(value)


def patterns(table: Mapping[str, Any], path: str, place: str) -> tuple[str, ...]:
    """One regular expression or a list of them."""
    given = table.get("pattern")
    if given is None:
        raise UsageError(path, place, "has no pattern", "add a line such as pattern = '^my_kernel'")
    listed = given if isinstance(given, list) else [given]
    if not listed or not all(isinstance(pattern, str) for pattern in listed):
        raise UsageError(path, place, "pattern is no string and no list of strings", "write pattern = '...'")
    if len(listed) > MOST_PATTERNS:
        raise UsageError(path, place, f"has more than {MOST_PATTERNS} patterns", "split the rule")
    for pattern in listed:
        _check_pattern(pattern, path, place)
    return tuple(listed)


def _check_pattern(pattern: str, path: str, place: str) -> None:
    if not pattern.strip():
        raise UsageError(path, place, "the pattern is empty", "remove the rule, or write what it matches")
    if len(pattern) > LONGEST_PATTERN:
        raise UsageError(
            path,
            place,
            f"a pattern is longer than {LONGEST_PATTERN} characters",
            "give a list of shorter patterns: pattern = ['...', '...']",
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "error", FutureWarning
            )  # "possible nested set": a class that means otherwise
            compiled = re.compile(pattern, re.IGNORECASE)
    except (re.error, RecursionError, OverflowError, FutureWarning) as error:
        raise UsageError(
            path,
            place,
            f"{pattern!r} is no regular expression: {error}",
            "escape special characters with a backslash; quote patterns with single quotes",
        ) from None
    if compiled.search("") is not None:
        raise UsageError(
            path, place, f"{pattern!r} matches every name", "write something that must stand in the name"
        )
    if repeats_a_repetition(pattern):
        raise UsageError(
            path,
            place,
            f"{pattern!r} repeats a group that repeats something itself, which can take exponential time",
            "write it without the outer or the inner repetition",
        )


_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?[^:)]*[:)]?|[*+]|\{\d*,\}|.", re.DOTALL)
_SEPARATOR = re.compile(r"\\[^\w]|[^\w\s\\.^$*+?{}\[\]|()]")  # a character that no \w matches
_ANYTHING = re.compile(r"\.|\\[SDW]|\[\^.*\]", re.DOTALL)


@dataclass
class _Group:
    """What an open group holds so far."""

    repeats: bool = False
    separated: bool = False  # every round passes a character that is no part of a word
    open_ended: bool = False  # "." and the like, or alternatives: the separator does not help


def repeats_a_repetition(pattern: str) -> bool:
    r"""Whether a group with an unbounded repetition inside is itself repeated without bound.

    Not where each round must pass a separator that the inner repetition cannot match: ``(?:\w+::)*``.
    """
    groups = [_Group()]
    closed: _Group | None = None  # the group that the last token closed
    for token in _TOKEN.findall(pattern):
        unbounded = token in "*+" or (token[0] == "{" and len(token) > 1)
        ambiguous = closed is not None and closed.repeats and (closed.open_ended or not closed.separated)
        if unbounded and ambiguous:
            return True
        group = groups[-1]
        before, closed = closed, None
        if token.startswith("(") and not token.endswith(")"):
            groups.append(_Group())
        elif token == ")" and len(groups) > 1:
            closed = groups.pop()
            groups[-1].repeats |= closed.repeats
            groups[-1].open_ended |= closed.open_ended
        elif unbounded:
            group.repeats = True
            # a repeated separator may be absent
            group.separated &= before is not None
        elif token == "|" or _ANYTHING.fullmatch(token):
            group.open_ended = True
        elif _SEPARATOR.fullmatch(token):
            group.separated = True
    return False


def thresholds(table: Any, path: str, known: Mapping[str, float] | None) -> dict[str, float]:
    """Checked thresholds. ``known`` None: these are the built-in ones, any name is right."""
    if not isinstance(table, dict):
        raise UsageError(path, "thresholds", "is no table", "begin it with [thresholds]")
    for name, value in table.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(path, f"thresholds.{name}", "is no number", f"write {name} = 0.1")
        problem = threshold_problem(name, float(value), table if known is None else known)
        if problem is not None:
            raise UsageError(path, f"thresholds.{name}", *problem)
    return {name: float(value) for name, value in table.items()}


def threshold_problem(name: str, value: float, known: Mapping[str, float]) -> tuple[str, str] | None:
    """Why this threshold cannot be set, and the way out; None where it can."""
    if name not in known:
        return "there is no threshold of this name", "use one of " + ", ".join(sorted(known))
    if name.endswith(("_share", "_coverage")):
        if not 0 <= value <= 1:
            return f"{value} is not a share", "give a number from 0 to 1"
    elif not (math.isfinite(value) and value >= 0):
        return f"{value} is not a finite number of at least 0", "give such a number"
    return None
