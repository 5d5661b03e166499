"""Alembic's entry: the caller brings the connection, and its transaction."""

from __future__ import annotations

from alembic import context

from playhall_data.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # SQLite changes tables by copying them.
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
