"""The interval of a comparison's speedup; of comparisons recorded before it is not known."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

COLUMNS = ("speedup_low", "speedup_high")


def upgrade() -> None:
    """Add both ends."""
    for name in COLUMNS:
        op.add_column("comparisons", sa.Column(name, sa.Double(), nullable=True))


def downgrade() -> None:
    """Drop them."""
    with op.batch_alter_table("comparisons") as table:
        for name in COLUMNS:
            table.drop_column(name)
