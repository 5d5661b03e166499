"""The proof of convergence: everything that happens to a room and its clients, against everything.

Clients join, leave, drop and resume; what they see of a room moves, changes hands, goes and comes back; the
room sleeps, moves to another host and crashes; credit is withheld, writes of both sides cross. After every
schedule, once credit is back and a tick has passed, each client holds exactly its view of the room, worked
out anew from the author's own functions.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from playhall.engine.kinds import spec_of, stored_values
from playhall.engine.outputs import Status
from playhall.engine.schema import FIRST_PRESENCE_ID, PRIVATE_ID, SHARED_ID
from playhall.room import Entity
from tests.support.converging import PLENTY, Table
from tests.support.converging_room import (
    FILLER,
    MARGIN,
    MOST,
    PLAYERS,
    RANGE,
    Board,
    Budget,
    Dot,
    Marked,
    Near,
    Purse,
    Rock,
    Trap,
    Walker,
    World,
    saved,
    worth,
)
from tests.support.watched import Player

players = st.sampled_from(PLAYERS)
owners = st.sampled_from([None, *PLAYERS])
small = st.integers(0, 255)
places = st.sampled_from([0.0, 5.0, 19.5, 20.0, 20.5, 24.5, 25.5, 40.0, -22.0, math.nan, 1e30])
ids = st.integers(2, 14)
kinds = st.sampled_from([Dot, Rock, Trap])
poses = st.sampled_from([1, 2, 200, 230, 255])


class Schedules(RuleBasedStateMachine):
    """Everything against everything, and in the end all agree."""

    room_class: type[World]
    settle_ticks = 1
    most_bytes = 49_152

    def __init__(self) -> None:
        super().__init__()
        self.secrets = itertools.count(1)
        # Every value of `hand` that a player has ever been entitled to.
        self.entitled: dict[str, set[int]] = {name: {0} for name in PLAYERS}
        self.table = Table(self.room_class, saved=saved, whole=self.whole)

    @initialize(names=st.sets(players))
    def begin(self, names: set[str]) -> None:
        for name in sorted(names):
            self.table.carry(self.table.player(name))

    def whole(self, player: Player, entity: Entity) -> None:
        """No callback sees half an entity, nor half a tick, nor what is another's alone."""
        if isinstance(entity, Marked):
            assert entity.tag == f"#{entity.born}", entity
        if isinstance(entity, Marked | Board | Purse):
            assert entity.b == (entity.a * 7 + 1) % 256, entity
        if isinstance(entity, Dot):
            assert entity.hand in self.entitled[player.name], (player.name, entity)

    # Clients

    @rule(name=players, credit=st.sampled_from([PLENTY, PLENTY, 1, 400]))
    def come(self, name: str, credit: int) -> None:
        self.table.credit = credit
        self.table.player(name)

    @rule(name=players)
    def come_in(self, name: str) -> None:
        self.table.carry(self.table.player(name))

    @rule(name=players, noticed=st.booleans())
    def drop(self, name: str, noticed: bool) -> None:
        if name in self.table.players:
            self.table.drop(self.table.players[name], noticed=noticed)

    @rule()
    def notice(self) -> None:
        self.table.notice()

    @rule(name=players)
    def leave(self, name: str) -> None:
        if name in self.table.players:
            self.table.players[name].core.leave()
            self.table.pump(self.table.players[name])

    @rule(name=players, count=st.integers(1, 5))
    def what_is_sent_comes(self, name: str, count: int) -> None:
        if name in self.table.players:
            self.table.hear(self.table.players[name], count)

    @rule(name=players, count=st.integers(1, 5))
    def read(self, name: str, count: int) -> None:
        if name in self.table.players:
            self.table.read(self.table.players[name], count)

    @rule(name=players, withheld=st.booleans())
    def withhold_credit(self, name: str, withheld: bool) -> None:
        if name in self.table.players:
            self.table.players[name].withheld = withheld
            if not withheld:
                self.table.give_credit(self.table.players[name])

    # Owners

    def owned(self, name: str, pick: int) -> Dot | None:
        if name not in self.table.players:
            return None
        mine = self.table.players[name].entities.mine(Dot)
        return mine[pick % len(mine)] if mine else None

    @rule(
        name=players, pick=small, pose=st.sampled_from([1, 2, 200, 230, 255]), note=st.text("xy", max_size=2)
    )
    def owner_writes(self, name: str, pick: int, pose: int, note: str) -> None:
        dot = self.owned(name, pick)
        if dot is not None and self.table.players[name].core.status != "closed":
            dot.pose, dot.note = pose, note

    @rule(name=players, pick=small, pose=poses, rooms=poses, how=st.sampled_from(["cross", "lose", "lag"]))
    def owner_and_room_write(self, name: str, pick: int, pose: int, rooms: int, how: str) -> None:
        """An owner's write is under way: the room writes too, or it is lost, or its correction is late."""
        player = self.table.players.get(name)
        if player is None:
            return
        self.table.carry(player)
        dot = self.owned(name, pick)
        if dot is None or player.core.status != "open":
            return
        dot.pose = pose
        self.table.tick()
        if how == "lose":
            self.table.drop(player, noticed=rooms == 1)
        elif (theirs := self.room.entities.get(Dot, dot.id)) is not None:
            theirs.pose = rooms
            if how == "lag":
                self.table.tick()
            self.table.hear(player, 9)
            self.table.tick()

    @rule(name=players, pick=small, offset=st.integers(0, 12), data=st.binary(min_size=1, max_size=3))
    def owner_patches(self, name: str, pick: int, offset: int, data: bytes) -> None:
        dot = self.owned(name, pick)
        if dot is not None and self.table.players[name].core.status != "closed":
            dot.patch("pixels", offset, data)

    @rule(name=players, status=st.integers(0, 3))
    def show(self, name: str, status: int) -> None:
        player = self.table.players.get(name)
        if player is not None and player.core.status == "open":
            player.core.set_status({"is": status})
            purse = player.core.replica.get(PRIVATE_ID)
            if isinstance(purse, Purse):
                purse.volume = status

    # The room

    @property
    def room(self) -> World:
        room: World = self.table.room
        return room

    def pick(self, pick: int, kind: type[Any]) -> Any:
        found = self.room.entities.all(kind)
        return found[pick % len(found)] if found else None

    @rule(
        owner=owners,
        id=st.none() | ids,
        kind=st.sampled_from([Dot, Rock, Trap]),
        x=places,
        again=st.booleans(),
    )
    def add(self, owner: str | None, id: int | None, kind: type[Any], x: float, again: bool) -> None:
        room = self.room
        there = room.entities.get(id) if id is not None else None
        if there is not None:
            if not again:
                return
            room.entities.delete(there)
        if kind is Rock and room.entities.count(Rock) >= 40:
            return
        values = {"team": int(x == 0)} if kind is Rock else {"x": x}
        added = room.entities.add(
            kind(**values, **room.marks()), owner=None if kind is Trap else owner, id=id
        )
        if isinstance(added, Dot):
            self.deal(added)

    @rule(pick=small)
    def delete(self, pick: int) -> None:
        entity = self.pick(pick, Entity)
        if entity is not None:
            self.room.entities.delete(entity)

    @rule(pick=small, x=places, y=places)
    def move(self, pick: int, x: float, y: float) -> None:
        dot = self.pick(pick, Dot)
        if dot is not None:
            dot.x, dot.y = x, y

    @rule(name=players, x=places, y=places)
    def walk(self, name: str, x: float, y: float) -> None:
        dot = self.room.entities.first(Dot, owner=name)
        if dot is not None:
            dot.x, dot.y = x, y

    @rule(pick=small, owner=owners)
    def give(self, pick: int, owner: str | None) -> None:
        entity = self.pick(pick, Marked)
        if entity is not None and not isinstance(entity, Trap):
            self.room.entities.set_owner(entity, owner)
            if isinstance(entity, Dot):
                self.entitle(entity)

    @rule(pick=small, pose=small, note=st.text("ab", max_size=2))
    def room_writes_what_owners_write(self, pick: int, pose: int, note: str) -> None:
        dot = self.pick(pick, Dot)
        if dot is not None:
            dot.pose, dot.note = pose, note
            dot.patch("pixels", pose % 10, bytes([pose]))

    @rule(pick=small)
    def deal_one(self, pick: int) -> None:
        dot = self.pick(pick, Dot)
        if dot is not None:
            self.deal(dot)

    def deal(self, dot: Dot) -> None:
        dot.hand = next(self.secrets)
        self.entitle(dot)

    def entitle(self, dot: Dot) -> None:
        if dot.owner in self.entitled:
            self.entitled[dot.owner].add(dot.hand)

    @rule(pick=small, a=small)
    def turn(self, pick: int, a: int) -> None:
        entity = self.pick(pick, Marked)
        if entity is not None:
            entity.a, entity.b = a, (a * 7 + 1) % 256

    @rule(
        pick=small, offset=st.integers(0, 90), data=st.binary(max_size=30), deck=st.lists(small, max_size=2)
    )
    def patch(self, pick: int, offset: int, data: bytes, deck: list[int]) -> None:
        dot = self.pick(pick, Dot)
        if dot is not None:
            dot.patch("blocks", offset, data)
            dot.deck = deck

    @rule(pick=small, size=st.sampled_from([0, 3_000, 49_152]))
    def grow(self, pick: int, size: int) -> None:
        dot = self.pick(pick, Dot)
        if dot is not None:
            dot.blocks = FILLER[: min(size, self.most_bytes)]

    @rule(name=players, pick=small, a=small, credit=st.sampled_from([PLENTY, 1]))
    def change_behind(self, name: str, pick: int, a: int, credit: int) -> None:
        """Much to tell, then a change that waits while others do not; and a drop before it is told."""
        self.grow(pick, 49_152)
        self.table.tick()
        self.turn(pick + 1, a)
        self.write_columns(a, 1.0)
        self.write_state(name, a, b"")
        self.table.tick()
        if name in self.table.players:
            player = self.table.players[name]
            self.table.read(player, 99)
            self.table.credit = credit
            self.table.drop(player, noticed=True)
            self.table.carry(self.table.player(name))

    @rule(a=small, dial=st.sampled_from([-1.0, 0.0, 1.0]))
    def write_columns(self, a: int, dial: float) -> None:
        rocks = self.room.entities.columns(Rock)
        rocks.a += a
        rocks.b = rocks.a.astype(int) * 7 + 1 & 255
        rocks.dial = dial
        rocks.team[::2] ^= a & 1

    @rule(name=players, a=small, data=st.binary(max_size=9))
    def write_state(self, name: str, a: int, data: bytes) -> None:
        b = (a * 7 + 1) % 256
        self.room.state.a, self.room.state.b, self.room.state.title = a, b, name
        purse = self.room.private(name, create=True)
        purse.a, purse.b, purse.volume = a, b, a
        purse.patch("log", a % 50, data)

    @rule(name=players, team=st.integers(0, 1), id=ids, other=players)
    def look_elsewhere(self, name: str, team: int, id: int, other: str) -> None:
        self.room.team[name] = team
        self.room.cloaked ^= {(name, id)}
        self.room.blocked ^= {(name, other)}

    @rule(name=players, shown=st.text(max_size=3), status=st.integers(0, 3))
    def write_presence(self, name: str, shown: str, status: int) -> None:
        if name in self.room.presence:
            self.room.presence.set(name, name=shown, status={"is": status})

    @rule(pace=st.integers(0, 9))
    def add_bot(self, pace: int) -> None:
        room = self.room
        if len(room.connections) + len(room.bots) < room.max_players:
            bot = room.bots.add(Walker(pace=pace))
            self.deal(room.entities.add(Dot(**room.marks()), owner=bot.player))

    @rule()
    def remove_bot(self) -> None:
        for bot in list(self.room.bots)[:1]:
            self.room.bots.remove(bot)

    @rule(name=players, forever=st.booleans())
    def throw_out(self, name: str, forever: bool) -> None:
        room = self.room
        if forever:
            room.ban(name)
        elif name in room.connections:
            room.kick(room.connections[name])
        self.table.pump_room()

    @rule(name=players)
    def forgive(self, name: str) -> None:
        self.room.unban(name)

    # Time, and the room's life

    @rule(count=st.sampled_from([1, 1, 2, 5, 90]))
    def tick(self, count: int) -> None:
        for _ in range(count):
            self.table.tick()

    @rule(answers=st.booleans(), count=st.integers(0, 3))
    def store(self, answers: bool, count: int) -> None:
        self.table.store_answers = answers
        self.table.becomes_durable(None if answers else count)

    @rule(kept=st.sampled_from([0, 0, 1, 99]), with_sockets=st.booleans())
    def crash(self, kept: int, with_sockets: bool) -> None:
        if self.table.core.status is Status.ACTIVE:
            self.table.crash(kept, with_sockets=with_sockets)

    @rule(move=st.booleans())
    def hibernate(self, move: bool) -> None:
        self.table.hibernate(move=move)

    # In the end

    def teardown(self) -> None:
        table = self.table
        self.store(answers=True, count=0)
        table.notice()
        table.credit = PLENTY
        for name in PLAYERS:
            self.room.unban(name)
        for bot in self.room.bots:
            bot.pace = 0  # type: ignore[attr-defined]  # they are all Walkers
        for _ in range(200):
            for name in PLAYERS:
                player = table.player(name)
                player.withheld = False
                table.give_credit(player)
                table.carry(player)
            if all(table.player(name).core.status == "open" for name in PLAYERS):
                break
            table.tick()
        else:
            raise AssertionError([(p.name, p.core.status) for p in table.players.values()])
        # What owners wrote just now is sent with the first tick, and answered by the second.
        for _ in range(2 + self.settle_ticks):
            table.tick()
            for player in table.players.values():
                table.carry(player)
        for player in table.players.values():
            self.check(player)

    def check(self, player: Player) -> None:
        room, replica, name = self.room, player.core.replica, player.name
        shown = {entity.id for entity in player.entities}
        self.check_seen(name, shown)
        expected: dict[int, Entity] = {id: room.entities.get(id) for id in shown}  # type: ignore[misc]
        expected[SHARED_ID] = room.state
        private = room.private(name)
        assert private is not None
        expected[PRIVATE_ID] = private
        for id, theirs in expected.items():
            mine = replica.get(id)
            assert mine is not None
            assert type(mine) is type(theirs)
            assert id == PRIVATE_ID or mine.owner == theirs.owner
            pairs = zip(spec_of(theirs).fields, stored_values(mine), stored_values(theirs), strict=True)
            for field, held, true in pairs:
                if not field.owner_only or theirs.owner == name:
                    assert field.type.same(held, true), (name, theirs, field.name, held)
        assert not [id for id in replica.ids() if id < FIRST_PRESENCE_ID and id not in expected]
        assert player.presence() == {
            entry.player: (entry.name, entry.status, entry.connected)
            for entry in room.presence.values()
            if entry.player == name or (name, entry.player) not in room.blocked
        }

    def check_seen(self, name: str, shown: set[int]) -> None:
        """Compare what is shown with all that is not hidden."""
        assert shown == {entity.id for entity in self.room.entities if not isinstance(entity, Trap)}


class Everything(Schedules):
    room_class = World


class Interested(Schedules):
    room_class: type[World] = Near
    margin = MARGIN
    most = MOST

    def check_seen(self, name: str, shown: set[int]) -> None:
        """Hold what is shown between the least and the most that the author's functions allow.

        Between range and margin, and from the limit to a tenth over it, it depends on what was seen before.
        """
        everything = [entity for entity in self.room.entities if not isinstance(entity, Trap)]
        mine = {entity.id for entity in everything if entity.owner == name}
        assert mine <= shown
        least = {e.id for e in everything if self.is_seen(name, e, RANGE)} - mine
        most = {e.id for e in everything if self.is_seen(name, e, RANGE + self.margin)} - mine
        others = shown - mine
        assert others <= most
        assert len(others) <= self.most * 1.1
        entities: Any = self.room.entities
        conn = self.room.connections[name]

        def rank(id: int, among: set[int]) -> int:
            keys = [(-worth(self.room, conn, entities.get(each)), each) for each in among | {id}]
            return sorted(keys).index((-worth(self.room, conn, entities.get(id)), id)) + 1

        assert {id for id in least if rank(id, most) <= self.most} <= others
        assert all(rank(id, least) <= self.most * 1.1 for id in others)

    def is_seen(self, name: str, entity: Entity, reach: float) -> bool:
        room = self.room
        if isinstance(entity, Rock):
            return entity.team == room.team.get(name, 0) and (name, entity.id) not in room.cloaked
        me = room.entities.first(Dot, owner=name)
        if me is None or not isinstance(entity, Dot):
            return False
        return math.dist((me.x, me.y), (entity.x, entity.y)) <= reach


class Thrifty(Interested):
    """With a byte budget, what is seen is all the same, only later."""

    room_class = Budget
    margin = 0.0
    most = 1_000
    settle_ticks = 160
    most_bytes = 6_000


TestEverything = Everything.TestCase
TestInterested = Interested.TestCase
TestThrifty = Thrifty.TestCase
# Fewer than the profile says: each schedule has many steps, for things have to cross.
TestEverything.settings = TestInterested.settings = settings(
    max_examples=settings().max_examples // 2,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestThrifty.settings = settings(TestEverything.settings, max_examples=settings().max_examples // 4)
