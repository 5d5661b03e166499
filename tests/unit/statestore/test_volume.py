"""The volume: what is on disk when a commit returns, and what a start finds."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

import pytest

from playhall_statestore import volume as volume_module
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


def file_all(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(volume_module, "FILE_ROWS", 1)
        while volume.sweep():
            pass


def fill(volume: Volume) -> None:
    for version in range(4, 100):
        volume.commit([PutItem(ROOM, item(version, bytes(20_000)))])


def runs(folder: Path) -> int:
    with sqlite3.connect(folder / "state.db") as db:
        (count,) = db.execute("SELECT count(*) FROM run").fetchone()
    return int(count)


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


def test_garbage_goes_in_slices_and_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    volume = fresh()
    written(volume, SLICE_ROWS + 50)
    file_all(volume, monkeypatch)
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
    found = reader.read_items(ROOM, Mark(1, 1), Mark(1, 2), volume.unfiled(ROOM))
    assert [one.data for one in found] == [b"1", b"2"]
    reader.close()


def test_records_are_filed_in_slices_and_found_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volume_module, "FILE_ROWS", 6)
    monkeypatch.setattr(volume_module, "FILE_SLICE", 3)
    volume = fresh(tmp_path / "state.db")
    reader = VolumeReader(tmp_path / "state.db")
    volume.commit([SaveRoom(Room(uid, "demo")) for uid in (ROOM, OTHER)])
    for uid in (ROOM, OTHER):
        volume.commit([PutItem(uid, item(1, base=True)), *(PutItem(uid, item(v)) for v in range(2, 5))])
    more = True
    while more:
        more = volume.sweep()
        for uid in (ROOM, OTHER):
            unfiled = volume.unfiled(uid)
            assert len(unfiled) in (0, 3)
            for found in (
                reader.read_items(uid, Mark(1, 1), Mark(1, 3), unfiled),
                volume.read_items(uid, Mark(1, 1), Mark(1, 3)),
            ):
                assert [one.data for one in found] == [b"1", b"2", b"3"]
    assert volume.unfiled(ROOM) == volume.unfiled(OTHER) == []
    assert runs(tmp_path) == 0
    reader.close()


def test_few_records_are_not_filed_and_a_start_finds_them(tmp_path: Path) -> None:
    volume = fresh(tmp_path / "state.db")
    written(volume, 5)
    assert not volume.sweep()
    assert len(volume.unfiled(ROOM)) == 4
    volume.close()
    again = Volume(tmp_path / "state.db")
    (room,) = again.load().rooms
    assert (room.saved.at, room.saved.tick, room.version) == (Mark(1, 5), 50, 5)
    assert rows(again, 1, 5) == [b"1", b"2", b"3", b"4", b"5"]


def test_a_start_between_two_slices_finds_each_record_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volume_module, "FILE_ROWS", 1)
    monkeypatch.setattr(volume_module, "FILE_SLICE", 1)
    volume = fresh(tmp_path / "state.db")
    written(volume, 3)
    volume.commit(
        [SaveRoom(Room(OTHER, "demo")), PutItem(OTHER, item(1, base=True)), PutItem(OTHER, item(2))]
    )
    assert volume.sweep()
    volume.close()
    assert runs(tmp_path) == 2
    again = Volume(tmp_path / "state.db")
    again.load()
    assert rows(again, 1, 3) == [b"1", b"2", b"3"]
    while again.sweep():
        pass
    assert runs(tmp_path) == 0
    assert rows(again, 1, 3) == [b"1", b"2", b"3"]


def test_what_a_base_makes_garbage_is_never_filed() -> None:
    volume = fresh()
    written(volume, 5)
    volume.commit([PutItem(ROOM, item(4, base=True)), Trim(ROOM, Mark(1, 4))])
    assert [one.at for one in volume.unfiled(ROOM)] == [Mark(1, 5)]
    assert rows(volume, 4, 5) == [b"4", b"5"]
    volume.commit([EvictRoom(ROOM)])
    assert volume.unfiled(ROOM) == []


def test_alarms_come_back_from_runs(tmp_path: Path) -> None:
    volume = fresh(tmp_path / "state.db")
    with_alarm = Item(Mark(1, 2), False, 20, 500, zlib.crc32(b"x"), 77, b"x")
    volume.commit(
        [SaveRoom(Room(ROOM, "demo")), PutItem(ROOM, item(1, base=True)), PutItem(ROOM, with_alarm)]
    )
    volume.close()
    again = Volume(tmp_path / "state.db")
    again.load()
    assert again.read_items(ROOM, Mark(1, 1), Mark(1, 2))[1] == with_alarm


def test_on_a_full_disk_records_are_filed_in_the_space_of_their_runs(tmp_path: Path) -> None:
    volume = fresh(tmp_path / "state.db", max_bytes=400_000)
    written(volume, 3)
    with pytest.raises(DiskFullError):
        fill(volume)
    last = volume.unfiled(ROOM)[-1].at.version
    assert not volume.sweep()
    assert runs(tmp_path) == 0
    assert volume.unfiled(ROOM) == []
    assert len(rows(volume, 1, last)) == last > 10


def test_runs_that_a_base_has_made_garbage_make_space(tmp_path: Path) -> None:
    volume = fresh(tmp_path / "state.db", max_bytes=400_000)
    written(volume, 3)
    with pytest.raises(DiskFullError):
        fill(volume)
    base = volume.unfiled(ROOM)[-1].at.version
    volume.commit([PutItem(ROOM, item(base, b"base", base=True)), Trim(ROOM, Mark(1, base))])
    while volume.sweep():
        pass
    volume.commit([PutItem(ROOM, item(base + 1, bytes(300_000)))])
    assert rows(volume, base, base + 1) == [b"base", bytes(300_000)]


@pytest.mark.parametrize(("format_", "is_read"), [(1, True), (2, True), (3, False)])
def test_volumes_of_older_releases_are_read_and_those_of_newer_ones_are_not(
    tmp_path: Path, format_: int, is_read: bool
) -> None:
    fresh(tmp_path / "state.db").close()
    with sqlite3.connect(tmp_path / "state.db") as db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'format'", (format_,))
    volume = Volume(tmp_path / "state.db")
    if is_read:
        assert volume.check("test", "shard-0") is not None
        volume.load()
        volume.close()
        with sqlite3.connect(tmp_path / "state.db") as db:
            assert db.execute("SELECT value FROM meta WHERE key = 'format'").fetchone() == (2,)
    else:
        with pytest.raises(WrongVolumeError):
            volume.check("test", "shard-0")
