"""From a class body to its fields: reads the annotations that declare them.

Annotations are values, or text where the module says `from __future__ import annotations`. Text is evaluated
in the module's globals and the locals of the code that runs the class statement, so that classes declared in
functions work. The T of `Json[T]` is for checkers and is never needed here: it may name what exists for them
only.
"""

from __future__ import annotations

import ast
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    ForwardRef,
    Literal,
    TypeVar,
    get_args,
    get_origin,
    overload,
)

import typing_extensions

from playhall.engine.fields import (
    JSON,
    OWNER_ONLY,
    PLAIN,
    WRITABLE,
    FieldType,
    Flag,
    Json,
    QuantisedType,
    owner_only,
    writable,
)
from playhall.engine.specs import MAX_FIELDS, FieldSpec

__all__ = ["RESERVED", "Declaration", "Local", "local", "snake_case"]

T = TypeVar("T")

RESERVED: Final = frozenset({"id", "kind", "owner", "patch"})
KIND_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
FIELD_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
TYPE_NAMES: Final = frozenset(
    {"bool", "str", "bytes", "u8", "u16", "u32", "i8", "i16", "i32", "f32", "f64"}
    | {"Json", "writable", "owner_only"}
)
FIELD_TYPES: Final = (
    "bool, str, bytes, u8 u16 u32 i8 i16 i32, f32 f64, Json[T], or Annotated[float, q16(lo, hi)] or q8"
)

ALIASES: Final[Any] = tuple(
    {typing_extensions.TypeAliasType, getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType)}
)
_ABSENT: Final[Any] = object()


@dataclass(frozen=True, slots=True)
class Local:
    """What `local(...)` leaves in the class body."""

    make: Callable[[], Any]


@overload
def local(default: T, *, init: Literal[False] = False) -> T: ...
@overload  # `factory=list` alone tells a checker nothing of what is in the list; the annotation does
def local(*, factory: type[list[Any]], init: Literal[False] = False) -> list[Any]: ...
@overload
def local(*, factory: type[dict[Any, Any]], init: Literal[False] = False) -> dict[Any, Any]: ...
@overload
def local(*, factory: type[set[Any]], init: Literal[False] = False) -> set[Any]: ...
@overload
def local(*, factory: Callable[[], T], init: Literal[False] = False) -> T: ...
def local(
    default: Any = _ABSENT, *, factory: Callable[[], Any] | None = None, init: Literal[False] = False
) -> Any:
    """Declare a private slot of a kind: no field, never sent or saved, at its default again after a wake."""
    if (default is _ABSENT) == (factory is None):
        raise TypeError("local() takes a default or a factory")
    if type(default).__hash__ is None:
        raise TypeError(
            f"local(): a {type(default).__name__} would be one for all entities; use local(factory=...)"
        )
    return Local(factory if factory is not None else lambda: default)


def snake_case(name: str) -> str:
    """Return a class's name as a kind's: `HTTPRoom2` is `http_room2`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


@dataclass(frozen=True)
class Declaration:
    """A class body that declares fields, and where its names are looked up."""

    owner: str
    annotations: Mapping[str, Any]
    defaults: Mapping[str, Any]
    globals: Mapping[str, Any]
    locals: Mapping[str, Any]
    reserved: frozenset[str] = frozenset()
    zeros: bool = True
    """Whether a field without a written default starts at its type's zero. If not, it must be given."""

    def fields(self, inherited: tuple[FieldSpec, ...] = ()) -> tuple[FieldSpec, ...]:
        """Return all fields, inherited ones first; one declared again keeps its place. Raises TypeError."""
        found = {spec.name: spec for spec in inherited}
        for name, annotation in self.annotations.items():
            if isinstance(self.defaults.get(name), Local):
                continue
            hint = self._value_of(name, annotation)
            if hint is ClassVar or get_origin(hint) is ClassVar:
                continue
            self._check_name(name)
            index = found[name].index if name in found else len(found)
            found[name] = self._field(name, index, hint)
        if len(found) > MAX_FIELDS:
            raise TypeError(f"{self.owner}: {len(found)} fields, and at most {MAX_FIELDS} are allowed")
        return tuple(found.values())

    def _check_name(self, name: str) -> None:
        if name in self.reserved:
            raise TypeError(f"{self.owner}.{name}: this name is reserved")
        if name in TYPE_NAMES:
            raise TypeError(
                f"{self.owner}.{name}: a field cannot have a type's name: it would hide it in the class body"
            )
        if name.startswith("_"):
            raise TypeError(
                f"{self.owner}.{name}: a field's name cannot start with _; use local() for a private slot"
            )
        if not FIELD_NAME.fullmatch(name):
            raise TypeError(f"{self.owner}.{name}: a field's name has ASCII letters, digits and _ only")

    def _field(self, name: str, index: int, hint: Any) -> FieldSpec:
        field_type, flags, base = _read(hint)
        if isinstance(hint, QuantisedType):
            wanted = f"Annotated[float, {hint.name}({hint.lo:.15g}, {hint.hi:.15g})]"
            raise TypeError(f"{self.owner}.{name}: write `{name}: {wanted}`")
        if field_type is None:
            raise TypeError(f"{self.owner}.{name}: {_show(hint)} is no field type; use {FIELD_TYPES}")
        written = self.defaults.get(name, _ABSENT)
        if self.zeros and field_type is JSON and written is _ABSENT and not _admits_none(base):
            raise TypeError(f"{self.owner}.{name}: a Json field whose type has no None needs a default")
        spec = FieldSpec(
            name,
            index,
            field_type,
            default=field_type.zero,
            writable=WRITABLE in flags,
            owner_only=OWNER_ONLY in flags,
            required=written is _ABSENT,
        )
        if written is _ABSENT:
            return spec
        stored = spec.accept(self.owner, None, written)
        return FieldSpec(name, index, field_type, stored, spec.writable, spec.owner_only)

    def _value_of(self, name: str, annotation: Any) -> Any:
        if not isinstance(annotation, str):
            return annotation
        try:
            return self._evaluate(ast.parse(annotation.strip(), mode="eval").body)
        except Exception as error:
            raise TypeError(
                f"{self.owner}.{name}: {annotation}: {error}; "
                "a field's type must exist when the class is made"
            ) from error

    def _evaluate(self, node: ast.expr) -> Any:
        """Evaluate an annotation, but of `Json[T]` only the head."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self._evaluate(ast.parse(node.value.strip(), mode="eval").body)
        if isinstance(node, ast.Subscript):
            head = self._evaluate(node.value)
            if head is Json:
                return head[self._json_type(node.slice)]
            if head is writable or head is owner_only:
                return head[self._evaluate(node.slice)]
        code = compile(ast.Expression(node), f"<annotation in {self.owner}>", "eval")
        return eval(code, dict(self.globals), dict(self.locals))

    def _json_type(self, node: ast.expr) -> Any:
        try:
            code = compile(ast.Expression(node), f"<annotation in {self.owner}>", "eval")
            return eval(code, dict(self.globals), dict(self.locals))
        except Exception:  # T may be anything a checker understands; that it has a None shows in its text too
            return ForwardRef(ast.unparse(node))


def _read(hint: Any) -> tuple[FieldType | None, frozenset[Flag], Any]:
    """Return the field type of an annotation, its flags, and the Python type under them."""
    hint = _unalias(hint)
    if get_origin(hint) is not Annotated:
        found = PLAIN.get(hint) if isinstance(hint, type) else None
        return found, frozenset(), hint
    base, *marks = get_args(hint)
    flags = frozenset(mark for mark in marks if isinstance(mark, Flag))
    types = [mark for mark in marks if isinstance(mark, FieldType)]
    if len(types) == 1:
        return types[0], flags, base
    if types:
        return None, flags, base
    inner, more, base = _read(base)
    return inner, flags | more, base


def _unalias(hint: Any) -> Any:
    """Return what stands behind `type Coord = ...` and `type Table[T] = ...`."""
    while True:
        origin = get_origin(hint)
        if isinstance(hint, ALIASES):
            hint = hint.__value__
        elif isinstance(origin, ALIASES):
            hint = origin.__value__[get_args(hint)]
        else:
            return hint


def _admits_none(base: Any) -> bool:
    base = _unalias(base)
    if isinstance(base, str | ForwardRef):
        text = base if isinstance(base, str) else base.__forward_arg__
        return _text_admits_none(text)
    if base in (Any, object, None, type(None)):
        return True
    if get_origin(base) is Annotated:
        return _admits_none(get_args(base)[0])
    if get_origin(base) is Literal:
        return None in get_args(base)
    if get_origin(base) in (typing.Union, types.UnionType):
        return any(map(_admits_none, get_args(base)))
    return False


def _text_admits_none(text: str) -> bool:
    node = ast.parse(text.strip(), mode="eval").body
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        if _text_admits_none(ast.unparse(node.right)):
            return True
        node = node.left
    head = node.value if isinstance(node, ast.Subscript) else node
    name = head.attr if isinstance(head, ast.Attribute) else ast.unparse(head)
    return name in ("None", "Any", "object", "Optional")


def _show(hint: Any) -> str:
    return hint.__qualname__ if isinstance(hint, type) and not get_args(hint) else repr(hint)
