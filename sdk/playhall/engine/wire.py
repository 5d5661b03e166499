"""The values of docs/protocol/values.md, to bytes and back.

A `Writer` trusts its caller: values out of range are a fault of the caller's, and raise what `struct` raises.
A `Reader` trusts nobody: whatever bytes it is given, it returns a value or raises ProtocolError, and it
allocates nothing that the bytes at hand do not pay for.
"""

from __future__ import annotations

import struct

from playhall.engine.errors import ProtocolError

__all__ = ["VARINT32_MAX", "VARINT53_MAX", "Reader", "Writer", "varint", "varint_size"]

VARINT32_MAX = 2**32 - 1
VARINT53_MAX = 2**53 - 1
MASK_GROUP = 7

_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_I8 = struct.Struct("<b")
_I16 = struct.Struct("<h")
_I32 = struct.Struct("<i")
_F32 = struct.Struct("<f")
_F64 = struct.Struct("<d")

_ONE_BYTE = tuple(bytes((value,)) for value in range(0x80))


def varint(value: int) -> bytes:
    """Return the shortest LEB128 form of a number from 0."""
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    if value < 0:
        raise ValueError(f"{value} is negative, and a varint is not")
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint_size(value: int) -> int:
    """Return how many bytes `varint(value)` has."""
    return 1 if value < 0x80 else (value.bit_length() + 6) // 7


class Writer:
    """Collects values into one bytes object."""

    __slots__ = ("_out",)

    def __init__(self) -> None:
        self._out = bytearray()

    def __len__(self) -> int:
        return len(self._out)

    def finish(self) -> bytes:
        """Return all that was written."""
        return bytes(self._out)

    def raw(self, data: bytes) -> None:
        """Append bytes as they are; at the end of a body this is `rest`."""
        self._out += data

    def u8(self, value: int) -> None:
        self._out.append(value)

    def u16(self, value: int) -> None:
        self._out += _U16.pack(value)

    def u32(self, value: int) -> None:
        self._out += _U32.pack(value)

    def i8(self, value: int) -> None:
        self._out += _I8.pack(value)

    def i16(self, value: int) -> None:
        self._out += _I16.pack(value)

    def i32(self, value: int) -> None:
        self._out += _I32.pack(value)

    def f32(self, value: float) -> None:
        self._out += _F32.pack(value)

    def f64(self, value: float) -> None:
        self._out += _F64.pack(value)

    def varint32(self, value: int) -> None:
        if value > VARINT32_MAX:
            raise ValueError(f"{value} does not fit a varint32")
        self._out += varint(value)

    def varint53(self, value: int) -> None:
        if value > VARINT53_MAX:
            raise ValueError(f"{value} does not fit a varint53")
        self._out += varint(value)

    def zigzag(self, value: int) -> None:
        if not -(2**31) <= value < 2**31:
            raise ValueError(f"{value} does not fit a zigzag of 32 bits")
        self._out += varint((value << 1) ^ (value >> 31))

    def str(self, value: str) -> None:
        self.blob(value.encode())

    def blob(self, value: bytes) -> None:
        self._out += varint(len(value))
        self._out += value

    def mask(self, bits: int) -> None:
        """Write a mask, given as a number with bit n for field n. It cannot be empty."""
        if bits <= 0:
            raise ValueError("a mask has at least one field")
        # Grouping by sevens with a continuation bit is LEB128 without its upper bound.
        self._out += varint(bits)


class Reader:
    """Takes values from the front of a bytes object."""

    __slots__ = ("_data", "_end", "_pos")

    def __init__(self, data: bytes, start: int = 0) -> None:
        self._data = data
        self._pos = start
        self._end = len(data)

    @property
    def left(self) -> int:
        """How many bytes have not been read."""
        return self._end - self._pos

    def done(self) -> None:
        """Raise ProtocolError unless every byte has been read."""
        if self._pos != self._end:
            raise ProtocolError(f"{self._end - self._pos} surplus bytes")

    def raw(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        start = self._advance(size)
        return self._data[start : self._pos]

    def rest(self) -> bytes:
        """Return all bytes that are left."""
        start, self._pos = self._pos, self._end
        return self._data[start:]

    def u8(self) -> int:
        return self._data[self._advance(1)]

    def bit(self) -> bool:
        """Read a u8 that must be 0 or 1."""
        value = self.u8()
        if value > 1:
            raise ProtocolError(f"{value} is no bool")
        return value == 1

    def u16(self) -> int:
        value: int = _U16.unpack_from(self._data, self._advance(2))[0]
        return value

    def u32(self) -> int:
        value: int = _U32.unpack_from(self._data, self._advance(4))[0]
        return value

    def i8(self) -> int:
        value: int = _I8.unpack_from(self._data, self._advance(1))[0]
        return value

    def i16(self) -> int:
        value: int = _I16.unpack_from(self._data, self._advance(2))[0]
        return value

    def i32(self) -> int:
        value: int = _I32.unpack_from(self._data, self._advance(4))[0]
        return value

    def f32(self) -> float:
        value: float = _F32.unpack_from(self._data, self._advance(4))[0]
        return value

    def f64(self) -> float:
        value: float = _F64.unpack_from(self._data, self._advance(8))[0]
        return value

    def varint32(self) -> int:
        return self._varint(5, VARINT32_MAX)

    def varint53(self) -> int:
        return self._varint(8, VARINT53_MAX)

    def zigzag(self) -> int:
        value = self._varint(5, VARINT32_MAX)
        return (value >> 1) ^ -(value & 1)

    def str(self, limit: int = VARINT32_MAX) -> str:
        """Read a text of at most `limit` bytes."""
        try:
            return self.blob(limit).decode()
        except UnicodeDecodeError as error:
            raise ProtocolError(f"not UTF-8: {error.reason}") from None

    def blob(self, limit: int = VARINT32_MAX) -> bytes:
        """Read a length and that many bytes, at most `limit`."""
        size = self._varint(5, VARINT32_MAX)
        if size > limit:
            raise ProtocolError(f"{size} bytes where at most {limit} are allowed")
        start = self._advance(size)
        return self._data[start : self._pos]

    def mask(self, fields: int) -> int:
        """Read the mask of a kind with that many fields: a number with bit n for field n."""
        bits = self._varint((fields + MASK_GROUP - 1) // MASK_GROUP, (1 << fields) - 1)
        if bits == 0:
            raise ProtocolError("an empty mask")
        return bits

    def _advance(self, size: int) -> int:
        start = self._pos
        if size > self._end - start:
            raise ProtocolError(f"{size} bytes expected, {self._end - start} left")
        self._pos = start + size
        return start

    def _varint(self, most: int, highest: int) -> int:
        data, start = self._data, self._pos
        if start < self._end and most and data[start] < 0x80:
            self._pos = start + 1
            value = data[start]
        else:
            value = self._long_varint(most)
        if value > highest:
            raise ProtocolError(f"{value} is above {highest}")
        return value

    def _long_varint(self, most: int) -> int:
        value = 0
        for n in range(most):
            byte = self.u8()
            value |= (byte & 0x7F) << 7 * n
            if byte < 0x80:
                if byte == 0 and n:
                    raise ProtocolError("a number that is not in its shortest form")
                return value
        raise ProtocolError(f"a number of over {most} bytes")
