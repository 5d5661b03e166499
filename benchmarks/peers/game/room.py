"""The rooms: one large one and many small ones in which everybody sees everybody, and one with interest."""

import math
import random
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from playhall.room import Connection, Message, Room, Wake, grid

from . import shared, shared_q16
from .world import NPC_STEP, NPCS, PLAYER_STEP, RADIUS, SIZE, TICK_RATE


class Broadcast(Room):
    schema = shared.schema
    tick_rate = TICK_RATE
    max_players = 1000
    player_kind: ClassVar[Any] = shared.Player

    def on_join(self, conn: Connection) -> None:
        player = self.player_kind(x=random.random() * SIZE, y=random.random() * SIZE)
        self.entities.add(player, owner=conn.player, once=True)

    def on_message(self, conn: Connection, message: Message) -> None:
        match message:
            case {"type": "move", "dx": int() | float() as dx, "dy": int() | float() as dy}:
                assert isinstance(message, dict)  # mypy does not see it
                player = self.entities.first(self.player_kind, owner=conn.player)
                if player is not None:
                    player.dx, player.dy = dx, dy
                    player.seq = message.get("seq", player.seq)

    def on_tick(self, dt: float) -> None:
        for player in self.entities.all(self.player_kind):
            player.x = (player.x + player.dx * PLAYER_STEP) % SIZE
            player.y = (player.y + player.dy * PLAYER_STEP) % SIZE

    def on_player_leave(self, player: str) -> None:
        for each in self.entities.all(self.player_kind, owner=player):
            self.entities.delete(each)


class Small(Broadcast):
    max_players = 4


class Interest(Broadcast):
    interest = grid(cell_size=100, range=RADIUS, around=shared.Player)
    npc_kind: ClassVar[Any] = shared.Npc
    steps: tuple[NDArray[np.float32], NDArray[np.float32]]

    def on_create(self) -> None:
        for _ in range(NPCS):
            self.entities.add(self.npc_kind(x=random.random() * SIZE, y=random.random() * SIZE))
        self.head_off()

    def on_wake(self, wake: Wake) -> None:
        self.head_off()

    def head_off(self) -> None:
        """Every NPC goes its own way. Ways are not saved: after a crash they are others."""
        ways = np.random.uniform(0, 2 * math.pi, len(self.entities.columns(self.npc_kind)))
        self.steps = (
            (np.cos(ways) * NPC_STEP).astype(np.float32),
            (np.sin(ways) * NPC_STEP).astype(np.float32),
        )

    def on_tick(self, dt: float) -> None:
        super().on_tick(dt)
        npcs = self.entities.columns(self.npc_kind)
        npcs.x = (npcs.x + self.steps[0]) % SIZE
        npcs.y = (npcs.y + self.steps[1]) % SIZE


class InterestQ16(Interest):
    schema = shared_q16.schema
    interest = grid(cell_size=100, range=RADIUS, around=shared_q16.Player)
    player_kind = shared_q16.Player
    npc_kind = shared_q16.Npc
