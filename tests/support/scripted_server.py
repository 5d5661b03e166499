"""A server for one ClientCore, that says what a test makes it say, in real frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from playhall.client import f32, outputs, owner_only, u8, u32, writable
from playhall.client.core import ClientCore
from playhall.engine import frames
from playhall.engine.fields import Json
from playhall.engine.kinds import Entity, spec_of, stored_values
from playhall.engine.schema import Schema
from playhall.engine.updates import (
    Section,
    UpdateBuilder,
    encode_change,
    encode_correct,
    encode_enter,
    encode_head,
    encode_leave,
    encode_owner,
    encode_patch,
)

T = TypeVar("T")


class Thing(Entity, abstract=True):
    x: f32


class Dot(Thing):
    volume: writable[u8] = 5
    secret: owner_only[str] = ""
    data: bytes = b""
    tags: Json[list[str]] = []  # noqa: RUF012


class Ball(Thing):
    pass


class Board(Entity):
    moves: u32 = 0


class Mine(Entity):
    coins: u32 = 0
    volume: writable[u8] = 5


SCHEMA = Schema(state=Board, private=Mine, entities=[Dot, Ball])
GENERATION = 7
BALL = Ball(x=1)


@dataclass(frozen=True)
class Sent:
    """A frame the client sent."""

    frame: frames.ClientFrame
    data: bytes


class Server:
    """One client core and the server it talks to, both at `now`."""

    def __init__(
        self,
        schema: Schema[Any, Any] = SCHEMA,
        *,
        rng: float = 1.0,
        token: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        self.schema = schema
        self.now = 100.0
        self.generation = GENERATION
        self.frames: list[frames.ClientFrame] = []
        self.events: list[outputs.Event] = []
        self.orders: list[outputs.OpenTransport | outputs.CloseTransport] = []
        self.core = ClientCore(
            schema,
            project="dots",
            room="main",
            type=None,
            token=token,
            session=bytes(16),
            sdk="test/1",
            rng=lambda: rng,
            timeout=timeout,
        )
        self._sections: list[tuple[Section, bytes]] = []

    # The transport

    def drain(self) -> None:
        for output in self.core.take_outputs():
            match output:
                case outputs.SendFrame(data):
                    self.frames.append(frames.decode_client(data, self.schema))
                case outputs.OpenTransport() | outputs.CloseTransport():
                    self.orders.append(output)
                case _:
                    self.events.append(output)

    def start(self) -> None:
        self.core.start(self.now)
        self.drain()

    def opened(self) -> None:
        self.core.opened(self.now)
        self.drain()

    def closed(self, code: int, reason: str = "") -> None:
        self.core.closed(code, reason, self.now)
        self.drain()

    def say(self, frame: frames.ServerFrame | bytes) -> None:
        data = frame if isinstance(frame, bytes) else frames.encode_server(frame)
        self.core.received(data, self.now)
        self.drain()

    def wait(self, seconds: float) -> None:
        """Let time pass, with every timer on the way."""
        end = self.now + seconds
        while (at := self.core.next_timer()) is not None and at <= end:
            self.now = max(self.now, at)
            self.core.timer(self.now)
            self.drain()
        self.now = end

    def taken(self, kind: type[T]) -> list[T]:
        """Return the frames of a kind that the client has sent, and forget all that it sent."""
        found: list[T] = [frame for frame in self.frames if isinstance(frame, kind)]
        self.frames.clear()
        return found

    def happened(self) -> list[outputs.Event]:
        """Return the events since the last time."""
        events, self.events = self.events, []
        return events

    # What a room says

    def welcome(self, version: int = 1, tick: int = 10, *, resumed: bool = False, **other: Any) -> None:
        given: dict[str, Any] = {
            "generation": self.generation,
            "fraction": 0,
            "asleep": False,
            "tick_rate": 20,
            "player": "alice",
            "room": "main",
            "type": "default",
            "token": "",
        }
        self.say(frames.Welcome(version=version, tick=tick, resumed=resumed, **{**given, **other}))

    def enter(self, id: int, entity: Entity, number: int | None = None, *, owned: bool = False) -> None:
        spec = spec_of(entity)
        if number is None:
            number = self.schema.kinds.index(spec)
        entry = encode_enter(id, number, spec, stored_values(entity), owner_only=owned)
        self._sections.append((Section.ENTER, entry))

    def change(self, id: int, entity: Entity, *names: str, correct: bool = False) -> None:
        spec = spec_of(entity)
        mask = sum(1 << spec.by_name[name].index for name in names)
        encode = encode_correct if correct else encode_change
        section = Section.CORRECT if correct else Section.CHANGE
        self._sections.append((section, encode(id, spec, stored_values(entity), mask)))

    def patch(self, id: int, index: int, offset: int, data: bytes) -> None:
        self._sections.append((Section.PATCH, encode_patch(id, index, offset, data)))

    def own(self, id: int, owner: str | None) -> None:
        self._sections.append((Section.OWNER, encode_owner(id, owner)))

    def leave(self, id: int) -> None:
        self._sections.append((Section.LEAVE, encode_leave(id)))

    def part(self, dv: int = 0, dt: int = 0, *, last: bool = False, full: bool = False) -> bytes:
        """Return a part of what was said since the last one."""
        builder = UpdateBuilder()
        for section, entry in self._sections:
            builder.add(section, entry)
        self._sections.clear()
        [body] = builder.bodies()
        return encode_head(dv, dt, last=last, full=full) + body

    def update(self, dv: int = 1, dt: int = 1, *, full: bool = False) -> None:
        """Send an update of what was said since the last one."""
        self.say(self.part(dv, dt, last=True, full=full))

    def state(self, *entities: tuple[int, Entity]) -> None:
        """Send a whole first state: shared, private and these."""
        self.enter(0, Board())
        self.enter(1, Mine(), owned=True)
        for id, entity in entities:
            self.enter(id, entity)
        self.update(0, 0, full=True)

    def connect(self, *entities: tuple[int, Entity]) -> None:
        """Go all the way to a first state."""
        self.start()
        self.opened()
        self.welcome()
        self.state(*entities)
        self.frames.clear()
        self.events.clear()
        self.orders.clear()


def names(events: Sequence[outputs.Event]) -> list[str]:
    """The names of events."""
    return [type(event).__name__ for event in events]
