"""Answers of room code: what they wait for, what they say, and what is answered at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from playhall.engine.codes import ErrorCode
from playhall.engine.frames import Reply, ReplyError
from playhall.engine.outputs import AnswerOut, HibernateOut, LogOut, RecordOut, Status
from playhall.room import Call, CallRejected, Connection, Entity, Message, Room, Schema, u32
from tests.support.rooms import Driver, Gate, TestClient

UNKNOWN, REJECTED, LIMIT = 404, 422, 429


class Dot(Entity):
    x: u32 = 0


class Secret(Entity, hidden=True):
    x: u32 = 0


class Board(Entity):
    moves: u32 = 0


class Mine(Entity):
    coins: u32 = 0


class Do(Call[object]):
    what: str
    n: int = 0

    def __post_init__(self) -> None:
        if self.what == "unwanted":
            raise RuntimeError("not this")


class Slow(Call[int]):
    pass


class Game(Room[Board, Mine]):
    """Does what `acts` has for the call at hand."""

    schema = Schema(state=Board, private=Mine, entities=[Dot, Secret], calls=[Do, Slow])

    def __init__(self) -> None:
        self.acts: dict[str, Callable[[Connection, Do], Any]] = {}
        self.asked: list[tuple[str, int | None, int]] = []
        self.gate = Gate()
        self.done = 0
        self.on_request_act: Callable[[Message], Any] = lambda message: message

    @Do.handler
    def do(self, conn: Connection, ask: Do) -> object:
        self.asked.append((ask.what, conn.client_tick, self.tick))
        return self.acts[ask.what](conn, ask)

    @Slow.handler
    async def slow(self, conn: Connection, ask: Slow) -> int:
        await self.gate
        self.done += 1
        self.state.moves += 1
        return self.done

    def on_request(self, message: Message) -> Any:
        return self.on_request_act(message)


def fail(error: BaseException) -> Any:
    raise error


CHANGES: dict[str, Callable[[Game, Connection], Any]] = {
    "shared": lambda room, conn: setattr(room.state, "moves", room.state.moves + 1),
    "private": lambda room, conn: setattr(room.private(conn), "coins", 5),
    "another's private": lambda room, conn: setattr(room.private("bob", create=True), "coins", 5),
    "add": lambda room, conn: room.entities.add(Dot()),
    "hidden": lambda room, conn: room.entities.add(Secret()),
    "write": lambda room, conn: setattr(room.entities.all(Dot)[0], "x", 9),
    "delete": lambda room, conn: room.entities.delete(room.entities.all(Dot)[0]),
    "ownership": lambda room, conn: room.entities.set_owner(room.entities.all(Dot)[0], conn.player),
    "used id": lambda room, conn: room.entities.delete(room.entities.add(Dot())),
    "ban": lambda room, conn: room.ban("mallory"),
}


class Play:
    """A room with one player, all of it flushed; nothing is durable by itself from here on."""

    def __init__(
        self, room_class: type[Room[Any, Any, Any]] = Game, *, players: int = 1, **options: Any
    ) -> None:
        self.driver = Driver(room_class, **options)
        self.driver.tick()
        if isinstance(self.driver.room, Game):
            self.driver.room.entities.add(Dot())
        self.clients = [self.driver.join(f"p{n}") for n in range(players)]
        self.driver.tick()
        self.driver.auto_durable = False
        self.driver.clear()
        for client in self.clients:
            client.log.clear()

    @property
    def client(self) -> TestClient:
        return self.clients[0]

    @property
    def room(self) -> Any:
        return self.driver.room

    def status(self) -> Status:
        return self.driver.core.status

    def call(self, number: int, act: Callable[[Connection, Do], Any] | None = None, **ask: Any) -> None:
        if act is not None:
            self.room.acts["act"] = act
        self.driver.call(self.client, number, "do", {"what": "act", **ask})

    def change(self, number: int, what: str = "shared") -> None:
        """Make a call that changes something."""

        def act(conn: Connection, ask: Do) -> None:
            CHANGES[what](self.room, conn)

        self.call(number, act)

    def finish(self) -> None:
        """Let everything end that waits."""
        self.room.gate.open = True
        self.driver.go_on_all()

    def durable(self) -> None:
        self.driver.core.durable(self.driver.last_written, self.driver.now)
        self.driver.pump()

    def logs(self) -> list[LogOut]:
        return self.driver.of(LogOut)


@pytest.fixture
def play() -> Play:
    return Play()


class TestWhatTheyWaitFor:
    @pytest.mark.ledger("CALL-09")
    @pytest.mark.parametrize("change", CHANGES)
    def test_a_change_is_durable_and_known_to_the_caller_before_its_reply(
        self, change: str, play: Play
    ) -> None:
        play.change(1, change)
        assert play.client.replies == []
        play.driver.tick()
        assert play.driver.of(RecordOut)
        assert play.client.replies == []
        play.durable()
        assert play.client.replies == [Reply(1, None)]
        assert play.client.log[-1] == "reply"
        assert play.client.log.count("reply") == 1

    @pytest.mark.ledger("CALL-09")
    def test_the_caller_holds_the_change_when_it_has_the_reply(self, play: Play) -> None:
        def buy(conn: Connection, ask: Do) -> int:
            play.room.private(conn).coins = 6
            play.room.send(conn, "bought")
            return 6

        play.call(1, buy)
        play.driver.tick()
        play.durable()
        assert play.client.log == ["message", "update", "reply"]
        assert play.client.replica.of_kind(Mine)[1] == {"coins": 6}

    def test_the_record_may_be_durable_before_the_tick_is_over(self) -> None:
        play = Play()
        play.driver.auto_durable = True
        play.change(1)
        play.driver.tick()
        assert play.client.log == ["update", "reply"]

    @pytest.mark.ledger("CALL-10")
    def test_where_nothing_waits_an_answer_leaves_at_once(self, play: Play) -> None:
        play.call(1, lambda conn, ask: play.room.state.moves)
        play.call(2, lambda conn, ask: fail(CallRejected("no")))
        play.call(3, lambda conn, ask: fail(ValueError("oops")))
        assert [reply.call for reply in play.client.replies] == [1, 2, 3]

    @pytest.mark.ledger("CALL-10")
    @pytest.mark.parametrize("act", [lambda conn, ask: 7, lambda conn, ask: fail(CallRejected("no"))])
    def test_what_others_changed_before_it_holds_it_too(self, act: Any, play: Play) -> None:
        play.room.state.moves += 1
        play.call(1, act)
        play.driver.tick()
        assert play.client.replies == []
        play.call(2, act)  # nothing has changed since the flush, but that is not durable yet
        assert play.client.replies == []
        play.durable()
        assert [reply.call for reply in play.client.replies] == [1, 2]

    def test_an_older_record_is_not_enough(self, play: Play) -> None:
        play.room.state.moves += 1
        play.driver.tick()
        older = play.driver.last_written
        play.change(1)
        play.driver.tick()
        play.driver.core.durable(older, play.driver.now)
        play.driver.pump()
        assert play.client.replies == []
        play.durable()
        assert len(play.client.replies) == 1

    def test_what_is_only_shown_and_not_saved_is_waited_for_as_shown(self, play: Play) -> None:
        play.call(1, lambda conn, ask: play.room.presence.set(conn.player, status="here"))
        assert play.client.replies == []
        play.driver.tick()
        assert not play.driver.of(RecordOut)
        assert (play.client.log[0], play.client.log[-1]) == ("update", "reply")

    def test_what_room_code_keeps_on_itself_is_not_waited_for(self, play: Play) -> None:
        def act(conn: Connection, ask: Do) -> int:
            play.room.scratch = 1
            conn.scratch = 1  # type: ignore[attr-defined]
            return 1

        play.call(1, act)
        assert play.client.replies == [Reply(1, 1)]

    @pytest.mark.ledger("CALL-09")
    def test_a_caller_without_credit_gets_the_update_first(self) -> None:
        play = Play()
        slow = play.driver.join("slow", credit=1)
        play.driver.drain(slow)
        play.driver.tick()
        slow.log.clear()
        play.driver.auto_durable = True
        play.room.acts["act"] = lambda conn, ask: CHANGES["shared"](play.room, conn)
        play.room.state.moves += 1
        play.driver.tick()
        assert slow.log == ["update"]
        play.driver.call(slow, 1, "do", {"what": "act"})
        play.driver.tick(2)
        assert slow.log == ["update"]
        assert slow.replies == []
        play.driver.drain(slow)
        play.driver.tick()
        assert slow.log == ["update", "update"]
        play.driver.drain(slow)
        assert slow.log == ["update", "update", "reply"]
        assert slow.replica.fields(0) == {"moves": 2}

    def test_answers_of_one_caller_keep_their_order_and_hold_up_nobody_elses(self) -> None:
        play = Play(players=2)
        one, two = play.clients
        play.driver.call(one, 1, "slow")
        play.call(2, lambda conn, ask: 2)
        assert one.replies == [Reply(2, 2)]
        play.driver.call(two, 3, "do", {"what": "act"})
        assert two.replies == [Reply(3, 2)]
        play.finish()

    @pytest.mark.ledger("CALL-08")
    def test_handlers_run_as_calls_arrive_between_ticks(self, play: Play) -> None:
        tick = play.driver.core.tick_number
        play.call(1, lambda conn, ask: 1)
        play.driver.call(play.client, 2, "do", {"what": "act"}, seen=3)
        assert play.room.asked == [("act", None, tick), ("act", 3, tick)]

    def test_a_call_that_comes_during_on_join_waits_for_its_end(self) -> None:
        gate = Gate()

        class Late(Game):
            async def on_join(self, conn: Connection) -> None:
                await gate

        driver = Driver(Late)
        driver.room.acts["act"] = lambda conn, ask: 1
        client = driver.join("alice")
        driver.call(client, 1, "do", {"what": "act"})
        assert driver.room.asked == []
        gate.open = True
        driver.go_on_all()
        assert client.log == ["welcome", "update", "reply"]


class TestWhatTheySay:
    @pytest.mark.ledger("CALL-06", "CALL-07", "CALL-16")
    @pytest.mark.parametrize(
        ("error", "text"),
        [
            (ValueError("no ring left"), "do failed in the room: no ring left"),
            (CallRejected("no ring left"), "no ring left"),
            (CallRejected(), "do failed in the room: CallRejected"),
        ],
    )
    def test_what_a_handler_throws_is_the_callers_error(
        self, error: Exception, text: str, play: Play
    ) -> None:
        play.call(1, lambda conn, ask: fail(error))
        assert play.client.replies == [ReplyError(1, REJECTED, text)]
        assert play.status() is Status.ACTIVE
        if isinstance(error, CallRejected):
            assert play.logs() == []
            return
        [log] = play.logs()
        assert (log.level, log.event) == ("error", "room.call_failed")
        assert log.fields == {
            "call": "do",
            "player": "p0",
            "tick": play.driver.core.tick_number,
            "error": "ValueError: no ring left",
        }
        assert log.traceback is not None
        assert "no ring left" in log.traceback
        assert "in fail" in log.traceback

    def test_an_error_without_a_text_is_named_and_a_long_one_is_cut(self, play: Play) -> None:
        play.call(1, lambda conn, ask: fail(RuntimeError()))
        play.call(2, lambda conn, ask: fail(CallRejected("é" * 5_000)))
        play.call(3, lambda conn, ask: fail(SystemExit()))
        one, two, three = play.client.replies
        assert isinstance(one, ReplyError)
        assert isinstance(two, ReplyError)
        assert isinstance(three, ReplyError)
        assert one.text == "do failed in the room: RuntimeError"
        assert len(two.text.encode()) in (4_095, 4_096)
        assert three.text == "do failed in the room: SystemExit"

    @pytest.mark.parametrize("value", [object(), float("nan"), "x" * 70_000, 2**53, b"bytes"])
    def test_a_reply_that_is_none_is_a_bug(self, value: object) -> None:
        class Odd(Call[Any]):
            pass

        class Shop(Room):
            schema = Schema(calls=[Odd])

            @Odd.handler
            def odd(self, conn: Connection, ask: Odd) -> Any:
                return value

        driver = Driver(Shop)
        client = driver.join("alice")
        driver.call(client, 1, "odd")
        driver.tick()
        if isinstance(value, bytes):
            assert client.replies == [Reply(1, "Ynl0ZXM=")]
            return
        [reply] = client.replies
        assert isinstance(reply, ReplyError)
        assert (reply.code, reply.text[:24]) == (REJECTED, "odd failed in the room: ")
        assert [log.event for log in driver.of(LogOut)] == ["room.call_failed"]

    @pytest.mark.ledger("CALL-05")
    def test_an_async_handler_replies_when_it_has_settled(self, play: Play) -> None:
        play.driver.auto_durable = True
        play.driver.call(play.client, 1, "slow")
        play.driver.tick(3)
        play.call(2, lambda conn, ask: "returned")
        assert play.client.replies == [Reply(2, "returned")]
        play.finish()
        play.driver.tick()
        assert play.client.replies == [Reply(2, "returned"), Reply(1, 1)]

    def test_an_async_handler_that_takes_too_long_is_cancelled(self, play: Play) -> None:
        play.driver.call(play.client, 1, "slow")
        play.driver.advance(9.9)
        assert play.client.replies == []
        play.driver.advance(0.2)
        assert play.client.replies == [
            ReplyError(1, REJECTED, "slow failed in the room: call slow took over 10 s")
        ]
        assert play.driver.waiting == {}
        assert [log.event for log in play.logs()] == ["room.call_failed"]

    @pytest.mark.ledger("CALL-14")
    def test_a_call_the_room_does_not_know_is_refused_at_once(self, play: Play) -> None:
        play.room.state.moves += 1
        play.driver.call(play.client, 1, "steal")
        assert play.client.replies == [ReplyError(1, UNKNOWN, "no such call: steal")]

    @pytest.mark.ledger("CALL-02")
    @pytest.mark.parametrize("content", [b"{}", [], {"what": 1}, {}, {"what": "unwanted"}])
    def test_what_does_not_decode_is_refused_at_once_and_not_logged(self, content: Any, play: Play) -> None:
        play.room.state.moves += 1
        play.driver.call(play.client, 1, "do", content)
        [reply] = play.client.replies
        assert isinstance(reply, ReplyError)
        assert (reply.code, reply.text[:23]) == (REJECTED, "do was not understood: ")
        assert play.logs() == []
        assert play.room.asked == []

    def test_so_many_calls_of_a_connection_may_wait(self) -> None:
        play = Play(players=2)
        play.room.acts["act"] = lambda conn, ask: CHANGES["shared"](play.room, conn)
        for n in range(33):
            play.call(n)
        assert [(reply.call, reply.code) for reply in play.client.replies] == [(32, LIMIT)]  # type: ignore[union-attr]
        play.driver.call(play.clients[1], 1, "do", {"what": "act"})
        play.driver.tick()
        play.durable()
        assert [reply.call for reply in play.client.replies] == [32, *range(32)]
        assert len(play.clients[1].replies) == 1
        play.call(40, lambda conn, ask: 1)
        assert play.client.replies[-1] == Reply(40, 1)

    def test_so_many_calls_of_a_connection_may_run(self, play: Play) -> None:
        for n in range(33):
            play.driver.call(play.client, n, "slow")
        assert [(reply.call, reply.code) for reply in play.client.replies] == [(32, LIMIT)]  # type: ignore[union-attr]
        play.finish()


class TestWhoIsGone:
    def test_an_answer_to_one_who_has_left_goes_nowhere(self, play: Play) -> None:
        play.driver.auto_durable = True
        play.driver.call(play.client, 1, "slow")
        play.change(2)
        play.driver.leave(play.client)
        play.driver.tick()
        play.finish()
        play.driver.tick()
        assert (play.room.done, play.client.replies) == (1, [])
        again = play.driver.join("p0")
        play.driver.tick(2)
        assert again.replies == []
        play.driver.hibernate()
        assert play.driver.of(HibernateOut)

    def test_a_handler_may_end_its_own_connection(self, play: Play) -> None:
        play.call(1, lambda conn, ask: play.room.kick(conn))
        play.driver.tick()
        play.durable()
        assert play.client.replies == []
        assert play.client.closed is not None


class TestHibernating:
    def test_a_room_with_an_answer_that_waits_does_not_begin_to(self, play: Play) -> None:
        play.change(1)
        play.driver.hibernate()
        assert play.status() is Status.ACTIVE
        play.driver.tick()
        assert play.status() is Status.ACTIVE
        play.durable()
        assert play.client.log == ["update", "reply", "close"]
        assert play.status() is Status.CLOSING

    def test_calls_that_come_after_it_was_asked_to_do_not_keep_it(self, play: Play) -> None:
        play.change(1)
        play.driver.hibernate(move=True)
        play.driver.tick()
        play.change(2)
        assert play.status() is Status.ACTIVE
        play.durable()
        assert play.status() is Status.CLOSING
        assert play.client.replies == [Reply(1, None)]

    def test_it_gives_up_after_a_minute(self, play: Play) -> None:
        play.change(1)
        play.driver.hibernate()
        play.driver.tick(61 * play.driver.core.tick_rate)
        [log] = [log for log in play.logs() if log.event == "room.hibernate_given_up"]
        assert log.fields == {"reason": "answers waited for 60 s"}
        play.durable()
        assert play.status() is Status.ACTIVE
        assert play.client.replies == [Reply(1, None)]

    @pytest.mark.ledger("CALL-12")
    def test_a_call_that_is_still_running_gets_no_answer(self, play: Play) -> None:
        play.driver.auto_durable = True
        play.driver.call(play.client, 1, "slow")
        play.driver.hibernate()
        assert play.status() is Status.CLOSING
        play.call(2, lambda conn, ask: 1)
        play.finish()
        assert play.status() is Status.CLOSED
        assert play.client.replies == []
        assert play.client.log == ["close"]


class TestRequests:
    def ask(self, play: Play, token: int, message: Any = None) -> None:
        assert play.driver.core.request(token, message, play.driver.now)
        play.driver.pump()

    @pytest.mark.ledger("HOOK-12")
    def test_what_on_request_returns_or_throws_is_the_answer(self, play: Play) -> None:
        self.ask(play, 1, {"a": [1, None]})
        play.room.on_request_act = lambda message: fail(CallRejected("not now"))
        self.ask(play, 2)
        assert play.logs() == []
        play.room.on_request_act = lambda message: fail(ValueError("oops"))
        self.ask(play, 3)
        assert play.driver.of(AnswerOut) == [
            AnswerOut(1, b'{"a":[1,null]}'),
            AnswerOut(2, error=ErrorCode.REJECTED, text="not now"),
            AnswerOut(3, error=ErrorCode.REJECTED, text="on_request failed in the room: oops"),
        ]
        [log] = play.logs()
        assert (log.level, log.fields["hook"], log.fields["error"]) == (
            "error",
            "on_request",
            "ValueError: oops",
        )
        assert log.traceback is not None

    def test_an_async_one_is_awaited(self, play: Play) -> None:
        async def later() -> int:
            await play.room.gate
            return 5

        play.room.on_request_act = lambda message: later()
        self.ask(play, 1)
        assert play.driver.of(AnswerOut) == []
        play.finish()
        assert play.driver.of(AnswerOut) == [AnswerOut(1, b"5")]

    def test_the_answer_waits_for_what_came_before_it(self, play: Play) -> None:
        def act(message: Message) -> int:
            play.room.state.moves = 1
            return 1

        play.room.on_request_act = act
        self.ask(play, 1)
        play.driver.tick()
        assert play.driver.of(AnswerOut) == []
        play.durable()
        assert play.driver.of(AnswerOut) == [AnswerOut(1, b"1")]

    @pytest.mark.parametrize("value", [b"bytes", object(), "x" * 70_000])
    def test_an_answer_that_is_no_json_is_a_bug(self, value: Any, play: Play) -> None:
        play.room.on_request_act = lambda message: value
        self.ask(play, 1)
        [answer] = play.driver.of(AnswerOut)
        assert answer.error is ErrorCode.REJECTED
        assert [log.event for log in play.logs()] == ["room.call_failed"]

    def test_a_room_without_on_request_says_so(self) -> None:
        driver = Driver(Room)
        assert driver.core.request(1, "hello", driver.now)
        assert driver.core.take_outputs() == [
            AnswerOut(1, error=ErrorCode.UNKNOWN, text="the room has no on_request")
        ]

    def test_so_many_may_wait(self, play: Play) -> None:
        play.room.state.moves += 1
        for token in range(1_025):
            self.ask(play, token)
        [refused] = play.driver.of(AnswerOut)
        assert (refused.token, refused.error) == (1_024, ErrorCode.LIMIT)

    def test_they_keep_an_empty_room_up(self) -> None:
        play = Play(players=0)
        play.driver.auto_durable = True
        for n in range(3):
            play.driver.advance(20)
            self.ask(play, n)
        assert play.status() is Status.ACTIVE
        play.driver.advance(29)
        assert play.status() is Status.ACTIVE
        play.driver.advance(1.1)
        assert play.status() is Status.CLOSED

    def test_one_that_runs_as_the_room_hibernates_is_answered_once_all_is_saved(self, play: Play) -> None:
        async def later() -> int:
            await play.room.gate
            play.room.state.moves = 9
            return 9

        play.room.on_request_act = lambda message: later()
        self.ask(play, 1)
        play.driver.hibernate()
        assert play.status() is Status.CLOSING
        assert not play.driver.core.request(2, None, play.driver.now)
        play.finish()
        assert play.driver.of(AnswerOut) == []
        play.durable()
        answered = [out for out in play.driver.outputs if isinstance(out, AnswerOut | HibernateOut)]
        assert answered[0] == AnswerOut(1, b"9")
        assert isinstance(answered[1], HibernateOut)

    def test_a_room_that_stops_answers_that_it_has(self, play: Play) -> None:
        play.room.state.moves += 1
        self.ask(play, 1)
        play.room.on_tick = lambda dt: fail(RuntimeError("bug"))
        play.driver.tick()
        assert play.driver.of(AnswerOut) == [
            AnswerOut(1, error=ErrorCode.UNAVAILABLE, text="the room stopped by an error")
        ]
