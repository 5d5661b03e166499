"""What a session needs of a transport."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Wire"]


class Wire(Protocol):
    """One client's transport. Nothing here waits or raises; on a transport that is gone it does nothing."""

    @property
    def address(self) -> str:
        """Where the client is."""

    @property
    def origin(self) -> str:
        """The Origin header; empty where there was none."""

    def write(self, frame: bytes, /) -> int:
        """Send a frame, in order. Returns how many bytes wait in this process then."""

    def close(self, code: int, reason: str) -> None:
        """Close it, after what was sent."""

    def buffered(self) -> int:
        """Bytes that wait in this process."""

    def unsent(self) -> int:
        """Bytes that wait in the kernel, not on their way yet."""
