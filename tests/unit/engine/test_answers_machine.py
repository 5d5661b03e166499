"""No answer tells of what could be lost, nor of what its receiver has not been told, whatever the schedule:
calls, ticks, acknowledgements, slow readers, drops and joins.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from playhall.engine.frames import Reply
from playhall.room import Call, CallRejected, Connection, Entity, Room, Schema, u32
from tests.support.rooms import Driver, TestClient

PLAYERS = ("ann", "bob")
SLOW = ("ann",)
NAMES = ("move", "look", "refuse")


class Board(Entity):
    moves: u32 = 0


class Move(Call[int]):
    pass


class Look(Call[int]):
    pass


class Refuse(Call[int]):
    pass


class Game(Room[Board]):
    schema = Schema(state=Board, calls=[Move, Look, Refuse])

    @Move.handler
    def move(self, conn: Connection, ask: Move) -> int:
        self.state.moves += 1
        return self.state.moves

    @Look.handler
    def look(self, conn: Connection, ask: Look) -> int:
        return self.state.moves

    @Refuse.handler
    def refuse(self, conn: Connection, ask: Refuse) -> int:
        raise CallRejected(str(self.state.moves))


class Answered(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(Game, auto_durable=False)
        self.clients: dict[str, TestClient] = {}
        self.asked: dict[int, list[int]] = {}
        self.number = 0
        self.moves_at = {0: 0, self.driver.last_written: 0}
        self.durable = 0
        self.checked: dict[int, int] = {}

    def note(self) -> None:
        """Note what each version that was written holds."""
        self.moves_at.setdefault(self.driver.last_written, self.driver.room.state.moves)

    @initialize()
    def join_all(self) -> None:
        for player in PLAYERS:
            self.join(player)

    def join(self, player: str) -> None:
        self.clients[player] = self.driver.join(player, credit=1 if player in SLOW else 2**20)
        self.note()

    @rule(player=st.sampled_from(PLAYERS), leaves=st.booleans())
    def come_again(self, player: str, leaves: bool) -> None:
        if leaves:
            self.driver.leave(self.clients[player])
        self.join(player)

    @rule(player=st.sampled_from(PLAYERS), names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3))
    def call(self, player: str, names: list[str]) -> None:
        client = self.clients[player]
        asked = self.asked.setdefault(client.link, [])
        for name in names:
            if len(asked) - len(client.replies) < 32:
                self.number += 1
                asked.append(self.number)
                self.driver.call(client, self.number, name)

    @rule(late=st.sampled_from([None, 0, 1]))
    def tick(self, late: int | None) -> None:
        self.driver.tick()
        self.note()
        if late is not None:
            self.acknowledge(late)

    @rule(late=st.integers(0, 2))
    def acknowledge(self, late: int) -> None:
        """Have all but the last versions that were written become durable."""
        self.durable = max(self.durable, sorted(self.moves_at, reverse=True)[: late + 1][-1])
        self.driver.core.durable(self.durable, self.driver.now)
        self.driver.pump()

    @rule()
    def drain(self) -> None:
        for player in SLOW:
            self.driver.drain(self.clients[player])

    @invariant()
    def no_answer_runs_ahead(self) -> None:
        saved = max(moves for version, moves in self.moves_at.items() if version <= self.durable)
        for client in self.clients.values():
            new = client.replies[self.checked.get(client.link, 0) :]
            self.checked[client.link] = len(client.replies)
            for reply in new:
                told = reply.content if isinstance(reply, Reply) else int(reply.text.rpartition(" ")[2])
                assert told <= saved, "an answer that could be lost"
                assert told <= client.replica.fields(0)["moves"], "an answer ahead of the update"

    @invariant()
    def answers_keep_the_order_of_the_calls(self) -> None:
        for client in self.clients.values():
            asked = self.asked.get(client.link, [])
            assert [reply.call for reply in client.replies] == asked[: len(client.replies)]

    def teardown(self) -> None:
        """In the end everyone is answered."""
        for _ in range(100):
            for client in self.clients.values():
                self.driver.drain(client)
            self.driver.tick()
            self.note()
            self.durable = self.driver.last_written
            self.driver.core.durable(self.durable, self.driver.now)
            self.driver.pump()
        self.no_answer_runs_ahead()
        for client in self.clients.values():
            assert len(client.replies) == len(self.asked.get(client.link, []))


TestAnswered = Answered.TestCase
TestAnswered.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
