"""Field types: what a field holds, which values fit, and their bytes.

A field type is an annotation that a checker reads as the plain Python type (`u8` is `int`), and that carries
at run time the `FieldType` which does the work. A field's *stored* value is what `accept` returned or
`decode` read; it is what room code reads too, except for Json, whose stored value is a `JsonValue`.
"""

from __future__ import annotations

import math
import numbers
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec

from playhall.engine import jsontext
from playhall.engine.errors import ProtocolError
from playhall.engine.wire import Reader, Writer, varint_size

__all__ = [
    "MAX_BYTES",
    "MAX_JSON",
    "MAX_STR",
    "BytesType",
    "FieldType",
    "Flag",
    "Json",
    "JsonValue",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "owner_only",
    "patched",
    "q8",
    "q16",
    "u8",
    "u16",
    "u32",
    "writable",
]

MAX_STR: Final = 16_384
MAX_BYTES: Final = 49_152
MAX_JSON: Final = 16_384

T = TypeVar("T")

_F32 = struct.Struct("<f")
_F64 = struct.Struct("<d")


class FieldType(ABC):
    """What one kind of field holds. Stateless: one instance serves every field of the type.

    `name` is that of values.md. `zero` is the stored value that nobody has to send. `fixed_size` is how many
    bytes every value takes, or None where that depends on the value.
    """

    name: str
    zero: Any
    fixed_size: int | None

    @property
    def canonical(self) -> str:
        """The name that goes into a schema's hash: the type with its range, if it has one."""
        return self.name

    @abstractmethod
    def accept(self, value: object) -> Any:
        """Return the stored form of a value. Raises TypeError or ValueError where it does not fit."""

    def load(self, stored: Any) -> Any:
        """Return what room code reads, given the stored form."""
        return stored

    @abstractmethod
    def same(self, a: Any, b: Any) -> bool:
        """Whether two stored values are one value, so that replacing one by the other changes nothing."""

    @abstractmethod
    def encode(self, out: Writer, stored: Any) -> None:
        """Write a stored value."""

    @abstractmethod
    def decode(self, source: Reader, from_client: bool = False) -> Any:
        """Read a stored value. Raises ProtocolError. Clients may not send all that rooms may."""

    def size(self, stored: Any) -> int:
        """Return how many bytes `encode` writes."""
        assert self.fixed_size is not None, f"{self.name} has no fixed size"
        return self.fixed_size

    def __repr__(self) -> str:
        return self.canonical


def _wrong_type(expected: str, value: object) -> TypeError:
    return TypeError(f"must be {expected}, not {type(value).__name__}")


class BoolType(FieldType):
    """True or False, and no number in their place."""

    name = "bool"
    zero = False
    fixed_size = 1

    def accept(self, value: object) -> bool:
        if isinstance(value, bool):
            return value
        # A mask's elements are of NumPy's own class, which is registered as no number or bool.
        if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
            return bool(value)
        raise _wrong_type("bool", value)

    def same(self, a: bool, b: bool) -> bool:
        return a is b

    def encode(self, out: Writer, stored: bool) -> None:
        out.u8(stored)

    def decode(self, source: Reader, from_client: bool = False) -> bool:
        return source.bit()


class IntType(FieldType):
    """An integer of 1, 2 or 4 bytes. Nothing wraps: what is out of range is refused."""

    zero = 0

    def __init__(
        self, name: str, write: Callable[[Writer, int], None], read: Callable[[Reader], int]
    ) -> None:
        bits = int(name[1:])
        self.name = name
        self.fixed_size = bits // 8
        signed = name[0] == "i"
        self.lo = -(1 << bits - 1) if signed else 0
        self.hi = (1 << bits - signed) - 1
        self._write, self._read = write, read

    def accept(self, value: object) -> int:
        if type(value) is not int:
            if isinstance(value, bool) or not isinstance(value, numbers.Integral):
                raise _wrong_type("int", value)
            value = int(value)
        if not self.lo <= value <= self.hi:
            raise ValueError(f"{value} is outside {self.name}, {self.lo} to {self.hi}")
        return value

    def same(self, a: int, b: int) -> bool:
        return a == b

    def encode(self, out: Writer, stored: int) -> None:
        self._write(out, stored)

    def decode(self, source: Reader, from_client: bool = False) -> int:
        return self._read(source)


class FloatType(FieldType):
    """A float of 4 or 8 bytes. Room code may store NaN and infinities; clients may not."""

    zero = 0.0

    def __init__(self, bits: struct.Struct) -> None:
        self.fixed_size = bits.size
        self.name = f"f{bits.size * 8}"
        self._bits = bits

    def accept(self, value: object) -> float:
        number = _as_float(value)
        if self._bits is _F64:
            return number
        try:
            rounded: float = _F32.unpack(_F32.pack(number))[0]
        except OverflowError:
            raise ValueError(f"{number} is outside f32") from None
        return rounded

    def same(self, a: float, b: float) -> bool:
        # By bits: NaN is no change to NaN, and -0.0 is one to 0.0.
        if a == b:
            return a != 0.0 or math.copysign(1.0, a) == math.copysign(1.0, b)
        return a != a and b != b and self._bits.pack(a) == self._bits.pack(b)

    def encode(self, out: Writer, stored: float) -> None:
        out.raw(self._bits.pack(stored))

    def decode(self, source: Reader, from_client: bool = False) -> float:
        value = source.f64() if self._bits is _F64 else source.f32()
        if from_client and not math.isfinite(value):
            raise ProtocolError(f"{value} from a client")
        return value


class QuantisedType(FieldType):
    """A float in equal steps between two bounds, held as the value of its step on every side."""

    def __init__(self, bits: int, lo: float, hi: float) -> None:
        self.name = f"q{bits}"
        self.lo, self.hi = _as_float(lo), _as_float(hi)
        if not (math.isfinite(self.lo) and math.isfinite(self.hi) and self.lo < self.hi):
            raise ValueError(f"{self.name}({lo}, {hi}): the bounds must be finite, the lower one first")
        if not math.isfinite(self.hi - self.lo):
            raise ValueError(f"{self.name}({lo}, {hi}): the bounds are too far apart")
        self.fixed_size = bits // 8
        self.steps = (1 << bits) - 1
        self.zero = self.value_of(self.step_of(min(max(0.0, self.lo), self.hi)))

    @property
    def canonical(self) -> str:
        return ":".join((self.name, *(struct.pack(">d", bound).hex() for bound in (self.lo, self.hi))))

    def value_of(self, step: int) -> float:
        """Return the value of a step."""
        if step == self.steps:
            return self.hi
        return self.lo + (self.hi - self.lo) * (step / self.steps)

    def step_of(self, value: float) -> int:
        """Return the step nearest to a value between the bounds."""
        return math.floor((value - self.lo) / (self.hi - self.lo) * self.steps + 0.5)

    def accept(self, value: object) -> float:
        number = _as_float(value)
        if not self.lo <= number <= self.hi:
            raise ValueError(f"{number} is outside {self.name}, {self.lo} to {self.hi}")
        return self.value_of(self.step_of(number))

    def same(self, a: float, b: float) -> bool:
        return a == b

    def encode(self, out: Writer, stored: float) -> None:
        step = self.step_of(stored)
        if self.fixed_size == 1:
            out.u8(step)
        else:
            out.u16(step)

    def decode(self, source: Reader, from_client: bool = False) -> float:
        return self.value_of(source.u8() if self.fixed_size == 1 else source.u16())


class StrType(FieldType):
    """Text of at most 16,384 bytes of UTF-8."""

    name = "str"
    zero = ""
    fixed_size = None

    def accept(self, value: object) -> str:
        if not isinstance(value, str):
            raise _wrong_type("str", value)
        text = str.__str__(value)
        try:
            size = _utf8_size(text)
        except UnicodeEncodeError:
            raise ValueError("text with a lone surrogate is not Unicode") from None
        if size > MAX_STR:
            raise ValueError(f"{size} bytes of UTF-8, and at most {MAX_STR} fit")
        return text

    def same(self, a: str, b: str) -> bool:
        return a == b

    def encode(self, out: Writer, stored: str) -> None:
        out.str(stored)

    def decode(self, source: Reader, from_client: bool = False) -> str:
        return source.str(MAX_STR)

    def size(self, stored: str) -> int:
        size = _utf8_size(stored)
        return varint_size(size) + size


class BytesType(FieldType):
    """At most 49,152 bytes. The only type that can be patched."""

    name = "bytes"
    zero = b""
    fixed_size = None

    def accept(self, value: object) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise _wrong_type("bytes", value)
        data = bytes(value)
        if len(data) > MAX_BYTES:
            raise ValueError(f"{len(data)} bytes, and at most {MAX_BYTES} fit")
        return data

    def same(self, a: bytes, b: bytes) -> bool:
        return a == b

    def encode(self, out: Writer, stored: bytes) -> None:
        out.blob(stored)

    def decode(self, source: Reader, from_client: bool = False) -> bytes:
        return source.blob(MAX_BYTES)

    def size(self, stored: bytes) -> int:
        return varint_size(len(stored)) + len(stored)


class JsonValue:
    """A Json field's stored value: the object as room code gave it, and the text that was made of it then.

    The text is what counts. It is sent and saved, and it tells whether the object was changed in place since.
    """

    __slots__ = ("data", "value")

    def __init__(self, value: Any, data: bytes) -> None:
        self.value = value
        self.data = data

    @classmethod
    def parse(cls, data: bytes) -> JsonValue:
        """Make one from its text. Raises ValueError."""
        return cls(jsontext.decode(data), data)

    def mutated(self) -> bool:
        """Whether the object was changed in place, which nothing sends or saves."""
        try:
            return self.data != jsontext.encode(self.value)
        except (TypeError, ValueError):
            return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JsonValue) and JSON.same(self, other)

    def __repr__(self) -> str:
        return f"JsonValue({self.data.decode()})"


class JsonType(FieldType):
    """JSON of at most 16,384 bytes of text, replaced whole and compared by structure."""

    name = "json"
    zero = JsonValue(None, b"null")
    fixed_size = None

    def accept(self, value: object) -> JsonValue:
        data = jsontext.encode(value)
        if len(data) > MAX_JSON:
            raise ValueError(f"{len(data)} bytes of JSON, and at most {MAX_JSON} fit")
        return JsonValue(value, data)

    def load(self, stored: JsonValue) -> Any:
        return stored.value

    def same(self, a: JsonValue, b: JsonValue) -> bool:
        return a.data == b.data or jsontext.same(jsontext.decode(a.data), jsontext.decode(b.data))

    def encode(self, out: Writer, stored: JsonValue) -> None:
        out.blob(stored.data)

    def decode(self, source: Reader, from_client: bool = False) -> JsonValue:
        try:
            return JsonValue.parse(source.blob(MAX_JSON))
        except ProtocolError:
            raise
        except ValueError as error:
            raise ProtocolError(str(error)) from None

    def size(self, stored: JsonValue) -> int:
        return varint_size(len(stored.data)) + len(stored.data)


def patched(old: bytes, offset: int, data: bytes) -> bytes:
    """Return `old` with `data` written at `offset`, zero-filling a gap: what a patch means, on every side.

    Raises ValueError where the result would pass the limit of a bytes field, before it is made.
    """
    size = max(len(old), offset + len(data))
    if size > MAX_BYTES:
        raise ValueError(f"{size} bytes, and at most {MAX_BYTES} fit")
    return old[:offset].ljust(offset, b"\0") + data + old[offset + len(data) :]


def _utf8_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _as_float(value: object) -> float:
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | numbers.Real):
        raise _wrong_type("float", value)
    try:
        return float(value)
    except OverflowError:
        raise ValueError("an integer that no float can hold") from None


@dataclass(frozen=True)
class Flag:
    """What an annotation says of a field beside its type."""

    name: str


BOOL: Final = BoolType()
STR: Final = StrType()
BYTES: Final = BytesType()
JSON: Final = JsonType()
F32: Final = FloatType(_F32)
F64: Final = FloatType(_F64)
U8: Final = IntType("u8", Writer.u8, Reader.u8)
U16: Final = IntType("u16", Writer.u16, Reader.u16)
U32: Final = IntType("u32", Writer.u32, Reader.u32)
I8: Final = IntType("i8", Writer.i8, Reader.i8)
I16: Final = IntType("i16", Writer.i16, Reader.i16)
I32: Final = IntType("i32", Writer.i32, Reader.i32)
WRITABLE: Final = Flag("writable")
OWNER_ONLY: Final = Flag("owner_only")

PLAIN: Final[dict[type, FieldType]] = {bool: BOOL, str: STR, bytes: BYTES}
"""The types that are written as what they are."""

# msgspec.Meta makes the ranges hold in calls too, whose arguments msgspec decodes.
u8: TypeAlias = Annotated[int, msgspec.Meta(ge=U8.lo, le=U8.hi), U8]
"""An integer from 0 to 255, in one byte. What does not fit is refused."""
u16: TypeAlias = Annotated[int, msgspec.Meta(ge=U16.lo, le=U16.hi), U16]
"""An integer from 0 to 65,535, in two bytes. What does not fit is refused."""
u32: TypeAlias = Annotated[int, msgspec.Meta(ge=U32.lo, le=U32.hi), U32]
"""An integer from 0 to 4,294,967,295, in four bytes. What does not fit is refused."""
i8: TypeAlias = Annotated[int, msgspec.Meta(ge=I8.lo, le=I8.hi), I8]
"""An integer from -128 to 127, in one byte. What does not fit is refused."""
i16: TypeAlias = Annotated[int, msgspec.Meta(ge=I16.lo, le=I16.hi), I16]
"""An integer from -32,768 to 32,767, in two bytes. What does not fit is refused."""
i32: TypeAlias = Annotated[int, msgspec.Meta(ge=I32.lo, le=I32.hi), I32]
"""An integer from -2,147,483,648 to 2,147,483,647, in four bytes. What does not fit is refused."""
f32: TypeAlias = Annotated[float, F32]
"""A float of four bytes. Writes are rounded to it, in the room as in clients; what overflows is refused."""
f64: TypeAlias = Annotated[float, F64]
"""A float of eight bytes, as Python's own."""
Json = Annotated[T, JSON]
"""Anything JSON encodes, in at most 16 KB; T is for checkers. Assign it, do not change it in place."""
writable = Annotated[T, WRITABLE]
"""A field that the entity's owner may write from its client: `volume: writable[u8] = 5`."""
owner_only = Annotated[T, OWNER_ONLY]
"""A field for the entity's owner alone: `coins: owner_only[u32] = 10`. Others hold the type's zero.

Of an entity that nobody owns, it is never sent.
"""


def q8(lo: float, hi: float) -> QuantisedType:
    """A float in 255 steps and one byte: `heading: Annotated[float, q8(0, 360)]`."""
    return QuantisedType(8, lo, hi)


def q16(lo: float, hi: float) -> QuantisedType:
    """A float in 65,535 equal steps from `lo` to `hi`, in two bytes: `x: Annotated[float, q16(0, 2000)]`.

    A write goes to the nearest step, in the room as in clients; one out of bounds is refused.
    """
    return QuantisedType(16, lo, hi)
