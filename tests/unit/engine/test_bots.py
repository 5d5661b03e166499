"""Bots: what a class of them may be, and how the room's come, act, fail, go and are saved."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, cast

import pytest

from playhall.engine.botbook import MAX_BOTS
from playhall.engine.outputs import HibernateOut
from playhall.engine.statelog import BotsChange, SavedBot, Totals, read, write_base
from playhall.room import (
    Bot,
    Connection,
    Entity,
    Input,
    PresenceEntry,
    Room,
    Schema,
    f32,
    i8,
    is_bot,
    local,
    u32,
    writable,
)
from tests.support.rooms import Driver


class Car(Entity):
    x: f32 = 0
    gear: writable[u32] = 0


class Purse(Entity):
    coins: u32 = 0


class Steer(Input):
    dx: i8


class Racer(Bot):
    pace: int = 2
    plan: list[str] = []  # noqa: RUF012 - copied for each bot
    started: int = local(0)

    def start(self, room: Any) -> None:
        self.started += 1
        room.calls.append(("start", self.player, room.presence[self.player].name))
        room.entities.add(Car(), owner=self.player, once=True)
        if self.plan == ["fail at start"]:
            raise ValueError("no petrol")

    def tick(self, room: Any) -> None:
        room.calls.append(("tick", self.player, room.tick))
        for car in room.entities.all(Car, owner=self.player):
            car.x += self.pace


class Pest(Bot, kind="pest"):
    """Does what its `deed` says, at its tick."""

    deed: str = ""

    def tick(self, room: Any) -> Any:
        match self.deed:
            case "raise":
                raise ValueError("a bad day")
            case "exit":
                raise SystemExit(3)
            case "wait":
                return asyncio.sleep(1)
            case "answer":
                return 7
            case "misspell":
                self.deeds = "x"
            case "remove":
                room.bots.remove(self)
                room.calls.append(("removed",))
            case "add":
                self.deed = "done"
                room.bots.add(Racer(), name="late")
            case "hibernate":
                room.request_hibernate()
            case _:
                room.calls.append(("tick", self.player, room.tick))


class Track(Room[None, Purse]):
    schema = Schema(private=Purse, entities=[Car], input=Steer)
    bot_kinds: ClassVar[tuple[type[Bot], ...]] = (Racer, Pest)
    max_players = 8

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def on_wake(self, wake: Any) -> None:
        self.calls.append(("wake", [bot.player for bot in self.bots], dict(self.presence)))

    def on_join(self, conn: Connection) -> None:
        self.calls.append(("join", conn.player))

    def on_leave(self, conn: Connection) -> None:
        self.calls.append(("leave", conn.player))

    def on_tick(self, dt: float) -> None:
        self.calls.append(("on_tick", self.tick))

    def on_player_leave(self, player: str) -> None:
        self.calls.append(("player_leave", player, player in self.presence, len(self.bots)))
        for car in self.entities.all(Car, owner=player):
            self.entities.delete(car)


@pytest.fixture
def driver() -> Driver:
    return Driver(Track)


# What a bot may be


def test_a_bot_is_its_fields_with_its_own_copies_of_the_defaults() -> None:
    one, two = Racer(pace=3), Racer()
    one.plan.append("left")
    assert (one.pace, one.plan, two.pace, two.plan) == (3, ["left"], 2, [])
    assert (Racer.kind, Pest.kind) == ("racer", "pest")
    assert repr(one) == "<Racer (not added) pace=3 plan=['left']>"

    class Fast(Racer):
        pace: int = 9
        boost: float = 0.5

    assert (Fast().pace, Fast().plan, Fast().boost, Fast.kind) == (9, [], 0.5, "fast")
    with pytest.raises(RuntimeError, match="Racer has no player before it is added"):
        _ = one.player


def test_what_a_bot_is_made_of_is_checked() -> None:
    class Demanding(Bot):
        target: str

    with pytest.raises(TypeError, match="Demanding: target is missing"):
        Demanding()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Racer has no field pase"):
        Racer(pase=3)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="Racer has no field 'pase'"):
        Racer().pase = 3  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="Bot is a base"):
        Bot()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("x: set = set()", "Bad.x: the default must be JSON"),
        ("_x: int = 0", "Bad._x: a field's name cannot start with _"),
        ("tick: int = 0", "Bad.tick: this name is reserved"),
        ("input: int = 0", "Bad.input hides a member of Bot"),
        ("player: str = ''", "Bad.player hides a member of Bot"),
        ("x = local(0)", "Bad.x: a local slot needs a type"),
        ("pace = 5", "Bad.pace: this hides a field"),
        ("async def tick(self, room): ...", "Bad.tick cannot be async"),
        ("async def start(self, room): ...", "Bad.start cannot be async"),
        ("def __init__(self): ...", "Bad: a bot is made of its fields"),
    ],
)
def test_what_a_class_of_bots_cannot_be(body: str, message: str) -> None:
    with pytest.raises(TypeError, match=message.replace(".", r"\.")):
        exec(f"class Bad(Racer):\n    {body}", {"Racer": Racer, "local": local})


def test_class_variables_are_no_fields() -> None:
    class Counted(Bot):
        made: ClassVar[int] = 3
        pace: int = 1

    assert (Counted.made, repr(Counted())) == (3, "<Counted (not added) pace=1>")


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        (Racer, "bot_kinds must be a tuple of Bot classes"),
        ((Racer, Racer), "names a class twice"),
        ((Bot,), "is no class made of Bot"),
        ((Car,), "is no class made of Bot"),
        ((Racer, type("Other", (Bot,), {}, kind="racer")), "two classes have one kind name, 'racer'"),
    ],
)
@pytest.mark.ledger("BOT-03")
def test_bot_kinds_are_checked_with_the_room_class(kinds: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        type("Bad", (Room,), {"bot_kinds": kinds})


# Coming and going


@pytest.mark.ledger("BOT-01", "BOT-02", "BOT-03")
def test_a_bot_gets_a_number_that_is_never_given_again(driver: Driver) -> None:
    room = driver.room
    rival = room.bots.add(Racer(pace=3), name="Rival", status={"ready": True})
    other = room.bots.add(Racer())
    assert [bot.player for bot in room.bots] == ["bot:1", "bot:2"]
    assert (len(room.bots), rival in room.bots, rival.pace) == (2, True, 3)
    assert room.presence["bot:1"] == PresenceEntry("bot:1", "Rival", {"ready": True}, True)
    assert room.presence["bot:2"] == PresenceEntry("bot:2", "", None, True)
    assert (is_bot(rival.player), is_bot("ann"), is_bot("robot:1")) == (True, False, False)
    room.bots.remove(other)
    assert room.bots.add(Racer()).player == "bot:3"
    driver.tick()
    again = driver.wake()
    assert again.room.bots.add(Racer()).player == "bot:4"
    again.room.bots.remove(next(iter(again.room.bots)))
    again.tick()
    assert again.wake().room.bots.add(Racer()).player == "bot:5"


@pytest.mark.ledger("BOT-08")
def test_removing_a_bot_ends_presence_and_cleans_up_before_it_returns(driver: Driver) -> None:
    room = driver.room
    ann = driver.join("ann")
    bot = room.bots.add(Racer(), name="Rival")
    driver.tick()
    assert ann.replica.presence()["bot:1"]["name"] == "Rival"
    room.bots.remove(bot)
    assert room.calls[-1] == ("player_leave", "bot:1", False, 0)
    assert (list(room.bots), room.entities.all(Car)) == ([], [])
    driver.tick()
    assert "bot:1" not in ann.replica.presence()
    driver.assert_in_sync(ann)
    assert [call for call in room.calls if call[0] in ("join", "leave")] == [("join", "ann")]
    with pytest.raises(ValueError, match=r"<Racer bot:1 .*> is not in the room"):
        room.bots.remove(bot)
    with pytest.raises(ValueError, match="was added before; make a new one"):
        room.bots.add(bot)
    with pytest.raises(ValueError, match="is not in the room"):
        room.bots.remove(Racer())
    room.bots.add(Pest(deed="remove"))
    driver.tick()
    assert room.calls[-3:-1] == [("player_leave", "bot:2", False, 0), ("removed",)]


def test_on_player_leave_of_a_bot_may_remove_other_bots_and_itself() -> None:
    class Domino(Track):
        def on_player_leave(self, player: str) -> None:
            super().on_player_leave(player)
            for bot in list(self.bots)[:1]:
                self.bots.remove(bot)

    driver = Driver(Domino)
    room = driver.room
    bots = [room.bots.add(Racer()) for _ in range(5)]
    room.bots.remove(bots[2])
    assert (len(room.bots), driver.errors) == (0, [])
    left = [call[1] for call in room.calls if call[0] == "player_leave"]
    assert left == ["bot:3", "bot:1", "bot:2", "bot:4", "bot:5"]
    driver.tick()
    assert driver.is_active


@pytest.mark.ledger("BOT-10")
def test_a_room_has_at_most_64_bots() -> None:
    class Wide(Track):
        max_players = 100

    room = Driver(Wide).room
    for _ in range(MAX_BOTS):
        room.bots.add(Racer())
    with pytest.raises(ValueError, match="there are 64 bots already"):
        room.bots.add(Racer())
    assert (len(room.bots), len(room.presence)) == (64, 64)


@pytest.mark.ledger("BOT-10")
def test_bots_count_in_presence_and_whoever_is_gone_longest_makes_room(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playhall.engine.presence.MAX_PRESENCE", 3)
    room = driver.room
    for player in ("ann", "bob"):
        driver.leave(driver.join(player))
        driver.move(1)
    room.bots.add(Racer())
    assert list(room.presence) == ["ann", "bob", "bot:1"]
    room.bots.add(Racer())
    assert list(room.presence) == ["bob", "bot:1", "bot:2"]
    assert ("player_leave", "ann", False, 2) in room.calls


def test_whoever_makes_room_may_be_followed_by_a_bot(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refilled(Track):
        def on_player_leave(self, player: str) -> None:
            super().on_player_leave(player)
            if not is_bot(player):
                self.bots.add(Racer(), name=f"for {player}")

    monkeypatch.setattr("playhall.engine.presence.MAX_PRESENCE", 3)
    driver = Driver(Refilled, max_players=3)
    for player in ("ann", "bob", "cy"):
        driver.leave(driver.join(player))
        driver.move(1)
    driver.room.bots.add(Racer(), name="first")
    names = {entry.player: entry.name for entry in driver.room.presence.values()}
    assert names == {"bot:1": "first", "bot:2": "for ann", "bot:3": "for bob"}
    driver.pump()
    [error] = driver.errors  # for cy there was no seat any more
    assert "all 3 seats are taken" in error.fields["error"]


@pytest.mark.parametrize(
    ("bot", "options", "error", "message"),
    [
        (Racer(pace=cast(Any, float("nan"))), {}, ValueError, r"Racer \(not added\): pace: nan is not JSON"),
        (Racer(plan=[set()]), {}, ValueError, r"Racer \(not added\): plan: set is not JSON"),  # type: ignore[list-item]
        (Racer(plan=["x" * 4_096]), {}, ValueError, "and at most 4096 are kept"),
        (Racer(), {"name": "x" * 65}, ValueError, "a name has at most 64 characters"),
        (Racer(), {"status": "x" * 1_023}, ValueError, "a status has at most 1024 bytes"),
        (Racer(), {"status": object()}, TypeError, "object is not JSON"),
        (type("Stray", (Bot,), {})(), {}, TypeError, "Stray is not one of Track.bot_kinds"),
        (Car(), {}, TypeError, "a bot is an instance of a Bot, not Car"),
    ],
)
@pytest.mark.ledger("BOT-03")
def test_what_cannot_be_added_changes_nothing(
    driver: Driver, bot: Any, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        driver.room.bots.add(bot, **options)
    assert (len(driver.room.bots), len(driver.room.presence), driver.room.calls) == (0, 0, [])
    assert driver.room.bots.add(Racer()).player == "bot:1"


# Acting


@pytest.mark.ledger("BOT-07")
def test_bots_tick_in_the_order_they_were_added_before_on_tick(driver: Driver) -> None:
    room = driver.room
    first, second = room.bots.add(Racer()), room.bots.add(Racer(pace=5))
    assert room.calls == [("start", "bot:1", ""), ("start", "bot:2", "")]
    room.calls.clear()
    driver.tick()
    assert room.calls == [("tick", "bot:1", 1), ("tick", "bot:2", 1), ("on_tick", 1)]
    assert [car.x for car in room.entities.all(Car)] == [2, 5]
    assert room.entities.first(Car, owner=second.player).x == 5
    room.private(first.player, create=True).coins = 3
    driver.tick()
    assert room.private("bot:1").coins == 3
    assert driver.wake().room.private("bot:1").coins == 3


@pytest.mark.ledger("BOT-07")
def test_private_state_of_a_bot_is_kept_while_it_is_in_the_room_and_a_while_after(driver: Driver) -> None:
    class Short(Track):
        private_retention = 40.0

    driver = Driver(Short)
    room = driver.room
    room.private("bot:1", create=True).coins = 1  # it may be there before the bot is
    bots = [room.bots.add(Racer()) for _ in range(2)]
    room.private("bot:2", create=True).coins = 2
    driver.join("ann")
    driver.advance(100)
    assert room.private_players() == ["bot:1", "bot:2", "ann"]
    room.bots.remove(bots[0])
    driver.tick()
    driver.advance(35)
    assert "bot:1" in room.private_players()
    driver.advance(40)
    assert room.private_players() == ["bot:2", "ann"]
    driver.tick()
    again = driver.wake(away=1_000)
    assert again.room.private("bot:2").coins == 2
    assert again.room.private_players() == ["bot:2"]


@pytest.mark.ledger("BOT-07")
def test_on_write_does_not_run_for_what_a_bot_owns(driver: Driver) -> None:
    class Written(Track):
        def on_write(self, conn: Connection, entity: Entity, values: dict[str, Any]) -> Any:
            raise AssertionError("nobody writes but the room")

    driver = Driver(Written)
    driver.room.bots.add(Racer())
    driver.room.entities.first(Car, owner="bot:1").gear = 2
    driver.tick(2)
    assert (driver.room.entities.first(Car, owner="bot:1").gear, driver.errors) == (2, [])


def test_a_bot_added_in_a_tick_has_its_first_with_the_next(driver: Driver) -> None:
    driver.room.bots.add(Pest(deed="add"))
    driver.room.calls.clear()
    driver.tick()
    assert driver.room.calls == [("start", "bot:2", "late"), ("on_tick", 1)]
    driver.tick()
    assert driver.room.calls[2:] == [("tick", "bot:1", 2), ("tick", "bot:2", 2), ("on_tick", 2)]


def test_a_bot_may_hibernate_the_room_and_nothing_more_of_the_tick_runs(driver: Driver) -> None:
    driver.room.bots.add(Pest(deed="hibernate"))
    driver.tick()
    assert not driver.is_active
    assert ("on_tick", 1) not in driver.room.calls


def test_input_is_held_against_the_schema(driver: Driver) -> None:
    bot = driver.room.bots.add(Racer())
    assert bot.input is None
    bot.input = Steer(dx=1)
    assert bot.input == Steer(dx=1)
    bot.input = None
    with pytest.raises(TypeError, match="Racer bot:1: input must be Steer or None, not int"):
        bot.input = 3
    early = Racer()
    early.input = "left"
    with pytest.raises(TypeError, match=r"Racer \(not added\): input must be Steer or None, not str"):
        driver.room.bots.add(early)

    class Loose(Room):
        bot_kinds = (Pest,)

    bot = Driver(Loose).room.bots.add(Pest())
    bot.input = {"dx": 1}
    assert bot.input == {"dx": 1}
    with pytest.raises(TypeError, match="input must be JSON, as the schema has no Input: set is not JSON"):
        bot.input = set()
    with pytest.raises(ValueError, match="an input has at most 65536 bytes"):
        bot.input = "x" * 65_536


# Failing


@pytest.mark.ledger("BOT-09")
@pytest.mark.parametrize(
    ("deed", "text"),
    [
        ("raise", "a bad day"),
        ("exit", "SystemExit: 3"),
        ("wait", "Pest.tick must be done when it returns, and return nothing, not coroutine"),
        ("answer", "Pest.tick must be done when it returns, and return nothing, not int"),
        ("misspell", "Pest has no field 'deeds'"),
    ],
)
def test_a_bot_that_fails_in_its_tick_is_removed_and_the_room_goes_on(
    driver: Driver, deed: str, text: str
) -> None:
    room = driver.room
    ann = driver.join("ann")
    room.bots.add(Pest(deed=deed))
    other = room.bots.add(Racer())
    driver.tick()
    [error] = driver.errors
    assert (error.event, error.fields["bot"], error.fields["kind"]) == ("room.bot_removed", "bot:1", "pest")
    assert text in error.fields["error"]
    assert error.traceback is not None
    assert list(room.bots) == [other]
    assert ("player_leave", "bot:1", False, 1) in room.calls
    assert room.calls[-1] == ("on_tick", 1)
    assert "bot:1" not in ann.replica.presence()
    driver.tick()
    driver.assert_in_sync(ann)
    assert (driver.is_active, len(driver.errors)) == (True, 1)


@pytest.mark.ledger("BOT-09")
def test_a_bot_that_fails_at_its_start_is_removed(driver: Driver) -> None:
    bot = driver.room.bots.add(Racer(plan=["fail at start"]))
    driver.pump()
    [error] = driver.errors
    assert (error.fields["what"], error.fields["error"]) == ("start", "ValueError: no petrol")
    assert (bot.player, len(driver.room.bots), driver.room.entities.all(Car)) == ("bot:1", 0, [])


@pytest.mark.ledger("BOT-06", "BOT-09")
@pytest.mark.parametrize(
    ("plan", "text"),
    [
        ([{1}], "Racer bot:1: plan: set is not JSON"),
        ([float("inf")], "Racer bot:1: plan: inf is not JSON"),
        (["x" * 4_075], "its fields have 4097 bytes of JSON, and at most 4096 are kept"),
    ],
)
def test_a_bot_whose_fields_cannot_be_saved_is_removed(driver: Driver, plan: Any, text: str) -> None:
    room = driver.room
    bot = room.bots.add(Racer())
    driver.tick()
    bot.plan.extend(plan)  # in place, which no assignment shows
    driver.tick()
    [error] = driver.errors
    assert (error.event, error.fields["what"]) == ("room.bot_removed", "data")
    assert text in error.fields["error"]
    assert (len(room.bots), room.entities.all(Car), "bot:1" in room.presence) == (0, [], False)
    assert driver.is_active
    assert list(driver.wake().room.bots) == []


@pytest.mark.ledger("BOT-06")
def test_a_bot_may_have_4096_bytes_of_json(driver: Driver) -> None:
    driver.room.bots.add(Racer(plan=["x" * 4_074]))
    driver.tick()
    [bot] = driver.wake().room.bots
    assert (bot.plan, driver.errors) == (["x" * 4_074], [])


def test_a_bot_that_ruins_its_data_while_the_room_hibernates_is_gone_from_what_is_saved() -> None:
    class Late(Track):
        def on_hibernate(self) -> None:
            cast(Any, next(iter(self.bots))).plan.append({1})

        async def on_player_leave(self, player: str) -> None:  # type: ignore[override]
            for car in self.entities.all(Car, owner=player):
                car.x = 50
            await asyncio.sleep(0)
            for car in self.entities.all(Car, owner=player):
                self.entities.delete(car)

    driver = Driver(Late)
    driver.room.bots.add(Racer())
    driver.room.bots.add(Racer(pace=7))
    driver.tick()
    driver.hibernate()
    driver.go_on_all()
    driver.go_on_all()
    again = driver.wake()
    assert [(bot.player, bot.pace) for bot in again.room.bots] == [("bot:2", 7)]
    assert [car.owner for car in again.room.entities.all(Car)] == ["bot:2"]


def test_the_end_of_a_bot_that_fails_may_be_that_of_the_room() -> None:
    class Lost(Track):
        def on_player_leave(self, player: str) -> None:
            super().on_player_leave(player)
            self.request_hibernate()

    driver = Driver(Lost)
    ann = driver.join("ann")
    bot = driver.room.bots.add(Racer())
    driver.tick()
    bot.plan.append({1})
    driver.tick()
    assert (driver.is_active, ann.closed.code) == (False, 4011)  # type: ignore[union-attr]
    assert isinstance(driver.outputs[-1], HibernateOut)  # and nothing is written after that
    assert list(driver.wake().room.bots) == []


# Saved


@pytest.mark.ledger("BOT-06", "BOT-16")
@pytest.mark.parametrize("how", ["crash", "hibernate"])
def test_bots_outlive_the_room_host(driver: Driver, how: str) -> None:
    room = driver.room
    room.bots.add(Racer(pace=3), name="Rival", status={"mood": [1, None]})
    gone = room.bots.add(Racer())
    room.bots.add(Pest(), name="Pest")
    driver.tick()
    racer = next(iter(room.bots))
    racer.pace, racer.started = 4, 9
    racer.plan.append("left")
    room.presence.set("bot:3", name="Vex", status="asleep")
    room.bots.remove(gone)
    driver.tick()
    if how == "hibernate":
        driver.hibernate()
    again = driver.wake()
    first, second = again.room.bots
    assert (type(first), first.player, first.pace, first.plan) == (Racer, "bot:1", 4, ["left"])
    assert (type(second), second.player) == (Pest, "bot:3")
    assert first.started == 1  # local, and started anew
    assert again.room.presence["bot:1"] == PresenceEntry("bot:1", "Rival", {"mood": [1, None]}, True)
    assert again.room.presence["bot:3"] == PresenceEntry("bot:3", "Vex", "asleep", True)
    assert [call for call in again.room.calls if call[0] == "start"] == [("start", "bot:1", "Rival")]
    again.tick()
    assert again.room.entities.first(Car, owner="bot:1").x == 3 + 4 + 4


@pytest.mark.ledger("BOT-17")
def test_bots_are_in_presence_before_on_wake_and_start_after_it(driver: Driver) -> None:
    room = driver.room
    room.bots.add(Racer(), name="Rival")
    driver.join("ann")
    driver.tick()
    room.calls.clear()
    driver.hibernate()
    assert room.calls == [("leave", "ann"), ("player_leave", "ann", False, 1)]
    again = driver.wake()
    rival = PresenceEntry("bot:1", "Rival", None, True)
    assert again.room.calls == [("wake", ["bot:1"], {"bot:1": rival}), ("start", "bot:1", "Rival")]


def test_a_bot_that_on_wake_removes_is_not_started() -> None:
    class Clearing(Track):
        def on_wake(self, wake: Any) -> None:
            for bot in self.bots:
                self.bots.remove(bot)
            self.bots.add(Racer(), name="new")

    driver = Driver(Clearing)
    driver.room.bots.add(Racer())
    driver.tick()
    again = driver.wake()
    assert again.room.calls == [("player_leave", "bot:1", False, 0), ("start", "bot:2", "new")]


def test_a_bot_that_cannot_be_again_is_dropped_with_a_line_and_cleaned_up(driver: Driver) -> None:
    class Racer2(Bot, kind="racer"):
        pace: int = 1
        colour: str

    class Later(Track):
        bot_kinds = (Racer2,)

    driver.room.bots.add(Racer())
    driver.room.bots.add(Pest())
    driver.tick()
    again = driver.wake(Later)
    told = [(log.event, log.fields["bot"], log.fields["reason"]) for log in again.errors]
    assert told == [
        ("room.bot_dropped", "bot:1", "Racer2: colour was not saved, and has no default"),
        ("room.bot_dropped", "bot:2", "bot_kinds has no 'pest' any more"),
    ]
    assert (len(again.room.bots), len(again.room.presence), again.room.entities.all(Car)) == (0, 0, [])
    left = [call[:2] for call in again.room.calls if call[0] != "wake"]
    assert left == [("player_leave", "bot:1"), ("player_leave", "bot:2")]
    again.tick()
    assert read(again.stored, Later.schema).bots == []
    assert again.wake(Later).errors == []


@pytest.mark.parametrize(("status", "data"), [(b"null", b"[]"), (b"null", b"{"), (b"{", b"{}")])
def test_a_bot_that_was_saved_otherwise_is_dropped(driver: Driver, status: bytes, data: bytes) -> None:
    driver.room.bots.add(Racer())
    driver.tick()
    bots = BotsChange(2, [], [SavedBot("bot:1", "racer", "", status, data)])
    driver.base = write_base(Track.schema, Totals(1, 3, {}, bots=bots), [])
    driver.records = []
    again = driver.wake()
    assert [log.event for log in again.errors] == ["room.bot_dropped"]
    assert again.ready


def test_fields_that_came_have_their_defaults_and_those_that_went_are_left_out(driver: Driver) -> None:
    class Racer2(Bot, kind="racer"):
        pace: int = 1
        colour: str = "red"

    class Later(Track):
        bot_kinds = (Racer2,)

    driver.room.bots.add(Racer(pace=7))
    driver.tick()
    again = driver.wake(Later)
    [bot] = again.room.bots
    assert (bot.pace, bot.colour, again.errors) == (7, "red", [])


def test_fewer_seats_than_saved_bots(driver: Driver) -> None:
    for _ in range(3):
        driver.room.bots.add(Racer())
    driver.tick()
    again = driver.wake(max_players=2)
    assert [bot.player for bot in again.room.bots] == ["bot:1", "bot:2"]
    assert [log.fields["reason"] for log in again.errors] == ["the room has 2 seats now"]


def test_a_room_whose_bots_do_nothing_writes_nothing() -> None:
    class Still(Room):
        bot_kinds = (Pest,)

        def __init__(self) -> None:
            self.calls: list[Any] = []

    driver = Driver(Still)
    ann = driver.join("ann")
    driver.room.bots.add(Pest())
    driver.tick()
    driver.clear()
    updates = len(ann.replica.updates)
    driver.tick(5)
    assert (driver.outputs, driver.core.dirty) == ([], False)
    next(iter(driver.room.bots)).deed = "rest"
    assert driver.core.dirty
    driver.tick()
    # It is saved, and no client hears of it.
    assert (len(driver.records), len(ann.replica.updates)) == (2, updates)


# Seats


@pytest.mark.ledger("BOT-13")
def test_people_and_bots_never_have_more_than_the_seats_there_are(driver: Driver) -> None:
    driver = Driver(Track, max_players=3)
    room = driver.room
    assert (room.max_players, Driver(Track).room.max_players) == (3, 8)
    driver.join("ann")
    room.bots.add(Racer())
    room.bots.add(Racer())
    with pytest.raises(ValueError, match="all 3 seats are taken, so there is none for a bot"):
        room.bots.add(Racer())
    assert len(room.bots) == 2


@pytest.mark.ledger("BOT-14", "BOT-13")
def test_a_person_takes_the_seat_of_the_bot_that_was_added_last() -> None:
    driver = Driver(Track, max_players=3)
    room = driver.room
    ann = driver.join("ann")
    room.bots.add(Racer(), name="one")
    room.bots.add(Racer(), name="two")
    driver.tick()
    room.calls.clear()
    bob = driver.join("bob")
    assert room.calls == [("player_leave", "bot:2", False, 1), ("join", "bob")]
    assert set(bob.replica.presence()) == {"ann", "bob", "bot:1"}
    assert set(ann.replica.presence()) == {"ann", "bob", "bot:1"}
    driver.join("cy")
    assert [call[:2] for call in room.calls[2:]] == [("player_leave", "bot:1"), ("join", "cy")]
    late = driver.join("dan")
    assert (late.closed.code, late.joined) == (4003, None)  # type: ignore[union-attr]
    driver.tick()
    driver.assert_in_sync(ann)


@pytest.mark.ledger("BOT-14")
def test_on_player_leave_cannot_give_the_seat_to_another_bot() -> None:
    class Greedy(Track):
        def on_player_leave(self, player: str) -> None:
            self.bots.add(Racer())

    driver = Driver(Greedy, max_players=1)
    driver.room.bots.add(Racer())
    ann = driver.join("ann")
    assert ann.joined is not None
    assert len(driver.room.bots) == 0
    [error] = driver.errors
    assert "all 1 seats are taken" in error.fields["error"]


def test_on_player_leave_may_throw_out_whoever_takes_the_seat() -> None:
    class Strict(Track):
        def on_player_leave(self, player: str) -> None:
            super().on_player_leave(player)
            if is_bot(player):
                self.ban("bob")

    driver = Driver(Strict, max_players=1)
    driver.room.bots.add(Racer())
    bob = driver.join("bob")
    assert (bob.closed.code, bob.closed.reason) == (4006, "banned")  # type: ignore[union-attr]
    assert ("join", "bob") not in driver.room.calls
    driver.tick()
    assert (len(driver.room.presence), driver.core.connection_count) == (0, 0)


def test_a_second_connection_of_a_player_takes_no_seat() -> None:
    driver = Driver(Track, max_players=2)
    driver.join("ann")
    driver.room.bots.add(Racer())
    driver.join("ann", connected_at_ms=10_000)
    assert len(driver.room.bots) == 1


@pytest.mark.ledger("BOT-14")
def test_a_full_presence_list_has_a_place_for_whoever_takes_a_bots_seat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("playhall.engine.presence.MAX_PRESENCE", 2)
    driver = Driver(Track, max_players=2)
    driver.room.bots.add(Racer())
    driver.join("ann")
    assert driver.join("bob").joined is not None
    assert list(driver.room.presence) == ["ann", "bob"]


@pytest.mark.ledger("BOT-18")
def test_bots_do_not_keep_a_room_awake(driver: Driver) -> None:
    driver.room.bots.add(Racer())
    ann = driver.join("ann")
    driver.tick()
    assert driver.core.connection_count == 1  # what routers are told
    driver.leave(ann)
    driver.advance(29.9)
    assert driver.is_active
    driver.advance(0.2)
    assert not driver.is_active
    assert [bot.player for bot in driver.wake().room.bots] == ["bot:1"]
