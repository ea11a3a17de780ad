"""The tables of kernel names beside this file: a line in brackets is the class of the names under it."""

from __future__ import annotations

from pathlib import Path


def names(file: str) -> list[tuple[str, str]]:
    """(name, expected class) pairs of one table."""
    found, class_ = [], ""
    for line in (Path(__file__).parent / file).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            class_ = line.strip("[]")
        elif line and not line.startswith("#"):
            found.append((line, class_))
    return found
