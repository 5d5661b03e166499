"""`simulate=`: a client on a slow and lossy network, in front of a room under test."""

from __future__ import annotations

import pytest

from playhall.client import Net, RoomClient, connect
from playhall.room import Connection, Entity, Message, Room, Schema, u32
from playhall.testing import RoomHost, TestRoom


class Board(Entity):
    n: u32 = 0


class Echo(Room[Board]):
    schema = Schema(state=Board)

    def on_message(self, conn: Connection, message: Message) -> None:
        self.state.n += 1
        self.broadcast(message, unreliable=message == "maybe")


def client(t: TestRoom[Echo, Board, None], net: Net, url: str = "http://127.0.0.1:7350") -> RoomClient[Board]:
    return RoomClient(
        url,
        project="test",
        room="main",
        schema=Echo.schema,
        dial=lambda receiver: t.dial(receiver, "alice", None),
        simulate=net,
    )


@pytest.mark.ledger("DEV-04")
async def test_it_adds_latency_both_ways(room_host: RoomHost) -> None:
    t = room_host.room(Echo)
    await t.wake()
    alice = client(t, Net(rtt=0.2))
    came: list[Message] = []
    alice.on("message", came.append)
    started = room_host.now().mono
    await room_host.wait(alice.ready)
    assert room_host.now().mono - started == pytest.approx(0.4)
    alice.send("there and back")
    await t.advance(0.199)
    assert (t.room.state.n, came) == (1, [])
    await t.advance(0.002)
    assert came == ["there and back"]
    assert alice.rtt == pytest.approx(0.2)


@pytest.mark.ledger("DEV-04")
async def test_it_loses_unreliable_messages_and_no_others(room_host: RoomHost) -> None:
    t = room_host.room(Echo)
    await t.wake()
    alice = client(t, Net(loss=0.5, seed=3))
    came: list[Message] = []
    alice.on("message", came.append)
    await room_host.wait(alice.ready)
    for n in range(100):
        alice.send("maybe", unreliable=True)
        alice.send(n)
        await t.advance(0.05)
    await t.advance(30)
    assert 30 < t.room.state.n - 100 < 70
    lost_again = t.room.state.n - 100 - came.count("maybe")
    assert 10 < lost_again < 40
    assert [each for each in came if each != "maybe"] == list(range(100))


@pytest.mark.ledger("DEV-04")
@pytest.mark.parametrize(
    "url",
    ["https://game.example", "http://10.0.0.7:7350", "http://127.0.0.1.example:80", "http://localhost.me"],
)
def test_it_is_for_routers_on_this_machine(url: str) -> None:
    with pytest.raises(ValueError, match="on this machine"):
        connect(url, project="p", room="r", schema=Echo.schema, simulate=Net(rtt=0.1))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:7350", "http://[::1]:1", "http://localhost", "http://a.localhost:2"]
)
def test_which_routers_are_on_this_machine(url: str) -> None:
    connect(url, project="p", room="r", schema=Echo.schema, simulate=Net(rtt=0.1))
