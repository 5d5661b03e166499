"""Load on all of Playhall: 200 clients in one room, and 100 rooms of 4, 20 ticks and messages a second.

    .venv/bin/python benchmarks/load.py [SECONDS]

Prints JSON lines: how late ticks start (p99 at most 50 ms), how the memory of each server process grows
between second 280 and the end (at most 5 %), and how many clients hold another state than their room
at the end.
A few clients decode live with the real client; the rest record what they get, which is decoded after the run,
so that this process does not take the CPU that it measures. Exits 1 where a limit is passed.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import picows
import psutil
import uvloop

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from load_game.shared import Mover, schema  # noqa: E402

from playhall.client import RoomClient, connect  # noqa: E402
from playhall.engine import frames  # noqa: E402
from playhall.engine.frametypes import Hello, Message, Ping, Reset  # noqa: E402
from playhall.engine.payloads import inflate  # noqa: E402
from playhall.engine.updates import Change, Correct, Enter, Leave, Operation, decode_part  # noqa: E402
from playhall.engine.wire import Reader  # noqa: E402

LIVE_CLIENTS = 5
RATE_HZ = 20
SETTLE_S = 3.0
LATE_MS = 50.0
GROWTH = 0.05
# By then all that is kept is full: the inspector's minute of times and its rings, and the 16 MB page cache of
# the state store.
FILLED_S = 280.0
SECONDS = 330.0
PROJECT = "load"


@dataclass
class Server:
    """`playhall dev` with the load game."""

    process: subprocess.Popen[bytes]
    url: str
    websockets: list[str]
    metrics: str

    def children(self) -> dict[str, psutil.Process]:
        """Its processes by what they are."""
        found = {}
        for child in psutil.Process(self.process.pid).children(recursive=True):
            command = " ".join(child.cmdline())
            name = re.search(r"playhall_\w+(\.\w+)?|valkey-server", command)
            if name:
                found[f"{name[0]}:{child.pid}"] = child
        return found

    def ticks(self) -> tuple[int, int, int]:
        """How many ticks started at most 50 ms late so far, how many started, and how many were given up."""
        text = urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=5).read().decode()
        name = "playhall_roomhost_tick_late_seconds"
        total = sum(map(float, re.findall(rf"^{name}_count\S* (\S+)", text, re.M)))
        bucket = rf'^{name}_bucket\{{[^}}]*le="0.05"[^}}]*\}} (\S+)'
        within = sum(map(float, re.findall(bucket, text, re.M)))
        skipped = sum(map(float, re.findall(r"^playhall_roomhost_ticks_skipped_total\S* (\S+)", text, re.M)))
        return int(within), int(total), int(skipped)


@contextmanager
def server() -> Iterator[Server]:
    """Run it from a fresh copy of the game; end it after."""
    with tempfile.TemporaryDirectory(prefix="playhall-bench-") as folder:
        game = Path(folder) / "load_game"
        shutil.copytree(HERE / "load_game", game, ignore=shutil.ignore_patterns(".playhall", "__pycache__"))
        metrics = f"127.0.0.1:{20_000 + os.getpid() % 20_000}"
        reader, writer = os.pipe()
        env = {**os.environ, "PLAYHALL_READY_FD": str(writer), "PLAYHALL_ROOMHOST_METRICS_ADDRESS": metrics}
        command = [str(Path(sys.executable).with_name("playhall")), "dev", str(game), "--port", "0"]
        process = subprocess.Popen(command, env=env, pass_fds=(writer,), stdout=subprocess.DEVNULL)
        os.close(writer)
        try:
            with os.fdopen(reader, "rb") as ready:
                line = ready.readline()
            if not line:
                raise SystemExit("playhall dev did not start; run it by hand to see why")
            told = json.loads(line)
            yield Server(process, told["url"], told["websockets"], metrics)
        finally:
            process.terminate()
            process.wait(60)


@dataclass
class Recorder(picows.WSListener):
    """A client that keeps what it gets, undecoded."""

    room: str
    transport: Any = None
    joined: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    got: list[bytes] = field(default_factory=list)
    code: int | None = None

    def __post_init__(self) -> None:
        super().__init__()

    def on_ws_connected(self, transport: picows.WSTransport) -> None:
        self.transport = transport
        hello = Hello(1, PROJECT, self.room, "", "", schema.hash, secrets.token_bytes(16), 0, "load/1")
        self.send(frames.encode_client(hello))
        self.send(frames.encode_client(frames.resume_of(0, 0, 0, ())))

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        if frame.msg_type == picows.WSMsgType.CLOSE:
            self.code = frame.get_close_code().value
            transport.disconnect()
            return
        data = frame.get_payload_as_bytes()
        self.got.append(data)
        if data[0] == 4:
            self.joined.set()

    def on_ws_disconnected(self, transport: picows.WSTransport) -> None:
        self.closed.set()
        self.joined.set()

    def send(self, data: bytes) -> None:
        self.transport.send(picows.WSMsgType.BINARY, data)


def state_of(recorder: Recorder, cache: dict[bytes, list[Operation]]) -> dict[str, list[float]]:
    """Decode all it got: movers by id. Bodies that many clients got are decoded once."""
    held: dict[int, int] = {}
    movers: dict[int, list[float]] = {}
    for data in recorder.got:
        if data[0] != 4:
            frame = frames.decode_server(data)
            if isinstance(frame, Reset):
                raise AssertionError("the room was reset under load")
            continue
        source = Reader(data)
        source.u8()
        flags, _, _ = source.u8(), source.varint32(), source.varint53()
        body = source.rest()
        if flags & 2:
            body = inflate(body, 61_440)
        if flags & 4:
            held.clear()
            movers.clear()
        operations = cache.get(body)
        if operations is None:
            operations = decode_part(body, schema.kinds, held)
            if not any(isinstance(o, Enter | Leave) for o in operations):
                cache[body] = operations
        for operation in operations:
            match operation:
                case Change(id, values) | Correct(id, values):
                    mover = movers.get(id)
                    if mover is not None:
                        for index, value in values.items():
                            mover[index] = value
                case Enter(id, number, entered):
                    held[id] = number
                    if number == 0:
                        movers[id] = list(entered)
                case Leave(id):
                    held.pop(id, None)
                    movers.pop(id, None)
    return {str(id): xy for id, xy in movers.items()}


async def drive(recorders: list[Recorder], clients: list[RoomClient[Any, Any]], seconds: float) -> None:
    """Everybody sends at the rate, spread over the interval."""
    everybody: list[Any] = [*recorders, *clients]
    loop = asyncio.get_running_loop()
    begun, sent = loop.time(), 0
    total = int(seconds * RATE_HZ * len(everybody))
    last_ping = begun
    while sent < total:
        now = loop.time()
        due = min(total, int((now - begun) * RATE_HZ * len(everybody)))
        for number in range(sent, due):
            one = everybody[number % len(everybody)]
            xy = {"x": random.random() * 100, "y": random.random() * 100}
            if isinstance(one, Recorder):
                one.send(frames.encode_client(Message(xy, None)))
            else:
                one.send(xy)
        sent = due
        if now - last_ping > 2:
            last_ping = now
            for recorder in recorders:
                recorder.send(frames.encode_client(Ping(1)))
        await asyncio.sleep(0.005)


async def scenario(name: str, rooms: int, players: int, seconds: float) -> bool:
    """One run; prints its lines. Whether every limit held."""
    with server() as served:
        recorders: list[Recorder] = []
        clients: list[RoomClient[Any, Any]] = []
        for room in range(rooms):
            for player in range(players):
                live = len(clients) < LIVE_CLIENTS and player == (0 if rooms > 1 else len(clients))
                if live:
                    clients.append(await connect(served.url, project=PROJECT, room=f"r{room}", schema=schema))
                    continue
                recorder = Recorder(f"r{room}")
                address = served.websockets[(room + player) % len(served.websockets)]
                await picows.ws_connect(lambda r=recorder: r, address)
                recorders.append(recorder)
        async with asyncio.timeout(60):
            await asyncio.gather(*(r.joined.wait() for r in recorders))
        early: dict[str, int] = {}

        async def sample() -> None:
            await asyncio.sleep(FILLED_S if seconds > FILLED_S else seconds / 2)
            early.update({n: p.memory_info().rss for n, p in served.children().items()})

        sampling = asyncio.create_task(sample())
        ticks_before = served.ticks()
        await drive(recorders, clients, seconds)
        await sampling
        final = {n: p.memory_info().rss for n, p in served.children().items()}
        within, ticks, skipped = (
            now - before for now, before in zip(served.ticks(), ticks_before, strict=True)
        )
        share = within / (ticks + skipped)
        dumps = await dump_rooms(recorders, clients, rooms)
        wrong = count_wrong(recorders, clients, dumps)
    grown = {n: final[n] / rss - 1 for n, rss in early.items() if n in final}
    worst = max(grown, key=lambda n: grown[n])
    lost = sum(1 for r in recorders if r.code is not None)
    results: list[dict[str, Any]] = [
        {"metric": f"{name}_ticks_within_50ms", "value": round(share, 5), "at_least": 0.99,
         "ticks": ticks, "skipped": skipped},
        {"metric": f"{name}_rss_growth", "value": round(grown[worst], 4), "at_most": GROWTH,
         "worst": worst, "rss_mb": {n: round(v / 1e6) for n, v in final.items()}},
        {"metric": f"{name}_clients_unequal", "value": wrong, "at_most": 0,
         "clients": len(recorders) + len(clients)},
        {"metric": f"{name}_clients_lost", "value": lost, "at_most": 0},
    ]  # fmt: skip
    for result in results:
        print(json.dumps(result), flush=True)
    return share >= 0.99 and grown[worst] <= GROWTH and wrong == 0 and lost == 0


async def dump_rooms(
    recorders: list[Recorder], clients: list[RoomClient[Any, Any]], rooms: int
) -> dict[str, dict[str, list[float]]]:
    """Wait until nothing moves, then ask each room for all it has."""
    await asyncio.sleep(SETTLE_S)
    askers = {r.room: r for r in reversed(recorders)}
    for recorder in askers.values():
        recorder.send(frames.encode_client(Message("dump", None)))
    await asyncio.sleep(SETTLE_S)
    dumps = {}
    for room, recorder in askers.items():
        found = [frames.decode_server(d) for d in recorder.got if d[0] == 5]
        last = found[-1] if found else None
        assert isinstance(last, Message), f"room {room} did not answer"
        dumps[room] = last.content["movers"]
    assert len(dumps) == rooms
    return dumps


def count_wrong(
    recorders: list[Recorder], clients: list[RoomClient[Any, Any]], dumps: dict[str, dict[str, list[float]]]
) -> int:
    """How many hold something else than their room."""
    cache: dict[bytes, list[Operation]] = {}
    wrong = sum(1 for r in recorders if state_of(r, cache) != dumps[r.room])
    for client in clients:
        held = {str(m.id): [m.x, m.y] for m in client.entities.all(Mover)}
        wrong += held != dumps[client.room]
    return wrong


async def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    one = await scenario("load_200_in_one_room", 1, 200, seconds)
    many = await scenario("load_100_rooms_of_4", 100, 4, seconds)
    return 0 if one and many else 1


if __name__ == "__main__":
    sys.exit(uvloop.run(main()))
