"""What a client asks of a transport. The WebSocket is one; the test harness brings its own, in memory."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, Protocol

__all__ = ["STALE_BYTES", "Dial", "Receiver", "Transport"]

STALE_BYTES: Final = 4 * 1024
"""An unreliable frame is not queued behind more than this, but dropped."""


class Receiver(Protocol):
    """Told what comes over one transport. After `closed` nothing more comes."""

    def received(self, frame: bytes) -> None: ...
    def violated(self, problem: str) -> None:
        """What came is no frame."""

    def closed(self, code: int, reason: str) -> None: ...


class Transport(Protocol):
    """One connection to a router."""

    @property
    def unsent(self) -> int:
        """How many bytes wait because the other side does not take them."""

    def send(self, frame: bytes, unreliable: bool) -> None:
        """Send a frame; one that is `unreliable` may be lost instead, and is where STALE_BYTES are unsent."""

    def close(self, code: int, reason: str) -> None:
        """Close, within 2 s; `closed` tells when. What is received meanwhile is nobody's concern."""


class Dial(Protocol):
    """Makes connections. Raises OSError or TimeoutError where trying again may help, else PlayhallError."""

    def __call__(self, receiver: Receiver) -> Awaitable[Transport]: ...
