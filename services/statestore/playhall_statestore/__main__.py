"""`python -m playhall_statestore`: wiring."""

from __future__ import annotations

from typing import NoReturn

from playhall_common.config import load_or_exit
from playhall_common.server import Service, run
from playhall_statestore.config import PREFIX, StateStoreConfig
from playhall_statestore.process import Process


def main() -> NoReturn:
    config = load_or_exit(StateStoreConfig, PREFIX)

    async def set_up(service: Service) -> None:
        Process(config, service)

    run("statestore", set_up, config)


if __name__ == "__main__":
    main()
