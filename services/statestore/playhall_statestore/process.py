"""One shard as a process: what is made when, and ended in which order."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Awaitable, Callable
from typing import IO

from playhall.api.statestore.v1 import statestore_pb2_grpc as pb_grpc
from playhall_common import logs
from playhall_common.server import Service
from playhall_statestore.callers import Callers
from playhall_statestore.committer import EXIT_UNKNOWN_COMMIT, wall_clock
from playhall_statestore.config import StateStoreConfig
from playhall_statestore.disk import Disk
from playhall_statestore.epochs import EXIT_SUPERSEDED, Epochs
from playhall_statestore.loader import Loader
from playhall_statestore.objects import DirectoryObjects
from playhall_statestore.registration import Registration, RegistrationError
from playhall_statestore.registry import Registry
from playhall_statestore.servicer import StateStoreServicer
from playhall_statestore.shard import Shard
from playhall_statestore.store import Store
from playhall_statestore.uploader import Uploader
from playhall_statestore.volume import Identity, Volume
from playhall_statestore.writer import Reader, Writer

__all__ = ["Process"]

log = logs.get_logger()


class Process:
    """Hooks itself into the service; the shard is made once the address is known, which registering tells."""

    def __init__(self, config: StateStoreConfig, service: Service) -> None:
        self._config = config
        self._service = service
        self._callers = Callers(config.service_secret)
        self._tasks: list[asyncio.Task[None]] = []
        service.guard_with(self._callers.guard)
        service.on_bound(self._start)

    async def _start(self) -> None:
        config = self._config
        config.data_dir.mkdir(parents=True, exist_ok=True)
        lock = _lock(config.data_dir / "lock")
        self._service.on_stop(_closing(lock))
        path = config.data_dir / "state.db"
        objects = DirectoryObjects(config.objects_dir)
        volume = Volume(path, max_bytes=config.max_bytes)
        writer = Writer(volume)
        reader = Reader(path, writer)
        self._service.on_stop(writer.close)
        self._service.on_stop(reader.close)
        registry = Registry(
            config.data_address, config.service_secret, config.shard_id, replace=config.replace
        )
        registry.address = config.advertise_address or self._service.addresses["grpc"]
        self._service.on_stop(registry.close)
        registration = Registration(
            volume,
            objects,
            registry.register,
            cluster=config.cluster,
            shard_id=config.shard_id,
            replace=config.replace,
        )
        identity, confirmed = await registration.identify(config.register_s)

        loaded = volume.load()
        shard = Shard(identity.epoch, loaded.counter, loaded.rooms, loaded.beats, config.timing, wall_clock())
        disk = Disk(config.data_dir, config.ballast_bytes)
        store = Store(shard, writer, reader, disk, commit_s=config.commit_ms / 1000)
        loader = Loader(store, reader, objects, config.cluster, recovering=identity.recovering)
        uploader = Uploader(
            store,
            reader,
            objects,
            registry.mark_has_state,
            cluster=config.cluster,
            upload_s=config.upload_s,
            evict_s=config.evict_s,
        )
        servicer = StateStoreServicer(store, loader, self._callers, Epochs(identity.epoch, registry.epoch))
        pb_grpc.add_StateStoreServicer_to_server(servicer, self._service.grpc)

        self._run("store", store.run)
        self._run("uploader", uploader.run)
        if not confirmed:
            self._run("registration", lambda: _confirm(registration, identity))
        self._service.on_drain(store.drain)
        self._service.on_stop(self._end_tasks)
        log.info("shard_started", epoch=identity.epoch, rooms=len(loaded.rooms), confirmed=confirmed)

    def _run(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        async def guarded() -> None:
            try:
                await work()
            except Exception:
                log.critical("task_failed", task=name, exc_info=True)
                os._exit(EXIT_UNKNOWN_COMMIT)

        self._tasks.append(asyncio.create_task(guarded(), name=name))

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _confirm(registration: Registration, identity: Identity) -> None:
    try:
        await registration.confirm(identity)
    except RegistrationError:
        log.critical("superseded", exc_info=True)
        os._exit(EXIT_SUPERSEDED)


def _lock(path: os.PathLike[str]) -> IO[bytes]:
    """Two processes on one volume would each be right. Raises BlockingIOError for the second."""
    file = open(path, "wb")  # noqa: SIM115  # held until the process ends
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return file


def _closing(file: IO[bytes]) -> Callable[[], Awaitable[None]]:
    async def close() -> None:
        file.close()

    return close
