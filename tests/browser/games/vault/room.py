"""A room with something in every place that the inspector shows."""

import time
from typing import Any

from playhall.room import Bot, CallRejected, Connection, Message, Room

from .shared import HOSTILE, Card, Hall, Key, Open, Purse, schema


class Guard(Bot):
    steps: int = 0

    def tick(self, room: Any) -> None:
        self.steps += 1


class Vault(Room[Hall, Purse]):
    schema = schema
    bot_kinds = (Guard,)
    # How long each tick takes: a message may say so.
    drag_s = 0.0

    def on_create(self) -> None:
        for number in range(120):
            self.entities.add(Card(face=f"card {number}"))
        self.bots.add(Guard(), name="Guard")
        self.ban("mallory")
        self.log.warning("the vault is locked")

    def on_join(self, conn: Connection) -> None:
        self.presence.set(conn.player, name=HOSTILE[:64])
        self.entities.add(Key(), owner=conn.player, once=True)

    def on_tick(self, dt: float) -> None:
        time.sleep(self.drag_s)

    def on_message(self, conn: Connection, message: Message) -> None:
        if isinstance(message, dict) and "drag_s" in message:
            self.drag_s = float(str(message["drag_s"]))
        self.broadcast({"heard": message})

    @Open.handler
    def open(self, conn: Connection, ask: Open) -> int:
        if ask.door > 3:
            raise CallRejected("there is no such door")
        self.state.opened += 1
        return self.state.opened
