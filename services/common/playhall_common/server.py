"""The life of a service: from its settings to a drained exit.

    async def set_up(service: Service) -> None:
        rooms = await Rooms.open(config)
        service.on_stop(rooms.close)
        service.guard_with(service_guard(config.service_secret))
        add_RoomsServicer_to_server(RoomsServicer(rooms), service.grpc)

    def main() -> NoReturn:
        run("rooms", set_up, load_or_exit(RoomsConfig, "PLAYHALL_ROOMS"))

Start: logs, loop (uvloop), set_up, gRPC with health and /metrics; then one `serving` line on stderr and the
bound addresses as JSON on `ready_fd`. SIGTERM or SIGINT: health says NOT_SERVING, the drain hooks run in the
order they were given and RPCs end, both within `drain_s`; then the stop hooks run, last given first, 5 s each
at most. A second signal changes nothing; a first one before all serves abandons the start. The exit code is
0, or 1 where the start or a hook failed.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NoReturn

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as aio_health

from playhall_common import logs, metrics
from playhall_common.address import is_unix, join_host_port, split_host_port
from playhall_common.auth import FLOW_OPTIONS, MAX_MESSAGE_BYTES
from playhall_common.interceptor import ErrorInterceptor, Guard

if TYPE_CHECKING:
    from playhall_common.config import ServiceConfig

__all__ = ["Service", "run", "serve"]

Hook = Callable[[], Awaitable[None]]
SetUp = Callable[["Service"], Awaitable[None]]

_STOP_HOOK_S = 5.0

# Measured with 200 rooms of 4 (Python 3.11): by the interpreter's own thresholds (700, 10, 10) the collector
# took 3.6 % of a room host process, and its full collections 60 to 195 ms each, for objects that live as long
# as their rooms. So the young are looked at after 20,000 new ones (1 to 2 ms), and all of them seldom; what
# there is when a service begins to serve stays for good and is not looked at again.
_COLLECT_AFTER = (20_000, 5, 20)

# More are refused with RESOURCE_EXHAUSTED, which `errors.from_rpc` calls E_LIMIT.
MAX_CONCURRENT_RPCS = 8192

_SERVER_OPTIONS = (
    *FLOW_OPTIONS,
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # Without this two processes given one port both start, and each gets some of the calls.
    ("grpc.so_reuseport", 0),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
)

log = logs.get_logger()


class Service:
    """What `set_up` is given: where it adds servicers, hooks and addresses."""

    def __init__(self, name: str, config: ServiceConfig) -> None:
        self.name = name
        self.config = config
        self._interceptor = ErrorInterceptor()
        self.grpc = grpc.aio.server(
            interceptors=[self._interceptor],
            options=_SERVER_OPTIONS,
            maximum_concurrent_rpcs=MAX_CONCURRENT_RPCS,
        )
        self.health = aio_health.HealthServicer()
        self.addresses: dict[str, str] = {}
        """What else is listened on, by name; goes out with the ready line."""
        self.stopping = asyncio.Event()
        """Set when a drain begins. Setting it begins one."""
        self._bound_hooks: list[Hook] = []
        self._drain_hooks: list[Hook] = []
        self._stop_hooks: list[Hook] = []
        health_pb2_grpc.add_HealthServicer_to_server(self.health, self.grpc)

    def guard_with(self, guard: Guard) -> None:
        """Ask `guard` about the caller of every RPC but health checks. Call it in `set_up`."""
        self._interceptor.guard = guard

    def on_bound(self, hook: Hook) -> None:
        """Run `hook` when `addresses` are known and before RPCs are served. What it raises ends the start."""
        self._bound_hooks.append(hook)

    def on_drain(self, hook: Hook) -> None:
        """Run `hook` when a drain begins, while RPCs are still served. It gets what is left of `drain_s`.

        RPCs get the rest, so streams that do not end by themselves should end when `stopping` is set.
        """
        self._drain_hooks.append(hook)

    def on_stop(self, hook: Hook) -> None:
        """Run `hook` when no RPC is served any more, or the start failed; the last given runs first."""
        self._stop_hooks.append(hook)

    async def start(self) -> None:
        """Bind and serve. Raises OSError where an address is taken."""
        if self.config.metrics_address:
            self.addresses["metrics"] = metrics.serve(self.config.metrics_address)
        self.addresses["grpc"] = _bind(self.grpc, self.config.address)
        for hook in self._bound_hooks:
            await hook()
        await self.grpc.start()
        await self.health.set("", health_pb2.HealthCheckResponse.SERVING)

    async def drain(self, deadline: float) -> bool:
        """Stop serving by `deadline` (of the loop's clock). Whether nothing was cut off."""
        await self.health.enter_graceful_shutdown()
        whole = True
        for hook in self._drain_hooks:
            whole &= await _run_hook(hook, deadline)
        left = max(0.0, deadline - asyncio.get_running_loop().time())
        await self.grpc.stop(left)
        return whole

    async def stop(self) -> bool:
        """Run the stop hooks. Whether all of them ended well."""
        whole = True
        for hook in reversed(self._stop_hooks):
            whole &= await _run_hook(hook, asyncio.get_running_loop().time() + _STOP_HOOK_S)
        return whole


def run(name: str, set_up: SetUp, config: ServiceConfig) -> NoReturn:
    """Serve until a signal, then exit the process. See the module's text."""
    logs.configure(name, config.log_level)
    if config.ready_fd is not None:
        os.set_inheritable(config.ready_fd, False)  # whoever waits for the line waits for this process
    if sys.platform == "win32":
        factory = None
    else:
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        code = runner.run(serve(name, set_up, config))
    raise SystemExit(code)


async def serve(name: str, set_up: SetUp, config: ServiceConfig) -> int:
    """`run` within a loop that is there already; gives the exit code.

    Signals that come after it are ignored, because the process is on its way out.
    """
    service = Service(name, config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, service.stopping.set)
    try:
        return await _serve(service, set_up)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)


async def _serve(service: Service, set_up: SetUp) -> int:
    loop = asyncio.get_running_loop()
    try:
        started = await _start(service, set_up)
    except Exception:
        log.exception("start_failed")
        await service.stop()
        return 1
    if not started:
        log.info("start_abandoned")
        return 0 if await service.stop() else 1
    log.info("serving", pid=os.getpid(), cpu_s=round(time.process_time(), 3), **service.addresses)
    _tell_ready(service)
    _quieten_collector()
    await service.stopping.wait()
    begun = loop.time()
    log.info("draining", limit_s=service.config.drain_s)
    whole = await service.drain(begun + service.config.drain_s)
    whole &= await service.stop()
    log.info("drained", whole=whole, seconds=round(loop.time() - begun, 3))
    return 0 if whole else 1


def _quieten_collector() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)


async def _start(service: Service, set_up: SetUp) -> bool:
    """Whether the service serves; not where it was told to stop while it was set up.

    That is done in this task, and not in one that could simply be cancelled, so that what `set_up` enters its
    stop hooks may leave: task groups want both in one task.
    """
    starting = asyncio.current_task()
    assert starting is not None, "runs in a task"

    async def abandon() -> None:
        await service.stopping.wait()
        starting.cancel()

    abandoning = asyncio.create_task(abandon())
    try:
        await set_up(service)
        await service.start()
    except asyncio.CancelledError:
        if not service.stopping.is_set():
            raise
        starting.uncancel()
        return False
    finally:
        abandoning.cancel()
    return True


def _bind(server: grpc.aio.Server, address: str) -> str:
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as error:
        raise OSError(f"cannot listen on {address}") from error
    if is_unix(address):
        return address
    host, _ = split_host_port(address)
    return join_host_port(host, port)


def _tell_ready(service: Service) -> None:
    fd = service.config.ready_fd
    if fd is None:
        return
    line = json.dumps({"service": service.name, "pid": os.getpid(), **service.addresses}) + "\n"
    try:
        os.write(fd, line.encode())
    except OSError as error:
        # Whoever waited for the line is gone; the service is as good as before.
        log.warning("ready_line_unread", error=str(error))
    finally:
        os.close(fd)


async def _run_hook(hook: Hook, deadline: float) -> bool:
    try:
        async with asyncio.timeout_at(deadline):
            await hook()
    except TimeoutError:
        log.error("hook_cut_off", hook=_hook_name(hook))
        return False
    except Exception:
        log.exception("hook_failed", hook=_hook_name(hook))
        return False
    return True


def _hook_name(hook: Hook) -> str:
    return getattr(hook, "__qualname__", repr(hook))
