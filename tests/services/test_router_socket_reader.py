"""Many sockets are read in passes, and whatever is not plain reading is left to their transports."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from playhall.engine.backend import Intake
from playhall.sockets import CAN_POLL
from playhall_router.socket_reader import BUSY_READS, SocketReader
from tests.support.players import eventually

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.skipif(not CAN_POLL, reason="there is no epoll: transports read"),
]

DEADLINE_S = 10.0


class Stream(asyncio.BufferedProtocol):
    """A connection that keeps what it is told, by the transport or by the reader."""

    def __init__(self, intake: Intake) -> None:
        self.intake = intake
        self.got = b""
        self.reads = 0
        self.ended = self.lost = False
        self.failure: BaseException | None = None
        self.news = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.intake.buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self.failure is not None:
            raise self.failure
        self.got += self.intake.buffer[:nbytes]
        self.reads += 1
        self.news.set()

    def eof_received(self) -> bool:
        self.ended = True
        self.news.set()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self.news.set()

    async def hears(self, got: bytes) -> None:
        """Wait until so much has come in all."""
        async with asyncio.timeout(DEADLINE_S):
            while self.got != got:
                await self.news.wait()
                self.news.clear()

    async def ends(self) -> None:
        """Wait until the connection is lost."""
        async with asyncio.timeout(DEADLINE_S):
            while not self.lost:
                await self.news.wait()
                self.news.clear()


class Stand:
    """A reader and its connections."""

    def __init__(self) -> None:
        self.intake = Intake(70_000, asyncio.get_running_loop().time)
        self.reader = SocketReader(self.intake)
        self.sockets: list[socket.socket] = []

    async def open(self) -> tuple[socket.socket, Stream]:
        """A connection that is read by the reader, and its other end."""
        ours, theirs = socket.socketpair()
        loop = asyncio.get_running_loop()
        transport, stream = await loop.create_connection(lambda: Stream(self.intake), sock=ours)
        self.reader.add(transport, stream)
        self.sockets.append(theirs)
        return theirs, stream


@pytest_asyncio.fixture
async def stand() -> AsyncIterator[Stand]:
    made = Stand()
    yield made
    made.reader.close()
    for each in made.sockets:
        each.close()


async def test_what_comes_is_read_and_told_to_its_own_connection(stand: Stand) -> None:
    (to_ann, ann), (to_bob, bob) = await stand.open(), await stand.open()
    to_ann.send(b"for ann")
    to_bob.send(b"for bob")
    await ann.hears(b"for ann")
    await bob.hears(b"for bob")
    to_ann.send(b", again")
    await ann.hears(b"for ann, again")
    assert not stand.reader.paced


async def test_the_end_of_a_stream_is_the_transports(stand: Stand) -> None:
    (to_ann, ann), (to_bob, bob) = await stand.open(), await stand.open()
    to_ann.send(b"bye")
    to_ann.close()
    await ann.ends()
    assert (ann.got, ann.ended) == (b"bye", True)
    to_bob.send(b"on")
    await bob.hears(b"on")


async def test_while_much_comes_several_reads_share_a_pass(stand: Stand) -> None:
    to_ann, ann = await stand.open()
    _, bob = await stand.open()
    sent = 0
    async with asyncio.timeout(DEADLINE_S):
        while not stand.reader.paced:
            to_ann.send(b".")
            sent += 1
            await asyncio.sleep(0)
    assert ann.reads >= BUSY_READS
    stand.sockets[1].send(b"now, ")
    stand.reader.read_now()
    assert bob.got == b"now, "
    stand.sockets[1].send(b"at the next pass")
    await bob.hears(b"now, at the next pass")
    await ann.hears(b"." * sent)
    await eventually(lambda: not stand.reader.paced)
    to_ann.send(b"!")
    await ann.hears(b"." * sent + b"!")


async def test_a_removed_connection_is_not_read(stand: Stand) -> None:
    (to_ann, ann), (to_bob, bob) = await stand.open(), await stand.open()
    stand.reader.remove(ann.transport)
    stand.reader.remove(ann.transport)
    to_ann.send(b"unread")
    to_bob.send(b"read")
    await bob.hears(b"read")
    assert ann.got == b""
    ann.transport.abort()
    await ann.ends()


async def test_a_connection_that_fails_ends_alone(stand: Stand) -> None:
    troubles: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: troubles.append(context["exception"]))
    try:
        (to_ann, ann), (to_bob, bob) = await stand.open(), await stand.open()
        ann.failure = ValueError("this connection fails")
        to_ann.send(b"bad")
        to_bob.send(b"good")
        await ann.ends()
        await bob.hears(b"good")
    finally:
        loop.set_exception_handler(None)
    assert [str(error) for error in troubles] == ["this connection fails"]


async def test_a_pass_that_fails_is_not_the_last(stand: Stand) -> None:
    troubles: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: troubles.append(context["exception"]))
    try:
        (to_ann, ann), (to_bob, bob) = await stand.open(), await stand.open()
        async with asyncio.timeout(DEADLINE_S):
            while not stand.reader.paced:
                to_ann.send(b".")
                await asyncio.sleep(0)
        ann.failure = asyncio.CancelledError("out of the pass")
        to_ann.send(b"bad")
        await eventually(lambda: bool(troubles))
        ann.failure = None
        to_bob.send(b"good")
        await bob.hears(b"good")
    finally:
        loop.set_exception_handler(None)
    assert [str(error) for error in troubles] == ["out of the pass"]
