"""Hello, records, bases and ticks on a Write stream."""

from __future__ import annotations

import pytest

from playhall.engine.codes import ErrorCode
from playhall_statestore.model import MAX_PART_BYTES, Mark, Outcome
from playhall_statestore.requests import Acks, EndStream, Part, StreamClosed, Ticks
from tests.support.shard_bench import OTHER, ROOM, ShardBench, of, part


class Host:
    """h1 with one room, connected."""

    def __init__(self, *, base: bool = True) -> None:
        self.bench = ShardBench()
        self.generation = self.bench.grant().generation
        self.stream, _ = self.bench.connect("h1", (ROOM, self.generation))
        if base:
            self.write(1, base=True)

    def part(self, version: int, **options: object) -> Part:
        return part(self.stream, self.generation, version, **options)  # type: ignore[arg-type]

    def write(self, version: int, **options: object) -> tuple[Outcome, int] | None:
        acks = self.bench.write(self.part(version, **options))
        return (acks[0].outcome, acks[0].version) if acks else None

    def stored(self) -> list[bytes]:
        """What the next generation would get."""
        self.bench.pass_time(7)
        return self.bench.stored(self.bench.grant("h2"))

    def ended(self, *parts: Part) -> ErrorCode:
        (end,) = of(self.bench.do(*parts), EndStream)
        return end.error.code


def test_records_are_acknowledged_once_they_are_durable() -> None:
    host = Host()
    host.bench.shard.apply(host.part(2), host.bench.now)
    changes = host.bench.shard.take_changes()
    assert changes
    host.bench.volume.commit(changes)
    (acks,) = of(host.bench.shard.committed(host.bench.now), Acks)
    assert [(ack.outcome, ack.version) for ack in acks.acks] == [(Outcome.DURABLE, 2)]


def test_one_word_for_each_room_of_a_commit() -> None:
    host = Host()
    acks = host.bench.write(host.part(2), host.part(3), host.part(4))
    assert [ack.version for ack in acks] == [4]


def test_a_record_that_comes_again_is_acknowledged_again_and_kept_once() -> None:
    host = Host()
    host.write(2)
    assert host.write(2) == (Outcome.DURABLE, 2)
    assert host.stored() == [b"%d.1" % host.generation, b"%d.2" % host.generation]


def test_a_gap_wants_a_base_and_says_so_once() -> None:
    host = Host()
    host.write(2)
    assert host.write(4) == (Outcome.NEED_BASE, 0)
    assert host.write(5) is None
    assert host.write(5, base=True) == (Outcome.DURABLE, 5)
    assert host.write(6) == (Outcome.DURABLE, 6)
    assert host.stored() == [b"%d.5" % host.generation, b"%d.6" % host.generation]


def test_a_log_does_not_begin_without_a_base() -> None:
    host = Host(base=False)
    assert host.write(1) == (Outcome.NEED_BASE, 0)
    assert host.write(1, base=True) == (Outcome.DURABLE, 1)


def test_a_new_generation_goes_on_with_the_log_of_the_one_before() -> None:
    host = Host()
    host.write(2)
    host.bench.pass_time(7)
    generation = host.bench.grant("h2").generation
    stream, _ = host.bench.connect("h2", (ROOM, generation))
    host.bench.write(part(stream, generation, 1, prev=0))
    host.bench.disconnect(stream, "h2")
    host.bench.pass_time(1)
    texts = host.bench.stored(host.bench.grant("h3"))
    assert texts == [b"%d.1" % host.generation, b"%d.2" % host.generation, b"%d.1" % generation]


def test_a_base_replaces_what_it_covers_and_keeps_what_came_after() -> None:
    host = Host()
    for version in (2, 3, 4):
        host.write(version)
    assert host.write(3, base=True, data=b"base") == (Outcome.DURABLE, 4)
    assert host.stored() == [b"base", b"%d.4" % host.generation]


def test_an_older_base_is_not_taken() -> None:
    host = Host()
    host.write(2)
    host.write(2, base=True, data=b"new")
    assert host.write(1, base=True, data=b"old") == (Outcome.DURABLE, 2)
    assert host.stored() == [b"new"]


def test_parts_count_when_the_last_is_in() -> None:
    host = Host()
    whole = b"one two"
    assert host.write(2, data=b"one ", last=False) is None
    assert host.bench.room().version == 1
    assert host.write(2, data=b"two", whole=whole) == (Outcome.DURABLE, 2)
    assert host.stored()[-1] == whole


def test_a_base_in_parts_takes_turns_with_records() -> None:
    host = Host()
    host.write(2)
    host.write(2, base=True, data=b"ba", last=False)
    assert host.write(3) == (Outcome.DURABLE, 3)
    host.write(2, base=True, data=b"se", whole=b"base")
    assert host.stored() == [b"base", b"%d.3" % host.generation]


def test_parts_of_a_broken_stream_count_for_nothing() -> None:
    host = Host()
    host.write(2, data=b"one ", last=False)
    host.bench.disconnect(host.stream)
    host.stream, hello = host.bench.connect("h1", (ROOM, host.generation))
    assert hello.acks[0].version == 1
    host.write(2, data=b"1", last=False)
    host.write(2, data=b"2", whole=b"12")
    assert host.stored()[-1] == b"12"


def test_what_a_stream_queued_before_it_broke_is_taken() -> None:
    host = Host()
    host.bench.shard.stream_closed(host.stream, "h1", host.bench.now)
    host.bench.do(host.part(2), StreamClosed(host.stream))
    assert host.bench.room().version == 2


def test_an_item_that_is_given_up_leaves_nothing_in_the_next() -> None:
    host = Host()
    host.write(1, base=True, data=b"given ", last=False)
    host.write(2)
    host.write(2, base=True, data=b"ta", last=False)
    assert host.write(2, base=True, data=b"ken", whole=b"taken") == (Outcome.DURABLE, 2)
    assert host.stored() == [b"taken"]


def test_a_wrong_checksum_ends_the_stream_and_writes_nothing() -> None:
    host = Host()
    assert host.ended(host.part(2, whole=b"something else")) is ErrorCode.INVALID
    assert host.bench.room().version == 1
    assert host.write(2) is None  # nor is anything else of that stream taken


@pytest.mark.parametrize("version", [0, 1 << 32])
def test_versions_are_32_bits_and_start_at_one(version: int) -> None:
    host = Host()
    assert host.ended(host.part(version)) is ErrorCode.INVALID


def test_a_part_has_at_most_256_kib() -> None:
    host = Host()
    assert host.write(2, data=bytes(MAX_PART_BYTES)) == (Outcome.DURABLE, 2)
    assert host.ended(host.part(3, data=bytes(MAX_PART_BYTES + 1))) is ErrorCode.INVALID


def test_hello_says_where_each_room_stands() -> None:
    host = Host()
    host.write(2)
    host.bench.disconnect(host.stream)
    old = host.generation - 1
    _, hello = host.bench.connect("h1", (ROOM, host.generation), (OTHER, old))
    assert hello.hello
    assert {(ack.uid, ack.outcome, ack.version) for ack in hello.acks} == {
        (ROOM, Outcome.DURABLE, 2),
        (OTHER, Outcome.FENCED, 0),
    }


def test_replay_after_a_break_between_commit_and_ack_applies_nothing_twice() -> None:
    host = Host()
    host.write(2)
    host.write(3)
    host.bench.disconnect(host.stream)
    host.stream, _ = host.bench.connect("h1", (ROOM, host.generation))
    acks = host.bench.write(host.part(2), host.part(3), host.part(4))
    assert [(ack.outcome, ack.version) for ack in acks] == [(Outcome.DURABLE, 4)]
    assert len(host.stored()) == 4


@pytest.mark.parametrize(("host_id", "project"), [("h2", None), ("h1", "other")])
def test_nobody_else_writes_with_a_generation_he_guessed(host_id: str, project: str | None) -> None:
    host = Host()
    stream, hello = host.bench.connect(host_id, (ROOM, host.generation), project=project)
    assert hello.acks[0].outcome is Outcome.FENCED
    (ack,) = host.bench.write(part(stream, host.generation, 2))
    assert ack.outcome is Outcome.FENCED
    assert host.bench.room().saved.at == Mark(host.generation, 1)


def test_a_generation_before_the_current_writes_no_more_on_the_same_stream() -> None:
    host = Host()
    again = host.bench.grant("h1").generation
    assert host.write(2) == (Outcome.FENCED, 0)
    assert host.bench.room().saved.at == Mark(host.generation, 1)
    (ack,) = host.bench.write(part(host.stream, again, 1, prev=0))
    assert (ack.generation, ack.outcome) == (again, Outcome.DURABLE)


def test_an_alarm_changes_with_the_record_that_says_so() -> None:
    host = Host()
    host.write(2, alarm_ms=7_000)
    host.write(3)
    assert host.bench.room().alarm_ms == 7_000
    host.write(4, alarm_ms=-1)
    host.bench.restart()
    assert host.bench.room().alarm_ms is None


def test_the_tick_of_a_quiet_room_outlives_its_host_and_the_shard() -> None:
    host = Host()
    host.bench.do(Ticks(host.stream, ((ROOM, host.generation, 12_000),)))
    host.bench.restart()
    host.bench.pass_time(7)
    assert host.bench.grant("h2").tick == 12_000


def test_ticks_of_rooms_of_others_are_not_believed() -> None:
    host = Host()
    stream, _ = host.bench.connect("h2")
    host.bench.do(Ticks(stream, ((ROOM, host.generation, 12_000),)))
    host.bench.pass_time(7)
    assert host.bench.grant("h3").tick == 10


def test_a_batch_that_was_rolled_back_is_written_by_the_next_stream() -> None:
    host = Host()
    host.bench.shard.apply(host.part(2, data=b"one ", last=False), host.bench.now)
    host.bench.shard.take_changes()
    host.bench.shard.rolled_back([host.stream])
    assert host.write(2, data=b"two", whole=b"one two") is None
    host.bench.disconnect(host.stream)
    host.stream, hello = host.bench.connect("h1", (ROOM, host.generation))
    assert hello.acks[0].version == 1
    assert host.write(2) == (Outcome.DURABLE, 2)
