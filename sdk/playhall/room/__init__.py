"""What room authors import: declaring state, and the room.

A module of kinds that clients share imports from here too; `playhall.client` exports the declaring names as
well.
"""

from __future__ import annotations

from playhall.engine.bots import Bot, Bots, is_bot
from playhall.engine.calls import Call, CallRejected
from playhall.engine.codes import CloseCode
from playhall.engine.columns import Columns
from playhall.engine.connection import Connection, JsonIn, JsonOut, Message
from playhall.engine.entities import Entities
from playhall.engine.errors import DeadEntityError, FieldError, FieldTypeError, PlayhallError, ReadOnlyError
from playhall.engine.fields import (
    Json,
    f32,
    f64,
    i8,
    i16,
    i32,
    owner_only,
    q8,
    q16,
    u8,
    u16,
    u32,
    writable,
)
from playhall.engine.grids import grid
from playhall.engine.history import History, Hit, Past, PastColumns
from playhall.engine.inputs import Input
from playhall.engine.interest import EVERYWHERE, Interest, Limit, combine
from playhall.engine.kinds import Entity, local
from playhall.engine.presence import Presence, PresenceEntry
from playhall.engine.room import Hook, Room, Wake
from playhall.engine.roomlog import RoomLog
from playhall.engine.schema import Schema

__all__ = [
    "EVERYWHERE",
    "Bot",
    "Bots",
    "Call",
    "CallRejected",
    "CloseCode",
    "Columns",
    "Connection",
    "DeadEntityError",
    "Entities",
    "Entity",
    "FieldError",
    "FieldTypeError",
    "History",
    "Hit",
    "Hook",
    "Input",
    "Interest",
    "Json",
    "JsonIn",
    "JsonOut",
    "Limit",
    "Message",
    "Past",
    "PastColumns",
    "PlayhallError",
    "Presence",
    "PresenceEntry",
    "ReadOnlyError",
    "Room",
    "RoomLog",
    "Schema",
    "Wake",
    "combine",
    "f32",
    "f64",
    "grid",
    "i8",
    "i16",
    "i32",
    "is_bot",
    "local",
    "owner_only",
    "q8",
    "q16",
    "u8",
    "u16",
    "u32",
    "writable",
]
