"""Generate docs/reference/browser.md from the browser client's doc comments, by clients/web/reference.mjs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "clients" / "web" / "reference.mjs"


def main() -> int:
    return subprocess.run(["node", SCRIPT], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
