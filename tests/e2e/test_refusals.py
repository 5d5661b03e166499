"""What a client does wrong closes that client, with its code; the room and the others go on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from playhall.client import Entity, PlayhallError, Schema, u8
from playhall.engine import frames
from tests.e2e.games.stand.shared import Board, Mine, schema
from tests.support.dev import DevServer
from tests.support.players import Player, together
from tests.support.router_client import RouterClient

pytestmark = pytest.mark.asyncio

PROTOCOL = 4000
UNAUTHENTICATED = 4001
ROOM_NOT_FOUND = 4002
ROOM_FULL = 4003
SCHEMA_MISMATCH = 4004
LIMIT_EXCEEDED = 4005
KICKED = 4006
REPLACED = 4012
WRONG_ROOM_TYPE = 4015

MAX_FRAME = 65_600
BUCKET = 120


class Stranger(Entity):
    number: u8 = 0


@asynccontextmanager
async def undisturbed(dev: DevServer) -> AsyncIterator[Player[Board, Mine]]:
    """Two players of the main room, who must notice nothing of what is done in the block."""
    async with enter(dev) as alice, enter(dev) as bob:
        alice.send({"type": "beat", "on": True})
        await alice.ask("look")
        for player in (alice, bob):
            player.events.clear()
        generation = alice.client.generation
        yield alice
        await together([player.updates(10) for player in (alice, bob)])
        alice.send({"type": "press"})
        presses = alice.state.presses
        await together([player.until(lambda: bob.state.presses > presses) for player in (alice, bob)])
        for player in (alice, bob):
            assert player.story() == []
            assert player.sockets == 1
            assert player.client.generation == generation


@pytest.mark.ledger("SCHM-17", "CODE-05", "CODE-07", "CODE-14", "RTYPE-02", "HOOK-04", "MIG-15")
async def test_those_who_may_not_come_in_are_told_why(dev: DevServer) -> None:
    async with undisturbed(dev):
        stranger = Player(dev.url, "stand", "main", Schema(entities=[Stranger]))
        assert await refused(stranger) == SCHEMA_MISMATCH
        assert await refused(enter(dev, token="no.such.token")) == UNAUTHENTICATED
        assert await refused(enter(dev, type="pair")) == WRONG_ROOM_TYPE
        assert await refused(enter(dev, room="unwelcome")) == KICKED
        assert await refused(Player(dev.url, "nothing", "main", schema)) == ROOM_NOT_FOUND
        for router in addresses(dev):
            async with RouterClient(router, project="nothing", schema=schema.hash) as client:
                await client.greet()
                assert (await client.closed())[0] == ROOM_NOT_FOUND


@pytest.mark.ledger("RTR-08", "CODE-04", "CODE-07", "CODE-13", "RECO-07", "PRES-06")
async def test_seats_belong_to_players(dev: DevServer) -> None:
    async with undisturbed(dev), pair(dev) as one, pair(dev) as two:
        assert await refused(pair(dev)) == ROOM_FULL
        heard: list[object] = []
        one.client.presence.on_leave(heard.append)
        one.client.presence.on_join(heard.append)
        one.client.presence.on_change(lambda entry, changed: heard.append(entry))
        async with pair(dev, two.client.guest_token) as tab:
            await two.happens("closed")
            assert two.closed_with == REPLACED
            assert tab.player == two.player
            assert (await one.ask("look"))["here"] == sorted([one.player, tab.player])
            assert heard == []
            one.send({"type": "kick", "player": tab.player})
            await tab.happens("closed")
            assert tab.closed_with == KICKED
            assert (two.sockets, tab.sockets) == (1, 1)


@pytest.mark.ledger("CODE-01", "RTR-11")
@pytest.mark.parametrize("router", [0, 1])
async def test_what_is_no_frame_closes_its_connection(dev: DevServer, router: int) -> None:
    welcome = frames.encode_server(
        frames.Welcome(1, 1, 1, 0, False, False, 20, "alice", "main", "default", "")
    )
    async with undisturbed(dev):
        for garbage in (b"\xff", b"\x05", b"\x08\x01", b"\x0f\x01\x02", welcome, b""):
            async with RouterClient(addresses(dev)[router], project="stand", schema=schema.hash) as client:
                await client.join()
                await client.send(garbage)
                assert (await client.closed())[0] == PROTOCOL, garbage
        async with RouterClient(addresses(dev)[router], project="stand", schema=schema.hash) as client:
            await client.join()
            await client.socket.send_str("hello?")
            assert (await client.closed())[0] == PROTOCOL
        async with RouterClient(addresses(dev)[router], project="stand", version=2) as client:
            await client.greet()
            assert (await client.closed())[0] == PROTOCOL


@pytest.mark.ledger("MSG-02", "CODE-06")
async def test_too_much_closes_its_connection(dev: DevServer) -> None:
    async with undisturbed(dev):
        for router in addresses(dev):
            async with RouterClient(router, project="stand", schema=schema.hash) as client:
                await client.join()
                await client.send(bytes([frames.MESSAGE]) + bytes(MAX_FRAME))
                assert (await client.closed())[0] == LIMIT_EXCEEDED
        async with enter(dev, room="noisy") as noisy:
            for _ in range(BUCKET):
                noisy.send({"type": "press"})
            await noisy.until(lambda: noisy.state.presses == BUCKET)
            assert noisy.named("disconnected") == []
            for _ in range(BUCKET):
                noisy.send({"type": "press"})
            await noisy.happens("restored")
            assert [event.value for event in noisy.named("disconnected")] == [LIMIT_EXCEEDED]
            assert noisy.sockets > 1
            assert noisy.state.presses < 2 * BUCKET


def enter(
    dev: DevServer, *, room: str = "main", type: str | None = None, token: str | None = None
) -> Player[Board, Mine]:
    return Player(dev.url, "stand", room, schema, type=type, token=token)


def pair(dev: DevServer, token: str | None = None) -> Player[Board, Mine]:
    return enter(dev, room="two", type="pair", token=token)


async def refused(player: Player[Any, Any]) -> int:
    """The code that a player is refused with."""
    with pytest.raises(PlayhallError) as error:
        await player.client.ready
    return int(error.value.code)


def addresses(dev: DevServer) -> list[str]:
    return [urlsplit(url).netloc for url in dev.websockets]
