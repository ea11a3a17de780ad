"""What a database refuses, as our own error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from analyzer.errors import TraceboundError
from analyzer.store.url import is_file, shown


class StoreError(TraceboundError):
    """A store that cannot be opened, read or written."""


@contextmanager
def told(url: sa.URL) -> Iterator[None]:
    """Turn errors of the database into a StoreError that names the store, without its password."""
    try:
        yield
    except (sa.exc.SQLAlchemyError, OverflowError) as error:
        why = _reason(error)
        raise StoreError(shown(url), "", why, _hint(url, why)) from None


def _reason(error: Exception) -> str:
    if isinstance(error, OverflowError):
        return "a figure does not fit 64 bits"
    cause = error.orig if isinstance(error, sa.exc.DBAPIError) and error.orig is not None else error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return f"the database refuses: {'; '.join(lines[:2])}" if lines else "the database refuses"


def _hint(url: sa.URL, why: str) -> str:
    if "locked" in why:
        return "another process holds it: wait until that has ended, then try again"
    if "readonly" in why or "unable to open" in why:
        return "choose a file in a folder that you may write, with --store FILE"
    if is_file(url):
        return "the file may be damaged: restore a copy of it, or name another one with --store FILE"
    return "check host, port, name and password, that the server runs, and that you may create tables there"
