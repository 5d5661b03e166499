"""Reading a router's Join."""

from __future__ import annotations

import msgspec

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine.errors import ProtocolError
from playhall.engine.frames import RESUME, Resume, decode_client
from playhall.engine.jsontext import is_too_deep
from playhall.engine.outputs import JoinRequest

__all__ = ["read_join"]

_NOTHING = Resume(0, 0, 0, False, ())


def read_join(join: pb.Join) -> JoinRequest | None:
    """What a room is told; None: the join makes no sense."""
    try:
        meta = msgspec.json.decode(join.meta) if join.meta else None
        if is_too_deep(meta):
            return None
        resume = decode_client(bytes((RESUME,)) + join.resume) if join.resume else _NOTHING
    except (ProtocolError, msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(resume, Resume):
        return None
    return JoinRequest(
        player=join.player,
        meta=meta,
        schema_hash=join.schema_hash,
        session=join.session,
        attempt=join.attempt,
        connected_at_ms=join.connected_at_ms,
        was_joined=join.was_joined,
        resume=resume,
        connection_id=join.connection_id,
        room_type=join.room_type,
        credit_bytes=join.credit_bytes,
    )
