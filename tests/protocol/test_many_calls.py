"""Field log F16: 70,000 calls on one connection, and reply n belongs to call n, past 255 and past 65,535."""

from __future__ import annotations

from typing import Any

from playhall.client import outputs
from playhall.client.core import ClientCore
from playhall.engine import frames
from playhall.engine.core import RoomCore
from playhall.engine.outputs import FramesOut, JoinedOut, JoinRequest, Now, RoomIdentity, WakeInfo
from playhall.engine.packing import unpack_groups
from playhall.room import Call, Connection, Room, Schema

CALLS = 70_000
LINK = 1


class Echo(Call[int]):
    n: int


class Game(Room):
    schema = Schema(calls=[Echo])

    @Echo.handler
    def echo(self, conn: Connection, ask: Echo) -> int:
        return ask.n


class Pair:
    """A client and a room, frame to frame, with no one between them and no time passing."""

    def __init__(self) -> None:
        self.client = ClientCore(
            Game.schema,
            project="p",
            room="r",
            type=None,
            token=None,
            session=bytes(16),
            sdk="test/1",
            rng=lambda: 1.0,
        )
        self.room = RoomCore(Game, identity=RoomIdentity("p", "r", "u"), generation=1)
        self.ends: list[Any] = []
        self.drained = 0
        self.room.start(None, WakeInfo(), Now(0.0, 0.0))
        self.client.start(0.0)
        self.client.opened(0.0)
        self.client.take_outputs()
        resume = frames.Resume(0, 0, 0, False, ())
        request = JoinRequest("ann", None, Game.schema.hash, bytes(16), 0, 0, False, resume, "c", "", 2**18)
        assert self.room.join(LINK, request, Now(0.0, 0.0))
        self.pump()

    def pump(self) -> None:
        for output in self.client.take_outputs():
            match output:
                case outputs.SendFrame(data):
                    self.room.receive(LINK, data, Now(0.0, 0.0))
                case outputs.CallAnswered() | outputs.CallFailed():
                    self.ends.append(output)
        for out in self.room.take_outputs():
            match out:
                case JoinedOut():
                    welcome = frames.Welcome(
                        1,
                        out.version,
                        out.tick,
                        0,
                        out.resumed,
                        False,
                        out.tick_rate,
                        "ann",
                        "r",
                        "default",
                        "",
                    )
                    self.client.received(frames.encode_server(welcome), 0.0)
                case FramesOut(data):
                    for _, frame, _ in unpack_groups(data):
                        self.client.received(frame, 0.0)
                        self.drained += len(frame)
                    self.room.drained(LINK, self.drained % 2**32, Now(0.0, 0.0))


def test_reply_n_belongs_to_call_n() -> None:
    pair = Pair()
    pair.room.durable(pair.room.version, Now(0.0, 0.0))
    for n in range(CALLS):
        assert pair.client.call("echo", {"n": n}, 0.0, 10.0) == n
        if n % 20 == 0:  # so that there are several under way
            pair.pump()
    pair.pump()
    pair.pump()
    assert pair.ends == [outputs.CallAnswered(n, n) for n in range(CALLS)]
