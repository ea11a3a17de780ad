"""The class of each row of device work, as every table shows it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.explain.device.kernels import class_of
from analyzer.model import IntArray
from analyzer.reconstruct.rank import RankAccount


@dataclass(frozen=True)
class RowClasses:
    """Class of each row of Work: ``names[code]``."""

    code: IntArray  # (n,)
    names: tuple[str, ...]


def row_classes(account: RankAccount) -> RowClasses:
    """Classes of all device work of a rank. Rows of one name share the class that kernels.csv shows."""
    table, names = account.work.table, account.trace.process.names
    codes, first, inverse = np.unique(table.name, return_index=True, return_inverse=True)
    texts: dict[str, int] = {}
    of_name = [
        class_of(account, np.array([row], np.int64), names[code] if code >= 0 else "<no name>")
        for code, row in zip(codes.tolist(), first.tolist(), strict=True)
    ]
    values = np.array([texts.setdefault(text, len(texts)) for text in of_name], np.int64)
    return RowClasses(values[inverse] if len(table) else np.empty(0, np.int64), tuple(texts))
