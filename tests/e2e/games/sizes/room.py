"""A room that writes what it is told to, and says what does not fit."""

from collections.abc import Callable
from typing import Any

from playhall.room import Connection, FieldError, Message, Room

from .shared import Edge, schema


class Sizes(Room[Edge, None]):
    schema = schema

    def on_message(self, conn: Connection, message: Message) -> None:
        match message:
            case {"type": "add", "ask": int() as ask, **given}:
                self.answer(conn, ask, lambda: self.entities.add(Edge(**made(given))))
            case {"type": "set", "ask": int() as ask, "id": int() as id, **given}:
                self.answer(conn, ask, lambda: self.write(id, made(given)))
            case {"type": "hibernate"}:
                self.request_hibernate()
            case _:
                raise ValueError("no such message")

    def write(self, id: int, values: dict[str, Any]) -> Edge:
        edge = self.state if id == 0 else self.entities.get(Edge, id)
        assert edge is not None
        for name, value in values.items():
            setattr(edge, name, value)
        return edge

    def answer(self, conn: Connection, ask: int, act: Callable[[], Edge]) -> None:
        try:
            self.send(conn, {"answer": ask, "id": act().id})
        except FieldError as error:
            self.send(conn, {"answer": ask, "refused": error.field, "kind": error.kind, "id": error.id})


def made(given: dict[Any, Any]) -> dict[str, Any]:
    """Values of the lengths asked for: a message could not carry the largest."""
    values: dict[str, Any] = {}
    for name, value in given.items():
        match value:
            case {"repeat": str() as text, "times": int() as times, "end": str() as end}:
                values[name] = text * times + end
            case {"zeros": int() as length}:
                values[name] = bytes(length)
            case {"ramp": int() as length}:
                values[name] = bytes(n % 251 for n in range(length))
            case _:
                values[name] = value
    return values
