"""Mistakes in tests that both checkers must report: an ignore that hides nothing is an error in itself."""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
from playhall.room import Entity, Room, Schema, u8
from playhall.testing import Net, RoomHost


class Board(Entity):
    moves: u8 = 0


class Game(Room[Board]):
    schema = Schema(state=Board)


Net(0.1)  # type: ignore[call-arg]  # pyright: ignore
Net(ping=0.1)  # type: ignore[call-arg]  # pyright: ignore
Net(rtt="slow")  # type: ignore[arg-type]  # pyright: ignore
Net().rtt = 0.2  # type: ignore[misc]  # pyright: ignore


async def test_game(room_host: RoomHost) -> None:
    room_host.room(Board)  # type: ignore[arg-type]  # pyright: ignore
    room_host.room(Game, players=3)  # type: ignore[call-arg]  # pyright: ignore
    t = room_host.room(Game)
    print(t.room.states)  # type: ignore[attr-defined]  # pyright: ignore
    alice = await t.connect("alice")
    print(alice.state.move)  # type: ignore[attr-defined]  # pyright: ignore
    print(alice.private.coins)  # type: ignore[attr-defined]  # pyright: ignore
    alice.net = 0.1  # type: ignore[assignment]  # pyright: ignore
    alice.expect_sees(3)  # type: ignore[arg-type]  # pyright: ignore
    alice.expect_corrected("moves")  # type: ignore[call-arg, arg-type]  # pyright: ignore
    await t.connect("bob", net=0.1)  # type: ignore[arg-type]  # pyright: ignore
