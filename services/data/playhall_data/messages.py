"""data.v1's messages to the domain's values, and back."""

from __future__ import annotations

from playhall.api.data.v1 import data_pb2 as pb
from playhall_data import builds, keys, projects, registry, shards

__all__ = [
    "build_message", "bundle", "key_message", "map_message", "new_room", "project_message", "registration",
    "room_message", "settings", "settings_message",
]  # fmt: skip

_KINDS = {keys.Kind.API: pb.KEY_KIND_API, keys.Kind.PLAYER_TOKEN: pb.KEY_KIND_PLAYER_TOKEN}


def settings(message: pb.Settings) -> projects.Settings:
    return projects.Settings(
        guests=message.guests,
        create_rooms=message.create_rooms,
        list_public=message.list_public,
        retention=message.retention,
        allowed_origins=tuple(message.allowed_origins),
        build_update=message.build_update,
    )


def settings_message(value: projects.Settings) -> pb.Settings:
    return pb.Settings(
        guests=value.guests,
        create_rooms=value.create_rooms,
        list_public=value.list_public,
        retention=value.retention,
        allowed_origins=value.allowed_origins,
        build_update=value.build_update,
    )


def project_message(value: projects.Project) -> pb.Project:
    return pb.Project(
        slug=value.slug, settings=settings_message(value.settings), created_at_ms=value.created_at_ms
    )


def key_message(value: keys.Key) -> pb.Key:
    return pb.Key(
        key_id=value.key_id,
        kind=_KINDS[value.kind],
        name=value.name,
        created_at_ms=value.created_at_ms,
        revoked=value.revoked,
    )


def bundle(request: pb.RegisterBuildRequest) -> builds.Bundle:
    room_types = tuple(
        builds.RoomType(each.name, each.entry, each.schema_hash, each.state_version, each.max_players)
        for each in request.room_types
    )
    return builds.Bundle(request.bundle_hash, request.location, request.site, room_types)


def build_message(value: builds.Build) -> pb.Build:
    room_types = [
        pb.RoomType(
            name=each.name,
            entry=each.entry,
            schema_hash=each.schema_hash,
            state_version=each.state_version,
            max_players=each.max_players,
        )
        for each in value.bundle.room_types
    ]
    return pb.Build(
        project=value.project,
        build_id=value.build_id,
        bundle_hash=value.bundle.bundle_hash,
        location=value.bundle.location,
        room_types=room_types,
        deploy_seq=value.deploy_seq,
        created_at_ms=value.created_at_ms,
        site=value.bundle.site,
    )


def new_room(request: pb.CreateRoomRequest) -> registry.NewRoom:
    return registry.NewRoom(
        project=request.project,
        room_id=request.room_id,
        room_type=request.room_type,
        public=request.public,
        with_join_code=request.with_join_code,
        retention=request.retention,
    )


def room_message(value: registry.Room) -> pb.RoomRecord:
    return pb.RoomRecord(
        project=value.project,
        room_id=value.room_id,
        room_uid=value.room_uid,
        room_type=value.room_type,
        slot=value.slot,
        has_state=value.has_state,
        public=value.public,
        join_code=value.join_code,
        retention=value.retention,
        created_at_ms=value.created_at_ms,
    )


def registration(request: pb.RegisterShardRequest) -> shards.Registration:
    return shards.Registration(
        request.shard_id, request.address, request.volume_epoch, request.replace, request.min_epoch
    )


def map_message(value: shards.ShardMap) -> pb.GetShardMapResponse:
    return pb.GetShardMapResponse(
        version=value.version,
        shards=[
            pb.Shard(
                shard_id=each.shard_id,
                address=each.address,
                slot_from=[first for first, _ in each.slots],
                slot_to=[end for _, end in each.slots],
                epoch=each.epoch,
            )
            for each in value.shards
        ],
    )
