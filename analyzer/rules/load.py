"""Rules files: read, checked, and put in order. Every error names the file, the place in it and a way out."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from analyzer.errors import UsageError
from analyzer.rules import checks
from analyzer.rules.ruleset import (
    CollectiveRule,
    KernelRule,
    OperationRule,
    Rules,
)
from analyzer.rules.search import Match

BUILTIN = "builtin.toml"
LONGEST_FILE_BYTES = 1_000_000
_SECTIONS = ("kernel", "collective", "operation", "copy", "fill", "thresholds")


@cache
def builtin_rules() -> Rules:
    """The rules that come with tracebound, without any of the user's."""
    text = resources.files(__package__).joinpath(BUILTIN).read_text(encoding="utf-8")
    return _parse(text, BUILTIN, known_thresholds=None)


def load_rules(paths: Sequence[str | Path] | str | Path) -> Rules:
    """The user's files in the order given, then the built-in rules; of a threshold the last file's value wins.

    Raises UsageError for a file that cannot be read or that holds anything but valid rules.
    """
    known = builtin_rules()
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    if not given:
        return known
    files = [_parse(_text(Path(path)), str(path), known_thresholds=known.thresholds) for path in given]
    ordered = [*files, known]
    thresholds = dict(known.thresholds)
    for rules in files:
        thresholds |= rules.thresholds
    return Rules(
        kernels=tuple(rule for rules in ordered for rule in rules.kernels),
        collectives=tuple(rule for rules in ordered for rule in rules.collectives),
        operations=tuple(rule for rules in ordered for rule in rules.operations),
        copies=tuple(match for rules in ordered for match in rules.copies),
        fills=tuple(match for rules in ordered for match in rules.fills),
        thresholds=thresholds,
        sources=tuple(str(path) for path in given),
    )


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(str(path), "", error.strerror or str(error), "give a readable rules file") from None
    if len(data) > LONGEST_FILE_BYTES:
        raise UsageError(str(path), "", f"is larger than {LONGEST_FILE_BYTES:,} bytes", "give a rules file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(str(path), f"byte {error.start}", "is no UTF-8 text", "save it as UTF-8") from None


def _parse(text: str, path: str, *, known_thresholds: Mapping[str, float] | None) -> Rules:
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(
            path, "", f"is no TOML: {error}", "see docs/rules.md; quote patterns with single quotes"
        ) from None
    checks.only_keys(document, _SECTIONS, path, "")
    return Rules(
        kernels=tuple(_kernel(entry, path, at) for entry, at in _entries(document, "kernel", path)),
        collectives=tuple(
            _collective(entry, path, at) for entry, at in _entries(document, "collective", path)
        ),
        operations=tuple(_operation(entry, path, at) for entry, at in _entries(document, "operation", path)),
        copies=tuple(_plain(entry, path, at) for entry, at in _entries(document, "copy", path)),
        fills=tuple(_plain(entry, path, at) for entry, at in _entries(document, "fill", path)),
        thresholds=checks.thresholds(document.get("thresholds", {}), path, known_thresholds),
    )


def _entries(document: dict[str, Any], section: str, path: str) -> list[tuple[dict[str, Any], str]]:
    """The rules of one section with their places, such as "kernel rule 3"."""
    entries = document.get(section, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UsageError(
            path, section, "is not a list of rules", f"begin each of its rules with [[{section}]]"
        )
    return [(entry, f"{section} rule {number}") for number, entry in enumerate(entries, 1)]


def _kernel(entry: dict[str, Any], path: str, place: str) -> KernelRule:
    checks.only_keys(entry, ("class", "pattern", "on", "note"), path, place)
    return KernelRule(checks.class_name(entry, path, place), _match(entry, path, place))


def _collective(entry: dict[str, Any], path: str, place: str) -> CollectiveRule:
    allowed = ("pattern", "on", "note", "class", "family", "operation", "fused", "local")
    checks.only_keys(entry, allowed, path, place)
    local = checks.flag(entry, "local", path, place)
    if local:
        checks.only_keys(entry, ("pattern", "on", "note", "local"), path, f"{place}, which is local")
    return CollectiveRule(
        match=_match(entry, path, place),
        class_=checks.collective_class(entry, path, place),
        family=checks.word(entry, "family", path, place) or (None if local else "custom"),
        operation=checks.word(entry, "operation", path, place),
        fused=checks.flag(entry, "fused", path, place),
        local=local,
    )


def _operation(entry: dict[str, Any], path: str, place: str) -> OperationRule:
    checks.only_keys(entry, ("operation", "pattern", "on", "note"), path, place)
    operation = checks.word(entry, "operation", path, place)
    if operation is None:
        raise UsageError(path, place, "has no operation", 'add a line such as operation = "all_reduce"')
    return OperationRule(operation, _match(entry, path, place))


def _plain(entry: dict[str, Any], path: str, place: str) -> Match:
    checks.only_keys(entry, ("pattern", "on", "note"), path, place)
    return _match(entry, path, place)


def _match(entry: dict[str, Any], path: str, place: str) -> Match:
    checks.text(entry, "note", path, place)
    on = entry.get("on", "base")
    if on not in ("base", "full"):
        raise UsageError(path, place, f"on = {on!r} is unknown", 'use on = "base" or on = "full"')
    return Match(checks.patterns(entry, path, place), on)
