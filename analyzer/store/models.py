"""The store's tables. A change here needs a migration in ``migrations/versions``; a test compares the two.

Columns of ns are 64-bit integers; NULL is "not captured", "not predicted" or "not claimed", never 0. Names that come
from captures stand in no index and no unique constraint: they may be longer than PostgreSQL can index.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from analyzer.store.text import StoredText

VERSION_TABLE = "tracebound_schema"
"""Where the version of the tables stands: alembic's own name may be another application's in a shared database."""

DIGEST = sa.String(64)
"""SHA-256 in hexadecimal."""


class Base(DeclarativeBase):
    """What all tables share: types by annotation, constraints with names that migrations can refer to."""

    metadata = sa.MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_name)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {
        int: sa.BigInteger(),
        str: StoredText(),
        float: sa.Double(),
        bool: sa.Boolean(),
    }


class Run(Base):
    """One diagnosis."""

    __tablename__ = "runs"

    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True)
    fingerprint: Mapped[str] = mapped_column(DIGEST, unique=True)
    """Of what the diagnosis says, apart from where its files lay: the same one is recorded once."""
    capture: Mapped[str] = mapped_column(DIGEST, index=True)
    """Of the capture: equal for two diagnoses of it by other options or another version."""
    workload: Mapped[str] = mapped_column(DIGEST, index=True)
    recorded_ns: Mapped[int]
    captured_ns: Mapped[int | None]
    tracebound_version: Mapped[str]
    boundary: Mapped[str]
    steps_rule: Mapped[str]
    run_id: Mapped[str | None]
    ranks: Mapped[int]

    inputs: Mapped[list[Input]] = relationship(order_by="Input.position")
    pins: Mapped[list[Pin]] = relationship(order_by="Pin.position")
    budgets: Mapped[list[Budget]] = relationship(order_by="Budget.position")
    predictions: Mapped[list[Prediction]] = relationship(order_by="Prediction.position")


class Input(Base):
    """One file that a run's diagnosis was made from."""

    __tablename__ = "inputs"

    run: Mapped[int] = mapped_column(sa.ForeignKey("runs.id"), primary_key=True)
    position: Mapped[int] = mapped_column(sa.Integer, primary_key=True)
    path: Mapped[str]
    kind: Mapped[str]
    profiler_version: Mapped[str | None]
    partial: Mapped[bool]


class Pin(Base):
    """What a run pins; ``value`` is NULL where that is undeclared."""

    __tablename__ = "pins"

    run: Mapped[int] = mapped_column(sa.ForeignKey("runs.id"), primary_key=True)
    position: Mapped[int] = mapped_column(sa.Integer, primary_key=True)
    name: Mapped[str]
    value: Mapped[str | None]
    source: Mapped[str | None]
    of_workload: Mapped[bool]
    """Whether it is one of those that identify the workload."""


class Budget(Base):
    """The steps of one phase, of one rank or (``rank`` NULL) of all together."""

    __tablename__ = "budgets"

    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True)
    run: Mapped[int] = mapped_column(sa.ForeignKey("runs.id"), index=True)
    position: Mapped[int] = mapped_column(sa.Integer)
    phase: Mapped[str]
    scope: Mapped[str]
    rank: Mapped[int | None]
    steps: Mapped[int]
    steps_excluded: Mapped[int]
    step_ns_total: Mapped[int]
    mean_ns: Mapped[int]
    median_ns: Mapped[int | None]
    p05_ns: Mapped[int | None]
    p95_ns: Mapped[int | None]
    inferred_ns_total: Mapped[int]

    categories: Mapped[list[BudgetCategory]] = relationship(order_by="BudgetCategory.position")


class BudgetCategory(Base):
    """Time of one category: the totals of a budget sum to its ``step_ns_total``, the means to its ``mean_ns``."""

    __tablename__ = "budget_categories"

    budget: Mapped[int] = mapped_column(sa.ForeignKey("budgets.id"), primary_key=True)
    position: Mapped[int] = mapped_column(sa.Integer, primary_key=True)
    category: Mapped[str]
    total_ns: Mapped[int]
    mean_ns: Mapped[int]


class Prediction(Base):
    """What one change would give, by the diagnosis of the run before it."""

    __tablename__ = "predictions"

    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True)
    run: Mapped[int] = mapped_column(sa.ForeignKey("runs.id"), index=True)
    position: Mapped[int] = mapped_column(sa.Integer)
    hypothesis: Mapped[str]
    phase: Mapped[str]
    scope: Mapped[str]
    rank: Mapped[int | None]
    verdict: Mapped[str]
    share: Mapped[float | None]
    share_low: Mapped[float | None]
    share_high: Mapped[float | None]
    gain_upper_bound_ns: Mapped[int | None]
    intervention: Mapped[str]
    predicted_low_ns: Mapped[int | None]
    predicted_high_ns: Mapped[int | None]
    assumptions: Mapped[str | None]
    disproof: Mapped[str]

    outcomes: Mapped[list[Outcome]] = relationship(order_by="Outcome.comparison")


class Comparison(Base):
    """The headline of one comparison: run B against run A. Differences are B minus A."""

    __tablename__ = "comparisons"

    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True)
    fingerprint: Mapped[str] = mapped_column(DIGEST, unique=True)
    run_a: Mapped[int] = mapped_column(sa.ForeignKey("runs.id"), index=True)
    run_b: Mapped[int] = mapped_column(sa.ForeignKey("runs.id"), index=True)
    recorded_ns: Mapped[int]
    tracebound_version: Mapped[str]
    phase_a: Mapped[str]
    phase_b: Mapped[str]
    scope: Mapped[str]
    rank_a: Mapped[int | None]
    rank_b: Mapped[int | None]
    same_work: Mapped[str]
    same_work_because: Mapped[str]
    mean_a_ns: Mapped[int]
    mean_b_ns: Mapped[int]
    delta_mean_ns: Mapped[int]
    delta_median_ns: Mapped[int]
    ci95_low_ns: Mapped[int | None]
    ci95_high_ns: Mapped[int | None]
    shown: Mapped[bool]
    speedup: Mapped[float | None]
    speedup_low: Mapped[float | None]
    speedup_high: Mapped[float | None]
    speedup_because: Mapped[str]

    outcomes: Mapped[list[Outcome]] = relationship(order_by="Outcome.position", back_populates="compared")


class Outcome(Base):
    """What came of one prediction of run A in one comparison."""

    __tablename__ = "outcomes"

    comparison: Mapped[int] = mapped_column(sa.ForeignKey("comparisons.id"), primary_key=True)
    position: Mapped[int] = mapped_column(sa.Integer, primary_key=True)
    prediction: Mapped[int | None] = mapped_column(sa.ForeignKey("predictions.id"), index=True)
    """NULL where no stored prediction of run A is the one that the comparison names."""
    hypothesis: Mapped[str]
    predicted_low_ns: Mapped[int]
    predicted_high_ns: Mapped[int]
    observed_step_ns: Mapped[int | None]
    verdict: Mapped[str]

    compared: Mapped[Comparison] = relationship(back_populates="outcomes")
