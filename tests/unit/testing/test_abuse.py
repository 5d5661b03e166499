"""Room code that does everything it should not, in every hook.

What it asked for happens, or just that is refused; the room stays whole, and another room of the process does
not hear of it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar, cast

import pytest

from playhall.client import PlayhallError
from playhall.room import (
    Bot,
    Call,
    CallRejected,
    Connection,
    Entity,
    Hook,
    Interest,
    JsonOut,
    Message,
    Room,
    Schema,
    Wake,
    u8,
    u32,
    writable,
)
from playhall.testing import RoomHost, RoomStoppedError, TestClient, TestRoom

HOOKS = (
    "on_create", "on_wake", "on_join", "on_message", "on_write", "on_tick", "on_leave", "on_player_leave",
    "on_hibernate", "on_request", "ask", "start", "tick",
)  # fmt: skip
PLAYERS = ("ann", "bob", "cid")
MAX_AWAITS_OF_LINK = 32
Act = Callable[..., Any]


class Board(Entity):
    moves: u32 = 0


class Mine(Entity):
    coins: u8 = 0


class Npc(Entity):
    pose: writable[u8] = 0


class Ask(Call[int]):
    pass


class Walker(Bot):
    def start(self, room: Game) -> None:
        room.act("start")

    def tick(self, room: Game) -> None:
        room.act("tick")


class Game(Room[Board, Mine]):
    """Does in a hook what a test has put there."""

    schema = Schema(state=Board, private=Mine, entities=[Npc], calls=[Ask])
    bot_kinds = (Walker,)
    acts: ClassVar[dict[str, Act]] = {}

    def act(self, hook: str, *about: Any) -> Any:
        act = self.acts.get(hook)
        return None if act is None else act(self, *about)

    def on_create(self) -> Hook:
        return cast(Hook, self.act("on_create"))

    def on_wake(self, wake: Wake) -> Hook:
        return cast(Hook, self.act("on_wake"))

    def on_join(self, conn: Connection) -> Hook:
        self.entities.add(Npc(), owner=conn.player)
        return cast(Hook, self.act("on_join", conn))

    def on_message(self, conn: Connection, message: Message) -> Hook:
        return cast(Hook, self.act("on_message", conn))

    def on_write(self, conn: Connection, entity: Entity, values: dict[str, Any]) -> Mapping[str, Any] | None:
        self.act("on_write", conn)
        return values

    def on_tick(self, dt: float) -> None:
        self.act("on_tick")

    def on_leave(self, conn: Connection) -> Hook:
        return cast(Hook, self.act("on_leave", conn))

    def on_player_leave(self, player: str) -> Hook:
        return cast(Hook, self.act("on_player_leave"))

    def on_hibernate(self) -> Hook:
        return cast(Hook, self.act("on_hibernate"))

    def on_request(self, message: Message) -> JsonOut | Awaitable[JsonOut]:
        return cast(JsonOut, self.act("on_request"))

    @Ask.handler
    def ask(self, conn: Connection, ask: Ask) -> int | Awaitable[int]:
        answer = self.act("ask", conn)
        return answer if isinstance(answer, Awaitable) else 1


class Calm(Room[Board, None]):
    schema = Schema(state=Board, entities=[Npc])


Tested = TestRoom[Game, Board, Mine]


@pytest.fixture(autouse=True)
def acts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Act]:
    found: dict[str, Act] = {}
    monkeypatch.setattr(Game, "acts", found)
    return found


def kick(room: Game, *about: Any) -> None:
    for conn in list(room.connections.values()):
        room.kick(conn)


def ban(room: Game, *about: Any) -> None:
    for conn in list(room.connections.values()):
        room.ban(conn.player)


def delete(room: Game, *about: Any) -> None:
    for entity in room.entities:
        room.entities.delete(entity)


def add(room: Game, *about: Any) -> None:
    for _ in range(3):
        room.entities.add(Npc(), owner="ann")


def change_bots(room: Game, *about: Any) -> None:
    for bot in room.bots:
        room.bots.remove(bot)
    if len(room.bots) < 5:
        room.bots.add(Walker())


def hibernate(room: Game, *about: Any) -> None:
    room.request_hibernate()


def all_of_it(room: Game, *about: Any) -> None:
    for act in (add, change_bots, delete, ban, kick, hibernate):
        act(room)


async def no_matter(room_host: RoomHost, done: Awaitable[object]) -> None:
    with suppress(PlayhallError, RoomStoppedError):
        await done


async def play(room_host: RoomHost, t: Tested, hook: str, ann: TestClient[Board, Mine]) -> None:
    """Do what makes the room call a hook."""
    match hook:
        case "on_join":
            await no_matter(room_host, t.connect("cid"))
        case "on_message":
            ann.send("x")
        case "ask":
            await no_matter(room_host, room_host.wait(ann.call(Ask())))
        case "on_leave" | "on_player_leave":
            await ann.leave()
        case "on_write":
            next(npc for npc in ann.entities.all(Npc) if npc.owner == "ann").pose = 3
        case "on_request":
            await no_matter(room_host, t.request({}))
        case "on_hibernate":
            await no_matter(room_host, t.hibernate())
        case "start" | "tick":
            t.room.bots.add(Walker())
    await no_matter(room_host, t.tick(2))
    await no_matter(room_host, t.advance(11 if hook == "on_player_leave" else 0.2))


async def is_whole(room_host: RoomHost, t: Tested) -> None:
    """Somebody new comes in, and sees just what there is."""
    if t.status == "hibernated":
        await t.wake()
    for player in PLAYERS:
        t.room.unban(player)
    dora = await t.connect("dora")
    t.room.state.moves += 1
    await t.tick()
    assert dora.state.moves == t.room.state.moves
    assert sorted(npc.id for npc in dora.entities) == sorted(npc.id for npc in t.room.entities)
    assert set(dora.presence) == set(t.room.presence)
    t.errors.clear()


@pytest.mark.parametrize("act", [kick, ban, delete, add, change_bots, hibernate, all_of_it])
@pytest.mark.parametrize("hook", HOOKS)
async def test_every_hook_may_do_anything(
    room_host: RoomHost, acts: dict[str, Act], hook: str, act: Act
) -> None:
    calm, t = room_host.room(Calm, id="calm"), room_host.room(Game)
    zed = await calm.connect("zed")
    if hook == "on_create":
        acts[hook] = act
    await no_matter(room_host, t.connect("ann"))
    acts.clear()
    ann, _ = await t.connect("ann"), await t.connect("bob")
    if hook == "on_wake":
        await t.hibernate()
        acts[hook] = act
        await no_matter(room_host, t.connect("ann"))
    elif hook != "on_create":
        acts[hook] = act
        await play(room_host, t, hook, ann)
    acts.clear()
    await is_whole(room_host, t)
    assert calm.room.tick > 0 or hook in ("on_create", "on_wake")
    assert (zed.status, calm.errors) == ("open", [])


async def test_who_waits_for_a_room_that_hibernates_whenever_it_wakes_waits_in_vain(
    room_host: RoomHost, acts: dict[str, Act]
) -> None:
    t = room_host.room(Game)
    acts["on_create"] = acts["on_wake"] = hibernate
    with pytest.raises(PlayhallError, match="hibernates whenever it wakes"):
        await t.connect("ann")
    acts.clear()
    await is_whole(room_host, t)


class RaisesError:
    def __await__(self) -> Iterator[None]:
        raise ValueError("in __await__")


class NoIterator:
    def __await__(self) -> Any:
        return [1, 2]


class YieldsNonsense:
    def __await__(self) -> Iterator[Any]:
        yield 5


def of_another_loop() -> asyncio.Future[None]:
    loop = asyncio.new_event_loop()
    loop.close()
    return asyncio.Future(loop=loop)


def awaited_already() -> Awaitable[None]:
    coroutine = asyncio.sleep(0)
    coroutine.close()
    return coroutine


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (RaisesError, "ValueError: in __await__"),
        (NoIterator, "TypeError: 'list' object is not an iterator"),
        (YieldsNonsense, "RuntimeError: Task got bad yield: 5"),
        (of_another_loop, "attached to a different loop"),
        (awaited_already, "RuntimeError: cannot reuse already awaited coroutine"),
    ],
)
@pytest.mark.parametrize(
    "hook", ["on_join", "on_message", "on_leave", "on_player_leave", "ask", "on_request"]
)
async def test_an_awaitable_that_misbehaves_is_an_error_of_its_hook(
    room_host: RoomHost, acts: dict[str, Act], hook: str, make: Callable[[], Any], says: str
) -> None:
    t = room_host.room(Game)
    ann = await t.connect("ann")
    acts[hook] = lambda *about: make()
    await play(room_host, t, hook, ann)
    [error] = t.errors
    assert says in error
    acts.clear()
    await is_whole(room_host, t)


async def test_handlers_that_wait_are_bounded_and_end_with_the_room(
    room_host: RoomHost, acts: dict[str, Act]
) -> None:
    t = room_host.room(Game)
    started, ended = 0, 0

    async def wait(room: Game, conn: Connection) -> None:
        nonlocal started, ended
        started += 1
        try:
            await asyncio.sleep(1_000)
        finally:
            ended += 1

    clients = [await t.connect(f"p{n}") for n in range(3)]
    acts["on_message"] = wait
    for client in clients:
        for _ in range(300):
            client.send("x")
    await t.tick(2)
    assert started == 3 * MAX_AWAITS_OF_LINK
    acts.clear()
    await no_matter(room_host, t.hibernate())
    assert ended == started
    assert {error.strip() for error in t.errors} == {"TimeoutError: on_message took over 10 s"}
    await is_whole(room_host, t)


async def test_what_room_code_iterates_over_may_go_meanwhile(
    room_host: RoomHost, acts: dict[str, Act]
) -> None:
    t = room_host.room(Game)
    clients = [await t.connect(player) for player in PLAYERS]
    met: list[str] = []

    def end_all(room: Game, *about: Any) -> None:
        for player, conn in room.connections.items():
            met.append(player)
            for other in room.connections.values():
                room.kick(other)
            room.ban(conn.player)
        for player in room.presence:
            room.unban(player)
        for npc in room.entities:
            room.entities.delete(npc)

    acts["on_message"] = end_all
    clients[0].send("x")
    await t.tick(2)
    acts.clear()
    assert met == list(PLAYERS)
    assert [client.closed_with for client in clients] == [4006] * len(PLAYERS)
    assert len(t.room.connections) == 0
    await is_whole(room_host, t)


class Endless(Interest):
    """Gives keys for ever, once it is asked to."""

    hooks: ClassVar[set[str]] = set()

    def keys_of(self, room: Any, entity: Any) -> Iterable[str]:
        return itertools.repeat("a") if "keys_of" in self.hooks else ["a"]

    def subscriptions_of(self, room: Any, conn: Any) -> Iterable[str]:
        return itertools.repeat("a") if "subscriptions_of" in self.hooks else ["a"]


class Watched(Room):
    schema = Schema(entities=[Npc])
    interest = Endless()


@pytest.mark.parametrize("hook", ["keys_of", "subscriptions_of"])
async def test_keys_that_never_end_stop_their_room(
    room_host: RoomHost, monkeypatch: pytest.MonkeyPatch, hook: str
) -> None:
    t = room_host.room(Watched)
    await t.connect("ann")
    monkeypatch.setattr(Endless, "hooks", {hook})
    t.room.entities.add(Npc())
    with pytest.raises(RoomStoppedError, match=rf"interest\.{hook} raised ValueError: over 65536 keys"):
        await t.tick()


async def test_what_a_test_asks_of_a_room_by_its_methods_happens(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    ann = await t.connect("ann")
    t.room.request_hibernate()
    await room_host.settle()
    assert (ann.status, ann.closed_with, t.status) == ("closed", 4011, "hibernated")


def test_a_hook_with_a_yield_in_it_is_refused_where_it_is_defined() -> None:
    def plain(self: Any, *about: Any) -> Iterator[None]:
        yield

    async def asynchronous(self: Any, *about: Any) -> AsyncIterator[None]:
        yield

    for hook in ("on_create", "on_join", "on_message", "on_leave", "on_tick", "on_write", "on_hibernate"):
        for method in (plain, asynchronous):
            with pytest.raises(TypeError, match=f"Wrong.{hook} has a yield in it"):
                type("Wrong", (Game,), {hook: method})
    for method in (plain, asynchronous):
        with pytest.raises(TypeError, match="has a yield in it"):
            Ask.handler(cast(Any, method))
    with pytest.raises(TypeError, match=r"Wrong.tick has a yield in it"):
        type("Wrong", (Bot,), {"tick": plain})


def test_a_room_that_no_host_made_says_so() -> None:
    room = Game()
    for use in (lambda: room.state, lambda: room.entities, lambda: room.broadcast(1), lambda: room.tick):
        with pytest.raises(RuntimeError, match=r"Game is made by a room host"):
            use()
    with pytest.raises(AttributeError, match="'Game' object has no attribute 'nothing'"):
        room.nothing  # type: ignore[attr-defined]  # noqa: B018


async def test_an_expected_no_may_say_anything(room_host: RoomHost, acts: dict[str, Act]) -> None:
    t = room_host.room(Game)
    ann = await t.connect("ann")

    def refuse(text: str) -> Act:
        def act(*about: Any) -> None:
            raise CallRejected(text)

        return act

    for text in ("", "\ud800", "x" * 100_000, "\0"):
        acts["ask"] = refuse(text)
        with pytest.raises(PlayhallError) as refused:
            await room_host.wait(ann.call(Ask()))
        assert refused.value.code == 422
        assert len(refused.value.message) <= 4_096
    assert t.errors == []
