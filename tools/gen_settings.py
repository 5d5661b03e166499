"""Generate docs/reference/settings.md: every environment variable that the services read."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from playhall_common.config import ServiceConfig, SettingDoc, TrustedConfig, describe

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "settings.md"
EVERY = "PLAYHALL_<SERVICE>"
SERVICES = ("router", "roomhost", "statestore", "data", "voice")

HEAD = """# Settings

Generated from the services' settings classes by `make gen`.

A service reads its settings from environment variables when it starts. A value that cannot be used, a
missing one, and a name with the service's prefix that is no setting end it with code 2 and a list of all that
is wrong.
"""
TABLE = "| variable | type | default | meaning |\n|---|---|---|---|\n"


def settings_class(module: ModuleType) -> type[ServiceConfig]:
    """The one settings class that a service's config module defines."""
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, ServiceConfig)
        and value.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise SystemExit(f"gen_settings: {module.__name__} defines {len(found)} settings classes, not one")
    return found[0]


def table(docs: Iterable[SettingDoc]) -> str:
    """The rows of these settings."""
    return TABLE + "".join(
        f"| `{doc.env}` | {doc.type} | {_default(doc.default)} | {doc.doc} |\n" for doc in docs
    )


def page() -> str:
    """The whole page."""
    shared = describe(TrustedConfig, EVERY)
    text = f"{HEAD}\n## Every service\n\nRoom hosts have no service secret.\n\n{table(shared)}"
    for service in SERVICES:
        module = importlib.import_module(f"playhall_{service}.config")
        inherited = describe(TrustedConfig, module.PREFIX)
        own = [doc for doc in describe(settings_class(module), module.PREFIX) if doc not in inherited]
        text += f"\n## {service}\n\n{table(own)}"
    return text


def _default(text: str | None) -> str:
    if text is None:
        return "must be set"
    return f"`{text}`" if text else "none"


def main() -> int:
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
