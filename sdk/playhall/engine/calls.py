"""Calls: what a client asks of a room by name, with typed arguments and a typed reply.

A call is declared once, in the module that room and clients share: its fields are the arguments, and the
parameter of `Call[...]` is the reply. What travels is JSON, and msgspec checks it against those types on the
side that receives it. Calls are not in a schema's hash, so the two sides may differ in them: unknown keys are
ignored, and what is missing takes its default.
"""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from typing_extensions import TypeVar, dataclass_transform

from playhall.engine.declaring import ALIASES, KIND_NAME, snake_case
from playhall.engine.faults import said_by
from playhall.engine.payloads import Payload, encode_payload

__all__ = [
    "Call",
    "CallRejected",
    "CallSpec",
    "Handler",
    "call_spec_of",
    "check_calls",
    "handlers_of",
    "is_handler",
]

R_co = TypeVar("R_co", covariant=True, default=None)
RoomT = TypeVar("RoomT")
ConnT = TypeVar("ConnT")

_MARK: Final = "__playhall_call__"
_RESERVED: Final = frozenset({"handler"})


class CallRejected(Exception):  # noqa: N818 - named for what it says to the caller
    """Raised in a handler or `on_request`: an expected no. The caller gets the text; nothing is logged."""


if TYPE_CHECKING:

    @dataclass_transform(kw_only_default=True, frozen_default=True)
    class Call(Generic[R_co]):
        """Base of calls: `class Buy(Call[int])`, whose fields are the arguments and whose reply is an int.

        The arguments are keyword-only and immutable, and of any type msgspec decodes. `__post_init__` may
        raise, which rejects the call where it is decoded. The name on the wire is the class's in snake case,
        or the class keyword `name=`.
        """

        _spec: ClassVar[CallSpec]

        def __init_subclass__(cls, *, name: str | None = None) -> None: ...

        @classmethod
        def handler(
            cls, method: Callable[[RoomT, ConnT, Self], R_co | Awaitable[R_co]], /
        ) -> Callable[[RoomT, ConnT, Self], R_co | Awaitable[R_co]]:
            """Mark a method of a room, `(self, conn, ask)`, as what answers this call. It may be async."""
            ...

else:

    class _CallMeta(type(msgspec.Struct)):
        """Makes a call of a class body."""

        def __new__(mcls, cls_name, bases, ns, /, *, name=None):
            if not any(isinstance(base, _CallMeta) for base in bases):
                return super().__new__(mcls, cls_name, bases, ns, kw_only=True, frozen=True)
            if bases[0] is not Call or len(bases) > 1:
                raise TypeError(f"{cls_name}: a call has Call[Reply] as its only base")
            frame = sys._getframe(1)
            names = _Names(frame.f_globals, {} if frame.f_locals is frame.f_globals else dict(frame.f_locals))
            annotations = ns.get("__annotations__", {})
            for field in annotations.keys() & _RESERVED:
                raise TypeError(f"{cls_name}.{field}: the name is reserved")
            ns["__annotations__"] = {field: names.known(hint) for field, hint in annotations.items()}
            cls = super().__new__(mcls, cls_name, bases, ns, kw_only=True, frozen=True)
            wire_name = snake_case(cls_name) if name is None else name
            if not (isinstance(wire_name, str) and KIND_NAME.fullmatch(wire_name)):
                raise TypeError(f"{cls_name}: {wire_name!r} cannot be a call's name")
            cls._spec = CallSpec(wire_name, cls, _reply_of(ns), names)
            return cls

    class Call(msgspec.Struct, Generic[R_co], metaclass=_CallMeta):
        """Base of calls: `class Buy(Call[int])`, whose fields are the arguments and whose reply is an int.

        The arguments are keyword-only and immutable, and of any type msgspec decodes. `__post_init__` may
        raise, which rejects the call where it is decoded. The name on the wire is the class's in snake case,
        or the class keyword `name=`.
        """

        _spec: ClassVar[Any] = None

        @classmethod
        def handler(cls, method):
            """Mark a method of a room, `(self, conn, ask)`, as what answers this call. It may be async."""
            if cls is Call:
                raise TypeError("Call is a base: declare a class of your own, and decorate with its handler")
            if not inspect.isfunction(method):
                raise TypeError(f"@{cls.__name__}.handler decorates a method of a room, not {method!r}")
            if inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
                raise TypeError(
                    f"{method.__qualname__} has a yield in it, so calling it would run nothing of it"
                )
            if _MARK in vars(method):
                raise TypeError(f"{method.__qualname__} handles {getattr(method, _MARK).__name__} already")
            setattr(method, _MARK, cls)
            return method

    def _reply_of(ns):
        for base in ns.get("__orig_bases__", ()):
            if get_origin(base) is Call:
                return get_args(base)[0]
        return None


@dataclass(frozen=True, slots=True)
class _Names:
    """Where the names in a call's types are looked up: its module, and the code that ran the class body."""

    globals: dict[str, Any]
    locals: dict[str, Any]

    def known(self, hint: Any) -> Any:
        """Return a field's type as msgspec knows it. Text that names what is not there yet stays text."""
        if isinstance(hint, str):
            try:
                hint = eval(hint, self.globals, self.locals)
            except (NameError, AttributeError):
                return hint
        return _known(hint)

    def resolve(self, hint: Any) -> Any:
        """Return a type with all its text evaluated. Raises NameError where a name is nowhere."""
        holder = types.SimpleNamespace(__annotations__={"hint": hint})
        found = get_type_hints(holder, self.globals, self.locals, include_extras=True)
        return _known(found["hint"])


def _known(hint: Any) -> Any:
    """Return a type without the aliases that msgspec does not see through."""
    origin, args = get_origin(hint), get_args(hint)
    if isinstance(hint, ALIASES):
        return _known(hint.__value__)
    if isinstance(origin, ALIASES):
        return _known(origin.__value__[args])
    if hint is object:
        return Any
    if not args or origin is Literal:
        return hint
    if origin is Annotated:
        # `__class_getitem__` takes the metadata along with the type.
        return Annotated[(_known(args[0]), *hint.__metadata__)]
    known = tuple(_known(arg) if arg is not Ellipsis else arg for arg in args)
    if origin in (Union, types.UnionType):
        return Union[known]  # noqa: UP007 - of a tuple that is made here
    return hint if known == args else origin[known]


@dataclass(frozen=True, eq=False)
class CallSpec:
    """What a call's class declares, and its JSON both ways."""

    name: str
    cls: type[Call[Any]]
    declared_reply: Any
    names: _Names

    @cached_property
    def reply(self) -> Any:
        """The reply's type. Raises NameError where it names what does not exist."""
        return self.names.resolve(self.declared_reply)

    def encode(self, ask: Call[Any]) -> Payload:
        """Return the arguments as they travel. Raises TypeError or ValueError."""
        return encode_payload(_plain(ask))

    def decode(self, content: object) -> Call[Any]:
        """Return the call that a client's arguments make. Raises ValueError, with a text for the client."""
        if isinstance(content, bytes):
            raise ValueError("its arguments are JSON, not bytes")
        try:
            ask: Call[Any] = msgspec.convert(content, self.cls, str_keys=True)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # __post_init__ is room code, and raises what it likes
            raise ValueError(said_by(error)) from None
        return ask

    def encode_reply(self, value: object) -> Payload:
        """Return a handler's reply as it travels. Raises TypeError or ValueError where it is none."""
        reply = self.reply
        if reply is bytes:
            if not isinstance(value, bytes | bytearray | memoryview):
                raise TypeError(f"the reply is declared as bytes, not {type(value).__name__}")
            return encode_payload(value)
        plain = _plain(value)
        payload = encode_payload(plain)
        msgspec.convert(plain, reply, str_keys=True)
        return payload

    def decode_reply(self, content: object) -> Any:
        """Return the reply that a client got. Raises ValueError where it is none of this call's."""
        reply = self.reply
        if (reply is bytes) != isinstance(content, bytes):
            raise ValueError(f"it came as {'bytes' if isinstance(content, bytes) else 'JSON'}")
        try:
            return content if reply is bytes else msgspec.convert(content, reply, str_keys=True)
        except Exception as error:
            raise ValueError(said_by(error)) from None


def call_spec_of(cls: type[Call[Any]]) -> CallSpec:
    """Return what a call's class declares."""
    return cls._spec


def _plain(value: object) -> object:
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_plain_unknown)


def _plain_unknown(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def check_calls(calls: Iterable[object]) -> tuple[type[Call[Any]], ...]:
    """Return the calls of a schema. Raises TypeError where one is none, is there twice or has odd types."""
    checked: list[type[Call[Any]]] = []
    by_name: dict[str, type[Call[Any]]] = {}
    for cls in calls:
        if not (isinstance(cls, type) and issubclass(cls, Call)):
            raise TypeError(f"{cls!r} is no Call class")
        if cls is Call:
            raise TypeError("Call is a base: declare a class of your own")
        if cls in checked:
            raise TypeError(f"{cls.__name__} is listed twice in calls")
        spec = call_spec_of(cls)
        other = by_name.setdefault(spec.name, cls)
        if other is not cls:
            raise TypeError(f"{other.__name__} and {cls.__name__} have one name, {spec.name!r}")
        _check_types(cls, spec)
        checked.append(cls)
    return tuple(checked)


def _check_types(cls: type[Call[Any]], spec: CallSpec) -> None:
    """Have msgspec look at all types of a call, which it would do at the first one that comes."""
    # Imported here because most of it is for this alone.
    import msgspec.inspect

    try:
        found = msgspec.inspect.multi_type_info([cls, spec.reply])
    except (NameError, TypeError) as error:
        raise TypeError(f"{cls.__name__}: {error}") from None
    for custom in _custom_types(found, set()):
        raise TypeError(f"{cls.__name__}: msgspec makes no {getattr(custom, '__name__', custom)} of JSON")


def _custom_types(found: Any, seen: set[int]) -> typing.Iterator[Any]:
    """Give the types below that msgspec knows nothing of."""
    import msgspec.inspect

    if isinstance(found, msgspec.inspect.CustomType):
        yield found.cls
    elif isinstance(found, list | tuple):
        for each in found:
            yield from _custom_types(each, seen)
    elif isinstance(found, msgspec.inspect.Type | msgspec.inspect.Field) and id(found) not in seen:
        seen.add(id(found))
        for name in found.__struct_fields__:
            if name not in ("default", "default_factory"):
                yield from _custom_types(getattr(found, name), seen)


@dataclass(frozen=True, slots=True)
class Handler:
    """A call, and the name of the room's method that answers it."""

    spec: CallSpec
    method: str


def is_handler(value: object) -> bool:
    """Whether a member of a room class is marked as what answers a call."""
    return inspect.isfunction(value) and _MARK in vars(value)


def handlers_of(room: type, calls: Sequence[type[Call[Any]]]) -> Mapping[str, Handler]:
    """Return the handlers of a room class by the calls' names.

    A subclass may override the method, with the decorator or without it. Raises TypeError unless each call is
    handled by one method, and each method handles one of the calls.
    """
    marked: dict[str, type[Call[Any]]] = {}
    for base in reversed(room.__mro__):
        for name, value in vars(base).items():
            if is_handler(value):
                marked[name] = getattr(value, _MARK)
            elif name in marked and not callable(value):
                del marked[name]
    by_call: dict[type[Call[Any]], str] = {}
    for name, call in marked.items():
        if call not in calls:
            raise TypeError(f"{room.__name__}.{name} handles {call.__name__}, which is not in its schema")
        other = by_call.setdefault(call, name)
        if other != name:
            raise TypeError(f"{room.__name__}: {other} and {name} both handle {call.__name__}")
    for call in calls:
        if call not in by_call:
            name = call.__name__
            raise TypeError(f"{room.__name__} has no handler for {name}: decorate one with @{name}.handler")
    return {call_spec_of(call).name: Handler(call_spec_of(call), name) for call, name in by_call.items()}
