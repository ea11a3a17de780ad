"""The tables' versions: made, migrated, compared with the models, and refused where they are newer."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory

from analyzer.store import Store, StoreError, models, schema
from analyzer.store.engine import engine_for, writing
from analyzer.store.url import parse
from tests.store.runs import run


@contextmanager
def connected(where: str) -> Iterator[sa.Connection]:
    with writing(engine_for(parse(where))) as connection:
        yield connection


def tables(where: str) -> set[str]:
    with connected(where) as connection:
        return set(sa.inspect(connection).get_table_names())


def test_the_newest_migration_is_the_version_that_stores_are_opened_at() -> None:
    script = ScriptDirectory(schema.MIGRATIONS)
    assert script.get_heads() == [schema.CURRENT]
    assert [one.revision for one in script.walk_revisions()][-1] == "0001"


def test_migrations_make_what_the_models_say(where: str) -> None:
    Store.opened(where)
    with connected(where) as connection:
        command.check(schema.configuration(connection))
    assert tables(where) == {*models.Base.metadata.tables, schema.VERSION_TABLE}


def test_constraints_bear_the_names_of_the_models(where: str) -> None:
    """A later migration finds them by these; ``alembic check`` does not compare them."""
    Store.opened(where)
    with connected(where) as connection:
        found = sa.inspect(connection)
        for table in models.Base.metadata.sorted_tables:
            keys = {str(key.name) for key in table.foreign_key_constraints}
            assert {key["name"] for key in found.get_foreign_keys(table.name)} == keys
            assert found.get_pk_constraint(table.name)["name"] == table.primary_key.name


def test_a_store_goes_down_and_up_again(where: str) -> None:
    store = Store.opened(where)
    store.record(run())
    with connected(where) as connection:
        command.downgrade(schema.configuration(connection), "base")
    assert tables(where) == {schema.VERSION_TABLE}
    assert Store.opened(where).record(run()).new


def test_a_store_of_an_older_version_is_migrated_with_what_it_holds(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a migration of tomorrow, made here: a column more, filled for the rows that are there."""
    Store.opened(where).record(run())
    later = tmp_path / "migrations"
    shutil.copytree(schema.MIGRATIONS, later)
    (later / "versions" / "v0003_note.py").write_text(
        'revision, down_revision = "0003", "0002"\n'
        "import sqlalchemy as sa\n"
        "from alembic import op\n"
        "def upgrade():\n"
        '    with op.batch_alter_table("runs") as table:\n'
        '        table.add_column(sa.Column("note", sa.Text(), nullable=False, server_default="none"))\n'
        '        table.alter_column("run_id", new_column_name="name")\n'
        '        table.drop_index("ix_runs_capture")\n'
        "def downgrade():\n"
        "    raise NotImplementedError\n"
    )
    monkeypatch.setattr(schema, "MIGRATIONS", later)
    monkeypatch.setattr(schema, "CURRENT", "0003")
    Store.opened(where)
    with connected(where) as connection:
        assert schema.version_of(connection) == "0003"
        assert connection.execute(sa.text("SELECT name, note FROM runs")).all() == [("run-0", "none")]
        assert connection.execute(sa.text("SELECT count(*) FROM budget_categories")).scalar_one() > 0


def test_a_migration_that_fails_leaves_the_store_as_it_was(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store.opened(where).record(run())
    later = tmp_path / "migrations"
    shutil.copytree(schema.MIGRATIONS, later)
    (later / "versions" / "v0003_broken.py").write_text(
        'revision, down_revision = "0003", "0002"\n'
        "import sqlalchemy as sa\n"
        "from alembic import op\n"
        "def upgrade():\n"
        '    op.add_column("runs", sa.Column("note", sa.Text()))\n'
        '    op.execute("SELECT no_such_column FROM runs")\n'
        "def downgrade():\n"
        "    raise NotImplementedError\n"
    )
    with monkeypatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", later)
        patched.setattr(schema, "CURRENT", "0003")
        with pytest.raises(StoreError, match="no_such_column"):
            Store.opened(where)
    with connected(where) as connection:
        assert schema.version_of(connection) == "0002"
        assert "note" not in {one["name"] for one in sa.inspect(connection).get_columns("runs")}
    assert not Store.opened(where).record(run()).new


def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(where: str) -> None:
    Store.opened(where).record(run())
    with connected(where) as connection:
        connection.execute(sa.text(f"UPDATE {schema.VERSION_TABLE} SET version_num = '0417'"))
    for create in (True, False):
        with pytest.raises(StoreError, match=r"(?s)newer tracebound .*0417.* knows 0002.*update tracebound"):
            Store.opened(where, create=create)
    with connected(where) as connection:
        assert schema.version_of(connection) == "0417"


def test_tables_of_another_application_are_refused(postgresql: object) -> None:
    where = postgresql.database()  # type: ignore[attr-defined]
    with connected(where) as connection:
        connection.execute(sa.text("CREATE TABLE runs (mine integer)"))
    with pytest.raises(StoreError, match=r"(?s)another application has tables.*: runs\n.*CREATE DATABASE"):
        Store.opened(where)
    assert tables(where) == {"runs"}


def test_tables_of_other_names_are_none_of_its_business(postgresql: object) -> None:
    where = postgresql.database()  # type: ignore[attr-defined]
    with connected(where) as connection:
        connection.execute(sa.text("CREATE TABLE alembic_version (version_num varchar(32))"))
        connection.execute(sa.text("INSERT INTO alembic_version VALUES ('theirs')"))
    assert Store.opened(where).record(run()).new
    with connected(where) as connection:
        assert connection.execute(sa.text("SELECT version_num FROM alembic_version")).all() == [("theirs",)]
