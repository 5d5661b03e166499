"""Mistakes with histories that both checkers must report: an ignore that hides nothing is an error itself."""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
from playhall.room import Connection, Entity, History, Past, Room, Schema, f32


class Fighter(Entity):
    x: f32 = 0
    y: f32 = 0


class Ball(Entity):
    x: f32 = 0
    y: f32 = 0


poses = History(Fighter, "x", "y")
History("fighter")  # type: ignore[arg-type]  # pyright: ignore
History(Connection)  # type: ignore[type-var]  # pyright: ignore
History(Fighter, Fighter.x)  # type: ignore[arg-type]  # pyright: ignore
poses.kind = Fighter  # type: ignore[misc]  # pyright: ignore


class Listed(Room):
    schema = Schema(entities=[Fighter])
    history = [poses]  # type: ignore[assignment]  # pyright: ignore


class Alone(Room):
    schema = Schema(entities=[Fighter])
    history = poses  # type: ignore[assignment]  # pyright: ignore


class Arena(Room):
    schema = Schema(entities=[Fighter, Ball])
    history = (poses,)

    def on_tick(self, dt: float) -> None:
        self.rewind(Fighter, self.tick)  # type: ignore[arg-type]  # pyright: ignore
        self.rewind(poses)  # type: ignore[call-arg]  # pyright: ignore
        self.rewind(poses, "now")  # type: ignore[arg-type]  # pyright: ignore
        past = self.rewind(poses, self.tick - 2)
        balls: Past[Ball] = past  # type: ignore[assignment]  # pyright: ignore
        past[2] = Fighter()  # type: ignore[index]  # pyright: ignore
        del past[2]  # type: ignore[attr-defined]  # pyright: ignore
        past.tick = 3  # type: ignore[misc]  # pyright: ignore
        past[2].speed  # type: ignore[attr-defined]  # pyright: ignore  # noqa: B018
        past.ray((0, 0), (1, 0), 40)  # type: ignore[call-arg]  # pyright: ignore
        past.ray((0, 0))  # type: ignore[call-arg]  # pyright: ignore
        past.ray(0, (1, 0))  # type: ignore[arg-type]  # pyright: ignore
        past.ray((0, 0), (1, 0), skip=2)  # type: ignore[arg-type]  # pyright: ignore
        past.near((0, 0))  # type: ignore[call-arg]  # pyright: ignore
        past.ray((0, 0), (1, 0)).id  # type: ignore[union-attr]  # pyright: ignore  # noqa: B018
        hit = past.near((0, 0), 5)[0]
        hit.distance = 3  # type: ignore[misc]  # pyright: ignore
        balls.near((0, 0), radius="5")  # type: ignore[arg-type]  # pyright: ignore
