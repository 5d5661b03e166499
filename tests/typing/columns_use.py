"""What room authors write with columns, and what both checkers must infer of it."""

# pyright: strict
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from playhall.room import Columns, Entity, Room, Schema, f32, u8


class Npc(Entity, max=10_000):
    x: f32
    vx: f32 = 0
    hp: u8 = 100


def drift(npcs: Columns, dt: float) -> None:
    npcs.x += npcs.vx * dt


class Swarm(Room):
    schema = Schema(entities=[Npc])

    def on_tick(self, dt: float) -> None:
        npcs = self.entities.columns(Npc)
        drift(npcs, dt)
        outside = npcs.alive & ((npcs.x < 0) | (npcs.x > 100))
        npcs.vx[outside] *= -1
        npcs.x = np.clip(npcs.x, 0, 100)
        npcs.hp = 100
        npcs.vx = [0.5] * len(npcs)
        for id in npcs.id[npcs.alive & (npcs.hp == 0)].tolist():
            npc = self.entities.get(Npc, id)
            if npc:
                self.entities.delete(npc)
        assert_type(len(npcs), int)
        assert_type(npcs, Columns)
        assert_type(npcs.x, NDArray[Any])
        assert_type(npcs.id, NDArray[np.int64])
        assert_type(npcs.alive, NDArray[np.bool_])
