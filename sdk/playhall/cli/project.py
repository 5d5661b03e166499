"""`playhall.toml`: what a project is called, its room types, its site and its settings.

The format is described in docs/guides/playhall-toml.md; docs/reference/playhall.schema.json is made from the
classes here. Every refusal says where in the file it is and what to write instead.
"""

from __future__ import annotations

import difflib
import importlib.util
import json
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

__all__ = [
    "FILE_NAME",
    "PlayerSettings",
    "Project",
    "ProjectFile",
    "ProjectFileError",
    "RoomSettings",
    "RoomType",
    "Settings",
    "Site",
    "json_schema",
    "load",
]

FILE_NAME = "playhall.toml"

SLUG = r"^[a-z0-9-]{3,40}$"
TYPE_NAME = r"^[A-Za-z0-9_-]{1,64}$"
MODULE = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$"
RETENTION = r"^(none|forever|[1-9][0-9]{0,3}h|[1-9][0-9]{0,2}d)$"
LONGEST_RETENTION_H = 365 * 24


class ProjectFileError(Exception):
    """The file is missing, or says something it cannot say; the text names the place and what to do."""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


T = TypeVar("T", bound=_Table)


class Project(_Table, frozen=True):
    """What the project is called."""

    slug: Annotated[str, Meta(pattern=SLUG, description="Name of the project: 3 to 40 of a-z, 0-9 and -.")]


class RoomType(_Table, frozen=True):
    """One type of room."""

    module: Annotated[
        str,
        Meta(
            pattern=MODULE,
            description='The room class, "module:Class", in a module of the project\'s folder.',
        ),
    ]


class Site(_Table, frozen=True):
    """The page that players open."""

    dir: Annotated[str, Meta(min_length=1, description="Folder that is served, below the project's.")]
    build: Annotated[
        str | None,
        Meta(description="Command that writes the folder, run in the project's folder by the shell."),
    ] = None


class PlayerSettings(_Table, frozen=True):
    """What players may do without a backend."""

    guests: Annotated[bool, Meta(description="Players without a token may come, as guests.")] = False
    create_rooms: Annotated[
        bool, Meta(description="A connection to a room that does not exist creates it.")
    ] = False
    list_public: Annotated[bool, Meta(description="Clients may list public rooms.")] = False


class RoomSettings(_Table, frozen=True):
    """What holds for every room of the project."""

    retention: Annotated[
        str,
        Meta(
            pattern=RETENTION,
            description="How long the state of a hibernated room is kept:"
            ' "none", hours as "12h", days as "7d" (at most 365 of them), or "forever".',
        ),
    ] = "7d"
    build_update: Annotated[
        Literal["hibernate", "restart"],
        Meta(description="When a running room moves to a new build: when it next hibernates, or at once."),
    ] = "hibernate"


class Settings(_Table, frozen=True):
    """The project's settings."""

    players: PlayerSettings = PlayerSettings()
    rooms: RoomSettings = RoomSettings()


class _Document(_Table, frozen=True):
    """playhall.toml"""

    project: Project
    rooms: Annotated[
        dict[Annotated[str, Meta(pattern=TYPE_NAME)], RoomType],
        Meta(min_length=1, description='Room types by name; a client that names none gets "default".'),
    ]
    site: Site | None = None
    settings: Settings = Settings()


class ProjectFile(_Table, frozen=True):
    """A project as its file describes it."""

    path: Path
    project: Project
    rooms: Mapping[str, RoomType]
    site: Site | None
    settings: Settings

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.path.parent

    @property
    def package(self) -> str:
        """The name the project's folder is imported under, so that its modules may use relative imports."""
        name = self.root.name
        if name.isidentifier() and not _is_taken(name, self.root):
            return name
        return "game_" + self.project.slug.replace("-", "_")

    def entry(self, room_type: str) -> str:
        """Where a room type's class is found once the folder can be imported: "package.module:Class"."""
        return f"{self.package}.{self.rooms[room_type].module}"


def _is_taken(name: str, root: Path) -> bool:
    """Whether the name imports something else than the project, so that one would hide the other."""
    if name in sys.stdlib_module_names:
        return True
    found = importlib.util.find_spec(name)
    return found is not None and found.origin is not None and Path(found.origin).parent.resolve() != root


def load(path: Path) -> ProjectFile:
    """Read a project file, or the one in a folder. Raises ProjectFileError."""
    path = path.resolve()
    if path.is_dir():
        path /= FILE_NAME
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        raise ProjectFileError(f"{path}: no such file. A game's folder holds a {FILE_NAME}.") from None
    except OSError as error:
        raise ProjectFileError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ProjectFileError(f"{path}: is not UTF-8 (byte {error.start}). Save it as UTF-8.") from None
    document = _decode(path, text)
    return ProjectFile(
        path=path,
        project=document.project,
        rooms=document.rooms,
        site=document.site,
        settings=document.settings,
    )


def json_schema() -> str:
    """Return the JSON schema of the file, for editors."""
    schema = msgspec.json.schema(_Document)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return json.dumps(schema, indent=2) + "\n"


def _decode(path: Path, text: str) -> _Document:
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProjectFileError(f"{path}: is not TOML: {error}") from None
    reader = _Reader(path, text)
    reader.refuse_unknown(raw, (), _Document)
    for name in ("project", "rooms"):
        if name not in raw:
            raise ProjectFileError(f"{path}: there is no [{name}]. {_HOW_TO[name]}")
    document = _Document(
        project=reader.table(raw["project"], ("project",), Project),
        rooms=reader.rooms(raw["rooms"]),
        site=reader.table(raw["site"], ("site",), Site) if "site" in raw else None,
        settings=reader.table(raw.get("settings", {}), ("settings",), Settings),
    )
    reader.check_meaning(document)
    return document


_HOW_TO = {
    "project": 'Add [project] with slug = "your-game".',
    "rooms": 'Add [rooms.default] with module = "room:YourRoom".',
    "slug": "A slug is 3 to 40 of a-z, 0-9 and -.",
    "module": 'Write "module:Class", for example "room:Dots" for the class Dots of room.py.',
    "dir": 'Write the folder that is served, for example "web/dist".',
    "retention": 'Write "none", hours as "12h", days as "7d", or "forever".',
    "build_update": 'Write "hibernate" or "restart".',
}


class _Reader:
    """Turns what TOML gave into the classes above, and knows where in the file each thing stands."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text

    def error(self, keys: tuple[str, ...], problem: str) -> ProjectFileError:
        return ProjectFileError(f"{_place(self._path, self._text, keys)}: {problem}")

    def table(self, raw: Any, keys: tuple[str, ...], cls: type[T]) -> T:
        if not isinstance(raw, dict):
            raise self.error(keys, f"must be a table. Write [{'.'.join(keys)}] above its keys.")
        self.refuse_unknown(raw, keys, cls)
        values: dict[str, Any] = {}
        for field in msgspec.structs.fields(cls):
            here = (*keys, field.name)
            if field.name in raw:
                values[field.name] = self._value(raw[field.name], here, field.type)
            elif field.required:
                raise self.error(keys, f"{field.name} is missing. {_HOW_TO[field.name]}")
        return cls(**values)

    def _value(self, raw: Any, keys: tuple[str, ...], kind: Any) -> Any:
        if isinstance(kind, type) and issubclass(kind, _Table):
            return self.table(raw, keys, kind)
        try:
            return msgspec.convert(raw, kind)
        except msgspec.ValidationError as error:
            problem = f"{raw!r} does not fit" if isinstance(raw, str) else str(error)
            raise self.error(keys, f"{problem}. {_HOW_TO.get(keys[-1], '')}".rstrip()) from None

    def rooms(self, raw: Any) -> dict[str, RoomType]:
        if not isinstance(raw, dict) or not raw:
            raise self.error(("rooms",), f"there is no room type. {_HOW_TO['rooms']}")
        for name in raw:
            if not re.fullmatch(TYPE_NAME, name):
                raise self.error(("rooms", name), "a room type's name is 1 to 64 of A-Z, a-z, 0-9, _ and -.")
        return {name: self.table(room, ("rooms", name), RoomType) for name, room in raw.items()}

    def refuse_unknown(self, raw: Mapping[str, Any], keys: tuple[str, ...], cls: type[_Table]) -> None:
        known = cls.__struct_fields__
        for key in raw:
            if key not in known:
                close = difflib.get_close_matches(key, known, 1)
                advice = f"Did you mean {close[0]}?" if close else f"Keys here: {', '.join(known)}."
                raise self.error((*keys, key), f"there is no such key. {advice}")

    def check_meaning(self, document: _Document) -> None:
        """Refuse what has the right shape and makes no sense."""
        retention = document.settings.rooms.retention
        unit = {"h": 1, "d": 24}.get(retention[-1])
        if retention[0].isdigit() and unit and int(retention[:-1]) * unit > LONGEST_RETENTION_H:
            raise self.error(
                ("settings", "rooms", "retention"), 'at most "365d". Write "forever" to keep state for good.'
            )
        root = self._path.parent
        if document.site is not None and root not in (root / document.site.dir).resolve().parents:
            raise self.error(("site", "dir"), "must be below the project's folder. Build the site into it.")


def _place(path: Path, text: str, keys: tuple[str, ...]) -> str:
    """Name a key's place: the file, its line where it can be found, and its path."""
    if not keys:
        return str(path)
    line = _line_of(text, keys)
    return f"{path}:{line}: {'.'.join(keys)}" if line else f"{path}: {'.'.join(keys)}"


def _line_of(text: str, keys: tuple[str, ...]) -> int | None:
    """Find the line that sets a key: good for files written by hand, and None where it cannot be told."""
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[([^\[\]]+)\]", line)
        if header:
            table = tuple(part.strip().strip("\"'") for part in header[1].split("."))
            if table == keys:
                return number
            continue
        name = re.match(r"""\s*([\w."'-]+)\s*=""", line)
        if name and (*table, *(part.strip("\"'") for part in name[1].split("."))) == keys:
            return number
    return None
