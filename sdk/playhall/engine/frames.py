"""The frames of docs/protocol/frames.md, to bytes and back. The values themselves are in `frametypes`.

`encode_client` and `encode_server` raise ValueError where a frame would pass its limit, and TypeError or
ValueError where a content is not JSON. Updates are put together by `updates`, and have no encoder here.

`decode_client` and `decode_server` read the whole frame before they return, and raise ProtocolError and
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from playhall.engine import playframes as play
from playhall.engine.errors import ProtocolError
from playhall.engine.frametypes import (
    Ack,
    Asleep,
    Call,
    ClientFrame,
    Content,
    Hello,
    InputEntry,
    Inputs,
    Leave,
    Message,
    Peers,
    Ping,
    Pong,
    Reply,
    ReplyError,
    Reset,
    Resume,
    ServerFrame,
    Unreliable,
    UpdatePart,
    Voice,
    Waking,
    Welcome,
    Write,
    WriteEntry,
)
from playhall.engine.payloads import MAX_PAYLOAD, Payload, encode_payload
from playhall.engine.schema import EMPTY, FIRST_PRESENCE_ID, Schema
from playhall.engine.updates import MAX_PART, UPDATE
from playhall.engine.wire import Reader, Writer

__all__ = [
    "MAX_FRAME",
    "MAX_PAYLOAD",
    "VERSION",
    "Ack",
    "Asleep",
    "Call",
    "ClientFrame",
    "Content",
    "Hello",
    "InputEntry",
    "Inputs",
    "Leave",
    "Message",
    "Payload",
    "Peers",
    "Ping",
    "Pong",
    "Reply",
    "ReplyError",
    "Reset",
    "Resume",
    "ServerFrame",
    "Unreliable",
    "UpdatePart",
    "Voice",
    "Waking",
    "Welcome",
    "Write",
    "WriteEntry",
    "decode_client",
    "decode_server",
    "encode_client",
    "encode_payload",
    "encode_server",
    "resume_of",
]

VERSION: Final = 1
MAX_FRAME: Final = 65_600
MAX_SDK: Final = 64
ID_SIZE: Final = 16

HELLO: Final = 1
WELCOME: Final = 2
WAKING: Final = 3
MESSAGE: Final = 5
UNRELIABLE: Final = 6
VOICE: Final = 7
PEERS: Final = 9
CALL: Final = 10
REPLY: Final = 11
INPUTS: Final = 12
ACK: Final = 13
WRITE: Final = 14
PING: Final = 15
PONG: Final = 16
RESET: Final = 17
RESUME: Final = 18
ASLEEP: Final = 19
LEAVE: Final = 20

LIMITS: Final = {
    HELLO: 16_384,
    WELCOME: 16_384,
    WAKING: 1_024,
    UPDATE: MAX_PART,
    MESSAGE: MAX_FRAME,
    UNRELIABLE: MAX_FRAME,
    VOICE: 16_384,
    PEERS: 65_536,
    CALL: MAX_FRAME,
    REPLY: MAX_FRAME,
    INPUTS: MAX_FRAME,
    ACK: 1_024,
    WRITE: MAX_FRAME,
    PING: 1_024,
    PONG: 1_024,
    RESET: 1_024,
    RESUME: 49_152,
    ASLEEP: 1_024,
    LEAVE: 1_024,
}
"""Bytes of a whole frame, by its type."""

# Flags
FULL: Final = 1  # resume
RESUMED, ASLEEP_FLAG = 1, 2  # welcome
HAS_TICK: Final = 1  # pong


def decode_client(data: bytes, schema: Schema[Any, Any] = EMPTY) -> ClientFrame:
    """Read a frame from a client. `schema` is what inputs and writes are read by."""
    source, type_ = _open(data)
    if type_ == INPUTS:
        frame: ClientFrame = play.read_inputs(source, schema)
    elif type_ == WRITE:
        frame = play.read_write(source, schema)
    elif type_ in _FROM_CLIENT:
        frame = _FROM_CLIENT[type_](source)
    else:
        raise ProtocolError(f"a client sends no frame {type_}")
    if type_ not in _OPEN:
        source.done()
    return frame


def decode_server(data: bytes) -> ServerFrame | None:
    """Read a frame from a server. None: a type that is unknown here, to be ignored."""
    source, type_ = _open(data)
    if type_ == UPDATE:
        return UpdatePart(data)
    if type_ not in _FROM_SERVER:
        return None
    frame = _FROM_SERVER[type_](source)
    if type_ not in _OPEN:
        source.done()
    return frame


def encode_client(frame: ClientFrame) -> bytes:
    """Return the bytes of a client's frame."""
    type_, write = _CLIENT_WRITERS[type(frame)]
    return _encode(type_, write, frame)


def encode_server(frame: ServerFrame) -> bytes:
    """Return the bytes of a server's frame."""
    if isinstance(frame, UpdatePart):
        return frame.frame
    type_, write = _SERVER_WRITERS[type(frame)]
    return _encode(type_, write, frame)


def resume_of(reset: int, generation: int, version: int, held: Sequence[int]) -> Resume:
    """Return the resume that says what is held, or asks for everything where the ids are too many."""
    ids = tuple(sorted(held))
    frame = Resume(reset, generation, version, full=False, held=ids)
    # An id takes at most 5 bytes, and what stands before the ids at most 32.
    if len(ids) * 5 + 32 <= LIMITS[RESUME] or _size_of(frame) <= LIMITS[RESUME]:
        return frame
    return Resume(reset, generation, version, full=True, held=())


def _open(data: bytes) -> tuple[Reader, int]:
    source = Reader(data)
    type_ = source.u8()
    limit = LIMITS.get(type_, len(data))
    if len(data) > limit:
        raise ProtocolError(f"a frame {type_} of {len(data)} bytes, over {limit}")
    return source, type_


def _encode(type_: int, write: Callable[[Writer, Any], None], frame: object) -> bytes:
    out = Writer()
    out.u8(type_)
    write(out, frame)
    if len(out) > LIMITS[type_]:
        raise ValueError(f"a {type(frame).__name__} of {len(out)} bytes, over {LIMITS[type_]}")
    return out.finish()


def _size_of(frame: Resume) -> int:
    out = Writer()
    _write_resume(out, frame)
    return 1 + len(out)


# The connection


def _write_hello(out: Writer, frame: Hello) -> None:
    out.u16(frame.version)
    for text in (frame.project, frame.room, frame.type, frame.token):
        out.str(text)
    if len(frame.schema) != ID_SIZE or len(frame.session) != ID_SIZE:
        raise ValueError(f"schema and session have {ID_SIZE} bytes")
    out.raw(frame.schema)
    out.raw(frame.session)
    out.varint32(frame.attempt)
    out.str(frame.sdk)


def _read_hello(source: Reader) -> Hello:
    version = source.u16()
    if version != VERSION:
        raise ProtocolError(f"protocol version {version} is not spoken here, only {VERSION}")
    return Hello(
        version,
        project=source.str(),
        room=source.str(),
        type=source.str(),
        token=source.str(),
        schema=source.raw(ID_SIZE),
        session=source.raw(ID_SIZE),
        attempt=source.varint32(),
        sdk=source.str(MAX_SDK),
    )


def _write_resume(out: Writer, frame: Resume) -> None:
    out.varint32(frame.reset)
    out.varint53(frame.generation)
    out.varint32(frame.version)
    out.u8(FULL * frame.full)
    out.varint32(len(frame.held))
    before = 0
    for id in frame.held:
        out.varint32(id - before)
        before = id


def _read_resume(source: Reader) -> Resume:
    reset, generation, version = source.varint32(), source.varint53(), source.varint32()
    full, count = bool(source.u8() & FULL), source.varint32()
    if count > source.left:
        raise ProtocolError(f"{count} ids in {source.left} bytes")
    if generation == 0 and (version or count):
        raise ProtocolError("something is held of no generation")
    held: list[int] = []
    id = 0
    for n in range(count):
        step = source.varint32()
        if n and not step:
            raise ProtocolError("the ids held do not ascend")
        id += step
        held.append(id)
    if held and (held[0] < 2 or held[-1] >= 2 * FIRST_PRESENCE_ID):
        raise ProtocolError("an id held that is no entity's")
    return Resume(reset, generation, version, full, tuple(held))


def _write_welcome(out: Writer, frame: Welcome) -> None:
    out.varint53(frame.generation)
    out.varint32(frame.version)
    out.varint53(frame.tick)
    out.u8(frame.fraction)
    out.u8(RESUMED * frame.resumed | ASLEEP_FLAG * frame.asleep)
    out.u8(frame.tick_rate)
    for text in (frame.player, frame.room, frame.type, frame.token):
        out.str(text)


def _read_welcome(source: Reader) -> Welcome:
    generation, version, tick = source.varint53(), source.varint32(), source.varint53()
    fraction, flags, tick_rate = source.u8(), source.u8(), source.u8()
    return Welcome(
        generation,
        version,
        tick,
        fraction,
        resumed=bool(flags & RESUMED),
        asleep=bool(flags & ASLEEP_FLAG),
        tick_rate=tick_rate,
        player=source.str(),
        room=source.str(),
        type=source.str(),
        token=source.str(),
    )


def _write_nothing(out: Writer, frame: Waking | Leave) -> None:
    """Waking and leave have no body."""


def _write_asleep(out: Writer, frame: Asleep) -> None:
    out.varint53(frame.generation)
    out.varint32(frame.version)


def _read_asleep(source: Reader) -> Asleep:
    return Asleep(source.varint53(), source.varint32())


def _write_reset(out: Writer, frame: Reset) -> None:
    out.varint32(frame.number)
    out.u16(frame.code)


def _read_reset(source: Reader) -> Reset:
    number, code = source.varint32(), source.u16()
    if number == 0:
        raise ProtocolError("resets count from 1")
    return Reset(number, code)


def _write_ping(out: Writer, frame: Ping) -> None:
    out.u32(frame.nonce)


def _read_ping(source: Reader) -> Ping:
    return Ping(source.u32())


def _write_pong(out: Writer, frame: Pong) -> None:
    out.u32(frame.nonce)
    out.u8(HAS_TICK * (frame.tick is not None))
    out.varint53(frame.tick or 0)
    out.u8(frame.fraction)


def _read_pong(source: Reader) -> Pong:
    nonce, flags, tick, fraction = source.u32(), source.u8(), source.varint53(), source.u8()
    return Pong(nonce, tick if flags & HAS_TICK else None, fraction)


def _write_voice(out: Writer, frame: Voice) -> None:
    out.str(frame.url)
    out.str(frame.token)


def _read_voice(source: Reader) -> Voice:
    return Voice(source.str(), source.str())


def _write_peers(out: Writer, frame: Peers) -> None:
    for players in (frame.hears, frame.heard_by):
        out.varint32(len(players))
        for player in players:
            out.str(player)


def _read_peers(source: Reader) -> Peers:
    return Peers(_read_players(source), _read_players(source))


def _read_players(source: Reader) -> tuple[str, ...]:
    count = source.varint32()
    if count > source.left:
        raise ProtocolError(f"{count} players in {source.left} bytes")
    return tuple(source.str() for _ in range(count))


_OPEN: Final = frozenset(
    {HELLO, WELCOME, WAKING, VOICE, PEERS, ACK, PING, PONG, RESET, RESUME, ASLEEP, LEAVE}
)

_FROM_CLIENT: Final[dict[int, Callable[[Reader], ClientFrame]]] = {
    HELLO: _read_hello,
    RESUME: _read_resume,
    LEAVE: lambda source: Leave(),
    PING: _read_ping,
    MESSAGE: play.read_client_message,
    UNRELIABLE: play.read_client_unreliable,
    CALL: play.read_call,
}

_FROM_SERVER: Final[dict[int, Callable[[Reader], ServerFrame]]] = {
    WELCOME: _read_welcome,
    WAKING: lambda source: Waking(),
    ASLEEP: _read_asleep,
    RESET: _read_reset,
    PONG: _read_pong,
    MESSAGE: play.read_server_message,
    UNRELIABLE: play.read_server_unreliable,
    REPLY: play.read_reply,
    ACK: play.read_ack,
    VOICE: _read_voice,
    PEERS: _read_peers,
}

_CLIENT_WRITERS: Final[dict[type, tuple[int, Callable[[Writer, Any], None]]]] = {
    Hello: (HELLO, _write_hello),
    Resume: (RESUME, _write_resume),
    Leave: (LEAVE, _write_nothing),
    Ping: (PING, _write_ping),
    Message: (MESSAGE, play.write_client_message),
    Unreliable: (UNRELIABLE, play.write_client_message),
    Call: (CALL, play.write_call),
    Inputs: (INPUTS, play.write_inputs),
    Write: (WRITE, play.write_write),
}

_SERVER_WRITERS: Final[dict[type, tuple[int, Callable[[Writer, Any], None]]]] = {
    Welcome: (WELCOME, _write_welcome),
    Waking: (WAKING, _write_nothing),
    Asleep: (ASLEEP, _write_asleep),
    Reset: (RESET, _write_reset),
    Pong: (PONG, _write_pong),
    Message: (MESSAGE, play.write_server_message),
    Unreliable: (UNRELIABLE, play.write_server_message),
    Reply: (REPLY, play.write_reply),
    ReplyError: (REPLY, play.write_reply_error),
    Ack: (ACK, play.write_ack),
    Voice: (VOICE, _write_voice),
    Peers: (PEERS, _write_peers),
}
