"""One room as a router sees it: who runs it, and what to do when somebody wants in and nobody does.

`RoomFlow` is the router's part of the protocols Wake, Failover and Drain. It takes what happens, one call
each, and leaves outputs; it knows no sockets, RPCs or connections. Three sources speak of the owner, and they
are not equal:

- the **shard** (`status`) decides: only it says that an owner is dead;
- a **start** (`started`, `refused`) asked the shard, through the host that opened the room;
- a **hint** from Valkey (`hinted`) may be old: it is tried, and the host answers if it is wrong.

Generations order all of it: what speaks of an older one than is known is old news. `gone` is the newest
generation known to have ended, so that news which crossed its end brings nobody back to it.

Starting is always safe, because `Open` at the shard arbitrates. So where there is doubt (nothing heard yet,
an owner that answers nothing) the flow waits or retries only as long as the shard says that the owner lives;
else it starts the room.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from playhall.engine.codes import CloseCode

__all__ = [
    "Attach", "Forget", "Lose", "Output", "Ownership", "Place", "Reason", "Refusal", "Refuse", "RoomFlow",
    "Route", "StoreHint",
]  # fmt: skip

_FIRST_PAUSE_S = 0.05
_LAST_PAUSE_S = 1.0
_MAX_FRESH_LOOKUPS = 3


@dataclass(frozen=True, slots=True)
class Route:
    """A generation of the room, and the process that runs it."""

    generation: int
    host_id: str
    address: str


class Ownership(enum.Enum):
    """What the shard says of a room."""

    NEW = enum.auto()
    LIVE = enum.auto()
    DEAD = enum.auto()
    CLOSED = enum.auto()
    ASLEEP = enum.auto()
    DELETED = enum.auto()


class Reason(enum.Enum):
    """Why a room is started."""

    CONNECT = enum.auto()
    CRASH = enum.auto()
    DEPLOY = enum.auto()
    SLEEP = enum.auto()


class Refusal(enum.Enum):
    """Why a start came to nothing."""

    BUSY = enum.auto()
    """No host has room now."""
    UNAVAILABLE = enum.auto()
    """Something on the way did not answer."""
    STALE_BUILD = enum.auto()
    """The build that was looked up is older than the one the room ran on."""
    BACK_OFF = enum.auto()
    """The room failed too often."""
    FAILED = enum.auto()
    """Room code raised, or what is stored cannot be used."""
    DELETED = enum.auto()


@dataclass(frozen=True, slots=True)
class Place:
    """Start the room somewhere; answer with `started` or `refused`. `fresh`: look its build up anew.
    `host_id`: the process that can, if there is only one.
    """

    reason: Reason
    fresh: bool
    host_id: str = ""


@dataclass(frozen=True, slots=True)
class Attach:
    """Those who wait may join here."""

    route: Route


@dataclass(frozen=True, slots=True)
class Lose:
    """This generation is over: who is attached to it waits again."""

    route: Route


@dataclass(frozen=True, slots=True)
class Refuse:
    """Close those who wait."""

    code: int
    text: str
    retry_after_ms: int = 0


@dataclass(frozen=True, slots=True)
class StoreHint:
    """Tell other routers."""

    route: Route


@dataclass(frozen=True, slots=True)
class Forget:
    """What was looked up of the room is out of date."""


Output = Place | Attach | Lose | Refuse | StoreHint | Forget


class RoomFlow:
    """See the module's text. `wanted` is called for everybody who starts to wait."""

    def __init__(self) -> None:
        self._route: Route | None = None
        self._closing = False
        self._status: Ownership | None = None
        self._owner: Route | None = None
        self._gone = 0
        self._last: Route | None = None
        self._orphan: Route | None = None
        self._wanted = False
        self._placing = False
        self._fresh = False
        self._moved = False
        self._lookups = 0
        self._failures = 0
        self._paused_until: float | None = None
        self._outputs: list[Output] = []

    @property
    def route(self) -> Route | None:
        """Where the room runs, as far as is known."""
        return self._route

    def is_over(self, generation: int) -> bool:
        """Whether this generation's end is known."""
        return generation <= self._gone

    def knows(self, route: Route) -> bool:
        """Whether the room runs there, or did until just now: only then may the process speak of its end."""
        return route in (self._route, self._owner, self._last)

    @property
    def placing(self) -> bool:
        """Whether a start is under way."""
        return self._placing

    def take_outputs(self) -> list[Output]:
        """What is to be done, in order."""
        outputs, self._outputs = self._outputs, []
        return outputs

    def next_timer(self) -> float | None:
        """When to call `timer`."""
        return self._paused_until

    # Who waits.

    def wanted(self, now: float) -> None:
        """Somebody waits for the room."""
        self._wanted = True
        self._advance(now)

    def unwanted(self) -> None:
        """Nobody waits any more. A start under way goes on."""
        self._wanted = False
        self._paused_until = None

    def joined(self) -> None:
        """The room took somebody in: it is as it should be."""
        self._failures = 0
        self._lookups = 0
        self._moved = False

    def timer(self, now: float) -> None:
        """Time has passed."""
        if self._paused_until is not None and now >= self._paused_until:
            self._paused_until = None
            self._advance(now)

    # What is heard of the owner.

    def hinted(self, route: Route, now: float) -> None:
        """Another router wrote this down some time ago."""
        if (
            self._route is None
            and self._status is None
            and not self._placing
            and route.generation > self._gone
        ):
            self._route = route
            self._advance(now)

    def status(self, status: Ownership, owner: Route, now: float) -> None:
        """The shard says who owns the room. Only LIVE needs an address, the others a generation."""
        if owner.generation < max(self._gone, self._owner.generation if self._owner else 0):
            return
        self._status, self._owner = status, owner
        if status is Ownership.DELETED:
            self._delete()
            return
        self._leave_what_is_over()
        if status is not Ownership.LIVE:
            self._paused_until = None  # there is nobody left to wait for
        self._advance(now)

    def shard_lost(self) -> None:
        """The shard is not heard any more: what it said last may have changed since."""
        self._status = None

    def started(self, route: Route, now: float) -> None:
        """The room runs there: it was started, or the shard named its owner."""
        self._placing = False
        self._fresh = False
        if route.generation <= self._gone:
            self._pause(now)
            return
        if self._route is not None and self._route != route:
            if self._route.generation > route.generation:
                self._advance(now)
                return
            self._lose(self._route)
        self._route, self._closing = route, False
        self._outputs.append(StoreHint(route))
        self._advance(now)

    def refused(
        self,
        refusal: Refusal,
        now: float,
        *,
        code: int = CloseCode.ROOM_STOPPED,
        text: str = "",
        retry_after_ms: int = 0,
    ) -> None:
        """The start came to nothing. `code` and `text` are for FAILED, `retry_after_ms` for BACK_OFF."""
        self._placing = False
        self._fresh = False
        match refusal:
            case Refusal.BUSY | Refusal.UNAVAILABLE:
                self._pause(now)
            case Refusal.STALE_BUILD:
                self._look_up_again(now)
            case Refusal.BACK_OFF:
                self._refuse(CloseCode.ROOM_STOPPED, "the room failed too often and rests", retry_after_ms)
            case Refusal.FAILED:
                self._refuse(code, text)
            case Refusal.DELETED:
                self._delete()

    # What becomes of the route.

    def failed(self, route: Route, now: float) -> None:
        """The process does not answer, or broke off."""
        if route != self._route:
            return
        self._lose(route)
        self._pause_if_owned(route, now)
        self._advance(now)

    def unknown(self, route: Route, now: float) -> None:
        """The process runs, and does not know the generation.

        It was granted the room this moment, or the grant was lost on its way. While the shard hears the
        process it gives the room to nobody else, but it does to this one: so the room is started there.
        """
        if route == self._route:
            self._orphan = route
        self.failed(route, now)

    def closing(self, route: Route, now: float) -> None:
        """The generation ends; nobody can join it any more."""
        if route == self._route:
            self._closing = True
            self._leave_what_is_over()
            self._advance(now)

    def ended(self, route: Route, now: float, *, moved: bool) -> None:
        """The generation was released, was stopped, or lost its grant. `moved`: with people in it, on
        purpose.
        """
        self._gone = max(self._gone, route.generation)
        if self._route is not None and self._route.generation <= self._gone:
            self._lose(self._route)
        self._moved, self._fresh = moved, True
        self._outputs.append(Forget())
        self._advance(now)

    def slept(self, route: Route) -> None:
        """The generation sleeps: its clients know, and nobody is to be told that it is lost."""
        self._gone = max(self._gone, route.generation)
        if route == self._route:
            self._route, self._closing = None, False

    # How it goes on.

    def _advance(self, now: float) -> None:
        if not self._wanted or self._placing or self._paused_until is not None:
            return
        if self._status is Ownership.DELETED:
            self._delete()
            return
        if self._place_orphan():
            return
        self._adopt()
        if self._route is not None:
            if not self._closing:
                self._outputs.append(Attach(self._route))
        elif self._status is not None or self._gone:
            self._placing = True
            self._outputs.append(Place(self._reason(), self._fresh))

    def _place_orphan(self) -> bool:
        orphan, self._orphan = self._orphan, None
        owned = self._status is Ownership.LIVE and orphan is not None and orphan == self._owner
        if orphan is None or not owned or self._route is not None:
            return False
        self._placing = True
        self._outputs.append(Place(self._reason(), self._fresh, orphan.host_id))
        return True

    def _adopt(self) -> None:
        """Take the owner that the shard names, unless its end is known here already."""
        owner = self._owner
        live = self._status is Ownership.LIVE and owner is not None and owner.generation > self._gone
        if live and owner is not None and (self._route is None or self._route.generation < owner.generation):
            self._route, self._closing = owner, False
            self._outputs.append(StoreHint(owner))

    def _reason(self) -> Reason:
        if self._moved:
            return Reason.DEPLOY
        by_status = {Ownership.DEAD: Reason.CRASH, Ownership.ASLEEP: Reason.SLEEP}
        return by_status.get(self._status or Ownership.NEW, Reason.CONNECT)

    def _leave_what_is_over(self) -> None:
        """Leave the route where the shard knows that its generation is over."""
        route, owner, status = self._route, self._owner, self._status
        if route is None or owner is None or status is None or owner.generation < route.generation:
            return
        # A dead owner may be alive for us: it is cut off from the shard, and plays on; but where it was
        # closing, it can neither finish that nor take anybody in. One asleep has told its clients.
        over = status is Ownership.CLOSED or (status is Ownership.DEAD and self._closing)
        if over or owner.generation > route.generation:
            self._lose(route)

    def _lose(self, route: Route) -> None:
        self._route, self._closing, self._last = None, False, route
        self._outputs.append(Lose(route))

    def _pause_if_owned(self, route: Route, now: float) -> None:
        """While the shard hears the owner, nobody else may have the room: try it again, a little later each
        time.
        """
        owner = self._owner
        heard = self._status is Ownership.LIVE and owner is not None and owner.generation <= route.generation
        if heard or self._status is None:
            self._pause(now)

    def _pause(self, now: float) -> None:
        pause = min(_FIRST_PAUSE_S * 2 ** min(self._failures, 10), _LAST_PAUSE_S)
        self._failures += 1
        self._paused_until = now + pause

    def _look_up_again(self, now: float) -> None:
        self._outputs.append(Forget())
        self._fresh = True
        self._lookups += 1
        if self._lookups > _MAX_FRESH_LOOKUPS:
            self._pause(now)
        self._advance(now)

    def _delete(self) -> None:
        if self._route is not None:
            self._lose(self._route)
        self._outputs.append(Forget())
        self._refuse(CloseCode.ROOM_NOT_FOUND, "the room was deleted")

    def _refuse(self, code: int, text: str, retry_after_ms: int = 0) -> None:
        self._wanted = False
        self._paused_until = None
        self._outputs.append(Refuse(code, text, retry_after_ms))
