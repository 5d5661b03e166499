"""What a room sends its links beside state: messages of room code, and replies."""

from __future__ import annotations

from playhall.engine.codes import CloseCode
from playhall.engine.connection import JsonOut
from playhall.engine.connections import Connections
from playhall.engine.frames import Message, Unreliable, encode_payload, encode_server
from playhall.engine.links import Link
from playhall.engine.runtime import Runtime

__all__ = ["Sending", "encode_message"]


class Sending:
    """Sends for one room, and closes the links that have too much waiting."""

    def __init__(self, runtime: Runtime, connections: Connections) -> None:
        self._runtime = runtime
        self._connections = connections

    def message(self, links: list[Link], frame: bytes, unreliable: bool) -> None:
        """Send links an encoded message. An unreliable one goes to those that have credit, and no others."""
        self._record(links, frame)
        if unreliable:
            self._runtime.sync.deliver_unreliable(links, frame)
        else:
            self._deliver(links, frame)

    def reply(self, link: Link, frame: bytes) -> None:
        """Send a link the encoded answer to a call."""
        self._record([link], frame)
        self._deliver([link], frame)

    def _deliver(self, links: list[Link], frame: bytes) -> None:
        for link in self._runtime.sync.deliver(links, frame, self._runtime.now.mono):
            self._connections.close(link, CloseCode.LIMIT_EXCEEDED, "too much is waiting to be read")

    def _record(self, links: list[Link], frame: bytes) -> None:
        if self._runtime.recorder is not None:
            players = [link.player for link in links]
            self._runtime.recorder.sent(players, frame, self._runtime.now.wall, self._runtime.tick)


def encode_message(message: JsonOut | bytes, unreliable: bool, *, compressed: bool) -> bytes:
    """Return the frame of a message. Raises ValueError for what no message can be."""
    try:
        payload = encode_payload(message, compressed=compressed)
    except TypeError as error:
        raise ValueError(f"a message is JSON or bytes: {error}") from None
    return encode_server(Unreliable(payload) if unreliable else Message(payload))
