"""A table that grows by arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[Any]


class Growing:
    """Columns collected piece by piece; ``column`` joins a column and forgets its pieces."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[AnyArray]] = {}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, **columns: AnyArray) -> None:
        """Add rows; every call names the same columns, all of one length."""
        lengths = {len(values) for values in columns.values()}
        if len(lengths) != 1:
            raise ValueError(f"columns differ in length: {lengths}")
        for name, values in columns.items():
            self._pieces.setdefault(name, []).append(values)
        self._length += lengths.pop()

    def column(self, name: str, dtype: npt.DTypeLike) -> AnyArray:
        """(n, ...) of ``dtype``; empty where nothing was added."""
        pieces = self._pieces.pop(name, [])
        if not pieces:
            return np.empty(0, dtype=dtype)
        joined = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        return joined.astype(dtype, copy=False)
