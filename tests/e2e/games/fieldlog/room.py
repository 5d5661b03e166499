"""Rooms for the field log: slow to let people in, of few seats, busy, and large."""

import asyncio

from playhall.room import Connection, Message, Room

from .shared import Blob, Board, Echo, Pawn, schema

JOIN_S = 0.5
SEAT_S = 0.2
BLOBS = 30
BLOB_BYTES = 8_000
# So many of the busy room's blobs change each tick.
CHANGES = 4


class Slow(Room[Board, None]):
    """Waits before it lets anybody in; every fifth is refused after the wait."""

    schema = schema
    max_players = 256
    wait_s = JOIN_S
    refuses = 5

    def __init__(self) -> None:
        self.inside: set[str] = set()
        self.most = 0

    async def on_join(self, conn: Connection) -> None:
        self.state.tried += 1
        number = self.state.tried
        self.most = max(self.most, len(self.connections))
        await asyncio.sleep(self.wait_s)
        self.most = max(self.most, len(self.connections))
        if self.refuses and number % self.refuses == 0:
            raise PermissionError("every fifth is refused")
        self.state.joins += 1
        self.inside.add(conn.id)
        self.entities.add(Pawn(number=number), owner=conn.player, once=True)

    def on_leave(self, conn: Connection) -> None:
        if conn.id in self.inside:
            self.inside.remove(conn.id)
            self.state.leaves += 1
        else:
            self.state.strays += 1

    def on_player_leave(self, player: str) -> None:
        for pawn in self.entities.all(Pawn, owner=player):
            self.entities.delete(pawn)

    def on_message(self, conn: Connection, message: Message) -> None:
        match message:
            case {"type": "look", "ask": int() as ask}:
                here = sorted(self.connections)
                self.send(conn, {"answer": ask, "here": here, "inside": len(self.inside), "most": self.most})
            case _:
                self.send(conn, message)

    @Echo.handler
    def echo(self, conn: Connection, ask: Echo) -> str:
        return ask.text


class Eight(Slow):
    """Of few seats."""

    max_players = 8
    wait_s = SEAT_S
    refuses = 0


class Busy(Slow):
    """A large state that changes all the time."""

    wait_s = 0.0
    refuses = 0
    tick_rate = 20

    def on_create(self) -> None:
        for number in range(BLOBS):
            self.entities.add(Blob(data=filler(number, BLOB_BYTES)))

    def on_tick(self, dt: float) -> None:
        if not self.connections or self.state.strays:
            return
        self.state.beats += 1
        beats = self.state.beats
        blobs = self.entities.all(Blob)
        for step in range(CHANGES):
            blob = blobs[(beats * CHANGES + step) % len(blobs)]
            blob.beats = beats
            blob.patch("data", beats * 97 % (BLOB_BYTES - 1_000), filler(beats, 1_000))

    def on_message(self, conn: Connection, message: Message) -> None:
        if message == "rest":
            self.state.strays = 1
        else:
            super().on_message(conn, message)


class Vault(Slow):
    """Grows to the size it is told."""

    wait_s = 0.0
    refuses = 0

    def on_message(self, conn: Connection, message: Message) -> None:
        match message:
            case {"type": "grow", "ask": int() as ask, "bytes": int() as size}:
                while size > 0:
                    self.entities.add(Blob(data=filler(size, min(size, 40_000))))
                    size -= 40_000
                self.send(conn, {"answer": ask, "blobs": self.entities.count(Blob)})
            case {"type": "hibernate"}:
                self.request_hibernate()
            case _:
                super().on_message(conn, message)


def filler(seed: int, size: int) -> bytes:
    """Bytes that do not compress."""
    state, out = seed * 2_654_435_761 + 1, bytearray()
    while len(out) < size:
        state = state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407 & (1 << 64) - 1
        out += (state ^ state >> 29).to_bytes(8, "little")
    return bytes(out[:size])
