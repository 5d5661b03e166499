"""Frames of clients in any order, one by one and many at once, to handlers that do anything: the engines do
not differ.

A clock that counts how often it is read is the room's and its watch's, so what is timed is compared too.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from playhall.engine.frames import Call as CallFrame
from playhall.engine.frames import Message, Unreliable, encode_client
from playhall.engine.hooks import MAX_AWAITS_OF_LINK
from playhall.engine.running import Watch
from playhall.engine.watch import HOOK_BYTES
from playhall.room import Call, Connection, Entity, Room, Schema, u32, writable
from tests.support.rooms import Driver, Gate, TestClient
from tests.support.twin_reads import read_core
from tests.support.twins import twins_of

PLAYERS = ["ann", "bob", "cyd"]
SLOW_S = 5.0


class Mark(Entity):
    said: writable[u32] = 0


class Dig(Call[int]):
    depth: int


class Surprise(BaseException):
    """What ends a hook, and is no Exception."""


class Busy(Room):
    """Does what messages say."""

    schema = Schema(entities=[Mark], calls=[Dig])
    max_players = 3
    ticks: Any = None

    def on_create(self) -> None:
        self.heard: list[Any] = []
        self.gates: list[Gate] = []

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Mark(), owner=conn.player)

    def on_message(self, conn: Connection, message: Any) -> Any:
        self.heard = [*self.heard, (conn.player, conn.client_tick, message)][-20:]
        return self.do(conn, message.get("do") if isinstance(message, dict) else None)

    def do(self, conn: Connection, deed: Any) -> Any:
        match deed:
            case "raise":
                raise ValueError("no")
            case "surprise":
                raise Surprise
            case "exit":
                raise SystemExit(3)
            case "send":
                self.send(conn, {"to": conn.player})
            case "broadcast":
                self.broadcast(b"all")
            case "kick":
                for each in self.connections.values():
                    if each is not conn:
                        self.kick(each)
            case "kick_me":
                self.kick(conn)
                self.send(conn, "never")
            case "ban":
                self.ban(conn.player)
            case "hibernate":
                self.request_hibernate()
            case "mark":
                for mark in self.entities.all(Mark, owner=conn.player):
                    mark.said += 1
            case "remove":
                for mark in self.entities.all(Mark):
                    self.entities.delete(mark)
            case "return":
                return 5
            case "wait":
                self.gates.append(Gate())
                return self.gates[-1]
            case "change":
                # A handler of an instance's own is called as one of its class.
                setattr(self, "on_message", self.other)  # noqa: B010
            case "stop":
                self.ticks = 5
        return None

    def other(self, conn: Connection, message: Any) -> None:
        self.heard = [*self.heard, ("other", conn.player, message)][-20:]
        del self.on_message

    def on_tick(self, dt: float) -> None:
        return self.ticks  # type: ignore[no-any-return]

    def on_leave(self, conn: Connection) -> None:
        self.broadcast({"left": conn.player})

    @Dig.handler
    def dig(self, conn: Connection, ask: Dig) -> int:
        return ask.depth


class Counting:
    """Each time it is read, it is later: by a quarter of a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.25
        return self.now


def one_of_these(*these: Any) -> st.SearchStrategy[Any]:
    """One of what is too long to be shown."""
    return st.integers(0, len(these) - 1).map(these.__getitem__)


DEEDS = "raise surprise exit send broadcast kick kick_me ban mark mark remove return wait wait change"
deeds = st.sampled_from([*DEEDS.split(), None, None, None])
seens = st.none() | st.integers(0, 200) | st.sampled_from([2**14, 2**49 - 2, 2**49 - 1, 2**49, 2**53 - 2])
contents: st.SearchStrategy[Any] = st.one_of(
    st.fixed_dictionaries({"do": deeds}),
    st.fixed_dictionaries({"do": deeds}),
    st.binary(max_size=5),
    st.integers(-(2**53), 2**53).filter(lambda number: abs(number) < 2**53),
    one_of_these("", "é", [], {}, 1.5, None, "1" * 40, [[]] * 400, "x" * 60_000),
)
odd = one_of_these(
    *[
        *(b"", b"\5", b"\5\0", b"\6\0\1", b"\5\0\0", b"\5\0\0{", b"\5\0\2[]", b"\5\0\4[]", b"\5\0\3\1"),
        *(b"\5\x80", b"\5\x80\0\0[]", b"\5\x81\x80\0\0[]", b"\5" + b"\xff" * 9 + b"\0[]", b"\5\x80\1\0[]"),
        *(b"\5\0\0" + b"9" * 20, b"\5\0\0" + b"9" * 15, b"\5\0\0[" + b"1" * 16 + b"]", b'\5\0\0"\xff"'),
        *(b"\5\0\0" + b"[" * 513 + b"]" * 513, b"\5\0\0" + b"[" * 512 + b"]" * 512, b"\5\0\0NaN"),
        *(b'\5\0\0"\\ud800"', b'\5\0\0{"a":1,"a":2}', b"\5\0\0 1 ", b"\5\0\0" + b'{"a":' * 600),
        *(
            b"\5\0\1" + bytes(65_536),
            b"\5\0\1" + bytes(65_537),
            b"\5" + bytes(65_600),
            b"\x63\0\0",
            b"\4\0\0",
        ),
        *(b"\x0e\0\1\2\0\1\7\0\0\0", b"\x0e\0\0", b"\x0f\1\2\3\4", b"\x14", b"\x0c\0\0"),
    ]
)


def frame_of(kind: str, content: Any, seen: int | None) -> bytes:
    frame: Any = Unreliable(content, seen) if kind == "unreliable" else Message(content, seen)
    return encode_client(frame)


frames = st.one_of(
    st.builds(frame_of, st.sampled_from(["message", "message", "unreliable"]), contents, seens),
    st.builds(frame_of, st.just("message"), contents, seens),
    st.builds(lambda n: encode_client(CallFrame(n, None, "dig", {"depth": n})), st.integers(1, 9)),
    odd,
)


class Intakes(RuleBasedStateMachine):
    """Clients that send anything."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Counting()
        self.page = bytearray(HOOK_BYTES)
        self.taken: list[int] = []
        self.clients: dict[str, TestClient] = {}
        self.watch = Watch(memoryview(self.page), SLOW_S, self.clock)
        self.driver = self.start()

    def start(self) -> Driver:
        return Driver(Busy, clock=self.clock, watch=self.watch)

    def wake_if_over(self) -> None:
        if not self.driver.is_active:
            self.driver = self.start()
            self.clients = {}

    @rule(who=st.sampled_from(PLAYERS), credit=st.sampled_from([2**30, 2**30, 50]))
    def join(self, who: str, credit: int) -> None:
        self.wake_if_over()
        self.clients[who] = self.driver.join(who, credit=credit)

    @rule(who=st.sampled_from(PLAYERS))
    def leave(self, who: str) -> None:
        if who in self.clients:
            self.driver.leave(self.clients[who])

    @rule(who=st.sampled_from(PLAYERS), frame=frames)
    def send(self, who: str, frame: bytes) -> None:
        if who in self.clients:
            self.driver.receive(self.clients[who], frame)

    @rule(
        sent=st.lists(st.tuples(st.sampled_from(PLAYERS), frames), max_size=8),
        start=st.integers(0, 2),
        within=st.sampled_from([0.0, 2.0, 4.0, 1e9]),
    )
    def send_all(self, sent: list[tuple[str, bytes]], start: int, within: float) -> None:
        run = [(self.clients[who].link, frame) for who, frame in sent if who in self.clients]
        if len(run) < start:
            return
        driver = self.driver
        self.taken.append(driver.core.receive_all(run, start, self.clock.now + within, driver.now))
        driver.pump()

    @rule(who=st.sampled_from(PLAYERS), missing=st.sampled_from([-5, 0, 0, 10, 2**31]))
    def drain(self, who: str, missing: int) -> None:
        if who in self.clients:
            self.driver.drain(self.clients[who], (self.clients[who].received - missing) % 2**32)

    @rule(who=st.sampled_from(PLAYERS))
    def fill(self, who: str) -> None:
        """As many hooks wait as may."""
        if who in self.clients:
            for _ in range(MAX_AWAITS_OF_LINK + 1):
                self.driver.receive(self.clients[who], encode_client(Message({"do": "wait"})))

    @rule()
    def go_on(self) -> None:
        for gate in self.driver.room.gates:
            gate.open = True
        self.driver.go_on_all()

    @rule(count=st.integers(1, 25))
    def tick(self, count: int) -> None:
        self.driver.tick(count)

    @rule(seconds=st.sampled_from([0.5, 3.0, 12.0, 40.0]))
    def advance(self, seconds: float) -> None:
        self.driver.advance(seconds)

    @rule(deed=st.sampled_from(["hibernate", "stop"]))
    def end(self, deed: str) -> None:
        for client in list(self.clients.values())[:1]:
            self.driver.receive(client, encode_client(Message({"do": deed})))
            self.driver.tick()


def read_intakes(machine: Any) -> Any:
    """What can be read of the room, and of what watched it."""
    room = machine.driver.room
    watched = (machine.clock.now, bytes(machine.page), machine.watch.slow, machine.taken)
    return read_core(machine.driver.core), room.heard, watched


TestIntakes = twins_of(Intakes, read_intakes).TestCase
TestIntakes.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
