"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TABLES = ("runs", "inputs", "pins", "budgets", "budget_categories", "predictions", "comparisons", "outcomes")


def upgrade() -> None:
    """Make all tables."""
    _runs()
    _inputs()
    _pins()
    _budgets()
    _budget_categories()
    _predictions()
    _comparisons()
    _outcomes()


def downgrade() -> None:
    """Drop all tables, with everything in them."""
    for name in reversed(TABLES):
        op.drop_table(name)


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("capture", sa.String(length=64), nullable=False),
        sa.Column("workload", sa.String(length=64), nullable=False),
        sa.Column("recorded_ns", sa.BigInteger(), nullable=False),
        sa.Column("captured_ns", sa.BigInteger(), nullable=True),
        sa.Column("tracebound_version", sa.Text(), nullable=False),
        sa.Column("boundary", sa.Text(), nullable=False),
        sa.Column("steps_rule", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("ranks", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("fingerprint", name=op.f("uq_runs_fingerprint")),
    )
    op.create_index(op.f("ix_runs_capture"), "runs", ["capture"])
    op.create_index(op.f("ix_runs_workload"), "runs", ["workload"])


def _inputs() -> None:
    op.create_table(
        "inputs",
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("profiler_version", sa.Text(), nullable=True),
        sa.Column("partial", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_inputs_run")),
        sa.PrimaryKeyConstraint("run", "position", name=op.f("pk_inputs")),
    )


def _pins() -> None:
    op.create_table(
        "pins",
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("of_workload", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_pins_run")),
        sa.PrimaryKeyConstraint("run", "position", name=op.f("pk_pins")),
    )


def _budgets() -> None:
    op.create_table(
        "budgets",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=True),
        sa.Column("steps", sa.BigInteger(), nullable=False),
        sa.Column("steps_excluded", sa.BigInteger(), nullable=False),
        sa.Column("step_ns_total", sa.BigInteger(), nullable=False),
        sa.Column("mean_ns", sa.BigInteger(), nullable=False),
        sa.Column("median_ns", sa.BigInteger(), nullable=True),
        sa.Column("p05_ns", sa.BigInteger(), nullable=True),
        sa.Column("p95_ns", sa.BigInteger(), nullable=True),
        sa.Column("inferred_ns_total", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_budgets_run")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_budgets")),
    )
    op.create_index(op.f("ix_budgets_run"), "budgets", ["run"])


def _budget_categories() -> None:
    op.create_table(
        "budget_categories",
        sa.Column("budget", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("total_ns", sa.BigInteger(), nullable=False),
        sa.Column("mean_ns", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["budget"], ["budgets.id"], name=op.f("fk_budget_categories_budget")),
        sa.PrimaryKeyConstraint("budget", "position", name=op.f("pk_budget_categories")),
    )


def _predictions() -> None:
    op.create_table(
        "predictions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("hypothesis", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=True),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("share", sa.Double(), nullable=True),
        sa.Column("share_low", sa.Double(), nullable=True),
        sa.Column("share_high", sa.Double(), nullable=True),
        sa.Column("gain_upper_bound_ns", sa.BigInteger(), nullable=True),
        sa.Column("intervention", sa.Text(), nullable=False),
        sa.Column("predicted_low_ns", sa.BigInteger(), nullable=True),
        sa.Column("predicted_high_ns", sa.BigInteger(), nullable=True),
        sa.Column("assumptions", sa.Text(), nullable=True),
        sa.Column("disproof", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_predictions_run")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_predictions")),
    )
    op.create_index(op.f("ix_predictions_run"), "predictions", ["run"])


def _comparisons() -> None:
    op.create_table(
        "comparisons",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("run_a", sa.Integer(), nullable=False),
        sa.Column("run_b", sa.Integer(), nullable=False),
        sa.Column("recorded_ns", sa.BigInteger(), nullable=False),
        sa.Column("tracebound_version", sa.Text(), nullable=False),
        sa.Column("phase_a", sa.Text(), nullable=False),
        sa.Column("phase_b", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("rank_a", sa.BigInteger(), nullable=True),
        sa.Column("rank_b", sa.BigInteger(), nullable=True),
        sa.Column("same_work", sa.Text(), nullable=False),
        sa.Column("same_work_because", sa.Text(), nullable=False),
        sa.Column("mean_a_ns", sa.BigInteger(), nullable=False),
        sa.Column("mean_b_ns", sa.BigInteger(), nullable=False),
        sa.Column("delta_mean_ns", sa.BigInteger(), nullable=False),
        sa.Column("delta_median_ns", sa.BigInteger(), nullable=False),
        sa.Column("ci95_low_ns", sa.BigInteger(), nullable=True),
        sa.Column("ci95_high_ns", sa.BigInteger(), nullable=True),
        sa.Column("shown", sa.Boolean(), nullable=False),
        sa.Column("speedup", sa.Double(), nullable=True),
        sa.Column("speedup_because", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_a"], ["runs.id"], name=op.f("fk_comparisons_run_a")),
        sa.ForeignKeyConstraint(["run_b"], ["runs.id"], name=op.f("fk_comparisons_run_b")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_comparisons")),
        sa.UniqueConstraint("fingerprint", name=op.f("uq_comparisons_fingerprint")),
    )
    op.create_index(op.f("ix_comparisons_run_a"), "comparisons", ["run_a"])
    op.create_index(op.f("ix_comparisons_run_b"), "comparisons", ["run_b"])


def _outcomes() -> None:
    op.create_table(
        "outcomes",
        sa.Column("comparison", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("prediction", sa.Integer(), nullable=True),
        sa.Column("hypothesis", sa.Text(), nullable=False),
        sa.Column("predicted_low_ns", sa.BigInteger(), nullable=False),
        sa.Column("predicted_high_ns", sa.BigInteger(), nullable=False),
        sa.Column("observed_step_ns", sa.BigInteger(), nullable=True),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["comparison"], ["comparisons.id"], name=op.f("fk_outcomes_comparison")),
        sa.ForeignKeyConstraint(["prediction"], ["predictions.id"], name=op.f("fk_outcomes_prediction")),
        sa.PrimaryKeyConstraint("comparison", "position", name=op.f("pk_outcomes")),
    )
    op.create_index(op.f("ix_outcomes_prediction"), "outcomes", ["prediction"])
