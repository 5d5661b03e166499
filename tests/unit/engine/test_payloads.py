"""Payloads: JSON or bytes, compressed only where it pays, and unpacked only as far as allowed."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall.engine.errors import ProtocolError
from playhall.engine.payloads import MAX_PAYLOAD, Payload, compress, decode_payload, encode_payload, inflate

NOISE = bytes((n * n * 31 + n // 7 * 17) % 251 for n in range(4_096))


def deflated(data: bytes) -> bytes:
    stream = zlib.compressobj(9, wbits=-15)
    return stream.compress(data) + stream.flush()


@pytest.mark.parametrize("content", [None, {"a": [1, "é"]}, "x" * 5_000, b"", b"\0\xff", b"z" * 5_000, True])
@pytest.mark.parametrize("compressed", [False, True])
def test_contents_come_back(content: Any, compressed: bool) -> None:
    payload = encode_payload(content, compressed=compressed)
    assert decode_payload(payload.format, payload.data) == content
    assert bool(payload.format & 1) is isinstance(content, bytes)
    assert bool(payload.format & 2) is (compressed and payload.data != encode_payload(content).data)


def test_bytes_like_contents_are_bytes() -> None:
    assert encode_payload(bytearray(b"ab")) == encode_payload(memoryview(b"ab")) == Payload(1, b"ab")


def test_64_kb_and_not_one_more() -> None:
    assert len(encode_payload(bytes(MAX_PAYLOAD)).data) == 65_536
    assert len(encode_payload("x" * (MAX_PAYLOAD - 2)).data) == 65_536
    for content in (bytes(MAX_PAYLOAD + 1), "x" * (MAX_PAYLOAD - 1)):
        with pytest.raises(ValueError, match="65537 bytes"):
            encode_payload(content)
    with pytest.raises(ProtocolError, match="65537"):
        decode_payload(1, bytes(MAX_PAYLOAD + 1))


def test_the_limit_counts_what_is_unpacked() -> None:
    payload = encode_payload(bytes(MAX_PAYLOAD), compressed=True)
    assert len(payload.data) < 200
    assert decode_payload(payload.format, payload.data) == bytes(MAX_PAYLOAD)
    with pytest.raises(ProtocolError, match="over 65536"):
        decode_payload(3, deflated(bytes(MAX_PAYLOAD + 1)))
    with pytest.raises(ProtocolError, match="over 65536"):
        decode_payload(3, deflated(bytes(5_000_000)))


@pytest.mark.ledger("CENT-07")
def test_compression_is_for_what_is_long_and_shrinks() -> None:
    assert compress(b"a" * 1_023) is None
    assert compress(b"a" * 1_024) is not None
    assert compress(NOISE[:251] + zlib.compress(NOISE, 9)) is None


@pytest.mark.parametrize(
    "data", [b"", b"\xff", deflated(b"abc")[:-1], deflated(b"abc") + b"x", zlib.compress(b"abc")]
)
def test_what_is_not_one_deflate_stream_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        inflate(data, 100)


def test_inflate_allows_exactly_the_limit() -> None:
    assert inflate(deflated(b"a" * 100), 100) == b"a" * 100
    assert inflate(deflated(b""), 0) == b""
    with pytest.raises(ProtocolError):
        inflate(deflated(b"a" * 101), 100)


def test_clients_send_nothing_compressed_and_no_unknown_format() -> None:
    with pytest.raises(ProtocolError, match="format"):
        decode_payload(2, deflated(b"{}"), from_client=True)
    for format in (4, 0x80, 0xFF):
        with pytest.raises(ProtocolError, match="format"):
            decode_payload(format, b"{}")


def test_json_must_be_json() -> None:
    for data in (b"", b"{", b"\xff", b"[9007199254740993]"):
        with pytest.raises(ProtocolError):
            decode_payload(0, data)


@given(st.integers(0, 255), st.binary(max_size=100), st.booleans())
def test_garbage_gives_contents_or_protocol_errors(format: int, data: bytes, from_client: bool) -> None:
    try:
        content = decode_payload(format, data, from_client=from_client)
    except ProtocolError:
        return
    encode_payload(content)
