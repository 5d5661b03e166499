"""Presence as a real client has it, in a room with a bot."""

from __future__ import annotations

from typing import Any

import pytest

from playhall.client import PresenceEntry
from playhall.room import Bot, Connection, Message, Room
from playhall.testing import RoomHost


class Host(Bot):
    pass


class Lobby(Room):
    bot_kinds = (Host,)

    def on_create(self) -> None:
        self.bots.add(Host(), name="Host", status="welcome")

    def on_message(self, conn: Connection, message: Message) -> None:
        for bot in self.bots:
            self.presence.set(bot.player, status=message if isinstance(message, str) else None)


@pytest.mark.ledger("PRES-03", "PRES-17")
async def test_a_client_hears_of_everyone_and_shows_itself(room_host: RoomHost) -> None:
    t = room_host.room(Lobby)
    alice = await t.connect("alice", meta={"name": "Alice"})
    heard: list[Any] = []
    alice.presence.on_join(lambda entry: heard.append(("join", entry.player)))
    alice.presence.on_change(lambda entry, changed: heard.append((entry.player, *sorted(changed))))
    alice.presence.on_leave(lambda entry: heard.append(("leave", entry.player)))
    assert list(alice.presence) == ["bot:1", "alice"]
    assert alice.presence["bot:1"] == PresenceEntry("bot:1", "Host", "welcome", True)
    assert alice.presence.get("bob") is None

    bob = await t.connect("bob")
    await t.tick()
    assert bob.presence["alice"].status is None
    bob.presence.set_status({"ready": True})
    assert bob.presence["bob"].status == {"ready": True}  # to itself at once
    await t.tick(2)
    assert t.room.presence["bob"].status == alice.presence["bob"].status == {"ready": True}
    alice.send("go")
    await t.tick()
    assert alice.presence["bot:1"].status == "go"
    with pytest.raises(ValueError, match="1024"):
        bob.presence.set_status("x" * 1_023)
    await bob.leave()
    await t.advance(11)
    assert heard == [
        ("join", "bob"), ("bob", "status"), ("bot:1", "status"), ("bob", "connected"), ("leave", "bob"),
    ]  # fmt: skip
    # It is saved with a bot, and not with a person.
    await t.hibernate()
    alice = await t.connect("alice")
    assert alice.presence["bot:1"].status == "go"


async def test_a_client_cannot_be_a_bot(room_host: RoomHost) -> None:
    t = room_host.room(Lobby)
    with pytest.raises(ValueError, match="bot:1 is a bot's id, and no token can name such a player"):
        await t.connect("bot:1")
