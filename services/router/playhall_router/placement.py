"""Where a room starts: among the processes that routers see on the pods' Control streams, the fullest with
room.

Loads are hints: a process may refuse what it looked fit for, and is then left out for the rest of the
attempt. Rooms that are being started and are not in the loads yet are counted here, so that a burst does not
pile on one process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Placement", "Pod", "Process"]


@dataclass(frozen=True, slots=True)
class Process:
    """A room host process, as its pod last said."""

    host_id: str
    address: str
    build_id: str
    rooms: int
    max_rooms: int
    draining: bool = False


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of room hosts, as it last said; `address` is its supervisor's."""

    address: str
    project: str
    """The project it is bound to; empty while it is free."""
    draining: bool
    processes: tuple[Process, ...]


class Placement:
    """What is known of pods and processes now."""

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._starting: Counter[str] = Counter()

    def update(self, pod: Pod) -> None:
        """A pod says how it is."""
        self._pods[pod.address] = pod

    def forget(self, address: str) -> None:
        """A pod is not heard any more."""
        self._pods.pop(address, None)

    def started(self, host_id: str) -> None:
        """A start is on its way to this process; pair with `settled`."""
        self._starting[host_id] += 1

    def settled(self, host_id: str) -> None:
        """It was answered."""
        self._starting[host_id] -= 1
        if self._starting[host_id] <= 0:
            del self._starting[host_id]

    def find(self, host_id: str) -> tuple[str, Process] | None:
        """A process and the project of its pod, by the process's id."""
        for pod in self._pods.values():
            for process in pod.processes:
                if process.host_id == host_id:
                    return pod.project, process
        return None

    def bound(self) -> list[tuple[str, Process]]:
        """Every process that runs a build, with its project."""
        return [
            (pod.project, process) for pod in self._pods.values() if pod.project for process in pod.processes
        ]

    @property
    def heard(self) -> bool:
        """Whether any pod is heard."""
        return bool(self._pods)

    def addresses(self) -> set[str]:
        """Where all processes are."""
        return {process.address for pod in self._pods.values() for process in pod.processes}

    def pick(
        self, project: str, build_id: str, tried: Iterable[str] = (), wanted: str = ""
    ) -> Process | None:
        """The fullest process of the build that has room, but for those tried; the wanted one, if it runs."""
        tried = frozenset(tried)
        best: Process | None = None
        best_rooms = -1
        for pod in self._pods.values():
            if pod.draining or pod.project != project:
                continue
            for process in pod.processes:
                rooms = process.rooms + self._starting[process.host_id]
                fits = not process.draining and process.build_id == build_id
                if fits and process.host_id == wanted and process.host_id not in tried:
                    return process  # the room counts there already
                fits = fits and rooms < process.max_rooms
                if fits and rooms > best_rooms and process.host_id not in tried:
                    best, best_rooms = process, rooms
        return best

    def free(self, project: str, build_id: str) -> int:
        """For how many rooms of the build there is room in the processes that run it."""
        return sum(
            max(0, process.max_rooms - process.rooms - self._starting[process.host_id])
            for pod in self._pods.values()
            if pod.project == project and not pod.draining
            for process in pod.processes
            if process.build_id == build_id and not process.draining
        )

    def pods(self, project: str, tried: Iterable[str] = ()) -> list[str]:
        """Supervisors to ask for a process: those of the project first, the fullest first, then free ones."""
        tried = frozenset(tried)
        fit = [
            pod
            for pod in self._pods.values()
            if not pod.draining and pod.project in (project, "") and pod.address not in tried
        ]
        fit.sort(
            key=lambda pod: (pod.project != project, -sum(each.rooms for each in pod.processes), pod.address)
        )
        return [pod.address for pod in fit]
