"""Which process takes the next room."""

from __future__ import annotations

from playhall_roomhost.pool import PROMISE_S, Member, Pool


def pool_of(*sizes: int, build: str = "b1", seq: int = 1, max_rooms: int = 10) -> Pool:
    pool = Pool()
    pool.asked(build, seq)
    for number, rooms in enumerate(sizes):
        pool.add(Member(f"h{number}", build, seq, f"a{number}", max_rooms, rooms=rooms), 0.0)
    return pool


def report(pool: Pool, host_id: str, rooms: int, *, now: float = 0.0, draining: bool = False) -> bool:
    return pool.report(host_id, rooms=rooms, connections=0, load=0.0, draining=draining, now=now)


def chosen(pool: Pool, now: float = 0.0, build: str = "b1") -> str | None:
    member = pool.choose(build, now)
    return member.host_id if member is not None else None


def test_the_emptiest_process_takes_the_room_and_promises_count() -> None:
    pool = pool_of(2, 0)
    assert [chosen(pool) for _ in range(4)] == ["h1", "h1", "h0", "h1"]


def test_promises_become_rooms_or_run_out() -> None:
    pool = pool_of(0, 1)
    assert chosen(pool) == "h0"
    report(pool, "h0", 1)
    assert chosen(pool) == "h0", "the room that was promised is the one that came"
    assert chosen(pool) == "h1"
    assert chosen(pool, PROMISE_S + 0.1) == "h0"


def test_only_rooms_that_are_there_make_a_process_full() -> None:
    pool = pool_of(9, max_rooms=10)
    assert chosen(pool) == "h0"
    assert chosen(pool) == "h0"
    report(pool, "h0", 10)
    assert chosen(pool) is None


def test_builds_and_draining_processes_are_kept_apart() -> None:
    pool = pool_of(0)
    assert chosen(pool, build="b2") is None
    report(pool, "h0", 0, draining=True)
    assert chosen(pool) is None
    assert pool.serving("b1") == []


def test_processes_of_older_builds_end_when_they_have_been_empty() -> None:
    pool = pool_of(1)
    pool.asked("b2", 2)
    assert pool.outlived(60, 1000) == []
    report(pool, "h0", 0, now=1000)
    assert pool.outlived(60, 1059) == []
    assert [member.host_id for member in pool.outlived(60, 1060)] == ["h0"]


def test_the_newest_build_stays_and_so_does_one_that_went_live_again() -> None:
    pool = pool_of(0)
    assert pool.outlived(0, 1000) == []
    pool.asked("b2", 2)
    pool.asked("b1", 3)
    assert pool.outlived(0, 1000) == []
    assert pool.older_than(3) == []


def test_routers_hear_of_rooms_at_once_and_of_load_with_the_beat() -> None:
    pool = pool_of(0)
    assert not report(pool, "h0", 0)
    assert report(pool, "h0", 1)
    assert report(pool, "h0", 1, draining=True)
    assert not report(pool, "nobody", 5)
