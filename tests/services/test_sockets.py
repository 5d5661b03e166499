"""Sockets below the event loop: both twins, on real ones."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import picows
import pytest

from playhall.engine import backend
from playhall.engine.backend import Downlink, Intake, Lane
from playhall.engine.packing import Group, pack_down
from playhall.sockets import CAN_POLL, plain

pytestmark = pytest.mark.skipif(not CAN_POLL, reason="there is no epoll")


TWINS: list[Any] = [plain, *([import_module("playhall.sockets.native")] if backend.native else [])]
each_twin = pytest.mark.parametrize("twin", TWINS, ids=["plain", "native"][: len(TWINS)])


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


class Reading:
    """Keeps what was read."""

    def __init__(self, intake: Intake) -> None:
        self.intake = intake
        self.got: list[bytes] = []
        self.fails = False

    def buffer_updated(self, nbytes: int) -> None:
        if self.fails:
            raise ValueError("it fails")
        self.got.append(bytes(self.intake.buffer[:nbytes]))


class Polled:
    """A poller, and what it said."""

    def __init__(self, twin: Any) -> None:
        self.said: list[Any] = []
        self.intake = Intake(70_000, lambda: 1.0)
        self.poller = twin.Poller(self.intake, self.said.append, lambda *failed: self.said.append(failed))

    def add(self, ours: socket.socket) -> Reading:
        reading = Reading(self.intake)
        self.poller.add(ours.fileno(), reading)
        return reading


@each_twin
def test_each_pass_reads_once_from_each_socket_that_has_something(
    twin: Any, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    polled = Polled(twin)
    idle, _other = socket.socketpair()
    with idle, _other:
        ann, bob = polled.add(ours), polled.add(idle)
        assert polled.poller.read_all() == 0
        theirs.sendall(b"one")
        assert (polled.poller.read_all(), polled.poller.read_all()) == (1, 0)
        theirs.sendall(bytes(100_000))
        assert (polled.poller.read_all(), polled.poller.read_all()) == (1, 1)
        assert [len(read) for read in ann.got] == [3, 65_536, 34_464]
        assert (bob.got, polled.said) == ([], [])
    polled.poller.close()


@each_twin
def test_an_end_and_a_failure_are_told_once(twin: Any, pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    polled = Polled(twin)
    polled.add(ours).fails = True
    theirs.sendall(b"bad")
    assert (polled.poller.read_all(), polled.poller.read_all()) == (1, 0)
    [(fd, error)] = polled.said
    assert (fd, str(error)) == (ours.fileno(), "it fails")
    polled.said.clear()
    reading = polled.add(ours)
    theirs.sendall(b"bye")
    theirs.close()
    assert [polled.poller.read_all() for _ in range(3)] == [1, 1, 0]
    assert (reading.got, polled.said) == ([b"bye"], [ours.fileno()])
    polled.poller.remove(ours.fileno())
    polled.poller.close()


@each_twin
def test_a_socket_that_was_taken_out_in_the_same_pass_is_not_read(
    twin: Any, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    polled = Polled(twin)
    first, other = socket.socketpair()
    with first, other:
        readings = [polled.add(ours), polled.add(first)]
        for reading in readings:
            reading.buffer_updated = lambda n: [polled.poller.remove(s.fileno()) for s in (ours, first)]  # type: ignore[method-assign,assignment]
        theirs.sendall(b"x")
        other.sendall(b"y")
        assert polled.poller.read_all() == 1
        assert polled.poller.read_all() == 0
    polled.poller.close()


@each_twin
def test_what_cannot_be_waited_for_raises(twin: Any) -> None:
    with pytest.raises(OSError):
        Polled(twin).poller.add(9999, object())


class Below:
    """A transport, and picows' on it, that keep what they are to send."""

    def __init__(self, ours: socket.socket) -> None:
        self.ours = ours
        self.waiting = b""
        self.is_close_frame_sent = False

    def get_write_buffer_size(self) -> int:
        return len(self.waiting)

    def write(self, data: bytes) -> None:
        self.waiting += data

    def send(self, kind: picows.WSMsgType, frame: bytes) -> None:
        """As picows does it, where nothing waits and all fits."""
        assert kind is picows.WSMsgType.BINARY
        if not self.is_close_frame_sent:
            data = header(len(frame)) + frame
            sent = os.write(self.ours.fileno(), data) if not self.waiting else 0
            self.waiting += data[sent:]


def header(size: int) -> bytes:
    if size < 126:
        return bytes((0x82, size))
    if size < 65_536:
        return b"\x82\x7e" + size.to_bytes(2, "big")
    return b"\x82\x7f" + size.to_bytes(8, "big")


def received(theirs: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        got += theirs.recv(size - len(got))
    return got


@each_twin
@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536])
def test_a_message_goes_out_whole(twin: Any, pair: tuple[socket.socket, socket.socket], size: int) -> None:
    ours, theirs = pair
    below = Below(ours)
    frame = bytes(range(256)) * 256
    port = twin.Port(below, below, ours.fileno())
    assert port(frame[:size]) == 0
    assert received(theirs, len(header(size)) + size) == header(size) + frame[:size]


@each_twin
def test_what_does_not_fit_waits_and_nothing_overtakes_it(
    twin: Any, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    below = Below(ours)
    port = twin.Port(below, below, ours.fileno())
    frame = bytes(60_000)
    sent = 0
    while not port(frame):
        sent += 1
    whole = (sent + 1) * (4 + len(frame)) - len(below.waiting)
    received(theirs, whole)  # there is room again, but something waits before
    assert port(b"after") == len(below.waiting)
    assert below.waiting.endswith(b"\x82\x05after")
    below.waiting = b""
    assert port(b"again") == 0
    assert received(theirs, 7) == b"\x82\x05again"


@each_twin
def test_nothing_follows_a_close(twin: Any, pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    below = Below(ours)
    port = twin.Port(below, below, ours.fileno())
    below.is_close_frame_sent = True
    assert port(b"late") == 0
    below.is_close_frame_sent = False
    port.close()
    assert port(b"later") == 0
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        theirs.recv(1)


@each_twin
def test_a_lane_writes_by_its_port(twin: Any, pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    below = Below(ours)
    never: Any = pytest.fail
    lane = Lane(twin.Port(below, below, ours.fileno()), never, never, lambda now: None)
    lane.generation, lane.live, lane.spare = 7, True, 100_000
    downlink = Downlink({5: 300}, 1000)
    downlink.lanes[1] = lane
    body = b"body" * 50
    run = down([1], [b"\x05a"], body) + down([2, 1], [b"\x05no", b"\x05each"], b"")
    assert downlink.deliver(run, 1.0) == []
    expected = header(202) + b"\x05a" + body + header(5) + b"\x05each"
    assert received(theirs, len(expected)) == expected
    assert (lane.given, lane.drained) == (207, 207)


def down(links: list[int], heads: list[bytes], body: bytes) -> bytes:
    return pack_down(7, Group(links, heads, body, False))
