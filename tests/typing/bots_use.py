"""What room authors write about bots, and what both checkers must infer of it."""

# pyright: strict
from typing import assert_type

from playhall.room import Bot, Bots, Entity, Input, JsonOut, Room, Schema, f32, i8, is_bot, local


class Fighter(Entity):
    x: f32 = 0


class Control(Input):
    dx: i8


class Dummy(Bot):
    period: int = 40
    plan: list[str] = []
    target: str | None = None
    seen: list[int] = local(factory=list)

    def start(self, room: "Arena") -> None:
        room.entities.add(Fighter(), owner=self.player, once=True)

    def tick(self, room: "Arena") -> None:
        self.input = Control(dx=1 if room.tick // self.period % 2 else -1)
        assert_type(self.input, Control)
        self.seen.append(room.tick)


class Boss(Dummy, kind="boss"):
    anger: float = 0.5


class Arena(Room):
    schema = Schema(entities=[Fighter], input=Control)
    bot_kinds = (Dummy, Boss)
    max_players = 8

    def on_create(self) -> None:
        dummy = self.bots.add(Dummy(period=20), name="Rival", status={"ready": True})
        assert_type(dummy, Dummy)
        assert_type(dummy.period, int)
        assert_type(dummy.plan, list[str])
        assert_type(dummy.seen, list[int])
        assert_type(dummy.player, str)
        assert_type(dummy.input, Input | JsonOut)
        assert_type(Dummy.kind, str)
        boss = self.bots.add(Boss(anger=0.9, period=3))
        assert_type(boss, Boss)
        assert_type(self.bots, Bots)
        assert_type(len(self.bots), int)
        for bot in self.bots:
            assert_type(bot, Bot)
            self.bots.remove(bot)
        assert_type(self.max_players, int)
        assert_type(is_bot("ann"), bool)
        assert_type(self.ban("ann"), None)
        assert_type(self.unban("ann"), None)
