"""What routers are told, and when the shard's clock is due."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from playhall.api.statestore.v1 import statestore_pb2 as pb
from playhall_statestore.model import End, Outcome, Status
from playhall_statestore.requests import Hello, News, Output, RoomNews
from tests.support.shard_bench import OTHER, ROOM, ShardBench, of, part


def told(outputs: Sequence[Output], watcher: int = 1) -> list[Status]:
    return [out.room.status for out in outputs if isinstance(out, News) and out.watcher == watcher]


def test_numbers_are_those_of_the_contract() -> None:
    for ours, theirs, prefix in (
        (End, pb.End, "END_"),
        (Status, pb.RoomStatus.Status, "STATUS_"),
        (Outcome, pb.RoomAck.Outcome, "OUTCOME_"),
    ):
        for member in ours:
            assert theirs.Value(prefix + member.name) == member.value


def test_a_watch_is_answered_with_who_owns_the_room_now() -> None:
    bench = ShardBench()
    assert bench.shard.watch(1, ROOM, bench.now) == [News(1, RoomNews(ROOM, Status.NEW))]
    generation = bench.grant().generation
    live = RoomNews(ROOM, Status.LIVE, generation, "h1", "h1:1", deploy_seq=1)
    assert bench.shard.watch(2, ROOM, bench.now) == [News(2, live)]


def test_watchers_hear_of_the_whole_life_of_a_room() -> None:
    bench = ShardBench()
    bench.shard.watch(1, ROOM, bench.now)
    outputs = list(bench.do(bench.open_request("h1")))
    stream, _ = bench.connect("h1")
    bench.disconnect(stream)
    outputs += bench.pass_time(1, step=0.1)
    outputs += bench.do(bench.open_request("h2"))
    generation = bench.room().generation
    outputs += bench.do(bench.close_request(generation, host="h2"))
    outputs += bench.do(bench.open_request("h3"))
    outputs += bench.do(bench.close_request(bench.room().generation, kind=End.SLEPT, host="h3"))
    assert told(outputs) == [
        Status.LIVE, Status.DEAD, Status.LIVE, Status.CLOSED, Status.LIVE, Status.ASLEEP,
    ]  # fmt: skip


def test_a_host_that_is_heard_again_is_live_again() -> None:
    bench = ShardBench()
    generation = bench.grant().generation
    bench.connect("h1")
    bench.shard.watch(1, ROOM, bench.now)
    assert told(bench.pass_time(7)) == [Status.DEAD]
    bench.connect("h1", (ROOM, generation))
    assert told(bench.pass_time(0.1)) == [Status.LIVE]


def test_a_stream_that_opens_while_a_grant_is_committed_is_what_the_room_is_heard_by() -> None:
    bench = ShardBench()
    bench.shard.apply(bench.open_request("h1"), bench.now)
    bench.shard.stream_opened(7, "h1", bench.now)
    bench.commit()
    bench.shard.stream_closed(7, "h1", bench.now)
    bench.pass_time(0.3)
    assert bench.status().status is Status.DEAD


def test_news_leaves_after_the_commit_only() -> None:
    bench = ShardBench()
    bench.shard.watch(1, ROOM, bench.now)
    bench.shard.apply(bench.open_request(), bench.now)
    assert bench.status().status is Status.NEW
    assert told(bench.commit()) == [Status.LIVE]


def test_who_stopped_watching_hears_nothing() -> None:
    bench = ShardBench()
    for watcher in (1, 2, 3):
        bench.shard.watch(watcher, ROOM, bench.now)
    bench.shard.unwatch(1, ROOM)
    bench.shard.watcher_left(2)
    outputs = bench.do(bench.open_request())
    assert [news.watcher for news in of(outputs, News)] == [3]


def test_rooms_nobody_watches_make_no_news() -> None:
    bench = ShardBench()
    bench.shard.watch(1, OTHER, bench.now)
    assert of(bench.do(bench.open_request()), News) == []


def test_asleep_says_which_version_clients_hold() -> None:
    bench = ShardBench()
    generation = bench.grant().generation
    stream, _ = bench.connect("h1")
    bench.write(part(stream, generation, 5, base=True))
    bench.close(generation, 5, End.SLEPT)
    assert bench.status() == RoomNews(ROOM, Status.ASLEEP, generation, version=5, deploy_seq=1)


@pytest.mark.parametrize(("after_s", "due_s"), [(0.0, 6.0), (7.0, 59.0)])
def test_the_clock_is_due_when_silence_means_something(after_s: float, due_s: float) -> None:
    bench = ShardBench()
    bench.grant()
    bench.connect("h1")
    bench.pass_time(after_s)
    assert bench.shard.next_timer(bench.now) - bench.now.mono == pytest.approx(due_s)


def test_the_clock_is_not_due_where_nobody_holds_anything() -> None:
    bench = ShardBench()
    bench.close(bench.grant().generation)
    assert bench.shard.next_timer(bench.now) == math.inf


def test_a_second_stream_takes_the_place_of_the_first() -> None:
    bench = ShardBench()
    generation = bench.grant().generation
    first, _ = bench.connect("h1")
    assert bench.shard.stream_opened(99, "h1", bench.now) == first
    bench.do(Hello(99, "h1", None, ((ROOM, generation),)))
    bench.shard.stream_closed(first, "h1", bench.now)
    bench.pass_time(1)
    assert bench.status().status is Status.LIVE


def test_rooms_wait_for_an_object_until_it_is_noted() -> None:
    bench = ShardBench()
    generation = bench.grant().generation
    stream, _ = bench.connect("h1")
    assert bench.shard.unstored == set()
    bench.write(part(stream, generation, 1, base=True))
    assert bench.shard.unstored == {ROOM}
    bench.restart()
    assert bench.shard.unstored == {ROOM}
