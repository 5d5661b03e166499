"""Field log F14: snapshots and patches cross, for a hundred readers that come, drop and resume."""

from __future__ import annotations

import random
from typing import Any

import pytest

from playhall.engine.kinds import stored_values
from playhall.room import Entity, Json, Room, Schema, u32
from playhall.testing import RoomHost, TestClient, TestRoom

READERS = 100
SECONDS = 60
AGE = 20


class Board(Entity):
    counter: u32 = 0
    list: Json[list[int]] = []  # noqa: RUF012 - copied for each


class Link(Entity):
    number: u32
    before: u32
    name: str


class Writer(Room[Board]):
    schema = Schema(state=Board, entities=[Link])
    tick_rate = 10
    max_players = READERS + 1

    def on_create(self) -> None:
        self.was: dict[int, list[Any]] = {self.tick: everything(self)}

    def on_tick(self, dt: float) -> None:
        """Count, append, add one that points to the one before it, and delete one of 20 ticks' age."""
        state = self.state
        state.counter += 1
        state.list = [*state.list, state.counter]
        links = self.entities.all(Link)
        before = links[-1].id if links else 0
        self.entities.add(Link(number=state.counter, before=before, name=f"#{state.counter}"))
        if len(links) >= AGE:
            self.entities.delete(links[0])
        self.was[self.tick] = everything(self)


def everything(side: Writer | TestClient[Board, None]) -> list[Any]:
    """All there is to see."""
    links = sorted(side.entities.all(Link), key=lambda link: link.id)
    return [*stored_values(side.state), [(link.id, *stored_values(link)) for link in links]]


class Reader:
    """One client, and what must hold at its callbacks; what these raise is lost, so they collect it."""

    def __init__(self, t: TestRoom[Writer, Board, None], client: TestClient[Board, None]) -> None:
        self.t, self.client = t, client
        self.tick = client.tick
        self.updates = 0
        self.problems = self.wrong()
        client.on_tick(self.updated)
        client.entities.on_enter(Link, self.entered)
        client.entities.on_change(Link, lambda link, names: self.problems.append(f"{link!r} never changes"))

    def entered(self, link: Link) -> None:
        if link.name != f"#{link.number}":
            self.problems.append(f"{link!r} has empty fields")
        before = self.client.entities.get(Link, link.before)
        if before is None and link.number != min(each.number for each in self.client.entities.all(Link)):
            self.problems.append(f"{link!r} came before what it points to")

    def updated(self, tick: int) -> None:
        # The same tick again is a resume, whose update tells of no more than who is there.
        if tick < self.tick:
            self.problems.append(f"tick {tick} after {self.tick}")
        self.tick = tick
        self.updates += 1
        self.problems += self.wrong()

    def wrong(self) -> list[str]:
        """What is not as it must be, now."""
        client, problems = self.client, []
        if everything(client) != self.t.room.was[client.tick]:
            problems.append(f"another state than the room's at tick {client.tick}")
        if client.state.list != list(range(1, client.state.counter + 1)):
            problems.append(f"the list is not 1 to {client.state.counter}")
        links = {link.id: link for link in client.entities.all(Link)}
        oldest = min((link.number for link in links.values()), default=0)
        # What each points to is there, but for the oldest, whose was deleted.
        problems += [
            f"{link!r} points to another"
            for link in links.values()
            if link.number != oldest and links[link.before].number != link.number - 1
        ]
        return problems


@pytest.mark.timeout(300)
async def test_f14_a_hundred_readers_join_drop_and_resume(room_host: RoomHost) -> None:
    rng = random.Random(14)
    t = room_host.room(Writer)
    readers: dict[int, Reader] = {}
    updates = resumes = joins = 0
    for number in range(READERS):
        readers[number] = Reader(t, await t.connect(f"p{number}"))
    for _ in range(SECONDS * Writer.tick_rate):
        number = rng.randrange(READERS)
        reader = readers.get(number)
        if reader is None:
            readers[number] = Reader(t, await t.connect(f"p{number}"))
            joins += 1
        elif rng.random() < 0.3:
            updates += reader.updates
            assert not reader.problems
            await readers.pop(number).client.leave()
        elif reader.client.status == "open":
            resumes += 1
            await reader.client.drop()
        await t.tick()
    for reader in readers.values():
        await reader.client.reconnected()
    await t.tick()
    updates += sum(reader.updates for reader in readers.values())
    assert min(joins, resumes) > 100
    assert updates > 50_000
    for reader in readers.values():
        assert not reader.problems
        assert reader.tick == t.room.tick
        assert reader.client.state.counter == t.room.state.counter
