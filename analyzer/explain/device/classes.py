"""The class of each row of device work, as every table shows it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.categories import Category
from analyzer.model import DeviceKind, IntArray
from analyzer.reconstruct.rank import RankAccount
from analyzer.rules import COLLECTIVE


@dataclass(frozen=True)
class RowClasses:
    """Class of each row of Work: ``names[code]``."""

    code: IntArray  # (n,)
    names: tuple[str, ...]

    def of_row(self, row: int) -> str:
        """The class of one row."""
        return self.names[int(self.code[row])]


def row_classes(account: RankAccount) -> RowClasses:
    """Classes of all device work of a rank. Rows of one name share that of the first of them."""
    table = account.work.table
    _, first, inverse = np.unique(table.name, return_index=True, return_inverse=True)
    texts: dict[str, int] = {}
    of_name = [_class_of(account, row) for row in first.tolist()]
    values = np.array([texts.setdefault(text, len(texts)) for text in of_name], np.int64)
    return RowClasses(values[inverse] if len(table) else np.empty(0, np.int64), tuple(texts))


def _class_of(account: RankAccount, row: int) -> str:
    """What the capture says of a row comes first; then the rules, by its name."""
    work, rules = account.work, account.rules
    name = account.trace.process.name_of(int(work.table.name[row]))
    category = Category(int(work.own_label[row]))
    if category == Category.COPY:
        is_set = work.table.kind[row] == DeviceKind.SET or rules.is_fill_kernel(name)
        return "set" if is_set else "copy"
    if category == Category.GRAPH_UNRESOLVED:
        return "graph"
    if category == Category.COLLECTIVE_UNSPLIT and not rules.is_collective(name):
        return COLLECTIVE  # the capture says so; the name does not
    return rules.kernel_class(name)
