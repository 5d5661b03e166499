"""Generate docs/reference/{room,client,testing}.md from the docstrings and types of the public modules.

Everything a module exports must have a docstring, and so must every public function of what it exports; what
lacks one ends the run with a list. An attribute is shown if it has one; the fields of a dataclass are shown
with the class. What says "For the engine itself." (the client, the harness) is left out. Griffe reads the
source without importing it. What stands under `if TYPE_CHECKING:` is what type checkers and authors see, so
that is what is shown.
"""

from __future__ import annotations

import ast
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parent.parent
SDK = ROOT / "sdk"
PAGES = ROOT / "docs" / "reference"
MODULES = ("room", "client", "testing")
# Special methods that say how a thing is used.
SPECIAL = ("__init__", "__await__", "__aenter__", "__len__", "__iter__", "__contains__", "__getitem__")
WIDTH = 108
INTERNAL = re.compile(r"\bFor the (engine|client|harness)\s+itself\.")


class _AsCheckersSee(ast.NodeTransformer):
    """Puts the body of each `if TYPE_CHECKING:` in its place."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        is_flag = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return node.body if is_flag else node


def copy_as_checkers_see(target: Path) -> None:
    """Copy the SDK's sources, so that there is one declaration of each name."""
    for source in SDK.rglob("*.py"):
        if "api" in source.parts:
            continue
        tree = _AsCheckersSee().visit(ast.parse(source.read_text()))
        copy = target / source.relative_to(SDK)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(ast.unparse(ast.fix_missing_locations(tree)))


@dataclass
class Page:
    """The reference of one module.

    `elsewhere` says which page has a thing already, by the path of what a name stands for. What lacks a
    docstring is added to `missing`.
    """

    module: griffe.Module
    elsewhere: dict[str, str]
    missing: list[str]

    def text(self) -> str:
        name = self.module.path
        head = (
            f"# {name}\n\nGenerated from docstrings and types by `make gen`.\n\n{_doc(self.module) or ''}\n"
        )
        exported = sorted(map(str, self.module.exports or ()), key=str.lower)
        targets = {name: self._target(name) for name in exported}
        known = [name for name in exported if targets[name].path in self.elsewhere]
        if known:
            links = ", ".join(
                f"[{name}]({self.elsewhere[targets[name].path]}#{name.lower()})" for name in known
            )
            head += f"\nAlso exported: {links}.\n"
        own = {name: target for name, target in targets.items() if name not in known}
        self.elsewhere |= {target.path: f"{self.module.name}.md" for target in own.values()}
        return head + "".join(self._entry(name, target) for name, target in own.items())

    def _target(self, name: str) -> griffe.Object:
        found = self.module.members[name]
        return found.final_target if isinstance(found, griffe.Alias) else found

    def _entry(self, name: str, target: griffe.Object) -> str:
        text = f"\n## {name}\n\n{_block(_declaration(name, target))}\n{self._doc_of(target, name)}"
        if isinstance(target, griffe.Class):
            inherited: dict[str, list[str]] = {}
            for owner, member in _members(target):
                if owner is not target and owner.path in self.elsewhere:
                    inherited.setdefault(owner.path, []).append(member.name)
                else:
                    text += self._member(name, owner, member)
            for path, names in inherited.items():
                text += self._inherited(path, names)
        return text

    def _inherited(self, path: str, names: list[str]) -> str:
        page, of = self.elsewhere[path], path.rpartition(".")[2]
        links = ", ".join(f"[{name}]({page}#{of.lower()}{name.lower()})" for name in names if name[0] != "_")
        return f"\nFrom [{of}]({page}#{of.lower()}): {links}.\n"

    def _member(self, of: str, owner: griffe.Class, member: griffe.Object) -> str:
        makes = member.name == "__init__"
        title = f"{of}()" if makes else f"{of}.{member.name}"
        is_field = isinstance(member, griffe.Attribute) and "property" not in member.labels
        doc = _doc(member)
        if doc is None and (is_field or member.name in SPECIAL):
            return ""
        name = of if makes else member.name
        return f"\n### {title}\n\n{_block(_declaration(name, member))}\n" + (
            f"\n{doc}\n" if doc else self._lacks(title, owner)
        )

    def _doc_of(self, target: griffe.Object, name: str) -> str:
        doc = _doc(target)
        return f"\n{doc}\n" if doc else self._lacks(name, target)

    def _lacks(self, title: str, where: griffe.Object) -> str:
        self.missing.append(f"{title} ({where.path})")
        return ""


def _doc(thing: griffe.Object) -> str | None:
    return None if thing.docstring is None else thing.docstring.value.strip()


def _block(code: str) -> str:
    return f"```python\n{code}\n```"


def _members(of: griffe.Class) -> Iterator[tuple[griffe.Class, griffe.Object]]:
    """Give the public members of a class, its own first and then inherited ones, in order of declaration."""
    seen: set[str] = set()
    for owner in (of, *_bases(of)):
        for name, member in owner.members.items():
            public = not name.startswith("_") or name in SPECIAL
            if not public or name in seen or isinstance(member, griffe.Alias):
                continue
            if INTERNAL.search(_doc(member) or ""):
                seen.add(name)
                continue
            seen.add(name)
            if isinstance(member, griffe.Function | griffe.Attribute):
                yield owner, member


def _bases(of: griffe.Class) -> list[griffe.Class]:
    try:
        return [base for base in of.mro() if base.path.startswith("playhall.")]
    except ValueError:
        return []


def _declaration(name: str, thing: griffe.Object) -> str:
    match thing:
        case griffe.Class():
            return _class(name, thing)
        case griffe.Function():
            versions = thing.overloads or [thing]
            return "\n".join(_signature(name, each) for each in versions)
        case griffe.Attribute():
            return _attribute(name, thing)
    raise SystemExit(f"gen_reference: {thing.path} is of a kind that has no place here")


def _class(name: str, thing: griffe.Class) -> str:
    bases = ", ".join(str(base) for base in thing.bases)
    head = f"class {name}({bases})" if bases else f"class {name}"
    if "dataclass" not in thing.labels:
        return head
    fields = [
        _attribute(field, member)
        for field, member in thing.members.items()
        if isinstance(member, griffe.Attribute) and not _is_property(member)
        if field == "_" or not field.startswith("_")
    ]
    return f"{head}:\n" + "\n".join(f"    {field}" for field in fields)


def _is_property(attribute: griffe.Attribute) -> bool:
    return "property" in attribute.labels


def _attribute(name: str, attribute: griffe.Attribute) -> str:
    if str(attribute.annotation) == "TypeAlias":
        return _alias(name, str(attribute.value))
    annotation = "" if attribute.annotation is None else f": {attribute.annotation}"
    # What `__init__` puts there is no default.
    shown = "instance-attribute" not in attribute.labels or "class-attribute" in attribute.labels
    shown = shown and attribute.value is not None and not _is_property(attribute)
    return f"{name}{annotation}" + (f" = {attribute.value}" if shown else "")


def _alias(name: str, value: str) -> str:
    """Return an alias as authors think of it: text as code, of a field's type what it is to a checker."""
    tree = ast.parse(value, mode="eval").body
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        value = tree.value
    if isinstance(tree, ast.Subscript) and ast.unparse(tree.value) == "Annotated":
        assert isinstance(tree.slice, ast.Tuple)
        value = f"Annotated[{ast.unparse(tree.slice.elts[0])}, ...]"
    return f"{name} = {value}"


def _signature(name: str, function: griffe.Function) -> str:
    parts: list[str] = []
    kinds = [parameter.kind for parameter in function.parameters]
    star = False
    for index, parameter in enumerate(function.parameters):
        if index == 0 and parameter.name in ("self", "cls"):
            continue
        kind = parameter.kind
        if kind is griffe.ParameterKind.keyword_only and not star:
            parts.append("*")
            star = True
        if kind is griffe.ParameterKind.var_positional:
            star = True
        parts.append(_parameter(parameter))
        last = index + 1 == len(kinds) or kinds[index + 1] is not griffe.ParameterKind.positional_only
        if kind is griffe.ParameterKind.positional_only and last:
            parts.append("/")
    word = "async def " if "async" in function.labels else "def "
    returns = "" if function.returns is None else f" -> {function.returns}"
    if function.name == "__init__":
        word = returns = ""
    line = f"{word}{name}({', '.join(parts)}){returns}"
    if len(line) <= WIDTH:
        return line
    return f"{word}{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returns}"


def _parameter(parameter: griffe.Parameter) -> str:
    stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}
    text = stars.get(parameter.kind, "") if parameter.kind is not None else ""
    text += parameter.name
    annotated = parameter.annotation is not None
    if annotated:
        text += f": {parameter.annotation}"
    if parameter.default is not None and not stars.get(
        parameter.kind or griffe.ParameterKind.positional_only
    ):
        text += f" = {parameter.default}" if annotated else f"={parameter.default}"
    return text


def pages() -> tuple[dict[Path, str], list[str]]:
    """Return the pages by path, and what has no docstring."""
    missing: list[str] = []
    elsewhere: dict[str, str] = {}
    texts: dict[Path, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        copy_as_checkers_see(Path(folder))
        for name in MODULES:
            loaded = griffe.load(f"playhall.{name}", search_paths=[folder], resolve_aliases=True)
            assert isinstance(loaded, griffe.Module)
            texts[PAGES / f"{name}.md"] = Page(loaded, elsewhere, missing).text()
    return texts, missing


def main() -> int:
    texts, missing = pages()
    for page, text in texts.items():
        page.write_text(text)
    for name in missing:
        print(f"gen_reference: {name} has no docstring", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
