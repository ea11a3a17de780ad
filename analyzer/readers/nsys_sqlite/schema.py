"""Which tables and columns an export has, and how the database is opened without touching it.

Detection is by table and column, never by version: names and columns changed in "minor" versions.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite as sqlite_dialect
from sqlalchemy.pool import NullPool

from analyzer.errors import TraceError

MAGIC = b"SQLite format 3\0"
_WAL_VERSION = 2  # bytes 18 and 19 of the header: file format, 2 = write-ahead log
_NSYS_TABLES = ("StringIds", "ANALYSIS_DETAILS", "ProcessStreams", "META_DATA_EXPORT", "EXPORT_META_DATA")
_NSYS_PREFIXES = ("CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "OSRT_API", "TARGET_INFO_", "CUDA_GRAPH_EVENTS")

Schema = dict[str, frozenset[str]]
"""Columns of every table."""


def looks_like(path: Path) -> bool:
    """Whether ``path`` holds a SQLite database with at least one table that nsys writes.

    Decided by content. A database that cannot be opened (locked, damaged) is claimed, so that
    reading it tells the user why.
    """
    if _head(path, len(MAGIC)) != MAGIC:
        return False
    try:
        with open_engine(path) as engine:
            tables = table_names(engine, path)
    except TraceError:
        return True
    return any(is_nsys_table(name) for name in tables)


def is_nsys_table(name: str) -> bool:
    """Whether a table of that name is one of the exporter's."""
    return name in _NSYS_TABLES or name.startswith(_NSYS_PREFIXES)


def _head(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(size)
    except OSError as error:
        why = f"it cannot be opened: {error.strerror}"
        raise TraceError(str(path), "", why, "check the path and its permissions") from error


def read_only_uri(path: Path) -> str:
    """The URI that opens ``path`` so that neither it nor its folder can change.

    A plain database is opened with ``mode=ro``, which notices a writer's lock. One in write-ahead-log mode
    would make SQLite create ``-wal``/``-shm`` files, so it is opened as immutable; that ignores a log, hence
    an unmerged one is refused. Raises ``TraceError`` for what is no complete database.
    """
    _refuse_sidecars(path)
    header = _head(path, 20)
    if not header:
        raise TraceError(str(path), "", "the file is empty (0 bytes)", "export the .nsys-rep report again")
    if header[: len(MAGIC)] != MAGIC:
        raise TraceError(
            str(path), "byte 0", "this is not a SQLite database", "give the file that `nsys export` wrote"
        )
    immutable = "&immutable=1" if _WAL_VERSION in header[18:20] else ""
    return f"file:{quote(os.fsencode(path.resolve()))}?mode=ro{immutable}"


def _refuse_sidecars(path: Path) -> None:
    for suffix, meaning in (("-wal", "changes not yet merged"), ("-journal", "an unfinished change")):
        sidecar = Path(f"{path.resolve()}{suffix}")
        if sidecar.exists() and sidecar.stat().st_size > 0:
            raise TraceError(
                str(path),
                sidecar.name,
                f"the database has {meaning} in the file beside it: it is still being written, or a program "
                "that wrote to it was stopped",
                "wait until the export has ended or close the program that has it open; else export again",
            )


@contextmanager
def open_engine(path: Path) -> Iterator[sa.Engine]:
    """A SQLAlchemy engine on the read-only database; TEXT that is no UTF-8 is decoded with replacement."""
    uri = read_only_uri(path)

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(uri, uri=True, timeout=2.0)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        return connection

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=NullPool)
    try:
        yield engine
    finally:
        engine.dispose()


def unreadable(path: Path, where: str, reason: object) -> TraceError:
    """The error for what SQLite itself refused; its own words, without a traceback."""
    text = str(reason).splitlines()[0]
    if "locked" in text:
        hint = "another program is writing to it: wait until the export has ended, or copy the file"
    else:
        hint = "the file is damaged or incomplete: export the .nsys-rep report again"
    return TraceError(str(path), where, f"SQLite cannot read it: {text}", hint)


def table_names(engine: sa.Engine, path: Path) -> list[str]:
    """Names of all tables. Raises ``TraceError`` for a locked or damaged database."""
    try:
        return sa.inspect(engine).get_table_names()
    except sa.exc.DBAPIError as error:
        raise unreadable(path, "list of tables", error.orig) from error


def discover(engine: sa.Engine, path: Path) -> Schema:
    """All tables with their columns (through ``pragma_table_info``: types do not matter, they lie)."""
    names = table_names(engine, path)
    schema: Schema = {}
    try:
        with engine.connect() as connection:
            for name in names:
                info = sa.func.pragma_table_info(name).table_valued("name")
                schema[name] = frozenset(connection.scalars(sa.select(info.c.name)))
    except sa.exc.DBAPIError as error:
        raise unreadable(path, "list of columns", error.orig) from error
    return schema


def variant(schema: Schema, name: str) -> str | None:
    """The table ``name``, else its newest versioned variant (``NVTX_EVENTS_V3``), else None."""
    if name in schema:
        return name
    suffixes = [table.removeprefix(f"{name}_V") for table in schema if table.startswith(f"{name}_V")]
    versions = [int(suffix) for suffix in suffixes if suffix.isdigit()]
    return f"{name}_V{max(versions)}" if versions else None


def select_sql(table: str, columns: list[sa.ColumnElement[object]]) -> str:
    """SQL text of ``SELECT columns FROM table`` in the order of the file."""
    query = sa.select(*columns).select_from(sa.table(table)).order_by(sa.literal_column("rowid"))
    return str(query.compile(dialect=sqlite_dialect.dialect(), compile_kwargs={"literal_binds": True}))
