"""Fetches whole columns of an export as numpy arrays (Arrow record batches through ADBC)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import adbc_driver_manager
import adbc_driver_sqlite.dbapi
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from analyzer.errors import TraceError
from analyzer.model import CodeArray, IntArray
from analyzer.progress import NoProgress, Progress
from analyzer.readers.nsys_sqlite import schema
from analyzer.readers.nsys_sqlite.schema import select_sql, unreadable

BATCH_ROWS = 65536
NO_TIME = np.iinfo(np.int64).min
"""Stands for NULL in time columns, where -1 is a legal time."""

_NULL_TEXT = b"\xff\x00NULL"  # no UTF-8 text can equal it
_EXACT_IN_DOUBLE = 2**53

Array = npt.NDArray[Any]


class Column(NamedTuple):
    """An integer column to fetch: NULL and absent become ``missing``."""

    name: str
    dtype: type[np.signedinteger[Any]] = np.int64
    missing: int = -1


class Texts(NamedTuple):
    """A TEXT column: (n,) int32 codes into ``values``, -1 for NULL."""

    codes: CodeArray
    values: tuple[str, ...]


class Database:
    """One export, opened for reading only. Use as a context manager."""

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.path = path
        self._progress = progress or NoProgress()
        self._stack = ExitStack()

    def __enter__(self) -> Database:
        engine = self._stack.enter_context(schema.open_engine(self.path))
        self._engine = engine
        self.tables = schema.discover(engine, self.path)
        try:
            connection = adbc_driver_sqlite.dbapi.connect(schema.read_only_uri(self.path))
        except adbc_driver_manager.Error as error:
            raise unreadable(self.path, "", error) from error
        self._arrow = self._stack.enter_context(connection)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def table(self, name: str) -> str | None:
        """The table or its versioned variant, None where the export has neither."""
        return schema.variant(self.tables, name)

    def has(self, table: str, *columns: str) -> bool:
        """Whether the table exists with all these columns."""
        return table in self.tables and self.tables[table].issuperset(columns)

    def row_estimate(self, table: str) -> int:
        """Largest rowid: the number of rows unless some were deleted. Costs one seek."""
        found = self._execute(
            sa.select(sa.func.max(sa.literal_column("rowid"))).select_from(sa.table(table)), table
        )
        return int(found[0][0] or 0)

    def rows(
        self,
        table: str,
        columns: Sequence[str],
        where: sa.ColumnElement[bool] | None = None,
        limit: int | None = None,
    ) -> list[Any]:
        """Rows of a small table, in file order; absent columns read as None, an absent table as no rows."""
        if table not in self.tables:
            return []
        present = self.tables[table]
        wanted = [sa.column(name) if name in present else sa.null().label(name) for name in columns]
        query = (
            sa.select(*wanted).select_from(sa.table(table)).order_by(sa.literal_column("rowid")).limit(limit)
        )
        return self._execute(query if where is None else query.where(where), table)

    def _execute(self, query: sa.Executable, table: str) -> list[Any]:
        try:
            with self._engine.connect() as connection:
                return list(connection.execute(query).all())
        except (sa.exc.DBAPIError, sqlite3.Error, OverflowError) as error:
            raise unreadable(self.path, f"table {table}", getattr(error, "orig", error)) from error

    def integers(self, table: str, columns: Sequence[Column]) -> dict[str, Array]:
        """(n,) arrays by column name, in file order. Absent columns are full of their ``missing``.

        Raises ``TraceError`` where a column holds something that is no integer or does not fit its dtype.
        """
        present = [column for column in columns if column.name in self.tables[table]]
        if not present:
            raise TraceError(
                str(self.path),
                f"table {table}",
                "none of the expected columns is there",
                "export the report again",
            )
        pieces: dict[str, list[Array]] = {column.name: [] for column in present}
        rows = 0
        for batch in self._batches(table, [sa.column(column.name) for column in present]):
            rows += batch.num_rows
            for column, values in zip(present, batch.columns, strict=True):
                pieces[column.name].append(self._to_numpy(values, column, table))
        result: dict[str, Array] = {}
        for column in columns:
            parts = pieces.pop(column.name, None)
            if parts is None:
                result[column.name] = np.full(rows, column.missing, column.dtype)
            else:
                result[column.name] = np.concatenate([np.empty(0, column.dtype), *parts])
        return result

    def texts(self, table: str, name: str) -> Texts:
        """A TEXT column as codes; bytes that are no UTF-8 are replaced."""
        chunks = []
        for batch in self._batches(table, [_as_bytes(name)], counted=False):
            chunks.append(pc.dictionary_encode(batch.columns[0]))
        if not chunks:
            return Texts(np.empty(0, np.int32), ())
        unified = pa.chunked_array(chunks).unify_dictionaries()
        codes = np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in unified.chunks])
        raw = unified.chunk(0).dictionary.to_pylist()
        codes = codes.astype(np.int32, copy=False)
        if _NULL_TEXT in raw:
            codes = np.where(codes == raw.index(_NULL_TEXT), np.int32(-1), codes)
        return Texts(codes, tuple(value.decode("utf-8", "replace") for value in raw))

    def strings(self, table: str, key: str, value: str) -> tuple[IntArray, pa.ChunkedArray]:
        """(n,) keys and their texts as an Arrow column of bytes (undecoded: most are never needed)."""
        keys, values = [np.empty(0, np.int64)], []
        for batch in self._batches(table, [sa.column(key), _as_bytes(value)]):
            keys.append(self._to_numpy(batch.columns[0], Column(key), table))
            values.append(batch.columns[1])
        return np.concatenate(keys), pa.chunked_array(values, pa.binary())

    def reals(self, table: str, name: str) -> npt.NDArray[np.float64]:
        """(n,) float64; NULL becomes infinity (9e999 in SQLite's own notation)."""
        column = sa.func.ifnull(sa.cast(sa.column(name), sa.REAL), sa.literal_column("9e999")).label(name)
        parts = [np.empty(0, np.float64)]
        for batch in self._batches(table, [column], counted=False):
            parts.append(batch.columns[0].to_numpy(zero_copy_only=False).astype(np.float64, copy=False))
        return np.concatenate(parts)

    def _batches(self, table: str, columns: list[Any], counted: bool = True) -> Iterator[pa.RecordBatch]:
        """Record batches; rows that are read a second time, for another column, are not ``counted`` again."""
        try:
            with self._arrow.cursor() as cursor:
                cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)})
                cursor.execute(select_sql(table, columns))
                for batch in cursor.fetch_record_batch():
                    yield batch
                    self._progress.advance(batch.num_rows if counted else 0)
        except (adbc_driver_manager.Error, OSError) as error:
            if "Type mismatch" in str(error):
                raise self._bad_cell(table, [column.name for column in columns]) from error
            raise unreadable(self.path, f"table {table}", error) from error

    def _to_numpy(self, values: pa.Array, column: Column, table: str) -> Array:
        if pa.types.is_floating(values.type):
            values = self._whole(values, column, table)
        if not pa.types.is_integer(values.type):
            raise self._bad_cell(table, [column.name])
        filled = values.fill_null(column.missing) if values.null_count else values
        numbers: Array = filled.to_numpy(zero_copy_only=False)
        limits = np.iinfo(column.dtype)
        if len(numbers) and (numbers.min() < limits.min or numbers.max() > limits.max):
            raise TraceError(
                str(self.path),
                f"table {table}, column {column.name}",
                f"a value does not fit in {limits.bits} bits, so the column is not what it claims to be",
                "export the .nsys-rep report again",
            )
        return numbers.astype(column.dtype, copy=False)

    def _whole(self, values: pa.Array, column: Column, table: str) -> pa.Array:
        """Integers that another tool stored as REAL, as long as no digit can have been lost."""
        numbers = values.drop_null().to_numpy(zero_copy_only=False)
        if np.any(numbers != np.floor(numbers)) or np.any(np.abs(numbers) > _EXACT_IN_DOUBLE):
            raise self._bad_cell(table, [column.name])
        return values.cast(pa.int64())

    def _bad_cell(self, table: str, names: Sequence[str]) -> TraceError:
        """The error for the first value of another type, with its row."""
        where, why = f"table {table}", "a column of numbers holds something else"
        for name in names:
            column: sa.ColumnClause[Any] = sa.column(name)
            kind = sa.func.typeof(column)
            query = sa.select(sa.literal_column("rowid"), kind).select_from(sa.table(table))
            found = self._execute(query.where(kind.not_in(["integer", "null"])).limit(1), table)
            if found:
                where = f"table {table}, row {found[0][0]}, column {name}"
                why = f"a whole number is expected here, the file holds {found[0][1].upper()}"
                break
        return TraceError(str(self.path), where, why, "the export is damaged or was edited: export it again")


def _as_bytes(name: str) -> sa.Label[Any]:
    # NULLs are marked, not left: a first batch of NULLs alone would be typed as integers.
    marker: sa.ColumnClause[Any] = sa.literal_column(f"x'{_NULL_TEXT.hex()}'")
    return sa.func.ifnull(sa.cast(sa.column(name), sa.BLOB), marker).label(name)
