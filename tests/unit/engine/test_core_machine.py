"""Whatever happens in whatever order, a client that is let read holds exactly what its player sees.

Clients here are `Replica`s, written from the wire's spec alone.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from playhall.engine.kinds import stored_values
from playhall.engine.outputs import Status
from playhall.room import (
    Bot,
    Connection,
    Entity,
    Json,
    Room,
    Schema,
    f32,
    is_bot,
    owner_only,
    u8,
    u32,
    writable,
)
from tests.support.rooms import PLENTY, Driver, TestClient

pytestmark = pytest.mark.ledger("ENT-08", "ENT-17", "RECO-03", "RECO-04", "RST-10", "STATE-16")

PLAYERS = ("ann", "bob", "cy")


class Avatar(Entity):
    x: f32 = 0
    name: str = ""
    hand: owner_only[u8] = 0
    pose: writable[u8] = 0
    note: writable[owner_only[str]] = ""


class Chunk(Entity):
    blocks: bytes
    tags: Json[list[int]] = []  # noqa: RUF012


class Trap(Entity, hidden=True):
    armed: bool


class Score(Entity):
    round: u32
    title: str


class Purse(Entity):
    coins: u32
    volume: writable[u8] = 5
    log: bytes


class Walker(Bot):
    pace: int = 1
    path: list[int] = []  # noqa: RUF012 - copied for each bot

    def tick(self, room: World) -> None:
        for avatar in room.entities.all(Avatar, owner=self.player):
            avatar.x += self.pace


class World(Room[Score, Purse]):
    schema = Schema(state=Score, private=Purse, entities=[Avatar, Chunk, Trap])
    bot_kinds = (Walker,)
    max_players = 4
    private_retention = 3600.0

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Avatar(name=conn.player), owner=conn.player, once=True)
        self.send(conn, {"welcome": conn.player})

    def on_player_leave(self, player: str) -> None:
        for avatar in self.entities.all(Avatar, owner=player):
            self.entities.delete(avatar)


players = st.sampled_from(PLAYERS)
owners = st.one_of(st.none(), players)
small = st.integers(0, 255)
credits = st.sampled_from([PLENTY, PLENTY, 1, 300])


class Rooms(RuleBasedStateMachine):
    """Clients come, drop, resume and read slowly while the room changes, sleeps and crashes."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(World)
        self.open: dict[str, TestClient] = {}
        self.away: dict[str, TestClient] = {}

    @initialize()
    def begin(self) -> None:
        assert self.driver.ready

    # Clients

    @rule(player=players, credit=credits)
    def join(self, player: str, credit: int) -> None:
        self.open[player] = self.driver.join(player, credit=credit)
        self.away.pop(player, None)

    @rule(player=players)
    def drop(self, player: str) -> None:
        client = self.open.pop(player, None)
        if client is not None:
            self.driver.leave(client)
            # An update of which parts are missing never happened.
            self.away[player] = client

    @rule(player=players, credit=credits)
    def come_back(self, player: str, credit: int) -> None:
        client = self.away.pop(player, None)
        if client is not None:
            self.open[player] = self.driver.rejoin(client, credit=credit)

    @rule(player=players)
    def read(self, player: str) -> None:
        if player in self.open:
            self.driver.drain(self.open[player])

    # The room

    def entity(self, pick: int, kind: type[Any]) -> Any:
        found = self.driver.room.entities.all(kind)
        return found[pick % len(found)] if found else None

    @rule(
        owner=owners, id=st.one_of(st.none(), st.integers(2, 12)), kind=st.sampled_from([Avatar, Chunk, Trap])
    )
    def add(self, owner: str | None, id: int | None, kind: type[Entity]) -> None:
        if id is None or self.driver.room.entities.get(id) is None:
            self.driver.room.entities.add(kind(), owner=None if kind is Trap else owner, id=id)

    @rule(pick=small)
    def delete(self, pick: int) -> None:
        found = list(self.driver.room.entities)
        if found:
            self.driver.room.entities.delete(found[pick % len(found)])

    @rule(pick=small, kind=st.sampled_from([Avatar, Chunk]))
    def delete_and_make_anew(self, pick: int, kind: type[Entity]) -> None:
        found = list(self.driver.room.entities)
        if found:
            id = found[pick % len(found)].id
            self.driver.room.entities.delete(found[pick % len(found)])
            self.driver.room.entities.add(kind(), id=id)

    @rule(pick=small, owner=owners)
    def give(self, pick: int, owner: str | None) -> None:
        avatar = self.entity(pick, Avatar)
        if avatar is not None:
            self.driver.room.entities.set_owner(avatar, owner)

    @rule(pick=small, field=st.sampled_from(["x", "hand", "pose"]), value=small)
    def write(self, pick: int, field: str, value: int) -> None:
        avatar = self.entity(pick, Avatar)
        if avatar is not None:
            setattr(avatar, field, value)

    @rule(pick=small, field=st.sampled_from(["name", "note"]), value=st.text(max_size=4))
    def write_text(self, pick: int, field: str, value: str) -> None:
        avatar = self.entity(pick, Avatar)
        if avatar is not None:
            setattr(avatar, field, value)

    @rule(pick=small, value=st.binary(max_size=60))
    def write_bytes(self, pick: int, value: bytes) -> None:
        chunk = self.entity(pick, Chunk)
        if chunk is not None:
            chunk.blocks = value

    @rule(pick=small, offset=st.integers(0, 80), data=st.binary(min_size=1, max_size=6))
    def patch(self, pick: int, offset: int, data: bytes) -> None:
        chunk = self.entity(pick, Chunk)
        if chunk is not None:
            chunk.patch("blocks", offset, data)

    @rule(pick=small, value=st.lists(st.integers(0, 3), max_size=3))
    def write_json(self, pick: int, value: list[int]) -> None:
        chunk = self.entity(pick, Chunk)
        if chunk is not None:
            chunk.tags = value

    @rule(pick=small, value=st.booleans())
    def write_hidden(self, pick: int, value: bool) -> None:
        trap = self.entity(pick, Trap)
        if trap is not None:
            trap.armed = value

    @rule(value=small)
    def write_shared(self, value: int) -> None:
        self.driver.room.state.round = value

    @rule(player=players, coins=small, volume=small, data=st.binary(max_size=3))
    def write_private(self, player: str, coins: int, volume: int, data: bytes) -> None:
        purse = self.driver.room.private(player, create=True)
        purse.coins, purse.volume = coins, volume
        purse.patch("log", coins % 50, data)

    @rule(player=players, name=st.text(max_size=5), status=st.integers(0, 3))
    def write_presence(self, player: str, name: str, status: int) -> None:
        if player in self.driver.room.presence:
            self.driver.room.presence.set(player, name=name, status={"mood": status})

    # Bots and bans

    @rule(pace=st.integers(0, 2), name=st.text(max_size=3))
    def add_bot(self, pace: int, name: str) -> None:
        room = self.driver.room
        if len(room.connections) + len(room.bots) < room.max_players:
            bot = room.bots.add(Walker(pace=pace), name=name)
            room.entities.add(Avatar(), owner=bot.player)
        else:
            with pytest.raises(ValueError, match="seats are taken"):
                room.bots.add(Walker())

    @rule(pick=small, step=st.one_of(small, st.just({1})))
    def move_bot(self, pick: int, step: Any) -> None:
        bots = list(self.driver.room.bots)
        if bots:
            bots[pick % len(bots)].path.append(step)  # a set is no JSON, and the end of the bot

    @rule(pick=small, status=st.integers(0, 3))
    def show_bot(self, pick: int, status: int) -> None:
        bots = list(self.driver.room.bots)
        if bots:
            self.driver.room.presence.set(bots[pick % len(bots)].player, status=status)

    @rule(pick=small)
    def remove_bot(self, pick: int) -> None:
        bots = list(self.driver.room.bots)
        if bots:
            self.driver.room.bots.remove(bots[pick % len(bots)])

    @rule(player=players)
    def ban(self, player: str) -> None:
        self.driver.room.ban(player)
        self.driver.pump()
        client = self.open.pop(player, None)
        assert client is None or client.closed is not None
        assert player not in self.driver.room.presence
        again = self.driver.join(player)
        assert again.closed is not None
        assert again.closed.code == 4006
        self.driver.room.unban(player)

    @invariant()
    def people_and_bots_have_seats(self) -> None:
        room = self.driver.room
        assert len(room.connections) + len(room.bots) <= room.max_players
        assert {bot.player for bot in room.bots} == {player for player in room.presence if is_bot(player)}

    # Time

    @rule(count=st.integers(1, 3))
    def tick(self, count: int) -> None:
        self.driver.tick(count)

    @rule(seconds=st.sampled_from([1.0, 6.0, 11.0]))
    def wait(self, seconds: float) -> None:
        self.driver.advance(seconds)
        self.notice()
        if self.driver.core.status is Status.CLOSED:
            assert not self.open
            self.wake(0.0)

    def notice(self) -> None:
        for player, client in list(self.open.items()):
            if client.closed is not None:
                assert client.closed.code == 4005
                self.away[player] = self.open.pop(player)

    @rule(away=st.sampled_from([0.0, 50.0, 4000.0]))
    def hibernate(self, away: float) -> None:
        self.driver.hibernate()
        assert self.driver.core.status is Status.CLOSED
        self.wake(away)

    @rule()
    def crash(self) -> None:
        self.driver.tick()
        self.wake(0.0)

    def wake(self, away: float) -> None:
        before = saved(self.driver)
        for player, client in self.open.items():
            self.away[player] = client
        self.open = {}
        self.driver = self.driver.wake(away=away)
        assert self.driver.ready
        after = saved(self.driver)
        if away > 3600.0:
            assert after["private"] == {}
            before["private"] = {}
        assert after == before

    @rule()
    def settle(self) -> None:
        for _ in range(40):
            self.driver.tick()
            for client in self.open.values():
                self.driver.drain(client)
            if all(c.replica.updates and in_sync(self.driver, c) for c in self.open.values()):
                break
        for client in self.open.values():
            self.driver.assert_in_sync(client)

    def teardown(self) -> None:
        self.settle()


def in_sync(driver: Driver, client: TestClient) -> bool:
    try:
        driver.assert_in_sync(client)
    except (AssertionError, KeyError):
        return False
    return True


def saved(driver: Driver) -> dict[str, Any]:
    room = driver.room
    return {
        "tick": driver.core.tick_number,
        "state": [str(v) for v in stored_values(room.state)],
        "entities": {e.id: (e.kind, e.owner, [str(v) for v in stored_values(e)]) for e in room.entities},
        "private": {
            player: [str(v) for v in stored_values(room.private(player))] for player in room.private_players()
        },
        "bots": [(repr(bot), room.presence[bot.player]) for bot in room.bots],
    }


TestRooms = Rooms.TestCase
TestRooms.settings = settings(
    max_examples=20, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
