"""Follows a stream of WebSocket frames by their headers (RFC 6455, 5.2), up to one that is too large.

`native/gate.pyx` has the twin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

__all__ = ["Guard", "HeaderScanner", "Inner"]

_SHORT = 126
_LONG = 127


class HeaderScanner:
    """Sees the size of every frame before its payload has come."""

    __slots__ = ("_header", "_limit", "_skip")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._header = bytearray()
        self._skip = 0

    def scan(self, data: memoryview, size: int) -> int:
        """How much of the first `size` bytes belongs to frames within the limit: all of them, or up to the
        header of one that is not.
        """
        at = self._skip
        if not self._header:
            # The common case: a read that starts with a short frame's header, and often ends with that frame.
            while at + 2 <= size and (length := data[at + 1] & 0x7F) < _SHORT:
                at += 2 + (4 if data[at + 1] & 0x80 else 0) + length
        while at < size:
            self._header.append(data[at])
            at += 1
            announced = self._length()
            if announced is None:
                continue
            if announced > self._limit:
                return max(0, at - len(self._header))
            at += announced + (4 if self._header[1] & 0x80 else 0)
            self._header.clear()
        self._skip = at - size
        return size

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


class Guard:
    """Passes a stream on to `inner`, up to a frame that is too large: then `on_oversized` is called, once."""

    def __init__(self, inner: Inner, limit: int, on_oversized: Callable[[], object]) -> None:
        self._scanner = HeaderScanner(limit)
        self._inner_buffer = inner.get_buffer
        self._inner_updated = inner.buffer_updated
        self._on_oversized = on_oversized
        self._buffer = memoryview(b"")
        self._open = True

    def get_buffer(self, sizehint: int, /) -> memoryview:
        """Where the next bytes go."""
        self._buffer = self._inner_buffer(sizehint)
        return self._buffer

    def buffer_updated(self, nbytes: int, /) -> None:
        """So many are there."""
        if not self._open:
            return
        good = self._scanner.scan(self._buffer, nbytes)
        if good:
            self._inner_updated(good)
        if good < nbytes:
            self._open = False
            self._on_oversized()
