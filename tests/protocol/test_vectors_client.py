"""The vectors of what a client does, run by the whole Python client: docs/protocol/state.md and flow.md."""

from __future__ import annotations

from typing import Any

import pytest

from playhall.client import outputs
from playhall.client.backoff import split_reason
from playhall.client.core import ClientCore
from playhall.engine.codes import CloseCode
from playhall.engine.frames import Welcome, encode_server
from playhall.engine.kinds import spec_of, stored_values
from tests.protocol.test_vectors_updates import SCHEMA
from tests.support.vectors import params, said, same

UPDATES, UPDATE_IDS = params("updates.json")
CLOSES, CLOSE_IDS = params("close.json")


class Client:
    """A client that was welcomed at version 0 and tick 40, as the file says."""

    def __init__(self, player: str) -> None:
        self.events: list[outputs.Output] = []
        self.core = ClientCore(
            SCHEMA,
            project="dots",
            room="main",
            type=None,
            token=None,
            session=bytes(16),
            sdk="test",
            rng=lambda: 0.0,
        )
        self.core.start(0.0)
        self.core.opened(0.0)
        self.receive(encode_server(Welcome(1, 0, 40, 0, False, False, 20, player, "main", "default", "")))
        self.events.clear()

    def receive(self, data: bytes) -> None:
        self.core.received(data, 0.0)
        self.events += self.core.take_outputs()

    def held(self) -> dict[str, Any]:
        """What it holds, as the vectors write it."""
        ids = [0, 1, *self.core.replica.ids()]
        entities = {id: entity for id in ids if (entity := self.core.replica.get(id)) is not None}
        return {
            str(id): {
                "kind": entity.kind,
                "owner": entity.owner,
                "fields": {
                    field.name: said(field.type.load(value))
                    for field, value in zip(spec_of(entity).fields, stored_values(entity), strict=True)
                },
            }
            for id, entity in entities.items()
        }


@pytest.mark.ledger("CENT-06")
@pytest.mark.parametrize("vector", UPDATES, ids=UPDATE_IDS)
def test_updates(vector: dict[str, Any]) -> None:
    client = Client(vector["player"])
    parts = [bytes.fromhex(part) for part in (*vector["before"], *vector["parts"])]
    for part in parts[:-1]:
        client.receive(part)
    before = client.held()
    client.receive(parts[-1])
    closed = [event for event in client.events if isinstance(event, outputs.Closed)]
    if vector["verdict"] == "refused":
        assert [event.error.code for event in closed] == [CloseCode.PROTOCOL]
        assert client.held() == before
        return
    assert closed == []
    after = vector["after"]
    assert same(client.held(), after["entities"])
    if not parts[-1][1] & 1:
        return  # the update goes on: its tick is not the client's yet
    assert client.core.tick == after["tick"]


@pytest.mark.parametrize("vector", CLOSES, ids=CLOSE_IDS)
def test_the_reason_of_a_close(vector: dict[str, Any]) -> None:
    seconds, text = split_reason(vector["reason"])
    assert (seconds, text) == ((vector["retry_after_ms"] or 0) / 1000, vector["text"])
