"""A finished export: whether it is whole, whether it holds events, and the environment taken out of it.

nsys copies the environment of every process that it may look at into its files. The SQLite file is what gets passed
around, so it keeps only those variables that a manifest may hold. The report itself cannot be changed.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from pathlib import Path

from collectors.launch import VARIABLES
from collectors.secrets import RECORDED, is_secret

_WHOLE = ("TARGET_INFO_", "META_DATA_CAPTURE", "ANALYSIS_")
_EVENTS = re.compile(
    r"CUPTI_ACTIVITY_KIND_\w+|NVTX_EVENTS|OSRT_API|SCHED_EVENTS|COMPOSITE_EVENTS|GPU_METRICS\w*"
)
_VARIABLE = re.compile(r"\w+=")
_ENVIRONMENT = (
    ("TARGET_INFO_SYSTEM_ENV", "name = 'DeviceEnvironment'"),
    ("META_DATA_CAPTURE", "name LIKE '%ENVIRONMENT_VARIABLE%'"),
    ("StringIds", "instr(value, char(0)) > 0"),  # of all processes, the variables joined by NUL
)
_RANK = VARIABLES | {"SLURM_STEP_ID"}
"""Readers take the rank from these; the last one tells a step's tasks from the batch script."""


def check(path: Path) -> tuple[str, bool]:
    """Why the file cannot be used (empty if it can), and whether it holds events.

    An export that broke off has tables of strings and streams, and nothing about the machine.
    """
    if not path.exists():
        return "no SQLite file was written", False
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            names = [
                str(row[0]) for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            ]
    except sqlite3.Error as error:
        return f"the SQLite file is damaged ({error})", False
    if not any(name.startswith(_WHOLE) for name in names):
        return (
            f"the SQLite file was cut short: it has {len(names)} tables and nothing about the machine",
            False,
        )
    return "", any(_EVENTS.fullmatch(name) for name in names)


def remove_environment(path: Path) -> int:
    """Take all variables out of the file that a manifest would not hold. Returns how many. Raises sqlite3.Error.

    The file is written anew then: pages of a database hold remains of rows that were moved or changed.
    """
    with contextlib.closing(sqlite3.connect(path)) as database:
        with database:
            removed = sum(_clean(database, table, where) for table, where in _ENVIRONMENT)
        if removed:
            fresh = path.with_name(f"{path.name}.new")
            database.execute("VACUUM INTO ?", (str(fresh),))
    if removed:
        fresh.replace(path)
    return removed


def _clean(database: sqlite3.Connection, table: str, where: str) -> int:
    removed = 0
    if database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
        for row, text in database.execute(f"SELECT rowid, value FROM {table} WHERE {where}").fetchall():
            kept, count = _kept(str(text))
            if count:
                database.execute(f"UPDATE {table} SET value = ? WHERE rowid = ?", (kept, row))
            removed += count
    return removed


def _kept(text: str) -> tuple[str, int]:
    """The variables that may stay, and how many may not. Joined by NUL, a line end or ``;``, by version."""
    if not _VARIABLE.match(text):
        return text, 0
    separator = next((sign for sign in "\0\n" if sign in text), ";" if text.count("=") > 1 else "\0")
    pairs = [pair for pair in text.split(separator) if pair]
    kept = [pair for pair in pairs if _may_stay(*pair.partition("=")[::2])]
    return separator.join(kept), len(pairs) - len(kept)


def _may_stay(name: str, value: str) -> bool:
    return name in _RANK or (RECORDED.fullmatch(name) is not None and not is_secret(value, name))
