"""What each client is sent: joins, changes, merges, resumes; and what it is never sent."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from playhall.engine.frames import Resume
from playhall.engine.packing import Group
from playhall.engine.updates import Change, Correct, Enter, Leave, Owner, Patch, Update
from playhall.room import Connection, Entity, Room, Schema, f32, owner_only, u8, u32, writable
from tests.support.rooms import Driver, Gate, TestClient


class Dot(Entity):
    x: f32 = 0
    hand: owner_only[u8] = 0
    pose: writable[u8] = 0


class Chunk(Entity):
    blocks: bytes = b""


class Trap(Entity, hidden=True):
    armed: bool = False


class Board(Entity):
    moves: u32 = 0


class Mine(Entity):
    coins: u32 = 0
    volume: writable[u8] = 5


SCHEMA = Schema(state=Board, private=Mine, entities=[Dot, Chunk, Trap])


class Game(Room[Board, Mine]):
    schema = SCHEMA


@pytest.fixture
def driver() -> Driver:
    return Driver(Game)


def last(client: TestClient) -> Update:
    return client.replica.updates[-1]


def operations(client: TestClient, kind: type[Any]) -> list[Any]:
    return [operation for operation in last(client).operations if isinstance(operation, kind)]


def frames(driver: Driver) -> list[Group]:
    return driver.groups


@pytest.mark.ledger("STATE-01", "STATE-02", "ENT-18")
def test_a_joiner_gets_shared_state_its_own_private_state_and_all_entities(driver: Driver) -> None:
    driver.room.entities.add(Dot(x=3), owner="bob")
    driver.room.private("bob", create=True).coins = 9
    ann = driver.join("ann")
    assert last(ann).full
    assert ann.replica.fields(0) == {"moves": 0}
    assert ann.replica.fields(1) == {"coins": 0, "volume": 5}
    assert ann.replica.of_kind(Dot) == {2: {"x": 3.0, "hand": 0, "pose": 0}}
    driver.assert_in_sync(ann)


@pytest.mark.ledger("ENT-16")
def test_one_change_is_one_frame_for_all(driver: Driver) -> None:
    dot = driver.room.entities.add(Dot())
    clients = [driver.join(name) for name in ("ann", "bob", "cy")]
    driver.tick()
    driver.clear()
    dot.x = 5
    driver.tick()
    [frame] = frames(driver)
    assert list(frame.links) == [client.link for client in clients]
    assert len(frame.heads) == 1
    assert len(frame.heads[0]) == 4
    for client in clients:
        driver.assert_in_sync(client)


@pytest.mark.ledger("ENT-09", "ENT-10")
def test_only_the_last_value_travels_and_no_change_sends_nothing(driver: Driver) -> None:
    dot = driver.room.entities.add(Dot())
    ann = driver.join("ann")
    dot.x = 1
    dot.x = 2
    driver.tick()
    assert last(ann).operations == [Change(dot.id, {0: 2.0})]
    driver.clear()
    dot.x = 2
    driver.tick(5)
    assert driver.outputs == []


@pytest.mark.ledger("SCHM-20")
def test_of_a_hidden_entity_nothing_is_ever_sent(driver: Driver) -> None:
    trap = driver.room.entities.add(Trap())
    ann = driver.join("ann")
    driver.tick()
    assert trap.id not in ann.replica.entities
    driver.clear()
    trap.armed = True
    driver.tick()
    driver.room.entities.delete(trap)
    driver.room.entities.add(Trap(armed=True))
    driver.tick()
    assert frames(driver) == []
    driver.leave(ann)
    driver.rejoin(ann)
    assert list(ann.replica.entities)[:2] == [0, 1]
    driver.assert_in_sync(ann)


@pytest.mark.ledger("STATE-02")
def test_private_state_goes_to_its_player_alone(driver: Driver) -> None:
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.tick()
    driver.clear()
    driver.room.private("ann").coins = 5
    driver.tick()
    assert [list(frame.links) for frame in frames(driver)] == [[ann.link]]
    driver.room.state.moves = 1
    driver.tick()
    for client in (ann, bob):
        assert client.replica.fields(0) == {"moves": 1}
        driver.assert_in_sync(client)


@pytest.mark.ledger("STATE-16", "STATE-17")
def test_owner_only_fields_go_to_the_owner_alone(driver: Driver) -> None:
    dot = driver.room.entities.add(Dot(hand=7), owner="ann")
    ann, bob = driver.join("ann"), driver.join("bob")

    def hand(client: TestClient) -> int:
        value: int = client.replica.fields(dot.id)["hand"]
        return value

    assert (hand(ann), hand(bob)) == (7, 0)
    driver.tick()
    driver.clear()
    dot.hand = 8
    driver.tick()
    assert [list(frame.links) for frame in frames(driver)] == [[ann.link]]
    dot.hand = 9
    dot.x = 1
    driver.tick()
    assert (hand(ann), hand(bob)) == (9, 0)
    driver.room.entities.set_owner(dot, "bob")
    driver.tick()
    assert (hand(ann), hand(bob)) == (9, 9)
    dot.hand = 10
    driver.tick()
    assert (hand(ann), hand(bob)) == (9, 10)
    driver.assert_in_sync(bob)
    driver.assert_in_sync(ann)


@pytest.mark.ledger("OWN-06")
def test_what_room_code_writes_over_an_owner_is_sent_as_a_correction(driver: Driver) -> None:
    dot = driver.room.entities.add(Dot(), owner="ann")
    ann, bob = driver.join("ann"), driver.join("bob")
    dot.pose = 3
    driver.tick()
    assert operations(ann, Correct) == [Correct(dot.id, {2: 3})]
    assert last(bob).operations == [Change(dot.id, {2: 3})]
    driver.room.private("ann").volume = 1
    driver.tick()
    assert operations(ann, Correct) == [Correct(1, {1: 1})]
    driver.assert_in_sync(ann)


@pytest.mark.parametrize("lost_for_good", [True, False])
def test_who_loses_an_entity_takes_the_rooms_values(driver: Driver, lost_for_good: bool) -> None:
    dot = driver.room.entities.add(Dot(), owner="ann")
    ann = driver.join("ann")
    dot.pose = 3
    driver.room.entities.set_owner(dot, None)
    dot.pose = 4
    if not lost_for_good:
        driver.room.entities.set_owner(dot, "ann")
    driver.tick()
    assert ann.replica.fields(dot.id)["pose"] == 4
    driver.assert_in_sync(ann)


@pytest.mark.ledger("ENT-12", "ENT-13")
def test_a_patch_travels_as_the_range(driver: Driver) -> None:
    chunk = driver.room.entities.add(Chunk(blocks=bytes(40_000)))
    ann = driver.join("ann")
    driver.tick()
    driver.clear()
    chunk.patch("blocks", 30_000, b"\x07")
    driver.tick()
    assert last(ann).operations == [Patch(chunk.id, 0, 30_000, b"\x07")]
    [frame] = frames(driver)
    assert len(frame.body) <= 10
    chunk.patch("blocks", 40_010, b"end")
    driver.tick()
    driver.assert_in_sync(ann)
    assert len(ann.replica.fields(chunk.id)["blocks"]) == 40_013


@pytest.mark.ledger("ENT-04")
def test_an_id_used_again_leaves_and_enters(driver: Driver) -> None:
    dot = driver.room.entities.add(Dot(), id=9)
    ann = driver.join("ann")
    driver.room.entities.delete(dot)
    driver.room.entities.add(Chunk(blocks=b"x"), id=9)
    driver.tick()
    assert operations(ann, Leave) == [Leave(9)]
    assert [enter.number for enter in operations(ann, Enter)] == [1]
    driver.assert_in_sync(ann)


def test_what_comes_and_goes_within_a_flush_is_never_heard_of(driver: Driver) -> None:
    ann = driver.join("ann")
    driver.tick()
    driver.clear()
    driver.room.entities.delete(driver.room.entities.add(Dot()))
    driver.tick()
    assert frames(driver) == []
    driver.assert_in_sync(ann)


# A merge: a client without credit is left out, and later gets one update


def test_a_client_without_credit_gets_one_merged_update(driver: Driver) -> None:
    dot, gone = driver.room.entities.add(Dot(), owner="ann"), driver.room.entities.add(Dot())
    ann, bob = driver.join("ann", credit=1), driver.join("bob")
    assert ann.frames == 1
    for value in range(5):
        dot.x = value
        driver.tick()
    driver.room.entities.delete(gone)
    replaced = driver.room.entities.add(Chunk(blocks=b"new"), id=gone.id)
    dot.pose = 9
    driver.tick(2)
    assert ann.frames == 1
    driver.assert_in_sync(bob)
    driver.drain(ann)
    assert ann.frames == 1, "an update is made when a tick ends"
    driver.tick()
    assert ann.frames == 2
    assert operations(ann, Leave) == [Leave(replaced.id)]
    assert Change(dot.id, {0: 4.0, 2: 9}) in last(ann).operations
    assert operations(ann, Correct) == [Correct(dot.id, {2: 9})]
    assert last(ann).version == driver.core.version
    driver.assert_in_sync(ann)


def test_a_merge_corrects_what_was_written_over_and_nothing_else(driver: Driver) -> None:
    driver.room.entities.add(Dot(), owner="ann")
    ann = driver.join("ann", credit=1)
    driver.room.state.moves = 1
    driver.tick()
    driver.drain(ann)
    driver.tick()
    assert operations(ann, Correct) == []


def test_a_big_first_state_goes_in_parts_all_of_one_version(driver: Driver) -> None:
    # What does not deflate.
    chunks = [
        Chunk(blocks=b"".join(hashlib.sha256(b"%d %d" % (i, j)).digest() for j in range(1_200)))
        for i in range(5)
    ]
    for chunk in chunks:
        driver.room.entities.add(chunk)
    ann = driver.join("ann", credit=1000)
    assert ann.frames == 1
    assert ann.replica.updates == []
    chunks[0].patch("blocks", 5, b"later")
    version = driver.core.version
    driver.tick()
    while not ann.replica.updates:
        driver.drain(ann)
    assert ann.frames == 5
    assert ann.replica.version == version
    driver.drain(ann)
    driver.tick()
    driver.assert_in_sync(ann)


# A resume


@pytest.mark.ledger("RECO-03")
def test_a_resume_gets_only_what_is_missing(driver: Driver) -> None:
    dots = [driver.room.entities.add(Dot(x=n), owner="ann" if n == 0 else None) for n in range(5)]
    chunk = driver.room.entities.add(Chunk(blocks=bytes(1_000)))
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.leave(ann)
    dots[1].x = 50
    driver.room.entities.delete(dots[2])
    driver.tick()
    new = driver.room.entities.add(Dot())
    chunk.patch("blocks", 9, b"!")
    driver.tick()
    again = driver.rejoin(ann)
    assert again.joined is not None
    assert again.joined.resumed
    update = last(again)
    assert not update.full
    assert Change(dots[1].id, {0: 50.0}) in update.operations
    assert Patch(chunk.id, 0, 9, b"!") in update.operations
    assert operations(again, Leave) == [Leave(dots[2].id)]
    assert [enter.id for enter in operations(again, Enter)] == [new.id]
    touched = {operation.id for operation in update.operations}
    assert not touched & {dots[3].id, dots[4].id}
    driver.assert_in_sync(again)
    driver.assert_in_sync(bob)


def test_a_resume_without_changes_still_answers_with_an_update(driver: Driver) -> None:
    ann = driver.join("ann")
    again = driver.join("ann", replica=ann.replica, resume=ann.replica.resume(), connected_at_ms=99)
    assert again.log == ["welcome", "update"]
    assert {type(operation) for operation in last(again).operations} == {Correct}


def test_a_resume_corrects_all_that_owners_write(driver: Driver) -> None:
    dot = driver.room.entities.add(Dot(pose=1), owner="ann")
    other = driver.room.entities.add(Dot(pose=1), owner="bob")
    ann = driver.join("ann")
    driver.leave(ann)
    # The client has shown itself what the room never got.
    ann.replica.entities[dot.id].values[2] = 77
    ann.replica.entities[1].values[1] = 77
    again = driver.rejoin(ann)
    corrected = {operation.id for operation in operations(again, Correct)}
    presence = next(id for id, held in ann.replica.entities.items() if held.values[0] == "ann")
    assert corrected == {1, dot.id, presence}
    assert other.id not in corrected
    driver.assert_in_sync(again)


def test_an_entity_gained_in_the_gap_brings_its_secrets(driver: Driver) -> None:
    dot = driver.room.entities.add(Dot(hand=7))
    ann = driver.join("ann")
    driver.leave(ann)
    driver.room.entities.set_owner(dot, "ann")
    driver.tick()
    again = driver.rejoin(ann)
    assert Owner(dot.id, "ann") in last(again).operations
    assert again.replica.fields(dot.id)["hand"] == 7


def test_an_id_recreated_in_the_gap_is_another_entity(driver: Driver) -> None:
    dot = driver.room.entities.add(Dot(), id=9)
    ann = driver.join("ann")
    driver.leave(ann)
    driver.room.entities.delete(dot)
    driver.tick()
    driver.room.entities.add(Chunk(blocks=b"x"), id=9)
    driver.tick()
    again = driver.rejoin(ann)
    assert operations(again, Leave) == [Leave(9)]
    driver.assert_in_sync(again)


@pytest.mark.ledger("RECO-04")
@pytest.mark.parametrize(
    "resume",
    [
        Resume(0, 2, 1, full=False, held=(2,)),
        Resume(0, 1, 10_000, full=False, held=(2,)),
        Resume(0, 1, 1, full=True, held=()),
        Resume(0, 0, 0, full=False, held=()),
    ],
)
def test_what_cannot_be_resumed_is_a_full_state(driver: Driver, resume: Resume) -> None:
    driver.room.entities.add(Dot())
    ann = driver.join("ann", resume=resume)
    assert ann.joined is not None
    assert not ann.joined.resumed
    assert ann.joined.version == driver.core.version - 1
    assert last(ann).full
    driver.assert_in_sync(ann)


def test_a_lie_about_what_is_held_changes_only_the_liars_view(driver: Driver) -> None:
    driver.room.entities.add(Dot(hand=7), owner="bob")
    trap = driver.room.entities.add(Trap())
    bob = driver.join("bob")
    lie = Resume(0, 1, driver.core.version, full=False, held=(2, trap.id, 500, 2**31 + 77))
    eve = driver.join("eve", resume=lie)
    assert [leave.id for leave in operations(eve, Leave)] == [trap.id, 500, 2**31 + 77]
    assert all(not isinstance(o, Change | Correct) or o.id >= 2**31 for o in last(eve).operations)
    driver.tick()
    driver.assert_in_sync(bob)


def test_a_resume_that_waits_for_a_slow_join_misses_nothing() -> None:
    class Slow(Room[Board, Mine]):
        schema = SCHEMA
        gate: Any = None

        def on_join(self, conn: Connection) -> Any:
            return self.gate

    driver = Driver(Slow)
    dot, gone = driver.room.entities.add(Dot()), driver.room.entities.add(Dot())
    ann = driver.join("ann")
    driver.leave(ann)
    gate = driver.room.gate = Gate()
    again = driver.rejoin(ann)
    driver.room.entities.delete(gone)
    driver.tick()
    driver.room.entities.add(Chunk(), id=gone.id)
    dot.x = 4
    driver.tick()
    assert again.log == ["welcome"]
    gate.open = True
    driver.go_on_all()
    assert again.log == ["welcome", "update"]
    driver.assert_in_sync(again)
