"""Where a project's game addresses are: docs/protocol/transports.md, Discovery."""

from __future__ import annotations

import random
from typing import Any

import aiohttp
import msgspec

from playhall.engine.codes import CloseCode
from playhall.engine.errors import PlayhallError

__all__ = ["Endpoints"]

KEEP_S = 60.0
TIMEOUT_S = 5.0
MAX_ANSWER = 64 * 1024


class Endpoints:
    """The WebSocket addresses of one project, asked for at the site's origin.

    An answer is kept for a minute, and thrown away where an address of it did not work.
    """

    def __init__(self, origin: str, project: str) -> None:
        self._url = f"{origin.rstrip('/')}/v1/projects/{project}/endpoints"
        self._addresses: list[str] = []
        self._asked_at = float("-inf")

    @property
    def has_others(self) -> bool:
        """Whether there is another address to try than the one that was given."""
        return len(self._addresses) > 1

    async def one(self, now: float) -> str:
        """Return one address at random. Raises OSError, TimeoutError, or PlayhallError where it is final."""
        if not self._addresses or now - self._asked_at >= KEEP_S:
            self._addresses = await self._ask()
            self._asked_at = now
        return random.choice(self._addresses)

    def failed(self, address: str) -> None:
        """An address did not work: try another of the same answer, and ask anew once none is left."""
        self._addresses = [other for other in self._addresses if other != address]

    async def _ask(self) -> list[str]:
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)) as http,
                http.get(self._url) as response,
            ):
                if response.status == 404:
                    raise PlayhallError(CloseCode.ROOM_NOT_FOUND, f"{self._url}: there is no such project")
                if response.status != 200:
                    raise OSError(f"{self._url} answered {response.status}")
                data = await response.content.read(MAX_ANSWER)
        except aiohttp.InvalidURL as error:
            raise ValueError(
                f"{self._url} is no URL; give the site's origin, as http://127.0.0.1:7350"
            ) from error
        except aiohttp.ClientError as error:
            raise OSError(f"{self._url}: {error}") from error
        return _addresses(self._url, data)


def _addresses(url: str, data: bytes) -> list[str]:
    try:
        answer: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        answer = None
    found = answer.get("websocket") if isinstance(answer, dict) else None
    addresses = [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
    if not addresses:
        raise OSError(f"{url} did not answer with addresses")
    return addresses
