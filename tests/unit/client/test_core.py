"""The client's state machine: connecting, coming back, and what it does with frames that make no sense."""

from __future__ import annotations

from typing import Any

import pytest

from playhall.client import PlayhallError, outputs
from playhall.client.core import ABNORMAL
from playhall.engine import frames
from playhall.engine.codes import CloseCode
from playhall.engine.payloads import compress
from playhall.engine.updates import encode_head
from tests.support.scripted_server import BALL, GENERATION, SCHEMA, Board, Dot, Mine, Server, names

FATAL = [4000, 4001, 4002, 4003, 4004, 4006, 4007, 4009, 4011, 4012, 4015]
RECOVERABLE = [4005, 4008, 4010, 4013, 4999, 1000, 1006, 1011]


@pytest.fixture
def server() -> Server:
    return Server()


def len_of(content: Any) -> str:
    return str(len(content)) if isinstance(content, str | bytes) else repr(content)


def waits(server: Server) -> float:
    """How long until the next attempt."""
    at = server.core.next_timer()
    assert at is not None
    return at - server.now


class TestConnecting:
    def test_it_says_hello_and_that_it_holds_nothing_and_pings(self, server: Server) -> None:
        server.start()
        assert server.orders == [outputs.OpenTransport()]
        server.opened()
        hello, resume, ping = server.frames
        assert hello == frames.Hello(1, "dots", "main", "", "", SCHEMA.hash, bytes(16), 0, "test/1")
        assert resume == frames.Resume(0, 0, 0, full=False, held=())
        assert isinstance(ping, frames.Ping)

    @pytest.mark.ledger("CENT-01")
    def test_it_has_joined_when_the_whole_first_state_is_in(self, server: Server) -> None:
        server.start()
        server.opened()
        server.say(frames.Waking())
        server.welcome()
        server.enter(0, Board(moves=3))
        server.say(server.part(0, 0, full=True))
        assert (names(server.happened()), server.core.status) == (["Waking"], "connecting")
        server.enter(1, Mine(coins=2), owned=True)
        server.say(server.part(last=True))
        assert (names(server.happened()), server.core.status) == (["Updated", "Joined"], "open")
        state, private = server.core.replica.get(0), server.core.replica.get(1)
        assert isinstance(state, Board)
        assert isinstance(private, Mine)
        assert (state.moves, private.coins, server.core.player) == (3, 2, "alice")

    @pytest.mark.ledger("MSG-07")
    def test_it_cannot_send_before_it_has_joined_nor_once_it_is_over(self, server: Server) -> None:
        server.start()
        server.opened()
        server.welcome()
        with pytest.raises(PlayhallError):
            server.core.send("too soon")
        server.state()
        server.core.leave()
        with pytest.raises(PlayhallError):
            server.core.send("too late")
        assert server.taken(frames.Message) == []

    @pytest.mark.parametrize("code", FATAL)
    def test_a_final_code_ends_the_attempt_at_once(self, server: Server, code: int) -> None:
        server.start()
        server.opened()
        server.closed(code, "because")
        [closed] = server.happened()
        assert isinstance(closed, outputs.Closed)
        assert (closed.error.code, closed.error.message) == (code, "because")
        assert server.core.next_timer() is None

    @pytest.mark.ledger("RECO-12", "HIB-13")
    @pytest.mark.parametrize("code", RECOVERABLE)
    def test_another_is_tried_again_until_the_timeout(self, server: Server, code: int) -> None:
        server.start()
        server.opened()
        server.closed(code)
        assert server.happened() == []
        assert waits(server) == 0.25
        server.wait(29.999)
        assert server.happened() == []
        server.wait(0.001)
        [closed] = server.happened()
        assert isinstance(closed, outputs.Closed)
        assert closed.error.code == code
        assert server.core.status == "closed"

    def test_a_transport_that_does_not_open_is_given_up_at_the_timeout(self) -> None:
        server = Server(timeout=5.0)
        server.start()
        server.orders.clear()
        server.wait(5.0)
        assert server.orders == [outputs.CloseTransport(1000, "")]
        assert names(server.happened()) == ["Closed"]

    def test_the_timeout_is_for_the_first_connect_alone(self, server: Server) -> None:
        server.connect()
        server.closed(ABNORMAL)
        server.wait(300.0)
        server.closed(ABNORMAL)
        assert server.core.status == "reconnecting"

    def test_names_that_no_hello_holds_are_refused_before_connecting(self) -> None:
        with pytest.raises(ValueError):
            Server(token="x" * 20_000)


class TestComingBack:
    @pytest.mark.ledger("RECO-01", "CODE-06", "CODE-09", "CODE-11", "CODE-15")
    @pytest.mark.parametrize("code", RECOVERABLE)
    def test_a_lost_connection_is_reported_once_and_made_again(self, server: Server, code: int) -> None:
        server.connect()
        server.closed(code)
        assert server.happened() == [outputs.Disconnected(code)]
        assert server.core.status == "reconnecting"
        server.wait(0.25)
        server.closed(ABNORMAL)
        assert server.happened() == []
        # A room that moved is come back to at once; that is no step of the backoff.
        assert waits(server) == (0.25 if code == 4008 else 0.5)
        server.wait(0.5)
        server.opened()
        assert server.core.next_timer() is not None
        [hello] = server.taken(frames.Hello)
        assert hello.attempt == 1

    @pytest.mark.ledger("CODE-01", "CODE-02", "CODE-03", "CODE-04", "CODE-05", "CODE-07", "CODE-08")
    @pytest.mark.ledger("CODE-12", "CODE-13", "CODE-14", "RECO-01", "RECO-07")
    @pytest.mark.parametrize("code", FATAL)
    def test_after_a_final_code_it_reports_and_stops(self, server: Server, code: int) -> None:
        server.connect()
        server.closed(code)
        [closed] = server.happened()
        assert isinstance(closed, outputs.Closed)
        assert (closed.error.code, closed.error.message) == (code, CloseCode(code).help)
        server.wait(1_000.0)
        assert server.orders == []

    @pytest.mark.ledger("RECO-03", "RECO-05")
    def test_it_says_what_it_holds_and_keeps_unchanged_entities(self, server: Server) -> None:
        server.connect((2, Dot(x=1)), (9, Dot(x=2)), (70_000, Dot(x=3)))
        two, nine = server.core.replica.get(2), server.core.replica.get(9)
        assert nine is not None
        server.change(2, Dot(x=5), "x")
        server.update(dv=4)
        server.closed(ABNORMAL)
        server.wait(0.25)
        server.opened()
        [resume] = server.taken(frames.Resume)
        assert resume == frames.Resume(0, GENERATION, 5, full=False, held=(2, 9, 70_000))
        server.welcome(5, 11, resumed=True)
        server.change(9, Dot(x=7), "x")
        server.leave(70_000)
        server.happened()
        server.update(dv=2, dt=3)
        updated, restored = server.happened()
        assert isinstance(updated, outputs.Updated)
        assert isinstance(restored, outputs.Restored)
        assert updated.changes.entered == []
        assert updated.changes.changed == [(nine, frozenset({"x"}))]
        assert [entity.id for entity in updated.changes.left] == [70_000]
        assert server.core.replica.get(2) is two
        assert server.core.tick == 14

    @pytest.mark.ledger("RECO-02", "RECO-04", "RECO-05")
    def test_another_generation_replaces_everything_by_new_objects(self, server: Server) -> None:
        server.connect((2, Dot(x=1)))
        before = {id: server.core.replica.get(id) for id in (0, 1, 2)}
        server.closed(4008)
        server.wait(0.25)
        server.opened()
        server.generation += 1
        server.welcome(3, 40)
        assert server.core.generation == GENERATION, "what it holds is still the old state"
        server.happened()
        server.state((2, Dot(x=1)))
        updated, restored = server.happened()
        assert isinstance(updated, outputs.Updated)
        assert isinstance(restored, outputs.Restored)
        assert sorted(entity.id for entity in updated.changes.left) == [0, 1, 2]
        assert sorted(entity.id for entity in updated.changes.entered) == [0, 1, 2]
        assert all(server.core.replica.get(id) is not old for id, old in before.items())
        assert server.core.generation == GENERATION + 1

    def test_a_break_in_the_middle_of_a_new_state_leaves_what_is_held(self, server: Server) -> None:
        server.connect((2, Dot(x=1)))
        two = server.core.replica.get(2)
        server.closed(4008)
        server.wait(0.25)
        server.opened()
        server.taken(frames.Resume)
        server.generation += 1
        server.welcome(3, 40)
        server.enter(5, Dot(x=5))
        server.say(server.part(full=True))
        server.closed(ABNORMAL)
        server.wait(0.25)
        server.opened()
        assert server.taken(frames.Resume) == [frames.Resume(0, GENERATION, 1, full=False, held=(2,))]
        assert server.core.replica.get(2) is two

    @pytest.mark.parametrize(("count", "full"), [(16_300, False), (16_384, True)])
    def test_more_ids_than_a_resume_holds_ask_for_everything(
        self, server: Server, count: int, full: bool
    ) -> None:
        ids = tuple(range(20_000, 20_000 * (count + 1), 20_000))  # three bytes each
        server.start()
        server.opened()
        server.welcome()
        for at in range(0, count, 4_000):
            for id in ids[at : at + 4_000]:
                server.enter(id, BALL)
            server.say(server.part(full=at == 0))
        server.say(server.part(last=True))
        server.closed(ABNORMAL)
        server.wait(0.25)
        server.frames.clear()
        server.opened()
        [resume] = server.taken(frames.Resume)
        assert (resume.full, resume.held) == (full, () if full else ids)

    def test_retry_after_is_waited_first(self, server: Server) -> None:
        server.connect()
        server.closed(4008, "retry-after=3000;draining")
        assert waits(server) == 3.25

    def test_messages_sent_meanwhile_are_lost_and_not_sent_later(self, server: Server) -> None:
        server.connect()
        server.closed(ABNORMAL)
        assert server.core.send("into the void") is False
        with pytest.raises(ValueError):
            server.core.send("x" * 70_000)
        server.wait(0.25)
        server.opened()
        server.welcome(1, 10, resumed=True)
        server.update(0, 0)
        assert server.core.send("heard") is True
        server.drain()
        assert [frame.content for frame in server.taken(frames.Message)] == ["heard"]

    def test_a_guest_comes_back_by_the_token_it_was_given(self, server: Server) -> None:
        server.start()
        server.opened()
        server.welcome(token="guest-token", player="guest:1")
        server.state()
        assert server.core.guest_token == "guest-token"
        server.closed(ABNORMAL)
        server.frames.clear()
        server.wait(0.25)
        server.opened()
        [hello] = server.taken(frames.Hello)
        assert hello.token == "guest-token"

    def test_a_players_own_token_is_no_guest_token(self) -> None:
        server = Server(token="mine")
        server.start()
        server.opened()
        assert server.taken(frames.Hello)[0].token == "mine"
        server.welcome()
        assert server.core.guest_token is None


class TestReset:
    def test_a_reset_is_a_dropped_socket_without_the_wait(self, server: Server) -> None:
        server.connect((2, Dot(x=1)))
        server.say(frames.Reset(1, 4008))
        assert server.happened() == [outputs.Disconnected(4008)]
        assert server.orders == []
        assert server.frames == [frames.Resume(1, GENERATION, 1, full=False, held=(2,))]
        server.generation += 1
        server.welcome()
        server.state()
        assert names(server.happened()) == ["Updated", "Restored"]

    def test_nothing_of_the_players_is_sent_between_reset_and_welcome(self, server: Server) -> None:
        server.connect()
        server.say(frames.Reset(1, 4008))
        server.core.send("lost")
        server.drain()
        assert server.taken(frames.Message) == []

    def test_each_reset_is_answered_with_its_number(self, server: Server) -> None:
        server.connect()
        server.say(frames.Reset(1, 4008))
        server.say(frames.Reset(2, 4008))
        assert [resume.reset for resume in server.taken(frames.Resume)] == [1, 2]
        assert server.happened() == [outputs.Disconnected(4008)]

    def test_a_new_socket_counts_from_nothing(self, server: Server) -> None:
        server.connect()
        server.say(frames.Reset(3, 4008))
        server.closed(ABNORMAL)
        server.wait(0.25)
        server.frames.clear()
        server.opened()
        assert [resume.reset for resume in server.taken(frames.Resume)] == [0]
        server.say(frames.Reset(1, 4008))
        assert [resume.reset for resume in server.taken(frames.Resume)] == [1]

    def test_before_the_first_welcome_it_is_answered_and_not_reported(self, server: Server) -> None:
        server.start()
        server.opened()
        server.frames.clear()
        server.say(frames.Reset(1, 4008))
        assert server.frames == [frames.Resume(1, 0, 0, full=False, held=())]
        assert server.happened() == []

    def test_a_reset_by_a_final_code_is_final(self, server: Server) -> None:
        server.connect()
        server.say(frames.Reset(1, 4007))
        assert names(server.happened()) == ["Closed"]
        assert server.orders == [outputs.CloseTransport(1000, "")]


class TestSleep:
    def test_a_sleeping_room_keeps_the_state_and_wakes_to_a_new_one(self, server: Server) -> None:
        server.connect()
        server.say(frames.Asleep(GENERATION, 1))
        assert names(server.happened()) == ["FellAsleep"]
        assert server.core.asleep
        assert server.core.server_tick(server.now + 60) == server.core.tick
        server.core.send("wake up")
        server.drain()
        assert len(server.taken(frames.Message)) == 1
        server.say(frames.Waking())
        server.generation += 1
        server.welcome()
        server.state()
        assert names(server.happened()) == ["Waking", "Updated", "Woke"]
        assert not server.core.asleep

    def test_coming_back_to_a_sleeping_room_needs_no_update(self, server: Server) -> None:
        server.connect()
        server.say(frames.Asleep(GENERATION, 1))
        server.closed(ABNORMAL)
        server.wait(0.25)
        server.opened()
        server.happened()
        server.welcome(1, 10, resumed=True, asleep=True)
        assert names(server.happened()) == ["Restored"]
        assert server.core.asleep

    def test_a_sleep_at_a_state_that_is_not_held_is_refused(self, server: Server) -> None:
        server.connect()
        server.say(frames.Asleep(GENERATION, 2))
        assert names(server.happened()) == ["Closed"]


class TestSilenceAndClock:
    def test_it_pings_each_two_seconds_while_it_is_connected(self, server: Server) -> None:
        server.connect()
        for _ in range(5):
            server.wait(2.0)
            [ping] = server.taken(frames.Ping)
            server.say(frames.Pong(ping.nonce, 20, 0))

    def test_fifteen_seconds_without_a_frame_are_a_dropped_socket(self, server: Server) -> None:
        server.connect()
        server.wait(14.999)
        assert server.happened() == []
        server.wait(0.001)
        assert server.happened() == [outputs.Disconnected(ABNORMAL)]
        assert [type(order) for order in server.orders] == [outputs.CloseTransport]
        server.wait(0.25)
        assert server.orders[-1] == outputs.OpenTransport()

    def test_a_server_that_only_pongs_is_given_up_too(self, server: Server) -> None:
        server.connect()
        server.closed(ABNORMAL)
        server.wait(0.25)
        server.orders.clear()
        server.opened()
        for _ in range(30):
            for ping in server.taken(frames.Ping):
                server.say(frames.Pong(ping.nonce, None, 0))
            server.wait(1.0)
        assert isinstance(server.orders[0], outputs.CloseTransport)

    def test_the_round_trip_and_the_rooms_tick_come_from_pongs(self, server: Server) -> None:
        server.connect()
        server.wait(2.0)
        [ping] = server.taken(frames.Ping)
        server.now += 0.1
        server.say(frames.Pong(ping.nonce, 80, 128))
        assert server.core.rtt_s == pytest.approx(0.1)
        assert server.core.server_tick(server.now) == pytest.approx(80.5 + 0.05 * 20)

    def test_a_pong_that_nothing_asked_for_is_ignored(self, server: Server) -> None:
        server.connect()
        before = server.core.server_tick(server.now)
        server.say(frames.Pong(12345, 9_999, 0))
        assert server.core.server_tick(server.now) == before


class TestMessages:
    @pytest.mark.ledger("MSG-01", "MSG-08")
    @pytest.mark.parametrize(
        "content",
        [None, True, 1.5, "é🙂", [1, {"a": []}], b"", b"\x00\xff", b"x" * 65_536, "x" * 65_534],
        ids=len_of,
    )
    def test_both_ways(self, server: Server, content: Any) -> None:
        server.connect()
        server.say(frames.Message(content))
        server.say(frames.Unreliable(content))
        assert server.happened() == [outputs.MessageReceived(content)] * 2
        server.core.send(content)
        server.core.send(content, unreliable=True)
        server.drain()
        assert server.frames == [frames.Message(content, 10), frames.Unreliable(content, 10)]

    @pytest.mark.ledger("CENT-07")
    def test_what_the_server_deflated_is_inflated_unnoticed(self, server: Server) -> None:
        server.connect((2, Dot(x=1)))
        for content in ("x" * 2_000, bytes(2_000)):
            message = frames.Message(frames.encode_payload(content, compressed=True))
            assert len(frames.encode_server(message)) < 100
            server.say(message)
        assert server.happened() == [
            outputs.MessageReceived("x" * 2_000),
            outputs.MessageReceived(bytes(2_000)),
        ]
        server.change(2, Dot(x=1, data=bytes(3_000)), "data")
        server.patch(2, 3, 1_000, b"!" * 1_500)
        part = server.part(1, 1, last=True)
        body = compress(part[4:])
        assert body is not None
        server.say(encode_head(1, 1, last=True, deflated=True) + body)
        dot = server.core.replica.get(2)
        assert isinstance(dot, Dot)
        assert dot.data == bytes(1_000) + b"!" * 1_500 + bytes(500)

    @pytest.mark.ledger("MSG-01")
    @pytest.mark.parametrize(
        "content", [b"x" * 65_537, "x" * 65_535, object(), {1: 2}, float("nan")], ids=len_of
    )
    def test_what_is_no_message_or_too_long_is_refused_and_nothing_is_sent(
        self, server: Server, content: Any
    ) -> None:
        server.connect()
        with pytest.raises((ValueError, TypeError)):
            server.core.send(content)
        assert (server.taken(frames.Message), server.core.status) == ([], "open")

    def test_each_says_the_newest_tick_that_was_applied(self, server: Server) -> None:
        server.connect()
        server.update(dt=5)
        server.core.send("x")
        server.drain()
        assert server.frames == [frames.Message("x", 15)]

    def test_bytes_are_counted_by_what_they_are_for(self, server: Server) -> None:
        server.connect()
        server.core.send("four")
        server.core.send("x", unreliable=True)
        sent, received = server.core.stats.sent, server.core.stats.received
        assert sent["message"] == 1 + 1 + 1 + len('"four"')
        assert sent["unreliable"] == 1 + 1 + 1 + len('"x"')
        assert sent["hello"] > 32
        assert received["updatepart"] > 10


class TestLeaving:
    def test_it_says_so_before_it_closes(self, server: Server) -> None:
        server.connect()
        server.core.leave()
        server.drain()
        assert server.frames == [frames.Leave()]
        assert server.orders == [outputs.CloseTransport(1000, "")]
        assert server.happened() == []
        assert server.core.next_timer() is None

    def test_what_comes_after_it_means_nothing(self, server: Server) -> None:
        server.connect()
        server.core.leave()
        server.drain()
        server.say(frames.Message("late"))
        server.closed(4008)
        assert server.happened() == []

    @pytest.mark.parametrize("opened", [False, True])
    def test_while_connecting(self, server: Server, opened: bool) -> None:
        server.start()
        if opened:
            server.opened()
        server.core.leave()
        server.drain()
        assert server.orders[-1] == outputs.CloseTransport(1000, "")
        assert server.core.status == "closed"

    def test_while_waiting_to_come_back(self, server: Server) -> None:
        server.connect()
        server.closed(ABNORMAL)
        server.core.leave()
        server.drain()
        assert server.core.next_timer() is None


class TestBadServers:
    @pytest.mark.parametrize(
        "frame",
        [
            b"",
            bytes([5]),
            bytes([5, 0]) + b"{",
            bytes([5, 9]) + b"1",
            bytes([4]),
            bytes([4, 0x80, 1, 1]),
            bytes([4, 1, 0, 0]),
            bytes([4, 1, 1, 1, 9, 1, 1]),
            bytes([2, 1]),
            bytes([17, 0, 0, 0]),
        ],
        ids=lambda frame: frame.hex() or "empty",
    )
    def test_bytes_that_are_no_frame_close_4000_and_are_reported(self, server: Server, frame: bytes) -> None:
        server.connect((2, Dot(x=1)))
        server.say(frame)
        [order] = server.orders
        assert isinstance(order, outputs.CloseTransport)
        assert order.code == CloseCode.PROTOCOL
        assert len(order.reason.encode()) <= 123
        [closed] = server.happened()
        assert isinstance(closed, outputs.Closed)
        assert closed.error.code == CloseCode.PROTOCOL

    def test_an_unknown_frame_is_from_the_future_and_ignored(self, server: Server) -> None:
        server.connect()
        server.say(bytes([200, 1, 2, 3]))
        assert (server.happened(), server.core.status) == ([], "open")

    @pytest.mark.parametrize(
        "frame", [frames.Message("x"), frames.Asleep(GENERATION, 1), bytes([4, 5, 0, 0])], ids=repr
    )
    def test_nothing_of_a_room_comes_before_its_welcome(
        self, server: Server, frame: frames.ServerFrame | bytes
    ) -> None:
        server.start()
        server.opened()
        server.say(frame)
        assert names(server.happened()) == ["Closed"]

    def test_a_welcome_that_nothing_asked_for(self, server: Server) -> None:
        server.connect()
        server.welcome()
        assert names(server.happened()) == ["Closed"]

    @pytest.mark.parametrize("other", [{"resumed": True}, {"asleep": True}, {"tick_rate": 0}], ids=repr)
    def test_a_first_welcome_cannot_go_on_from_anything(self, server: Server, other: dict[str, Any]) -> None:
        server.start()
        server.opened()
        server.welcome(**other)
        assert names(server.happened()) == ["Closed"]

    def test_a_delta_to_a_state_that_is_not_held(self, server: Server) -> None:
        server.connect((2, Dot(x=1)))
        server.closed(ABNORMAL)
        server.wait(0.25)
        server.opened()
        server.generation += 1
        server.welcome()
        server.change(2, Dot(x=2), "x")
        server.happened()
        server.update()
        assert names(server.happened()) == ["Closed"]
        two = server.core.replica.get(2)
        assert isinstance(two, Dot)
        assert two.x == 1

    @pytest.mark.parametrize(("id", "number"), [(0, 0), (1, 0), (2, 2), (2, 4), (2**31, 0)])
    def test_an_entity_under_an_id_of_another_kind(self, server: Server, id: int, number: int) -> None:
        server.connect()
        cls: Any = SCHEMA.classes[number]
        fields = {"x": 1} if number < 2 else {}
        server.enter(id, cls(**fields), number)
        server.update()
        assert names(server.happened()) == ["Closed"]
