"""The first of many patterns that a name satisfies, without trying them all.

Most patterns hold some plain text that must stand in the name. Names are cut into groups of three letters,
and only patterns whose text can be in the name are tried. The answer is that of trying all in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

On = Literal["base", "full"]

_GROUP = 3
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|.", re.DOTALL)
_NOT_PLAIN = re.compile(r"\\[xuUN0-9]|\(\?[a-zA-Z]+\)|\(\?#")  # escapes by number, flags, comments


@dataclass(frozen=True)
class Match:
    """When a rule holds: one of ``patterns`` is found in the base name or in the full name.

    Patterns are searched anywhere in the name, without regard to (ASCII) case.
    """

    patterns: tuple[str, ...]
    on: On = "base"

    def __call__(self, base: str, full: str) -> bool:
        """Whether a kernel with this base name and full name is meant."""
        text = base if self.on == "base" else full
        return any(compiled(pattern).search(text) is not None for pattern in self.patterns)


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern as rules mean it. Compiled when it is first needed."""
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


def plain_texts(pattern: str) -> tuple[str, ...]:
    """Lower-case texts of which every match of ``pattern`` holds at least one; () where none are sure."""
    return () if _NOT_PLAIN.search(pattern) else _texts(_TOKEN.findall(pattern))


def _texts(tokens: list[str]) -> tuple[str, ...]:
    """The same for the tokens of a pattern or of one group."""
    found: list[str] = []
    for branch in _split(tokens):
        best = max(_runs(branch), key=_worth, default=())
        if _worth(best) <= _GROUP - 1:
            return ()
        found += best
    return tuple(found)


def _worth(texts: tuple[str, ...]) -> float:
    """Long texts and few of them are found in fewer names that do not match."""
    return min(map(len, texts)) - len(texts) / 100 if texts else 0


def _split(tokens: list[str]) -> list[list[str]]:
    """Alternatives outside all groups."""
    depth = 0
    branches: list[list[str]] = [[]]
    for token in tokens:
        depth += (token == "(") - (token == ")")
        if token == "|" and depth == 0:
            branches.append([])
        else:
            branches[-1].append(token)
    return branches


def _runs(tokens: list[str]) -> Iterator[tuple[str, ...]]:
    """What one alternative must hold: each run of plain letters, and the texts of each group."""
    run, at = "", 0
    while at < len(tokens):
        token, at = tokens[at], at + 1
        plain = False
        if token == "(":
            inner, at = _group(tokens, at)
            if _same_case(inner) and not _optional(tokens, at):
                yield _texts(inner[inner.index(":") + 1 :])
        elif not _several(token):
            plain = not _optional(tokens, at)
        if plain:
            run += token[-1]
        else:
            yield (run.lower(),)
            run = ""
    yield (run.lower(),)


def _group(tokens: list[str], at: int) -> tuple[list[str], int]:
    """The tokens of the group that opened before ``at``, and where it is over."""
    depth, start = 1, at
    while depth and at < len(tokens):
        depth += (tokens[at] == "(") - (tokens[at] == ")")
        at += 1
    return tokens[start : at - 1], at


def _same_case(inner: list[str]) -> bool:
    """A group that only groups, or that minds the case (then its lower-case text is in the name as well)."""
    return inner[:2] == ["?", ":"] or inner[:4] == ["?", "-", "i", ":"]


def _several(token: str) -> bool:
    """No one letter: an anchor, a class, a quantifier."""
    long = len(token) > 1 and (token[0] == "[" or token[1].isalnum())
    return long or token in ".^$" or _quantifier(token)


def _quantifier(token: str) -> bool:
    return token in "*+?" or (token[0] == "{" and len(token) > 1)


def _optional(tokens: list[str], at: int) -> bool:
    """Whether what stands before ``at`` may be absent."""
    return at < len(tokens) and _quantifier(tokens[at]) and tokens[at] != "+"


class FirstMatch:
    """Which of ``matches`` is the first that holds for a name."""

    def __init__(self, matches: Sequence[Match]) -> None:
        self._by_group: dict[str, list[tuple[int, str]]] = {}  # rule and pattern
        self._always: list[tuple[int, str]] = []
        self._full: dict[str, list[tuple[int, str]]] = {}  # by a text that must be in the full name
        self._on = tuple(match.on for match in matches)
        for rule, match in enumerate(matches):
            for pattern in match.patterns:
                self._add(match.on, plain_texts(pattern), (rule, pattern))

    def _add(self, on: On, texts: tuple[str, ...], candidate: tuple[int, str]) -> None:
        if on == "full":
            for text in texts or ("",):
                self._full.setdefault(text, []).append(candidate)
        elif not texts:
            self._always.append(candidate)
        for text in texts if on == "base" else ():
            groups = (text[at : at + _GROUP] for at in range(len(text) - _GROUP + 1))
            rarest = min(groups, key=lambda group: len(self._by_group.get(group, ())))
            self._by_group.setdefault(rarest, []).append(candidate)

    def __call__(self, base: str, full: str) -> int | None:
        """Position of the first match that holds, None where none does."""
        low, low_full = base.lower(), full.lower()
        candidates = [*self._always]
        for text, found in self._full.items():
            if text in low_full:
                candidates += found
        for group in {low[at : at + _GROUP] for at in range(len(low) - _GROUP + 1)} & self._by_group.keys():
            candidates += self._by_group[group]
        for rule, pattern in sorted(candidates):
            text = base if self._on[rule] == "base" else full
            if compiled(pattern).search(text) is not None:
                return rule
        return None
