"""Mistakes with bots that both checkers must report: an ignore that hides nothing is an error in itself."""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
from playhall.room import Bot, Connection, Entity, Room


class Fighter(Entity):
    pass


class Dummy(Bot):
    period: int = 40
    target: str


class Asynchronous(Bot):
    async def tick(self, room: "Arena") -> None: ...  # type: ignore[override]  # pyright: ignore


class OwnPlayer(Bot):
    @property  # type: ignore[misc]
    def player(self) -> str:  # pyright: ignore
        return "bot:1"


class WrongKeyword(Bot, kinds="dummy"): ...  # type: ignore[call-arg]  # pyright: ignore


Dummy()  # type: ignore[call-arg]  # pyright: ignore
Dummy(target="a", perod=20)  # type: ignore[call-arg]  # pyright: ignore
Dummy(target="a", period="long")  # type: ignore[arg-type]  # pyright: ignore
Dummy("a")  # type: ignore[call-arg, arg-type]  # pyright: ignore
dummy = Dummy(target="a")
dummy.perod = 20  # type: ignore[attr-defined]  # pyright: ignore
dummy.player = "bot:1"  # type: ignore[misc]  # pyright: ignore
dummy.input = {1, 2}  # type: ignore[assignment]  # pyright: ignore


class Arena(Room):
    bot_kinds = (Dummy,)

    def on_join(self, conn: Connection) -> None:
        self.bots.add(Fighter())  # type: ignore[type-var]  # pyright: ignore
        self.bots.add(Dummy)  # type: ignore[type-var]  # pyright: ignore
        self.bots.add(Dummy(target="a"), status={1})  # type: ignore[arg-type]  # pyright: ignore
        self.bots.add(Dummy(target="a"), "Rival")  # type: ignore[call-arg]  # pyright: ignore
        self.bots.remove(conn)  # type: ignore[arg-type]  # pyright: ignore
        self.ban(conn)  # type: ignore[arg-type]  # pyright: ignore
        self.bots = []  # type: ignore[misc, assignment]  # pyright: ignore


class NoBots(Room):
    bot_kinds = (Fighter,)  # type: ignore[assignment]  # pyright: ignore


class OneBot(Room):
    bot_kinds = Dummy  # type: ignore[assignment]  # pyright: ignore
