"""`TestClient`: a real client of a room under test, with what a test wants to ask of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec
from typing_extensions import TypeVar

from playhall.client import outputs
from playhall.client.net import Net
from playhall.client.outputs import Updated
from playhall.client.room import RoomClient
from playhall.client.transport import Receiver, Transport
from playhall.engine.connection import JsonIn, JsonOut, Message
from playhall.engine.kinds import Entity, spec_of
from playhall.testing.backend import Backend
from playhall.testing.network import Network

if TYPE_CHECKING:
    from playhall.testing.host import RoomHost

__all__ = ["TestClient"]

# What goes wrong is shown at the line of the test; pytest --full-trace shows the rest.
__tracebackhide__ = True

S = TypeVar("S", bound="Entity | None", default=None)
P = TypeVar("P", bound="Entity | None", default=None)
E = TypeVar("E", bound=Entity)

ORIGIN = "http://playhall.test"
BACK_S = 60.0
LEAVE_S = 5.0


class TestClient(RoomClient[S, P]):
    """A real client, which keeps what it has heard."""

    __test__ = False

    def __init__(self, host: RoomHost, backend: Backend, network: Network, meta: JsonIn) -> None:
        def dial(receiver: Receiver) -> Awaitable[Transport]:
            return backend.dial(receiver, network, meta)

        super().__init__(ORIGIN, project="test", room=backend.id, schema=backend.schema, dial=dial)
        self._host = host
        self._backend = backend
        self._name = network.player
        self._network = network
        self.messages: list[Message] = []
        """All that the room has sent, oldest first."""
        self.events: list[str] = []
        """Names of all events, as `on` has them, but for "message" and "tick"; oldest first."""
        self.closed_with: int | None = None
        """The code of the last close or loss of the room; None while the client is connected."""
        self.last_update: Updated | None = None
        """What the newest update changed."""
        self._corrected: set[tuple[int, str]] = set()

    def _rng(self) -> Callable[[], float]:
        # The longest wait of each interval: the same in every run, and a drop lasts long enough to be seen.
        return lambda: 1.0

    @property
    def player(self) -> str:
        """The player's id."""
        return self._name

    def _handle(self, event: outputs.Event) -> None:
        match event:
            case outputs.MessageReceived(content):
                self.messages.append(content)
            case outputs.Updated(_, changes):
                self.last_update = event
                self._corrected.update((each.id, name) for each, names in changes.corrected for name in names)
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

    def mine(self, kind: type[E]) -> list[E]:
        """Return the entities of a kind that the player owns."""
        return self.entities.mine(kind)

    @property
    def net(self) -> Net:
        """The network between client and room. Set it to change it, for what is sent from then on."""
        return self._network.net

    @net.setter
    def net(self, net: Net) -> None:
        self._network.net = net

    async def drop(self) -> None:
        """End the connection: room and client hear of it at once, and what was under way is lost.

        The client comes back by itself, a quarter of a second later.
        """
        self._backend.drop(self._name)
        await self._host.settle()

    def cut(self) -> None:
        """Let nothing through between client and room, and tell neither: Wi-Fi that is dead.

        Each gives up once it has heard nothing for 15 s; the client then tries to come back, which it
        cannot before `mend`. Unreliable messages that are under way are lost. What else is goes on after a
        `mend` that comes in time, and is lost with the connection otherwise.
        """
        self._network.cut()

    def mend(self) -> None:
        """End what `cut` began."""
        self._network.mend()

    async def reconnected(self) -> None:
        """Wait until the client is back after a drop or a crash; done at once where it is.

        Moves the clock as far as the client's wait before its next attempt, and its network, need.
        """
        if self._network.is_cut:
            raise AssertionError(f"{self._name} cannot come back: its network is cut, mend() it first")
        await self._host.pass_time(lambda: self._is_back() or self.status == "closed", BACK_S)
        if not self._is_back():
            raise AssertionError(f"{self._name} does not come back: {self.status}, {self.closed_with}")

    def _is_back(self) -> bool:
        return self.status == "open" and self.generation == self._backend.generation

    async def leave(self) -> None:
        """Leave the room on purpose, until the connection is closed. Moves the clock as far as that needs."""
        await self._host.wait(super().leave(), timeout=LEAVE_S)
        await self._host.settle()

    def expect_message(self, message: JsonOut | bytes) -> None:
        """Fail unless the client got this message; an object may have more members than these."""
        want = message if isinstance(message, bytes) else msgspec.json.decode(msgspec.json.encode(message))
        if not any(_matches(got, want) for got in self.messages):
            raise AssertionError(f"{self._name} got no {message!r}; it got {self.messages!r}")

    def expect_corrected(self, entity: Entity, field: str) -> None:
        """Fail unless the room has overruled what the client wrote to this field, and the client has heard.

        `entity` is the room's or the client's own; the private and the shared state are entities too.
        """
        if field not in {spec.name for spec in spec_of(entity).fields}:
            raise AssertionError(f"{entity.kind} has no field {field!r}")
        if (entity.id, field) not in self._corrected:
            raise AssertionError(
                f"{self._name} was not corrected in {field} of {entity.kind} {entity.id};"
                f" it was in {sorted(self._corrected)}"
            )

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
