"""A room host process: `python -m playhall_roomhost.process`, started by the supervisor only.

It imports all it needs and waits for `Bind` on stdin, so that a spare one is quick to start; then it loads
the build, serves, and says so. It holds no secret but the host token that comes with Start, and ends with
its supervisor.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import gc
import os
import signal
import sys
import time

import uvloop

from playhall.api.roomhost.v1 import roomhost_pb2_grpc as rpc
from playhall_common import logs
from playhall_common.address import is_unix, join_host_port, split_host_port
from playhall_common.config import ServiceConfig
from playhall_common.server import Service, serve
from playhall_roomhost.build import BuildError, LoadedBuild, load_build
from playhall_roomhost.host import RoomHost
from playhall_roomhost.host_servicer import RoomHostServicer
from playhall_roomhost.lifeline import die_at_end_of, die_with_parent
from playhall_roomhost.measure import families
from playhall_roomhost.messages import Bind, Bound, Failed, NewToken, Report, decode_bind, encode
from playhall_roomhost.pipe import LinePipe
from playhall_roomhost.pulse import PulseWriter

__all__ = ["main"]

REPORT_S = 1.0
REPORT_SOON_S = 0.05
METRICS_EVERY = 3
"""Reports between two with metrics."""

log = logs.get_logger()


def main() -> None:
    """Wait for a build, run it, drain, exit."""
    arguments = _arguments()
    die_with_parent(arguments.parent)
    logs.configure("roomhost", arguments.log_level)
    faulthandler.register(signal.SIGUSR1, file=arguments.stack_fd, all_threads=True)
    # What is imported by now stays. The collector looks at it once while there is time for it, and not again
    # when the process is wanted.
    gc.collect()
    gc.freeze()
    line = sys.stdin.buffer.readline()
    if not line:
        return
    die_at_end_of(sys.stdin.fileno())
    bind = decode_bind(line)
    try:
        build = load_build(bind.location, bind.rooms)
    except BuildError as error:
        os.write(arguments.report_fd, encode(Failed(str(error)[-16_384:])))
        return
    process = Process(bind, build, PulseWriter(arguments.pulse_fd), arguments.report_fd)
    config = ServiceConfig(address=bind.address, log_level=arguments.log_level, drain_s=bind.drain_s)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        code = runner.run(serve("roomhost-process", process.set_up, config))
    raise SystemExit(code)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="playhall_roomhost.process")
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--report-fd", type=int, required=True)
    parser.add_argument("--pulse-fd", type=int, required=True)
    parser.add_argument("--stack-fd", type=int, required=True)
    parser.add_argument("--log-level", required=True)
    return parser.parse_args()


class Process:
    """What is set up once the build is loaded."""

    def __init__(self, bind: Bind, build: LoadedBuild, pulse: PulseWriter, report_fd: int) -> None:
        self._bind = bind
        self._build = build
        self._pulse = pulse
        self._report_fd = report_fd
        self._host: RoomHost | None = None
        self._pipe: LinePipe | None = None
        self._service: Service | None = None
        self._handle: asyncio.TimerHandle | None = None
        self._soon = False
        self._reports = 0
        self._load = 0.0
        self._load_at = (time.monotonic(), time.thread_time())

    async def set_up(self, service: Service) -> None:
        """Wire the service; the host is made when its address is known, and before anything is served."""
        self._service = service
        self._pipe = LinePipe(self._report_fd)
        service.on_bound(self._bound)
        service.on_drain(self._drain)
        service.on_stop(self._stop)

    async def _bound(self) -> None:
        assert self._service is not None
        assert self._pipe is not None
        address = advertised(self._service.addresses["grpc"], self._bind.advertise_host)
        self._host = RoomHost(
            self._build,
            host_id=self._bind.host_id,
            address=address,
            project=self._bind.project,
            max_rooms=self._bind.max_rooms,
            inspector=self._bind.inspector,
            pulse=self._pulse,
            on_change=self._changed,
            on_token=self._token,
        )
        rpc.add_RoomHostServicer_to_server(RoomHostServicer(self._host), self._service.grpc)
        self._host.start()
        self._pipe.send(encode(Bound(address)), may_drop=False)
        self._report()

    async def _drain(self) -> None:
        if self._host is not None:
            # A little less than what the service allows, so that the process itself ends what is left.
            await self._host.drain(asyncio.get_running_loop().time() + self._bind.drain_s * 0.95)

    async def _stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        if self._host is not None:
            await self._host.stop()

    def _token(self, token: str) -> None:
        if self._pipe is not None:
            self._pipe.send(encode(NewToken(token)), may_drop=False)

    def _changed(self) -> None:
        """Report soon; many changes make one report."""
        if not self._soon:
            self._soon = True
            if self._handle is not None:
                self._handle.cancel()
            self._handle = asyncio.get_running_loop().call_later(REPORT_SOON_S, self._report)

    def _report(self) -> None:
        assert self._host is not None
        assert self._pipe is not None
        self._soon = False
        self._handle = asyncio.get_running_loop().call_later(REPORT_S, self._report)
        metrics = families() if self._reports % METRICS_EVERY == 0 else None
        self._reports += 1
        report = Report(
            len(self._host.rooms),
            self._host.connections,
            self._loop_load(),
            self._host.rooms.draining,
            metrics,
        )
        self._pipe.send(encode(report))

    def _loop_load(self) -> float:
        """Share of its time that this thread, the loop's, ran on a CPU; over a second or more."""
        now = (time.monotonic(), time.thread_time())
        passed = now[0] - self._load_at[0]
        if passed >= REPORT_S / 2:
            self._load = min(1.0, (now[1] - self._load_at[1]) / passed)
            self._load_at = now
        return self._load


def advertised(bound: str, host: str) -> str:
    """The address by which others dial what is bound here."""
    if not host or is_unix(bound):
        return bound
    return join_host_port(host, split_host_port(bound)[1])


if __name__ == "__main__":
    main()
