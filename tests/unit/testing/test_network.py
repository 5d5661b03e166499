"""A network between client and room: what a test can do to it, and what comes of it under its clock."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

from playhall.client import PlayhallError
from playhall.room import Connection, Entity, Message, Room, Schema, u32
from playhall.testing import Net, RoomHost, StillLoop, TestClient
from playhall.testing.network import Network


class Board(Entity):
    n: u32 = 0


class Blob(Entity):
    data: bytes = b""


class Game(Room[Board]):
    schema = Schema(state=Board, entities=[Blob])

    def __init__(self) -> None:
        self.heard: list[Message] = []

    def on_message(self, conn: Connection, message: Message) -> None:
        self.state.n += 1
        self.send(conn, message)

    def on_unreliable(self, conn: Connection, message: Message) -> None:
        self.heard.append(message)
        self.send(conn, message, unreliable=True)


class Picky(Room[None]):
    schema = Schema()

    def on_join(self, conn: Connection) -> None:
        raise PermissionError("no")


SLOW = Net(rtt=0.2)


async def test_connect_moves_the_clock_by_what_the_network_takes(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    await t.wake()
    alice = await t.connect("alice", net=SLOW)
    # Opening a connection, then hello and the first state.
    assert room_host.now().mono == pytest.approx(0.4)
    assert (alice.status, t.room.tick) == ("open", 8)
    await t.connect("bob")
    assert room_host.now().mono == pytest.approx(0.4)


async def test_frames_are_late_and_the_client_knows_by_how_much(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    alice = await t.connect("alice", net=SLOW)
    alice.send("hi")
    await t.advance(0.09)
    assert t.room.state.n == 0
    await t.advance(0.02)
    assert (t.room.state.n, alice.messages) == (1, [])
    await t.advance(0.1)
    assert (alice.messages, alice.state.n) == (["hi"], 1)
    assert alice.rtt == pytest.approx(0.2)


async def test_a_refusal_is_late_too(room_host: RoomHost) -> None:
    t = room_host.room(Picky)
    with pytest.raises(PlayhallError) as refused:
        await t.connect("alice", net=SLOW)
    assert refused.value.code == 4006
    assert room_host.now().mono == pytest.approx(0.4)


async def test_leaving_takes_a_round_trip(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    alice = await t.connect("alice", net=SLOW)
    at = room_host.now().mono
    alice.send("last words")
    await alice.leave()
    assert room_host.now().mono - at == pytest.approx(0.2)
    assert (t.room.state.n, len(t.room.connections)) == (1, 0)


async def unreliable(client: TestClient[Board, None], host: RoomHost, count: int = 60) -> list[object]:
    for n in range(count):
        client.send(n, unreliable=True)
        await host.advance(0.01)
    await host.advance(1)
    return list(client.messages)


async def test_unreliable_messages_drop_and_reorder_while_others_do_neither(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    alice = await t.connect("alice", net=Net(loss=0.2))
    came = await unreliable(alice, room_host)
    assert 20 < len(came) < 55
    assert came == sorted(came, key=lambda n: int(str(n)))

    bob = await t.connect("bob", net=Net(reorder=0.3, duplicate=0.3))
    came = await unreliable(bob, room_host)
    assert set(came) == set(range(60))
    assert len(came) > 60
    assert list(dict.fromkeys(came)) != list(range(60))

    carol = await t.connect("carol", net=Net(jitter=0.1, loss=0.2, reorder=0.3, duplicate=0.3))
    for n in range(60):
        carol.send(n)
    await t.advance(10)
    assert carol.messages == list(range(60))


def test_the_same_seed_is_the_same_schedule() -> None:
    net = Net(rtt=0.05, jitter=0.05, loss=0.2, reorder=0.2, duplicate=0.2)

    async def schedule(seed: int, net: Net) -> list[object]:
        async with RoomHost(seed=seed) as host:
            alice = await host.room(Game).connect("alice", net=net)
            return await unreliable(alice, host, 20)

    def run(seed: int, net: Net = net) -> list[object]:
        with asyncio.Runner(loop_factory=StillLoop) as runner:
            return runner.run(schedule(seed, net))

    assert run(1) == run(1) != run(2)
    assert run(1, replace(net, seed=2)) == run(2)


async def test_a_slow_reader_gets_fewer_updates_and_all_of_the_state(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    alice = await t.connect("alice", net=Net(bandwidth=10_000))
    bob = await t.connect("bob")
    updates = {alice: 0, bob: 0}
    for client in updates:

        def count(_: int, client: TestClient[Board, None] = client) -> None:
            updates[client] += 1

        client.on_tick(count)
    blobs = [t.room.entities.add(Blob()) for _ in range(10)]
    for n in range(60 * 20):
        blobs[n % 10].data = random.Random(n).randbytes(2_000)
        await t.tick()
    assert alice.status == "open"
    assert alice.events == ["waking"]
    assert updates[bob] == 1200
    assert 10 < updates[alice] < 600
    await t.advance(15)
    assert [b.data for b in alice.entities.all(Blob)] == [b.data for b in blobs]
    assert updates[alice] < 620


async def test_a_client_says_which_unreliable_messages_it_dropped(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    alice = await t.connect("alice", net=Net(bandwidth=100_000))
    assert alice.send(bytes(3_000), unreliable=True)
    assert alice.send(bytes(3_000), unreliable=True)
    assert not alice.send(bytes(3_000), unreliable=True)
    assert alice.send(bytes(3_000))
    await t.advance(1)
    assert alice.send(bytes(3_000), unreliable=True)


async def test_a_cut_network_says_nothing_until_both_ends_give_up(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    alice, bob = await t.connect("alice", net=SLOW), await t.connect("bob")
    alice.cut()
    alice.send("lost")
    await t.advance(12)
    assert (alice.status, bob.presence["alice"].connected) == ("open", True)
    await t.advance(4)
    assert (alice.status, alice.closed_with) == ("reconnecting", 1006)
    assert not bob.presence["alice"].connected
    await t.advance(30)
    assert alice.status == "reconnecting"
    with pytest.raises(AssertionError, match="mend"):
        await alice.reconnected()
    alice.mend()
    await alice.reconnected()
    await t.tick()
    assert (alice.status, t.room.state.n) == ("open", 0)
    assert bob.presence["alice"].connected


async def test_a_cut_that_ends_in_time_only_delays(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    alice = await t.connect("alice", net=SLOW)
    alice.send("in flight")
    alice.send("gone", unreliable=True)
    alice.cut()
    t.room.state.n = 5
    await t.advance(10)
    assert (t.room.state.n, alice.state.n, alice.messages) == (5, 0, [])
    alice.mend()
    await t.advance(0.5)
    assert (t.room.state.n, alice.state.n, alice.messages, t.room.heard) == (6, 6, ["in flight"], [])
    assert alice.events == ["waking"]


async def test_a_client_that_is_back_before_its_old_connection_was_missed_takes_its_seat(
    room_host: RoomHost,
) -> None:
    t = room_host.room(Game, max_players=1)
    alice = await t.connect("alice")
    generation = alice.generation
    alice.cut()
    await t.advance(14.5)
    alice.mend()
    await t.advance(20)
    await alice.reconnected()
    assert alice.generation == generation
    assert list(t.room.connections) == ["alice"]


async def test_connecting_over_a_cut_network_fails_after_the_clients_own_time(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    alice = await t.connect("alice")
    alice.cut()
    await alice.drop()
    await t.advance(40)
    assert alice.status == "reconnecting"
    alice.mend()
    await alice.reconnected()


async def test_opening_a_connection_takes_a_round_trip_and_is_given_up_over_a_cut_network(
    room_host: RoomHost,
) -> None:
    network = Network(SLOW, "alice", "seed")
    await room_host.wait(network.handshake())
    assert room_host.now().mono == pytest.approx(0.2)
    network.cut()
    with pytest.raises(TimeoutError):
        await room_host.wait(network.handshake())
    assert room_host.now().mono == pytest.approx(10.2)


async def test_a_crash_over_a_slow_network(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    alice = await t.connect("alice", net=SLOW)
    alice.send("kept")
    await t.advance(0.2)
    before = alice.generation
    await t.crash()
    assert alice.status == "open"  # it has not heard yet
    await alice.reconnected()
    assert (alice.status, alice.state.n) == ("open", 1)
    assert alice.generation == t.generation != before
    assert alice.events == ["waking", "disconnected", "waking", "restored"]


async def test_a_drop_over_a_slow_network_resumes(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    alice = await t.connect("alice", net=SLOW)
    t.room.entities.add(Blob(data=b"here"))
    await t.advance(0.2)
    [blob] = alice.entities.all(Blob)
    alice.send("under way")
    await alice.drop()
    assert alice.status == "reconnecting"
    at = room_host.now().mono
    await alice.reconnected()
    assert room_host.now().mono - at == pytest.approx(0.25 + 0.4)
    assert alice.entities.all(Blob) == [blob]
    assert t.room.state.n == 0


async def test_hibernation_over_a_slow_network(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    alice = await t.connect("alice", net=SLOW)
    await t.hibernate()
    assert (t.status, alice.status) == ("hibernated", "open")
    await t.advance(0.2)
    assert (alice.status, alice.closed_with) == ("closed", 4011)


async def test_the_network_may_change(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    alice = await t.connect("alice")
    alice.net = Net(rtt=1.0)
    assert alice.net.rtt == 1.0
    alice.send("slow")
    await t.advance(0.9)
    assert alice.messages == []
    await t.advance(0.2)
    assert alice.messages == ["slow"]
