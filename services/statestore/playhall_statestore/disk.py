"""Space on the shard's disk: ballast, so that deletes always work, and when new rooms are refused."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

__all__ = ["Disk"]

NEARLY_FULL = 0.9
# On a big disk, a tenth of it is more than a shard needs to go on for hours.
AMPLE_BYTES = 2 << 30


class Disk:
    """The directory of the volume."""

    def __init__(self, folder: Path, ballast_bytes: int) -> None:
        self._folder = folder
        self._ballast = folder / "ballast"
        self._ballast_bytes = ballast_bytes

    def free_ballast(self) -> None:
        """Give the reserved space back to those who delete."""
        self._ballast.unlink(missing_ok=True)

    def take_ballast(self) -> bool:
        """Reserve the space again, if there is twice as much. Whether it is reserved."""
        if self._ballast.exists():
            return True
        if shutil.disk_usage(self._folder).free < 2 * self._ballast_bytes:
            return False
        try:
            with self._ballast.open("wb") as file:
                if self._ballast_bytes:
                    os.posix_fallocate(file.fileno(), 0, self._ballast_bytes)
        except OSError:
            self.free_ballast()
            return False
        return True

    def nearly_full(self) -> bool:
        """90 % are used, and what is left is not ample."""
        usage = shutil.disk_usage(self._folder)
        return usage.free < usage.total * (1 - NEARLY_FULL) and usage.free < AMPLE_BYTES
