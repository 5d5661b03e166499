"""Field log F28, what needs no sockets: sizes at the limit, deep nesting, frames that unpack to more."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from playhall.client import outputs
from playhall.engine import frames
from playhall.engine.errors import ProtocolError
from playhall.engine.updates import MAX_PART, UPDATE, UpdateReader, encode_head
from playhall.room import Connection, Message, Room
from playhall.testing import RoomHost
from tests.support.rooms import Driver
from tests.support.scripted_server import SCHEMA, Server

LIMIT = 65_536
MESSAGE, UNRELIABLE, REPLY = 5, 6, 11
PACKED = 2
PROTOCOL = 4000


class Echo(Room):
    def __init__(self) -> None:
        self.heard: list[Message] = []

    def on_message(self, conn: Connection, message: Message) -> None:
        self.heard.append(message)
        self.send(conn, message)


def deflated(size: int) -> bytes:
    packer = zlib.compressobj(level=9, wbits=-zlib.MAX_WBITS)
    return packer.compress(b'"' + b"x" * (size - 2) + b'"') + packer.flush()


def from_server(kind: int, packed: bytes) -> bytes:
    if kind == UPDATE:
        return encode_head(0, 0, last=True, full=True, deflated=True) + packed
    return bytes([kind, 0, PACKED] if kind == REPLY else [kind, PACKED]) + packed


@contextmanager
def peak_below(most: int) -> Iterator[None]:
    """The memory that the block takes, at its highest."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < most, f"{peak} bytes at the peak"


@pytest.mark.parametrize("size", [LIMIT + 1, 10 * 1024 * 1024])
@pytest.mark.parametrize("kind", [MESSAGE, UNRELIABLE, REPLY])
def test_f28_payloads_that_unpack_to_too_much(kind: int, size: int) -> None:
    bomb = from_server(kind, deflated(size))
    with peak_below(4 * LIMIT), pytest.raises(ProtocolError, match="inflates to over 65536"):
        frames.decode_server(bomb)
    # The largest there may be does unpack.
    assert frames.decode_server(from_server(kind, deflated(LIMIT))) is not None


@pytest.mark.parametrize("size", [MAX_PART + 1, 10 * 1024 * 1024])
def test_f28_updates_that_unpack_to_too_much(size: int) -> None:
    reader = UpdateReader(SCHEMA.kinds)
    reader.welcome(1, 1, resumed=False)
    bomb = from_server(UPDATE, deflated(size))
    with peak_below(4 * MAX_PART), pytest.raises(ProtocolError, match="inflates to over"):
        reader.part(bomb)


@pytest.mark.parametrize("kind", [MESSAGE, UPDATE])
def test_f28_a_client_stops_at_a_bomb_and_does_not_come_back_for_more(kind: int) -> None:
    server = Server()
    server.start()
    server.opened()
    server.welcome()
    bomb = from_server(kind, deflated(10 * 1024 * 1024))
    with peak_below(4 * LIMIT):
        server.core.received(bomb, server.now)
    server.drain()
    assert server.core.status == "closed"
    [closed] = [event for event in server.events if isinstance(event, outputs.Closed)]
    assert closed.error.code == PROTOCOL
    assert server.core.next_timer() is None


@pytest.mark.parametrize("size", [LIMIT, 10 * 1024 * 1024])
def test_f28_what_a_client_packs_is_not_unpacked(size: int) -> None:
    """Only servers deflate: the room looks at the flag, and no further."""
    driver = Driver(Echo)
    ann, bob = driver.join("ann"), driver.join("bob")
    bomb = bytes([MESSAGE, 0, PACKED]) + deflated(size)
    with peak_below(LIMIT):
        driver.receive(ann, bomb)
    assert (ann.closed and ann.closed.code, bob.closed) == (PROTOCOL, None)
    assert driver.room.heard == []


def nested(depth: int) -> bytes:
    return bytes([MESSAGE, 0, 0]) + b"[" * depth + b"]" * depth


@pytest.mark.parametrize(("depth", "taken"), [(511, True), (512, True), (513, False), (10_000, False)])
def test_f28_nesting(depth: int, taken: bool) -> None:
    driver = Driver(Echo)
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.receive(ann, nested(depth))
    assert (ann.closed is None) is taken
    assert bool(driver.room.heard) is taken
    assert bob.closed is None


async def test_f28_what_the_sdk_does_not_send_it_does_not_send_again(room_host: RoomHost) -> None:
    """Too big is a ValueError at the line; nothing was sent, so nothing is sent after a reconnect either."""
    t = room_host.room(Echo)
    alice = await t.connect("alice")
    sends: list[Callable[[int], object]] = [
        lambda size: alice.send("x" * (size - 2)),
        lambda size: alice.send(bytes(size)),
        lambda size: alice.send({"m": "x" * (size - 8)}),
    ]
    for send in sends:
        for size in (LIMIT - 1, LIMIT):
            send(size)
        for size in (LIMIT + 1, 10 * LIMIT):
            with pytest.raises(ValueError, match=r"65,?536"):
                send(size)
    deep: object = None
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(ValueError, match=r"nest|deep"):
        alice.send(deep)  # type: ignore[arg-type]  # checkers take it for what it is
    await t.tick()
    assert len(t.room.heard) == len(alice.messages) == 2 * len(sends)
    await alice.drop()
    await alice.reconnected()
    await t.tick(5)
    assert len(t.room.heard) == 2 * len(sends)
    assert alice.status == "open"
