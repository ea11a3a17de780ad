"""Markdown tables that also read well in a plain terminal, and the sections of a text for one."""

from __future__ import annotations

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """A padded pipe table. Columns in ``left`` are aligned left, the others right. Cells are safe text."""
    cells = [list(header), *[list(row) for row in rows]]
    widths = [max(3, *(len(row[column]) for row in cells)) for column in range(len(header))]
    lines = [_line(cells[0], widths, left)]
    rule = ["-" * width if i in left else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    lines.append(f"| {' | '.join(rule)} |")
    lines += [_line(row, widths, left) for row in cells[1:]]
    return "\n".join(lines)


def _line(row: Sequence[str], widths: Sequence[int], left: Sequence[int]) -> str:
    padded = [
        cell.ljust(width) if column in left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return f"| {' | '.join(padded)} |"


def columns(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """An aligned table for a terminal, without rules. Cells are safe text."""
    cells = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = []
    for row in cells:
        padded = [
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def section(title: str, body: str) -> str:
    """A titled part of a text for a terminal."""
    return f"{title}\n{'-' * len(title)}\n{body}\n"
