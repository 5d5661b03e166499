"""What the requests of one commit change and say, kept apart until the commit returned.

Rooms are copied when first touched. If the commit fails, the batch is thrown away, and nobody has seen it.
"""

from __future__ import annotations

from collections.abc import Mapping

from playhall_statestore.model import Change, HostBeats, Outcome, Room, SaveBeats, SaveCounter, SaveRoom
from playhall_statestore.requests import Ack, Acks, Answer, EndStream, Refused, Reply

__all__ = ["Batch"]


class Batch:
    """Overlay of the rooms, changes for the volume, and outputs."""

    def __init__(self, rooms: Mapping[str, Room], counter: int, beats: Mapping[str, HostBeats]) -> None:
        self._rooms = rooms
        self._beats = beats
        self.saved: dict[str, None] = {}
        """Of which rooms more changes than their log, in order."""
        self._first_counter = counter
        self.counter = counter
        self.rooms: dict[str, Room] = {}
        """The rooms as they are if the commit succeeds."""
        self.beats: dict[str, HostBeats] = {}
        self.changes: list[Change] = []
        self.replies: list[Reply | EndStream] = []
        self.acks: dict[int, dict[str, Ack]] = {}
        self.hellos: set[int] = set()

    def room(self, uid: str) -> Room | None:
        """To read."""
        return self.rooms.get(uid) or self._rooms.get(uid)

    def touch(self, uid: str) -> Room:
        """To change; the room exists."""
        room = self.rooms.get(uid)
        if room is None:
            room = self.rooms[uid] = self._rooms[uid].copy()
        return room

    def add(self, room: Room) -> None:
        self.rooms[room.uid] = room
        self.saved[room.uid] = None

    def save(self, room: Room) -> None:
        """The room's row changes, not only its log."""
        self.saved[room.uid] = None

    def host_beats(self, host_id: str) -> HostBeats | None:
        return self.beats.get(host_id) or self._beats.get(host_id)

    def reply(self, token: int, answer: Answer) -> None:
        self.replies.append(Reply(token, answer))

    def end_stream(self, stream: int, error: Refused) -> None:
        self.replies.append(EndStream(stream, error))

    def ack(self, stream: int, uid: str, generation: int, outcome: Outcome, version: int = 0) -> None:
        """The last word on a room in this batch is the one that goes out."""
        self.acks.setdefault(stream, {})[uid] = Ack(uid, generation, outcome, version)

    def take_changes(self) -> list[Change]:
        """For the volume, in order."""
        changes = list(self.changes)
        if self.counter != self._first_counter:
            changes.append(SaveCounter(self.counter))
        changes += [SaveRoom(self.rooms[uid]) for uid in sorted(self.saved)]
        changes += [SaveBeats(host_id, beats) for host_id, beats in self.beats.items()]
        return changes

    def take_outputs(self) -> list[Reply | Acks | EndStream]:
        """Once the changes are durable. Acks leave before streams end."""
        streams = self.acks.keys() | self.hellos
        acks = [Acks(s, tuple(self.acks.get(s, {}).values()), s in self.hellos) for s in sorted(streams)]
        return [*acks, *self.replies]
