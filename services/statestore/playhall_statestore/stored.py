"""What the core notes of objects: stored, evicted from the volume, back on it."""

from __future__ import annotations

from playhall_statestore.batch import Batch
from playhall_statestore.model import Chunk, EvictRoom, PutChunk, PutItem, Room
from playhall_statestore.requests import (
    Done,
    Evict,
    NoteObject,
    NoteState,
    Recover,
    Restored,
    RestorePiece,
)

__all__ = ["StoredRequest", "apply_stored", "is_stored"]

StoredRequest = NoteObject | NoteState | Evict | Recover | RestorePiece | Restored


def apply_stored(batch: Batch, request: StoredRequest) -> None:
    """What the uploader and the loader of objects did."""
    match request:
        case NoteObject():
            batch.reply(request.token, Done(_note_object(batch, request)))
        case NoteState():
            room = batch.room(request.uid)
            if room is not None and not room.noted:
                room = batch.touch(request.uid)
                room.noted = True
                batch.save(room)
        case Evict():
            batch.reply(request.token, Done(_evict(batch, request)))
        case Recover():
            known = batch.room(request.room.uid) is not None
            if not known:
                batch.add(request.room.copy())
            batch.reply(request.token, Done(not known))
        case RestorePiece():
            room = batch.room(request.uid)
            if wanted := room is not None and room.evicted:
                batch.changes.append(_put(request))
            batch.reply(request.token, Done(wanted))
        case Restored():
            room = batch.room(request.uid)
            wanted = room is not None and room.evicted and room.stored is not None
            if wanted:
                room = batch.touch(request.uid)
                room.evicted = False
                batch.save(room)
            batch.reply(request.token, Done(wanted))


def _put(request: RestorePiece) -> PutChunk | PutItem:
    if isinstance(request.piece, Chunk):
        return PutChunk(request.uid, request.piece)
    return PutItem(request.uid, request.piece)


def _note_object(batch: Batch, request: NoteObject) -> bool:
    room = batch.room(request.uid)
    if room is None or room.evicted or (room.stored is not None and room.stored.at > request.stored.at):
        return False
    room = batch.touch(request.uid)
    room.stored = request.stored
    batch.save(room)
    return True


def _evict(batch: Batch, request: Evict) -> bool:
    room = batch.room(request.uid)
    if room is None or room.held or room.evicted or room.stored is None:
        return False
    if room.stored.name != request.name or not is_stored(room):
        return False
    room = batch.touch(request.uid)
    room.evicted = True
    batch.save(room)
    batch.changes.append(EvictRoom(request.uid))
    return True


def is_stored(room: Room) -> bool:
    """Whether the newest object holds all that was written for the room."""
    stored = room.stored
    holds = None if stored is None else (stored.base, stored.at, stored.alarm_ms)
    return holds == (room.base, room.saved.at, room.alarm_ms)
