"""`Room`: the class authors subclass. Hooks are methods, settings are class attributes.

A room has no state machine in it: its members hand on to the `RoomContext` it was given, which is a
RoomCore's. So what an author can reach from a room is what is written here, and nothing else.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    Protocol,
    Self,
    TypeAlias,
    final,
    get_args,
    get_origin,
    overload,
)

from typing_extensions import TypeVar

from playhall.engine.bots import Bot, Bots
from playhall.engine.calls import CallRejected, Handler, handlers_of, is_handler
from playhall.engine.connection import Connection, JsonOut, Message, check_connection
from playhall.engine.entities import Entities
from playhall.engine.history import History, Past
from playhall.engine.interest import Interest, Limit
from playhall.engine.kinds import Entity
from playhall.engine.outputs import RoomIdentity, WakeReason
from playhall.engine.overriding import check_overrides
from playhall.engine.presence import Presence, PresenceEntry
from playhall.engine.roomlog import RoomLog
from playhall.engine.schema import Schema
from playhall.engine.store import check_player

__all__ = ["DEFAULT_RETENTION_S", "Hook", "Room", "RoomContext", "Wake"]

StateT = TypeVar("StateT", bound="Entity | None", default=None)
PrivateT = TypeVar("PrivateT", bound="Entity | None", default=None)
ConnT = TypeVar("ConnT", bound=Connection, default=Connection)
E = TypeVar("E", bound=Entity)

Hook: TypeAlias = "Awaitable[None] | None"
"""What a hook returns: it may be `def` or `async def`. An async one is not waited for by the tick, and has
10 s (`on_create`, `on_wake` and `on_hibernate` are waited for; the first two have 60 s), then it fails.
"""

DEFAULT_RETENTION_S = 24 * 3600.0
MAX_TICK_RATE = 120
MAX_PLAYERS = 1_024
SYNC_HOOKS = ("on_tick", "on_write", "sees_presence")


@dataclass(frozen=True, slots=True)
class Wake:
    """Why a room starts again, and how long it was away.

    `elapsed` is seconds from `saved_at` to now, never negative; `saved_at` is the wall-clock time, in seconds
    since the epoch, of the last thing that was saved. `reason` is "connect" or "request" after hibernation,
    "crash" also where an error stopped the room, "deploy" after a move to a new build; "sleep" and "alarm" do
    not happen yet.
    """

    elapsed: float
    saved_at: float
    reason: WakeReason


class RoomContext(Protocol):
    """What a room asks of the state machine that runs it."""

    identity: RoomIdentity
    entities: Entities
    presence: Presence
    log: RoomLog

    @property
    def tick_number(self) -> int: ...
    @property
    def connections(self) -> Mapping[str, Any]: ...
    @property
    def state(self) -> Any: ...
    @property
    def bots(self) -> Bots: ...
    @property
    def max_players(self) -> int: ...
    def wall(self) -> float: ...
    def private(self, player: str, create: bool) -> Any: ...
    def private_players(self) -> list[str]: ...
    def send(self, conn: Connection, message: JsonOut | bytes, unreliable: bool) -> None: ...
    def broadcast(self, message: JsonOut | bytes, unreliable: bool, except_: Connection | None) -> None: ...
    def kick(self, conn: Connection) -> None: ...
    def ban(self, player: str) -> None: ...
    def unban(self, player: str) -> None: ...
    def request_hibernate(self) -> None: ...
    def rewind(self, history: History[E], tick: float) -> Past[E]: ...


class Room(Generic[StateT, PrivateT, ConnT]):
    """A room of one type: `class Dots(Room[Board, Mine])`.

    The parameters are the kinds of shared and private state, which must be those of `schema`, and the class
    of the room's connections. Each may be left off, for None, None and Connection.

    What room code sets on `self` is scratch space that is not saved: make it in `__init__`, `on_create` or
    `on_wake`.
    """

    schema: Schema[StateT, PrivateT] = Schema()
    """What the room and its clients agree on."""
    tick_rate: ClassVar[int] = 20
    """Ticks a second, 1 to 120."""
    max_players: ClassVar[int] = 64
    """Seats, 1 to 1,024: people and bots that may be in the room at once. `self.max_players` is the limit of
    this very room.
    """
    interest: ClassVar[Interest | None] = None
    """Which entities each connection sees; None: everyone sees all but hidden kinds."""
    history: ClassVar[tuple[History[Any], ...]] = ()
    """What is recorded at the end of each tick, for `rewind`."""
    bot_kinds: ClassVar[tuple[type[Bot], ...]] = ()
    """The classes of bots the room may have: what was saved finds its class here."""
    private_retention: ClassVar[float | Literal["forever"]] = DEFAULT_RETENTION_S
    """Seconds a player's private state is kept after the player's last connection, hibernation included; a
    day by default. Or "forever".
    """

    __context: RoomContext
    _connection_class: ClassVar[type[Connection]] = Connection
    _handlers: ClassVar[Mapping[str, Handler]] = MappingProxyType({})

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        _check_members(cls)
        _check_settings(cls)
        cls._connection_class = _check_types(cls)
        cls._handlers = handlers_of(cls, getattr(cls, "schema").calls)  # noqa: B009 - see _check_types

    @classmethod
    def __playhall_types__(cls) -> tuple[Self, StateT, PrivateT]:
        """For type checkers alone: how the test harness knows what a room class is made of."""
        raise NotImplementedError

    @final
    def _enter(self, context: RoomContext) -> None:
        """Give the room what it runs on. The engine does so before `__init__`."""
        self.__context = context
        vars(self)["max_players"] = context.max_players  # a room type may have other limits than the class

    if not TYPE_CHECKING:  # to checkers, this would be any name there is

        def __getattr__(self, name):
            if name == "_Room__context":
                raise RuntimeError(
                    f"{type(self).__name__} is made by a room host, and not by calling it; a test makes one "
                    "by room_host.room"
                )
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
            )

    # What an author overrides.

    def on_create(self) -> Hook:
        """Runs once, for a new room. Raising stops the room."""
        return None

    def on_wake(self, wake: Wake) -> Hook:
        """Runs at each start from saved state, before anyone joins. Raising stops the room."""
        return None

    def on_join(self, conn: ConnT) -> Hook:
        """Runs for each connection, reconnects included; again after a crash. Raising refuses it (4006).

        `connections` holds the joiner already. The client gets its first state once this is done.
        """
        return None

    def on_message(self, conn: ConnT, message: Message) -> Hook:
        """Runs for each message, outside ticks. What it raises is logged, and only that message is lost."""
        return None

    def on_unreliable(self, conn: ConnT, message: Message) -> Hook:
        """Runs for each message that was sent as unreliable; calls `on_message`, unless overridden."""
        return self.on_message(conn, message)

    def on_request(self, message: Message) -> JsonOut | Awaitable[JsonOut]:
        """Runs for each request that a backend sends to the room; what it returns is the answer.

        Raising is the answer too: the backend gets 422 with the text, and it is logged unless it is
        CallRejected. The answer leaves when all changes made before it are saved.
        """
        raise CallRejected("the room has no on_request")

    def on_write(self, conn: ConnT, entity: Entity, values: dict[str, Any]) -> Mapping[str, Any] | None:
        """Runs as a tick begins, for what a player wrote to an entity of its own or to its private state.

        `values` has the fields that were written. What is returned applies: `values`, or others for some of
        these fields (the rest is rejected then), or None, which rejects all. Raising is logged and rejects
        all. Where the room's value is not what the player wrote in the end, the player is corrected.
        """
        return values

    def on_tick(self, dt: float) -> None:
        """Runs each tick; `dt` is exactly 1 / tick_rate. Raising stops the room."""

    def sees_presence(self, viewer: ConnT, entry: PresenceEntry) -> bool:
        """Whether a connection is told of somebody's presence. It always is of its own player's.

        Where overridden, it is asked each tick of everyone about everyone. Raising stops the room.
        """
        return True

    def on_leave(self, conn: ConnT) -> Hook:
        """Runs whenever a connection that had joined ends, but not after a crash. What it raises is logged.

        `connections` lacks the leaver already.
        """
        return None

    def on_player_leave(self, player: str) -> Hook:
        """Runs when a player has had no connection for 10 s, and before the room hibernates.

        What it raises is logged.
        """
        return None

    def on_hibernate(self) -> Hook:
        """Runs before the room's state is saved for the last time. Raising stops the room."""
        return None

    # What an author uses.

    @final
    @property
    def id(self) -> str:
        """The name players know the room by."""
        return self.__context.identity.room_id

    @final
    @property
    def project(self) -> str:
        """The project the room belongs to."""
        return self.__context.identity.project

    @final
    @property
    def join_code(self) -> str | None:
        """The room's join code, if it has one."""
        return self.__context.identity.join_code

    @final
    @property
    def tick(self) -> int:
        """How many ticks the room has run, over all its life."""
        return self.__context.tick_number

    @final
    @property
    def state(self) -> StateT:
        """The shared state, which everyone sees; None where the schema has none."""
        state: StateT = self.__context.state
        return state

    @final
    @property
    def entities(self) -> Entities:
        """The room's entities."""
        return self.__context.entities

    @final
    @property
    def connections(self) -> Mapping[str, ConnT]:
        """Who is connected, by player."""
        return self.__context.connections

    @final
    @property
    def presence(self) -> Presence:
        """Who is in the room, by player: also who lost the connection less than 10 s ago."""
        return self.__context.presence

    @final
    @property
    def bots(self) -> Bots:
        """The players that room code drives, in the order they were added."""
        return self.__context.bots

    @final
    @property
    def log(self) -> RoomLog:
        """Writes to the log of the process that runs the room."""
        return self.__context.log

    @overload
    def private(self, who: Connection, /) -> PrivateT: ...
    @overload
    def private(self, who: str, /, *, create: Literal[True]) -> PrivateT: ...
    @overload
    def private(self, who: str, /, *, create: bool = False) -> PrivateT | None: ...
    @final
    def private(self, who: Connection | str, /, *, create: bool = False) -> PrivateT | None:
        """The private state of a connection's player, or of any player by id.

        A connection's is always there. By id it is None for a player who has none, unless that is to be made
        (`create`). Raises TypeError where the schema has no private state.
        """
        private: PrivateT | None
        if isinstance(who, Connection):
            check_connection(who, self)
            private = self.__context.private(who.player, True)
        else:
            private = self.__context.private(check_player(who), create)
        return private

    @final
    def private_players(self) -> list[str]:
        """The players that have private state."""
        return self.__context.private_players()

    @final
    def now(self) -> float:
        """Wall-clock time in seconds since the epoch; in tests, the test clock's."""
        return self.__context.wall()

    @final
    def send(self, conn: ConnT, message: JsonOut | bytes, *, unreliable: bool = False) -> None:
        """Send a message to one client; nothing happens if its connection has gone.

        Raises ValueError if it is not JSON, or over 64 KB.
        """
        check_connection(conn, self)
        self.__context.send(conn, message, unreliable)

    @final
    def broadcast(
        self, message: JsonOut | bytes, *, unreliable: bool = False, except_: ConnT | None = None
    ) -> None:
        """Send a message to all clients, or all but one.

        Raises ValueError if it is not JSON, or over 64 KB.
        """
        if except_ is not None:
            check_connection(except_, self)
        self.__context.broadcast(message, unreliable, except_)

    @final
    def kick(self, conn: ConnT) -> None:
        """End a connection with 4006. The client does not come back by itself, but may connect anew.

        It is out of `connections` at once; on_leave runs when the hook at hand is done.
        """
        check_connection(conn, self)
        self.__context.kick(conn)

    @final
    def ban(self, player: str) -> None:
        """End a player's connection with 4006 and refuse every later one, until `unban`; saved with the room.

        The player's entry in presence ends too, with on_player_leave, as soon as the hook at hand is done.
        Raises ValueError for a bot, and where 4,096 players are banned already.
        """
        self.__context.ban(player)

    @final
    def unban(self, player: str) -> None:
        """Let a banned player in again."""
        self.__context.unban(player)

    @final
    def rewind(self, history: History[E], tick: float) -> Past[E]:
        """Return the entities of a history as they were at the end of a tick, as its update told of them.

        Between two ticks, floats are between those of the two; ints and bools are the earlier tick's. Who was
        added later is not in it, nor who was deleted by then. For a tick older than those that are kept it is
        the oldest of them; for one that is not recorded yet, as is `self.tick` itself in on_tick, it is what
        there is now. So it is for every tick until the first has run after a start or wake, since histories
        are not saved.

        Raises ValueError where the room's `history` does not list it, or for a tick that is not finite.
        """
        return self.__context.rewind(history, tick)

    @final
    def request_hibernate(self) -> None:
        """Hibernate as soon as the hook at hand is done. Connections end with 4011.

        While the state store is not heard the room goes on, for up to a minute; after that it must ask again.
        """
        self.__context.request_hibernate()


_FINAL = frozenset(name for name, value in vars(Room).items() if getattr(value, "__final__", False)) | {
    name for name, value in vars(Room).items() if isinstance(value, property)
}
_HOOKS = frozenset(name for name in vars(Room) if name.startswith("on_")) | {"sees_presence"}


def _check_members(cls: type) -> None:
    for name, value in vars(cls).items():
        if name in _FINAL:
            raise TypeError(f"{cls.__name__}.{name} hides a member of Room")
        if name in SYNC_HOOKS and inspect.iscoroutinefunction(value):
            raise TypeError(f"{cls.__name__}.{name} cannot be async: it must be done when it returns")
        if name in _HOOKS and (inspect.isgeneratorfunction(value) or inspect.isasyncgenfunction(value)):
            raise TypeError(f"{cls.__name__}.{name} has a yield in it, so calling it would run nothing of it")
    handlers = [name for name, value in vars(cls).items() if is_handler(value)]
    check_overrides(cls, Room, _HOOKS, own=handlers)


def _check_settings(cls: type[Room[Any, Any, Any]]) -> None:
    for name, most in (("tick_rate", MAX_TICK_RATE), ("max_players", MAX_PLAYERS)):
        value = getattr(cls, name)
        if type(value) is not int or not 1 <= value <= most:
            raise TypeError(f"{cls.__name__}.{name} must be an int from 1 to {most}, not {value!r}")
    _check_bot_kinds(cls)
    _check_interest(cls)
    _check_history(cls)
    kept: object = cls.private_retention
    if kept != "forever" and not (isinstance(kept, int | float) and not isinstance(kept, bool) and kept >= 0):
        raise TypeError(f'{cls.__name__}.private_retention must be seconds or "forever", not {kept!r}')


def _check_interest(cls: type[Room[Any, Any, Any]]) -> None:
    interest: object = cls.interest
    if interest is None:
        return
    if not isinstance(interest, Interest):
        raise TypeError(f"{cls.__name__}.interest must be an Interest, like grid(...), not {interest!r}")
    limit: object = interest.limit
    if limit is not None and not isinstance(limit, Limit):
        raise TypeError(f"{cls.__name__}.interest: its limit must be a Limit, not {limit!r}")


def _check_history(cls: type[Room[Any, Any, Any]]) -> None:
    listed: object = cls.history
    if not isinstance(listed, tuple):
        raise TypeError(f"{cls.__name__}.history must be a tuple of histories, not {listed!r}")
    schema = getattr(cls, "schema", None)
    for history in listed:
        if not isinstance(history, History):
            raise TypeError(f"{cls.__name__}.history: {history!r} is no History")
        if isinstance(schema, Schema) and history.kind not in schema.entities:
            raise TypeError(
                f"{cls.__name__}.history: {history.kind.__name__} is not one of the schema's entities"
            )
    if len(set(listed)) < len(listed):
        raise TypeError(f"{cls.__name__}.history lists a history twice")


def _check_bot_kinds(cls: type[Room[Any, Any, Any]]) -> None:
    kinds: object = cls.bot_kinds
    if not isinstance(kinds, tuple):
        raise TypeError(f"{cls.__name__}.bot_kinds must be a tuple of Bot classes, not {kinds!r}")
    by_name: dict[str, object] = {}
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Bot)) or kind is Bot:
            raise TypeError(f"{cls.__name__}.bot_kinds: {kind!r} is no class made of Bot")
        if by_name.setdefault(kind.kind, kind) is not kind:
            raise TypeError(f"{cls.__name__}.bot_kinds: two classes have one kind name, {kind.kind!r}")
    if len(by_name) < len(kinds):
        raise TypeError(f"{cls.__name__}.bot_kinds names a class twice")


def _check_types(cls: type[Room[Any, Any, Any]]) -> type[Connection]:
    """Hold the class parameters against the schema, and return the class of the room's connections."""
    schema = getattr(cls, "schema", None)
    if not isinstance(schema, Schema):
        raise TypeError(f"{cls.__name__}.schema must be a Schema, not {schema!r}")
    parameters = _parameters(cls)
    if parameters is None:
        return cls._connection_class
    # A default that was filled in is None, and not its type.
    given = (type(None) if parameter is None else parameter for parameter in parameters)
    padded = (*given, *(type(None), type(None), Connection)[len(parameters) :])
    for what, kind, declared in zip(
        ("state", "private"), padded, (schema.state, schema.private), strict=False
    ):
        if isinstance(kind, type) and kind is not (declared or type(None)):
            has = "none" if declared is None else declared.__name__
            raise TypeError(
                f"{cls.__name__}: the {what} of Room[...] is {kind.__name__}, that of its schema {has}"
            )
    connection = padded[2]
    return connection if isinstance(connection, type) else cls._connection_class


def _parameters(cls: type) -> tuple[Any, ...] | None:
    """What stands in Room[...] of this class, or None where it takes its base's."""
    for base in vars(cls).get("__orig_bases__", ()):
        origin = get_origin(base)
        if isinstance(origin, type) and issubclass(origin, Room):
            return get_args(base)
    return () if Room in cls.__bases__ else None
