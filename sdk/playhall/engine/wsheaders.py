"""Follows a stream of WebSocket frames by their headers (RFC 6455, 5.2), and takes out the usual ones.

The stream is a client's. Most of it are binary frames that come whole: they are judged here, and most go
straight into the queue to the client's room host. All else, what comes in pieces and what is about the
connection, is handed on to who speaks the protocol, up to a frame that is too large.

`native/gate.pyx` has the twins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from playhall.engine.gate import FORWARD, Gate

__all__ = ["Guard", "HeaderScanner", "Inner", "Intake", "Reader"]

_SHORT = 126
_LONG = 127
_MASK_BYTES = 4
_WHOLE_BINARY = 0x82
_MASKED = 0x80
_READ_BYTES = 64 * 1024


class HeaderScanner:
    """Sees the size of every frame before its payload has come."""

    __slots__ = ("_header", "_limit", "_skip")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._header = bytearray()
        self._skip = 0

    @property
    def between(self) -> bool:
        """Whether the next byte is the first of a frame."""
        return self._skip == 0 and not self._header

    def scan(self, data: memoryview, size: int) -> int:
        """How much of the first `size` bytes belongs to frames within the limit: all of them, or up to the
        header of one that is not.
        """
        at = 0
        while at < size:
            at, good = self.scan_one(data, at, size)
            if not good:
                break
        return at

    def scan_one(self, data: memoryview, at: int, size: int) -> tuple[int, bool]:
        """Follow the frame at `at`. Returns where it ends, or what has come of it, and whether it is within
        the limit; else where it began.
        """
        while self._skip == 0 and at < size:
            self._header.append(data[at])
            at += 1
            announced = self._length()
            if announced is None:
                continue
            if announced > self._limit:
                at = max(0, at - len(self._header))
                self._header.clear()
                return at, False
            self._skip = announced + (_MASK_BYTES if self._header[1] & _MASKED else 0)
            self._header.clear()
            break
        step = min(self._skip, size - at)
        self._skip -= step
        return at + step, True

    def _length(self) -> int | None:
        """The length of the payload, once the header says it."""
        header = self._header
        if len(header) < 2:
            return None
        short = header[1] & 0x7F
        wide = {_SHORT: 2, _LONG: 8}.get(short, 0)
        if len(header) < 2 + wide:
            return None
        return int.from_bytes(header[2:], "big") if wide else short


class Inner(Protocol):
    """What reads the stream, as asyncio.BufferedProtocol."""

    def get_buffer(self, sizehint: int, /) -> memoryview:
        """Where the next bytes go."""

    def buffer_updated(self, nbytes: int, /) -> None:
        """So many are there."""


class Reader(Protocol):
    """Who is told of the client's frames, except those that are in the queue already."""

    def judged(self, verdict: int, frame: bytes, now: float) -> None:
        """The client sent a frame, of which the gate said this."""

    def overflowed(self, frame: bytes, now: float) -> None:
        """The queue to the room host has no place for a frame that may pass."""

    def oversized(self, now: float) -> None:
        """A frame is too large. Nothing more is read."""


class Intake:
    """What the guards of one event loop share: it reads for one of them at a time.

    `limit`: how large a frame may be; `clock`: monotonic seconds.
    """

    __slots__ = ("buffer", "clock", "limit")

    def __init__(self, limit: int, clock: Callable[[], float]) -> None:
        self.buffer = memoryview(bytearray(_READ_BYTES))
        self.clock = clock
        self.limit = limit


class Guard:
    """Stands before `inner`. Keeps from it whole binary frames, and all from a frame over the limit on."""

    def __init__(self, inner: Inner, intake: Intake, gate: Gate, reader: Reader) -> None:
        self._scanner = HeaderScanner(intake.limit)
        self._inner_buffer = inner.get_buffer
        self._inner_updated = inner.buffer_updated
        self._intake = intake
        self._gate = gate
        self._reader = reader
        self._open = True

    def get_buffer(self, sizehint: int, /) -> memoryview:
        """Where the next bytes go."""
        return self._intake.buffer

    def buffer_updated(self, nbytes: int, /) -> None:
        """So many are there."""
        # Whom this calls may read nothing meanwhile: the buffer is everybody's.
        now = self._intake.clock()
        data = self._intake.buffer
        at = 0
        while at < nbytes and self._open:
            if self._scanner.between and (taken := self._take(data[at:nbytes], now)):
                at += taken
                continue
            end, self._open = self._scanner.scan_one(data, at, nbytes)
            self._hand_on(data[at:end])
            at = end
            if not self._open:
                self._reader.oversized(now)

    def _take(self, data: memoryview, now: float) -> int:
        """Take a frame out. Returns its bytes with its header's; 0: it is not all there, or no usual one."""
        if len(data) <= 2 + _MASK_BYTES or data[0] != _WHOLE_BINARY or not data[1] & _MASKED:
            return 0
        size, start = data[1] & 0x7F, 2
        if size in (0, _LONG):
            return 0  # a size of 8 bytes is one that does not come in one piece
        if size == _SHORT:
            size, start = int.from_bytes(data[2:4], "big"), 4
            if size < _SHORT:
                return 0  # no frame may say it so
        end = start + _MASK_BYTES + size
        if size > self._intake.limit or end > len(data):
            return 0
        mask, payload = data[start : start + _MASK_BYTES], data[start + _MASK_BYTES : end]
        self._pass(bytes(byte ^ mask[at % _MASK_BYTES] for at, byte in enumerate(payload)), now)
        return end

    def _pass(self, frame: bytes, now: float) -> None:
        gate = self._gate
        verdict = gate.judge(frame, now)
        if verdict != FORWARD or gate.queue is None:
            self._reader.judged(verdict, frame, now)
        elif not gate.queue.push(gate.link, frame):
            self._reader.overflowed(frame, now)

    def _hand_on(self, data: memoryview) -> None:
        while data:
            buffer = self._inner_buffer(len(data))
            step = min(len(buffer), len(data))
            buffer[:step] = data[:step]
            self._inner_updated(step)
            data = data[step:]
