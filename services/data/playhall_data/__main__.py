"""`python -m playhall_data`: wiring."""

from __future__ import annotations

from typing import NoReturn

from playhall.api.data.v1 import data_pb2_grpc as pb_grpc
from playhall_common.config import load_or_exit
from playhall_common.server import Service, run
from playhall_data.admin_servicer import BuildsServicer, KeysServicer, ProjectsServicer
from playhall_data.callers import Callers
from playhall_data.config import PREFIX, DataConfig
from playhall_data.database import Database
from playhall_data.registry_servicer import RegistryServicer
from playhall_data.sources import SYSTEM


def main() -> NoReturn:
    config = load_or_exit(DataConfig, PREFIX)

    async def set_up(service: Service) -> None:
        database = await Database.open(
            config.database_url, timeout_s=config.database_timeout_s, max_pending=config.max_pending
        )
        service.on_stop(database.close)
        callers = Callers(database, service_secret=config.service_secret, admin_key=config.admin_key)
        service.guard_with(callers.guard)
        registry = RegistryServicer(database, SYSTEM, callers, config.service_secret)
        pb_grpc.add_ProjectsServicer_to_server(ProjectsServicer(database, SYSTEM), service.grpc)
        pb_grpc.add_KeysServicer_to_server(KeysServicer(database, SYSTEM), service.grpc)
        pb_grpc.add_BuildsServicer_to_server(BuildsServicer(database, SYSTEM), service.grpc)
        pb_grpc.add_RegistryServicer_to_server(registry, service.grpc)

    run("data", set_up, config)


if __name__ == "__main__":
    main()
