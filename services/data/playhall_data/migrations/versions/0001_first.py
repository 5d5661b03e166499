"""The first tables: projects, settings, keys, builds, rooms, shards."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _projects()
    _builds()
    _rooms()
    _shards()


def _projects() -> None:
    op.create_table(
        "projects",
        sa.Column("slug", sa.String(40), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("deploy_seq", sa.BigInteger, nullable=False),
        sa.Column("live_build_id", sa.String(26)),
        sa.PrimaryKeyConstraint("slug", name="pk_projects"),
    )
    op.create_table(
        "settings",
        sa.Column("project", sa.String(40), nullable=False),
        sa.Column("guests", sa.Boolean, nullable=False),
        sa.Column("create_rooms", sa.Boolean, nullable=False),
        sa.Column("list_public", sa.Boolean, nullable=False),
        sa.Column("retention", sa.String(16), nullable=False),
        sa.Column("allowed_origins", sa.Text, nullable=False),
        sa.Column("build_update", sa.String(16), nullable=False),
        sa.PrimaryKeyConstraint("project", name="pk_settings"),
        sa.ForeignKeyConstraint(["project"], ["projects.slug"], name="fk_settings_project"),
    )
    op.create_table(
        "api_keys",
        sa.Column("key_id", sa.String(26), nullable=False),
        sa.Column("project", sa.String(40), nullable=False),
        sa.Column("kind", sa.Integer, nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("revoked_at_ms", sa.BigInteger),
        sa.Column("secret_hash", sa.LargeBinary(32)),
        sa.Column("signing_secret", sa.String(64)),
        sa.PrimaryKeyConstraint("key_id", name="pk_api_keys"),
        sa.ForeignKeyConstraint(["project"], ["projects.slug"], name="fk_api_keys_project"),
        sa.UniqueConstraint("secret_hash", name="uq_api_keys_secret_hash"),
    )
    op.create_index("ix_api_keys_project", "api_keys", ["project"])


def _builds() -> None:
    op.create_table(
        "builds",
        sa.Column("build_id", sa.String(26), nullable=False),
        sa.Column("project", sa.String(40), nullable=False),
        sa.Column("bundle_hash", sa.String(128), nullable=False),
        sa.Column("location", sa.Text, nullable=False),
        sa.Column("site", sa.Text, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("deploy_seq", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("build_id", name="pk_builds"),
        sa.ForeignKeyConstraint(["project"], ["projects.slug"], name="fk_builds_project"),
        sa.UniqueConstraint("project", "bundle_hash", name="uq_builds_project_bundle_hash"),
    )
    op.create_table(
        "room_types",
        sa.Column("build_id", sa.String(26), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("entry", sa.String(512), nullable=False),
        sa.Column("schema_hash", sa.LargeBinary(16), nullable=False),
        sa.Column("state_version", sa.BigInteger, nullable=False),
        sa.Column("max_players", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("build_id", "name", name="pk_room_types"),
        sa.ForeignKeyConstraint(["build_id"], ["builds.build_id"], name="fk_room_types_build_id"),
    )


def _rooms() -> None:
    op.create_table(
        "rooms",
        sa.Column("room_uid", sa.String(26), nullable=False),
        sa.Column("project", sa.String(40), nullable=False),
        sa.Column("room_id", sa.String(64), nullable=False),
        sa.Column("room_type", sa.String(64), nullable=False),
        sa.Column("slot", sa.Integer, nullable=False),
        sa.Column("has_state", sa.Boolean, nullable=False),
        sa.Column("public", sa.Boolean, nullable=False),
        sa.Column("join_code", sa.String(6)),
        sa.Column("retention", sa.String(16)),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("room_uid", name="pk_rooms"),
        sa.ForeignKeyConstraint(["project"], ["projects.slug"], name="fk_rooms_project"),
        sa.UniqueConstraint("project", "room_id", name="uq_rooms_project_room_id"),
        sa.UniqueConstraint("project", "join_code", name="uq_rooms_project_join_code"),
    )


def _shards() -> None:
    op.create_table(
        "shards",
        sa.Column("shard_id", sa.String(64), nullable=False),
        sa.Column("address", sa.String(256), nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("registered_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("shard_id", name="pk_shards"),
    )
    op.create_table(
        "shard_slots",
        sa.Column("slot_from", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("slot_to", sa.Integer, nullable=False),
        sa.Column("shard_id", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("slot_from", name="pk_shard_slots"),
        sa.ForeignKeyConstraint(["shard_id"], ["shards.shard_id"], name="fk_shard_slots_shard_id"),
    )
    sequences = op.create_table(
        "sequences",
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("value", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_sequences"),
    )
    op.bulk_insert(sequences, [{"name": "shard_epoch", "value": 0}, {"name": "map_version", "value": 0}])
