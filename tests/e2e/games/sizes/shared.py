"""Fields at the edges of what fits."""

from playhall.room import Entity, Json, Schema, u8


class Edge(Entity):
    text: str = ""
    blob: bytes = b""
    small: u8 = 0
    note: Json[object] = None


schema = Schema(state=Edge, entities=[Edge])
