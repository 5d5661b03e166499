"""Settings of the state store: `PLAYHALL_STATESTORE_<FIELD>`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from playhall_common.config import TrustedConfig, setting
from playhall_statestore.holders import Timing

__all__ = ["PREFIX", "StateStoreConfig"]

PREFIX = "PLAYHALL_STATESTORE"


@dataclass(frozen=True, kw_only=True)
class StateStoreConfig(TrustedConfig):
    """One shard."""

    data_dir: Path = setting("Directory of the shard's volume. Never restore it from a snapshot.")
    objects_dir: Path = setting("Directory that serves as the object store.")
    data_address: str = setting("gRPC address of the data service.")
    cluster: str = setting("Names the installation; a volume of another one is refused.", default="playhall")
    shard_id: str = setting("Names this shard; its volume belongs to it.", default="shard-0")
    advertise_address: str = setting(
        "Address that others dial. Empty: the one that is listened on.", default=""
    )
    replace: bool = setting(
        "The shard's old volume is lost: start on an empty one, with what the object store has.",
        default=False,
    )
    register_s: float = setting(
        "How long an empty volume waits for the data service at start, in seconds.",
        default=30.0,
        low=0.1,
        high=600,
    )
    commit_ms: float = setting(
        "The longest a write waits for others to share its commit.", default=5.0, low=0, high=1000
    )
    upload_s: float = setting(
        "A room that changes is written to the object store this often, in seconds.",
        default=30.0,
        low=0.05,
        high=3600,
    )
    evict_s: float = setting(
        "Closed rooms leave the volume this long after, once their object is verified. 0: never.",
        default=600.0,
        low=0,
    )
    max_bytes: int = setting("Largest size of the database; 0: what the disk holds.", default=0, low=0)
    ballast_bytes: int = setting(
        "Space kept back, freed when the disk is full so that deletes work.", default=16 << 20, low=0
    )
    silence_s: float = setting(
        "A room host that says nothing for this long is not heard any more.",
        default=6.0,
        low=0.1,
        high=60,
    )
    crash_s: float = setting(
        "A room whose host is not heard for this long is closed as crashed.",
        default=60.0,
        low=0.1,
        high=3600,
    )

    @property
    def timing(self) -> Timing:
        return Timing(silence_s=self.silence_s, crash_s=self.crash_s)

    def problems(self) -> Iterable[str]:
        yield from super().problems()
        for name in ("cluster", "shard_id"):
            value: str = getattr(self, name)
            if not value or not all(char.isascii() and (char.isalnum() or char in "-_") for char in value):
                yield f"{name} {value!r} is not made of letters, digits, - and _"
        if not self.data_address:
            yield "data_address is empty"
