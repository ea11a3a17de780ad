"""Where a store may lie, and what is refused without a byte changed."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from analyzer.errors import TraceboundError, UsageError
from analyzer.store import Store, StoreError
from analyzer.store.url import parse, shown
from tests.store.runs import run


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("kept.sqlite", "kept.sqlite"),
        ("a/b c?d%20.db", "a/b c?d%20.db"),
        ("sqlite:///kept.sqlite", "kept.sqlite"),
        ("sqlite:////tmp/kept.sqlite", "/tmp/kept.sqlite"),
        ("postgres://me@host/kept", "postgresql+psycopg://me@host/kept"),
        ("postgresql://me:secret@host:5433/kept", "postgresql+psycopg://me:***@host:5433/kept"),
        (
            "postgresql+psycopg://host/kept?user=me&password=secret&sslmode=require",
            "postgresql+psycopg://host/kept?sslmode=require&user=me",
        ),
        (
            "postgresql://me:p%40ss@h/kept?sslpassword=secret",
            "postgresql+psycopg://me:***@h/kept",
        ),
    ],
)
def test_places_and_how_they_are_shown(where: str, name: str) -> None:
    assert shown(parse(where)) == name


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("", "no file is named"),
        (":memory:", "no file is named"),
        ("sqlite://", "no file is named"),
        ("sqlite:///:memory:", "no file is named"),
        ("sqlite://host/kept", "neither a host nor options"),
        ("sqlite:///file:kept?uri=true&secret=secret", "neither a host nor options"),
        ("mysql://me:secret@host/kept", "this kind of database is not supported: 'mysql'"),
        (
            "postgresql+asyncpg://me:secret@host/kept",
            "this driver is not supported: 'postgresql\\+asyncpg'",
        ),
        ("postgresql://me:secret@host:port/kept", "cannot be read"),
    ],
)
def test_places_that_are_none(where: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        Store.opened(where)
    assert "secret" not in str(caught.value)
    assert caught.value.path == "--store"


def test_a_path_is_taken_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("file:odd?mode=ro", "50%.sqlite", "a b.sqlite"):
        Store.opened(name).record(run())
        assert (tmp_path / name).stat().st_size > 0


def untouched(path: Path, where: str | None = None) -> str:
    """Opening ``path`` is refused, and neither it nor its folder changes. Returns the message."""
    before = path.read_bytes()
    names = sorted(other.name for other in path.parent.iterdir())
    messages = []
    for create in (True, False):
        with pytest.raises(StoreError) as caught:
            Store.opened(where or str(path), create=create)
        messages.append(str(caught.value))
    assert path.read_bytes() == before
    assert sorted(other.name for other in path.parent.iterdir()) == names
    return messages[0]


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_another_applications_database_is_untouched(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "trace.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
    connection.commit()
    connection.close()
    message = untouched(path, f"sqlite:///{path}")
    assert "trace.sqlite: this SQLite database is no store of tracebound" in message
    assert "this one was left as it is" in message


def test_a_file_that_is_no_database_is_untouched(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": []}')
    assert "trace.json (byte 0): this is not a SQLite database" in untouched(path)


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "kept.sqlite"
    path.touch()
    with pytest.raises(StoreError, match="there is no store here"):
        Store.opened(str(path), create=False)
    assert path.stat().st_size == 0
    assert Store.opened(str(path)).record(run()).new


def test_a_store_that_is_not_there_is_not_made_by_looking(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"(?s)kept\.sqlite: there is no store here.*--store URL makes one"):
        Store.opened(str(tmp_path / "kept.sqlite"), create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_database_without_tables_is_not_filled_by_looking(postgresql: Any) -> None:
    where = postgresql.database()
    with pytest.raises(StoreError, match="there is no store here"):
        Store.opened(where, create=False)


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("missing/kept.sqlite", r"(?s)its folder does not exist.*mkdir -p .*missing"),
        ("folder", "it cannot be opened: Is a directory"),
        ("file/kept.sqlite", "it cannot be opened: Not a directory|its folder does not exist"),
    ],
)
def test_a_place_that_cannot_be_written(tmp_path: Path, place: str, why: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match=why):
        Store.opened(str(tmp_path / place))


def test_a_folder_that_takes_no_file_is_named() -> None:
    """Also root makes no file in /proc."""
    with pytest.raises(StoreError, match=r"(?s)/proc/kept\.sqlite: .*unable to open.*that you may write"):
        Store.opened("/proc/kept.sqlite")


def test_a_damaged_store_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "kept.sqlite"
    Store.opened(str(path)).record(run())
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    with pytest.raises(StoreError, match=r"(?s)kept\.sqlite: .*malformed.*restore a copy"):
        Store.opened(str(path)).history()


def test_a_driver_that_is_not_installed_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"(?s)'psycopg'.*pip install 'psycopg\[binary\]'") as caught:
        Store.opened("postgresql://me:secret@host/kept")
    assert "secret" not in str(caught.value)


def test_a_server_that_does_not_answer_is_an_error_without_the_password(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    where = f"postgresql://me:secret@/kept?host={tmp_path}&password=secret"
    with pytest.raises(StoreError, match=r"(?s)refuses: .*check host, port, name and password") as caught:
        Store.opened(where)
    assert "secret" not in str(caught.value)
    assert "kept" in str(caught.value)


def test_a_database_that_does_not_exist_is_an_error(postgresql: Any) -> None:
    with pytest.raises(TraceboundError, match=r'database "nowhere" does not exist'):
        Store.opened(postgresql.url("nowhere"))
