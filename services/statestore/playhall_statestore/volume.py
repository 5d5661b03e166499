"""The shard's disk: one SQLite database in WAL mode, synchronous FULL, checkpointed off the writer.

A commit is one transaction and returns when it is on disk. Only one thread writes.

The records of a commit are written together, as one run. Where a room's items stand in order they are filed
later, many of a room at once: there, a commit of 60 rooms would change 60 pages (measured with 4,000 records
a second of 200 rooms: 32 MB of writes a second, and 3 to 6 in runs). Until then they are in memory as well,
for who reads; a start finds them in the runs.

What a base makes garbage is never filed, or deleted afterwards in slices, because deleting a log of thousands
of rows at once would hold up commits for longer than all of them take (117 ms, measured).

Raises DiskFullError where there was no space: nothing of the transaction happened then. Any other
sqlite3.Error of a commit means that its outcome is unknown, and the process has to end: the disk is asked
again by the next one.
"""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from playhall_statestore.model import (
    Change,
    Chunk,
    DropBeats,
    DropChunks,
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
    Trim,
)

__all__ = [
    "DamagedError",
    "DiskFullError",
    "Identity",
    "Loaded",
    "Volume",
    "VolumeReader",
    "WrongVolumeError",
]

SLICE_ROWS = 200
SLICE_CHUNKS = 8
FILE_ROWS = 65_536
FILE_BYTES = 16 * 1024 * 1024
"""So many records or bytes of them are written in runs before they are filed."""
FILE_SLICE = 1_000
CACHE_KIB = 16 * 1024
"""Of SQLite's pages: those that filing changes. By itself it keeps 2 MB, and would read them each time."""
FORMAT = 2
_FORMATS = (1, FORMAT)
"""Those that are read. A volume of format 1 has no runs."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value ANY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS room (id INTEGER PRIMARY KEY, uid TEXT NOT NULL UNIQUE, row TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS item (
  room INTEGER NOT NULL, generation INTEGER NOT NULL, version INTEGER NOT NULL, base INTEGER NOT NULL,
  tick INTEGER NOT NULL, wall_ms INTEGER NOT NULL, crc32 INTEGER NOT NULL, alarm_ms INTEGER,
  data BLOB NOT NULL, parts INTEGER NOT NULL,
  PRIMARY KEY (room, generation, version, base)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS chunk (
  room INTEGER NOT NULL, generation INTEGER NOT NULL, version INTEGER NOT NULL, base INTEGER NOT NULL,
  part INTEGER NOT NULL, data BLOB NOT NULL,
  UNIQUE (room, generation, version, base, part)
);
CREATE TABLE IF NOT EXISTS run (seq INTEGER PRIMARY KEY, records BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS beats (host_id TEXT PRIMARY KEY, row TEXT NOT NULL) WITHOUT ROWID;
"""

_ITEM_COLUMNS = "generation, version, base, tick, wall_ms, crc32, alarm_ms, data, parts"
_PUT_ITEM = f"INSERT OR REPLACE INTO item (room, {_ITEM_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?)"
_Row = tuple[int, int, int, bool, int, int, int, int | None, bytes, int]
# A record of a run: room, generation, version, tick, wall_ms, crc32, alarm_ms (-1: none), size; its data.
_RUN_RECORD = struct.Struct("<QQIQqIqI")
_ORPHANS = """
DELETE FROM chunk WHERE NOT EXISTS (
  SELECT 1 FROM item WHERE item.room = chunk.room AND item.generation = chunk.generation
  AND item.version = chunk.version AND item.base = chunk.base AND item.parts > chunk.part)
"""


class DiskFullError(Exception):
    """There was no space. Nothing of the transaction happened."""


class DamagedError(Exception):
    """What was read is not what was written."""


class WrongVolumeError(Exception):
    """The volume is another cluster's, another shard's, or of another format."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose volume this is. A new epoch starts on every volume that was empty."""

    cluster: str
    shard_id: str
    epoch: int
    recovering: bool = False
    """It took the place of a lost one: rooms it does not know may have objects."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a shard starts with."""

    counter: int
    rooms: list[Room]
    beats: dict[str, HostBeats]


class Volume:
    """The writer's side. Not thread-safe: one thread at a time. `:memory:` serves tests."""

    def __init__(self, path: Path | str, *, max_bytes: int = 0) -> None:
        self._db = _connect(path)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA wal_autocheckpoint = 0")
        self._db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._db.executescript(_SCHEMA)
        if max_bytes:
            (page,) = self._db.execute("PRAGMA page_size").fetchone()
            self._db.execute(f"PRAGMA max_page_count = {max(1, max_bytes // page)}")
        self._ids: dict[str, int] = {}
        self._new_ids: list[str] = []
        self._garbage: deque[Trim | EvictRoom] = deque()
        self._leaving: set[str] = set()
        """Rooms whose eviction is not swept yet."""
        self._unfiled: dict[int, list[_Row]] = {}
        """Records that are in runs only, by room."""
        self._filing: dict[int, list[_Row]] = {}
        """Those of them that are being filed, of the runs up to `_filing_upto`."""
        self._filing_upto = 0
        self._last_run = 0
        self._unfiled_rows = 0
        self._unfiled_bytes = 0
        self._needs_space = False

    def close(self) -> None:
        self._db.close()

    def identity(self) -> Identity | None:
        """None: the volume is empty."""
        text = self._meta("identity")
        return msgspec.json.decode(text, type=Identity) if isinstance(text, str) else None

    def set_identity(self, identity: Identity) -> None:
        """Durable before it returns. The counter starts anew with an epoch."""
        known = self.identity()
        with _Transaction(self._db):
            self._put_meta("format", FORMAT)
            self._put_meta("identity", msgspec.json.encode(identity).decode())
            if known is None or known.epoch != identity.epoch:
                self._put_meta("counter", 0)

    def check(self, cluster: str, shard_id: str) -> Identity | None:
        """The identity, if the volume is this shard's; None for an empty one. Else WrongVolumeError."""
        identity = self.identity()
        if identity is None:
            return None
        if self._meta("format") not in _FORMATS:
            raise WrongVolumeError(
                f"the volume has format {self._meta('format')}, this release reads {FORMAT}"
            )
        if (identity.cluster, identity.shard_id) != (cluster, shard_id):
            whose = f"shard {identity.shard_id!r} of cluster {identity.cluster!r}"
            raise WrongVolumeError(f"the volume belongs to {whose}, not to {shard_id!r} of {cluster!r}")
        return identity

    def load(self) -> Loaded:
        """Everything but what was written for rooms. Pieces of unfinished items are deleted."""
        with _Transaction(self._db):
            self._db.execute(_ORPHANS)
            self._put_meta("format", FORMAT)
        self._load_runs()
        rooms = []
        for room_id, uid, row in self._db.execute("SELECT id, uid, row FROM room").fetchall():
            self._ids[uid] = room_id
            room = msgspec.json.decode(row, type=Room)
            self._catch_up(room_id, room)
            rooms.append(room)
            if room.evicted:
                self._discard(EvictRoom(uid))
            elif room.base is not None:
                self._discard(Trim(uid, room.base))
        beats = {
            host_id: msgspec.json.decode(row, type=HostBeats)
            for host_id, row in self._db.execute("SELECT host_id, row FROM beats")
        }
        counter = self._meta("counter")
        return Loaded(counter if isinstance(counter, int) else 0, rooms, beats)

    def _catch_up(self, room_id: int, room: Room) -> None:
        """A room's row is not written with each record; the newest rows of its log say where it stands."""
        if room.evicted:
            return
        newest = (
            "SELECT generation, version, tick, wall_ms FROM item WHERE room = ? {} "
            "ORDER BY generation DESC, version DESC, base DESC LIMIT 1"
        )
        row = self._db.execute(newest.format(""), (room_id,)).fetchone()
        last = max(self._unfiled.get(room_id, ()), key=_mark, default=None)
        if last is not None and (row is None or _mark(last) > row[:2]):
            row = (last[1], last[2], last[4], last[5])
        if row is not None:
            at, tick = Mark(row[0], row[1]), row[2]
            if at >= room.saved.at:
                room.saved = Saved(at, max(tick, room.saved.tick if at == room.saved.at else 0), row[3])
            if at.generation == room.generation:
                room.version = at.version
        base = self._db.execute(newest.format("AND base = 1"), (room_id,)).fetchone()
        room.base = None if base is None else Mark(base[0], base[1])

    def commit(self, changes: Sequence[Change]) -> None:
        """One transaction, on disk when this returns."""
        self._new_ids.clear()
        records: list[_Row] = []
        try:
            with _Transaction(self._db):
                self._apply_all(changes, records)
        except DiskFullError:
            for uid in self._new_ids:
                del self._ids[uid]
            self._needs_space = True
            raise
        self._note_unfiled(records)
        for change in changes:  # only now is it garbage
            if isinstance(change, Trim | EvictRoom):
                self._discard(change)

    def _discard(self, garbage: Trim | EvictRoom) -> None:
        self._garbage.append(garbage)
        base = garbage.base if isinstance(garbage, Trim) else None
        self._drop_unfiled(self._ids[garbage.uid], base)
        if base is None:
            self._leaving.add(garbage.uid)

    def _apply_all(self, changes: Iterable[Change], records: list[_Row]) -> None:
        """Whole records, which most changes are, go to `records` and into one run."""
        for change in changes:
            if isinstance(change, PutItem) and not change.item.base and not change.item.parts:
                records.append(self._item_row(change.uid, change.item))
            else:
                self._apply(change)
        if records:
            run = b"".join([_pack_record(row) for row in records])
            seq = self._db.execute("INSERT INTO run (records) VALUES (?)", (run,)).lastrowid
            assert seq is not None, "an INSERT gives a row id"
            self._last_run = seq

    def _item_row(self, uid: str, item: Item) -> _Row:
        if self._leaving:
            self._settle(uid)
        at = item.at
        return (
            self._ids.get(uid) or self._id(uid),
            at.generation, at.version, item.base, item.tick, item.wall_ms, item.crc32, item.alarm_ms,
            item.data, item.parts,
        )  # fmt: skip

    # Records that are in runs only.

    def _load_runs(self) -> None:
        self._unfiled, self._filing = {}, {}
        self._unfiled_rows = self._unfiled_bytes = 0
        for seq, run in self._db.execute("SELECT seq, records FROM run ORDER BY seq"):
            self._last_run = seq
            self._note_unfiled(_read_records(run))

    def _note_unfiled(self, rows: list[_Row]) -> None:
        unfiled = self._unfiled
        for row in rows:
            of_room = unfiled.get(row[0])
            if of_room is None:
                unfiled[row[0]] = [row]
            else:
                of_room.append(row)
            self._unfiled_bytes += len(row[8])
        self._unfiled_rows += len(rows)

    def _drop_unfiled(self, room_id: int, base: Mark | None) -> None:
        """Records up to a base, or all of a room's, need not be filed."""
        for waiting in (self._filing, self._unfiled):
            rows = waiting.pop(room_id, None)
            if rows is not None and base is not None and (kept := [row for row in rows if _mark(row) > base]):
                waiting[room_id] = kept

    def unfiled(self, uid: str) -> list[Item]:
        """Records of the room that a VolumeReader may not find where it looks."""
        room_id = self._ids.get(uid, 0)
        rows = [*self._filing.get(room_id, ()), *self._unfiled.get(room_id, ())]
        return [_item(row[1:]) for row in rows]

    def _file(self) -> bool:
        """File a slice of what waits for it, if enough does. Whether there is more."""
        if self._needs_space:
            self._file_all()
            return False
        if not self._filing:
            if self._unfiled_rows < FILE_ROWS and self._unfiled_bytes < FILE_BYTES:
                return False
            self._filing, self._unfiled = self._unfiled, {}
            self._filing_upto = self._last_run
            self._unfiled_rows = self._unfiled_bytes = 0
        rows: list[_Row] = []
        rooms = []
        for room_id, of_room in self._filing.items():
            if len(rows) >= FILE_SLICE:
                break
            rows += of_room
            rooms.append(room_id)
        with _Transaction(self._db):
            self._db.executemany(_PUT_ITEM, rows)
            if len(rooms) == len(self._filing):
                self._db.execute("DELETE FROM run WHERE seq <= ?", (self._filing_upto,))
        for room_id in rooms:
            del self._filing[room_id]
        return bool(self._filing)

    def _file_all(self) -> None:
        """File all at once, in the space that the runs have: by slices it would take both for a while."""
        with _Transaction(self._db):
            self._db.execute("DELETE FROM run")
            for waiting in (self._filing, self._unfiled):
                for rows in waiting.values():
                    self._db.executemany(_PUT_ITEM, rows)
        self._filing, self._unfiled = {}, {}
        self._unfiled_rows = self._unfiled_bytes = 0
        self._needs_space = False

    def _apply(self, change: Change) -> None:
        db = self._db
        match change:
            case PutItem(uid, item):
                self._db.execute(_PUT_ITEM, self._item_row(uid, item))
            case PutChunk(uid, chunk):
                self._settle(uid)
                db.execute(
                    "INSERT OR REPLACE INTO chunk (room, generation, version, base, part, data) "
                    "VALUES (?,?,?,?,?,?)",
                    (self._id(uid), *chunk.at, chunk.base, chunk.index, chunk.data),
                )
            case SaveRoom(room):
                row = msgspec.json.encode(room).decode()
                db.execute("UPDATE room SET row = ? WHERE id = ?", (row, self._id(room.uid)))
            case SaveCounter(value):
                self._put_meta("counter", value)
            case DropChunks(uid, at, base):
                where = "room = ? AND generation = ? AND version = ? AND base = ?"
                db.execute(f"DELETE FROM chunk WHERE {where}", (self._id(uid), *at, base))
            case SaveBeats(host_id, beats):
                row = msgspec.json.encode(beats).decode()
                db.execute("INSERT OR REPLACE INTO beats (host_id, row) VALUES (?,?)", (host_id, row))
            case DropBeats(host_id):
                db.execute("DELETE FROM beats WHERE host_id = ?", (host_id,))
            case Trim() | EvictRoom():
                pass  # nothing now: see sweep

    def _id(self, uid: str) -> int:
        room_id = self._ids.get(uid)
        if room_id is None:
            room_id = self._db.execute("INSERT INTO room (uid, row) VALUES (?, '{}')", (uid,)).lastrowid
            assert room_id is not None, "an INSERT gives a row id"
            self._ids[uid] = room_id
            self._new_ids.append(uid)
        return room_id

    def _settle(self, uid: str) -> None:
        """A room that comes back while its eviction is still being swept: finish that first."""
        if uid not in self._leaving:
            return
        for table in ("item", "chunk"):
            self._db.execute(f"DELETE FROM {table} WHERE room = ?", (self._id(uid),))
        self._garbage = deque(garbage for garbage in self._garbage if garbage.uid != uid)
        self._leaving.discard(uid)

    def sweep(self) -> bool:
        """Delete a slice of the garbage, and file one of the records, in transactions of their own. Whether
        there is more of either."""
        more = self._sweep_garbage()
        try:
            return self._file() or more
        except DiskFullError:
            if more:
                return True  # what is deleted makes space
            raise

    def _sweep_garbage(self) -> bool:
        if not self._garbage:
            return False
        garbage = self._garbage[0]
        where, values = "room = ?", [self._ids[garbage.uid]]
        if isinstance(garbage, Trim):
            where += " AND (generation, version) <= (?, ?) AND NOT (base AND (generation, version) = (?, ?))"
            values += [*garbage.base, *garbage.base]
        with _Transaction(self._db):
            deleted = self._slice("item", "generation, version, base", where, values, SLICE_ROWS)
            deleted |= self._slice("chunk", "generation, version, base, part", where, values, SLICE_CHUNKS)
        if not deleted:
            self._garbage.popleft()
            if isinstance(garbage, EvictRoom):
                self._leaving.discard(garbage.uid)
        return bool(self._garbage)

    def _slice(self, table: str, key: str, where: str, values: Sequence[int], limit: int) -> bool:
        chosen = f"SELECT {key} FROM {table} WHERE {where} LIMIT {limit}"
        cursor = self._db.execute(
            f"DELETE FROM {table} WHERE room = ? AND ({key}) IN ({chosen})", (values[0], *values)
        )
        return cursor.rowcount > 0

    def checkpoint(self, mode: str) -> None:
        """RESTART: the next commit begins the WAL anew. TRUNCATE: it is empty. Raises DiskFullError."""
        _checkpoint(self._db, mode)

    def read_items(self, uid: str, base: Mark, upto: Mark) -> list[Item]:
        """See VolumeReader."""
        return _read_items(self._db, uid, base, upto, self.unfiled(uid))

    def _meta(self, key: str) -> object:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def _put_meta(self, key: str, value: object) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?,?)", (key, value))


class VolumeReader:
    """A connection of its own, for a thread that is not the writer's: it reads what was committed."""

    def __init__(self, path: Path) -> None:
        self._db = _connect(path)

    def close(self) -> None:
        self._db.close()

    def read_items(self, uid: str, base: Mark, upto: Mark, unfiled: Iterable[Item] = ()) -> list[Item]:
        """The base at `base` and what follows up to `upto`, in one read transaction, checksums compared.

        `unfiled` are the volume's records of the room that are not filed, as of after `upto` was committed
        and before this. An item that came in parts has them joined. Raises DamagedError where something is
        missing or changed.
        """
        return _read_items(self._db, uid, base, upto, unfiled)

    def checkpoint(self) -> None:
        """Move what can be moved from the WAL to the database, waiting for nobody. Raises DiskFullError."""
        _checkpoint(self._db, "PASSIVE")


class _Transaction:
    """BEGIN to COMMIT; a full disk becomes DiskFullError, after a rollback."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        try:
            if error is None:
                self._db.execute("COMMIT")
        except sqlite3.Error as failed:
            error = failed
        if error is None:
            return
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        if _is_full(error):
            raise DiskFullError from error
        if kind is None:
            raise error


def _is_full(error: BaseException) -> bool:
    """Errors of the sqlite3 module itself have no code of SQLite's."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF == sqlite3.SQLITE_FULL


def _checkpoint(db: sqlite3.Connection, mode: str) -> None:
    try:
        db.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
    except sqlite3.Error as error:
        if _is_full(error):
            raise DiskFullError from error
        raise


def _connect(path: Path | str) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
    db.execute("PRAGMA synchronous = FULL")
    return db


def _mark(row: _Row) -> tuple[int, int]:
    return row[1], row[2]


def _pack_record(row: _Row) -> bytes:
    room_id, generation, version, _, tick, wall_ms, crc32, alarm_ms, data, _ = row
    alarm_ms = -1 if alarm_ms is None else alarm_ms
    return _RUN_RECORD.pack(room_id, generation, version, tick, wall_ms, crc32, alarm_ms, len(data)) + data


def _read_records(run: bytes) -> list[_Row]:
    rows: list[_Row] = []
    at = 0
    while at < len(run):
        room_id, generation, version, tick, wall_ms, crc32, alarm_ms, size = _RUN_RECORD.unpack_from(run, at)
        at += _RUN_RECORD.size + size
        alarm = None if alarm_ms < 0 else alarm_ms
        rows.append(
            (room_id, generation, version, False, tick, wall_ms, crc32, alarm, run[at - size : at], 0)
        )
    return rows


def _read_items(
    db: sqlite3.Connection, uid: str, base: Mark, upto: Mark, unfiled: Iterable[Item]
) -> list[Item]:
    db.execute("BEGIN")
    try:
        found = db.execute("SELECT id FROM room WHERE uid = ?", (uid,)).fetchone()
        if found is None:
            raise DamagedError(f"{uid}: nothing was written")
        rows = db.execute(
            f"SELECT {_ITEM_COLUMNS} FROM item WHERE room = ? AND (generation, version) >= (?, ?) "
            "AND (generation, version) <= (?, ?) AND (base = ((generation, version) = (?, ?))) "
            "ORDER BY generation, version",
            (found[0], *base, *upto, *base),
        )
        filed = {item.at: item for item in map(_item, rows.fetchall())}
        # Those that were filed just now are in both.
        filed.update({item.at: item for item in unfiled if base < item.at <= upto})
        items = [_whole(db, found[0], uid, item) for _, item in sorted(filed.items())]
    finally:
        db.execute("COMMIT")
    if not items or not items[0].base or items[-1].at != upto:
        raise DamagedError(f"{uid}: the state from {base} to {upto} is not whole")
    return items


def _item(row: tuple[int, int, int, int, int, int, int | None, bytes, int]) -> Item:
    generation, version, base, tick, wall_ms, crc32, alarm_ms, data, parts = row
    return Item(Mark(generation, version), bool(base), tick, wall_ms, crc32, alarm_ms, data, parts)


def _whole(db: sqlite3.Connection, room_id: int, uid: str, item: Item) -> Item:
    data = item.data if not item.parts else b"".join(chunk.data for chunk in _chunks(db, room_id, item))
    if zlib.crc32(data) != item.crc32:
        raise DamagedError(f"{uid}: {item.at} does not match its checksum")
    return Item(item.at, item.base, item.tick, item.wall_ms, item.crc32, item.alarm_ms, data)


def _chunks(db: sqlite3.Connection, room_id: int, item: Item) -> Iterator[Chunk]:
    rows = db.execute(
        "SELECT part, data FROM chunk WHERE room = ? AND generation = ? AND version = ? AND base = ? "
        "AND part < ? ORDER BY part",
        (room_id, *item.at, item.base, item.parts),
    )
    for index, data in rows:
        yield Chunk(item.at, item.base, index, data)
