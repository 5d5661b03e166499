"""Updates for one client that are put together as it reads: of one version, and cheap while it does not."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import pytest

from playhall.engine.frames import Resume
from playhall.room import Entity, Room, Schema, owner_only, u32, writable
from tests.support.rooms import Driver, Replica, TestClient

CHUNK = 40_000
CREDIT = 1_000
NOISE = random.Random(1).randbytes(CHUNK)


class Chunk(Entity):
    moves: u32 = 0
    volume: writable[u32] = 0
    hand: owner_only[u32] = 0
    blocks: bytes = b""


class Game(Room[None]):
    schema = Schema(entities=[Chunk])


def large_room(chunks: int) -> tuple[Driver, list[Any]]:
    driver = Driver(Game)
    made = [driver.room.entities.add(Chunk(blocks=NOISE)) for _ in range(chunks)]
    driver.tick()
    return driver, made


def read_on(driver: Driver, client: TestClient) -> None:
    """Let the client read until it has its first whole update."""
    while not client.replica.updates:
        before = client.received
        driver.drain(client)
        assert client.received > before


def held(client: TestClient) -> dict[int, Any]:
    return {id: row["moves"] for id, row in client.replica.of_kind(Chunk).items()}


@pytest.mark.parametrize("resumes", [False, True])
def test_what_a_slow_client_gets_first_is_of_one_version(resumes: bool) -> None:
    driver, chunks = large_room(9)
    driver.room.entities.set_owner(chunks[7], "ann")
    driver.tick()
    replica = Replica(Game.schema, "ann")
    resume = Resume(0, 1, 1, full=False, held=()) if resumes else None
    ann = driver.join("ann", credit=CREDIT, replica=replica, resume=resume)
    assert ann.replica.updates == []
    for chunk in chunks:
        chunk.moves, chunk.hand = 1, 2
        chunk.patch("blocks", 10, b"patched")
    driver.room.entities.delete(chunks[8])
    driver.room.entities.set_owner(chunks[6], "ann")
    driver.room.entities.set_owner(chunks[7], "bob")
    late = driver.room.entities.add(Chunk())
    driver.tick()
    read_on(driver, ann)
    assert held(ann) == dict.fromkeys(range(2, 11), 0)
    assert ann.replica.fields(chunks[0].id)["blocks"] == NOISE
    assert {id for id, row in ann.replica.entities.items() if row.owner == "ann"} >= {chunks[7].id}
    for _ in range(20):
        driver.drain(ann)
        driver.tick()
    assert held(ann) == {**dict.fromkeys(range(2, 10), 1), late.id: 0}
    driver.assert_in_sync(ann)


def test_a_merged_update_is_of_one_version_too() -> None:
    driver, chunks = large_room(6)
    ann = driver.join("ann", credit=CREDIT)
    read_on(driver, ann)
    driver.tick()
    driver.room.broadcast("takes the credit there is")
    for chunk in chunks:
        chunk.moves, chunk.blocks = 1, NOISE[::-1]
    driver.tick()
    updates = len(ann.replica.updates)
    driver.drain(ann)
    driver.tick()
    for chunk in chunks:
        chunk.moves = 2
    driver.tick()
    while len(ann.replica.updates) == updates:
        driver.drain(ann)
    assert set(held(ann).values()) == {1}
    for _ in range(5):
        driver.drain(ann)
        driver.tick()
    assert set(held(ann).values()) == {2}
    driver.assert_in_sync(ann)


def test_messages_follow_the_state_that_was_to_come_before_them() -> None:
    driver, _ = large_room(5)
    ann = driver.join("ann", credit=CREDIT)
    driver.room.broadcast("after the state")
    read_on(driver, ann)
    driver.drain(ann)
    assert ann.log[-2:] == ["update", "message"]


@pytest.mark.parametrize("resume", [None, Resume(0, 1, 1, full=False, held=tuple(range(2, 102)))])
def test_clients_that_join_a_large_room_and_read_nothing_take_little_memory(resume: Resume | None) -> None:
    driver, chunks = large_room(100)
    tracemalloc.start()
    try:
        for number in range(20):
            chunks[number].moves += 1
            driver.join(f"p{number}", credit=CREDIT, resume=resume)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A tenth of the state each, with what was sent to them.
    assert used / 20 < 10 * CHUNK
