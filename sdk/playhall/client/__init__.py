"""The Python client: bots, native programs, tests and load."""

from playhall.client.entities import ClientEntities
from playhall.client.net import Net
from playhall.client.presence import ClientPresence, PresenceEntry
from playhall.client.room import RoomClient, connect
from playhall.engine.bots import is_bot
from playhall.engine.calls import Call
from playhall.engine.connection import JsonIn, JsonOut, Message
from playhall.engine.errors import DeadEntityError, FieldError, FieldTypeError, PlayhallError, ReadOnlyError
from playhall.engine.fields import Json, f32, f64, i8, i16, i32, owner_only, q8, q16, u8, u16, u32, writable
from playhall.engine.inputs import Input
from playhall.engine.kinds import Entity, local
from playhall.engine.schema import Schema

__all__ = [
    "Call",
    "ClientEntities",
    "ClientPresence",
    "DeadEntityError",
    "Entity",
    "FieldError",
    "FieldTypeError",
    "Input",
    "Json",
    "JsonIn",
    "JsonOut",
    "Message",
    "Net",
    "PlayhallError",
    "PresenceEntry",
    "ReadOnlyError",
    "RoomClient",
    "Schema",
    "connect",
    "f32",
    "f64",
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
