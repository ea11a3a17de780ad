"""docs/store.md says what the store holds."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa

from analyzer import history
from analyzer.store import Store, models
from analyzer.store.engine import engine_for
from analyzer.store.url import parse
from tests.store.runs import run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "store.md").read_text(encoding="utf-8")
STRUCTS = [one for one in vars(history).values() if isinstance(one, type) and issubclass(one, msgspec.Struct)]


def test_each_table_is_documented() -> None:
    rows = re.findall(r"^\| (`.*?`) \| (?!is)", PAGE.split("## What it keeps")[1], re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == set(models.Base.metadata.tables)


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_each_field_of_the_json_is_documented(struct: type[msgspec.Struct]) -> None:
    (shown,) = re.findall(r"```\n(tracebound_version, store, .*?)```", PAGE, re.DOTALL)
    for name in struct.__struct_fields__:
        assert re.search(rf"\b{name}\b", shown) or name in ("format", "format_version")


def test_the_query_runs(where: str) -> None:
    (query,) = re.findall(r"```sql\n(.*?);\n```", PAGE, re.DOTALL)
    Store.opened(where).record(run())
    with engine_for(parse(where)).connect() as connection:
        rows = connection.execute(sa.text(query.replace("'global'", "'rank'"))).all()
    assert [tuple(map(int, row)) for row in rows] == [(1, 10_000_000, 5_333_333)]
