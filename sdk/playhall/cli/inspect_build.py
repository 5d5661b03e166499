"""What a build says of itself, as JSON: `python -m playhall.cli.inspect_build CODE_DIR NAME=MODULE:CLASS ...`

A process of its own, because it imports the game's code: once imported, a module cannot be imported anew.
Prints {"room_types": [{name, entry, schema_hash, ...}]}, or {"error": text} and exits 1.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from typing import Any

from playhall.room import Room


class NotARoomError(Exception):
    """What playhall.toml names is not a room class."""


def describe(name: str, entry: str) -> dict[str, Any]:
    """Import one room class and describe it. Raises NotARoomError, and whatever the module raises."""
    module_name, _, class_name = entry.partition(":")
    module = importlib.import_module(module_name)
    found = getattr(module, class_name, None)
    if not (isinstance(found, type) and issubclass(found, Room)):
        classes = [
            n
            for n, c in vars(module).items()
            if isinstance(c, type) and issubclass(c, Room) and c is not Room
        ]
        hint = (
            f"It has {', '.join(classes)}."
            if classes
            else "It has no room class; make one: class MyRoom(Room)."
        )
        short = module_name.partition(".")[2]
        raise NotARoomError(
            f"[rooms.{name}] names {short}:{class_name}, and {short}.py has no such room class. {hint}"
        )
    return {
        "name": name,
        "entry": entry,
        "schema_hash": found.schema.hash.hex(),
        "state_version": int(found.version) if hasattr(found, "version") else 1,
        "max_players": int(found.max_players),
    }


def explain(error: BaseException, code_dir: str) -> str:
    """The traceback from the game's own first line on: what is above it is ours."""
    frames = traceback.extract_tb(error.__traceback__)
    own = next((i for i, frame in enumerate(frames) if frame.filename.startswith(code_dir)), len(frames))
    lines = traceback.format_list(frames[own:])
    if isinstance(error, SyntaxError) or lines:
        return "".join(lines) + "".join(traceback.format_exception_only(error))
    return "".join(traceback.format_exception_only(error))


def main() -> int:
    code_dir, *entries = sys.argv[1:]
    sys.path.insert(0, code_dir)
    sys.dont_write_bytecode = True
    try:
        found = [describe(*entry.split("=", 1)) for entry in entries]
    except NotARoomError as error:
        print(json.dumps({"error": str(error)}))
        return 1
    except BaseException as error:
        print(json.dumps({"error": explain(error, code_dir)}))
        return 1
    print(json.dumps({"room_types": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
