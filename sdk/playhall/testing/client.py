"""`TestClient`: a real client of a room under test, with what a test wants to ask of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec
from typing_extensions import TypeVar

from playhall.client import outputs
from playhall.client.outputs import Updated
from playhall.client.room import RoomClient
from playhall.client.transport import Receiver, Transport
from playhall.engine.connection import JsonIn, JsonOut, Message
from playhall.engine.kinds import Entity
from playhall.engine.schema import Schema

if TYPE_CHECKING:
    from playhall.testing.room import TestRoom

__all__ = ["TestClient"]

S = TypeVar("S", bound="Entity | None", default=None)
P = TypeVar("P", bound="Entity | None", default=None)

ORIGIN = "http://playhall.test"
BACK_S = 60.0


class TestClient(RoomClient[S, P]):
    """A real client. `messages` and `events` hold all there were, `last_update` what the newest changed.

    `closed_with` is the code of the last close or loss of the room; None while the client is connected.
    """

    __test__ = False

    def __init__(self, room: TestRoom[Any, S, P], player: str, meta: JsonIn, schema: Schema[S, P]) -> None:
        def dial(receiver: Receiver) -> Awaitable[Transport]:
            return room.dial(receiver, player, meta)

        super().__init__(ORIGIN, project="test", room=room.id, schema=schema, dial=dial)
        self._room = room
        self._name = player
        self.messages: list[Message] = []
        self.events: list[str] = []
        self.closed_with: int | None = None
        self.last_update: Updated | None = None

    def _rng(self) -> Callable[[], float]:
        # The longest wait of each interval: the same in every run, and a drop lasts long enough to be seen.
        return lambda: 1.0

    @property
    def player(self) -> str:
        return self._name

    def _handle(self, event: outputs.Event) -> None:
        match event:
            case outputs.MessageReceived(content):
                self.messages.append(content)
            case outputs.Updated():
                self.last_update = event
            case outputs.Disconnected(code):
                self.closed_with = code
                self.events.append("disconnected")
            case outputs.Closed(error):
                self.closed_with = error.code
                self.events.append("closed")
            case outputs.Joined() | outputs.Restored():
                self.closed_with = None
                if isinstance(event, outputs.Restored):
                    self.events.append("restored")
            case outputs.Waking():
                self.events.append("waking")
            case outputs.FellAsleep():
                self.events.append("sleep")
            case outputs.Woke():
                self.events.append("wake")
        super()._handle(event)

    async def drop(self) -> None:
        """Cut the network. The client comes back by itself, a quarter of a second later."""
        await self._room.cut(self._name)

    async def reconnected(self) -> None:
        """Wait until the client is back after a drop or a crash; done at once where it is.

        Moves the clock as far as the client's wait before its next attempt needs.
        """
        host = self._room.host
        deadline = host.now().mono + BACK_S
        await host.settle()
        while self.status != "open":
            at = await host.next_event_at()
            if self.status == "closed" or at is None or at > deadline:
                raise AssertionError(f"{self._name} does not come back: {self.status}, {self.closed_with}")
            await host.advance_to(at)

    async def leave(self) -> None:
        """Leave the room on purpose."""
        await super().leave()
        await self._room.host.settle()

    def expect_message(self, message: JsonOut | bytes) -> None:
        """Fail unless the client got this message; an object may have more members than these."""
        want = message if isinstance(message, bytes) else msgspec.json.decode(msgspec.json.encode(message))
        if not any(_matches(got, want) for got in self.messages):
            raise AssertionError(f"{self._name} got no {message!r}; it got {self.messages!r}")

    def expect_sees(self, entity: Entity) -> None:
        """Fail unless the client sees this entity of the room's."""
        if self.entities.get(entity.id) is None:
            raise AssertionError(f"{self._name} does not see {entity!r}")

    def expect_not_sees(self, entity: Entity) -> None:
        """Fail if the client sees this entity of the room's."""
        if self.entities.get(entity.id) is not None:
            raise AssertionError(f"{self._name} sees {entity!r}")


def _matches(got: Message, want: Any) -> bool:
    if isinstance(got, dict) and isinstance(want, dict):
        return all(name in got and got[name] == value for name, value in want.items())
    return type(got) is type(want) and got == want
