"""Open, Close, Strike: who may write a room."""

from __future__ import annotations

import pytest

from playhall.engine.codes import ErrorCode
from playhall_statestore.model import End, Mark, Outcome
from playhall_statestore.requests import (
    AbandonGrant,
    Acks,
    AlreadyOpen,
    Answer,
    Backoff,
    Closed,
    Granted,
    Refused,
    Reply,
    Struck,
)
from tests.support.shard_bench import EPOCH, ROOM, ShardBench, of, part


def refusal(answer: Answer) -> ErrorCode:
    assert isinstance(answer, Refused), answer
    return answer.code


def with_state(bench: ShardBench) -> tuple[int, int]:
    """A room of h1 with a base at version 1: its stream and generation."""
    granted = bench.grant()
    stream, _ = bench.connect("h1", (ROOM, granted.generation))
    bench.write(part(stream, granted.generation, 1, base=True))
    return stream, granted.generation


def test_first_open_of_a_room_that_never_was() -> None:
    granted = ShardBench().grant()
    assert granted == Granted(
        generation=EPOCH << 32 | 1,
        version=0,
        tick=0,
        saved_at_ms=0,
        elapsed_ms=0,
        prior_end=End.NEVER,
        alarm_ms=None,
        base=None,
        upto=Mark(0, 0),
    )


def test_the_same_open_id_gets_the_same_grant_also_after_a_restart() -> None:
    bench = ShardBench()
    first = bench.grant(open_id="once")
    bench.restart()
    bench.pass_time(3)
    assert bench.grant(open_id="once") == first


def test_a_heard_holder_keeps_the_room() -> None:
    bench = ShardBench()
    granted = bench.grant("h1")
    bench.connect("h1")
    assert bench.open("h2") == AlreadyOpen(granted.generation, "h1", "h1:1")


@pytest.mark.parametrize(("wait_s", "taken"), [(0.24, False), (0.26, True)])
def test_a_holder_whose_stream_broke_keeps_it_for_250_ms(wait_s: float, taken: bool) -> None:
    bench = ShardBench()
    bench.grant("h1")
    stream, _ = bench.connect("h1")
    bench.disconnect(stream)
    bench.pass_time(wait_s)
    assert isinstance(bench.open("h2"), Granted) is taken


@pytest.mark.parametrize(("wait_s", "taken"), [(5.9, False), (6.1, True)])
def test_a_silent_holder_keeps_it_for_6_s(wait_s: float, taken: bool) -> None:
    bench = ShardBench()
    bench.grant("h1")
    bench.connect("h1")
    bench.pass_time(wait_s)
    assert isinstance(bench.open("h2"), Granted) is taken


@pytest.mark.parametrize(("wait_s", "taken"), [(5.9, False), (6.1, True)])
def test_after_a_start_every_recorded_holder_is_heard_for_6_s(wait_s: float, taken: bool) -> None:
    bench = ShardBench()
    bench.grant("h1")
    bench.restart()
    bench.pass_time(wait_s)
    assert isinstance(bench.open("h2"), Granted) is taken


def test_a_new_grant_fences_the_old_holder_at_once() -> None:
    bench = ShardBench()
    old = bench.grant("h1")
    stream, _ = bench.connect("h1")
    bench.pass_time(7)
    (fence,) = of(bench.do(bench.open_request("h2")), Acks)
    assert fence.stream == stream
    assert [(ack.generation, ack.outcome) for ack in fence.acks] == [(old.generation, Outcome.FENCED)]


def test_two_opens_in_one_commit_have_one_winner() -> None:
    bench = ShardBench()
    replies = of(bench.do(bench.open_request("h1"), bench.open_request("h2")), Reply)
    assert [type(reply.answer) for reply in replies] == [Granted, AlreadyOpen]


def test_no_generation_is_given_twice_across_crashes() -> None:
    bench = ShardBench()
    given = set()
    for _ in range(3):
        given.add(bench.grant(uid=ROOM).generation)
        bench.restart()
        bench.pass_time(7)
    assert len(given) == 3


def test_a_grant_that_was_not_committed_was_never_given() -> None:
    bench = ShardBench()
    bench.shard.apply(bench.open_request("h1"), bench.now)
    bench.restart()
    assert bench.grant("h2").prior_end is End.NEVER


def test_a_late_open_does_not_take_the_room_from_its_successor() -> None:
    bench = ShardBench()
    first = bench.grant("h1", open_id="first")
    bench.close(first.generation)
    bench.grant("h1", open_id="second")
    assert refusal(bench.open("h1", open_id="first")) is ErrorCode.FENCED


def test_a_host_that_lost_its_grant_on_the_way_can_ask_again() -> None:
    bench = ShardBench()
    lost = bench.grant("h1")
    bench.connect("h1")
    assert bench.grant("h1").generation > lost.generation


def test_an_older_build_is_refused_and_a_newer_one_counts() -> None:
    bench = ShardBench()
    bench.close(bench.grant(deploy_seq=2).generation)
    assert refusal(bench.open(deploy_seq=1)) is ErrorCode.STALE_BUILD
    bench.close(bench.grant(deploy_seq=3).generation)
    assert refusal(bench.open(deploy_seq=2)) is ErrorCode.STALE_BUILD


def test_state_that_the_registry_knows_and_nobody_has_is_missing() -> None:
    bench = ShardBench()
    assert refusal(bench.open(has_state=True)) is ErrorCode.STATE_MISSING
    bench.close(bench.grant().generation)
    assert refusal(bench.open(has_state=True)) is ErrorCode.STATE_MISSING


def test_a_room_belongs_to_its_project() -> None:
    bench = ShardBench()
    bench.close(bench.grant().generation)
    assert refusal(bench.open(project="other")) is ErrorCode.FORBIDDEN


def test_a_full_disk_takes_no_new_room_and_keeps_the_known() -> None:
    bench = ShardBench()
    bench.close(bench.grant().generation)
    bench.shard.takes_new_rooms = False
    assert isinstance(bench.open(), Granted)
    assert refusal(bench.open(uid="01ARZ3NDEKTSV4RRFFQ69G5FAX")) is ErrorCode.FULL


def test_the_next_generation_gets_what_was_written_and_how_it_ended() -> None:
    bench = ShardBench()
    stream, generation = with_state(bench)
    bench.write(part(stream, generation, 2, tick=25, alarm_ms=5_000))
    saved_ms = bench.now.wall_ms
    bench.pass_time(7)
    granted = bench.grant("h2")
    assert bench.stored(granted) == [b"%d.1" % generation, b"%d.2" % generation]
    assert (granted.version, granted.tick, granted.saved_at_ms) == (2, 25, saved_ms)
    assert (granted.prior_end, granted.alarm_ms) == (End.CRASHED, 5_000)
    assert granted.elapsed_ms == 7_000  # since its last word


def test_a_room_that_stops_keeps_the_alarm_of_its_last_record() -> None:
    bench = ShardBench()
    stream, generation = with_state(bench)
    bench.write(part(stream, generation, 2, alarm_ms=5_000))
    assert bench.answer(bench.close_request(generation, 2, End.STOPPED)) == Closed()
    bench.restart()
    assert bench.room().alarm_ms == 5_000
    assert bench.grant("h2").alarm_ms == 5_000


def test_a_close_ends_the_generation_in_one_commit() -> None:
    bench = ShardBench()
    _, generation = with_state(bench)
    request = bench.close_request(generation, 1, End.SLEPT)
    assert bench.answer(request) == Closed()
    bench.restart()
    bench.pass_time(2)
    room = bench.room()
    assert (room.held, room.end, room.alarm_ms) == (False, End.SLEPT, None)
    assert bench.grant("h2").elapsed_ms == 2_000


def test_close_is_idempotent_and_final() -> None:
    bench = ShardBench()
    stream, generation = with_state(bench)
    assert bench.close(generation, 1) == Closed()
    assert bench.close(generation, 1) == Closed()
    (ack,) = bench.write(part(stream, generation, 2))
    assert ack.outcome is Outcome.FENCED
    assert bench.room().saved.at == Mark(generation, 1)


def test_close_waits_for_what_it_says_was_written() -> None:
    bench = ShardBench()
    stream, generation = with_state(bench)
    assert refusal(bench.close(generation, 2)) is ErrorCode.UNAVAILABLE
    bench.write(part(stream, generation, 2))
    assert refusal(bench.close(generation, 2)) is ErrorCode.UNAVAILABLE  # its base is still on its way
    bench.write(part(stream, generation, 2, base=True))
    assert bench.close(generation, 2) == Closed()


def test_a_room_that_stopped_needs_no_last_base() -> None:
    bench = ShardBench()
    stream, generation = with_state(bench)
    bench.write(part(stream, generation, 2))
    assert bench.close(generation, 2, End.STOPPED) == Closed()


def test_only_the_current_generation_of_its_host_can_be_closed() -> None:
    bench = ShardBench()
    first = bench.grant("h1").generation
    assert refusal(bench.close(first, host="h2")) is ErrorCode.FENCED
    bench.pass_time(7)
    bench.grant("h2")
    assert refusal(bench.close(first)) is ErrorCode.FENCED


def test_a_generation_silent_for_60_s_is_closed_as_a_crash() -> None:
    bench = ShardBench()
    _, generation = with_state(bench)
    last_word_ms = bench.now.wall_ms
    bench.pass_time(65)
    assert bench.room().held
    bench.pass_time(2)
    room = bench.room()
    assert (room.held, room.end, room.ended_ms) == (False, End.CRASHED, last_word_ms)
    assert refusal(bench.close(generation, 1)) is ErrorCode.FENCED


def test_a_holder_that_comes_back_in_time_is_not_closed() -> None:
    bench = ShardBench()
    _, generation = with_state(bench)
    bench.pass_time(50)
    _, hello = bench.connect("h1", (ROOM, generation))
    assert hello.acks[0].outcome is Outcome.DURABLE
    bench.pass_time(20)
    assert bench.room().held


def test_an_abandoned_grant_leaves_the_room_as_it_was() -> None:
    bench = ShardBench()
    _, generation = with_state(bench)
    bench.close(generation, 1)
    granted = bench.grant("h2", open_id="again")
    bench.do(AbandonGrant(ROOM, granted.generation))
    assert not bench.room().held
    again = bench.grant("h2", open_id="again")
    assert (again.prior_end, again.version) == (End.HIBERNATED, 1)


def test_three_strikes_in_a_minute_make_opens_wait() -> None:
    bench = ShardBench()
    for count in (1, 2, 3):
        generation = bench.grant().generation
        assert bench.strike(generation) == Struck(count)
        assert bench.strike(generation) == Struck(count)  # a generation counts once
        bench.close(generation, kind=End.STOPPED)
    assert bench.open() == Backoff(1_000)
    bench.restart()
    bench.pass_time(0.5)
    assert bench.open() == Backoff(500)
    bench.pass_time(0.5)
    assert isinstance(bench.open(), Granted)


def test_a_strike_needs_a_room_and_a_generation_that_was() -> None:
    bench = ShardBench()
    assert refusal(bench.strike(1)) is ErrorCode.UNKNOWN
    assert refusal(bench.strike(bench.grant().generation + 1)) is ErrorCode.INVALID
