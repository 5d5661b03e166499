"""Whatever networks do to clients, and the room host to its room: in the end all clients hold the room."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from playhall.room import Connection, Entity, Message, Room, Schema, u8, u32
from playhall.testing import Net, RoomHost, StillLoop, TestClient, TestRoom

PLAYERS = ("ann", "bob", "cid")


class Board(Entity):
    n: u32 = 0


class Mine(Entity):
    n: u32 = 0


class Piece(Entity):
    at: u8 = 0
    data: bytes = b""


class Game(Room[Board, Mine]):
    schema = Schema(state=Board, private=Mine, entities=[Piece])

    def on_message(self, conn: Connection, message: Message) -> None:
        match message:
            case {"n": int() as n}:
                self.state.n += 1
                self.private(conn).n = n
                self.broadcast({"from": conn.player, "n": n})
                self.broadcast({"maybe": n}, unreliable=True)
                pieces = self.entities.all(Piece)
                match n % 4:
                    case 0 if pieces:
                        self.entities.delete(pieces[n % len(pieces)])
                    case 1 if pieces:
                        pieces[-1].at = n % 256
                        pieces[-1].data = bytes([n % 256]) * (n % 3000)
                    case 2 if pieces:
                        self.entities.set_owner(pieces[0], conn.player if n % 8 == 2 else None)
                    case _:
                        self.entities.add(Piece(at=n % 256), owner=conn.player)


NETS = st.builds(
    Net,
    rtt=st.sampled_from([0.0, 0.08, 0.6]),
    jitter=st.sampled_from([0.0, 0.05, 0.3]),
    loss=st.sampled_from([0.0, 0.3]),
    reorder=st.sampled_from([0.0, 0.5]),
    duplicate=st.sampled_from([0.0, 0.5]),
    bandwidth=st.sampled_from([None, None, 3000.0]),
)
PLAYER = st.sampled_from(PLAYERS)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), PLAYER, st.none()),
        st.tuples(st.just("net"), PLAYER, NETS),
        st.tuples(st.sampled_from(["drop", "cut", "mend", "leave"]), PLAYER, st.none()),
        st.tuples(st.just("wait"), st.none(), st.sampled_from([0.01, 0.05, 0.2, 1.0, 5.0, 17.0])),
        st.tuples(st.sampled_from(["crash", "hibernate"]), st.none(), st.none()),
    ),
    max_size=25,
)


class Play:
    """One schedule: the clients there are, and what each was told."""

    def __init__(self, host: RoomHost, nets: list[Net]) -> None:
        self.t: TestRoom[Game, Board, Mine] = host.room(Game)
        self.nets = dict(zip(PLAYERS, nets, strict=True))
        self.clients: dict[str, TestClient[Board, Mine]] = {}
        self.sent = 0

    async def client(self, player: str) -> TestClient[Board, Mine]:
        found = self.clients.get(player)
        if found is None or found.status == "closed":
            found = self.clients[player] = await self.t.connect(player, net=self.nets[player])
        return found

    async def step(self, step: str, player: str | None, value: Any) -> None:
        if player is None:
            if step == "wait":
                await self.t.advance(value)
            elif self.t.status == "active":
                await getattr(self.t, step)()
            return
        client = await self.client(player)
        match step:
            case "send":
                self.sent += 1
                client.send({"n": self.sent})
            case "net":
                client.net = value
            case "cut" | "mend":
                getattr(client, step)()
            case _:
                await getattr(client, step)()

    async def end(self) -> None:
        for player in PLAYERS:
            client = await self.client(player)
            client.mend()
            client.net = Net()
        await self.t.advance(60)
        for player in PLAYERS:
            client = await self.client(player)
            await client.reconnected()
        await self.t.advance(1)


def held(entities: Any) -> dict[int, tuple[str | None, int, bytes]]:
    return {piece.id: (piece.owner, piece.at, piece.data) for piece in entities.all(Piece)}


def check(play: Play) -> None:
    room = play.t.room
    for player, client in play.clients.items():
        assert held(client.entities) == held(room.entities)
        assert client.state.n == room.state.n
        private = room.private(player)
        assert client.private.n == (0 if private is None else private.n)
        assert set(client.presence) == set(room.presence) == set(PLAYERS)
        for sender in PLAYERS:
            said = [
                n
                for message in client.messages
                if isinstance(message, dict) and message.get("from") == sender
                if isinstance(n := message["n"], int)
            ]
            assert said == sorted(set(said)), "reliable messages come once, and in order"


@settings(max_examples=12, deadline=None)
@given(st.lists(NETS, min_size=3, max_size=3), STEPS)
def test_all_clients_end_equal_to_the_room(nets: list[Net], steps: list[tuple[str, str | None, Any]]) -> None:
    async def main() -> None:
        async with RoomHost() as host:
            play = Play(host, nets)
            for step in steps:
                await play.step(*step)
            await play.end()
            check(play)

    with asyncio.Runner(loop_factory=StillLoop) as runner:
        runner.run(main())
