"""Device work by name: calls, time, path time, exposed time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from analyzer.categories import Category
from analyzer.diagnosis import Kernel, KernelShape
from analyzer.model import DeviceKind, IntArray
from analyzer.reconstruct.critical_path import ON_DEVICE
from analyzer.reconstruct.exposure import exposed_by_row
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.work import group_indices
from analyzer.rules import COLLECTIVE

_BODY = (
    Category.KERNEL,
    Category.COPY,
    Category.GRAPH_UNRESOLVED,
    Category.PRIOR_WORK,
    Category.COLLECTIVE_UNSPLIT,
)


def kernel_table(account: RankAccount, rank: int, shapes: Sequence[KernelShape]) -> list[Kernel]:
    """All device work of one rank by name, longest total first.

    ``shapes``: the rank's launch shapes, longest first; a name's grid figures are those of its first.
    """
    work, names = account.work, account.trace.process.names
    if not len(work):
        return []
    duration = work.end_ns - work.start_ns
    path_ns = body_path_time(account)
    exposed = None
    if account.windows and account.exposure is not None:
        low = min(window.start_ns for window in account.windows)
        exposed = exposed_by_row(work, low, max(window.end_ns for window in account.windows))
    windows = sum(not window.empty for window in account.windows)
    in_step = np.ones(len(work), bool)
    if account.assignment is not None:
        in_step = account.assignment.of_row >= 0
    leading: dict[str, KernelShape] = {}
    for entry in shapes:
        leading.setdefault(entry.name, entry)
    distinct = Counter(shape.name for shape in shapes)
    table = []
    for code, rows in group_indices(work.table.name).items():
        name = names[code] if code >= 0 else "<no name>"
        shape = leading.get(name)
        table.append(
            Kernel(
                rank=rank,
                name=name,
                kind=DeviceKind(int(work.table.kind[rows[0]])).name.lower(),
                class_=class_of(account, rows, name),
                calls_total=len(rows),
                calls_per_step=int(in_step[rows].sum()) / windows if windows else None,
                calls_in_graphs=int((work.replay[rows] >= 0).sum()),
                total_ns=int(duration[rows].sum()),
                clipped_ns=int(work.clipped_ns[rows].sum()),
                path_ns=int(path_ns[rows].sum()),
                exposed_ns=None if exposed is None else int(exposed[rows].sum()),
                shapes=distinct[name],
                coverage=shape.coverage if shape else None,
                occupancy=shape.occupancy if shape else None,
                limiter=shape.limiter if shape else None,
            )
        )
    return sorted(table, key=lambda kernel: (-kernel.total_ns, kernel.name))


def class_of(account: RankAccount, rows: IntArray, name: str) -> str:
    """Class of device work of one name; ``rows`` are rows of Work with that name."""
    category = Category(int(account.work.own_label[rows[0]]))
    if category == Category.COPY:
        is_set = account.work.table.kind[rows[0]] == DeviceKind.SET or account.rules.is_fill_kernel(name)
        return "set" if is_set else "copy"
    if category == Category.GRAPH_UNRESOLVED:
        return "graph"
    if category == Category.COLLECTIVE_UNSPLIT and not account.rules.is_collective(name):
        return COLLECTIVE  # the capture says so; the name does not
    return account.rules.kernel_class(name)


def body_path_time(account: RankAccount) -> IntArray:
    """(n,) path time of each row's own body over all windows, ns."""
    total = np.zeros(len(account.work), np.int64)
    is_body = np.isin(np.arange(len(Category)), _BODY)  # a table, since there can be many windows
    for path in account.paths:
        mine = (path.side == ON_DEVICE) & (path.ref >= 0) & is_body[path.category]
        np.add.at(total, path.ref[mine], (path.end_ns - path.start_ns)[mine])
    return total
