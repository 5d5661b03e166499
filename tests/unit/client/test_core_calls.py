"""Calls in the client's state machine: numbers, replies, and the ends of calls that get none."""

from __future__ import annotations

from typing import Any

import pytest

from playhall.client import PlayhallError, outputs
from playhall.client.core import LAST_CALL
from playhall.engine import frames
from playhall.engine.codes import CloseCode
from tests.support.scripted_server import Server, names


@pytest.fixture
def server() -> Server:
    server = Server()
    server.connect()
    return server


def call(server: Server, content: Any = None, *, name: str = "buy", timeout: float = 10.0) -> int:
    number = server.core.call(name, {} if content is None else content, server.now, timeout)
    server.drain()
    return number


def ends(server: Server) -> list[tuple[int, Any]]:
    """How calls have ended since the last time: with a content, or an error's code."""
    found: list[tuple[int, Any]] = []
    for event in server.happened():
        match event:
            case outputs.CallAnswered(number, content):
                found.append((number, content))
            case outputs.CallFailed(number, error):
                found.append((number, error.code))
    return found


def test_a_call_says_what_the_client_had_seen(server: Server) -> None:
    call(server, {"item": "ring"})
    assert server.taken(frames.Call) == [frames.Call(0, server.core.tick, "buy", {"item": "ring"})]
    assert server.core.stats.sent["call"] > 0


def test_replies_belong_to_their_calls_in_whatever_order(server: Server) -> None:
    one, two, three = call(server), call(server), call(server)
    server.say(frames.Reply(three, {"n": 3}))
    server.say(frames.ReplyError(one, 422, "no"))
    server.say(frames.Reply(two, b"2"))
    assert ends(server) == [(three, {"n": 3}), (one, 422), (two, b"2")]
    assert set(server.core.stats.received) >= {"reply"}
    server.say(frames.Reply(two, "again"))
    server.say(frames.Reply(77, "of nobody"))
    assert ends(server) == []


def test_numbers_begin_anew_with_each_connection_and_not_with_a_reset(server: Server) -> None:
    assert [call(server), call(server)] == [0, 1]
    server.say(frames.Reset(1, 4008))
    server.welcome(resumed=False)
    server.state()
    assert call(server) == 2
    server.closed(4008)
    server.wait(1)
    server.opened()
    server.welcome()
    server.state()
    assert call(server) == 0
    assert LAST_CALL == 2**32 - 1


@pytest.mark.ledger("CALL-13")
def test_a_call_is_given_up_after_its_time(server: Server) -> None:
    slow, quick = call(server, timeout=10.0), call(server, timeout=0.5)
    server.wait(0.4)
    assert ends(server) == []
    server.wait(0.2)
    assert ends(server) == [(quick, 0)]
    server.say(frames.Reply(quick, 1))
    server.say(frames.Pong(1, None, 0))
    server.wait(9.5)
    assert ends(server) == [(slow, 0)]


@pytest.mark.parametrize("code", [4008, 1006, 4006, 4011, 4007])
def test_calls_fail_before_the_loss_of_the_connection_is_told(code: int, server: Server) -> None:
    call(server)
    server.closed(code)
    told = server.happened()
    assert names(told)[0] == "CallFailed"
    assert names(told)[1] in ("Disconnected", "Closed")
    [failed] = [event for event in told if isinstance(event, outputs.CallFailed)]
    assert failed.error.code == 0


def test_calls_fail_when_the_room_behind_the_socket_is_gone(server: Server) -> None:
    number = call(server)
    server.say(frames.Reset(1, CloseCode.ROOM_MOVED))
    assert ends(server) == [(number, 0)]
    late = call(server)
    assert ends(server) == [(late, 0)]
    assert server.taken(frames.Call)[1:] == []


def test_calls_fail_when_the_client_leaves(server: Server) -> None:
    number = call(server)
    server.core.leave()
    server.drain()
    assert ends(server) == [(number, 0)]


def test_a_call_that_nobody_wants_any_more_ends_in_silence(server: Server) -> None:
    number = call(server)
    server.core.forget_call(number)
    server.say(frames.Reply(number, 1))
    server.wait(11)
    assert ends(server) == []


@pytest.mark.ledger("CALL-17")
def test_it_cannot_call_before_it_has_joined_nor_once_it_is_over() -> None:
    server = Server()
    server.start()
    server.opened()
    server.welcome()
    with pytest.raises(PlayhallError, match="connecting, and cannot call") as raised:
        call(server)
    assert raised.value.code == 0
    server.state()
    call(server)
    server.closed(4006)
    with pytest.raises(PlayhallError, match="closed, and cannot call"):
        call(server)


def test_what_cannot_be_sent_is_the_callers_error_and_uses_no_number(server: Server) -> None:
    for content in (float("nan"), "x" * 70_000):
        with pytest.raises(ValueError, match=r"\S"):
            call(server, content)
    with pytest.raises(TypeError):
        call(server, object())
    assert call(server) == 0


def test_a_reply_before_a_welcome_breaks_the_protocol() -> None:
    server = Server()
    server.start()
    server.opened()
    server.say(frames.Reply(0, 1))
    assert isinstance(server.orders[-1], outputs.CloseTransport)
    assert server.orders[-1].code == CloseCode.PROTOCOL
