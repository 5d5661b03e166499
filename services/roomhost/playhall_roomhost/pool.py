"""The processes of a pod, and which of them takes the next room. Decisions only; `supervisor.py` carries
them out.

A room goes to the process of its build with the fewest rooms. What Prepare has promised counts as a room
until the process reports it, or for 5 s.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["Member", "Pool"]

PROMISE_S = 5.0


@dataclass(slots=True)
class Member:
    """A process that serves."""

    host_id: str
    build_id: str
    deploy_seq: int
    address: str
    max_rooms: int
    rooms: int = 0
    connections: int = 0
    load: float = 0.0
    draining: bool = False
    idle_since: float = 0.0
    promised: deque[float] = field(default_factory=deque)


class Pool:
    """The processes that serve, by host_id."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self.newest_seq = 0
        """The newest build that was asked for."""

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self._members.values()))

    def __len__(self) -> int:
        return len(self._members)

    def get(self, host_id: str) -> Member | None:
        return self._members.get(host_id)

    def add(self, member: Member, now: float) -> None:
        """A process serves."""
        member.idle_since = now
        self._members[member.host_id] = member

    def remove(self, host_id: str) -> Member | None:
        """A process is gone."""
        return self._members.pop(host_id, None)

    def report(
        self, host_id: str, *, rooms: int, connections: int, load: float, draining: bool, now: float
    ) -> bool:
        """What a process says of itself. Whether routers should hear of it before the next second."""
        member = self._members.get(host_id)
        if member is None:
            return False
        for _ in range(rooms - member.rooms):
            if member.promised:
                member.promised.popleft()
        if member.rooms and not rooms:
            member.idle_since = now
        changed = rooms != member.rooms or (draining and not member.draining)
        member.rooms, member.connections, member.load = rooms, connections, load
        member.draining |= draining
        return changed

    def asked(self, build_id: str, deploy_seq: int) -> None:
        """A build is wanted. A build that went live again counts as new as its newest go-live."""
        self.newest_seq = max(self.newest_seq, deploy_seq)
        for member in self._members.values():
            if member.build_id == build_id:
                member.deploy_seq = max(member.deploy_seq, deploy_seq)

    def serving(self, build_id: str) -> list[Member]:
        """Processes of the build that take rooms, were there place."""
        return [m for m in self._members.values() if m.build_id == build_id and not m.draining]

    def choose(self, build_id: str, now: float) -> Member | None:
        """The process for one more room of the build, which is promised to the caller. None: there is no
        place."""
        for member in self._members.values():
            while member.promised and now - member.promised[0] > PROMISE_S:
                member.promised.popleft()
        free = [member for member in self.serving(build_id) if member.rooms < member.max_rooms]
        if not free:
            return None
        chosen = min(free, key=lambda member: member.rooms + len(member.promised))
        chosen.promised.append(now)
        return chosen

    def older_than(self, deploy_seq: int) -> list[Member]:
        """Processes of builds below this one that are not draining yet."""
        return [m for m in self._members.values() if m.deploy_seq < deploy_seq and not m.draining]

    def outlived(self, idle_s: float, now: float) -> list[Member]:
        """Processes of older builds that have had no room for so long."""
        return [
            member
            for member in self.older_than(self.newest_seq)
            if not member.rooms and not member.promised and now - member.idle_since >= idle_s
        ]
