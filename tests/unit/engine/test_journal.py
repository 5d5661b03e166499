"""Records and bases: which are written, and when."""

from __future__ import annotations

from typing import Any

import pytest

from playhall.engine.journal import MAX_LOG_BYTES, MAX_LOG_RECORDS, MAX_SIZE, Journal, RoomTooLargeError
from playhall.engine.outputs import BaseOut, RecordOut


class Written:
    def __init__(self, base: bytes = b"base") -> None:
        self.outputs: list[Any] = []
        self.base = base
        self.journal = Journal(self.outputs.append, lambda: self.base)


def test_the_first_write_is_a_base_and_records_are_chained() -> None:
    written = Written()
    written.journal.write(b"lost in the base", 3, 30, 0.0)
    written.journal.write(b"a", 4, 31, 0.1)
    written.journal.write(b"b", 9, 40, 0.2)
    assert written.outputs == [
        BaseOut(3, 30, b"base"),
        RecordOut(3, 4, 31, b"a"),
        RecordOut(4, 9, 40, b"b"),
    ]
    assert not written.journal.settled
    written.journal.durable = 9
    assert written.journal.settled


def test_a_base_is_due_30_s_after_the_last_if_there_were_records() -> None:
    written = Written()
    written.journal.write(b"", 1, 0, 100.0)
    assert written.journal.next_deadline is None
    written.journal.write(b"a", 2, 0, 105.0)
    assert written.journal.next_deadline == 130.0
    written.journal.base(2, 0, 130.0)
    assert written.journal.next_deadline is None


def test_a_base_follows_4096_records() -> None:
    written = Written()
    for version in range(1, MAX_LOG_RECORDS + 2):
        written.journal.write(b"r", version, 0, 0.0)
    assert [type(o) for o in written.outputs[-2:]] == [RecordOut, BaseOut]
    assert written.outputs[-1].version == MAX_LOG_RECORDS + 1
    assert sum(isinstance(o, BaseOut) for o in written.outputs) == 2


def test_a_base_follows_a_log_of_4_mb() -> None:
    written = Written()
    written.journal.write(b"", 1, 0, 0.0)
    written.journal.write(bytes(MAX_LOG_BYTES), 2, 0, 0.0)
    assert isinstance(written.outputs[-1], RecordOut)
    written.journal.write(b"x", 3, 0, 0.0)
    assert isinstance(written.outputs[-1], BaseOut)
    assert written.journal.size == 4


@pytest.mark.ledger("RST-13")
def test_base_and_log_have_at_most_32_mb() -> None:
    written = Written(bytes(MAX_SIZE))
    written.journal.write(b"", 1, 0, 0.0)
    with pytest.raises(RoomTooLargeError, match="33,554,433 bytes, over the limit of 33,554,432"):
        written.journal.write(b"x", 2, 0, 0.0)
    written.base = bytes(MAX_SIZE + 1)
    before = len(written.outputs)
    with pytest.raises(RoomTooLargeError):
        written.journal.base(3, 0, 0.0)
    assert len(written.outputs) == before
