"""What room authors write with histories, and what both checkers must infer of it."""

# pyright: strict
from typing import Any, assert_type

from numpy.typing import NDArray

from playhall.room import Connection, Entity, History, Hit, Message, Past, PastColumns, Room, Schema, f32, u8


class Fighter(Entity):
    x: f32 = 0
    y: f32 = 0
    hp: u8 = 100


class Ball(Entity):
    x: f32 = 0
    y: f32 = 0
    z: f32 = 0


poses = History(Fighter, "x", "y")
balls = History(Ball)

assert_type(poses, History[Fighter])
assert_type(poses.kind, type[Fighter])
assert_type(poses.fields, tuple[str, ...])


def hurt(hit: Hit[Fighter], room: Room) -> None:
    target = room.entities.get(Fighter, hit.id)
    if target:
        target.hp = max(0, target.hp - int(25 - hit.distance))


class Arena(Room):
    schema = Schema(entities=[Fighter, Ball])
    history = (poses, balls)

    def on_message(self, conn: Connection, message: Message) -> None:
        past = self.rewind(poses, self.tick - 2.5)
        assert_type(past, Past[Fighter])
        assert_type(past.tick, float)
        assert_type(past[2], Fighter)
        assert_type(past.get(2), Fighter | None)
        for id, pose in past.items():
            assert_type(id, int)
            assert_type(pose.x, float)
        hit = past.ray((0, 0), (1, 0), reach=40, radius=0.5, skip={2})
        assert_type(hit, Hit[Fighter] | None)
        if hit:
            assert_type(hit.pose, Fighter)
            hurt(hit, self)
        for pose, id, distance in past.near((0, 0), 5, skip=[2]):
            assert_type((pose, id, distance), tuple[Fighter, int, float])
        assert_type(past.columns, PastColumns)
        assert_type(past.columns.x, NDArray[Any])
        assert_type(self.rewind(balls, self.tick).ray((0, 0, 0), [0, 0, 1]), Hit[Ball] | None)
