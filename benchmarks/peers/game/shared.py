"""What is in the rooms, with full floats. Owner and id come with every entity."""

from playhall.room import Entity, Schema, f32, local, u8, u16


class Player(Entity):
    x: f32
    y: f32
    hp: u8 = 100
    seq: u16 = 0
    dx: float = local(0.7)
    dy: float = local(0.7)


class Npc(Entity):
    x: f32
    y: f32
    hp: u8 = 100
    seq: u16 = 0


schema = Schema(entities=[Player, Npc])
