"""The values of docs/protocol/values.md: round trips, the shortest form only, and no bytes that do harm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall.engine.errors import ProtocolError
from playhall.engine.wire import VARINT32_MAX, VARINT53_MAX, Reader, Writer, varint, varint_size


def written(write: Callable[[Writer], None]) -> bytes:
    out = Writer()
    write(out)
    return out.finish()


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (16_383, "ff7f"),
        (16_384, "808001"),
        (VARINT32_MAX, "ffffffff0f"),
        (VARINT53_MAX, "ffffffffffffff0f"),
    ],
)
def test_a_varint_is_leb128(value: int, data: str) -> None:
    assert varint(value).hex() == data
    assert varint_size(value) == len(data) // 2
    source = Reader(bytes.fromhex(data))
    assert source.varint53() == value
    source.done()


@given(st.integers(0, VARINT32_MAX))
def test_varint32_comes_back(value: int) -> None:
    data = written(lambda out: out.varint32(value))
    assert Reader(data).varint32() == Reader(data).varint53() == value
    assert varint_size(value) == len(data)


@given(st.integers(0, VARINT53_MAX))
def test_varint53_comes_back(value: int) -> None:
    assert Reader(written(lambda out: out.varint53(value))).varint53() == value


@pytest.mark.parametrize(
    "data",
    [
        "",  # nothing
        "80",  # cut off
        "8000",  # not the shortest form of 0
        "ff00",  # nor of 127
        "ffffffff1f",  # 2^33 - 1
        "808080808001",  # six bytes
        "ffffffff8f00",  # a sixth byte that adds nothing
    ],
)
def test_varint32_refuses(data: str) -> None:
    with pytest.raises(ProtocolError):
        Reader(bytes.fromhex(data)).varint32()


@pytest.mark.parametrize("data", ["ffffffffffffff1f", "808080808080808001", "8080808080808000"])
def test_varint53_refuses(data: str) -> None:
    with pytest.raises(ProtocolError):
        Reader(bytes.fromhex(data)).varint53()


@pytest.mark.parametrize(("method", "value"), [("varint32", 2**32), ("varint53", 2**53), ("varint32", -1)])
def test_a_writer_refuses_numbers_that_do_not_fit(method: str, value: int) -> None:
    with pytest.raises(ValueError, match=str(value)):
        getattr(Writer(), method)(value)


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, "00"), (-1, "01"), (1, "02"), (-64, "7f"), (2**31 - 1, "feffffff0f"), (-(2**31), "ffffffff0f")],
)
def test_zigzag(value: int, data: str) -> None:
    assert written(lambda out: out.zigzag(value)).hex() == data
    assert Reader(bytes.fromhex(data)).zigzag() == value


def test_zigzag_has_32_bits() -> None:
    for value in (2**31, -(2**31) - 1):
        with pytest.raises(ValueError, match="zigzag"):
            Writer().zigzag(value)


@pytest.mark.parametrize(
    ("method", "value", "data"),
    [
        ("u8", 255, "ff"),
        ("u16", 0x1234, "3412"),
        ("u32", 0x12345678, "78563412"),
        ("i8", -1, "ff"),
        ("i16", -2, "feff"),
        ("i32", -3, "fdffffff"),
        ("f32", 1.5, "0000c03f"),
        ("f64", -0.0, "0000000000000080"),
    ],
)
def test_numbers_are_little_endian(method: str, value: float, data: str) -> None:
    assert written(lambda out: getattr(out, method)(value)).hex() == data
    back = getattr(Reader(bytes.fromhex(data)), method)()
    assert back == value
    assert math.copysign(1, back) == math.copysign(1, value)


@given(st.text())
def test_text_comes_back(text: str) -> None:
    source = Reader(written(lambda out: out.str(text)))
    assert source.str() == text
    source.done()


@pytest.mark.parametrize("data", ["01ff", "02c080", "03eda080", "02c3", "05616263"])
def test_text_that_is_not_utf8_or_is_cut_off_is_refused(data: str) -> None:
    with pytest.raises(ProtocolError):
        Reader(bytes.fromhex(data)).str()


def test_a_limit_is_checked_before_the_bytes_are_there() -> None:
    with pytest.raises(ProtocolError, match="at most 64"):
        Reader(varint(65)).str(64)
    assert Reader(varint(64) + b"a" * 64).str(64) == "a" * 64


@given(st.binary())
def test_blobs_come_back(data: bytes) -> None:
    source = Reader(written(lambda out: out.blob(data)) + b"more")
    assert source.blob() == data
    assert source.rest() == b"more"
    source.done()


@given(st.integers(1, 255), st.data())
def test_masks_come_back(fields: int, data: st.DataObject) -> None:
    bits = data.draw(st.integers(1, 2**fields - 1))
    raw = written(lambda out: out.mask(bits))
    assert len(raw) <= 37
    assert Reader(raw).mask(fields) == bits


@pytest.mark.parametrize(
    ("bits", "data"), [(1, "01"), (0b1000_0001, "8101"), (1 << 254, "80" * 36 + "04"), (127, "7f")]
)
def test_a_mask_has_groups_of_seven(bits: int, data: str) -> None:
    assert written(lambda out: out.mask(bits)).hex() == data
    assert Reader(bytes.fromhex(data)).mask(255) == bits


@pytest.mark.parametrize(
    ("fields", "data"),
    [
        (7, "00"),  # empty
        (7, "8000"),  # a trailing zero byte
        (7, "8001"),  # field 7 of 7
        (3, "08"),  # field 3 of 3
        (255, "80" * 36 + "08"),  # field 255 of 255
        (0, "01"),  # a kind without fields
        (9, "80"),  # cut off
    ],
)
def test_masks_that_fit_no_kind_are_refused(fields: int, data: str) -> None:
    with pytest.raises(ProtocolError):
        Reader(bytes.fromhex(data)).mask(fields)


def test_an_empty_mask_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Writer().mask(0)


def test_a_bool_is_0_or_1() -> None:
    assert (Reader(b"\0").bit(), Reader(b"\1").bit()) == (False, True)
    with pytest.raises(ProtocolError):
        Reader(b"\2").bit()


def test_surplus_bytes_are_refused_by_done() -> None:
    source = Reader(b"\0\0")
    source.u8()
    with pytest.raises(ProtocolError, match="1 surplus"):
        source.done()


READS: list[Callable[[Reader], Any]] = [
    Reader.u8, Reader.u16, Reader.u32, Reader.i8, Reader.i16, Reader.i32, Reader.f32, Reader.f64, Reader.bit,
    Reader.varint32, Reader.varint53, Reader.zigzag, Reader.str, Reader.blob, lambda source: source.mask(20),
]  # fmt: skip


@given(st.binary(max_size=40), st.lists(st.sampled_from(READS), max_size=10))
def test_garbage_gives_values_or_protocol_errors(data: bytes, reads: list[Callable[[Reader], Any]]) -> None:
    source = Reader(data)
    for read in reads:
        before = source.left
        try:
            read(source)
        except ProtocolError:
            return
        assert source.left < before
