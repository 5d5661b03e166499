"""The volume: what is on disk when a commit returns, and what a start finds."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from playhall_statestore.model import (
    Chunk,
    EvictRoom,
    HostBeats,
    Item,
    Mark,
    PutChunk,
    PutItem,
    Room,
    SaveBeats,
    SaveCounter,
    Saved,
    SaveRoom,
    StoredObject,
    Trim,
)
from playhall_statestore.strikes import Strikes
from playhall_statestore.volume import (
    SLICE_ROWS,
    DamagedError,
    DiskFullError,
    Identity,
    Volume,
    VolumeReader,
    WrongVolumeError,
)
from tests.support.shard_bench import OTHER, ROOM


def item(
    version: int, data: bytes | None = None, *, base: bool = False, parts: int = 0, generation: int = 1
) -> Item:
    data = b"%d" % version if data is None else data
    return Item(Mark(1, version), base, version * 10, 500, zlib.crc32(data), None, data)


def in_parts(version: int, whole: bytes, parts: int) -> Item:
    return Item(Mark(1, version), False, version * 10, 500, zlib.crc32(whole), None, b"", parts)


def fresh(path: Path | str = ":memory:", **options: int) -> Volume:
    volume = Volume(path, **options)
    volume.set_identity(Identity("test", "shard-0", 1))
    volume.load()
    return volume


def written(volume: Volume, last: int, base: int = 1) -> None:
    """A room with a base and the records after it."""
    items = [
        PutItem(ROOM, item(base, base=True)),
        *(PutItem(ROOM, item(v)) for v in range(base + 1, last + 1)),
    ]
    volume.commit([SaveRoom(Room(ROOM, "demo", generation=1, base=Mark(1, base))), *items])


def rows(volume: Volume, base: int, upto: int) -> list[bytes]:
    return [found.data for found in volume.read_items(ROOM, Mark(1, base), Mark(1, upto))]


def test_everything_comes_back(tmp_path: Path) -> None:
    room = Room(
        ROOM, "demo", generation=1 << 52, held=True, host_id="h1", open_id="o", version=0,
        saved=Saved(Mark(7, 9), 90, 1_000), alarm_ms=5, strikes=Strikes((1, 2), 1, 3, 4, 2),
        stored=StoredObject("a/b", Mark(7, 1), Mark(7, 9), 5, b"\x00\xff"), spent_open_ids=("a", "b"),
        evicted=True, base=Mark(7, 1),
    )  # fmt: skip
    beats = HostBeats(77, {ROOM: (3, 4)})
    volume = fresh(tmp_path / "state.db")
    volume.commit([SaveRoom(room), SaveCounter(12), SaveBeats("h1", beats)])
    volume.close()
    loaded = Volume(tmp_path / "state.db").load()
    assert (loaded.counter, loaded.rooms, loaded.beats) == (12, [room], {"h1": beats})


def test_where_a_room_stands_is_read_from_its_log() -> None:
    volume = fresh()
    written(volume, 4)
    (room,) = volume.load().rooms
    assert (room.version, room.saved, room.base) == (4, Saved(Mark(1, 4), 40, 500), Mark(1, 1))


def test_an_epoch_starts_its_counter_anew() -> None:
    volume = fresh()
    volume.commit([SaveCounter(5)])
    volume.set_identity(Identity("test", "shard-0", 1, recovering=True))
    assert volume.load().counter == 5
    volume.set_identity(Identity("test", "shard-0", 2))
    assert volume.load().counter == 0


@pytest.mark.parametrize(("cluster", "shard_id"), [("other", "shard-0"), ("test", "shard-1")])
def test_a_volume_of_somebody_else_is_refused(cluster: str, shard_id: str) -> None:
    volume = fresh()
    assert volume.check("test", "shard-0") == Identity("test", "shard-0", 1)
    with pytest.raises(WrongVolumeError):
        volume.check(cluster, shard_id)


def test_an_empty_volume_has_no_identity() -> None:
    assert Volume(":memory:").check("test", "shard-0") is None


def test_garbage_goes_in_slices_and_nothing_else_does() -> None:
    volume = fresh()
    written(volume, SLICE_ROWS + 50)
    base = SLICE_ROWS + 48
    volume.commit([PutItem(ROOM, item(base, b"base", base=True)), Trim(ROOM, Mark(1, base))])
    slices = 1
    while volume.sweep():
        slices += 1
    assert slices > 2
    assert rows(volume, base, SLICE_ROWS + 50) == [b"base", b"%d" % (base + 1), b"%d" % (base + 2)]
    with pytest.raises(DamagedError):
        rows(volume, 1, SLICE_ROWS + 50)


def test_a_start_goes_on_with_the_garbage(tmp_path: Path) -> None:
    volume = fresh(tmp_path / "state.db")
    written(volume, 5)
    volume.commit([PutItem(ROOM, item(4, base=True)), Trim(ROOM, Mark(1, 4))])
    volume.close()
    again = Volume(tmp_path / "state.db")
    again.load()
    while again.sweep():
        pass
    with pytest.raises(DamagedError):
        rows(again, 1, 5)
    assert rows(again, 4, 5) == [b"4", b"5"]


def test_items_in_parts_are_joined_and_unfinished_ones_swept() -> None:
    volume = fresh()
    written(volume, 1)
    pieces = [
        PutChunk(ROOM, Chunk(Mark(1, 2), False, index, data)) for index, data in enumerate((b"on", b"e"))
    ]
    volume.commit(
        [*pieces, PutItem(ROOM, Item(Mark(1, 2), False, 20, 500, zlib.crc32(b"one"), None, b"", 2))]
    )
    volume.commit([PutChunk(ROOM, Chunk(Mark(1, 3), False, 0, b"lost"))])
    volume.load()
    assert rows(volume, 1, 2) == [b"1", b"one"]
    # Had the piece stayed, an item that names it would find it.
    volume.commit([PutItem(ROOM, in_parts(3, b"lost", 1))])
    with pytest.raises(DamagedError):
        rows(volume, 1, 3)


def test_a_changed_byte_is_found() -> None:
    volume = fresh()
    written(volume, 1)
    volume.commit([PutItem(ROOM, Item(Mark(1, 2), False, 20, 500, zlib.crc32(b"other"), None, b"data"))])
    with pytest.raises(DamagedError):
        rows(volume, 1, 2)


def test_an_evicted_room_can_come_back_before_it_is_swept() -> None:
    volume = fresh()
    written(volume, 3)
    volume.commit([EvictRoom(ROOM)])
    volume.commit([PutItem(ROOM, item(1, base=True)), PutItem(ROOM, item(2))])
    while volume.sweep():
        pass
    assert rows(volume, 1, 2) == [b"1", b"2"]
    with pytest.raises(DamagedError):
        rows(volume, 1, 3)


def test_an_eviction_takes_all_rows() -> None:
    volume = fresh()
    written(volume, 3)
    volume.commit([SaveRoom(Room(ROOM, "demo", evicted=True)), EvictRoom(ROOM)])
    while volume.sweep():
        pass
    with pytest.raises(DamagedError):
        rows(volume, 1, 3)


def test_a_full_disk_changes_nothing_and_deletes_help() -> None:
    volume = fresh(max_bytes=1 << 20)
    written(volume, 1)
    big = item(2, bytes(400_000))
    volume.commit([PutItem(ROOM, big)])
    with pytest.raises(DiskFullError):
        volume.commit(
            [SaveRoom(Room(OTHER, "demo")), PutItem(ROOM, item(3)), PutItem(OTHER, item(1, bytes(900_000)))]
        )
    assert [room.uid for room in volume.load().rooms] == [ROOM]
    assert rows(volume, 1, 2) == [b"1", big.data]
    volume.commit([PutItem(ROOM, item(3, base=True)), Trim(ROOM, Mark(1, 3))])
    while volume.sweep():
        pass
    volume.commit([SaveRoom(Room(OTHER, "demo")), PutItem(OTHER, item(1, bytes(600_000)))])


def test_a_reader_sees_what_was_committed(tmp_path: Path) -> None:
    volume = fresh(tmp_path / "state.db")
    written(volume, 2)
    reader = VolumeReader(tmp_path / "state.db")
    reader.checkpoint()
    found = reader.read_items(ROOM, Mark(1, 1), Mark(1, 2))
    assert [one.data for one in found] == [b"1", b"2"]
    reader.close()
