"""Runs of records and of acknowledgements between room hosts and shards, as statestore.proto says.

A record takes some 30 bytes and a microsecond beside its data in a run; in a message of its own several
times that. What comes in one may hold anything.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

__all__ = ["RECORD_HEADER", "pack_durable", "pack_record", "read_durable", "read_run"]

_RECORD = struct.Struct("<IIIIQI")
_DURABLE = struct.Struct("<II")
RECORD_HEADER = _RECORD.size
"""Bytes that a record takes beside its data."""

Record = tuple[int, int, int, int, int, bytes]


def pack_record(number: int, prev: int, version: int, crc32: int, tick: int, data: bytes) -> bytes:
    """A record as it stands in a run."""
    return _RECORD.pack(number, prev, version, crc32, tick, len(data)) + data


def read_run(run: bytes) -> list[Record]:
    """(number, prev, version, crc32, tick, data) of each record, in order. Raises ValueError: it is none."""
    records = []
    at = 0
    while at < len(run):
        if at + RECORD_HEADER > len(run):
            raise ValueError("a run of records is cut short")
        number, prev, version, crc32, tick, size = _RECORD.unpack_from(run, at)
        at += RECORD_HEADER + size
        if at > len(run):
            raise ValueError("a record does not fit its run")
        records.append((number, prev, version, crc32, tick, run[at - size : at]))
    return records


def pack_durable(rooms: Iterable[tuple[int, int]]) -> bytes:
    """(number, version) of each room."""
    return b"".join([_DURABLE.pack(number, version) for number, version in rooms])


def read_durable(data: bytes) -> Iterator[tuple[int, int]]:
    """(number, version) of each room; what is left over at the end is no room."""
    return _DURABLE.iter_unpack(data[: len(data) // _DURABLE.size * _DURABLE.size])
