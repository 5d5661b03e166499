"""The pod's supervisor: starts processes for builds, watches over them, ends them.

It keeps one spare process that has imported everything but a build. A process whose loop is stuck is
killed, and the room whose code it was stuck in gets a strike at the state store; its other rooms fail over.
One whose loop turns, but which answers nobody, is killed too: room code may have broken its sockets.
The supervisor starts no rooms: routers do.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.api.statestore.v1 import statestore_pb2 as store_pb
from playhall.engine.codes import CloseCode, ErrorCode
from playhall_common import logs
from playhall_common.address import is_unix, join_host_port, split_host_port
from playhall_common.auth import channel
from playhall_common.errors import ApiError
from playhall_roomhost.child import Child
from playhall_roomhost.config import RoomHostConfig
from playhall_roomhost.measure import Sums
from playhall_roomhost.messages import Bind, Bound, Failed, NewToken, Report
from playhall_roomhost.pool import Member, Pool
from playhall_roomhost.pulse import Culprit
from playhall_roomhost.stack import room_stack
from playhall_roomhost.statestore_client import strike
from playhall_roomhost.watchdog import Watchdog

__all__ = ["Supervisor"]

LOOK_S = 0.25
CHECK_S = 1.0
MAX_UNANSWERED = 2
"""More than one, because a whole pod may have been paused."""
FAILURE_KEPT_S = 5.0
DRAIN_RESERVE_S = 2.0
STOPPED_NAMED_S = 10.0
_FAULTS = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL})

log = logs.get_logger()


@dataclass(frozen=True, slots=True)
class _Failure:
    reason: str
    at: float


class Supervisor:
    """See the module's text. `start` before use; `drain` and then `stop` at the end."""

    def __init__(self, config: RoomHostConfig, sums: Sums) -> None:
        self._config = config
        self._sums = sums
        self.pod_id = config.pod_id or f"pod-{secrets.token_hex(4)}"
        self.project = ""
        self.draining = False
        self.ended = False
        """Drained: nothing is left to say."""
        self._pool = Pool()
        self._watchdog = Watchdog(config.stuck_s)
        self._children: dict[str, Child] = {}
        self._starting: dict[str, set[asyncio.Task[None]]] = {}
        self._failures: dict[str, _Failure] = {}
        self._spare: asyncio.Task[Child] | None = None
        self._retired = ("", 0)
        """A project, and the build before which its builds are retired."""
        self._stopped: list[pb.StoppedRoom] = []
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self) -> None:
        """Begin to watch, and start the spare."""
        self._run(self._watch())
        self._renew_spare()

    # What routers ask.

    def state(self) -> pb.ControlResponse:
        """The pod as it is now."""
        return pb.ControlResponse(
            pod_id=self.pod_id,
            project=self.project,
            draining=self.draining,
            processes=[self.process(member) for member in self._pool],
            stopped=self._stopped,
        )

    async def next_change(self, timeout_s: float) -> None:
        """Return at the next change, or after so long."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            return

    def process(self, member: Member) -> pb.Process:
        """A process as routers see it."""
        return pb.Process(
            host_id=member.host_id,
            address=member.address,
            build_id=member.build_id,
            deploy_seq=member.deploy_seq,
            rooms=member.rooms,
            max_rooms=member.max_rooms,
            connections=member.connections,
            draining=member.draining,
            load=member.load,
        )

    async def prepare(self, build: pb.Build) -> Member:
        """A process of this build with place for one more room. Raises ApiError."""
        self._accept(build)
        deadline = time.monotonic() + self._config.load_s
        while True:
            if self._is_retired(build):  # its process would be drained as soon as it serves
                raise ApiError(ErrorCode.STALE_BUILD, "the build is retired")
            self._grow(build)
            member = self._pool.choose(build.build_id, time.monotonic())
            if member is not None:
                return member
            starting = self._starting.get(build.build_id)
            if not starting:
                raise self._refusal(build.build_id)
            left = deadline - time.monotonic()
            if left <= 0:
                raise ApiError(ErrorCode.UNAVAILABLE, "the build is still being loaded")
            await asyncio.wait(starting, timeout=left, return_when=asyncio.FIRST_COMPLETED)

    def retire(self, project: str, before_deploy_seq: int) -> int:
        """Drain the processes of older builds; gives how many drain."""
        if self.project and project != self.project:
            raise ApiError(ErrorCode.BUSY, "the pod is bound to another project")
        known_project, known = self._retired
        self._retired = (project, max(before_deploy_seq, known if known_project == project else 0))
        for member in self._pool.older_than(before_deploy_seq):
            self._drain_member(member)
        return sum(member.draining for member in self._pool)

    def _is_retired(self, build: pb.Build) -> bool:
        project, before = self._retired
        return build.project == project and build.deploy_seq < before

    def _accept(self, build: pb.Build) -> None:
        if self.draining:
            raise ApiError(ErrorCode.UNAVAILABLE, "the pod is draining")
        if not (build.project and build.build_id and build.location):
            raise ApiError(ErrorCode.INVALID, "a build has project, build_id and location")
        if self.project and build.project != self.project:
            raise ApiError(ErrorCode.BUSY, "the pod is bound to another project")
        failure = self._failures.get(build.build_id)
        if failure is not None and time.monotonic() - failure.at < FAILURE_KEPT_S:
            raise ApiError(ErrorCode.INVALID, failure.reason)
        self.project = build.project
        self._pool.asked(build.build_id, build.deploy_seq)

    def _refusal(self, build_id: str) -> ApiError:
        failure = self._failures.get(build_id)
        if failure is not None:
            return ApiError(ErrorCode.INVALID, failure.reason)
        if self._pool.serving(build_id):
            return ApiError(ErrorCode.BUSY, "every process of the build is full")
        return ApiError(ErrorCode.UNAVAILABLE, "the process of the build ended while it started")

    # Processes.

    def _grow(self, build: pb.Build) -> None:
        """Start what the build lacks of its processes."""
        starting = self._starting.setdefault(build.build_id, set())
        while len(self._pool.serving(build.build_id)) + len(starting) < self._config.processes_per_build:
            if build.build_id in self._failures:
                if time.monotonic() - self._failures[build.build_id].at < FAILURE_KEPT_S:
                    return
                del self._failures[build.build_id]
            bound = asyncio.Event()
            task = self._run(self._serve(build, bound))
            waiter = self._run(_until(bound, task))
            starting.add(waiter)
            waiter.add_done_callback(starting.discard)

    async def _serve(self, build: pb.Build, bound: asyncio.Event) -> None:
        """One process, from its start to its end."""
        child = await self._take_spare()
        bind = self._bind(build, secrets.token_hex(8))
        child.socket_path = bind.address.removeprefix("unix:") if is_unix(bind.address) else ""
        self._children[bind.host_id] = child
        child.bind(bind)
        slow = asyncio.get_running_loop().call_later(self._config.load_s, self._too_slow, build, child)
        try:
            async for message in child.messages():
                if isinstance(message, Bound):
                    slow.cancel()
                    self._bound(build, child, message.address)
                    bound.set()
                elif isinstance(message, Failed):
                    slow.cancel()
                    self._failures[build.build_id] = _Failure(message.reason, time.monotonic())
                    log.warning("build_refused", build_id=build.build_id, reason=message.reason)
                elif isinstance(message, NewToken):
                    child.token = message.token
                else:
                    self._report(child, message)
            await child.wait()
        finally:
            slow.cancel()
            child.kill()
            self._ended(child)

    def _too_slow(self, build: pb.Build, child: Child) -> None:
        reason = f"the import of the build took over {self._config.load_s:g} s"
        self._failures[build.build_id] = _Failure(reason, time.monotonic())
        log.warning("build_refused", build_id=build.build_id, reason=reason)
        child.kill()

    def _bind(self, build: pb.Build, host_id: str) -> Bind:
        config = self._config
        advertise = config.advertise_host
        if config.run_dir:
            address = f"unix:{config.run_dir}/roomhost-{host_id}.sock"
        else:
            address = join_host_port(split_host_port(config.address)[0], 0)
        return Bind(
            host_id=host_id,
            address=address,
            advertise_host=advertise,
            project=build.project,
            build_id=build.build_id,
            deploy_seq=build.deploy_seq,
            location=build.location,
            rooms=dict(build.rooms),
            max_rooms=config.max_rooms,
            drain_s=max(config.drain_s - DRAIN_RESERVE_S, config.drain_s / 2),
            inspector=config.inspector,
        )

    def _bound(self, build: pb.Build, child: Child, address: str) -> None:
        now = time.monotonic()
        member = Member(child.host_id, build.build_id, build.deploy_seq, address, self._config.max_rooms)
        self._pool.add(member, now)
        self._watchdog.watch(child.host_id, child.pulse.beats(), now)
        log.info(
            "process_serves", host_id=child.host_id, pid=child.pid, build_id=build.build_id, address=address
        )
        self._publish()
        self._renew_spare()
        self._run(self._watch_answers(child, member))
        if self.draining or self._is_retired(build):
            self._drain_member(member)

    def _report(self, child: Child, report: Report) -> None:
        changed = self._pool.report(
            child.host_id,
            rooms=report.rooms,
            connections=report.connections,
            load=report.load,
            draining=report.draining,
            now=time.monotonic(),
        )
        if report.metrics is not None:
            self._sums.update(child.host_id, report.metrics)
        if changed:
            self._publish()

    def _ended(self, child: Child) -> None:
        self._watchdog.forget(child.host_id)
        self._children.pop(child.host_id, None)
        member = self._pool.remove(child.host_id)
        self._sums.end(child.host_id)
        code = child.exit_code
        expected = member is None or member.draining
        culprit = _culprit_of_crash(child)
        (log.info if expected else log.error)(
            "process_ended", host_id=child.host_id, pid=child.pid, exit_code=code
        )
        if culprit is not None:
            self._run(self._strike(child, culprit, f"the process ended with {code} in {culprit.what}"))
        child.close()
        self._publish()

    def _drain_member(self, member: Member) -> None:
        member.draining = True
        child = self._children.get(member.host_id)
        if child is not None:
            child.terminate()
        self._publish()

    async def _take_spare(self) -> Child:
        spare, self._spare = self._spare, None
        if spare is not None:
            child = await spare
            if child.exit_code is None:
                return child
            child.close()
        return await Child.spawn(self._config.log_level)

    def _renew_spare(self) -> None:
        if self._spare is None and not self.draining:
            self._spare = asyncio.get_running_loop().create_task(Child.spawn(self._config.log_level))

    # Watching.

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            now = time.monotonic()
            beats = {host_id: child.pulse.beats() for host_id, child in self._children.items()}
            for host_id in self._watchdog.look(beats, now):
                self._run(self._kill_stuck(self._children[host_id]))
            for member in self._pool.outlived(self._config.idle_process_s, now):
                log.info("process_outlived", host_id=member.host_id, build_id=member.build_id)
                self._drain_member(member)

    async def _watch_answers(self, child: Child, member: Member) -> None:
        """Kill a process that answers no RPC, while it is to serve."""
        unanswered = 0
        async with channel(member.address) as to_process:
            health = health_pb2_grpc.HealthStub(to_process)
            while not member.draining and child.exit_code is None:
                try:
                    await health.Check(
                        health_pb2.HealthCheckRequest(), timeout=self._config.stuck_s, wait_for_ready=True
                    )
                    unanswered = 0
                    await asyncio.sleep(CHECK_S)
                except grpc.aio.AioRpcError:
                    unanswered += 1
                if unanswered == MAX_UNANSWERED and not member.draining:
                    log.error("process_silent", host_id=child.host_id, pid=child.pid)
                    child.kill()
                    return

    async def _kill_stuck(self, child: Child) -> None:
        culprit = child.pulse.culprit()
        if culprit is not None:
            # Before the kill: to routers that know, the end of the process is no failover of this room.
            self._name_stopped(child, culprit)
        stack = room_stack(await child.dump_stack())
        log.error(
            "process_stuck",
            host_id=child.host_id,
            pid=child.pid,
            traceback=stack,
            room_uid=culprit.room_uid if culprit else None,
            call=culprit.what if culprit else None,
            generation=culprit.generation if culprit else None,
        )
        child.kill()
        if culprit is not None:
            await self._strike(
                child, culprit, f"{culprit.what} blocked the loop for {self._config.stuck_s:g} s"
            )

    def _name_stopped(self, child: Child, culprit: Culprit) -> None:
        member = self._pool.get(child.host_id)
        stopped = pb.StoppedRoom(
            room_uid=culprit.room_uid,
            generation=culprit.generation,
            host_id=child.host_id,
            address=member.address if member is not None else "",
            code=CloseCode.ROOM_STOPPED,
        )
        self._stopped.append(stopped)
        asyncio.get_running_loop().call_later(STOPPED_NAMED_S, self._stopped.remove, stopped)
        self._publish()

    async def _strike(self, child: Child, culprit: Culprit, error: str) -> None:
        if not child.token:
            return
        request = store_pb.StrikeRequest(
            project=self.project,
            room_uid=culprit.room_uid,
            generation=culprit.generation,
            error=error[:4_096],
        )
        await strike(culprit.shard_address, child.token, request)

    # The end.

    async def drain(self) -> None:
        """Let every process move its rooms away and end. Cancel it to give up: `stop` kills what is left."""
        self.draining = True
        self._publish()
        for member in self._pool:
            self._drain_member(member)
        while self._children:
            await self.next_change(1.0)
        self.ended = True
        self._publish()

    async def stop(self) -> None:
        """Kill what is left."""
        children = list(self._children.values())
        if self._spare is not None:
            children.append(await self._spare)
        for child in children:
            child.kill()
        for child in children:
            await child.wait()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)

    def _publish(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("supervisor_task_failed", exc_info=error)


async def _until(bound: asyncio.Event, task: asyncio.Task[None]) -> None:
    """Return when the process serves, or has ended."""
    waiting = asyncio.get_running_loop().create_task(bound.wait())
    try:
        await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


def _culprit_of_crash(child: Child) -> Culprit | None:
    """The room that brought its process down, where that is plain: native code that faulted, or a room that
    was loading when the process was killed (it may have taken all memory)."""
    code = child.exit_code
    culprit = child.pulse.culprit()
    if culprit is None or code is None or code >= 0:
        return None
    if -code in _FAULTS or (-code == signal.SIGKILL and culprit.call == "start"):
        return culprit
    return None
