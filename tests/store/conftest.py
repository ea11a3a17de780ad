"""Where a test's store lies: a SQLite file, and a database of a real PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store import postgres


@pytest.fixture(scope="session")
def postgresql() -> Iterator[postgres.Server]:
    """A server of the tests' own; skips with the reason where none can be started."""
    reason = postgres.why_not()
    if reason is not None:
        pytest.skip(reason)
    with postgres.server() as started:
        yield started


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place for a store that is not there yet."""
    if request.param == "sqlite":
        return str(tmp_path / "kept.sqlite")
    server: postgres.Server = request.getfixturevalue("postgresql")
    return server.database()
