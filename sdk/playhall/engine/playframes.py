"""The frames of a game going on (messages, calls, inputs, acks, writes): their bodies, to bytes and back."""

from __future__ import annotations

from typing import Any, Final

from playhall.engine import jsontext
from playhall.engine.errors import ProtocolError
from playhall.engine.frametypes import (
    Ack,
    Call,
    Content,
    InputEntry,
    Inputs,
    Message,
    Reply,
    ReplyError,
    Unreliable,
    Write,
    WriteEntry,
)
from playhall.engine.inputs import Input, input_of, input_spec_of, input_values
from playhall.engine.payloads import MAX_PAYLOAD, Payload, decode_payload, encode_payload
from playhall.engine.schema import Schema
from playhall.engine.updates import masked_values, write_masked
from playhall.engine.wire import Reader, Writer

__all__ = [
    "read_ack",
    "read_call",
    "read_client_message",
    "read_client_unreliable",
    "read_inputs",
    "read_reply",
    "read_server_message",
    "read_server_unreliable",
    "read_write",
    "write_ack",
    "write_call",
    "write_client_message",
    "write_inputs",
    "write_reply",
    "write_reply_error",
    "write_server_message",
    "write_write",
]

MAX_CALL_NAME: Final = 64
MAX_ERROR_TEXT: Final = 4_096
MAX_INPUTS: Final = 5

# Flags
ERROR: Final = 4  # reply
COMPACT: Final = 1  # inputs


def _write_seen(out: Writer, seen: int | None) -> None:
    out.varint53(0 if seen is None else seen + 1)


def _read_seen(source: Reader) -> int | None:
    seen = source.varint53()
    return seen - 1 if seen else None


def _payload_of(content: Content) -> Payload:
    return content if isinstance(content, Payload) else encode_payload(content)


def _write_content(out: Writer, content: Content) -> None:
    payload = _payload_of(content)
    out.u8(payload.format)
    out.raw(payload.data)


def write_client_message(out: Writer, frame: Message | Unreliable) -> None:
    _write_seen(out, frame.seen)
    _write_content(out, frame.content)


def read_client_message(source: Reader) -> Message:
    seen = _read_seen(source)
    return Message(decode_payload(source.u8(), source.rest(), from_client=True), seen)


def read_client_unreliable(source: Reader) -> Unreliable:
    seen = _read_seen(source)
    return Unreliable(decode_payload(source.u8(), source.rest(), from_client=True), seen)


def write_server_message(out: Writer, frame: Message | Unreliable) -> None:
    _write_content(out, frame.content)


def read_server_message(source: Reader) -> Message:
    return Message(decode_payload(source.u8(), source.rest()))


def read_server_unreliable(source: Reader) -> Unreliable:
    return Unreliable(decode_payload(source.u8(), source.rest()))


def write_call(out: Writer, frame: Call) -> None:
    out.varint32(frame.call)
    _write_seen(out, frame.seen)
    if len(frame.name.encode()) > MAX_CALL_NAME:
        raise ValueError(f"a call's name has at most {MAX_CALL_NAME} bytes")
    out.str(frame.name)
    _write_content(out, frame.content)


def read_call(source: Reader) -> Call:
    call, seen, name = source.varint32(), _read_seen(source), source.str(MAX_CALL_NAME)
    return Call(call, seen, name, decode_payload(source.u8(), source.rest(), from_client=True))


def write_reply(out: Writer, frame: Reply) -> None:
    out.varint32(frame.call)
    _write_content(out, frame.content)


def write_reply_error(out: Writer, frame: ReplyError) -> None:
    out.varint32(frame.call)
    out.u8(ERROR)
    out.u16(frame.code)
    text = frame.text.encode(errors="replace")[:MAX_ERROR_TEXT]
    out.raw(text.decode(errors="ignore").encode())


def read_reply(source: Reader) -> Reply | ReplyError:
    call, flags = source.varint32(), source.u8()
    if not flags & ERROR:
        return Reply(call, decode_payload(flags, source.rest()))
    if flags != ERROR:
        raise ProtocolError(f"unknown flags {flags:#x}")
    code, text = source.u16(), source.rest()
    if len(text) > MAX_ERROR_TEXT:
        raise ProtocolError(f"an error of {len(text)} bytes, over {MAX_ERROR_TEXT}")
    try:
        return ReplyError(call, code, text.decode())
    except UnicodeDecodeError:
        raise ProtocolError("an error whose text is not UTF-8") from None


def write_inputs(out: Writer, frame: Inputs) -> None:
    if not 1 <= len(frame.entries) <= MAX_INPUTS:
        raise ValueError(f"1 to {MAX_INPUTS} inputs, not {len(frame.entries)}")
    compact = isinstance(frame.entries[0].value, Input)
    out.u8(COMPACT * compact)
    out.u8(len(frame.entries))
    before: int | None = None
    for entry in frame.entries:
        if before is None:
            out.varint53(entry.tick)
        else:
            out.varint32(before - entry.tick)
        before = entry.tick
        out.varint32(0 if entry.lag is None else entry.lag + 1)
        _write_input(out, entry.value, compact)


def _write_input(out: Writer, value: object, compact: bool) -> None:
    if not compact:
        out.blob(jsontext.encode(value))
        return
    if not isinstance(value, Input):
        raise ValueError("inputs are all compact, or none is")
    for field, stored in zip(input_spec_of(type(value)).fields, input_values(value), strict=True):
        field.type.encode(out, stored)


def read_inputs(source: Reader, schema: Schema[Any, Any]) -> Inputs:
    flags, count = source.u8(), source.u8()
    if flags & ~COMPACT:
        raise ProtocolError(f"unknown flags {flags:#x}")
    if not 1 <= count <= MAX_INPUTS:
        raise ProtocolError(f"{count} inputs in a frame")
    if flags & COMPACT and schema.input is None:
        raise ProtocolError("a compact input, and the schema has none")
    entries: list[InputEntry] = []
    tick = 0
    for n in range(count):
        tick = _read_input_tick(source, tick) if n else source.varint53()
        lag = source.varint32()
        value = _read_compact(source, schema) if flags & COMPACT else _read_json(source)
        entries.append(InputEntry(tick, lag - 1 if lag else None, value))
    return Inputs(tuple(entries))


def _read_input_tick(source: Reader, after: int) -> int:
    step = source.varint32()
    if not 1 <= step <= after:
        raise ProtocolError("the ticks of inputs do not descend")
    return after - step


def _read_compact(source: Reader, schema: Schema[Any, Any]) -> Input:
    assert schema.input is not None
    fields = input_spec_of(schema.input).fields
    return input_of(schema.input, tuple(field.type.decode(source, from_client=True) for field in fields))


def _read_json(source: Reader) -> Any:
    return decode_payload(0, source.blob(MAX_PAYLOAD), from_client=True)


def write_ack(out: Writer, frame: Ack) -> None:
    out.varint53(frame.tick)
    out.varint53(frame.input)
    out.zigzag(frame.slack)


def read_ack(source: Reader) -> Ack:
    return Ack(source.varint53(), source.varint53(), source.zigzag())


def write_write(out: Writer, frame: Write) -> None:
    if not frame.entries:
        raise ValueError("a write has at least one entry")
    out.varint32(frame.seen)
    out.varint32(len(frame.entries))
    for entry in frame.entries:
        out.varint32(entry.id)
        out.varint32(entry.number)
        write_masked(out, entry.spec, entry.values)


def read_write(source: Reader, schema: Schema[Any, Any]) -> Write:
    seen, count = source.varint32(), source.varint32()
    if not 1 <= count <= source.left:
        raise ProtocolError(f"{count} writes in {source.left} bytes")
    entries = []
    for _ in range(count):
        id, number = source.varint32(), source.varint32()
        if number >= len(schema.kinds):
            raise ProtocolError(f"no kind has number {number}")
        spec = schema.kinds[number]
        entries.append(WriteEntry(id, number, spec, masked_values(source, spec, from_client=True)))
    return Write(seen, tuple(entries))
