"""A log file that stays below a size: when it is full it becomes `.1`, and a new one begins."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

__all__ = ["LogFile"]

MAX_BYTES = 16 << 20


class LogFile:
    """Appends lines. A disk that takes none costs the log, never the process that is logged."""

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._file: BinaryIO | None = None
        self._size = 0

    def write(self, line: bytes) -> OSError | None:
        """Append a line. Gives the error that keeps it from doing so, for the caller to tell."""
        try:
            if self._size + len(line) > self._max_bytes:
                self._turn_over()
            if self._file is None:
                self._file = self.path.open("ab", buffering=0)
                self._size = self._file.tell()
            self._file.write(line)
        except OSError as error:
            return error
        self._size += len(line)
        return None

    def close(self) -> None:
        """Close the file; a later write opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _turn_over(self) -> None:
        self.close()
        self._size = 0
        if self.path.exists():
            self.path.replace(self.path.with_name(f"{self.path.name}.1"))
