"""Close codes and API errors. Generated from protos/codes.toml by `make gen`."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["ERRORS", "CloseCode", "ErrorCode", "ErrorInfo", "Reconnect"]


class Reconnect(enum.StrEnum):
    """Whether and when a client comes back after a close."""

    NEVER = "never"
    BACKOFF = "backoff"
    NOW = "now"


class CloseCode(enum.IntEnum):
    """Why a connection was closed. Any number that is not here means Reconnect.BACKOFF."""

    PROTOCOL = 4000
    UNAUTHENTICATED = 4001
    ROOM_NOT_FOUND = 4002
    ROOM_FULL = 4003
    SCHEMA_MISMATCH = 4004
    LIMIT_EXCEEDED = 4005
    KICKED = 4006
    ROOM_STOPPED = 4007
    ROOM_MOVED = 4008
    QUOTA_EXCEEDED = 4009
    WAKE_TIMEOUT = 4010
    HIBERNATED = 4011
    REPLACED = 4012
    WRONG_ROOM_TYPE = 4015

    @property
    def reconnect(self) -> Reconnect:
        """Whether and when a client comes back."""
        return _CLOSES[self][0]

    @property
    def help(self) -> str:
        """What happened, and what to do about it."""
        return _CLOSES[self][1]


_CLOSES: Mapping[CloseCode, tuple[Reconnect, str]] = {
    CloseCode.PROTOCOL: (
        Reconnect.NEVER,
        "The frame does not follow the protocol, or its version is not spoken here. Update the SDK.",
    ),
    CloseCode.UNAUTHENTICATED: (
        Reconnect.NEVER,
        "The token is invalid, expired, for another room, or revoked; or guests are not allowed. Get a new token.",
    ),
    CloseCode.ROOM_NOT_FOUND: (
        Reconnect.NEVER,
        "There is no such project or room, clients may not create rooms, or the room was deleted.",
    ),
    CloseCode.ROOM_FULL: (Reconnect.NEVER, "Every seat of the room is taken."),
    CloseCode.SCHEMA_MISMATCH: (
        Reconnect.NEVER,
        "Client and room were built from different schemas. Reload the page to get the client of the room's build.",
    ),
    CloseCode.LIMIT_EXCEEDED: (
        Reconnect.BACKOFF,
        "A frame was too big, there were too many of them, or nothing was read for 15 s.",
    ),
    CloseCode.KICKED: (Reconnect.NEVER, "The room kicked or banned the player, or refused the join."),
    CloseCode.ROOM_STOPPED: (
        Reconnect.NEVER,
        "Room code raised an error and the room stopped. Connecting again wakes it from its last saved state; the error is in the log.",
    ),
    CloseCode.ROOM_MOVED: (Reconnect.NOW, "The room restarts or moves. The client comes back by itself."),
    CloseCode.QUOTA_EXCEEDED: (Reconnect.NEVER, "A quota of the project is used up."),
    CloseCode.WAKE_TIMEOUT: (
        Reconnect.BACKOFF,
        "The room took over 10 s to start. It goes on starting; the client comes back by itself.",
    ),
    CloseCode.HIBERNATED: (
        Reconnect.NEVER,
        "The room chose to hibernate. Connecting again wakes it; offer a rejoin.",
    ),
    CloseCode.REPLACED: (Reconnect.NEVER, "The player connected elsewhere."),
    CloseCode.WRONG_ROOM_TYPE: (
        Reconnect.NEVER,
        "The room exists with another type, or the build has no room of the type asked for.",
    ),
}


class ErrorCode(enum.StrEnum):
    """Why a request failed."""

    INVALID = "E_INVALID"
    UNAUTHENTICATED = "E_UNAUTHENTICATED"
    FORBIDDEN = "E_FORBIDDEN"
    UNKNOWN = "E_UNKNOWN"
    EXISTS = "E_EXISTS"
    VERSION = "E_VERSION"
    TYPE = "E_TYPE"
    REJECTED = "E_REJECTED"
    QUOTA = "E_QUOTA"
    LIMIT = "E_LIMIT"
    SPENDING = "E_SPENDING"
    FULL = "E_FULL"
    UNAVAILABLE = "E_UNAVAILABLE"
    BUSY = "E_BUSY"
    STALE_BUILD = "E_STALE_BUILD"
    WRONG_SHARD = "E_WRONG_SHARD"
    FENCED = "E_FENCED"
    STATE_MISSING = "E_STATE_MISSING"
    DAMAGED = "E_DAMAGED"
    STALE_VOLUME = "E_STALE_VOLUME"
    EMPTY_VOLUME = "E_EMPTY_VOLUME"
    INTERNAL = "E_INTERNAL"


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """An error in both of the API's forms: an HTTP status, and the name of a gRPC status."""

    code: ErrorCode
    http: int
    grpc: str
    help: str


ERRORS: Mapping[str, ErrorInfo] = MappingProxyType(
    {
        "E_INVALID": ErrorInfo(
            ErrorCode.INVALID,
            400,
            "INVALID_ARGUMENT",
            "A value of the request is missing, malformed or out of range; the message names it.",
        ),
        "E_UNAUTHENTICATED": ErrorInfo(
            ErrorCode.UNAUTHENTICATED, 401, "UNAUTHENTICATED", "No valid key or token came with the request."
        ),
        "E_FORBIDDEN": ErrorInfo(
            ErrorCode.FORBIDDEN,
            403,
            "PERMISSION_DENIED",
            "The key or player may not do this, or a project setting does not allow it.",
        ),
        "E_UNKNOWN": ErrorInfo(ErrorCode.UNKNOWN, 404, "NOT_FOUND", "What the request names does not exist."),
        "E_EXISTS": ErrorInfo(ErrorCode.EXISTS, 409, "ALREADY_EXISTS", "The name is taken."),
        "E_VERSION": ErrorInfo(
            ErrorCode.VERSION,
            409,
            "ABORTED",
            "The value was changed since the version the request names. Read it again.",
        ),
        "E_TYPE": ErrorInfo(
            ErrorCode.TYPE,
            422,
            "FAILED_PRECONDITION",
            "The stored value is not of the type this operation needs.",
        ),
        "E_REJECTED": ErrorInfo(
            ErrorCode.REJECTED,
            422,
            "FAILED_PRECONDITION",
            "Room code refused the request, or raised while it handled it.",
        ),
        "E_QUOTA": ErrorInfo(
            ErrorCode.QUOTA,
            413,
            "RESOURCE_EXHAUSTED",
            "The value, or all values together, would pass a size limit.",
        ),
        "E_LIMIT": ErrorInfo(
            ErrorCode.LIMIT,
            429,
            "RESOURCE_EXHAUSTED",
            "Too many requests at once or in a short time. Wait and try again.",
        ),
        "E_SPENDING": ErrorInfo(
            ErrorCode.SPENDING, 429, "RESOURCE_EXHAUSTED", "A quota of the project is used up."
        ),
        "E_FULL": ErrorInfo(
            ErrorCode.FULL, 507, "RESOURCE_EXHAUSTED", "The room is full, or the store has no space left."
        ),
        "E_UNAVAILABLE": ErrorInfo(
            ErrorCode.UNAVAILABLE,
            503,
            "UNAVAILABLE",
            "A service this needs did not answer in time. Whether a write took effect is unknown.",
        ),
        "E_BUSY": ErrorInfo(ErrorCode.BUSY, 503, "UNAVAILABLE", "No host has room for this now."),
        "E_STALE_BUILD": ErrorInfo(
            ErrorCode.STALE_BUILD,
            409,
            "FAILED_PRECONDITION",
            "The request names an older build than the one the room already ran on.",
        ),
        "E_WRONG_SHARD": ErrorInfo(
            ErrorCode.WRONG_SHARD,
            409,
            "FAILED_PRECONDITION",
            "Another shard owns this room; read the shard map again.",
        ),
        "E_FENCED": ErrorInfo(
            ErrorCode.FENCED,
            409,
            "FAILED_PRECONDITION",
            "Another generation of the room holds the grant; this one must stop.",
        ),
        "E_STATE_MISSING": ErrorInfo(
            ErrorCode.STATE_MISSING,
            500,
            "DATA_LOSS",
            "The registry says the room has state, and none was found. Nothing was started, so nothing was overwritten.",
        ),
        "E_DAMAGED": ErrorInfo(
            ErrorCode.DAMAGED, 500, "DATA_LOSS", "The saved state does not match its checksum."
        ),
        "E_STALE_VOLUME": ErrorInfo(
            ErrorCode.STALE_VOLUME,
            500,
            "FAILED_PRECONDITION",
            "The shard's volume is older than what the database knows of it. Never restore a shard volume from a snapshot.",
        ),
        "E_EMPTY_VOLUME": ErrorInfo(
            ErrorCode.EMPTY_VOLUME,
            500,
            "FAILED_PRECONDITION",
            "A known shard started on an empty volume. Start it with replace once the old volume is known to be lost.",
        ),
        "E_INTERNAL": ErrorInfo(
            ErrorCode.INTERNAL,
            500,
            "INTERNAL",
            "A fault in Playhall. The log of the service has it under the request's id.",
        ),
    }
)
