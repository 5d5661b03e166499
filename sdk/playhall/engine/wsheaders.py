"""Follows a stream of WebSocket frames by their headers (RFC 6455, 5.2).

`native/gate.pyx` has the twin.
"""

from __future__ import annotations

__all__ = ["HeaderScanner"]

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
