"""What room code sees of one client's connection, and the types of what passes over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, final

from typing_extensions import TypeAliasType

__all__ = ["Connection", "JsonIn", "JsonOut", "Message", "check_connection"]

if TYPE_CHECKING:
    from playhall.engine.interest import Memory

    JsonOut: TypeAlias = "bool | int | float | str | Sequence[JsonOut] | Mapping[str, JsonOut] | None"
    """Anything JSON encodes, as room code gives it."""
    JsonIn: TypeAlias = "bool | int | float | str | list[JsonIn] | dict[str, JsonIn] | None"
    """Anything JSON encodes, as it arrives."""
    Message: TypeAlias = "JsonIn | bytes"
    """A message as it arrives: decoded JSON, or the bytes of a binary one."""
else:
    # So that an annotation like `JsonOut | bytes` can be evaluated; a plain string cannot. Pyright does not
    # follow the recursion through these, hence the aliases above.
    JsonOut = TypeAliasType("JsonOut", object)
    JsonIn = TypeAliasType("JsonIn", object)
    Message = TypeAliasType("Message", object)


class Connection:
    """One client's session with the room.

    Subclass it to give it attributes of the game's own, and name the subclass in `Room[State, Private,
    Conn]`. They are scratch space: never sent, and gone with the connection.
    """

    _id: str = ""
    _player: str = ""
    _meta: JsonIn = None
    _client_tick: int | None = None
    _memory: Memory | None = None
    _room_of: object = None

    @final
    @property
    def id(self) -> str:
        """Names this connection, in logs too."""
        return self._id

    @final
    @property
    def player(self) -> str:
        """The player's id, the same over all connections of that player."""
        return self._player

    @final
    @property
    def meta(self) -> JsonIn:
        """The `meta` claim of the player's token, as your backend wrote it; None for guests."""
        return self._meta

    @final
    @property
    def client_tick(self) -> int | None:
        """The newest tick the client had applied when it sent the message at hand; None if it had none."""
        return self._client_tick

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._id} of {self._player}>"


def check_connection(conn: object, room: object) -> None:
    """Raise TypeError or ValueError unless it is one of the room's connections; it may have gone."""
    if not isinstance(conn, Connection):
        what = repr(conn) if isinstance(conn, str) else type(conn).__name__
        raise TypeError(f"this takes a connection, one of self.connections.values(), not {what}")
    if conn._room_of is not room:
        raise ValueError(f"{conn!r} is not a connection of this room")
