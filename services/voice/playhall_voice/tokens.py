"""Tokens for LiveKit: who may speak where, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError
from playhall_common.ids import is_player_id, is_project_slug, is_ulid

__all__ = ["DEFAULT_TTL_S", "MAX_TTL_S", "LiveKit", "Speaker", "mint"]

DEFAULT_TTL_S = 3600
MAX_TTL_S = 21_600
MAX_NAME_BYTES = 256


@dataclass(frozen=True, slots=True)
class LiveKit:
    """A LiveKit server and the key that it trusts."""

    url: str
    key: str
    secret: str


@dataclass(frozen=True, slots=True)
class Speaker:
    """A player in a room. Raises E_INVALID where LiveKit or Playhall could not mean anybody by it."""

    project: str
    room_uid: str
    player: str
    name: str
    ttl_s: int

    def __post_init__(self) -> None:
        if not is_project_slug(self.project):
            raise ApiError(
                ErrorCode.INVALID, f"project {self.project!r} is no project's name", field="project"
            )
        if not is_ulid(self.room_uid):
            raise ApiError(ErrorCode.INVALID, f"room_uid {self.room_uid!r} is not a ULID", field="room_uid")
        if not is_player_id(self.player):
            raise ApiError(
                ErrorCode.INVALID, f"player {self.player!r} is no player's id, or a bot's", field="player"
            )
        if len(self.name.encode()) > MAX_NAME_BYTES:
            raise ApiError(ErrorCode.INVALID, f"name is longer than {MAX_NAME_BYTES} bytes", field="name")
        if not 0 < self.ttl_s <= MAX_TTL_S:
            raise ApiError(ErrorCode.INVALID, f"ttl_s {self.ttl_s} is not 1 to {MAX_TTL_S}", field="ttl_s")


def mint(livekit: LiveKit, speaker: Speaker) -> str:
    """A token with which the player's microphone is heard in the room, and nothing else is sent."""
    # Half a second of CPU, which only a game with voice should pay, and not at start.
    from livekit import api

    grants = api.VideoGrants(
        room_join=True,
        room=speaker.room_uid,
        can_publish=True,
        can_publish_sources=["microphone"],
        can_publish_data=False,
        can_subscribe=True,
        can_update_own_metadata=False,
    )
    token = (
        api.AccessToken(livekit.key, livekit.secret)
        .with_identity(speaker.player)
        .with_name(speaker.name)
        .with_ttl(timedelta(seconds=speaker.ttl_s))
        .with_grants(grants)
    )
    jwt: str = token.to_jwt()
    return jwt
