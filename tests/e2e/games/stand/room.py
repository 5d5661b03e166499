"""A room that does what the tests tell it to, and counts its hooks."""

import os
import time

from playhall.room import Connection, Message, Room, Wake

from .shared import Board, Mine, Pawn, Press, Vault, schema


class Stand(Room[Board, Mine]):
    schema = schema
    tick_rate = 20

    def __init__(self) -> None:
        self.is_failing = False

    def on_create(self) -> None:
        self.state.creates += 1
        self.entities.add(Vault())
        self.log.info("created %s", self.id)

    def on_wake(self, wake: Wake) -> None:
        self.state.wakes += 1
        self.state.reason = wake.reason
        self.log.info("woken at tick %s", self.tick)

    def on_join(self, conn: Connection) -> None:
        if self.id == "unwelcome":
            raise PermissionError("nobody comes in here")
        self.state.joins += 1
        self.entities.add(Pawn(), owner=conn.player, once=True)

    def on_leave(self, conn: Connection) -> None:
        self.state.leaves += 1

    def on_player_leave(self, player: str) -> None:
        self.state.player_leaves += 1

    def on_hibernate(self) -> None:
        self.log.info("hibernating at tick %s", self.tick)

    def on_tick(self, dt: float) -> None:
        if self.state.beating:
            self.state.beats += 1
        if self.is_failing:
            self.state.presses = 0
            raise RuntimeError("the stand fell")

    def on_message(self, conn: Connection, message: Message) -> None:
        match message:
            case {"type": "press"}:
                self.press(conn)
            case {"type": "look", "ask": int() as ask}:
                self.send(conn, {"answer": ask, **self.seen()})
            case {"type": "spawn", "ask": int() as ask, "number": int() as number}:
                pawn = self.entities.add(Pawn(number=number))
                self.send(conn, {"answer": ask, "id": pawn.id})
            case {"type": "beat", "on": bool() as on}:
                self.state.beating = on
            case {"type": "kick", "player": str() as player}:
                self.kick(self.connections[player])
            case {"type": "hibernate"}:
                self.request_hibernate()
            case {"type": "fail"}:
                self.is_failing = True
            case {"type": "block", "seconds": int() | float() as seconds}:
                time.sleep(seconds)
            case _:
                raise ValueError(f"no such message: {message!r}")

    @Press.handler
    def press_often(self, conn: Connection, ask: Press) -> int:
        for _ in range(ask.times):
            self.press(conn)
        return self.state.presses

    def press(self, conn: Connection) -> None:
        self.state.presses += 1
        self.private(conn).presses += 1
        vault = self.entities.first(Vault)
        assert vault is not None
        vault.presses += 1

    def seen(self) -> dict[str, int | list[str]]:
        vault = self.entities.first(Vault)
        return {
            "process": os.getpid(),
            "tick": self.tick,
            "presses": self.state.presses,
            "vault": -1 if vault is None else vault.presses,
            "here": sorted(self.connections),
        }


class Pair(Stand):
    max_players = 2
