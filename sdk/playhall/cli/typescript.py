"""Python values and types as TypeScript text."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import json
import math
import re
import types
import typing
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import indent
from typing import Annotated, Any, Final, ForwardRef, Literal, NewType, get_args, get_origin

import msgspec
import typing_extensions

__all__ = ["RESERVED", "WIDTH", "TypeWriter", "array", "comment", "key", "literal", "object_literal"]

WIDTH: Final = 80
"""Columns of a value that stands behind a name; wider ones get a line for each item."""

MAX_SAFE_INT: Final = 2**53 - 1

_TAKEN: Final = """
await break case catch class const continue debugger default delete do else enum export extends false finally
for function if implements import in instanceof interface let new null package private protected public
return static super switch this throw true try typeof var void while with yield
any arguments boolean eval never number object string undefined unknown
Array Infinity NaN Number Partial Readonly Record Uint8Array
"""
RESERVED: Final = frozenset(_TAKEN.split())
"""Names that a declaration of a module cannot have, or that would hide what the output uses."""

_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_ALIASES: Final[Any] = tuple(
    {typing_extensions.TypeAliasType, getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType)}
)
_QUALIFIED: Final = re.compile(r"(?:\w+\.)*(NotRequired|Required|ReadOnly)\[(.*)\]", re.DOTALL)
_QUALIFIERS: Final[dict[Any, str]] = {
    typing_extensions.NotRequired: "NotRequired",
    typing_extensions.Required: "Required",
    typing_extensions.ReadOnly: "ReadOnly",
}
_PLAIN: Final[dict[Any, str]] = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    type(None): "null",
    None: "null",
    # What msgspec writes as text; of use in calls alone.
    **dict.fromkeys(
        (
            bytes,
            bytearray,
            datetime.datetime,
            datetime.date,
            datetime.time,
            datetime.timedelta,
            decimal.Decimal,
            uuid.UUID,
        ),
        "string",
    ),
}


def literal(value: object) -> str:
    """Return a constant as an expression. Raises ValueError where there is none that is the same value."""
    if value is None or isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INT:
            raise ValueError(f"{value} is beyond 2^53 - 1, and a browser would change it")
        return str(int(value))
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, Mapping):
        return object_literal([(_text(name), literal(item)) for name, item in value.items()])
    if isinstance(value, list | tuple):
        return array([literal(item) for item in value])
    raise ValueError(f"{type(value).__name__} is no constant")


def _text(name: object) -> str:
    if not isinstance(name, str):
        raise ValueError(f"a key of a dict must be str, not {type(name).__name__}")
    return name


def _float(value: float) -> str:
    if math.isnan(value):
        return "Number.NaN"
    if math.isinf(value):
        return "Number.POSITIVE_INFINITY" if value > 0 else "Number.NEGATIVE_INFINITY"
    text = repr(value)
    return text.removesuffix(".0")


def array(items: Sequence[str], width: int = WIDTH) -> str:
    """Return an array, on one line where that is no wider than `width`."""
    return _wrapped("[", items, "]", "", width)


def object_literal(items: Sequence[tuple[str, str]], width: int = WIDTH) -> str:
    """Return an object, on one line where that is no wider than `width`."""
    return _wrapped("{", [f"{key(name)}: {value}" for name, value in items], "}", " ", width)


def _wrapped(start: str, items: Sequence[str], end: str, space: str, width: int) -> str:
    if not items:
        return start + end
    line = f"{start}{space}{', '.join(items)}{space}{end}"
    if len(line) <= width and "\n" not in line:
        return line
    indented = indent("".join(f"{item},\n" for item in items), "  ")
    return f"{start}\n{indented}{end}"


def key(name: str) -> str:
    """Return a property's name. `__proto__` would set the prototype if it were written plainly."""
    if name == "__proto__":
        return '["__proto__"]'
    return name if _IDENTIFIER.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def comment(text: str | None) -> str:
    """Return a docstring as a comment, with its line break; nothing for none."""
    if not text or not text.strip():
        return ""
    lines = [line.rstrip() for line in text.replace("*/", "*\\/").strip().splitlines()]
    if len(lines) == 1:
        return f"/** {lines[0]} */\n"
    body = "".join(f" * {line.strip()}".rstrip() + "\n" for line in lines)
    return f"/**\n{body} */\n"


class TypeWriter:
    """Writes what JSON of a Python type looks like in TypeScript.

    `aliases` are types that have names of their own. What is met on the way is kept: `interfaces` of
    TypedDicts, structs and dataclasses by name, and whether `Json`, the type of all JSON, was needed.
    `resolve` evaluates a forward reference, or raises.
    """

    def __init__(self, aliases: Mapping[Any, str], resolve: Callable[[str], Any]) -> None:
        self._aliases = aliases
        self._resolve = resolve
        self.interfaces: dict[str, tuple[type, str]] = {}
        self.uses_json = False

    def write(self, hint: Any) -> str:
        """Return the type. What is not known is `Json`."""
        hint = _unwrap(hint)
        if isinstance(hint, str | ForwardRef):
            return self._forward(hint if isinstance(hint, str) else hint.__forward_arg__)
        if hint in _PLAIN:
            return _PLAIN[hint]
        name = self._aliases.get(hint)
        if name is not None:
            return name
        if isinstance(hint, type) and get_origin(hint) is None:
            return self._class(hint)
        return self._generic(get_origin(hint), get_args(hint))

    def _forward(self, text: str) -> str:
        try:
            return self.write(self._resolve(text))
        except Exception:  # a name that only checkers see, or whatever else a T may hold
            return self._json()

    def _json(self) -> str:
        self.uses_json = True
        return "Json"

    def _generic(self, origin: Any, args: tuple[Any, ...]) -> str:
        if origin is Literal:
            return _union([literal(value) for value in args])
        if origin in (typing.Union, types.UnionType):
            return _union([self.write(arg) for arg in args])
        if origin is tuple and args and args[-1] is not Ellipsis:
            return f"readonly [{', '.join(map(self.write, args))}]"
        if origin in (list, tuple, set, frozenset, collections.abc.Sequence):
            return f"readonly {_grouped(self.write(args[0]))}[]"
        if origin in (dict, collections.abc.Mapping):
            return self._record(*args)
        return self._json()

    def _record(self, name: Any, value: Any) -> str:
        names = self.write(name)
        record = f"Record<{names}, {self.write(value)}>"
        return f"Readonly<{record}>" if names == "string" else f"Readonly<Partial<{record}>>"

    def _class(self, cls: Any) -> str:
        if typing_extensions.is_typeddict(cls):
            return self._interface(cls, self._members)
        if issubclass(cls, msgspec.Struct) and not cls.__struct_config__.array_like:
            return self._interface(cls, self._struct_members)
        if hasattr(cls, "__dataclass_fields__"):
            return self._interface(cls, self._dataclass_members)
        if issubclass(cls, enum.Enum):
            return _union([literal(member.value) for member in cls])
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            hints = typing.get_type_hints(cls, include_extras=True)
            return f"readonly [{', '.join(self.write(hints.get(name, Any)) for name in cls._fields)}]"
        return self._json()

    def _interface(self, cls: type, members: Callable[[Any], str]) -> str:
        """Return the name of a class that becomes an interface."""
        name = cls.__name__
        if name not in self.interfaces:
            self.interfaces[name] = (cls, "")  # it may hold itself
            self.interfaces[name] = (cls, members(cls))
        elif self.interfaces[name][0] is not cls:
            raise ValueError(f"two types are called {name}")
        return name

    def _struct_members(self, cls: type[msgspec.Struct]) -> str:
        config = cls.__struct_config__
        tag: list[tuple[str, bool, str]] = []
        if config.tag is not None and config.tag_field is not None:
            tag.append((config.tag_field, False, literal(config.tag)))
        fields = self.struct_fields(cls, lambda field: config.omit_defaults and not field.required)
        return _lines(tag) + fields

    def struct_fields(
        self, cls: type[msgspec.Struct], optional: Callable[[msgspec.structs.FieldInfo], bool]
    ) -> str:
        """Return the members of an interface that has the fields of a struct."""
        return _lines(
            (field.encode_name, optional(field), self.write(field.type))
            for field in msgspec.structs.fields(cls)
        )

    def _dataclass_members(self, cls: Any) -> str:
        hints = typing.get_type_hints(cls, include_extras=True)
        return _lines((field.name, False, self.write(hints[field.name])) for field in dataclasses.fields(cls))

    def _members(self, cls: Any) -> str:
        lines: list[tuple[str, bool, str]] = []
        for name, hint in cls.__annotations__.items():
            bare, required = _bare(hint, name in cls.__required_keys__)
            lines.append((name, not required, self.write(bare)))
        return _lines(lines)


def _unwrap(hint: Any) -> Any:
    while True:
        origin = get_origin(hint)
        if origin is Annotated:
            hint = get_args(hint)[0]
        elif isinstance(hint, _ALIASES):
            hint = hint.__value__
        elif isinstance(origin, _ALIASES):
            hint = origin.__value__[get_args(hint)]
        elif isinstance(hint, NewType):
            hint = hint.__supertype__
        else:
            return hint


def _bare(hint: Any, required: bool) -> tuple[Any, bool]:
    """Return the type of a TypedDict's item without its qualifiers, and whether it is required.

    Python itself does not see them in text, which is what all annotations are under the future import.
    """
    if isinstance(hint, ForwardRef):
        found = _QUALIFIED.fullmatch(hint.__forward_arg__)
        head, inner = (found[1], ForwardRef(found[2])) if found else (None, hint)
    else:
        origin = get_origin(hint)
        head = _QUALIFIERS.get(origin)
        inner = get_args(hint)[0] if head else hint
    if head is None:
        return hint, required
    return _bare(inner, {"Required": True, "NotRequired": False}.get(head, required))


def _lines(members: Iterable[tuple[str, bool, str]]) -> str:
    """Return members of an interface: name, whether it may be missing, type."""
    return "".join(f"  readonly {key(name)}{'?' * optional}: {type_};\n" for name, optional, type_ in members)


def _union(parts: Sequence[str]) -> str:
    return " | ".join(dict.fromkeys(parts))


def _grouped(text: str) -> str:
    return f"({text})" if " | " in text or text.startswith("readonly ") else text
