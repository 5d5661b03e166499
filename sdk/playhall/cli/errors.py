"""What the CLI reports instead of a traceback. Each text is for the author of a game and says what to do.

DevError
+-- StartError         `playhall dev` cannot start
|   +-- ChildFailedError   (children.py) one of its processes did not get as far as serving
+-- BuildError         the game cannot be built as it is
+-- DeployError        a build could not go live
"""

from __future__ import annotations

__all__ = ["HOW_TO_INSTALL", "BuildError", "DeployError", "DevError", "StartError"]

HOW_TO_INSTALL = (
    "Playhall comes from a clone of its repository: run `make ready` there, then its .venv/bin/playhall"
)
"""For who has the package alone. Nothing is published, so pip brings no services."""


class DevError(Exception):
    """See the module's text."""


class StartError(DevError):
    """Something on this machine is in the way."""


class BuildError(DevError):
    """The room code cannot be loaded, or the site cannot be built."""


class DeployError(DevError):
    """A service did not take the build."""
