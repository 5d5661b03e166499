"""What a game sees of entities and presence, and in which order it hears of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from playhall.client import outputs
from playhall.client.entities import ClientEntities
from playhall.client.presence import ClientPresence
from playhall.engine.kinds import Entity
from playhall.engine.schema import PresenceRow
from tests.support.scripted_server import BALL, Ball, Board, Dot, Server, Thing


class Game:
    """A server and the faces a RoomClient would show of its client, with all callbacks written down."""

    def __init__(self) -> None:
        self.server = Server()
        self.entities = ClientEntities(self.server.core)
        self.presence = ClientPresence(self.server.core)
        self.heard: list[Any] = []

    def connect(self, *entities: tuple[int, Entity]) -> None:
        self.server.start()
        self.server.opened()
        self.server.welcome()
        self.server.state(*entities)
        self.dispatch()

    def dispatch(self) -> None:
        for event in self.server.happened():
            if isinstance(event, outputs.Updated):
                tell = self.presence.apply(event.changes)
                self.entities.tell(event.changes)
                tell()

    def update(self) -> list[Any]:
        self.heard.clear()
        self.server.update()
        self.dispatch()
        return list(self.heard)

    def listen(self, kind: type[Entity] = Entity) -> None:
        self.entities.on_enter(kind, lambda e: self.heard.append(("enter", e.id)))
        self.entities.on_change(kind, lambda e, names: self.heard.append(("change", e.id, *sorted(names))))
        self.entities.on_leave(kind, lambda e: self.heard.append(("leave", e.id)))
        self.entities.on_owner(kind, lambda e: self.heard.append(("owner", e.id, e.owner)))
        self.entities.on_correct(kind, lambda e, names: self.heard.append(("correct", e.id, *sorted(names))))


@pytest.fixture
def game() -> Game:
    return Game()


@pytest.mark.ledger("CENT-03")
def test_entities_are_found_by_id_kind_base_and_owner(game: Game) -> None:
    game.connect((2, Dot(x=1)), (3, BALL), (4, Dot(x=2)))
    game.server.own(4, "alice")
    game.server.own(3, "bob")
    game.update()
    entities = game.entities
    two, three, four = (entities.get(id) for id in (2, 3, 4))
    assert entities.all(Dot) == [two, four]
    assert entities.all(Thing) == [two, four, three]
    assert entities.mine(Thing) == [four]
    assert entities.all(Thing, owner="bob") == [three]
    assert (entities.first(Dot), entities.first(Dot, owner="alice"), entities.first(Ball, owner="alice")) == (
        two,
        four,
        None,
    )
    assert (entities.count(Dot), entities.count(Entity), len(entities), list(entities)) == (
        2,
        3,
        3,
        [two, four, three],
    )
    assert (entities.get(Dot, 2), entities.get(Ball, 2), entities.get(99)) == (two, None, None)
    assert three is not None
    assert three.owner == "bob"
    assert two in entities
    assert game.server.core.replica.get(0) not in entities


def test_shared_and_private_state_and_presence_are_no_entities_of_the_game(game: Game) -> None:
    game.connect((2**31, PresenceRow(player="alice", name="", connected=True)))
    assert (len(game.entities), game.entities.get(0), game.entities.get(1), game.entities.get(2**31)) == (
        0,
        None,
        None,
        None,
    )


@pytest.mark.ledger("CENT-03", "CENT-05")
def test_callbacks_run_once_all_is_in_enters_first_and_leaves_last(game: Game) -> None:
    game.connect((2, Dot(x=1)), (3, Dot(x=1)), (4, Dot(x=1)))
    game.server.own(3, "alice")
    game.update()
    game.listen()
    sums: list[float] = []
    game.entities.on_enter(Dot, lambda _: sums.append(sum(dot.x for dot in game.entities.all(Dot))))
    game.server.leave(4)
    game.server.enter(9, Dot(x=100))
    game.server.change(2, Dot(x=50), "x")
    game.server.own(3, "bob")
    game.server.change(3, Dot(x=7, volume=6), "x", "volume", correct=True)
    assert game.update() == [
        ("enter", 9),
        ("change", 2, "x"),
        ("change", 3, "volume", "x"),
        ("correct", 3, "volume", "x"),
        ("owner", 3, "bob"),
        ("leave", 4),
    ]
    assert sums == [157.0]


@pytest.mark.ledger("CENT-06")
def test_parts_of_one_update_are_one_change(game: Game) -> None:
    game.connect((2, Dot(x=1)))
    game.listen()
    game.server.enter(3, Dot(x=3))
    game.server.say(game.server.part(1, 1))
    game.dispatch()
    assert (game.heard, game.entities.get(3)) == ([], None)
    game.server.change(3, Dot(x=4), "x")
    game.server.change(2, Dot(x=4), "x")
    game.server.say(game.server.part(last=True))
    game.dispatch()
    assert game.heard == [("enter", 3), ("change", 2, "x")]


def test_one_that_takes_anothers_id_enters_after_the_other_has_left(game: Game) -> None:
    game.connect((2, Dot(x=1)), (3, Dot(x=1)))
    game.listen()
    game.server.enter(2, BALL)
    game.server.leave(3)
    assert game.update() == [("leave", 2), ("enter", 2), ("leave", 3)]


def test_listeners_hear_of_their_kind_or_of_all_under_a_base(game: Game) -> None:
    game.connect()
    heard: list[tuple[str, int]] = []
    for kind in (Dot, Thing, Entity, Board):
        game.entities.on_enter(kind, lambda e, name=kind.__name__: heard.append((name, e.id)))  # type: ignore[misc]
    game.entities.on_change(Board, lambda board, names: heard.append(("moves", board.moves)))
    game.server.enter(2, Dot(x=1))
    game.server.enter(3, BALL)
    game.server.change(0, Board(moves=4), "moves")
    game.update()
    assert heard == [("Dot", 2), ("Thing", 2), ("Entity", 2), ("Thing", 3), ("Entity", 3), ("moves", 4)]


def test_what_a_listener_raises_the_loop_hears_of_and_the_others_hear_all_the_same(game: Game) -> None:
    def broken(entity: Entity) -> None:
        raise ZeroDivisionError("in a listener")

    async def play() -> list[str]:
        problems: list[str] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, problem: problems.append(f"{problem['message']}: {problem['exception']}")
        )
        game.server.enter(2, Dot(x=1))
        assert game.update() == [("enter", 2)]
        game.server.enter(3, Dot(x=1))
        assert game.update() == [("enter", 3)]
        return problems

    game.connect()
    game.entities.on_enter(Dot, broken)
    game.listen()
    first, second = asyncio.run(play())
    assert first == second
    assert first.startswith("a listener raised: <function ")
    assert first.endswith(": in a listener")


def test_a_listener_can_be_taken_off_and_taken_off_again(game: Game) -> None:
    game.connect()
    heard: list[int] = []

    def listen(entity: Entity) -> None:
        heard.append(entity.id)

    first, second = game.entities.on_enter(Dot, listen), game.entities.on_enter(Dot, listen)
    first()
    first()
    game.server.enter(2, Dot(x=1))
    game.update()
    second()
    game.server.enter(3, Dot(x=1))
    game.update()
    assert heard == [2]


def test_an_async_listener_is_refused(game: Game) -> None:
    async def listen(entity: Entity) -> None: ...

    with pytest.raises(TypeError, match="async"):
        game.entities.on_enter(Dot, listen)
    with pytest.raises(TypeError, match="async"):
        game.presence.on_join(listen)  # type: ignore[arg-type]


def row(player: str, name: str = "", *, connected: bool = True, status: object = None) -> PresenceRow:
    return PresenceRow(player=player, name=name, connected=connected, status=status)


def test_presence_is_a_mapping_by_player_and_tells_what_changed(game: Game) -> None:
    heard: list[Any] = []
    game.presence.on_join(lambda entry: heard.append(("join", entry.player)))
    game.presence.on_change(lambda entry, names: heard.append((entry.player, *sorted(names))))
    game.presence.on_leave(lambda entry: heard.append(("leave", entry.player, entry.name)))
    game.connect((2**31, row("alice", "Ada")), (2**31 + 1, row("bob")))
    assert heard == [("join", "alice"), ("join", "bob")]
    heard.clear()
    game.server.change(2**31 + 1, row("bob", "Bob", connected=False), "name", "connected")
    game.server.leave(2**31)
    game.update()
    assert heard == [("bob", "connected", "name"), ("leave", "alice", "Ada")]
    assert list(game.presence) == ["bob"]
    assert (game.presence["bob"].name, game.presence["bob"].connected, game.presence.get("alice")) == (
        "Bob",
        False,
        None,
    )


def test_a_player_whose_entry_is_sent_anew_has_neither_left_nor_come(game: Game) -> None:
    game.connect((2**31, row("alice", "Ada")), (2**31 + 1, row("bob")))
    heard: list[Any] = []
    game.presence.on_join(lambda entry: heard.append(("join", entry.player)))
    game.presence.on_change(lambda entry, names: heard.append((entry.player, *sorted(names))))
    game.presence.on_leave(lambda entry: heard.append(("leave", entry.player)))
    game.server.closed(4008)
    game.server.wait(1.0)
    game.server.opened()
    game.server.generation += 1
    game.server.welcome()
    game.server.state((2**31, row("bob")), (2**31 + 1, row("alice")), (2**31 + 2, row("carol")))
    game.dispatch()
    assert heard == [("alice", "name"), ("join", "carol")]
