"""Where a store lies: a file's path or a database URL, read and shown without its password."""

from __future__ import annotations

import re
from pathlib import Path

import sqlalchemy as sa

from analyzer.errors import UsageError

DEFAULT = "tracebound.sqlite"
"""The file in the current directory that ``tracebound history`` reads unless told otherwise."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+_.-]*://")
_POSTGRES = ("postgres", "postgresql", "postgresql+psycopg")
_SQLITE = ("sqlite", "sqlite+pysqlite")
_SECRETS = ("password", "sslpassword")
_HOW = "write a file's path, sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"


def parse(where: str) -> sa.URL:
    """The database that ``where`` names. Raises UsageError for what is neither a path nor a URL of a known kind.

    No text of a URL that cannot be read stands in the error: it may hold a password.
    """
    if not _SCHEME.match(where):
        return _file(where)
    try:
        url = sa.make_url(where)
    except (sa.exc.ArgumentError, ValueError):
        raise _refused("this database URL cannot be read", f"{_HOW}; special characters as %XX") from None
    if url.drivername in _POSTGRES:
        return url.set(drivername="postgresql+psycopg")
    if url.drivername in _SQLITE:
        if url.host or url.query:
            raise _refused("a SQLite URL has neither a host nor options", "write sqlite:///FILE")
        return _file(url.database or "")
    kind = url.drivername.partition("+")[0]
    raise _refused(
        f"{'this driver' if kind in ('postgresql', 'sqlite') else 'this kind of database'} is not supported:"
        f" {url.drivername!r}",
        _HOW,
    )


def _refused(why: str, hint: str) -> UsageError:
    return UsageError("--store", "", why, hint)


def _file(path: str) -> sa.URL:
    if not path or path == ":memory:" or "\0" in path:
        raise _refused("no file is named", _HOW)
    return sa.URL.create("sqlite", database=str(Path(path)))


def shown(url: sa.URL) -> str:
    """A file's path, or the URL without passwords."""
    if is_file(url):
        return url.database or ""
    return url.difference_update_query(_SECRETS).render_as_string(hide_password=True)


def is_file(url: sa.URL) -> bool:
    """Whether the store is a SQLite file."""
    return url.get_backend_name() == "sqlite"
