"""Which records and bases a room writes, and when.

The first write of a generation is a base, so that a log never follows a base of another layout. After that
each flush with changes is a record, chained to the one before it. A base takes the place of the log every
30 s if there were records, and as soon as the log is long. Base and log together may have 32 MB.
"""

from __future__ import annotations

from collections.abc import Callable

from playhall.engine.outputs import BaseOut, Output, RecordOut

__all__ = ["BASE_EVERY_S", "Journal", "RoomTooLargeError"]

BASE_EVERY_S = 30.0
MAX_LOG_BYTES = 4 * 1024 * 1024
MAX_LOG_RECORDS = 4_096
MAX_SIZE = 32 * 1024 * 1024
WARN_SIZE = 24 * 1024 * 1024


class RoomTooLargeError(RuntimeError):
    """The room's state has passed its limit."""


class Journal:
    """The log of one generation. `write_base` returns a base as of now."""

    __slots__ = (
        "_base_bytes",
        "_based_at",
        "_emit",
        "_log_bytes",
        "_log_records",
        "_write_base",
        "durable",
        "large",
        "last",
        "warned",
    )

    def __init__(self, emit: Callable[[Output], None], write_base: Callable[[], bytes]) -> None:
        self._emit = emit
        self._write_base = write_base
        self._base_bytes: int | None = None
        self._based_at = 0.0
        self._log_bytes = 0
        self._log_records = 0
        self.large = self.warned = False
        """Whether it is to be warned of, and was."""
        self.last = 0
        self.durable = 0

    @property
    def settled(self) -> bool:
        """Whether all that was written is durable."""
        return self.durable >= self.last

    @property
    def next_deadline(self) -> float | None:
        """When a base is due."""
        return self._based_at + BASE_EVERY_S if self._log_records else None

    @property
    def base_bytes(self) -> int:
        """Bytes of the last base."""
        return self._base_bytes or 0

    @property
    def log_bytes(self) -> int:
        """Bytes of the records since then."""
        return self._log_bytes

    @property
    def size(self) -> int:
        """Bytes of base and log: what a wake reads."""
        return self.base_bytes + self.log_bytes

    def write(self, data: bytes, version: int, tick: int, mono: float) -> None:
        """Write what a flush has changed. Raises RoomTooLargeError."""
        if self._base_bytes is None:
            self.base(version, tick, mono)
            return
        self._emit(RecordOut(self.last, version, tick, data))
        self.last = version
        self._log_bytes += len(data)
        self._log_records += 1
        if self._log_bytes > MAX_LOG_BYTES or self._log_records >= MAX_LOG_RECORDS:
            self.base(version, tick, mono)
        self._check_size()

    def base(self, version: int, tick: int, mono: float) -> None:
        """Write a base: everything up to `version`. Raises RoomTooLargeError."""
        data = self._write_base()
        self._base_bytes, self._based_at = len(data), mono
        self._log_bytes = self._log_records = 0
        self._check_size()
        self._emit(BaseOut(version, tick, data))
        self.last = version

    def _check_size(self) -> None:
        size = (self._base_bytes or 0) + self._log_bytes
        self.large = size > WARN_SIZE
        if size > MAX_SIZE:
            raise RoomTooLargeError(f"the room's state has {size:,} bytes, over the limit of {MAX_SIZE:,}")
