"""A client that reads 10 KB a second of a busy room for a minute: it stays, and ends equal to the room."""

from __future__ import annotations

import asyncio
import time

import psutil
import pytest

from tests.e2e.games.fieldlog.shared import Blob, Board, schema
from tests.support.dev import DevServer
from tests.support.players import Player
from tests.support.slow_line import SlowLine

pytestmark = pytest.mark.asyncio

GAME = "fieldlog"
RATE = 10_000
MINUTE_S = 60.0
MEBIBYTE = 1 << 20
# The room has 240 KB, and makes 80 KB a second: what it would queue in a minute is 5 MB.
MOST_GROWTH = 4 * MEBIBYTE
LEEWAY = 16 * 1024


@pytest.mark.timeout(180)
async def test_a_slow_reader_stays_and_ends_equal_to_the_room(dev: DevServer) -> None:
    async with Player(dev.url, GAME, "busy", schema) as normal:
        await normal.updates(20)
        hosts = [psutil.Process(pid) for pid in dev.room_host_pids()]
        before = sum(host.memory_info().rss for host in hosts)
        async with SlowLine(dev.websockets[0], GAME, RATE) as line:
            slow = Player(line.origin, GAME, "busy", schema)
            began, most = time.monotonic(), 0
            gaps, merged = Gaps(normal), Merged(slow)
            joining = asyncio.ensure_future(slow.client.ready)
            while time.monotonic() - began < MINUTE_S:
                await normal.updates(20)
                most = max(most, sum(host.memory_info().rss for host in hosts))
            assert joining.done()
            assert slow.sockets == 1
            assert slow.story() == []
            assert line.carried < 1.1 * RATE * (time.monotonic() - began) + LEEWAY
            assert most - before < MOST_GROWTH, f"{(most - before) / MEBIBYTE:.1f} MiB"
            assert gaps.longest < 1.0, "the others notice nothing"
            # It is told of many ticks in one update.
            assert 1 < merged.updates < merged.ticks / 5
            assert normal.state.beats > slow.state.beats

            line.rate = None
            normal.send("rest")
            await slow.until(lambda: slow.state.strays == 1 and held(slow) == held(normal))
            assert (slow.sockets, slow.story()) == (1, [])
            await slow.client.leave()
        assert normal.story() in ([], ["waking"])
        assert normal.sockets == 1


class Gaps:
    """The longest time between two updates of a player."""

    def __init__(self, player: Player[Board, None]) -> None:
        self.longest = 0.0
        self._last = time.monotonic()
        player.client.on_tick(self._updated)

    def _updated(self, tick: int) -> None:
        now = time.monotonic()
        self.longest = max(self.longest, now - self._last)
        self._last = now


class Merged:
    """How many updates a player got, and how many ticks they were of."""

    def __init__(self, player: Player[Board, None]) -> None:
        self.updates = self._first = self._last = 0
        player.client.on_tick(self._updated)

    def _updated(self, tick: int) -> None:
        self.updates += 1
        self._first = self._first or tick
        self._last = tick

    @property
    def ticks(self) -> int:
        return self._last - self._first


def held(player: Player[Board, None]) -> dict[int, tuple[int, bytes]]:
    return {blob.id: (blob.beats, blob.data) for blob in player.client.entities.all(Blob)}
