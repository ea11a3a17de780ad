"""What alembic runs: the migrations in the transaction of the connection that it is given."""

from __future__ import annotations

from alembic import context

from analyzer.store.models import VERSION_TABLE, Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,  # SQLite cannot alter a column: the table is made anew
)
with context.begin_transaction():
    context.run_migrations()
