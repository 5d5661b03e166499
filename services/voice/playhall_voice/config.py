"""Settings of the voice service."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from playhall_common.config import Secret, TrustedConfig, setting

PREFIX = "PLAYHALL_VOICE"


@dataclass(frozen=True, kw_only=True)
class VoiceConfig(TrustedConfig):
    """PLAYHALL_VOICE_*. Without LiveKit the service runs and answers E_UNAVAILABLE."""

    livekit_url: str | None = setting("Where clients find LiveKit: ws:// or wss://.", default=None)
    livekit_key: str | None = setting("LiveKit's API key.", default=None)
    livekit_secret: Secret | None = setting("The secret of that key.", default=None)

    def problems(self) -> Iterable[str]:
        yield from super().problems()
        given = [self.livekit_url, self.livekit_key, self.livekit_secret]
        if any(given) and not all(given):
            yield f"{PREFIX}_LIVEKIT_URL, _LIVEKIT_KEY and _LIVEKIT_SECRET go together; some are missing"
        if self.livekit_url and not self.livekit_url.startswith(("ws://", "wss://")):
            yield f"{PREFIX}_LIVEKIT_URL {self.livekit_url!r} starts with neither ws:// nor wss://"
