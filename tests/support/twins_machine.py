"""The differential machine: all that room code and clients can do, right or wrong, in any order.

It checks nothing by itself: it notes what every call returned or raised, and `read_world` reads the rest. The
two engines are compared by `twins`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from playhall.engine.frames import Resume
from playhall.engine.kinds import spec_of
from playhall.engine.outputs import Status
from playhall.engine.schema import PRIVATE_ID
from playhall.room import Entity
from tests.support.rooms import PLENTY, Driver, TestClient
from tests.support.twin_reads import read_columns, read_core, read_entity
from tests.support.twins_room import KINDS, PATHS, PLACES, PLAYERS, ROOMS, Npc, TwinRoom, Walker

__all__ = ["World", "deed", "kinds", "owners", "picks", "read_world", "whos"]

MOST_KEPT = 6
# Of what room code and clients are asked to do, these are as often wrong as right.
ODD: tuple[Any, ...] = (
    *(-1, 0, 1, 127, 128, 255, 256, -129, 32_768, 2**31, 2**32 - 1, 2**32, 2**63, 2**70),
    *(0.0, -0.0, 0.1, 0.5, 1.0, -1.0, 360.0, 1e30, 3.5e38, 1e300, math.nan, math.inf, -math.inf),
    *(True, False, None, "", "é", "text", "\ud800", "x" * 16_385, b"", b"\0\xff" * 20, bytes(49_153)),
    *([], [1, [2]], {"a": {"b": None}}, {1: 2}, [math.nan], ["y" * 16_400]),
)
FITTING: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "f32": st.floats(-30, 30, width=32) | st.sampled_from([0.0, -0.0, math.nan, math.inf]),
    "f64": st.floats(),
    "q8": st.floats(0, 1),
    "q16": st.floats(0, 1),
    "str": st.text(max_size=5),
    "bytes": st.binary(max_size=40),
    "json": st.none()
    | st.lists(st.integers(0, 3), max_size=3)
    | st.dictionaries(st.text("ab"), st.booleans()),
    **{name: st.integers(0, 127) for name in ("u8", "u16", "u32", "i8", "i16", "i32")},
}
kinds = st.sampled_from(sorted(KINDS))
rich = st.sampled_from(["thing", "thing", "thing", "npc", "npc", "wide"])
whos = st.sampled_from(PLAYERS)
owners = st.sampled_from([None, None, *PLAYERS, "bot:1", "", "a" * 200, 5])
ids = st.none() | st.integers(2, 14) | st.sampled_from([0, 1, -1, 2**31 - 1, 2**31, True, "4"])
picks = st.integers(0, 255)
places = st.sampled_from(
    [0.0, 5.0, 9.99, 10.0, 19.5, 20.0, 20.5, 24.5, 25.5, -22.0, math.nan, 1e30, -math.inf]
)
values = st.one_of(
    st.sampled_from(ODD), st.integers(0, 255), st.floats(-1, 1, width=32), st.text("ab", max_size=3)
)


def writes_to(kind: str) -> st.SearchStrategy[tuple[str, Any]]:
    """A field of a kind and a value, which mostly fits."""
    fitting = {field.name: FITTING[field.type.name] for field in spec_of(KINDS[kind]).fields}
    names = st.sampled_from([*fitting, "memo", "nmae"])
    fits = st.sampled_from([True, True, True, False])
    return st.tuples(names, fits).flatmap(
        lambda drawn: st.tuples(st.just(drawn[0]), fitting.get(drawn[0], values) if drawn[1] else values)
    )


writes = {kind: writes_to(kind) for kind in KINDS}


def writes_of_kind(kind: str) -> st.SearchStrategy[tuple[str, list[tuple[int, tuple[str, Any]]]]]:
    """A kind, and what is written to some of it."""
    return st.tuples(st.just(kind), st.lists(st.tuples(picks, writes[kind]), min_size=1, max_size=6))


givens = kinds.flatmap(lambda kind: st.tuples(st.just(kind), st.lists(writes[kind], max_size=3).map(dict)))
pieces = st.binary(max_size=12)
npc_fields = st.sampled_from([*spec_of(Npc).by_name, "nope"])
selections = st.sampled_from(["all", "half", "first", "last", "mask", "none", "rows", "beyond"])
ticks = st.floats(-3, 14) | st.sampled_from([0, -0.5, math.nan, math.inf, "2"])


def deed(**drawn: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Any]:
    """A rule of room code, after which the room may tick."""

    def decorate(do: Callable[..., None]) -> Any:
        def run(self: World, ticks: int, **given: Any) -> None:
            do(self, **given)
            self.driver.tick(ticks)

        run.__name__ = do.__name__
        strategies: dict[str, Any] = {"ticks": st.sampled_from([0, 0, 1]), **drawn}
        made: Any = rule(**strategies)
        return made(run)

    return decorate


class World(RuleBasedStateMachine):
    """A room, its clients, and every handle and array that room code has ever kept."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[Any] = []
        self.handles: list[Entity] = []
        self.columns: list[tuple[Any, type[Entity]]] = []
        self.arrays: list[Any] = []
        self.clients: dict[str, TestClient] = {}
        self.driver = Driver(TwinRoom)
        self.kind_of_room = "open"

    @initialize(room=st.sampled_from(sorted(ROOMS)), names=st.sets(whos).map(sorted), npcs=st.integers(0, 12))
    def begin(self, room: str, names: list[str], npcs: int) -> None:
        self.kind_of_room = room
        self.driver = Driver(ROOMS[room])
        for name in names:
            self.join(name, PLENTY)
        for number in range(npcs):
            self.room.entities.add(Npc(x=number * 5 % 23, y=number, team=number % 2))
        self.driver.tick()

    @property
    def room(self) -> Any:
        return self.driver.room

    # What is noted

    def note(self, call: Callable[[], Any]) -> Any:
        """Note what a call returns or raises. Returns what it returned, or None."""
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy, about what wraps
                found = call()
        except Exception as error:
            self.noted.append(error)
            return None
        finally:
            self.driver.pump()
        self.noted.append(read_entity(found) if isinstance(found, Entity) else found)
        return found

    def keep_handle(self, make: Callable[[], Any]) -> None:
        made = self.note(make)
        if isinstance(made, Entity) and not any(made is handle for handle in self.handles):
            self.handles.append(made)

    def handle(self, pick: int) -> Any:
        """One of all handles there ever were, or rather of those that live."""
        living = [self.room.state, *self.room.entities]
        found = living if pick % 4 else [*living, *self.handles]
        return found[pick % len(found)]

    # Entities

    @deed(given=givens)
    def make(self, given: tuple[str, dict[str, Any]]) -> None:
        self.keep_handle(lambda: KINDS[given[0]](**given[1]))

    @deed(given=givens, owner=owners, id=ids, once=st.booleans())
    def add_new(self, given: tuple[str, dict[str, Any]], owner: Any, id: Any, once: bool) -> None:
        room = self.room
        self.keep_handle(
            lambda: room.entities.add(KINDS[given[0]](**given[1]), owner=owner, id=id, once=once)
        )

    @deed(kind=rich, some=st.lists(st.tuples(places, places), min_size=1, max_size=4), owner=owners)
    def add_placed(self, kind: str, some: list[tuple[float, float]], owner: Any) -> None:
        for x, y in some:
            at = {} if kind == "wide" else {"x": x, "y": y}
            made = self.note(partial(KINDS[kind], **at))
            self.keep_handle(partial(self.room.entities.add, made, owner=owner))

    @deed(pick=picks, owner=owners, id=ids)
    def add_again(self, pick: int, owner: Any, id: Any) -> None:
        self.note(lambda: self.room.entities.add(self.handle(pick), owner=owner, id=id))

    @deed(pick=picks)
    def delete(self, pick: int) -> None:
        self.note(lambda: self.room.entities.delete(self.handle(pick)))

    @deed(pick=picks, kind=kinds, owner=owners)
    def replace(self, pick: int, kind: str, owner: Any) -> None:
        """An id goes, and comes again at once as something else."""
        there = list(self.room.entities)
        if there:
            old = there[pick % len(there)]
            self.note(lambda: self.room.entities.delete(old))
            self.keep_handle(lambda: self.room.entities.add(KINDS[kind](), id=old.id, owner=owner))

    @deed(pick=picks, owner=owners)
    def give(self, pick: int, owner: Any) -> None:
        self.note(lambda: self.room.entities.set_owner(self.handle(pick), owner))

    @deed(pick=picks, write=writes["thing"] | writes["npc"])
    def write(self, pick: int, write: tuple[str, Any]) -> None:
        self.note(lambda: setattr(self.handle(pick), *write))

    @deed(deeds=rich.flatmap(writes_of_kind))
    def write_kind(self, deeds: tuple[str, list[tuple[int, tuple[str, Any]]]]) -> None:
        kind, some = deeds
        found = self.room.entities.all(KINDS[kind])
        for pick, write in some if found else ():
            self.note(partial(setattr, found[pick % len(found)], *write))

    @deed(some=st.lists(st.tuples(picks, places, places), min_size=1, max_size=5))
    def move(self, some: list[tuple[int, float, float]]) -> None:
        def write(entity: Any, x: float, y: float) -> None:
            entity.x, entity.y = x, y

        for pick, x, y in some:
            self.note(partial(write, self.handle(pick), x, y))

    @deed(who=whos, x=places, y=places)
    def walk(self, who: str, x: float, y: float) -> None:
        thing = self.room.entities.first(KINDS["thing"], owner=who)
        if thing is not None:
            thing.x, thing.y = x, y

    @deed(pick=picks, name=st.sampled_from(["x", "id", "owner", "memo", "kind", "w254", "nope"]))
    def unset(self, pick: int, name: str) -> None:
        self.note(lambda: delattr(self.handle(pick), name))

    @deed(
        pick=picks,
        name=st.sampled_from(["blocks", "blocks", "pixels", "map", "log", "name", "nope"]),
        offset=st.integers(0, 60) | st.sampled_from([-1, 49_151, 49_152, True, "0"]),
        data=pieces | st.sampled_from(["text", bytearray(b"ab"), bytes(49_152)]),
    )
    def patch(self, pick: int, name: str, offset: Any, data: Any) -> None:
        self.note(lambda: self.handle(pick).patch(name, offset, data))

    @deed(pick=picks, size=st.sampled_from([0, 300, 20_000, 49_152]))
    def grow(self, pick: int, size: int) -> None:
        self.note(lambda: setattr(self.handle(pick), "blocks", bytes(n % 251 for n in range(size))))

    @deed(pick=picks, change=st.integers(0, 9))
    def change_json_in_place(self, pick: int, change: int) -> None:
        tags = getattr(self.handle(pick), "tags", None) if self.is_there(pick) else None
        if isinstance(tags, list):
            tags.append(change)

    def is_there(self, pick: int) -> bool:
        return self.handle(pick) in self.room.entities

    @deed(kind=kinds, owner=owners, id=ids)
    def look_for(self, kind: str, owner: Any, id: Any) -> None:
        entities, cls = self.room.entities, KINDS[kind]
        self.note(lambda: entities.get(id))
        self.note(lambda: entities.get(cls, id))
        self.note(lambda: entities.first(cls, owner=owner))
        self.note(lambda: [read_entity(each) for each in entities.all(cls, owner=owner)])
        self.note(lambda: [handle in entities for handle in self.handles])

    # Columns

    @deed(kind=kinds)
    def ask_columns(self, kind: str) -> None:
        def ask() -> None:
            columns = self.room.entities.columns(KINDS[kind])
            self.columns = [*self.columns, (columns, KINDS[kind])][-MOST_KEPT:]

        self.note(ask)

    @deed(pick=picks, name=npc_fields, start=st.integers(-5, 15), step=st.sampled_from([1, 2, -1, 3]))
    def keep_array(self, pick: int, name: str, start: int, step: int) -> None:
        if self.columns:
            columns = self.columns[pick % len(self.columns)][0]
            found = self.note(lambda: getattr(columns, name)[start::step])
            if found is not None:
                self.arrays = [*self.arrays, found][-MOST_KEPT:]

    @deed(
        name=npc_fields | st.just("id"), which=selections, value=values, how=st.sampled_from(["put", "add"])
    )
    def write_rows(self, name: str, which: str, value: Any, how: str) -> None:
        def write() -> None:
            column = getattr(self.room.entities.columns(Npc), name)
            rows = select(which, len(column))
            if how == "put":
                column[rows] = value
            else:
                column[rows] += value

        self.note(write)

    @deed(name=npc_fields | st.just("alive"), value=values, size=st.integers(0, 12) | st.none())
    def assign_column(self, name: str, value: Any, size: int | None) -> None:
        given = value if size is None else [value] * size
        self.note(lambda: setattr(self.room.entities.columns(Npc), name, given))

    @deed(
        dx=st.sampled_from([0.5, -3.0, 0.0]), team=st.integers(0, 2), dial=st.sampled_from([-1.0, 0.004, 1.0])
    )
    def move_all(self, dx: float, team: int, dial: float) -> None:
        npcs = self.room.entities.columns(Npc)
        npcs.x += npcs.speed + dx
        npcs.team[::2] = team
        npcs.dial = dial
        npcs.hp[npcs.x > 10] -= 7

    @deed(pick=picks, value=values)
    def write_kept(self, pick: int, value: Any) -> None:
        """An array that was kept, of a room that may be long gone."""
        if self.arrays:
            self.note(lambda: self.arrays[pick % len(self.arrays)].__setitem__(slice(None), value))

    @deed(
        pick=picks,
        how=st.sampled_from(
            ["resize", "refcheck", "writeable", "view", "shape", "sort", "byteswap", "delete"]
        ),
    )
    def misuse_kept(self, pick: int, how: str) -> None:
        if self.arrays:
            self.note(lambda: misuse(self.arrays[pick % len(self.arrays)], how))

    # Clients

    @rule(who=whos, credit=st.sampled_from([PLENTY, PLENTY, 1, 400]))
    def join(self, who: str, credit: int) -> None:
        self.wake_if_over()
        self.clients[who] = self.driver.join(who, credit=credit, meta={"name": who.upper()})

    @rule(who=whos, credit=st.sampled_from([PLENTY, 1, 400]))
    def come_back(self, who: str, credit: int) -> None:
        self.wake_if_over()
        if who in self.clients:
            self.clients[who] = self.driver.rejoin(self.clients[who], credit=credit)

    @rule(
        who=whos,
        held=st.sets(st.integers(2, 20) | st.sampled_from([2**31, 2**31 + 1, 2**32 - 1])).map(sorted),
        behind=st.integers(-1, 4),
        generation=st.sampled_from([0, 0, 1]),
        full=st.booleans(),
        seen=st.booleans(),
    )
    def claim(self, who: str, held: list[int], behind: int, generation: int, full: bool, seen: bool) -> None:
        """A client says that it holds anything at all."""
        self.wake_if_over()
        core = self.driver.core
        version = max(0, core.version - behind)
        resume = Resume(0, max(0, core.generation - generation), version, full=full, held=tuple(held))
        replica: Any = Deaf()
        self.clients[who] = self.driver.join(who, resume=resume, replica=replica, was_joined=seen)

    @rule(who=whos, clean=st.booleans())
    def leave(self, who: str, clean: bool) -> None:
        if who in self.clients:
            self.driver.leave(self.clients[who], clean=clean)

    @rule(who=whos, missing=st.sampled_from([0, 0, 100]))
    def read(self, who: str, missing: int) -> None:
        if who in self.clients:
            client = self.clients[who]
            self.driver.drain(client, max(0, client.received - missing))

    @rule(who=whos, held=st.booleans())
    def hold(self, who: str, held: bool) -> None:
        if who in self.clients:
            self.driver.core.hold(self.clients[who].link, held, self.driver.now)
            self.driver.pump()

    @rule(
        who=whos,
        pick=picks,
        pose=st.sampled_from([1, 200, 230, 254, 255]),
        aim=st.floats(-1, 1, width=32),
        pixels=pieces,
        note=st.text("xy", max_size=2),
    )
    def owner_writes(self, who: str, pick: int, pose: int, aim: float, pixels: bytes, note: str) -> None:
        client = self.clients.get(who)
        if client is None or isinstance(client.replica, Deaf):
            return
        mine = [id for id, held in client.replica.entities.items() if held.owner == who and held.number == 0]
        if mine:
            given = {"pose": pose, "aim": aim, "pixels": pixels, "note": note}
            some = dict(list(given.items())[pick % 4 :])
            self.driver.write(client, mine[pick % len(mine)], **some)
        if PRIVATE_ID in client.replica.entities:
            self.driver.write(client, PRIVATE_ID, volume=pose)

    @rule(
        who=whos, said=st.text(max_size=3) | st.binary(max_size=3), frame=st.none() | st.binary(max_size=30)
    )
    def say(self, who: str, said: Any, frame: bytes | None) -> None:
        if who in self.clients:
            if frame is None:
                self.driver.send(self.clients[who], said)
            else:
                self.driver.receive(self.clients[who], frame)

    @rule(said=st.sampled_from(["hi", b"\0" * 400, {"a": "b" * 2_000}]), lossy=st.booleans(), but=whos)
    def broadcast(self, said: Any, lossy: bool, but: str) -> None:
        self.note(lambda: self.room.broadcast(said, unreliable=lossy, except_=self.room.connections.get(but)))

    @rule(who=whos, how=st.sampled_from(["kick", "ban", "unban"]))
    def throw_out(self, who: str, how: str) -> None:
        conn = self.room.connections.get(who)
        if how != "kick":
            self.note(lambda: getattr(self.room, how)(who))
        elif conn is not None:
            self.note(lambda: self.room.kick(conn))

    # The rest of the room

    @deed(pace=st.integers(0, 9), owner=st.booleans())
    def add_bot(self, pace: int, owner: bool) -> None:
        def add() -> Any:
            bot = self.room.bots.add(Walker(pace=pace))
            return self.room.entities.add(KINDS["thing"](), owner=bot.player) if owner else bot

        self.note(add)

    @deed()
    def remove_bot(self) -> None:
        for bot in list(self.room.bots)[:1]:
            self.note(partial(self.room.bots.remove, bot))

    @deed(
        who=whos, a=picks, title=st.text(max_size=4), data=pieces, bag=st.sampled_from([None, [1], {"a": []}])
    )
    def write_state(self, who: str, a: int, title: str, data: bytes, bag: Any) -> None:
        def write() -> None:
            self.room.state.a, self.room.state.title = a, title
            self.room.state.patch("map", a, data)
            purse = self.room.private(who, create=True)
            purse.coins, purse.volume, purse.bag = a * 3, a, bag
            purse.patch("log", a % 50, data)

        self.note(write)

    @deed(who=whos, name=st.text(max_size=3), status=values)
    def write_presence(self, who: str, name: str, status: Any) -> None:
        self.note(lambda: self.room.presence.set(who, name=name, status=status))

    @deed(who=whos, team=st.integers(0, 2), id=st.integers(2, 14))
    def look_elsewhere(self, who: str, team: int, id: int) -> None:
        self.room.team[who] = team
        self.room.cloaked ^= {(who, id)}

    @deed(
        tick=ticks,
        origin=st.tuples(places, places) | st.tuples(places, places, places),
        towards=st.sampled_from([(1, 0), (0, 0), (0.3, -2), (1, 1, 1), (math.nan, 1)]),
        reach=st.sampled_from([math.inf, 30, 0, -1]),
        radius=st.sampled_from([0, 0.5, 3, -1, math.inf]),
        skip=st.sets(st.integers(2, 14)),
    )
    def look_back(
        self, tick: Any, origin: Any, towards: Any, reach: float, radius: float, skip: set[int]
    ) -> None:
        at = self.driver.core.tick_number - tick if isinstance(tick, float) else tick
        for history in (PATHS, PLACES):
            past = self.note(partial(self.room.rewind, history, at))
            if past is not None:
                self.noted.append((past.tick, [repr(pose) for pose in past.values()]))
                self.noted.append([getattr(past.columns, name) for name in ("id", "x", "y")])
                self.note(partial(past.ray, origin, towards, reach=reach, radius=radius, skip=skip))
                self.note(partial(past.near, origin, radius, skip=skip))

    # Time, and the room's life

    @rule(count=st.sampled_from([1, 1, 1, 2, 5]))
    def tick(self, count: int) -> None:
        self.driver.tick(count)

    @rule(seconds=st.sampled_from([1.0, 11.0, 31.0]))
    def wait(self, seconds: float) -> None:
        self.driver.advance(seconds)

    @rule(durable=st.booleans())
    def store(self, durable: bool) -> None:
        self.driver.auto_durable = durable
        if durable:
            self.driver.core.durable(self.driver.last_written, self.driver.now)
            self.driver.pump()

    @rule()
    def need_base(self) -> None:
        self.driver.core.need_base(self.driver.now)
        self.driver.pump()

    @rule(
        how=st.sampled_from(["crash", "crash", "hibernate", "move", "fail"]),
        away=st.sampled_from([0.0, 4_000.0]),
        sure=st.sampled_from([False, False, True]),
    )
    def end(self, how: str, away: float, sure: bool) -> None:
        """The room's generation ends, and the next begins from what was saved."""
        if not sure:
            return
        if how == "fail":
            self.room.fails = True
            self.driver.tick()
        elif how != "crash":
            self.driver.hibernate(move=how == "move")
        self.wake(away)

    def wake_if_over(self) -> None:
        if self.driver.core.status is not Status.ACTIVE:
            self.wake(0.0)

    def wake(self, away: float) -> None:
        self.driver = self.driver.wake(away=away)
        self.driver.pump()

    def teardown(self) -> None:
        self.driver.auto_durable = True
        self.driver.hibernate()
        self.wake(0.0)


class Deaf:
    """The replica of a client that cannot make sense of what it gets, as it never held what it said."""

    def welcome(self, joined: Any, generation: int) -> None:
        """Nothing follows from it."""

    def part(self, frame: bytes) -> None:
        """It is compared as bytes, before it comes here."""

    def resume(self) -> Resume:
        return Resume(0, 0, 0, full=False, held=())


def select(which: str, size: int) -> Any:
    """Return what picks rows of an array."""
    return {
        "all": slice(None),
        "half": slice(None, None, 2),
        "first": 0,
        "last": -1,
        "mask": np.arange(size) % 3 == 1,
        "none": slice(0, 0),
        "rows": [0, size - 1, 0],
        "beyond": size,
    }[which]


def misuse(array: Any, how: str) -> Any:
    """Do what an array of the room's memory must survive, or refuse."""
    match how:
        case "resize":
            array.resize(2 * len(array) + 1)
        case "refcheck":
            array.resize(2 * len(array) + 1, refcheck=False)
        case "writeable":
            array.flags.writeable = not array.flags.writeable
        case "view":
            return array.view("u1")[: len(array)]
        case "shape":
            array.shape = (1, -1)
            array.shape = (array.size,)
        case "sort":
            array.sort()
        case "byteswap":
            array.byteswap(inplace=True)
        case "delete":
            del array
    return None


def read_world(machine: World) -> Any:
    """All there is to be read after a step, and what its calls came to."""
    noted, machine.noted = machine.noted, []
    clients = [
        (who, client.received, getattr(client.replica, "entities", None))
        for who, client in machine.clients.items()
    ]
    return {
        "noted": noted,
        "room": read_core(machine.driver.core),
        "handles": [read_entity(handle) for handle in machine.handles],
        "columns": [read_columns(columns, kind) for columns, kind in machine.columns],
        "arrays": machine.arrays,
        "clients": clients,
        "heard": machine.room.heard,
    }
