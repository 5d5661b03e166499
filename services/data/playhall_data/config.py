"""Settings of the data service."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from playhall_common.config import MIN_SECRET_CHARS, Secret, TrustedConfig, setting

PREFIX = "PLAYHALL_DATA"


@dataclass(frozen=True, kw_only=True)
class DataConfig(TrustedConfig):
    """PLAYHALL_DATA_*."""

    database_url: Secret = setting(
        "The database, as SQLAlchemy names it: sqlite+aiosqlite:///path/to/file. May hold a password.",
        default=Secret("sqlite+aiosqlite:///.playhall/data.db"),
    )
    admin_key: Secret | None = setting(
        "The operator's key: manages every project. Without it only trusted services do.", default=None
    )
    database_timeout_s: float = setting(
        "How long a request may wait for the database, in seconds.", default=4.0, low=0.1, high=60
    )
    max_pending: int = setting(
        "Requests that may wait for the database; more are refused with E_LIMIT.", default=1024, low=1
    )

    def problems(self) -> Iterable[str]:
        yield from super().problems()
        if self.admin_key is not None and len(self.admin_key) < MIN_SECRET_CHARS:
            yield f"{PREFIX}_ADMIN_KEY is shorter than {MIN_SECRET_CHARS} characters"
