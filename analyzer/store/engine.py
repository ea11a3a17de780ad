"""Connections to a store, and the one lock under which it is written.

A SQLite file is looked at before SQLite opens it: an input or another application's database stays untouched,
its folder too. Writers wait for one another, so that "is it there already" and "then write it" are one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from analyzer.store.errors import StoreError
from analyzer.store.url import is_file, shown

APPLICATION_ID = 0x74726264
"""``PRAGMA application_id`` of our SQLite files ("trbd"), in bytes 68 to 71 of the file."""
LOCK_WAIT_S = 60.0
"""How long a process waits for another one that writes."""
CONNECT_WAIT_S = 10

_MAGIC = b"SQLite format 3\0"
_ID_PLACE = slice(68, 72)
_HEADER = 100
_POSTGRES_LOCK = 0x74726163655F6264
"""Key of the advisory lock, the same for every process."""


def engine_for(url: sa.URL, lock_wait_s: float = LOCK_WAIT_S) -> sa.Engine:
    """An engine that holds no connection open. Raises StoreError where the driver is not installed."""
    if is_file(url):
        engine = sa.create_engine(url, poolclass=NullPool, connect_args={"timeout": lock_wait_s})
        sa.event.listen(engine, "connect", _leave_transactions_to_us)
        sa.event.listen(engine, "begin", _begin)
        return engine
    wait = {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_WAIT_S}
    try:
        return sa.create_engine(url, poolclass=NullPool, connect_args=wait)
    except ImportError as error:
        raise StoreError(
            shown(url),
            "",
            f"the database driver {url.get_driver_name()!r} cannot be loaded: {error}",
            "pip install 'psycopg[binary]'",
        ) from None


def _leave_transactions_to_us(connection: Any, _: Any) -> None:
    """Python's sqlite3 would begin transactions of its own, and only before some statements."""
    connection.isolation_level = None


def _begin(connection: sa.Connection) -> None:
    """A writer takes the lock at once: two readers that both want to write would block each other."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction that no other writer of this store shares; committed at the end, undone by an error."""
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_POSTGRES_LOCK)))
        yield connection


def refuse_foreign_file(url: sa.URL) -> bool:
    """Raise StoreError where ``url`` is a file that is no store. Returns whether there is a store, or a server.

    An empty file may become one.
    """
    if not is_file(url):
        return True
    path = Path(url.database or "")
    try:
        if not path.exists():
            _refuse_missing_folder(path)
            return False
        with path.open("rb") as file:
            head = file.read(_HEADER)
    except OSError as error:
        why = f"it cannot be opened: {error.strerror or error}"
        raise StoreError(
            str(path), "", why, "check the path and its permissions, or name another file"
        ) from None
    if not head:
        return False
    other = "name another file with --store FILE; this one was left as it is"
    if not head.startswith(_MAGIC):
        raise StoreError(str(path), "byte 0", "this is not a SQLite database", other)
    if int.from_bytes(head[_ID_PLACE]) != APPLICATION_ID:
        raise StoreError(
            str(path), "", "this SQLite database is no store of tracebound (a capture, perhaps)", other
        )
    return True


def _refuse_missing_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise StoreError(str(path), "", "its folder does not exist", f"make it first: mkdir -p {path.parent}")


def mark_file(connection: sa.Connection) -> None:
    """Write into a new SQLite file whose it is."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
