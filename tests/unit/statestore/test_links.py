"""What waits for a peer that does not read, and the bound on what it sends."""

from __future__ import annotations

from playhall.engine.codes import ErrorCode
from playhall_statestore.links import QUEUE_BYTES, WatchLink, WriteLink
from playhall_statestore.model import Outcome, Status
from playhall_statestore.requests import Ack, Acks, Refused, RoomNews


def ack(version: int, outcome: Outcome = Outcome.DURABLE, generation: int = 1) -> Ack:
    return Ack("room", generation, outcome, version)


def waiting(*acks: Ack) -> list[Ack]:
    link = WriteLink(1, "h1")
    for one in acks:
        link.push(Acks(1, (one,)))
    return link.take()[0]


def test_a_newer_word_takes_the_place_of_an_older() -> None:
    assert waiting(ack(1), ack(2)) == [ack(2)]


def test_a_fence_is_the_last_word() -> None:
    fence = ack(0, Outcome.FENCED)
    assert waiting(ack(1), fence, ack(2)) == [fence]


def test_generations_are_told_apart() -> None:
    assert waiting(ack(5), ack(1, generation=2)) == [ack(5), ack(1, generation=2)]


def test_what_was_taken_is_gone() -> None:
    link = WriteLink(1, "h1")
    link.push(Acks(1, (ack(1),), hello=True))
    assert link.take() == ([ack(1)], True)
    assert link.take() == ([], False)


def test_a_stream_is_read_up_to_4_mb() -> None:
    link = WriteLink(1, "h1")
    link.queued(QUEUE_BYTES - 1)
    assert link.has_room
    link.queued(1)
    assert not link.has_room
    link.committed(1)
    assert link.has_room


def test_the_first_error_is_the_reason() -> None:
    link = WriteLink(1, "h1")
    link.end(Refused(ErrorCode.FULL))
    link.end(Refused(ErrorCode.UNAVAILABLE))
    assert link.error == Refused(ErrorCode.FULL)


def test_a_router_that_does_not_read_costs_one_entry_a_room() -> None:
    link = WatchLink(1)
    for generation in range(100):
        link.push(RoomNews("room", Status.LIVE, generation))
    link.push(RoomNews("other", Status.NEW))
    link.forget("other")
    assert link.take() == [RoomNews("room", Status.LIVE, 99)]
    assert link.take() == []
