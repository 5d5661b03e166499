"""A room that uses everything, under clients that send anything: the room, its host and those who play go on.

Some good players play all the time, and are equal to the room at the end. The others come over real sockets,
several at once, and do what a client must not; each is closed with the code the protocol has for it, or with
none where it may. A seed draws it: PLAYHALL_FUZZ_SEED is another, PLAYHALL_FUZZ_ROUNDS more of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from playhall.engine import frames
from tests.e2e.games.fuzzed.shared import Add, Board, Echo, Mine, Pawn, schema
from tests.support.dev import DevServer
from tests.support.players import Player, everyone, together
from tests.support.raw_websocket import (
    CLOSE,
    CONTINUATION,
    PING,
    TEXT,
    Closed,
    RawWebSocket,
    ws_frame,
)
from tests.support.router_client import RouterClient
from tests.support.vectors import load

pytestmark = pytest.mark.asyncio

GAME = "fuzzed"
SEED = int(os.environ.get("PLAYHALL_FUZZ_SEED", "1"))
ROUNDS = int(os.environ.get("PLAYHALL_FUZZ_ROUNDS", "8"))
GOOD = 3
GROWTH = 96 * 2**20
"""Bytes by which a process may grow while it is attacked."""

NONE = 0
PROTOCOL, LIMIT, SCHEMA = 4000, 4005, 4004
NOTHING = frames.Resume(0, 0, 0, full=False, held=())
SEEDS = [bytes.fromhex(vector["hex"]) for vector in load("frames.json")["vectors"]]
SEEDS += [bytes.fromhex(part) for vector in load("updates.json")["vectors"] for part in vector["parts"]]
LEAKS = ("Traceback", 'File "', "playhall_", "site-packages", "object at 0x", "/work/", "the vault's secret")


@dataclass
class Stand:
    """What an attack is given."""

    address: str
    chance: random.Random
    room: str = "main"
    token: str = ""
    closes: list[Closed] = field(default_factory=list)

    def hello(self, **changed: Any) -> bytes:
        fields: dict[str, Any] = {
            "version": 1, "project": GAME, "room": self.room, "type": "", "token": self.token,
            "schema": schema.hash, "session": secrets.token_bytes(16), "attempt": 0, "sdk": "fuzz",
        }  # fmt: skip
        return frames.encode_client(frames.Hello(**(fields | changed)))

    async def join(self, raw: RawWebSocket, *, piece: int = 0) -> frames.Welcome:
        """Come in as a client does."""
        await raw.upgrade(piece=piece)
        await raw.send(self.hello(), frames.encode_client(NOTHING), piece=piece)
        while True:
            got = await raw.receive()
            assert isinstance(got, bytes), got
            frame = frames.decode_server(got)
            if isinstance(frame, frames.Welcome):
                return frame

    async def ends(self, raw: RawWebSocket, *codes: int) -> None:
        """The server ends it with one of these; by itself, or as the client leaves (NONE)."""
        if NONE in codes:
            await raw.send(frames.encode_client(frames.Leave()))
        code, reason = await raw.closed()
        self.closes.append((code, reason))
        assert code in codes or (NONE in codes and code == 1000), (code, reason, codes)
        assert len(reason.encode()) <= 123
        assert not [leak for leak in LEAKS if leak in reason], reason

    def garbage(self) -> bytes:
        """Bytes alone, or behind a frame's type, or a frame of the vectors with bytes put in or cut out."""
        chance = self.chance
        kind = chance.randrange(4)
        if kind == 0:
            return chance.randbytes(chance.randrange(60))
        if kind == 1:
            return bytes([chance.randrange(24)]) + chance.randbytes(chance.randrange(200))
        frame = chance.choice(SEEDS)
        for _ in range(chance.randint(1, 3)):
            at = chance.randint(0, min(len(frame), 60))
            piece = chance.choice((b"", b"\xff\xff\xff\xff\x0f", chance.randbytes(chance.randrange(6))))
            frame = frame[:at] + piece + frame[at + chance.randrange(6) :]
        return frame[:70_000]


Attack = Callable[[Stand], Awaitable[None]]


async def garbage_in_the_room(stand: Stand) -> None:
    async with RawWebSocket(stand.address) as raw:
        await stand.join(raw)
        for _ in range(stand.chance.randint(1, 12)):
            await raw.send(stand.garbage(), piece=stand.chance.choice((0, 0, 7)))
        # A mutant may also be a leave, or a frame that is right.
        await stand.ends(raw, PROTOCOL, LIMIT, 1000, NONE)


async def garbage_before_hello(stand: Stand) -> None:
    async with RawWebSocket(stand.address) as raw:
        await raw.upgrade()
        data = stand.garbage()
        await raw.send(data if data[:1] != b"\x01" else b"\x00" + data)
        await stand.ends(raw, PROTOCOL, LIMIT)


async def a_hello_of_garbage(stand: Stand) -> None:
    hello = bytearray(stand.hello())
    for _ in range(stand.chance.randint(1, 4)):
        hello[stand.chance.randrange(1, len(hello))] = stand.chance.randrange(256)
    async with RawWebSocket(stand.address) as raw:
        await raw.upgrade()
        await raw.send(
            bytes(hello[: stand.chance.choice((5, 20, len(hello)))]), frames.encode_client(NOTHING)
        )
        await stand.ends(raw, PROTOCOL, 4001, 4002, SCHEMA, 4015, LIMIT, NONE)


async def anything_instead_of_http(stand: Stand) -> None:
    async with RawWebSocket(stand.address) as raw:
        head = stand.chance.choice(
            (b"", b"GET / HTTP/1.1\r\n", b"\x16\x03\x01", b"GET /v1/connect HTTP/1.1\r\n")
        )
        await raw.write(head + stand.chance.randbytes(300) + b"\r\n\r\n")
        answer = await raw.ended()
        assert not answer or answer.startswith(b"HTTP/1.1 4"), answer[:80]
        assert not [leak for leak in LEAKS if leak.encode() in answer], answer


async def no_websocket_at_all(stand: Stand) -> None:
    """Frames that RFC 6455 does not allow, or that we do not take."""
    broken = [
        ws_frame(b"\x0f\0\0\0\0", masked=False),
        ws_frame(b"\x0f\0\0\0\0", rsv=4),
        ws_frame(b"\x0f\0\0\0\0", 3),
        ws_frame(b"hello?", TEXT),
        ws_frame(b"\x0f\0\0", fin=False) + ws_frame(b"\0\0", CONTINUATION),
        ws_frame(b"\0", CONTINUATION),
        ws_frame(b"", size=2**63 - 1),
        ws_frame(b"", size=2**40),
        ws_frame(b"\x05" + bytes(65_600)),
        ws_frame(bytes(126), PING),
        ws_frame(b"\x03", CLOSE),
        ws_frame(struct.pack(">H", 999), CLOSE),
        ws_frame(struct.pack(">H", 1000) + b"\xff\xfe", CLOSE),
        stand.chance.randbytes(100),
    ]
    async with RawWebSocket(stand.address) as raw:
        await stand.join(raw)
        await raw.write(stand.chance.choice(broken), piece=stand.chance.choice((0, 1)))
        code, reason = await raw.closed()
        stand.closes.append((code, reason))
        # What is no WebSocket may also be cut off, or answered with a code of WebSockets.
        assert code in (0, PROTOCOL, LIMIT) or 999 <= code < 1016, (code, reason)


async def a_byte_at_a_time(stand: Stand) -> None:
    async with RawWebSocket(stand.address) as raw:
        await stand.join(raw, piece=1)
        await raw.send(frames.encode_client(frames.Message("slow")), piece=1)
        await stand.ends(raw, NONE)


async def bursts(stand: Stand) -> None:
    frame = stand.chance.choice(
        (
            frames.encode_client(frames.Message({"n": 1})),
            frames.encode_client(frames.Call(1, None, "add", {"a": 1})),
            frames.encode_client(frames.Ping(1)),
            frames.encode_client(frames.Unreliable(b"x" * 1_000)),
        )
    )
    async with RawWebSocket(stand.address) as raw:
        await stand.join(raw)
        await raw.write(ws_frame(frame) * 600)
        await stand.ends(raw, LIMIT)


async def calls_of_nonsense(stand: Stand) -> None:
    """Each is answered as it must be, and closes nothing."""
    asked: list[tuple[str, Any, int]] = [
        ("add", {"a": "x"}, 422), ("add", {}, 422), ("add", [1], 422), ("add", None, 422), ("add", 5, 422),
        ("add", b"bytes", 422), ("add", {"a": 1.5}, 422), ("add", {"a": True}, 422),
        ("echo", {"text": 5}, 422),
        ("add", {"a": 1, "tags": {"x": [[[]]]}}, 422), ("", {}, 404), ("Add", {"a": 1}, 404),
        ("__init__", {}, 404),
        ("add", {"a": 1, "more": "x" * 60_000}, 200), ("add", {"a": 2**53 - 1}, 200),
        ("echo", {"text": "\0"}, 200),
        ("on_tick", {}, 404), ("\0", None, 404), ("x" * 64, {}, 404),
    ]  # fmt: skip
    chosen = stand.chance.sample(asked, 8)
    async with RawWebSocket(stand.address) as raw:
        await stand.join(raw)
        for name, content, _ in chosen:
            # The number is one that was used already.
            await raw.send(frames.encode_client(frames.Call(7, None, name, content)))
        replies: list[int] = []
        while len(replies) < len(chosen):
            got = await raw.receive()
            assert isinstance(got, bytes), got
            frame = frames.decode_server(got)
            if isinstance(frame, frames.ReplyError):
                assert not [leak for leak in LEAKS if leak in frame.text], frame.text
                replies.append(frame.code)
            elif isinstance(frame, frames.Reply):
                replies.append(200)
        assert sorted(replies) == sorted(code for _, _, code in chosen)
        await stand.ends(raw, NONE)


async def writes_to_what_others_own(stand: Stand) -> None:
    kinds = schema.kinds
    async with RawWebSocket(stand.address) as raw:
        await stand.join(raw)
        for id in range(40):
            entries = []
            for number, kind in enumerate(kinds):
                values = {spec.index: spec.type.zero for spec in kind.fields if stand.chance.random() < 0.7}
                if values:
                    at = stand.chance.choice((id, id, 2**31 + id, stand.chance.randrange(2**32)))
                    entries.append(frames.WriteEntry(at, number, kind, values))
            seen = stand.chance.choice((0, 2**32 - 1))
            if entries:
                await raw.send(frames.encode_client(frames.Write(seen, tuple(entries))))
        await stand.ends(raw, NONE)


async def inputs_of_nonsense(stand: Stand) -> None:
    async with RawWebSocket(stand.address) as raw:
        await stand.join(raw)
        head = bytes([frames.INPUTS, stand.chance.choice((0, 1, 2)), stand.chance.randrange(8)])
        for _ in range(10):
            await raw.send(head + stand.chance.randbytes(stand.chance.randrange(30)))
        await stand.ends(raw, PROTOCOL, LIMIT, NONE)


async def lies_of_what_it_holds(stand: Stand) -> None:
    chance = stand.chance
    async with RouterClient(stand.address, project=GAME, room=stand.room, schema=schema.hash) as client:
        generation = (await client.join()).generation
    ids = sorted({chance.randrange(2, 2**32) for _ in range(chance.choice((0, 3, 5_000)))} | {2, 3, 2**31})
    held = frames.Resume(
        0,
        chance.choice((generation, 1, 2**53 - 1)),
        chance.randrange(2**32),
        chance.random() < 0.3,
        tuple(ids),
    )
    async with RawWebSocket(stand.address) as raw:
        await raw.upgrade()
        await raw.send(stand.hello(), frames.encode_client(held))
        for _ in range(3):
            assert isinstance(await raw.receive(), bytes)
        await stand.ends(raw, NONE)


async def frames_out_of_turn(stand: Stand) -> None:
    """Before welcome, after leave, twice, or for what is not there."""
    hello, nothing = stand.hello(), frames.encode_client(NOTHING)
    message = frames.encode_client(frames.Message(1))
    leave = frames.encode_client(frames.Leave())
    turns: list[tuple[list[bytes], tuple[int, ...]]] = [
        ([hello, message], (PROTOCOL,)),
        ([hello, nothing, message, message], (PROTOCOL, NONE)),
        ([hello, hello], (PROTOCOL,)),
        ([hello, nothing, nothing], (PROTOCOL,)),
        ([nothing, hello], (PROTOCOL,)),
        ([leave], (PROTOCOL,)),
        ([hello, leave, message, message], (1000,)),
        ([hello, nothing, leave, stand.garbage()], (1000,)),
        ([hello, frames.encode_client(frames.Resume(1, 0, 0, False, ()))], (PROTOCOL,)),
        ([stand.hello(schema=bytes(16)), nothing], (SCHEMA,)),
        ([stand.hello(room="../../etc"), nothing], (4002, PROTOCOL)),
        ([stand.hello(project="x' or 1=1"), nothing], (4002, PROTOCOL)),
        ([stand.hello(token="a.b.c" * 1_000), nothing], (4001,)),
        ([stand.hello(type="\0"), nothing], (4015, PROTOCOL, 4002)),
        ([stand.hello(version=2), nothing], (PROTOCOL,)),
    ]
    sent, codes = stand.chance.choice(turns)
    async with RawWebSocket(stand.address) as raw:
        await raw.upgrade()
        await raw.send(*sent)
        await stand.ends(raw, *codes)


async def gone_without_a_word(stand: Stand) -> None:
    """Half-open ones, and those that are cut off in the middle of a frame."""
    async with RawWebSocket(stand.address) as raw:
        step = stand.chance.randrange(4)
        if step > 0:
            await raw.upgrade()
        if step > 1:
            await raw.send(stand.hello())
        if step > 2:
            await raw.send(frames.encode_client(NOTHING))
        await raw.write(ws_frame(b"\x05" + bytes(1_000))[: stand.chance.randrange(1, 1_000)])
        raw.abort()


async def reads_nothing(stand: Stand) -> None:
    """Asks for more than it reads, and is gone."""
    async with RawWebSocket(stand.address) as raw:
        await stand.join(raw)
        await raw.write(ws_frame(frames.encode_client(frames.Message("x" * 60_000))) * 30)
        raw.abort()


ATTACKS: list[Attack] = [
    garbage_in_the_room,
    garbage_before_hello,
    a_hello_of_garbage,
    anything_instead_of_http,
    no_websocket_at_all,
    a_byte_at_a_time,
    bursts,
    calls_of_nonsense,
    writes_to_what_others_own,
    inputs_of_nonsense,
    lies_of_what_it_holds,
    frames_out_of_turn,
    gone_without_a_word,
    reads_nothing,
]


async def too_slow_a_hello(stand: Stand) -> None:
    """A byte now and then: it is closed all the same, 10 s after it came."""
    async with RawWebSocket(stand.address) as raw:
        await raw.upgrade()
        hello = ws_frame(stand.hello())

        async def drip() -> None:
            for n in range(len(hello)):
                await raw.write(hello[n : n + 1])
                await asyncio.sleep(0.5)  # this is what a slow client does; nothing waits for it

        dripping = asyncio.create_task(drip())
        await stand.ends(raw, PROTOCOL)
        dripping.cancel()


async def play(player: Player[Board, Mine], over: asyncio.Event, chance: random.Random) -> int:
    """Do what a player does, until it is over; return how often."""
    rounds = 0
    while not over.is_set():
        rounds += 1
        pawn = own(player)
        pawn.pose, pawn.label = chance.randrange(256), f"round {rounds}"
        player.private.note = f"{rounds}"
        a = chance.randrange(1_000)
        assert await player.client.call(Add(a=a, b=1)) == a + 1
        assert await player.client.call(Echo(text="é")) == "é".encode()
        await player.ask("look")
        await player.updates(2)
    return rounds


def own(player: Player[Board, Mine]) -> Pawn:
    return next(pawn for pawn in player.client.entities.all(Pawn) if pawn.owner == player.player)


@pytest.mark.parametrize("router", [0, 1])
async def test_nobody_notices_what_one_client_sends(dev: DevServer, router: int) -> None:
    address = urlsplit(dev.websockets[router]).netloc
    chance = random.Random(SEED * 100 + router)
    processes = [psutil.Process(pid) for pid in (*dev.running("router"), *dev.room_host_pids())]
    players = [Player(dev.url, GAME, "main", schema) for _ in range(GOOD)]
    await together([player.client.ready for player in players])
    generation = players[0].client.generation
    before = {process.pid: process.memory_info().rss for process in processes}
    over = asyncio.Event()
    playing = [asyncio.create_task(play(player, over, chance)) for player in players]
    slow = asyncio.create_task(too_slow_a_hello(Stand(address, chance)))
    try:
        for n in range(ROUNDS):
            order = chance.sample(ATTACKS, len(ATTACKS))
            for at in range(0, len(order), 3):
                await together([attack(Stand(address, chance)) for attack in order[at : at + 3]])
            assert not [task for task in playing if task.done()], n
        await slow
    finally:
        over.set()
    assert min(await together(playing)) > 5
    await equal_in_the_end(players)
    for player in players:
        assert player.story().count("disconnected") == 0
        assert (player.sockets, player.client.generation) == (1, generation)
        await player.client.leave()
    for process in processes:
        assert process.is_running()
        assert process.memory_info().rss - before[process.pid] < GROWTH
    for service in ("router-1", "router-2", "roomhost"):
        assert troubles(dev, service) == []


async def equal_in_the_end(players: list[Player[Board, Mine]]) -> None:
    """Every player holds the room's own values, once nobody writes any more."""
    [first, *_] = players

    async def same() -> None:
        while True:
            told = (await first.ask("look"))["pawns"]
            held = [
                {
                    str(pawn.id): [pawn.owner, pawn.pose, pawn.label]
                    for pawn in player.client.entities.all(Pawn)
                }
                for player in players
            ]
            if all(each == told for each in held):
                assert all(pawn[1] != 255 for pawn in told.values())
                return
            await first.updates(1)

    async with asyncio.timeout(20):
        await same()
    presses = first.state.messages
    first.send({"type": "last"})
    await everyone(players, lambda player: player.state.messages > presses)


def troubles(dev: DevServer, service: str) -> list[dict[str, Any]]:
    """Lines of a log that tell of a fault of ours: the room's code raises nothing."""
    said = dev.service_log(service).splitlines()
    lines = [json.loads(line) for line in said if line.startswith("{")]
    assert lines, f"the log of {service} is empty"
    assert [line for line in said if not line.startswith("{")] == []
    faults = ("error", "critical")
    return [line for line in lines if line["level"] in faults or "traceback" in line or "exception" in line]
