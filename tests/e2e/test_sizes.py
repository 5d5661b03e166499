"""Values at the edges of what fits: the same after a join, a change and a wake; one byte more is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.games.sizes.shared import Edge, schema
from tests.support.dev import DevServer
from tests.support.players import Player, everyone, together

pytestmark = pytest.mark.asyncio

GAME = "sizes"

TEXT = 16_384
BLOB = 49_152
ENTITY = 61_376
# An entity of the largest size: 49,152 bytes and their length (3), a u8, null as text (5), and a text with
# its length (2) in what is left.
REST = ENTITY - (3 + BLOB) - 1 - 5 - 2

FAMILY = "👩‍👩‍👧‍👦 Zoë 🦊"


def text(character: str, times: int, end: str = "") -> dict[str, Any]:
    return {"repeat": character, "times": times, "end": end}


FIT: list[tuple[dict[str, Any], tuple[str, bytes, int, object]]] = [
    ({"text": text("x", TEXT)}, ("x" * TEXT, b"", 0, None)),
    ({"text": text("🦊", TEXT // 4)}, ("🦊" * (TEXT // 4), b"", 0, None)),
    ({"text": FAMILY, "note": {FAMILY: [FAMILY]}}, (FAMILY, b"", 0, {FAMILY: [FAMILY]})),
    *[({"text": text("y", length)}, ("y" * length, b"", 0, None)) for length in (127, 128, 255, 256)],
    ({"text": text("é", 127, "e")}, ("é" * 127 + "e", b"", 0, None)),
    ({"blob": {"ramp": BLOB}}, ("", bytes(n % 251 for n in range(BLOB)), 0, None)),
    ({"blob": {"ramp": 255}, "small": 255}, ("", bytes(n % 251 for n in range(255)), 255, None)),
    ({"note": text("n", TEXT - 2)}, ("", b"", 0, "n" * (TEXT - 2))),
    ({"blob": {"zeros": BLOB}, "text": text("z", REST)}, ("z" * REST, bytes(BLOB), 0, None)),
]

DO_NOT_FIT: list[tuple[dict[str, Any], str]] = [
    ({"text": text("x", TEXT + 1)}, "text"),
    ({"text": text("🦊", TEXT // 4, "!")}, "text"),
    ({"blob": {"zeros": BLOB + 1}}, "blob"),
    ({"small": 256}, "small"),
    ({"small": -1}, "small"),
    ({"note": text("n", TEXT - 1)}, "note"),
]
TOO_BIG = {"blob": {"zeros": BLOB}, "text": text("z", REST + 1)}


@pytest.mark.ledger("SCHM-09", "SCHM-11", "SCHM-13")
async def test_the_largest_values_are_the_same_everywhere(dev: DevServer) -> None:
    async with enter(dev, "main") as alice, enter(dev, "main") as bob:
        ids = [(await alice.ask("add", **values))["id"] for values, _ in FIT]
        expected = {id: values for id, (_, values) in zip(ids, FIT, strict=True)}
        await everyone((alice, bob), lambda player: held(player) == expected)
        async with enter(dev, "main") as late:
            assert held(late) == expected

        # Each takes over the values of another, so that all of them come as changes, too.
        for id, (values, _) in zip(ids, reversed(FIT), strict=True):
            blank = {"text": "", "blob": {"zeros": 0}, "small": 0, "note": None}
            assert await alice.ask("set", id=id, **blank) == {"answer": len(alice.answers), "id": id}
            await alice.ask("set", id=id, **values)
        expected = {id: values for id, (_, values) in zip(ids, reversed(FIT), strict=True)}
        await everyone((alice, bob), lambda player: held(player) == expected)

        for values, field in DO_NOT_FIT:
            added = await alice.ask("add", **values)
            assert (added["refused"], added["kind"], added["id"]) == (field, "edge", None), values
            for id in (0, ids[0]):
                written = await alice.ask("set", id=id, **values)
                assert (written["refused"], written["id"]) == (field, id), values
        assert (await alice.ask("add", **TOO_BIG))["kind"] == "edge"
        largest = next(id for id, values in expected.items() if values[0] == "z" * REST)
        refused = await alice.ask("set", id=largest, text=TOO_BIG["text"])
        assert (refused["refused"], refused["id"]) == ("text", largest)
        await alice.ask("set", id=0, **FIT[0][0])
        await bob.until(lambda: bob.state.text == "x" * TEXT)
        assert held(alice) == held(bob) == expected

        alice.send({"type": "hibernate"})
        await together([player.happens("closed") for player in (alice, bob)])
    async with enter(dev, "main") as again:
        assert again.named("waking")
        assert again.state.text == "x" * TEXT
        assert held(again) == expected


def enter(dev: DevServer, room: str) -> Player[Edge, None]:
    return Player(dev.url, "sizes", room, schema)


def held(player: Player[Edge, None]) -> dict[int, tuple[str, bytes, int, object]]:
    """All edges that a player sees, but the shared state."""
    return {
        edge.id: (edge.text, edge.blob, edge.small, edge.note)
        for edge in player.client.entities.all(Edge)
        if edge.id
    }
