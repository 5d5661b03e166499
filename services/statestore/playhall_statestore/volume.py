"""The shard's disk: one SQLite database in WAL mode, synchronous FULL, checkpointed off the writer.

A commit is one transaction and returns when it is on disk. Only one thread writes. What a base makes garbage
is deleted afterwards in slices, because deleting a log of thousands of rows at once would hold up commits for
longer than all of them take (117 ms, measured). Raises DiskFullError where there was no space: nothing of the
transaction happened then. Any other sqlite3.Error of a commit means that its outcome is unknown, and the
process has to end: the disk is asked again by the next one.
"""

from __future__ import annotations

import sqlite3
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
FORMAT = 1

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
CREATE TABLE IF NOT EXISTS beats (host_id TEXT PRIMARY KEY, row TEXT NOT NULL) WITHOUT ROWID;
"""

_ITEM_COLUMNS = "generation, version, base, tick, wall_ms, crc32, alarm_ms, data, parts"
_PUT_ITEM = f"INSERT OR REPLACE INTO item (room, {_ITEM_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?)"
_Row = tuple[int, int, int, bool, int, int, int, int | None, bytes, int]
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
        self._db.executescript(_SCHEMA)
        if max_bytes:
            (page,) = self._db.execute("PRAGMA page_size").fetchone()
            self._db.execute(f"PRAGMA max_page_count = {max(1, max_bytes // page)}")
        self._ids: dict[str, int] = {}
        self._new_ids: list[str] = []
        self._garbage: deque[Trim | EvictRoom] = deque()
        self._leaving: set[str] = set()
        """Rooms whose eviction is not swept yet."""

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
        if self._meta("format") != FORMAT:
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
        try:
            with _Transaction(self._db):
                self._apply_all(changes)
        except DiskFullError:
            for uid in self._new_ids:
                del self._ids[uid]
            raise
        for change in changes:  # only now is it garbage
            if isinstance(change, Trim | EvictRoom):
                self._discard(change)

    def _discard(self, garbage: Trim | EvictRoom) -> None:
        self._garbage.append(garbage)
        if isinstance(garbage, EvictRoom):
            self._leaving.add(garbage.uid)

    def _apply_all(self, changes: Iterable[Change]) -> None:
        """Items that follow each other are one statement: most changes are."""
        rows: list[_Row] = []
        for change in changes:
            if isinstance(change, PutItem):
                rows.append(self._item_row(change.uid, change.item))
                continue
            self._put_items(rows)
            rows = []
            self._apply(change)
        self._put_items(rows)

    def _item_row(self, uid: str, item: Item) -> _Row:
        if self._leaving:
            self._settle(uid)
        at = item.at
        return (
            self._ids.get(uid) or self._id(uid),
            at.generation, at.version, item.base, item.tick, item.wall_ms, item.crc32, item.alarm_ms,
            item.data, item.parts,
        )  # fmt: skip

    def _put_items(self, rows: list[_Row]) -> None:
        if rows:
            self._db.executemany(_PUT_ITEM, rows)

    def _apply(self, change: Change) -> None:
        db = self._db
        match change:
            case PutItem(uid, item):
                self._put_items([self._item_row(uid, item)])
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
        """Delete a slice of the garbage, as a transaction of its own. Whether there is more."""
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
        return _read_items(self._db, uid, base, upto)

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

    def read_items(self, uid: str, base: Mark, upto: Mark) -> list[Item]:
        """The base at `base` and what follows up to `upto`, in one read transaction, checksums compared.

        An item that came in parts has them joined. Raises DamagedError where something is missing or changed.
        """
        return _read_items(self._db, uid, base, upto)

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


def _read_items(db: sqlite3.Connection, uid: str, base: Mark, upto: Mark) -> list[Item]:
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
        items = [_whole(db, found[0], uid, _item(row)) for row in rows.fetchall()]
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
