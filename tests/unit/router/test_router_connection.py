"""A client connection, as the router's state machine sees it (docs/protocol/flow.md)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhall.engine import frames
from playhall.engine.codes import CloseCode
from playhall_router.clock import RoomClock
from playhall_router.connection import (
    Admit,
    Close,
    Connection,
    Forward,
    Join,
    Leave,
    Output,
    Send,
    State,
    Want,
    Welcome,
    close_reason,
)
from playhall_router.tokens import Identity

HELLO = frames.Hello(1, "dots", "main", "", "", bytes(16), bytes(16), 0, "test 1")
NOTHING = frames.Resume(0, 0, 0, full=False, held=())
ANN = Identity("ann", b"", "guest token")
MESSAGE = frames.encode_client(frames.Message("hi", 3))


def encoded(frame: Any) -> bytes:
    return frames.encode_client(frame)


class Client:
    """Drives one connection."""

    def __init__(self) -> None:
        self.now = 100.0
        self.connection = Connection(self.now)
        self.outputs: list[Output] = []

    def take(self) -> list[Output]:
        self.outputs += self.connection.take_outputs()
        outputs, self.outputs = self.outputs, []
        return outputs

    def send(self, *sent: Any) -> list[Output]:
        for frame in sent:
            self.connection.received(frame if isinstance(frame, bytes) else encoded(frame), self.now)
        return self.take()

    def pass_time(self, seconds: float) -> list[Output]:
        self.now += seconds
        self.connection.timer(self.now)
        return self.take()

    def identify(self) -> None:
        self.connection.authenticated(ANN)
        self.connection.resolved("default", self.now)

    def joined(self, generation: int = 7, *, resumed: bool = False) -> list[Output]:
        clock = RoomClock(20, 40, 0, self.now)
        self.connection.joined(Welcome(generation, 3, 40, 128, 20, resumed), clock)
        return self.take()

    def join(self) -> None:
        """From nothing to JOINED."""
        self.send(HELLO, NOTHING)
        self.identify()
        self.connection.attach()
        self.joined()
        assert self.connection.state is State.JOINED


@pytest.fixture
def client() -> Client:
    return Client()


def sent(outputs: list[Output]) -> list[frames.ServerFrame | None]:
    return [frames.decode_server(output.data) for output in outputs if isinstance(output, Send)]


def code(outputs: list[Output]) -> int | None:
    return next((output.code for output in outputs if isinstance(output, Close)), None)


@pytest.mark.ledger("RTR-02")
def test_a_client_comes_in(client: Client) -> None:
    assert client.send(HELLO) == [Admit(HELLO)]
    assert client.send(NOTHING) == []
    client.identify()
    assert client.take() == [Want()]
    client.connection.waking()
    client.connection.waking()
    assert sent(client.take()) == [frames.Waking()]
    client.connection.attach()
    assert client.take() == [Join(encoded(NOTHING)[1:], was_joined=False)]
    (welcome,) = sent(client.joined())
    assert welcome == frames.Welcome(
        7, 3, 40, 128, resumed=False, asleep=False, tick_rate=20, player="ann", room="main", type="default",
        token="guest token",
    )  # fmt: skip
    assert client.send(MESSAGE) == [Forward(MESSAGE)]


def test_the_room_is_found_before_resume_comes(client: Client) -> None:
    client.send(HELLO)
    client.identify()
    assert client.take() == [Want()]
    client.connection.attach()
    assert client.take() == []
    assert client.send(NOTHING) == [Want()]
    client.connection.attach()
    assert isinstance(client.take()[0], Join)


@pytest.mark.ledger("CODE-01", "RTR-11")
@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\x00",
        b"\x08",
        b"\xff",
        encoded(NOTHING),
        encoded(frames.Ping(1)),
        MESSAGE,
        frames.encode_server(frames.Waking()),
        b"\x01",
        b"\x01\x02\x00",
        encoded(replace(HELLO, version=2)),
    ],
    ids=repr,
)
def test_the_first_frame_is_a_hello(client: Client, frame: bytes) -> None:
    assert code(client.send(frame)) == CloseCode.PROTOCOL
    assert client.connection.state is State.CLOSED


def test_hello_comes_once(client: Client) -> None:
    client.send(HELLO)
    assert code(client.send(HELLO)) == CloseCode.PROTOCOL


@pytest.mark.parametrize(
    "frame", [MESSAGE, encoded(frames.Call(1, None, "buy", None)), b"\x0c\x00", b"\x0e\x01"]
)
def test_nothing_for_the_room_comes_before_welcome(client: Client, frame: bytes) -> None:
    client.send(HELLO, NOTHING)
    assert code(client.send(frame)) == CloseCode.PROTOCOL


def test_hello_and_resume_come_within_ten_seconds(client: Client) -> None:
    client.send(HELLO)
    assert client.pass_time(9.9) == []
    assert code(client.pass_time(0.1)) == CloseCode.PROTOCOL


def test_silence_closes(client: Client) -> None:
    client.join()
    assert client.pass_time(14.9) == []
    client.send(frames.Ping(1))
    assert client.pass_time(14.9) == []
    outputs = client.pass_time(0.2)
    assert outputs[0] == Leave(clean=False)
    assert code(outputs) == CloseCode.LIMIT_EXCEEDED


@pytest.mark.ledger("RECO-12", "CODE-11")
def test_a_room_that_does_not_come_closes_4010_after_ten_seconds(client: Client) -> None:
    client.send(HELLO, NOTHING)
    client.identify()
    client.take()
    client.pass_time(9.9)
    assert client.connection.state is State.WAIT
    assert code(client.pass_time(0.1)) == CloseCode.WAKE_TIMEOUT


@pytest.mark.ledger("RECO-08", "CODE-09")
def test_a_room_that_does_not_come_back_closes_4008(client: Client) -> None:
    client.join()
    client.connection.lost(client.now)
    reset = frames.Resume(1, 7, 3, full=False, held=())
    assert sent(client.take()) == [frames.Reset(1, CloseCode.ROOM_MOVED)]
    client.send(reset)
    for _ in range(9):
        client.send(frames.Ping(1))
        assert code(client.pass_time(1.0)) is None
    assert code(client.pass_time(1.1)) == CloseCode.ROOM_MOVED


@pytest.mark.ledger("RECO-08")
def test_after_a_reset_all_is_discarded_up_to_the_resume(client: Client) -> None:
    client.join()
    client.connection.lost(client.now)
    assert [type(output) for output in client.take()] == [Send, Want]
    assert client.send(MESSAGE, frames.Message("lost too")) == []
    client.connection.attach()
    assert client.take() == []
    assert client.send(NOTHING) == []  # the resume of before: an older number
    resume = frames.Resume(1, 7, 9, full=False, held=(2, 5))
    assert client.send(resume) == [Want()]
    client.connection.attach()
    assert client.take() == [Join(encoded(resume)[1:], was_joined=True)]
    (welcome,) = sent(client.joined(8))
    assert isinstance(welcome, frames.Welcome)
    assert (welcome.generation, welcome.token) == (8, "")
    assert client.send(MESSAGE) == [Forward(MESSAGE)]


def test_after_resume_nothing_comes_before_the_next_welcome(client: Client) -> None:
    client.join()
    client.connection.lost(client.now)
    client.send(frames.Resume(1, 7, 9, full=False, held=()))
    assert code(client.send(MESSAGE)) == CloseCode.PROTOCOL


def test_resets_are_numbered_and_a_number_never_sent_is_refused(client: Client) -> None:
    client.join()
    for number in (1, 2, 3):
        client.connection.lost(client.now)
        assert sent(client.take())[0] == frames.Reset(number, CloseCode.ROOM_MOVED)
        client.send(frames.Resume(number, 7, 9, full=False, held=()))
        client.connection.attach()
        client.joined()
    assert code(client.send(frames.Resume(4, 7, 9, full=False, held=()))) == CloseCode.PROTOCOL


def test_resume_comes_once_for_each_reset(client: Client) -> None:
    client.send(HELLO, NOTHING)
    assert code(client.send(NOTHING)) == CloseCode.PROTOCOL


def test_a_join_that_is_lost_is_asked_again_and_the_client_hears_nothing(client: Client) -> None:
    client.send(HELLO, NOTHING)
    client.identify()
    client.connection.attach()
    client.take()
    client.connection.lost(client.now)
    assert client.take() == [Want()]
    client.connection.attach()
    assert client.take() == [Join(encoded(NOTHING)[1:], was_joined=False)]


def test_pings_are_answered_from_the_rooms_clock(client: Client) -> None:
    client.send(HELLO)
    assert sent(client.send(frames.Ping(5))) == [frames.Pong(5, None, 0)]
    client.send(NOTHING)
    client.identify()
    client.connection.attach()
    client.joined()
    client.now += 0.525  # 10.5 ticks of 20 a second
    assert sent(client.send(frames.Ping(6))) == [frames.Pong(6, 50, 128)]
    client.connection.lost(client.now)
    client.take()
    assert sent(client.send(frames.Ping(7))) == [frames.Pong(7, None, 0)]


@pytest.mark.ledger("CODE-06")
def test_messages_are_limited_to_120_a_second(client: Client) -> None:
    client.join()
    assert code(client.send(*[MESSAGE] * 120)) is None
    client.now += 0.5
    assert code(client.send(*[MESSAGE] * 60)) is None
    assert code(client.send(MESSAGE)) == CloseCode.LIMIT_EXCEEDED


@pytest.mark.ledger("CODE-06")
def test_a_second_of_the_largest_messages_passes_and_then_a_mebibyte_a_second(client: Client) -> None:
    client.join()
    largest = bytes([frames.MESSAGE]) + bytes(65_599)
    assert code(client.send(*[largest] * 120)) is None
    client.now += 2  # what is left of 8 MiB, and 2 more
    assert code(client.send(*[largest] * 39)) is None
    client.now += 1
    assert code(client.send(*[largest] * 16)) is None
    assert code(client.send(largest)) == CloseCode.LIMIT_EXCEEDED


@pytest.mark.ledger("CODE-06")
def test_inputs_have_a_limit_of_their_own(client: Client) -> None:
    client.join()
    client.now += 1  # the resume was one of them
    inputs = b"\x0c\x00\x01"
    client.send(*[MESSAGE] * 120)
    outputs = client.send(*[inputs] * 70)
    assert outputs == [Forward(inputs)] * 70
    assert code(client.send(inputs)) == CloseCode.LIMIT_EXCEEDED


@pytest.mark.ledger("CODE-06")
@pytest.mark.parametrize(
    ("kind", "limit"),
    [(1, 16_384), (5, 65_600), (10, 65_600), (14, 65_600), (15, 1024), (18, 49_152), (20, 1024)],
)
def test_a_frame_over_its_limit_closes_4005_before_it_is_read(client: Client, kind: int, limit: int) -> None:
    if kind != 1:
        client.join()
    assert code(client.send(bytes([kind]) + bytes(limit))) == CloseCode.LIMIT_EXCEEDED


def test_the_largest_message_passes(client: Client) -> None:
    client.join()
    largest = b"\x05" + bytes(65_599)
    assert client.send(largest) == [Forward(largest)]


@pytest.mark.ledger("CODE-13", "CODE-04", "CODE-05", "CODE-07")
def test_a_refusal_closes_with_its_code(client: Client) -> None:
    client.send(HELLO, NOTHING)
    client.connection.refuse(CloseCode.ROOM_FULL, "every seat is taken", 1500)
    assert client.take() == [Close(CloseCode.ROOM_FULL, "retry-after=1500;every seat is taken")]
    assert client.send(MESSAGE) == []
    client.connection.lost(client.now)
    client.connection.refuse(4001, "again")
    client.identify()
    assert client.pass_time(60) == []


def test_leave_is_a_clean_end(client: Client) -> None:
    client.join()
    assert client.send(frames.Leave()) == [Leave(clean=True), Close(1000, "")]


def test_a_drop_is_told_the_room(client: Client) -> None:
    client.join()
    client.connection.disconnected()
    assert client.take() == [Leave(clean=False)]
    client.connection.disconnected()
    assert client.take() == []


def test_asleep_pings_have_no_tick_and_a_message_wakes(client: Client) -> None:
    client.join()
    client.connection.asleep(12)
    assert sent(client.take()) == [frames.Asleep(7, 12)]
    for _ in range(10):
        client.now += 5
        assert sent(client.send(frames.Ping(1))) == [frames.Pong(1, None, 0)]
        assert client.pass_time(5) == []
    second = encoded(frames.Message("two"))
    assert client.send(MESSAGE, second) == [Want()]
    client.connection.waking()
    assert sent(client.take()) == [frames.Waking()]
    client.connection.attach()
    assert client.take() == [Join(encoded(NOTHING)[1:], was_joined=True)]
    outputs = client.joined(9)
    assert outputs[1:] == [Forward(MESSAGE), Forward(second)]


def test_what_is_held_while_a_room_wakes_is_bounded(client: Client) -> None:
    client.join()
    client.connection.asleep(12)
    big = b"\x05" + bytes(40_000)
    assert code(client.send(big)) is None
    assert code(client.send(big)) == CloseCode.LIMIT_EXCEEDED


@pytest.mark.parametrize("retry", [0, 250, 60_000])
@given(text=st.text(max_size=200))
def test_a_reason_fits_its_123_bytes(retry: int, text: str) -> None:
    reason = close_reason(text, retry)
    assert len(reason.encode()) <= 123
    prefix, separator, rest = reason.partition(";")
    if retry:
        assert (prefix, separator) == (f"retry-after={retry}", ";")
    else:
        rest = reason
    clean = text.encode("utf-8", "replace").decode()
    assert clean.startswith(rest)


# Whatever a client sends, in whatever order with what the router does: no exception, and one coded end.

_FRAMES = st.one_of(
    st.sampled_from(
        [
            encoded(HELLO),
            encoded(NOTHING),
            encoded(frames.Resume(1, 7, 3, full=True, held=())),
            encoded(frames.Ping(1)),
            encoded(frames.Leave()),
            MESSAGE,
            b"\x0c\x00\x01\x05",
            b"\x05" + bytes(70_000),
        ]
    ),
    st.binary(max_size=40),
    st.builds(
        lambda kind, body: bytes([kind]) + body, st.sampled_from([1, 15, 18, 20]), st.binary(max_size=60)
    ),
)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("frame"), _FRAMES),
        st.tuples(
            st.sampled_from(
                [
                    "identify",
                    "attach",
                    "joined",
                    "lost",
                    "asleep",
                    "waking",
                    "refuse",
                    "timer",
                    "disconnected",
                ]
            ),
            st.floats(0, 12),
        ),
    ),
    max_size=40,
)


def _step(client: Client, name: str, value: Any) -> None:
    connection, now = client.connection, client.now
    match name:
        case "frame":
            connection.received(value, now)
        case "identify":
            client.identify()
        case "attach":
            connection.attach()
        case "joined":
            connection.joined(Welcome(7, 1, 1, 0, 20, False), RoomClock(20, 1, 0, now))
        case "lost":
            connection.lost(now)
        case "asleep":
            connection.asleep(4)
        case "waking":
            connection.waking()
        case "refuse":
            connection.refuse(CloseCode.KICKED, "go")
        case "timer":
            client.now += value
            connection.timer(client.now)
        case "disconnected":
            connection.disconnected()


@settings(max_examples=60)
@given(steps=_STEPS, begin=st.booleans())
def test_whatever_comes_ends_in_a_code_or_goes_on(steps: list[tuple[str, Any]], begin: bool) -> None:
    client = Client()
    outputs: list[Output] = []
    if begin:
        client.join()
    for name, value in steps:
        before = client.connection.state
        _step(client, name, value)
        took = client.take()
        outputs += took
        if before is State.CLOSED:
            assert took == []
    closes = [output for output in outputs if isinstance(output, Close)]
    assert len(closes) <= 1
    if closes:
        assert client.connection.state is State.CLOSED
        assert outputs[-1] == closes[0]
        assert closes[0].code == 1000 or closes[0].code in set(CloseCode)
    joins = sum(isinstance(output, Join) for output in outputs)
    leaves = sum(isinstance(output, Leave) for output in outputs)
    assert leaves <= joins + (1 if begin else 0)
