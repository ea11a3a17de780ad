"""The version of a store's tables: made and brought up to date when a store is opened."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from analyzer.store.engine import mark_file, writing
from analyzer.store.errors import StoreError
from analyzer.store.models import VERSION_TABLE, Base
from analyzer.store.url import shown

if TYPE_CHECKING:
    from alembic.config import Config

CURRENT = "0002"
"""The newest migration: a test compares it with ``migrations/versions``."""
MIGRATIONS = Path(__file__).with_name("migrations")


def version_of(connection: sa.Connection) -> str | None:
    """The version of the tables; None where there are none of ours."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    table = sa.table(VERSION_TABLE, sa.column("version_num", sa.String))
    return connection.execute(sa.select(table.c.version_num)).scalar_one_or_none()


def bring_up_to_date(engine: sa.Engine, *, create: bool) -> None:
    """Make the tables or migrate them, under the lock that every writer takes.

    Raises StoreError for tables of a newer version, for another application's tables, and without ``create``
    where there are none.
    """
    with engine.connect() as connection:
        found = version_of(connection)
    if found == CURRENT:
        return
    if found is None and not create:
        raise no_store(engine.url)
    with writing(engine) as connection:
        found = version_of(connection)  # another process may have been first
        if found == CURRENT:
            return
        if found is None:
            _refuse_taken_names(connection)
        else:
            _refuse_newer(connection, found)
        upgrade(connection)


def no_store(url: sa.URL) -> StoreError:
    """There is nothing to read."""
    return StoreError(
        shown(url),
        "",
        "there is no store here",
        "tracebound diagnose TRACE --store URL makes one; name yours with --store URL",
    )


def upgrade(connection: sa.Connection, to: str = "head") -> None:
    """Migrate up, in the transaction of ``connection``."""
    from alembic import command  # late: it takes longer to import than a store to read

    mark_file(connection)
    command.upgrade(configuration(connection), to)


def configuration(connection: sa.Connection) -> Config:
    """Alembic's settings for a connection whose transaction is under way."""
    from alembic.config import Config

    config = Config(stdout=sys.stdout)  # alembic's default is what stdout was when it was imported
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _refuse_taken_names(connection: sa.Connection) -> None:
    taken = sorted(set(sa.inspect(connection).get_table_names()) & set(Base.metadata.tables))
    if taken:
        raise StoreError(
            shown(connection.engine.url),
            "",
            f"another application has tables of the names that a store uses: {', '.join(taken)}",
            "give the store a database of its own (CREATE DATABASE tracebound)",
        )


def _refuse_newer(connection: sa.Connection, found: str) -> None:
    from alembic.script import ScriptDirectory

    known = {script.revision for script in ScriptDirectory(MIGRATIONS).walk_revisions()}
    if found not in known:
        raise StoreError(
            shown(connection.engine.url),
            "",
            f"a newer tracebound made this store (tables of version {found}; this one knows {CURRENT})",
            "update tracebound; the store was left as it is",
        )
