"""`playhall gen`: the TypeScript schema module of a Python one (docs/protocol/typescript-schema.md).

The module is imported as part of its project's folder, as a build would, and forgotten again. What it
declares is read from the schema; what it says in passing (constants, names of literals) from the source, in
whose order it is written, so that the output changes only where the module does.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
import types
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args, get_origin

import msgspec

from playhall.cli.typescript import RESERVED, TypeWriter, array, comment, key, literal, object_literal
from playhall.engine.calls import Call, call_spec_of
from playhall.engine.fields import BYTES, JSON, QuantisedType
from playhall.engine.inputs import Input, input_spec_of
from playhall.engine.kinds import Entity, spec_of
from playhall.engine.schema import Schema
from playhall.engine.specs import FieldSpec, KindSpec

__all__ = ["GenError", "generate", "write"]

PROJECT_FILE: Final = "playhall.toml"
IMPORTED: Final = frozenset({"Entity", "Json", "call", "defineSchema", "input", "kind", "schema"})
"""Names the output imports or declares itself."""


class GenError(Exception):
    """The module cannot be turned into TypeScript. The text has file and line, and what to do."""


def write(module: Path, out: Path) -> bool:
    """Generate a module into a file. Returns whether the file changed. Raises GenError and OSError."""
    text = generate(module)
    if out.exists() and out.read_text(encoding="utf-8") == text:
        return False
    out.parent.mkdir(parents=True, exist_ok=True)
    staging = out.with_name(f".{out.name}.{uuid.uuid4().hex[:8]}")
    staging.write_text(text, encoding="utf-8")
    os.replace(staging, out)
    return True


def generate(path: Path) -> str:
    """Return the TypeScript of a module that declares a schema. Raises GenError."""
    path = path.resolve()
    if not path.is_file():
        raise GenError(f"{path}: there is no such file; name the module that declares the schema")
    source = _Source(path)
    with _imported(path) as module:
        schema = vars(module).get("schema")
        if not isinstance(schema, Schema):
            raise GenError(
                f"{path}:{source.line_of('schema')}: the module has no `schema`; "
                "declare one: schema = Schema(entities=[...])"
            )
        return _Output(path, source, module, schema).text()


class _Source:
    """Where the names of a module are assigned or declared."""

    def __init__(self, path: Path) -> None:
        try:
            tree = ast.parse(path.read_bytes(), str(path))
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            raise GenError(f"{path}:{line}: {error}; correct it, and run again") from None
        self.assigned: dict[str, int] = {}
        self.declared: dict[str, int] = {}
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                self.declared[node.name] = node.lineno
            for name in _targets(node):
                self.assigned.setdefault(name, node.lineno)

    def line_of(self, name: str) -> int:
        return self.assigned.get(name) or self.declared.get(name) or 1


def _targets(node: ast.stmt) -> Iterator[str]:
    found: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        found = node.targets
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        found = [node.target]
    elif hasattr(ast, "TypeAlias") and isinstance(node, ast.TypeAlias):
        found = [node.name]
    return (target.id for target in found if isinstance(target, ast.Name))


@contextmanager
def _imported(path: Path) -> Iterator[types.ModuleType]:
    """Import a module as part of its project's folder, and forget it and its neighbours afterwards."""
    root = _root_of(path)
    package = f"playhall_gen_{uuid.uuid4().hex[:8]}"
    init = root / "__init__.py"
    before = set(sys.modules)
    try:
        spec = importlib.util.spec_from_loader(package, loader=None, is_package=True)
        if init.exists():
            spec = importlib.util.spec_from_file_location(
                package, init, submodule_search_locations=[str(root)]
            )
        assert spec is not None
        made = importlib.util.module_from_spec(spec)
        made.__path__ = [str(root)]
        sys.modules[package] = made
        dotted = [package, *path.relative_to(root).with_suffix("").parts]
        try:
            if spec.loader is not None:
                spec.loader.exec_module(made)
            importlib.invalidate_caches()
            module = importlib.import_module(".".join(dotted))
        except Exception as error:
            raise GenError(_explain(error, path, root)) from error
        yield module
    finally:
        for name in set(sys.modules) - before:
            if name.partition(".")[0] == package:
                del sys.modules[name]


def _root_of(path: Path) -> Path:
    """Return the project's folder, or that of the outermost package, or the file's own."""
    for folder in path.parents:
        if (folder / PROJECT_FILE).exists():
            return folder
    folder = path.parent
    while (folder / "__init__.py").exists() and (folder.parent / "__init__.py").exists():
        folder = folder.parent
    return folder


def _explain(error: Exception, path: Path, root: Path) -> str:
    where, line = str(path), 1
    if isinstance(error, SyntaxError) and error.filename:
        where, line = error.filename, error.lineno or 1
    else:
        own = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(root)]
        if own:
            where, line = own[-1].filename, own[-1].lineno or 1
    what = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    if isinstance(error, ModuleNotFoundError):
        todo = f"install {error.name}, or move what only the room needs to another module"
    else:
        todo = "correct it, and run again"
    return f"{where}:{line}: {what}; {todo}"


@dataclass
class _Output:
    """The text of one module in the making."""

    path: Path
    source: _Source
    module: types.ModuleType
    schema: Schema[Any, Any]

    def text(self) -> str:
        names: dict[str, object] = {}
        constants = list(self._constants(names))
        aliases = {value: name for name, value in names.items() if get_origin(value) is Literal}
        self.types = TypeWriter(aliases, self._resolve)
        kinds = [self._kind(cls, names) for cls in dict.fromkeys(self.schema.classes[:-1])]
        if self.schema.input is not None:
            kinds.append(self._input(self.schema.input, names))
        calls = [self._call(cls, names) for cls in self.schema.calls]
        schema = self._schema()
        interfaces = [
            f"export interface {name} {{\n{members}}}\n" for name, (cls, members) in self._interfaces(names)
        ]
        blocks = [self._head(), *constants, *interfaces, *kinds, *calls, schema]
        return "\n".join(blocks)

    def _fail(self, name: str, what: str) -> GenError:
        return GenError(f"{self.path}:{self.source.line_of(name)}: {what}")

    def _claim(self, names: dict[str, object], name: str, value: object) -> None:
        if name in RESERVED or name in IMPORTED:
            raise self._fail(name, f"{name} means something else in TypeScript; give it another name")
        if name in names:
            raise self._fail(name, f"two declarations are called {name}; give one another name")
        names[name] = value

    def _head(self) -> str:
        imports = ["call"] * bool(self.schema.calls) + ["defineSchema"]
        imports += ["input"] * (self.schema.input is not None)
        has_kinds = len(self.schema.classes) > 1
        imports += ["kind", "type Entity"] * has_kinds
        imports += ["type Json"] * self.types.uses_json
        return (
            f"// Generated by `playhall gen` from {self.path.name}. Do not edit.\n\n"
            f'import {{ {", ".join(imports)} }} from "@playhall/client";\n'
        )

    def _constants(self, names: dict[str, object]) -> Iterator[str]:
        for name in self.source.assigned:
            value = vars(self.module).get(name)
            if name.startswith("_") or name == "schema":
                continue
            if get_origin(value) is Literal:
                self._claim(names, name, value)
                union = " | ".join(literal(item) for item in get_args(value))
                yield f"export type {name} = {union};\n"
            elif _is_constant(value):
                self._claim(names, name, value)
                yield f"export const {name} = {self._constant(name, value)};\n"

    def _constant(self, name: str, value: object) -> str:
        try:
            text = literal(value)
        except ValueError as error:
            raise self._fail(name, f"{name}: {error}; begin its name with _ to keep it in Python") from None
        return f"{text} as const" if isinstance(value, dict | list | tuple) else text

    def _interfaces(self, names: dict[str, object]) -> Iterator[tuple[str, tuple[type, str]]]:
        for name, (cls, members) in sorted(self.types.interfaces.items()):
            self._claim(names, name, cls)
            yield name, (cls, members)

    def _kind(self, cls: type[Entity], names: dict[str, object]) -> str:
        self._claim(names, cls.__name__, cls)
        spec = spec_of(cls)
        options = ", { hidden: true }" if spec.hidden else ""
        members = self._members(cls, spec)
        return (
            f"{comment(_docstring(cls))}export interface {cls.__name__} extends Entity {members}\n"
            f"export const {cls.__name__} = kind<{cls.__name__}>({self._arguments(spec)}{options});\n"
        )

    def _input(self, cls: type[Input], names: dict[str, object]) -> str:
        self._claim(names, cls.__name__, cls)
        spec = input_spec_of(cls)
        members = self._members(cls, spec)
        return (
            f"{comment(_docstring(cls))}export interface {cls.__name__} {members}\n"
            f"export const {cls.__name__} = input<{cls.__name__}>({self._arguments(spec)});\n"
        )

    def _call(self, cls: type[Call[Any]], names: dict[str, object]) -> str:
        self._claim(names, cls.__name__, cls)
        # To a checker a call is no struct, so that its fields are checked as those of a call.
        lines = self.types.struct_fields(cast("type[msgspec.Struct]", cls), lambda field: not field.required)
        members = f"{{\n{lines}}}\n" if lines else "{}\n"
        return f"{comment(_docstring(cls))}export interface {cls.__name__} {members}"

    def _members(self, cls: type, spec: KindSpec) -> str:
        if not spec.fields:
            return "{}\n"
        lines = "".join(
            f"  {'' if field.writable else 'readonly '}{key(field.name)}: {self._type_of(cls, field)};\n"
            for field in spec.fields
        )
        return f"{{\n{lines}}}\n"

    def _arguments(self, spec: KindSpec) -> str:
        fields = [object_literal(_field(field), width=100) for field in spec.fields]
        text = array(fields)
        if len(fields) > 1 and "\n" not in text:
            text = "[\n" + "".join(f"  {field},\n" for field in fields) + "]"
        return f"{literal(spec.name)}, {text}"

    def _type_of(self, cls: type, field: FieldSpec) -> str:
        if field.type is BYTES:
            return "Uint8Array"
        if field.type is not JSON:
            return self.types.write(type(field.type.zero))
        annotation = next(
            inspect.get_annotations(base)[field.name]
            for base in cls.__mro__
            if field.name in inspect.get_annotations(base)
        )
        return self.types.write(annotation)

    def _resolve(self, text: str) -> Any:
        """Evaluate the text of an annotation, by the names of every module that declares a kind or a call."""
        names: dict[str, Any] = {}
        for cls in (*self.schema.classes, *self.schema.calls):
            names |= vars(sys.modules[cls.__module__])
        return eval(text, names | vars(self.module))

    def _schema(self) -> str:
        schema = self.schema

        def name_of(cls: type | None) -> str:
            return "null" if cls is None else cls.__name__

        members = {
            "hash": literal(schema.hash.hex()),
            "entities": array([cls.__name__ for cls in schema.entities]),
            "state": name_of(schema.state),
            "private": name_of(schema.private),
            "input": name_of(schema.input),
        }
        if schema.calls:
            calls = "".join(f"    {self._call_entry(cls)},\n" for cls in schema.calls)
            members["calls"] = f"{{\n{calls}  }}"
        lines = "".join(f"  {name}: {value},\n" for name, value in members.items())
        return f"export const schema = defineSchema({{\n{lines}}});\n"

    def _call_entry(self, cls: type[Call[Any]]) -> str:
        spec = call_spec_of(cls)
        reply = "Uint8Array" if spec.reply is bytes else self.types.write(spec.reply)
        return f"{key(spec.name)}: call<{cls.__name__}, {reply}>()"


def _field(field: FieldSpec) -> list[tuple[str, str]]:
    members = [("name", literal(field.name)), ("type", literal(field.type.name))]
    if isinstance(field.type, QuantisedType):
        members += [("lo", literal(field.type.lo)), ("hi", literal(field.type.hi))]
    if field.writable:
        members.append(("writable", "true"))
    if field.owner_only:
        members.append(("ownerOnly", "true"))
    return members


def _is_constant(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(name, str) for name in value) and all(map(_is_constant, value.values()))
    if isinstance(value, list | tuple):
        return type(value) in (list, tuple) and all(map(_is_constant, value))
    return type(value) in (bool, int, float, str)


def _docstring(cls: type) -> str | None:
    return inspect.cleandoc(cls.__doc__) if cls.__doc__ else None
