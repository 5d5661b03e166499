"""`RoomClient`: a client as the game sees it; and `connect`, which makes one and awaits the first state."""

from __future__ import annotations

import asyncio
import math
import random
import secrets
import sys
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, Literal, TypeAlias, cast, overload
from urllib.parse import urlsplit

from typing_extensions import TypeVar

from playhall.client import outputs
from playhall.client.calls import CALL_S, Calls
from playhall.client.core import ClientCore, Stats, Status
from playhall.client.driver import Driver
from playhall.client.entities import ClientEntities
from playhall.client.listeners import Listeners, Remove
from playhall.client.net import Net
from playhall.client.presence import ClientPresence
from playhall.client.simulate import SimulatedDial, check_local
from playhall.client.transport import STALE_BYTES, Dial
from playhall.engine.calls import Call
from playhall.engine.codes import CloseCode
from playhall.engine.connection import JsonOut, Message
from playhall.engine.errors import PlayhallError
from playhall.engine.kinds import Entity
from playhall.engine.schema import PRIVATE_ID, SHARED_ID, Schema

__all__ = ["RoomClient", "connect"]

S = TypeVar("S", bound="Entity | None", default=None)
P = TypeVar("P", bound="Entity | None", default=None)
R = TypeVar("R")

Kind: TypeAlias = type[Entity]

MAX_UNSENT = 1024 * 1024
# Messages of on_join come before `connect` has returned: so many are kept for the first who listens.
MAX_EARLY = 64
EARLY_S = 1.0
SDK = f"playhall-python/0.1 ({sys.platform})"


class RoomClient(Generic[S, P]):
    """A connection to a room, kept up over lost sockets and room hosts.

    Nothing happens until `ready` is awaited, so listeners that are added before hear of the first state
    too. Each listener is called once the whole of an update is in; what one raises is logged.
    """

    def __init__(
        self,
        url: str,
        *,
        project: str,
        room: str,
        schema: Schema[S, P],
        type: str | None = None,
        token: str | None = None,
        timeout: float = 30.0,
        simulate: Net | None = None,
        dial: Dial | None = None,
    ) -> None:
        """`url` is the site's origin, like "http://127.0.0.1:7350".

        `type` is the room's type, left off for the default. `token` is a player token, or a guest token of
        before; without one the player is a new guest. `timeout` is seconds, and for the first connect alone.
        `simulate` is a network to try the game on, for routers on this machine: ValueError for others. `dial`
        makes connections otherwise than by WebSocket.
        """
        if dial is None:
            _check_origin(url)
            # Imported here because most who import this module test rooms, and need no network.
            from playhall.client.websocket import WebSocketDial

            dial = WebSocketDial(url, project)
        if simulate is not None:
            check_local(url)
            dial = SimulatedDial(dial, simulate)
        self._core = ClientCore(
            schema,
            project=project,
            room=room,
            type=type,
            token=token,
            session=secrets.token_bytes(16),
            sdk=SDK,
            rng=self._rng(),
            timeout=timeout,
        )
        self._dial = dial
        self._driver: Driver | None = None
        self._calls = Calls(self._core)
        self._joined: asyncio.Future[None] | None = None
        self._waking = Listeners[[]]()
        self._restored = Listeners[[]]()
        self._sleep = Listeners[[]]()
        self._wake = Listeners[[]]()
        self._disconnected = Listeners[[int]]()
        self._closed = Listeners[[PlayhallError]]()
        self._message = Listeners[[Message]]()
        self._early: list[Message] = []
        self._early_until = math.inf
        self._tick = Listeners[[int]]()
        self.entities: ClientEntities = ClientEntities(self._core)
        """The entities this client sees."""
        self.presence: ClientPresence = ClientPresence(self._core)
        """Who is in the room."""
        self._core.replica.writes.on_unsent = self._pump

    def _rng(self) -> Callable[[], float]:
        """Where the spread of reconnects comes from."""
        return random.random

    # Connecting and leaving

    @property
    def ready(self) -> Coroutine[Any, Any, None]:
        """To be awaited: connects, and is done once the first state is in. Raises PlayhallError.

        Cancelling the wait ends the client.
        """
        return self._wait_joined()

    async def _wait_joined(self) -> None:
        if self._driver is None:
            if self._core.status == "closed":
                raise PlayhallError(0, "the client has left already")
            self._driver = Driver(self._core, self._dial, self._handle)
            self._joined = asyncio.get_running_loop().create_future()
            self._core.start(self._driver.now())
            self._driver.pump()
        assert self._joined is not None
        try:
            await asyncio.shield(self._joined)
        except asyncio.CancelledError:
            if not self._joined.done():
                self._leave()
            raise

    async def leave(self) -> None:
        """Leave the room on purpose, and wait until the connection is closed. May be called twice."""
        self._leave()
        if self._driver is not None:
            await self._driver.wait_closed()

    def _pump(self) -> None:
        if self._driver is not None:
            self._driver.pump()

    def _leave(self) -> None:
        self._core.leave()
        self._pump()
        if self._joined is not None and not self._joined.done():
            self._fail_joined(PlayhallError(0, "the client left before it was connected"))

    async def __aenter__(self) -> RoomClient[S, P]:
        await self.ready
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.leave()

    # What the client is, and holds

    @property
    def status(self) -> Status:
        """ "connecting", "open", "reconnecting" or "closed"."""
        return self._core.status

    @property
    def player(self) -> str:
        """The player's id, as the router made it out."""
        return self._core.player

    @property
    def room(self) -> str:
        """The room's id."""
        return self._core.room

    @property
    def type(self) -> str:
        """The room's type."""
        return self._core.type

    @property
    def guest_token(self) -> str | None:
        """The token to keep, by which a guest is the same player another time; None for others."""
        return self._core.guest_token

    @property
    def generation(self) -> int:
        """Which life of the room the state is of; it changes with every wake."""
        return self._core.generation

    @property
    def tick(self) -> int:
        """The tick of the newest update."""
        return self._core.tick

    @property
    def tick_rate(self) -> int:
        """The room's ticks a second."""
        return self._core.tick_rate

    @property
    def asleep(self) -> bool:
        """Whether the room sleeps. The connection stays, and anything the player does wakes the room."""
        return self._core.asleep

    @property
    def rtt(self) -> float:
        """The last round trip to the router, in seconds."""
        return self._core.rtt_s

    @property
    def stats(self) -> Stats:
        """Bytes by kind of frame, in two counters: `stats.sent["message"]`, `stats.received["update"]`."""
        return self._core.stats

    def server_tick(self) -> float:
        """The room's tick now, with its fraction, as far as is known."""
        return self._core.server_tick(self._driver.now()) if self._driver is not None else 0.0

    @property
    def state(self) -> S:
        """The shared state; None where the schema has none. Raises PlayhallError before the first state."""
        return cast(S, self._singleton(SHARED_ID, self._core.schema.state))

    @property
    def private(self) -> P:
        """The player's private state; None where the schema has none.

        Raises PlayhallError before the first state.
        """
        return cast(P, self._singleton(PRIVATE_ID, self._core.schema.private))

    def _singleton(self, id: int, kind: Kind | None) -> Entity | None:
        found = self._core.replica.get(id)
        if found is None and kind is not None:
            raise PlayhallError(0, "there is no state yet: await room.ready first")
        return found

    # Messages

    def send(self, message: JsonOut | bytes, *, unreliable: bool = False) -> bool:
        """Send a message: anything JSON encodes, or bytes; at most 64 KB. Returns whether it was sent.

        An `unreliable` one may be lost or overtaken. Raises PlayhallError before the client is
        connected, once it is closed, and where over a megabyte waits to be sent, though not for an
        unreliable one: that is dropped where over 4 KB wait. Raises ValueError or TypeError for what
        cannot be a message. While the client is reconnecting the message is lost, as one under way when
        the connection broke is.
        """
        waiting = 0 if self._driver is None else self._driver.unsent
        if unreliable and waiting > STALE_BYTES:
            return False
        if waiting > MAX_UNSENT:
            raise _stuck()
        sent = self._core.send(message, unreliable=unreliable)
        if self._driver is not None:
            self._driver.pump()
        return sent

    def call(self, ask: Call[R], *, timeout: float = CALL_S) -> asyncio.Future[R]:
        """Make a call: `coins = await room.call(Buy(item="ring"), timeout=2)`. It is sent now.

        The future brings the reply, as the type the call declares, or a PlayhallError. Code 422: the room
        says no, and the text why; 404: it knows no such call; 429: 32 calls have no answer yet. Code 0: no
        answer came in `timeout` seconds, or before the connection was lost, the room started anew or the
        client was closed; or one came that is not as declared. Whether the room did it is not known then,
        and nothing is tried again. Cancelling the future gives up the answer, not what the room does.

        Raises as `send` does, and TypeError for a call that the schema does not declare.
        """
        now = 0.0 if self._driver is None else self._driver.now()
        if self._driver is not None and self._driver.unsent > MAX_UNSENT:
            raise _stuck()
        future = self._calls.make(ask, now, timeout)
        if self._driver is not None:
            self._driver.pump()
        return future

    # Events

    @overload
    def on(self, event: Literal["message"], listener: Callable[[Message], object], /) -> Remove: ...
    @overload
    def on(self, event: Literal["disconnected"], listener: Callable[[int], object], /) -> Remove: ...
    @overload
    def on(self, event: Literal["closed"], listener: Callable[[PlayhallError], object], /) -> Remove: ...
    @overload
    def on(self, event: Literal["tick"], listener: Callable[[int], object], /) -> Remove: ...
    @overload
    def on(
        self, event: Literal["waking", "restored", "sleep", "wake"], listener: Callable[[], object], /
    ) -> Remove: ...
    def on(self, event: str, listener: Callable[..., object], /) -> Remove:
        """Call back for each event; returns a function that takes the listener off.

        waking: the room is being started. disconnected(code): the connection or the room was lost, and the
        client is coming back. restored: it is back, and the state is the room's. closed(error): it is over,
        other than by `leave`. message(message): the room sent one; those of its on_join wait for the first
        listener. tick(tick): an update was applied, and its callbacks have run. sleep, wake: of a room that
        sleeps with its players connected.
        """
        listeners: dict[str, Listeners[...]] = {
            "waking": self._waking,
            "disconnected": self._disconnected,
            "restored": self._restored,
            "closed": self._closed,
            "message": self._message,
            "tick": self._tick,
            "sleep": self._sleep,
            "wake": self._wake,
        }
        if event not in listeners:
            raise ValueError(f"there is no event {event!r}; there are {', '.join(listeners)}")
        remove = listeners[event].add(listener)
        if event == "message":
            early, self._early = self._early, []
            for message in early if self._is_early() else ():
                self._message.call(message)
        return remove

    def _is_early(self) -> bool:
        """Whether the game may not have come to listening yet."""
        return self._driver is not None and self._driver.now() <= self._early_until

    def on_tick(self, listener: Callable[[int], object], /) -> Remove:
        """The same as on("tick", listener)."""
        return self._tick.add(listener)

    def _handle(self, event: outputs.Event) -> None:
        match event:
            case outputs.Updated(tick, changes):
                tell_presence = self.presence.apply(changes)
                self.entities.tell(changes)
                tell_presence()
                self._tick.call(tick)
            case outputs.MessageReceived(content):
                if self._message:
                    self._message.call(content)
                elif self._is_early() and len(self._early) < MAX_EARLY:
                    self._early.append(content)
            case outputs.CallAnswered() | outputs.CallFailed():
                self._calls.end(event)
            case outputs.Joined():
                self._early_until = self._driver.now() + EARLY_S if self._driver is not None else 0.0
                if self._joined is not None and not self._joined.done():
                    self._joined.set_result(None)
            case outputs.Waking():
                self._waking.call()
            case outputs.Disconnected(code):
                self._disconnected.call(code)
            case outputs.Restored():
                self._restored.call()
            case outputs.FellAsleep():
                self._sleep.call()
            case outputs.Woke():
                self._wake.call()
            case outputs.Closed(error):
                self._fail_joined(error)
                self._closed.call(error)

    def _fail_joined(self, error: PlayhallError) -> None:
        if self._joined is not None and not self._joined.done():
            self._joined.set_exception(error)
            self._joined.exception()  # nobody need be waiting


class connect(Generic[S, P]):  # noqa: N801 - used as a function: await it, or enter it
    """Connect to a room: `room = await connect(...)`, or `async with connect(...) as room`, which leaves.

    Done once the first state is in. Raises PlayhallError: at once where the answer is final, else after
    `timeout` seconds of trying.
    """

    def __init__(
        self,
        url: str,
        *,
        project: str,
        room: str,
        schema: Schema[S, P],
        type: str | None = None,
        token: str | None = None,
        timeout: float = 30.0,
        simulate: Net | None = None,
    ) -> None:
        """The parameters are those of RoomClient."""
        self._client = RoomClient(
            url,
            project=project,
            room=room,
            schema=schema,
            type=type,
            token=token,
            timeout=timeout,
            simulate=simulate,
        )

    def __await__(self) -> Generator[Any, None, RoomClient[S, P]]:
        return self._client.__aenter__().__await__()

    async def __aenter__(self) -> RoomClient[S, P]:
        return await self._client.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.leave()


def _stuck() -> PlayhallError:
    return PlayhallError(CloseCode.LIMIT_EXCEEDED, "the connection does not take what was sent before")


def _check_origin(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is not a site's origin, as http://127.0.0.1:7350")
