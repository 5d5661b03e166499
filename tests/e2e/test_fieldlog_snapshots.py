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
        self.was: dict[int, list[Any]] = {}

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
    """One client, and what must hold at each of its callbacks."""

    def __init__(self, t: TestRoom[Writer, Board, None], client: TestClient[Board, None]) -> None:
        self.t, self.client = t, client
        self.ticks: list[int] = [client.tick]
        self.updates = 0
        self.check_whole()
        client.on_tick(self.updated)
        client.entities.on_enter(Link, self.entered)
        client.entities.on_change(Link, lambda link, names: pytest.fail(f"{link!r} never changes"))

    def entered(self, link: Link) -> None:
        assert link.name == f"#{link.number}"
        oldest = min(each.number for each in self.client.entities.all(Link))
        assert link.number == oldest or self.client.entities.get(Link, link.before) is not None

    def updated(self, tick: int) -> None:
        assert tick > self.ticks[-1], "a version older than, or the same as, the last"
        self.ticks.append(tick)
        self.updates += 1
        self.check_whole()
        assert everything(self.client) == self.t.room.was[tick], "another state than the room's at that tick"

    def check_whole(self) -> None:
        state = self.client.state
        assert state.list == list(range(1, state.counter + 1))
        links = {link.id: link for link in self.client.entities.all(Link)}
        oldest = min((link.number for link in links.values()), default=0)
        for link in links.values():
            assert link.name == f"#{link.number}"
            # The one it points to is there, but for the oldest, whose was deleted.
            assert link.number == oldest or links[link.before].number == link.number - 1
        assert not links or max(link.number for link in links.values()) == state.counter


@pytest.mark.timeout(300)
async def test_f14_a_hundred_readers_join_drop_and_resume(room_host: RoomHost) -> None:
    rng = random.Random(14)
    t = room_host.room(Writer)
    readers: dict[int, Reader] = {}
    updates = resumes = joins = 0
    for _ in range(SECONDS * Writer.tick_rate):
        for _ in range(3):
            number = rng.randrange(READERS)
            reader = readers.get(number)
            if reader is None:
                readers[number] = Reader(t, await t.connect(f"p{number}"))
                joins += 1
            elif rng.random() < 0.2:
                updates += reader.updates
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
    assert updates > 10_000
    for reader in readers.values():
        assert reader.ticks[-1] == t.room.tick
        assert reader.client.state.counter == t.room.state.counter
