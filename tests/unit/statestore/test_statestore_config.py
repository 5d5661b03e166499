"""Settings of the state store."""

from __future__ import annotations

import pytest

from playhall_common.config import ConfigError, load
from playhall_statestore.config import PREFIX, StateStoreConfig

GOOD = {
    "PLAYHALL_SERVICE_SECRET": "a secret of some length",
    "PLAYHALL_STATESTORE_DATA_DIR": "/tmp/volume",
    "PLAYHALL_STATESTORE_OBJECTS_DIR": "/tmp/objects",
    "PLAYHALL_STATESTORE_DATA_ADDRESS": "127.0.0.1:7001",
}


def test_defaults_are_those_of_the_protocols() -> None:
    config = load(StateStoreConfig, PREFIX, GOOD)
    timing = config.timing
    assert (timing.silence_s, timing.broken_s, timing.crash_s) == (6.0, 0.25, 60.0)
    assert (config.commit_ms, config.upload_s, config.replace) == (5.0, 30.0, False)


@pytest.mark.parametrize(
    ("name", "value"), [("CLUSTER", "a/b"), ("SHARD_ID", ""), ("DATA_ADDRESS", ""), ("UPLOAD_S", "0")]
)
def test_what_cannot_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(StateStoreConfig, PREFIX, GOOD | {f"{PREFIX}_{name}": value})
    assert name.lower() in str(refused.value).lower()
