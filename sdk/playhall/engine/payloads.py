"""What messages, calls and replies carry: JSON or bytes, from a server perhaps compressed."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, Final

from playhall.engine import jsontext
from playhall.engine.errors import ProtocolError, SizeLimitError

__all__ = [
    "MAX_PAYLOAD",
    "MIN_COMPRESSED",
    "Payload",
    "compress",
    "decode_payload",
    "encode_payload",
    "inflate",
]

MAX_PAYLOAD: Final = 65_536
MIN_COMPRESSED: Final = 1_024
"""What has fewer bytes is not worth a try."""

BYTES: Final = 1
DEFLATED: Final = 2


@dataclass(frozen=True, slots=True)
class Payload:
    """A content, encoded: many frames can share it. `format` is the byte that says how to read it."""

    format: int
    data: bytes


def encode_payload(content: object, *, compressed: bool = False) -> Payload:
    """Encode JSON or bytes. `compressed` is for servers, and only where the payload goes to several
    receivers.

    Raises TypeError where the content is neither, and ValueError where it has over 65,536 bytes.
    """
    if isinstance(content, bytes | bytearray | memoryview):
        format, data = BYTES, bytes(content)
    else:
        format, data = 0, jsontext.encode(content)
    if len(data) > MAX_PAYLOAD:
        raise ValueError(f"{len(data)} bytes, and a message or call has at most {MAX_PAYLOAD}")
    if compressed and (packed := compress(data)) is not None:
        return Payload(format | DEFLATED, packed)
    return Payload(format, data)


def decode_payload(format: int, data: bytes, *, from_client: bool = False) -> Any:
    """Return the content: what JSON holds, or bytes. Raises ProtocolError."""
    if format & ~(BYTES | DEFLATED) or (from_client and format & DEFLATED):
        raise ProtocolError(f"unknown format {format:#x}")
    if format & DEFLATED:
        data = inflate(data, MAX_PAYLOAD)
    elif len(data) > MAX_PAYLOAD:
        raise SizeLimitError(f"a payload of {len(data)} bytes, over {MAX_PAYLOAD}")
    if format & BYTES:
        return data
    try:
        return jsontext.decode(data)
    except ValueError as error:
        raise ProtocolError(str(error)) from None


def compress(data: bytes) -> bytes | None:
    """Return raw DEFLATE of the data, or None where it is too short or would not shrink by a tenth."""
    if len(data) < MIN_COMPRESSED:
        return None
    deflate = zlib.compressobj(level=6, wbits=-zlib.MAX_WBITS)
    packed = deflate.compress(data) + deflate.flush()
    return packed if len(packed) * 10 <= len(data) * 9 else None


def inflate(data: bytes, limit: int) -> bytes:
    """Return what raw DEFLATE holds, and unpack no more than `limit` bytes. Raises ProtocolError."""
    stream = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    try:
        unpacked = stream.decompress(data, limit + 1)
    except zlib.error as error:
        raise ProtocolError(f"not DEFLATE: {error}") from None
    if len(unpacked) > limit:
        raise ProtocolError(f"inflates to over {limit} bytes")
    if not stream.eof or stream.unused_data:
        raise ProtocolError("not one whole DEFLATE stream")
    return unpacked
