"""Every version that the store's tables have had, as alembic migrations."""
