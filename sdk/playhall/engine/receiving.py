"""What comes from the clients that have joined: each frame goes to whoever it is for."""

from __future__ import annotations

from typing import Any

from playhall.engine.answering import Answering
from playhall.engine.codes import CloseCode
from playhall.engine.connections import Connections
from playhall.engine.errors import ProtocolError
from playhall.engine.frames import Call, Message, Unreliable, Write, decode_client
from playhall.engine.links import Link
from playhall.engine.room import Room
from playhall.engine.runtime import Runtime
from playhall.engine.writes import OwnerWrites

__all__ = ["Receiving"]


class Receiving:
    """Takes the frames of one room's joined links."""

    def __init__(
        self,
        runtime: Runtime,
        room: Room[Any, Any, Any],
        connections: Connections,
        writes: OwnerWrites,
        answering: Answering,
    ) -> None:
        self._runtime = runtime
        self._room = room
        self._connections = connections
        self._writes = writes
        self._answering = answering

    def receive(self, link: Link, data: bytes) -> None:
        """Take a frame. One that breaks the protocol closes its link, and is noticed by nobody else."""
        try:
            frame = decode_client(data, self._runtime.schema)
        except ProtocolError as error:
            self._connections.close(link, CloseCode.PROTOCOL, str(error))
            return
        if self._runtime.recorder is not None:
            self._runtime.recorder.received(link.player, data, self._runtime.now.wall, self._runtime.tick)
        if isinstance(frame, Message | Unreliable):
            self._hand_over(link, frame)
        elif isinstance(frame, Write):
            self._writes.receive(link, frame)
        elif isinstance(frame, Call):
            self._answering.call(link, frame)

    def _hand_over(self, link: Link, frame: Message | Unreliable) -> None:
        """Hand a message to room code."""
        if not self._runtime.hooks.has_room(link.number):
            self._runtime.warn_of(link, "room.message_dropped", "too many hooks are waiting")
            return
        link.conn._client_tick = frame.seen
        hook = "on_unreliable" if isinstance(frame, Unreliable) else "on_message"
        call = getattr(self._room, hook)
        self._runtime.run(hook, lambda: call(link.conn, frame.content), link=link.number)
