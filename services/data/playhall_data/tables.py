"""The tables, as SQLAlchemy Core. Migrations make them; a test holds the two together.

Times are milliseconds since 1970. What is listed by name only (origins) is JSON text, so that every database
stores it alike.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

projects = Table(
    "projects",
    metadata,
    # A row stays for ever, so that a slug is never free again (TERM-03).
    Column("slug", String(40), primary_key=True),
    Column("created_at_ms", BigInteger, nullable=False),
    # The number of go-lives so far. `live_build_id` is the build of the last one.
    Column("deploy_seq", BigInteger, nullable=False),
    Column("live_build_id", String(26), nullable=True),
)

settings = Table(
    "settings",
    metadata,
    Column("project", String(40), ForeignKey("projects.slug"), primary_key=True),
    Column("guests", Boolean, nullable=False),
    Column("create_rooms", Boolean, nullable=False),
    Column("list_public", Boolean, nullable=False),
    Column("retention", String(16), nullable=False),
    Column("allowed_origins", Text, nullable=False),
    Column("build_update", String(16), nullable=False),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("key_id", String(26), primary_key=True),
    Column("project", String(40), ForeignKey("projects.slug"), nullable=False, index=True),
    Column("kind", Integer, nullable=False),
    Column("name", String(128), nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("revoked_at_ms", BigInteger, nullable=True),
    # SHA-256 of an API key; the key itself is nowhere. It has 256 random bits, so a slow hash adds nothing.
    Column("secret_hash", LargeBinary(32), nullable=True, unique=True),
    # The secret of a player token key, readable: HS256 verifies with what it signs with, so routers need it.
    # It is in a column of its own so that backups and roles can leave it out.
    Column("signing_secret", String(64), nullable=True),
)

builds = Table(
    "builds",
    metadata,
    Column("build_id", String(26), primary_key=True),
    Column("project", String(40), ForeignKey("projects.slug"), nullable=False),
    Column("bundle_hash", String(128), nullable=False),
    Column("location", Text, nullable=False),
    Column("site", Text, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("deploy_seq", BigInteger, nullable=False),
    UniqueConstraint("project", "bundle_hash"),
)

room_types = Table(
    "room_types",
    metadata,
    Column("build_id", String(26), ForeignKey("builds.build_id"), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("position", Integer, nullable=False),
    Column("entry", String(512), nullable=False),
    Column("schema_hash", LargeBinary(16), nullable=False),
    Column("state_version", BigInteger, nullable=False),
    Column("max_players", Integer, nullable=False),
)

rooms = Table(
    "rooms",
    metadata,
    Column("room_uid", String(26), primary_key=True),
    Column("project", String(40), ForeignKey("projects.slug"), nullable=False),
    Column("room_id", String(64), nullable=False),
    Column("room_type", String(64), nullable=False),
    Column("slot", Integer, nullable=False),
    Column("has_state", Boolean, nullable=False),
    Column("public", Boolean, nullable=False),
    Column("join_code", String(6), nullable=True),
    # NULL: the project's, whatever that is when it is asked for.
    Column("retention", String(16), nullable=True),
    Column("created_at_ms", BigInteger, nullable=False),
    UniqueConstraint("project", "room_id"),
    UniqueConstraint("project", "join_code"),
)

shards = Table(
    "shards",
    metadata,
    Column("shard_id", String(64), primary_key=True),
    Column("address", String(256), nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("registered_at_ms", BigInteger, nullable=False),
)

shard_slots = Table(
    "shard_slots",
    metadata,
    # Half-open ranges of slots that do not overlap; first of each.
    Column("slot_from", Integer, primary_key=True, autoincrement=False),
    Column("slot_to", Integer, nullable=False),
    Column("shard_id", String(64), ForeignKey("shards.shard_id"), nullable=False),
)

sequences = Table(
    "sequences",
    metadata,
    # `shard_epoch` and `map_version`. Rows and not the database's sequences: SQLite has none, and these roll
    # back with the change that drew from them.
    Column("name", String(32), primary_key=True),
    Column("value", BigInteger, nullable=False),
)
