"""Find Chromium for the browser tests, and install it where that is ours to do.

`find()` looks at `$PLAYHALL_CHROMIUM`, then at the usual commands. `--install` adds Debian's package when
it is missing and we are root with apt-get; otherwise it says what to install and exits with 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys

COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# Without the fonts, Debian's Chromium draws boxes where text and emoji names should be.
PACKAGES = ("chromium", "fonts-liberation", "fonts-noto-color-emoji")

HOW_TO_INSTALL = """\
Chromium is needed for the browser tests and was not found. Install it and run this again:
  Debian, Ubuntu   sudo apt-get install chromium
  Fedora           sudo dnf install chromium
  macOS            brew install --cask chromium
or set PLAYHALL_CHROMIUM to the path of a Chromium or Chrome."""


class ChromiumMissingError(Exception):
    """No Chromium here; the text says how to get one."""


def find() -> str | None:
    """Return the path of a Chromium, or None."""
    if named := os.environ.get("PLAYHALL_CHROMIUM"):
        return shutil.which(named)
    return next((path for command in COMMANDS if (path := shutil.which(command))), None)


def find_or_install() -> str:
    """Return the path of a Chromium, installing Debian's package if that is possible without asking anyone.

    Raises ChromiumMissingError where it is not.
    """
    if path := find():
        return path
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise ChromiumMissingError(HOW_TO_INSTALL)
    print("Installing chromium with apt-get", file=sys.stderr)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *PACKAGES]):
        if subprocess.run(["apt-get", *arguments], env=environment, stdout=sys.stderr).returncode:
            raise ChromiumMissingError(f"apt-get {' '.join(arguments)} failed.\n{HOW_TO_INSTALL}")
    if path := find():
        return path
    raise ChromiumMissingError(HOW_TO_INSTALL)


def main() -> int:
    """Print the path."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--install", action="store_true", help="install it if missing and possible")
    install = parser.parse_args().install
    try:
        path = find_or_install() if install else find()
    except ChromiumMissingError as error:
        print(error, file=sys.stderr)
        return 1
    if path is None:
        print(HOW_TO_INSTALL, file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
