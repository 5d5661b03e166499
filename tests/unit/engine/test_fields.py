"""Field types: what fits and what does not, at the exact edges; and their bytes."""

from __future__ import annotations

import enum
import math
import struct
from fractions import Fraction
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall.engine import fields
from playhall.engine.errors import ProtocolError
from playhall.engine.fields import FieldType, JsonValue, patched, q8, q16
from playhall.engine.wire import Reader, Writer

BOOL, STR, BYTES, JSON = fields.BOOL, fields.STR, fields.BYTES, fields.JSON


def type_of(annotation: Any) -> FieldType:
    return next(mark for mark in get_args(annotation) if isinstance(mark, FieldType))


F32, F64 = type_of(fields.f32), type_of(fields.f64)
INTS = {
    "u8": (0, 255),
    "u16": (0, 65_535),
    "u32": (0, 2**32 - 1),
    "i8": (-128, 127),
    "i16": (-32_768, 32_767),
    "i32": (-(2**31), 2**31 - 1),
}


def encoded(field: FieldType, value: Any) -> bytes:
    out = Writer()
    field.encode(out, field.accept(value))
    return out.finish()


def assert_comes_back(field: FieldType, value: Any, size: int | None = None) -> None:
    """What was accepted is what the other side holds, from a server and from a client."""
    stored = field.accept(value)
    data = encoded(field, value)
    assert len(data) == field.size(stored)
    if size is not None:
        assert len(data) == size
    for from_client in (False, True):
        source = Reader(data)
        back = field.decode(source, from_client)
        source.done()
        assert field.same(stored, back)
        assert field.load(back) == field.load(stored)


@pytest.mark.ledger("SCHM-04")
def test_bool() -> None:
    for value in (True, False):
        assert_comes_back(BOOL, value, size=1)
    for other in (0, 1, None, "x", 1.0):
        with pytest.raises(TypeError, match="must be bool"):
            BOOL.accept(other)
    with pytest.raises(ProtocolError):
        BOOL.decode(Reader(b"\x02"))


@pytest.mark.ledger("SCHM-05", "SCHM-06")
@pytest.mark.parametrize("name", INTS)
def test_an_int_has_its_range_and_not_one_more(name: str) -> None:
    field = type_of(getattr(fields, name))
    lo, hi = INTS[name]
    for value in (lo, lo + 1, 0, hi - 1, hi):
        assert_comes_back(field, value, size=int(name[1:]) // 8)
    for value in (lo - 1, hi + 1, 10**40):
        with pytest.raises(ValueError, match=name):
            field.accept(value)


class Level(enum.IntEnum):
    HARD = 3


def test_an_int_is_an_int() -> None:
    field = type_of(fields.u8)
    for other in (True, False, 1.0, "1", None, Fraction(1), b"\x01"):
        with pytest.raises(TypeError, match="must be int"):
            field.accept(other)
    assert field.accept(Level.HARD) == 3
    assert type(field.accept(Level.HARD)) is int


@pytest.mark.ledger("SCHM-07")
def test_f32_rounds_once_and_refuses_what_overflows() -> None:
    assert F32.accept(0.1) == 0.10000000149011612
    assert F32.accept(F32.accept(0.1)) == F32.accept(0.1)
    assert F32.accept(16_777_217) == 16_777_216.0
    assert F32.accept(1e-50) == 0.0
    largest = 3.4028234663852886e38
    assert F32.accept(largest) == F32.accept(-largest) * -1 == largest
    for value in (3.5e38, -1e300, 10**40):
        with pytest.raises(ValueError, match="f32"):
            F32.accept(value)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_f32_comes_back(value: float) -> None:
    assert F32.accept(value) == value
    assert_comes_back(F32, value, size=4)


@pytest.mark.ledger("SCHM-08")
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_f64_comes_back_unrounded(value: float) -> None:
    assert F64.accept(value) == value
    assert_comes_back(F64, value, size=8)


@pytest.mark.parametrize("field", [F32, F64])
def test_floats_are_compared_by_their_bits(field: FieldType) -> None:
    assert field.same(math.nan, math.nan)
    assert not field.same(0.0, -0.0)
    assert field.same(-0.0, -0.0)
    assert not field.same(math.nan, 0.0)
    assert not field.same(math.inf, -math.inf)


@pytest.mark.parametrize("field", [F32, F64])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_rooms_may_store_what_is_not_finite_and_clients_may_not(field: FieldType, value: float) -> None:
    data = encoded(field, value)
    assert field.same(field.decode(Reader(data)), field.accept(value))
    with pytest.raises(ProtocolError, match="from a client"):
        field.decode(Reader(data), from_client=True)


@pytest.mark.parametrize("field", [F32, F64, q8(0, 1), q16(0, 1)])
def test_a_float_is_a_number_and_no_bool(field: FieldType) -> None:
    for other in (True, "1", None, 1j, b""):
        with pytest.raises(TypeError, match="must be float"):
            field.accept(other)
    assert field.accept(1) == 1.0
    assert type(field.accept(1)) is float
    assert field.accept(Fraction(1)) == 1.0
    with pytest.raises(ValueError):
        field.accept(10**400)


@pytest.mark.ledger("SCHM-09")
@pytest.mark.parametrize(
    "text", ["a" * 16_384, "é" * 8_192, "🎲" * 4_096, "a" * 255, "a" * 256, "", "👩‍🚀 Zoë\0"]
)
def test_text_up_to_16_kb_of_utf8(text: str) -> None:
    assert_comes_back(STR, text)


@pytest.mark.ledger("SCHM-09")
@pytest.mark.parametrize("text", ["a" * 16_385, "é" * 8_192 + "a", "🎲" * 4_097])
def test_one_byte_more_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="at most 16384"):
        STR.accept(text)
    out = Writer()
    out.str(text)
    with pytest.raises(ProtocolError, match="16384"):
        STR.decode(Reader(out.finish()))


def test_text_is_unicode_text() -> None:
    with pytest.raises(ValueError, match="surrogate"):
        STR.accept("ab\ud800")
    for other in (b"ab", 1, None, ["a"]):
        with pytest.raises(TypeError, match="must be str"):
            STR.accept(other)
    assert type(STR.accept(enum.StrEnum("E", {"A": "a"}).A)) is str  # type: ignore[attr-defined]


@pytest.mark.ledger("SCHM-10")
@pytest.mark.parametrize("size", [0, 1, 255, 256, 49_151, 49_152])
def test_bytes_up_to_48_kb(size: int) -> None:
    for make in (bytes, bytearray, lambda data: memoryview(bytes(data))):
        assert_comes_back(BYTES, make(b"x" * size))


@pytest.mark.ledger("SCHM-10")
def test_one_more_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 49152"):
        BYTES.accept(bytes(49_153))
    out = Writer()
    out.blob(bytes(49_153))
    with pytest.raises(ProtocolError, match="49152"):
        BYTES.decode(Reader(out.finish()))
    for other in ("ab", 3, [1], None):
        with pytest.raises(TypeError, match="must be bytes"):
            BYTES.accept(other)


def test_bytes_are_copied() -> None:
    given_ = bytearray(b"ab")
    stored = BYTES.accept(given_)
    given_[0] = 0
    assert stored == b"ab"


@pytest.mark.ledger("ENT-13", "ENT-14")
@pytest.mark.parametrize(
    ("old", "offset", "data", "new"),
    [
        (b"", 0, b"ab", b"ab"),
        (b"", 3, b"ab", b"\0\0\0ab"),
        (b"abcdef", 2, b"XY", b"abXYef"),
        (b"abc", 2, b"XYZ", b"abXYZ"),
        (b"abc", 5, b"X", b"abc\0\0X"),
        (b"abc", 3, b"", b"abc"),
        (b"abc", 5, b"", b"abc\0\0"),
    ],
)
def test_a_patch_writes_a_range_and_fills_a_gap(old: bytes, offset: int, data: bytes, new: bytes) -> None:
    assert patched(old, offset, data) == new


@pytest.mark.ledger("SCHM-10")
def test_a_patch_ends_where_the_field_does() -> None:
    assert len(patched(b"", 49_151, b"x")) == 49_152
    with pytest.raises(ValueError, match="49153 bytes"):
        patched(b"", 49_152, b"x")
    with pytest.raises(ValueError, match="at most"):
        patched(b"", 2**60, b"x")


JSON_VALUES: list[Any] = [None, True, 0, -1, 1.5, "", "a" * 255, "🎲", [], {}]
JSON_VALUES += [{"a": [1, {"b": None}]}, "x" * 16_382]


@pytest.mark.ledger("SCHM-11")
@pytest.mark.parametrize("value", JSON_VALUES)
def test_json_up_to_16_kb_of_text(value: Any) -> None:
    assert_comes_back(JSON, value)


@pytest.mark.ledger("SCHM-11")
def test_json_over_16_kb_is_refused() -> None:
    for value in ("x" * 16_383, ["é" * 8_191]):
        with pytest.raises(ValueError, match="at most 16384"):
            JSON.accept(value)
    out = Writer()
    out.str('"' + "x" * 16_383 + '"')
    with pytest.raises(ProtocolError, match="16384"):
        JSON.decode(Reader(out.finish()))


@pytest.mark.parametrize("text", [b"", b"NaN", b"[1", b"1e999", b"9007199254740993", b"[" * 513 + b"]" * 513])
def test_json_that_is_none_is_a_protocol_error(text: bytes) -> None:
    out = Writer()
    out.blob(text)
    with pytest.raises(ProtocolError):
        JSON.decode(Reader(out.finish()))


@pytest.mark.ledger("ENT-11")
def test_json_is_compared_by_structure_with_what_was_assigned() -> None:
    value = {"a": [1]}
    stored = JSON.accept(value)
    assert JSON.same(stored, JSON.accept({"a": [1.0]}))
    assert not JSON.same(stored, JSON.accept({"a": [True]}))
    assert not stored.mutated()
    value["a"].append(2)
    assert stored.mutated()
    assert not JSON.same(stored, JSON.accept(value))
    assert stored == JsonValue.parse(b'{"a":[1]}')


def test_a_json_value_that_stopped_being_json_is_mutated() -> None:
    value: list[Any] = [1]
    stored = JSON.accept(value)
    value.append(object())
    assert stored.mutated()


RANGES = [(0.0, 1.0), (-1.0, 1.0), (0.0, 360.0), (-1e6, 1e6), (0.1, 0.3), (-0.5, 1e-3)]


@pytest.mark.parametrize("make", [q8, q16])
@pytest.mark.parametrize(("lo", "hi"), RANGES)
def test_what_was_read_of_a_quantised_field_stores_the_same_step(make: Any, lo: float, hi: float) -> None:
    field = make(lo, hi)
    last = 255 if make is q8 else 65_535
    assert (field.value_of(0), field.value_of(last)) == (lo, hi)
    for step in range(last + 1):
        value = field.value_of(step)
        assert lo <= value <= hi
        assert field.step_of(value) == step
    assert_comes_back(field, (lo + hi) / 3 if lo <= (lo + hi) / 3 <= hi else lo, size=1 if make is q8 else 2)


@given(st.floats(0, 100))
def test_a_quantised_value_is_the_nearest_step(value: float) -> None:
    field = q16(0, 100)
    stored = field.accept(value)
    assert abs(stored - value) <= 100 / 65_535 / 2 * (1 + 1e-9)
    assert_comes_back(field, value, size=2)


def test_quantised_values_are_as_the_pages_say() -> None:
    field = q8(0, 360)
    assert field.accept(180) == 0 + 360 * (128 / 255)
    assert encoded(field, 180) == b"\x80"
    assert encoded(q16(0, 2000), 1000) == b"\x00\x80"


@pytest.mark.parametrize("value", [-0.001, 1.001, math.nan, math.inf])
def test_what_is_outside_the_range_is_refused_and_not_clamped(value: float) -> None:
    with pytest.raises(ValueError, match="outside q8"):
        q8(0, 1).accept(value)


@pytest.mark.parametrize(("lo", "hi"), [(1, 1), (2, 1), (math.nan, 1), (0, math.inf), (-1.7e308, 1.7e308)])
def test_a_range_has_two_finite_bounds(lo: float, hi: float) -> None:
    with pytest.raises(ValueError, match="bounds"):
        q16(lo, hi)


def test_the_zero_of_a_quantised_field_is_its_step_nearest_to_0() -> None:
    assert q8(0, 1).zero == 0.0
    assert q8(5, 10).zero == 5.0
    assert q8(-10, -5).zero == -5.0
    assert q8(-1, 1).zero == q8(-1, 1).value_of(128)


def test_the_canonical_name_has_the_bits_of_the_range() -> None:
    assert q16(0, 100).canonical == "q16:0000000000000000:4059000000000000"
    assert q8(-0.5, 1).canonical == "q8:bfe0000000000000:3ff0000000000000"
    assert (F32.canonical, JSON.canonical) == ("f32", "json")
    assert struct.pack(">d", 100.0).hex() == "4059000000000000"


ALL = [BOOL, STR, BYTES, JSON, F32, F64, q8(0, 1), q16(-1, 1), *(type_of(getattr(fields, n)) for n in INTS)]


@given(st.sampled_from(ALL), st.binary(max_size=64), st.booleans())
def test_garbage_gives_values_that_fit_or_protocol_errors(
    field: FieldType, data: bytes, from_client: bool
) -> None:
    try:
        stored = field.decode(Reader(data), from_client)
    except ProtocolError:
        return
    assert field.same(field.accept(field.load(stored)), stored)


@pytest.mark.ledger("SCHM-21")
@pytest.mark.parametrize("field", ALL)
def test_every_zero_fits_its_field(field: FieldType) -> None:
    assert field.same(field.accept(field.load(field.zero)), field.zero)
    assert_comes_back(field, field.load(field.zero))
