"""WebSocket frames' sizes are seen in their headers."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhall.engine.backend import Gate, HeaderScanner, Intake
from playhall_router.frame_guard import FrameGuard
from playhall_router.limits import RULES

LIMIT = 70_000


def frame(size: int, *, masked: bool = True) -> bytes:
    bit = 0x80 if masked else 0
    if size < 126:
        head = bytes([0x82, bit | size])
    elif size < 65_536:
        head = bytes([0x82, bit | 126]) + size.to_bytes(2, "big")
    else:
        head = bytes([0x82, bit | 127]) + size.to_bytes(8, "big")
    return head + (b"mask" if masked else b"") + bytes(size)


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1, 125, 126, 300, 65_535, 65_536, LIMIT]), st.booleans()), max_size=6
    ),
    st.lists(st.integers(1, 70_000), min_size=1, max_size=8),
)
def test_frames_within_the_limit_pass_however_they_are_cut(
    frames: list[tuple[int, bool]], cuts: list[int]
) -> None:
    data = b"".join(frame(size, masked=masked) for size, masked in frames)
    scanner = HeaderScanner(LIMIT)
    at = turn = 0
    while at < len(data):
        piece = data[at : at + cuts[turn % len(cuts)]]
        turn += 1
        assert scanner.scan(memoryview(piece), len(piece)) == len(piece)
        at += len(piece)


@pytest.mark.ledger("CODE-06")
@settings(max_examples=30)
@given(st.integers(0, 3), st.integers(LIMIT + 1, 1 << 62), st.integers(1, 40))
def test_the_first_frame_over_the_limit_is_seen_before_its_payload(before: int, size: int, cut: int) -> None:
    good = frame(50) * before
    bad = bytes([0x82, 0xFF]) + size.to_bytes(8, "big")
    data = good + bad
    scanner = HeaderScanner(LIMIT)
    passed = 0
    for at in range(0, len(data), cut):
        piece = data[at : at + cut]
        count = scanner.scan(memoryview(piece), len(piece))
        passed += count
        if count < len(piece) or at + cut >= len(data):
            break
    # What was handed on before the length was whole may hold the header's first bytes, and none after it.
    assert len(good) <= passed < len(data)


class Inner(asyncio.BufferedProtocol):
    """A protocol that keeps what it is given."""

    def __init__(self) -> None:
        self.buffer = bytearray(1000)
        self.got = b""
        self.lost = False

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self.buffer)

    def buffer_updated(self, nbytes: int) -> None:
        self.got += self.buffer[:nbytes]

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True


class Reader:
    """A client that keeps what it is told."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def judged(self, verdict: int, frame: bytes, now: float) -> None:
        self.calls.append("judged")

    def overflowed(self, frame: bytes, now: float) -> None:
        self.calls.append("overflowed")

    def oversized(self, now: float) -> None:
        self.calls.append("oversized")


def test_the_guard_hands_on_what_is_good_and_nothing_after() -> None:
    inner, reader = Inner(), Reader()
    gate = Gate(RULES, 50.0, 0.0)
    guard = FrameGuard(
        inner, Intake(LIMIT, lambda: 1.0), gate, reader, lambda: reader.calls.append(f"lost {inner.lost}")
    )

    def feed(data: bytes) -> None:
        view = guard.get_buffer(-1)
        view[: len(data)] = data
        guard.buffer_updated(len(data))

    good = frame(20)
    feed(good[:5])
    feed(good[5:] + frame(10) + b"\x82\xff" + (LIMIT + 1).to_bytes(8, "big"))
    feed(frame(3))
    assert inner.got == good
    assert reader.calls == ["judged", "oversized"]
    assert guard.eof_received() is False
    guard.connection_lost(None)
    assert inner.lost
    assert reader.calls == ["judged", "oversized", "lost False"]
