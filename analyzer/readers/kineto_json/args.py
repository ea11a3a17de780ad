"""Arguments of many events decoded at once, and columns from their values."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec
import numpy as np
from msgspec import Raw

from analyzer.model import CodeArray, IntArray
from analyzer.readers.kineto_json.events import INT64_MAX, Number, as_int

T = TypeVar("T", bound=msgspec.Struct)
INT32_MAX = 2**31 - 1


class ArgsDecoder(Generic[T]):
    """Decodes the ``args`` texts of one category into ``kind``."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._many = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]

    def decode(self, texts: list[Raw]) -> list[T]:
        """One struct per text, in order. A field of an unexpected type counts as not recorded."""
        try:
            many: list[T] = self._many.decode(b"[" + b",".join(texts) + b"]")
        except msgspec.DecodeError:
            return [self._loose(text) for text in texts]
        return many

    def _loose(self, text: Raw) -> T:
        try:
            return msgspec.json.decode(text, type=self._kind)
        except msgspec.DecodeError:
            pass
        known: dict[str, object] = {}
        try:
            fields = msgspec.json.decode(text, type=dict[str, Raw])
        except msgspec.DecodeError:
            return self._kind()
        for info in msgspec.structs.fields(self._kind):
            if info.encode_name in fields:
                try:
                    known[info.name] = msgspec.json.decode(fields[info.encode_name], type=info.type)
                except msgspec.DecodeError:
                    continue
        return self._kind(**known)


def int_column(values: list[Number], default: int) -> IntArray:
    """(n,) int64 of numbers or numeric strings; what is not there or does not fit is ``default``."""
    absent = values.count(None)
    if absent == len(values):
        return np.full(len(values), default, dtype=np.int64)
    if absent:
        values = [default if value is None else value for value in values]
    array = np.array(values)
    if array.dtype == np.int64:
        return array
    return np.array([as_int(value, default) for value in values], dtype=np.int64)


def int32_column(values: list[Number]) -> CodeArray:
    """(n,) int32, -1 for what is not there or does not fit."""
    column = int_column(values, -1)
    return np.where(np.abs(column) > INT32_MAX, -1, column).astype(np.int32)


def rounded_column(values: list[Number]) -> CodeArray:
    """(n,) int32 of figures that may have decimals, rounded; -1 for what is not there."""
    return int32_column([round(v) if isinstance(v, float) and abs(v) < INT64_MAX else v for v in values])


def triple_column(values: list[list[Number] | str | None]) -> CodeArray:
    """(n, 3) int32 of grids or blocks, -1 for what is not there."""
    try:
        array = np.array(values)
    except ValueError:  # lists of different lengths
        array = np.empty(0)
    if array.dtype == np.int64 and array.shape == (len(values), 3) and bool((array <= INT32_MAX).all()):
        return array.astype(np.int32)
    flat: list[Number] = []
    for value in values:
        flat.extend(value if isinstance(value, list) and len(value) == 3 else (-1, -1, -1))
    return int32_column(flat).reshape(-1, 3)
