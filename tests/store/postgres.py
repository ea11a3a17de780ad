"""A private PostgreSQL server for the tests: its own folder, its own socket, no port, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

OWNERS = ("postgres", "nobody")
"""Who runs the server where the tests run as root, whom PostgreSQL refuses."""
SETTINGS = "-c listen_addresses= -c fsync=off -c full_page_writes=off -c max_connections=40"


def programs() -> Path | None:
    """Folder of ``initdb`` and ``pg_ctl``: on the PATH, or the newest that Debian installed."""
    found = shutil.which("initdb")
    if found is not None and shutil.which("pg_ctl") is not None:
        return Path(found).parent
    versions = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(versions, key=lambda path: int(path.parent.name), default=None)


def why_not() -> str | None:
    """Why no server can be started here; None where one can."""
    if programs() is None:
        return "PostgreSQL is not installed here (Debian: apt-get install postgresql)"
    if os.geteuid() == 0 and _owner() is None:
        return f"PostgreSQL refuses root, and none of these users exists: {', '.join(OWNERS)}"
    return None


def _owner() -> str | None:
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in OWNERS if name in known), None)


class Server:
    """A running server; ``database()`` makes an empty database."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count(1)

    def url(self, name: str) -> str:
        return f"postgresql+psycopg://tracebound@/{name}?host={self._folder}"

    def database(self) -> str:
        """The URL of a new, empty database."""
        name = f"test_{next(self._numbers)}"
        engine = sa.create_engine(self.url("postgres"), poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {name}"))
        return self.url(name)


@contextmanager
def server() -> Iterator[Server]:
    """Start a server, stop it at the end."""
    folder = programs()
    assert folder is not None
    # directly under /tmp: the path of a socket may have 107 characters
    home = Path(tempfile.mkdtemp(prefix="tracebound-pg-", dir="/tmp"))
    try:
        identity = _identity(home)
        _run([folder / "initdb", "-D", home / "data", "-U", "tracebound", "-A", "trust", "-E", "UTF8", "-N"],
             home, identity)  # fmt: skip
        control = [folder / "pg_ctl", "-D", home / "data", "-w", "-t", "60"]
        _run([*control, "-l", home / "log", "-o", f"{SETTINGS} -k {home}", "start"], home, identity)
        try:
            yield Server(home)
        finally:
            _run([*control, "-m", "immediate", "stop"], home, identity)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _identity(home: Path) -> dict[str, Any]:
    """As whom the server runs; its folder becomes theirs."""
    if os.geteuid() != 0:
        return {}
    owner = _owner()
    assert owner is not None
    entry = pwd.getpwnam(owner)
    os.chown(home, entry.pw_uid, entry.pw_gid)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _run(command: list[Any], home: Path, identity: dict[str, Any]) -> None:
    # into a file: the server keeps a pipe open for as long as it runs
    with (home / "output").open("a+") as output:
        result = subprocess.run(
            [str(word) for word in command], cwd=home, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, timeout=120, env={**os.environ, "LC_ALL": "C.UTF-8"}, **identity,
        )  # fmt: skip
        output.seek(0)
        assert result.returncode == 0, output.read()
