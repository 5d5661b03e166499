"""Field log F1, F2 and F5 on real sockets: leaves during joins, the last seat, and a dead link."""

from __future__ import annotations

import asyncio
import random
import secrets
import time

import pytest

from playhall.engine import frames
from tests.e2e.games.fieldlog.shared import Pawn, schema
from tests.support.dev import DevServer
from tests.support.players import Player, together
from tests.support.raw_socket import RawSocket

pytestmark = pytest.mark.asyncio

GAME = "fieldlog"
GRACE_S = 10.0
FULL = 4003
KICKED = 4006
REPLACED = 4012
SEATS = 8
# The log says 1 s. The joins of a round take 0.2 s or 0.4 s of that; the rest is the machine's.
ROUND_S = 1.0


@pytest.mark.timeout(120)
async def test_f01_leaves_while_joins_wait(dev: DevServer) -> None:
    """A hundred joins that take 500 ms, cut at any moment by a close or a TCP reset: nobody is left over."""
    rng = random.Random(1)
    async with Player(dev.url, GAME, "hasty", schema, type="slow") as watcher:
        sockets = [await RawSocket.open(dev.websockets[n % len(dev.websockets)]) for n in range(100)]

        async def come_and_go(number: int, raw: RawSocket) -> None:
            raw.greet(GAME, "hasty", schema, type="slow")
            await asyncio.sleep(rng.uniform(0, 0.8))
            if number % 2:
                raw.reset()
            else:
                raw.send(frames.Leave())
                raw.close()
            await raw.until(lambda raw: raw.gone)

        await together([come_and_go(number, raw) for number, raw in enumerate(sockets)])
        await watcher.until(
            lambda: watcher.state.tried >= 1 + sum(raw.has(frames.Welcome) for raw in sockets)
        )
        left = time.monotonic()

        # Every join that took effect has one leave.
        def is_even() -> bool:
            return watcher.state.joins - watcher.state.leaves == 1

        await watcher.until(lambda: is_even() and len(watcher.client.presence) == 1, GRACE_S + 5)
        assert time.monotonic() - left < GRACE_S + 2
        look = await watcher.ask("look")
        assert (look["here"], look["inside"]) == ([watcher.player], 1)
        assert watcher.state.strays == 0, "a leave without a join"
        assert [pawn.owner for pawn in watcher.client.entities.all(Pawn)] == [watcher.player]
        refused = [raw for raw in sockets if raw.closed_with == KICKED]
        assert not any(raw.has(frames.UpdatePart) for raw in refused), "a rejected join received state"
        assert watcher.state.tried >= 20
        assert watcher.story() in ([], ["waking"])


@pytest.mark.timeout(120)
async def test_f02_the_last_seat(dev: DevServer) -> None:
    """Two hundred at once for eight seats; then fifty rounds in which four leave and four come."""
    sockets = [await RawSocket.open(dev.websockets[n % len(dev.websockets)]) for n in range(200)]
    for raw in sockets:
        raw.greet(GAME, "eight", schema, type="eight")
    await together([raw.until(settled) for raw in sockets])
    inside = [raw for raw in sockets if raw.has(frames.UpdatePart)]
    refused = [raw for raw in sockets if raw.gone]
    assert (len(inside), len(refused)) == (SEATS, 200 - SEATS)
    assert {raw.closed_with for raw in refused} == {FULL}
    assert not any(raw.has(frames.Welcome) for raw in refused)

    for number in range(50):
        for raw in inside[:4]:
            raw.send(frames.Leave())
            raw.close()
        came = [await RawSocket.open(dev.websockets[number % len(dev.websockets)]) for _ in range(4)]
        for raw in came:
            raw.greet(GAME, "eight", schema, type="eight")
        began = time.monotonic()
        await together([raw.until(settled) for raw in came])
        # The same instant: a leave may come behind a join. Those that were too early come again.
        while any(raw.gone for raw in came):
            assert {raw.closed_with for raw in came if raw.gone} == {FULL}
            came = [raw for raw in came if not raw.gone]
            again = [await RawSocket.open(dev.websockets[0]) for _ in range(4 - len(came))]
            for raw in again:
                raw.greet(GAME, "eight", schema, type="eight")
            await together([raw.until(settled) for raw in again])
            came += again
        # All eight again, and every seat was free as soon as who had it was gone.
        assert time.monotonic() - began < ROUND_S
        inside = inside[4:] + came
        assert await looked(inside[0]) == {"here": SEATS, "inside": SEATS, "most": SEATS}

    # The room is full: who was never in cannot come by way of resuming either.
    stranger = await RawSocket.open(dev.websockets[0])
    welcome = next(frame for frame in inside[0].received if isinstance(frame, frames.Welcome))
    stranger.greet(GAME, "eight", schema, type="eight", attempt=3)
    assert await stranger.closed() == FULL
    resuming = await RawSocket.open(dev.websockets[0])
    resuming.send_hello(GAME, "eight", schema, type="eight", attempt=1)
    resuming.send(frames.Resume(0, welcome.generation, welcome.version, full=False, held=(2, 3)))
    assert await resuming.closed() == FULL
    assert (await looked(inside[0]))["here"] == SEATS
    for raw in inside:
        raw.close()


@pytest.mark.timeout(120)
async def test_f05_back_beside_ones_own_corpse(dev: DevServer) -> None:
    """The old link is dead and nobody knows; the same client comes from another port, with its session."""
    async with Player(dev.url, GAME, "corpse", schema) as watcher:
        session = secrets.token_bytes(16)
        old = await RawSocket.open(dev.websockets[0])
        old.greet(GAME, "corpse", schema, session=session)
        await old.until(settled)
        welcome = next(frame for frame in old.received if isinstance(frame, frames.Welcome))
        await watcher.until(lambda: welcome.player in watcher.client.presence)
        counts: set[tuple[int, int]] = set()

        def sample(tick: int) -> None:
            members = sum(player == welcome.player for player in watcher.client.presence)
            counts.add((members, len(watcher.client.entities.all(Pawn, owner=welcome.player))))

        sample(0)
        watcher.client.on_tick(sample)
        [pawn] = watcher.client.entities.all(Pawn, owner=welcome.player)
        await watcher.updates(60)  # three seconds in which nothing comes from the old link
        new = await RawSocket.open(dev.websockets[-1])
        new.send_hello(GAME, "corpse", schema, session=session, attempt=1, token=welcome.token)
        new.send(frames.Resume(0, welcome.generation, welcome.version, full=False, held=()))
        await new.until(settled)
        again = next(frame for frame in new.received if isinstance(frame, frames.Welcome))
        assert (again.player, again.generation, again.resumed) == (welcome.player, welcome.generation, True)
        # Late packets of the old link change nothing, and it is told why it is over.
        old.send(frames.Message("late"))
        assert await old.closed() == REPLACED
        await watcher.updates(20)
        assert counts == {(1, 1)}
        assert watcher.client.entities.get(pawn.id) is pawn
        look = await watcher.ask("look")
        assert sorted(look["here"]) == sorted([watcher.player, welcome.player])
        assert not any(isinstance(frame, frames.Message) for frame in new.received), (
            "a notice of a second login"
        )
        # A clean leave is a leave at once: its seat is free, though the entry shows for its grace.
        new.send(frames.Leave())
        new.close()
        await watcher.until(lambda: not watcher.client.presence[welcome.player].connected, timeout=5)
        assert (await watcher.ask("look"))["here"] == [watcher.player]


def settled(raw: RawSocket) -> bool:
    return raw.gone or raw.has(frames.UpdatePart)


async def looked(raw: RawSocket) -> dict[str, int]:
    """What the room says is in it: a look in the same room by one that is in."""
    asked = sum(isinstance(frame, frames.Message) for frame in raw.received)
    raw.send(frames.Message({"type": "look", "ask": asked}))
    await raw.until(lambda raw: sum(isinstance(f, frames.Message) for f in raw.received) > asked)
    [*_, answer] = [frame for frame in raw.received if isinstance(frame, frames.Message)]
    content = answer.content
    return {"here": len(content["here"]), "inside": content["inside"], "most": content["most"]}
