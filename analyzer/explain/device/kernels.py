"""Device work by name: calls, time, path time, exposed time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from analyzer.categories import DEVICE_CATEGORIES, Category
from analyzer.diagnosis import Kernel, KernelShape
from analyzer.explain.device.classes import RowClasses
from analyzer.model import DeviceKind, IntArray
from analyzer.reconstruct.critical_path import ON_DEVICE
from analyzer.reconstruct.exposure import exposed_by_row
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.work import group_indices


def kernel_table(
    account: RankAccount, rank: int, shapes: Sequence[KernelShape], classes: RowClasses, path_ns: IntArray
) -> list[Kernel]:
    """All device work of one rank by name, longest total first.

    ``shapes``: the rank's launch shapes, longest first; a name's grid figures are those of its first.
    ``path_ns``: (n,) path time of each row (``body_path_time``).
    """
    work = account.work
    if not len(work):
        return []
    duration = work.end_ns - work.start_ns
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
        name = account.trace.process.name_of(code)
        shape = leading.get(name)
        table.append(
            Kernel(
                rank=rank,
                name=name,
                kind=DeviceKind(int(work.table.kind[rows[0]])).name.lower(),
                class_=classes.of_row(int(rows[0])),
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


def body_path_time(account: RankAccount) -> IntArray:
    """(n,) path time of each row's own body over all windows, ns; gaps before a row are no time of its own."""
    total = np.zeros(len(account.work), np.int64)
    is_body = np.isin(np.arange(len(Category)), list(DEVICE_CATEGORIES))  # a table: there can be many windows
    for path in account.paths:
        mine = (path.side == ON_DEVICE) & (path.ref >= 0) & is_body[path.category]
        np.add.at(total, path.ref[mine], (path.end_ns - path.start_ns)[mine])
    return total
