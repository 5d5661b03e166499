"""Runs of records: what goes in comes out, and what is none is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall_common.record_runs import RECORD_HEADER, pack_durable, pack_record, read_durable, read_run

U32 = st.integers(0, 2**32 - 1)
RECORDS = st.lists(st.tuples(U32, U32, U32, U32, st.integers(0, 2**64 - 1), st.binary(max_size=50)))


@given(RECORDS)
def test_records_come_out_as_they_went_in(records: list[tuple[int, int, int, int, int, bytes]]) -> None:
    assert read_run(b"".join(pack_record(*record) for record in records)) == records


@given(RECORDS.filter(bool), st.data())
def test_a_run_that_is_cut_short_is_none(
    records: list[tuple[int, int, int, int, int, bytes]], data: st.DataObject
) -> None:
    run = b"".join(pack_record(*record) for record in records)
    last = RECORD_HEADER + len(records[-1][5])
    with pytest.raises(ValueError, match="run"):
        read_run(run[: len(run) - data.draw(st.integers(1, last - 1))])


@given(st.binary(max_size=200))
def test_whatever_comes_is_read_or_refused(run: bytes) -> None:
    try:
        records = read_run(run)
    except ValueError:
        return
    assert b"".join(pack_record(*record) for record in records) == run


def test_rooms_that_are_durable() -> None:
    assert list(read_durable(pack_durable([(1, 2), (3, 2**32 - 1)]) + b"odd")) == [(1, 2), (3, 2**32 - 1)]
