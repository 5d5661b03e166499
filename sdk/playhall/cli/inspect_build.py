"""What room code says of itself: `python -m playhall.cli.inspect_build OUT LIMIT_S CODE_DIR NAME=ENTRY ...`

A process of its own, because it imports the game's code: once imported, a module cannot be imported anew.
Writes JSON, {"room_types": [{name, entry, schema_hash, ...}]} to the file OUT, or {"error": text}.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import sys
import traceback
from typing import Any

import playhall
from playhall.engine.kinds import spec_of
from playhall.room import Room


class NotARoomError(Exception):
    """What playhall.toml names is not a room class."""


def describe(name: str, entry: str) -> dict[str, Any]:
    """Import one room class and describe it. Raises NotARoomError, and whatever the module raises."""
    module_name, _, class_name = entry.partition(":")
    module = importlib.import_module(module_name)
    found = getattr(module, class_name, None)
    if not (isinstance(found, type) and issubclass(found, Room)):
        raise NotARoomError(
            f"[rooms.{name}] names {module_name.partition('.')[2]}:{class_name}, "
            f"and {_file(module_name)} has no such room class. {_hint(vars(module), module_name)}"
        )
    return {
        "name": name,
        "entry": entry,
        "schema_hash": found.schema.hash.hex(),
        "state_version": int(getattr(found, "version", 1)),
        "max_players": int(found.max_players),
        "kinds": {
            spec.name: {field.name: field.type.canonical for field in spec.fields}
            for spec in map(spec_of, found.schema.classes[:-1])  # the last is presence, which is not saved
        },
    }


def explain(error: BaseException, code_dir: str) -> str:
    """The traceback from the game's own first line on: what is above it is ours.

    What is below is ours too where it is a declaration that the SDK refuses; the text names the field.
    """
    frames = traceback.extract_tb(error.__traceback__)
    own = next((i for i, frame in enumerate(frames) if frame.filename.startswith(code_dir)), len(frames))
    shown = list(frames[own:])
    while isinstance(error, TypeError | ValueError) and len(shown) > 1 and _is_ours(shown[-1].filename):
        shown.pop()
    lines = traceback.format_list(shown)
    return "".join([*lines, *traceback.format_exception_only(error)])


def inspect(code_dir: str, entries: list[str]) -> dict[str, Any]:
    """Everything that is asked of a build, or what is wrong with it."""
    try:
        return {"room_types": [describe(*entry.split("=", 1)) for entry in entries]}
    except NotARoomError as error:
        return {"error": str(error)}
    except BaseException as error:  # room code may raise anything at import, SystemExit too
        return {"error": explain(error, code_dir)}


def main() -> None:
    """See the module's text. An import that takes longer than LIMIT_S is ended, and stderr tells where."""
    out, limit_s, code_dir, *entries = sys.argv[1:]
    faulthandler.dump_traceback_later(float(limit_s), exit=True)
    sys.path.insert(0, code_dir)
    answer = json.dumps(inspect(code_dir, entries))
    with open(f"{out}.part", "w", encoding="utf-8") as file:
        file.write(answer)
    os.replace(f"{out}.part", out)


def _is_ours(filename: str) -> bool:
    return filename.startswith(f"{os.path.dirname(playhall.__file__)}{os.sep}")


def _hint(names: dict[str, Any], module_name: str) -> str:
    classes = [
        name
        for name, found in names.items()
        if isinstance(found, type) and issubclass(found, Room) and found.__module__ == module_name
    ]
    if classes:
        return f"It has {', '.join(classes)}."
    return "It has no room class; make one: class MyRoom(Room)."


def _file(module_name: str) -> str:
    return module_name.partition(".")[2].replace(".", "/") + ".py"


if __name__ == "__main__":
    main()
