"""Write docs/reference/playhall.schema.json, by which editors check and complete a playhall.toml."""

from __future__ import annotations

import sys
from pathlib import Path

from playhall.cli import project

OUTPUT = Path(__file__).resolve().parent.parent / "docs/reference/playhall.schema.json"


def main() -> int:
    """Write the file."""
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(project.json_schema())
    return 0


if __name__ == "__main__":
    sys.exit(main())
