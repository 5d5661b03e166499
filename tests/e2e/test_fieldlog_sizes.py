"""Field log F28 on real sockets and processes: sizes of frames, bombs, and rooms of 4 MiB."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from playhall.engine import frames
from tests.e2e.games.fieldlog.room import Vault, filler
from tests.e2e.games.fieldlog.shared import Blob, Board, Echo, schema
from tests.support.dev import DevServer
from tests.support.players import Player, together
from tests.support.raw_socket import RawSocket
from tests.support.rooms import Driver

pytestmark = pytest.mark.asyncio

GAME = "fieldlog"
PAYLOAD = 65_536
FRAME = 65_600
SNAPSHOT = 4 * 1024 * 1024
BLOB = 40_000
PROTOCOL = 4000
TOO_BIG = 4005
MEBIBYTE = 1 << 20
# The largest that zeros of one frame unpack to, nearly.
BOMB = 60 * MEBIBYTE
HEAD = bytes([5, 0, 1])  # a message of bytes

rooms = (f"sizes-{number}" for number in itertools.count())


@asynccontextmanager
async def undisturbed(dev: DevServer) -> AsyncIterator[tuple[str, Player[Board, None]]]:
    """A room, and one in it who notices nothing of what others do there."""
    room = next(rooms)
    async with Player(dev.url, GAME, room, schema, type="vault") as alice:
        await alice.ask("look")
        alice.events.clear()
        yield room, alice
        await alice.ask("look")
        assert alice.story() == []
        assert alice.sockets == 1


async def come(dev: DevServer, room: str) -> RawSocket:
    raw = await RawSocket.open(dev.websockets[0])
    raw.greet(GAME, room, schema, type="vault")
    await raw.until(lambda raw: raw.has(frames.UpdatePart))
    return raw


def echoed(raw: RawSocket) -> list[object]:
    return [frame.content for frame in raw.received if isinstance(frame, frames.Message)]


async def test_f28_frames_of_all_sizes(dev: DevServer) -> None:
    """Up to the limit they work, however they are cut on the way; what is larger has its close code."""
    async with undisturbed(dev) as (room, _):
        raw = await come(dev, room)
        for size in (PAYLOAD - 1, PAYLOAD):
            raw.send(HEAD + bytes(size))
        await raw.until(lambda raw: len(echoed(raw)) == 2)
        assert echoed(raw) == [bytes(PAYLOAD - 1), bytes(PAYLOAD)]
        # In pieces of a byte: a masked WebSocket frame, written as it might come over a bad line.
        data = HEAD + b"dripping"
        mask = bytes(4)
        for byte in bytes([0x82, 0x80 | len(data)]) + mask + data:
            raw.send_raw(bytes([byte]))
        await raw.until(lambda raw: len(echoed(raw)) == 3)
        assert echoed(raw)[-1] == b"dripping"
        raw.close()
        for size, code in (
            (PAYLOAD + 1, PROTOCOL),
            (FRAME - len(HEAD), PROTOCOL),
            (FRAME - len(HEAD) + 1, TOO_BIG),
            (10 * FRAME, TOO_BIG),
        ):
            raw = await come(dev, room)
            raw.send(HEAD + bytes(size))
            assert await raw.closed() == code, size
            assert echoed(raw) == []
        # WebSocket fragments are no frames of ours, however small they are.
        raw = await come(dev, room)
        raw.send_raw(bytes([0x02, 0x81]) + mask + HEAD[:1] + bytes([0x80, 0x81]) + mask + HEAD[1:2])
        assert await raw.closed() == PROTOCOL
        raw = await come(dev, room)
        raw.send(bytes([5, 0, 0]) + b"[" * 10_000 + b"]" * 10_000)
        assert await raw.closed() == PROTOCOL


async def test_f28_bombs_of_a_client(dev: DevServer) -> None:
    """Nobody unpacks what a client has packed: not its payloads, nor WebSocket's own compression."""
    async with undisturbed(dev) as (room, _):
        await bomb(dev, room, 1_000)  # what is made at the first of anything is there now
        pids = [*dev.room_host_pids(), *dev.running("router")]
        before = {pid: highest(pid) for pid in pids}
        for size in (PAYLOAD + 1, 10 * MEBIBYTE, BOMB):
            await bomb(dev, room, size)
        grown = {pid: highest(pid) - before[pid] for pid in pids}
        assert max(grown.values()) < BOMB // 3, grown


async def bomb(dev: DevServer, room: str, size: int) -> None:
    """Send what unpacks to so many bytes, as a payload of ours and as a compressed WebSocket message."""
    packer = zlib.compressobj(level=9, wbits=-zlib.MAX_WBITS)
    packed = packer.compress(bytes(size)) + packer.flush()
    assert len(packed) < FRAME - 16
    raw = await come(dev, room)
    raw.send(bytes([5, 0, 3]) + packed)
    assert await raw.closed() == PROTOCOL
    raw = await come(dev, room)
    length = len(packed)
    head = bytes([0x80 | length]) if length < 126 else bytes([0x80 | 126]) + length.to_bytes(2, "big")
    raw.send_raw(b"\xc2" + head + bytes(4) + packed)
    assert await raw.closed() == PROTOCOL


def highest(pid: int) -> int:
    """The most memory that a process ever had, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


async def test_f28_the_sdk_says_so_at_the_line_and_sends_nothing_again(dev: DevServer) -> None:
    async with undisturbed(dev) as (_, alice):
        for size in (PAYLOAD + 1, 10 * PAYLOAD):
            with pytest.raises(ValueError, match=r"65,?536"):
                alice.send(bytes(size))
            with pytest.raises(ValueError, match=r"65,?536"):
                alice.client.call(Echo(text="x" * size))
        text = "x" * (PAYLOAD - 64 - 20)
        assert await alice.client.call(Echo(text=text)) == text
        alice.send(bytes(PAYLOAD))
        await alice.happens("message")
        assert len(alice.named("message")) == 1
        alice.events.clear()


@pytest.mark.timeout(240)
async def test_f28_rooms_around_four_mebibytes(dev: DevServer) -> None:
    """Grown, saved, woken and joined: gRPC's default limit of 4 MiB is nobody's."""

    async def story(size: int) -> None:
        room = next(rooms)
        async with Player(dev.url, GAME, room, schema, type="vault") as alice:
            grown = await alice.ask("grow", bytes=size)
            await alice.until(lambda: alice.client.entities.count(Blob) == grown["blobs"], 60)
            token = alice.client.guest_token
            alice.send({"type": "hibernate"})
            await alice.happens("closed", timeout=60)
        async with Player(dev.url, GAME, room, schema, type="vault", token=token) as again:
            blobs = sorted(again.client.entities.all(Blob), key=lambda blob: blob.id)
            assert sum(len(blob.data) for blob in blobs) == size
            left = size
            for blob in blobs:
                assert blob.data == filler(left, min(left, BLOB))
                left -= BLOB

    overhead = base_size(SNAPSHOT) - SNAPSHOT
    # What else is in a base differs by some bytes from run to run (ticks, names): some more on both sides.
    for off in (-24, -1, 0, 1, 24):
        await together([story(SNAPSHOT - overhead + off)])


def base_size(size: int) -> int:
    """How large the saved room is with so many bytes of blobs."""
    driver = Driver(Vault)
    driver.join("guest:0123456789abcdef0123456789abcdef")
    while size > 0:
        driver.room.entities.add(Blob(data=filler(size, min(size, BLOB))))
        size -= BLOB
    driver.tick()
    driver.hibernate()
    base = driver.stored.base
    assert base is not None
    return len(base)
