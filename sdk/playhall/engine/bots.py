"""`Bot`, which authors subclass: a player that room code drives. How bots come and go is in `botbook`.

A bot is its fields: annotations with defaults, JSON all of them, saved with the room. What is declared by
`local` is beside them, and at its default again after a wake.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, final

from typing_extensions import dataclass_transform

from playhall.engine import jsontext
from playhall.engine.connection import JsonOut
from playhall.engine.declaring import KIND_NAME, Local, local, snake_case
from playhall.engine.faults import said_by
from playhall.engine.inputs import Input
from playhall.engine.overriding import check_overrides
from playhall.engine.payloads import MAX_PAYLOAD

if TYPE_CHECKING:
    from playhall.engine.botbook import BotBook

__all__ = [
    "BOT_PREFIX",
    "MAX_BOT_DATA",
    "Bot",
    "BotDataError",
    "Bots",
    "bot_data",
    "check_input",
    "is_bot",
    "revive",
]

B = TypeVar("B", bound="Bot")

BOT_PREFIX: Final = "bot:"
MAX_BOT_DATA: Final = 4_096

_HOOKS = ("start", "tick")
_RESERVED = frozenset({"input", "kind", "player", "start", "tick"})
_MEMBERS = frozenset({"_input", "_input_class", "_player", "input"})
_CLASS_VAR = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*\.)?ClassVar\b")
_ABSENT: Final[Any] = object()


def is_bot(player: str) -> bool:
    """Whether a player's id is a bot's: no token can name such a player."""
    return player.startswith(BOT_PREFIX)


class BotDataError(ValueError):
    """A bot's fields are not JSON, or too much of it."""


def check_input(bot: Bot, input: Any, declared: type[Input] | None) -> None:
    """Raise TypeError or ValueError where an input is none of the schema's (`declared`)."""
    who = _name(bot)
    if input is None:
        return
    if declared is not None:
        if not isinstance(input, declared):
            raise TypeError(f"{who}: input must be {declared.__name__} or None, not {type(input).__name__}")
        return
    try:
        size = len(jsontext.encode(input))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{who}: input must be JSON, as the schema has no Input: {error}") from None
    if size > MAX_PAYLOAD:
        raise ValueError(f"{who}: an input has at most {MAX_PAYLOAD} bytes of JSON, not {size}")


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(local,))
class Bot:
    """Base of a room's bots: `class Rival(Bot): pace: int = 2`, then `self.bots.add(Rival(pace=3))`.

    Fields are its data: JSON, together at most 4 KB, saved with the room; after a wake they hold what JSON
    gives back, so a tuple is a list then. Whatever else a bot keeps is declared by `local`. The class keyword
    `kind=` is the name it is saved under, else the class's in snake case.

    What `start` or `tick` raises is logged, and that bot is removed; the room goes on.
    """

    kind: ClassVar[str] = ""
    _fields: ClassVar[Mapping[str, Any]] = {}
    _locals: ClassVar[Mapping[str, Callable[[], Any]]] = {}

    if TYPE_CHECKING:
        _player: str | None
        _input: Any
        _input_class: type[Input] | None

    def __init_subclass__(cls, *, kind: str | None = None) -> None:
        super().__init_subclass__()
        _check_methods(cls)
        cls.kind = snake_case(cls.__name__) if kind is None else kind
        if not KIND_NAME.fullmatch(cls.kind):
            raise TypeError(f"{cls.__name__}: {cls.kind!r} cannot be a bot's kind")
        cls._fields, cls._locals = _declared(cls)
        check_overrides(cls, Bot, _HOOKS)

    def __init__(self, **given: Any) -> None:
        name = type(self).__name__
        if type(self) is Bot:
            raise TypeError("Bot is a base: declare a class of your own")
        missing = [f for f, default in self._fields.items() if default is _ABSENT and f not in given]
        if missing:
            raise TypeError(f"{name}: {', '.join(missing)} is missing")
        surplus = sorted(given.keys() - self._fields.keys())
        if surplus:
            raise TypeError(f"{name} has no field {', '.join(surplus)}")
        self._fill(given)

    def _fill(self, given: Mapping[str, Any]) -> None:
        self._player = self._input = self._input_class = None
        for field, default in self._fields.items():
            setattr(self, field, given[field] if field in given else copy.deepcopy(default))
        for slot, make in self._locals.items():
            setattr(self, slot, make())

    # What an author overrides.

    def start(self, room: Any) -> None:
        """Runs when the bot is added, and after each wake."""

    def tick(self, room: Any) -> None:
        """Runs each tick, after owner writes and before `on_tick`; bots in the order they were added."""

    # What an author uses.

    @final
    @property
    def player(self) -> str:
        """The bot's player id: "bot:" and a number. Raises RuntimeError before it is added."""
        if self._player is None:
            raise RuntimeError(f"{type(self).__name__} has no player before it is added")
        return self._player

    @property
    def input(self) -> Input | JsonOut:
        """What the stepper gets for this bot: the schema's Input, or JSON where it has none; or None.

        Steppers are still to come: until then nothing reads it. Stays until another is set, and is not saved.
        Raises TypeError or ValueError for anything else.
        """
        input: Input | JsonOut = self._input
        return input

    @input.setter
    def input(self, input: Input | JsonOut) -> None:
        if self._player is not None:
            check_input(self, input, self._input_class)
        self._input = input

    if not TYPE_CHECKING:

        def __setattr__(self, name, value):
            cls = type(self)
            known = name in cls._fields or name in cls._locals or name in _MEMBERS
            if not known and not isinstance(inspect.getattr_static(cls, name, None), property):
                raise AttributeError(
                    f"{cls.__name__} has no field {name!r}: declare it; by local(), where it is not saved"
                )
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        fields = "".join(f" {field}={getattr(self, field, None)!r}" for field in self._fields)
        return f"<{_name(self)}{fields}>"


def _name(bot: Bot) -> str:
    return f"{type(bot).__name__} {bot._player or '(not added)'}"


def _check_methods(cls: type[Bot]) -> None:
    own = vars(cls)
    if "__init__" in own:
        raise TypeError(
            f"{cls.__name__}: a bot is made of its fields; what else is to be done goes into start"
        )
    for name in ("player", "input", "kind"):
        if name in own:
            raise TypeError(f"{cls.__name__}.{name} hides a member of Bot")
    for name in _HOOKS:
        made = own.get(name)
        if inspect.iscoroutinefunction(made) or inspect.isasyncgenfunction(made):
            raise TypeError(f"{cls.__name__}.{name} cannot be async: it must be done when it returns")
        if inspect.isgeneratorfunction(made):
            raise TypeError(f"{cls.__name__}.{name} has a yield in it, so calling it would run nothing of it")


def _declared(cls: type[Bot]) -> tuple[dict[str, Any], dict[str, Callable[[], Any]]]:
    """Return the fields with their defaults, and the local slots; inherited ones first."""
    fields: dict[str, Any] = {}
    locals_: dict[str, Callable[[], Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        if issubclass(base, Bot):
            fields |= base._fields
            locals_ |= base._locals
    for name, annotation in vars(cls).get("__annotations__", {}).items():
        if _CLASS_VAR.match(annotation if isinstance(annotation, str) else repr(annotation)):
            continue
        default = vars(cls).get(name, _ABSENT)
        if isinstance(default, Local):
            locals_[name] = default.make
            continue
        _check_field(cls, name, default)
        fields[name] = default
    for name, value in vars(cls).items():
        if isinstance(value, Local) and name not in locals_:
            raise TypeError(f"{cls.__name__}.{name}: a local slot needs a type: {name}: float = local(0.0)")
        if name in fields and name not in vars(cls).get("__annotations__", {}):
            raise TypeError(
                f"{cls.__name__}.{name}: this hides a field; to change its default, write its type too"
            )
    return fields, locals_


def _check_field(cls: type[Bot], name: str, default: Any) -> None:
    if name in _RESERVED:
        raise TypeError(f"{cls.__name__}.{name}: this name is reserved")
    if name.startswith("_"):
        raise TypeError(
            f"{cls.__name__}.{name}: a field's name cannot start with _; use local() for a private slot"
        )
    if default is not _ABSENT:
        try:
            jsontext.encode(default)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{cls.__name__}.{name}: the default must be JSON: {error}") from None


def bot_data(bot: Bot) -> bytes:
    """Return a bot's fields as JSON text. Raises BotDataError, which names the field."""
    try:
        data = jsontext.encode({field: getattr(bot, field) for field in bot._fields})
    except Exception as error:  # a Mapping or Sequence of the author's own may raise anything
        raise BotDataError(f"{_name(bot)}: {_culprit(bot)}: {said_by(error)}") from error
    if len(data) > MAX_BOT_DATA:
        raise BotDataError(
            f"{_name(bot)}: its fields have {len(data)} bytes of JSON, and at most {MAX_BOT_DATA} are kept"
        )
    return data


def _culprit(bot: Bot) -> str:
    for field in bot._fields:
        try:
            jsontext.encode(getattr(bot, field))
        except Exception:  # as above
            return field
    return "its fields"


def revive(cls: type[Bot], data: bytes) -> Bot:
    """Make a bot of what was saved. Fields that the class has no more are left out, new ones get their
    defaults.

    Raises BotDataError where a field without a default was not saved, and ValueError for what was never saved
    so.
    """
    saved = jsontext.decode(data)
    if not isinstance(saved, dict):
        raise BotDataError(f"{cls.__name__}: its fields are no JSON object")
    missing = [f for f, default in cls._fields.items() if default is _ABSENT and f not in saved]
    if missing:
        raise BotDataError(f"{cls.__name__}: {', '.join(missing)} was not saved, and has no default")
    bot = cls.__new__(cls)
    bot._fill(saved)
    return bot


class Bots:
    """`room.bots`: the players that the room's own code drives, in the order they were added.

    Iteration and `len()` are of them all.
    """

    def __init__(self, bots: BotBook) -> None:
        self._bots = bots

    def __len__(self) -> int:
        return len(self._bots)

    def __iter__(self) -> Iterator[Bot]:
        return iter(self._bots)

    def add(self, bot: B, *, name: str = "", status: JsonOut = None) -> B:
        """Give a new bot a seat and a presence entry, run its `start`, and return it.

        `name` has at most 64 characters, `status` at most 1 KB of JSON. Raises ValueError where all seats are
        taken or there are 64 bots, TypeError where its class is not in `bot_kinds`, and either for what does
        not fit; nothing is changed then.
        """
        self._bots.add(bot, name, status)
        return bot

    def remove(self, bot: Bot) -> None:
        """End a bot: its presence ends, and on_player_leave has run when this returns.

        Raises ValueError where it is not in the room.
        """
        if not isinstance(bot, Bot):
            raise TypeError(f"this takes a bot, not {bot!r}")
        self._bots.remove(bot)
