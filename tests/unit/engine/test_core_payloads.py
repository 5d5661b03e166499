"""What a room takes from clients, sends and saves, by what it is and how long."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from playhall.engine.outputs import FramesOut, RecordOut
from playhall.room import Connection, Entity, Json, Room, Schema
from tests.support.rooms import Driver


class Story(Entity):
    lines: Json[list[str]] = []  # noqa: RUF012


class Board(Entity):
    data: bytes = b""


class Game(Room[Board]):
    schema = Schema(state=Board, entities=[Story])

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def on_message(self, conn: Connection, message: Any) -> None:
        self.heard.append(message)


@pytest.fixture
def driver() -> Driver:
    return Driver(Game)


@pytest.mark.ledger("MSG-10")
def test_a_message_reaches_the_room_as_it_was_sent_whatever_it_says(driver: Driver) -> None:
    sent: list[Any] = [None, True, -1e308, "", "<b>\u0000", [], {"x": "no number", "": [[{}]]}, b"", b"\xff"]
    ann = driver.join("ann")
    for content in sent:
        driver.send(ann, content)
    assert driver.room.heard == sent
    assert ann.closed is None


@pytest.mark.ledger("CENT-07")
def test_what_is_sent_to_several_and_whole_states_are_deflated_from_1_kb(driver: Driver) -> None:
    driver.room.state.data = bytes(20_000)
    ann, bob = driver.join("ann"), driver.join("bob")
    for client in (ann, bob):
        assert client.received < 300
        driver.assert_in_sync(client)
    for length, deflated in ((1_000, False), (1_100, True)):
        driver.clear()
        driver.room.broadcast("x" * length)
        driver.pump()
        [frame] = driver.groups
        assert (len(frame.body) < 100) is deflated
        assert [client.messages[-1] for client in (ann, bob)] == ["x" * length] * 2


@pytest.mark.ledger("ENT-20")
def test_a_json_field_is_saved_whole_at_each_change_so_histories_grow(driver: Driver) -> None:
    story = driver.room.entities.add(Story())
    driver.tick()
    sizes = []
    for n in range(20):
        driver.clear()
        story.lines = [*story.lines, f"line {n}"]
        driver.tick()
        [record] = driver.of(RecordOut)
        whole = len(json.dumps(story.lines, separators=(",", ":")))
        assert whole < len(record.data) < whole + 40
        sizes.append(len(record.data))
    assert sizes == sorted(sizes)
    assert sum(sizes) > 8 * sizes[-1]


@pytest.mark.parametrize("kept", [True, False])
def test_large_frames_that_somebody_keeps_stay_as_they_are(driver: Driver, kept: bool) -> None:
    # Frames of 16 KB and more leave in the engine's own buffer, which is written again once nobody has them.
    dice = random.Random(7)
    ann = driver.join("ann")
    taken: list[tuple[bytes, bytes, int]] = []
    for size in (20_000, 30_000, 100, 49_000, 30_000, 40_000, 17_000):
        driver.clear()
        driver.room.state.data = dice.randbytes(size)
        driver.tick()
        driver.drain(ann)
        if kept:
            taken += [(out.data, bytes(bytearray(out.data)), hash(out.data)) for out in driver.of(FramesOut)]
        driver.assert_in_sync(ann)
        for data, before, hashed in taken:
            assert data == before
            assert hashed == hash(before)
    assert len(taken) >= 7 * kept
