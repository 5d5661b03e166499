"""A saved file makes a new build; the room moves to it with its state, and with those of the same schema."""

from __future__ import annotations

import importlib.util
import itertools
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from playhall.client import Schema
from tests.e2e.games.stand.shared import schema
from tests.support.dev import DevServer
from tests.support.players import Player, eventually, everyone, together

pytestmark = pytest.mark.asyncio

SCHEMA_MISMATCH = 4004
ROOM_MOVED = 4008

_versions = itertools.count(1)


@pytest.mark.ledger("RECO-11", "CODE-05", "CODE-09")
async def test_a_game_is_changed_while_it_is_played(dev: DevServer) -> None:
    async with (
        Player(dev.url, "stand", "main", schema) as alice,
        Player(dev.url, "stand", "main", schema) as bob,
    ):
        token = alice.client.guest_token
        spawned = (await alice.ask("spawn", number=5))["id"]
        alice.send({"type": "press"})
        await everyone((alice, bob), lambda player: player.state.presses == 1)

        # The rules change: everyone stays, on the same socket.
        for player in (alice, bob):
            player.events.clear()
        tick = (await alice.ask("look"))["tick"]
        change(dev, "room.py", "self.state.presses += 1", "self.state.presses += 10")
        await together([player.happens("restored") for player in (alice, bob)])
        for player in (alice, bob):
            assert [event.value for event in player.named("disconnected")] == [ROOM_MOVED]
            assert player.sockets == 1
        alice.send({"type": "press"})
        await everyone((alice, bob), lambda player: player.state.presses == 11)
        board = bob.state
        assert (board.creates, board.wakes, board.player_leaves, alice.private.presses) == (1, 1, 0, 2)
        assert board.reason == "deploy"
        assert (await alice.ask("look"))["tick"] > tick
        assert (await alice.ask("look"))["vault"] == 2

        # Code that cannot be loaded is told of, by file and line; nobody is disturbed.
        for player in (alice, bob):
            player.events.clear()
        good = (dev.folder / "room.py").read_text()
        line = 1 + good[: good.index("    def press(")].count("\n")
        change(
            dev, "room.py", "    def press(self, conn: Connection)", "    def press(self, conn: Connection"
        )
        await eventually(lambda: re.search(rf"room\.py\D+{line}\b", dev.log()))
        alice.send({"type": "press"})
        await everyone((alice, bob), lambda player: player.state.presses == 21)
        assert [player.story() for player in (alice, bob)] == [[], []]
        line = 1 + good.count("\n")
        (dev.folder / "room.py").write_text(good + "raise RuntimeError('not today')\n")
        await eventually(lambda: re.search(rf"room\.py\D+{line}\b", dev.log()) and "not today" in dev.log())
        alice.send({"type": "press"})
        await everyone((alice, bob), lambda player: player.state.presses == 31)
        assert [player.story() for player in (alice, bob)] == [[], []]

        # A field and a kind are added: the old schema's clients are told so, the new one's find it all.
        (dev.folder / "room.py").write_text(good)
        change(dev, "shared.py", "    number: u32 = 0\n", "    number: u32 = 0\n    colour: u32 = 0\n")
        change(
            dev,
            "shared.py",
            "schema = ",
            "class Flag(Entity):\n    height: u32 = 0\n\n\nschema = ",
        )
        change(dev, "shared.py", "entities=[Pawn, Vault]", "entities=[Pawn, Vault, Flag]")
        await together([player.happens("closed") for player in (alice, bob)])
        assert [player.closed_with for player in (alice, bob)] == [SCHEMA_MISMATCH, SCHEMA_MISMATCH]
    shared = load(dev.folder / "shared.py")
    changed: Schema[Any, Any] = shared.schema
    async with Player(dev.url, "stand", "main", changed, token=token) as again:
        assert again.player == alice.player
        assert (again.state.presses, again.state.creates, again.private.presses) == (31, 1, 4)
        assert [(pawn.number, pawn.colour) for pawn in pawns(again, shared, spawned)] == [(5, 0)]
        assert (await again.ask("look"))["vault"] == 4

        # The new schema is played with as the old one was.
        again.events.clear()
        change(dev, "room.py", "Pawn(number=number)", "Pawn(number=number, colour=7)")
        await again.happens("restored")
        id = (await again.ask("spawn", number=6))["id"]
        await again.until(lambda: [pawn.colour for pawn in pawns(again, shared, id)] == [7])


def change(dev: DevServer, name: str, old: str, new: str) -> None:
    path = dev.folder / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def pawns(player: Player[Any, Any], shared: Any, id: int) -> list[Any]:
    """The pawn of an id, if the player sees it."""
    return [pawn for pawn in player.client.entities.all(shared.Pawn) if pawn.id == id]


def load(path: Path) -> Any:
    """The module of a file, as it is now."""
    name = f"stand_shared_{next(_versions)}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
