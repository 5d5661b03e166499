"""`python -m playhall_router`: wiring only."""

from __future__ import annotations

from typing import NoReturn

from playhall_common.config import load_or_exit
from playhall_common.server import Service, run
from playhall_router.config import PREFIX, RouterConfig


def main() -> NoReturn:
    """Serve until a signal."""
    config = load_or_exit(RouterConfig, PREFIX)

    async def set_up(service: Service) -> None:
        await _set_up(service, config)

    run("router", set_up, config)


async def _set_up(service: Service, config: RouterConfig) -> None:
    from playhall.api.router.v1 import router_pb2_grpc as rpc
    from playhall_router.http import HttpServer
    from playhall_router.inspector import Inspector
    from playhall_router.inspector_http import InspectorHttp
    from playhall_router.router import Router
    from playhall_router.servicer import RoomsServicer
    from playhall_router.websocket import WebSocketServer

    router = Router(config)
    service.on_stop(router.close)
    sockets = WebSocketServer(router, trusted_proxies=config.trusted_proxies)
    inspector = Inspector(router.registry, router.hosts, router.rooms.ownership)
    http = HttpServer(
        config,
        router.registry,
        is_ready=lambda: router.ready,
        inspector=InspectorHttp(inspector) if config.inspector else None,
    )
    service.on_stop(sockets.close)
    service.on_stop(http.close)
    service.addresses["websocket"] = await sockets.start(config.websocket_address)
    service.addresses["http"] = await http.start(own_websocket=service.addresses["websocket"])
    rpc.add_RoomsServicer_to_server(RoomsServicer(router.registry, router.rooms.ownership), service.grpc)
    service.on_drain(router.drain)
    router.start()


if __name__ == "__main__":
    main()
