"""One of several processes that write the same store: ``python -m tests.store.writer WHERE NUMBER COUNT FOLDER``.

It says that it is ready, waits until all may begin, opens the store (which one of them makes), and keeps COUNT runs of
its own, one run that all keep, and a comparison of each with that one.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from analyzer.store import Store, record  # noqa: F401  (imported before the start, so that all begin at once)
from tests.store.runs import checked, compared, run

COMMON = 0


def own(number: int, place: int) -> int:
    """The day of a process's ``place``-th run: no two share one."""
    return 1 + number * 1_000 + place


def main(where: str, number: int, many: int, folder: Path) -> None:
    """Write, once the file ``go`` is there."""
    (folder / f"ready-{number}").touch()
    while not (folder / "go").exists():
        time.sleep(0.001)
    store = Store.opened(where)
    for place in range(many):
        mine = run(own(number, place))
        assert store.record(mine).new
        store.record(run(COMMON))
        store.record_comparison(compared(checked()), run(COMMON), mine)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
