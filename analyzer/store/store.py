"""One store, opened: what a program can ask of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import sqlalchemy as sa
from sqlalchemy.orm import Session

from analyzer.history import History
from analyzer.store import models, query, selection
from analyzer.store.engine import LOCK_WAIT_S, engine_for, refuse_foreign_file, writing
from analyzer.store.errors import told
from analyzer.store.schema import bring_up_to_date, no_store
from analyzer.store.url import parse, shown
from analyzer.version import __version__

if TYPE_CHECKING:
    from analyzer.comparison.result import Comparison
    from analyzer.diagnosis import Diagnosis

Row = TypeVar("Row", models.Run, models.Comparison)


@dataclass(frozen=True)
class Recorded:
    """The number under which something stands in the store. ``new``: it was not there yet."""

    number: int
    new: bool


class Store:
    """A store whose tables are there and up to date. It holds no connection and no lock between calls.

    Every method raises StoreError for what the database refuses; the error names the store without its password.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    @classmethod
    def opened(cls, where: str, *, create: bool = True, lock_wait_s: float = LOCK_WAIT_S) -> Store:
        """Open the store at ``where``, a file's path or a database URL, and bring its tables up to date.

        Without ``create`` a store that is not there yet is an error. Another application's file is never touched. A
        SQLite file that another process writes is waited for up to ``lock_wait_s`` seconds.

        Raises UsageError where ``where`` is neither a path nor a URL of a supported database, StoreError where the
        store cannot be opened, is another application's, or was made by a newer version.
        """
        url = parse(where)
        if not refuse_foreign_file(url) and not create:
            raise no_store(url)
        engine = engine_for(url, lock_wait_s)
        with told(url):
            bring_up_to_date(engine, create=create)
        return cls(engine)

    @property
    def name(self) -> str:
        """The file's path, or the URL without passwords."""
        return shown(self._engine.url)

    def record(self, diagnosis: Diagnosis) -> Recorded:
        """Keep a diagnosis: its pins, budgets and predictions. One that says the same is kept once."""
        from analyzer.store.identity import diagnosis_fingerprint  # late: it needs scipy

        fingerprint = diagnosis_fingerprint(diagnosis)  # before the lock: it takes longer than to write
        with told(self._engine.url), writing(self._engine) as connection, Session(connection) as session:
            row, new = _run(session, diagnosis, fingerprint)
            session.flush()
            return Recorded(row.id, new)

    def record_comparison(
        self, comparison: Comparison, a: Diagnosis, b: Diagnosis
    ) -> tuple[Recorded, Recorded, Recorded]:
        """Keep a comparison and both its runs: the comparison's number, A's and B's.

        The outcomes of A's predictions hang on the predictions that A's run holds.
        """
        from analyzer.store.identity import comparison_fingerprint, diagnosis_fingerprint  # late: need scipy
        from analyzer.store.record import comparison_row

        of_a, of_b = diagnosis_fingerprint(a), diagnosis_fingerprint(b)
        fingerprint = comparison_fingerprint(comparison, of_a, of_b)
        with told(self._engine.url), writing(self._engine) as connection, Session(connection) as session:
            (run_a, new_a), (run_b, new_b) = _run(session, a, of_a), _run(session, b, of_b)
            session.flush()  # numbers the runs
            row = _found(session, models.Comparison, fingerprint)
            new = row is None
            if row is None:
                row = comparison_row(comparison, fingerprint, run_a, run_b, time.time_ns())
                session.add(row)
                session.flush()
            return Recorded(row.id, new), Recorded(run_a.id, new_a), Recorded(run_b.id, new_b)

    def history(self, workloads: Sequence[str] = ()) -> History:
        """Runs, comparisons and outcomes by workload, in order of time.

        ``workloads`` chooses: the beginning of a workload's key, or ``NAME=VALUE`` of a pin that identifies it; all
        without any. Raises UsageError where a choice matches none.
        """
        with told(self._engine.url), Session(self._engine) as session:
            pins = query.workload_pins(session)
            chosen = selection.chosen(pins, workloads, self.name)
            return History(
                tracebound_version=__version__,
                store=self.name,
                workloads=[query.workload(session, key, pins[key]) for key in chosen],
            )


def _run(session: Session, diagnosis: Diagnosis, fingerprint: str) -> tuple[models.Run, bool]:
    """The row of a diagnosis, and whether it is new. Under the lock, so that no other process adds it meanwhile."""
    from analyzer.store.record import run_row

    row = _found(session, models.Run, fingerprint)
    if row is not None:
        return row, False
    row = run_row(diagnosis, fingerprint, time.time_ns())
    session.add(row)
    return row, True


def _found(session: Session, kind: type[Row], fingerprint: str) -> Row | None:
    return session.scalars(sa.select(kind).where(kind.fingerprint == fingerprint)).one_or_none()
