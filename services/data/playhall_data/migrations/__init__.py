"""Brings a database to the tables of this release.

`HEAD` is the newest revision in `versions/`. A database that is at it already, as at every start but the
first after an upgrade, costs one query and no import of Alembic.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

__all__ = ["HEAD", "upgrade"]

HEAD = "0001"


def upgrade(connection: Connection) -> bool:
    """Run the migrations that the database lacks, in the transaction that is open. Whether there were any.

    The transaction must hold the database's write lock, so that two services that start at once do not both
    migrate.
    """
    if _revision(connection) == HEAD:
        return False
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    return True


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
