"""A plugin of pytest: the native engine's modules come from the folder in PLAYHALL_SANITIZED.

`tools.run_sanitized` loads it, before anything imports the engine.
"""

from __future__ import annotations

import os

import playhall.engine.native as package

package.__path__.insert(0, os.path.join(os.environ["PLAYHALL_SANITIZED"], *package.__name__.split(".")))
