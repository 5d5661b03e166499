"""What the room host asks of RoomCore beyond what `playhall.testing` does: bases on demand, held links."""

from __future__ import annotations

from playhall.engine.core import RoomCore
from playhall.engine.frames import Resume
from playhall.engine.outputs import BaseOut, FramesOut, JoinRequest, Now, Output, RoomIdentity, WakeInfo
from playhall.engine.packing import unpack_groups
from playhall.room import Entity, Room, Schema, u32

LINK = 1


class Board(Entity):
    moves: u32 = 0


class Game(Room[Board]):
    schema = Schema(state=Board)


def playing() -> tuple[RoomCore, Game]:
    """A room with one player, and nothing left to carry out."""
    core = RoomCore(Game, identity=RoomIdentity("arcade", "r", "u"), generation=7)
    core.start(None, WakeInfo(), Now(0.0, 0.0))
    request = JoinRequest(
        "ann",
        None,
        Game.schema.hash,
        b"s" * 16,
        0,
        0,
        False,
        Resume(0, 0, 0, False, ()),
        "c",
        "default",
        1 << 20,
    )
    assert core.join(LINK, request, Now(0.1, 0.1))
    core.take_outputs()
    assert isinstance(core.room, Game)
    return core, core.room


def only(kind: type[Output], outputs: list[Output]) -> list[Output]:
    return [output for output in outputs if isinstance(output, kind)]


def test_a_base_is_written_when_the_state_store_needs_one() -> None:
    core, room = playing()
    room.state.moves = 3
    core.need_base(Now(0.2, 0.2))
    (base,) = only(BaseOut, core.take_outputs())
    assert isinstance(base, BaseOut)
    assert base.version == core.version


def test_a_held_link_is_sent_nothing_and_then_one_merged_update() -> None:
    core, room = playing()
    core.hold(LINK, True, Now(0.2, 0.2))
    for n in range(1, 4):
        room.state.moves = n
        core.tick(Now(0.2 + n / 20, 0.2))
    assert only(FramesOut, core.take_outputs()) == []
    core.hold(LINK, False, Now(0.5, 0.5))
    core.tick(Now(0.5, 0.5))
    assert len(only(FramesOut, core.take_outputs())) == 1


def test_messages_to_a_held_link_wait_in_order() -> None:
    core, room = playing()
    core.hold(LINK, True, Now(0.2, 0.2))
    for n in range(3):
        room.broadcast({"n": n})
    assert only(FramesOut, core.take_outputs()) == []
    core.hold(LINK, False, Now(0.3, 0.3))
    sent = [out.data for out in core.take_outputs() if isinstance(out, FramesOut)]
    bodies = [frame for _, frame, _ in unpack_groups(b"".join(sent))]
    assert [body[-2:-1] for body in bodies] == [b"0", b"1", b"2"]
