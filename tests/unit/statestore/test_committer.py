"""What waits for a commit is bounded by what it weighs."""

from __future__ import annotations

import pytest

from playhall_statestore.committer import Committer
from playhall_statestore.requests import Part, Request, StreamClosed, Ticks
from playhall_statestore.volume import Volume
from playhall_statestore.writer import Writer
from tests.support.shard_bench import ROOM, ShardBench

PART = Part(1, ROOM, 7, 0, 1, 1, bytes(10_000), True, False, None, 0)


@pytest.mark.parametrize(
    ("request_", "at_least", "at_most"),
    [
        (PART, 10_000, 11_000),
        (Ticks(1, ((ROOM, 7, 1),) * 1000), 50_000, 200_000),
        (StreamClosed(1), 1, 1000),
    ],
)
def test_requests_weigh_what_they_hold(request_: Request, at_least: int, at_most: int) -> None:
    committer = Committer(
        ShardBench().shard, Writer(Volume(":memory:")), lambda _: None, lambda: None, commit_s=0.005
    )
    assert at_least <= committer.submit(request_) <= at_most
