"""What is in the way of every message and hook: its twins, chosen as `backend` chooses the others.

Apart from `backend`, because these stand on what `fanout` exports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhall.engine.backend import native

if TYPE_CHECKING or not native:
    from playhall.engine.framelog import FrameLog, KeptFrames
    from playhall.engine.hookstack import HookStack
    from playhall.engine.intake import Intake
    from playhall.engine.timers import Timers
    from playhall.engine.watch import Watch
else:
    from playhall.engine.native.running import FrameLog, HookStack, Intake, KeptFrames, Timers, Watch

__all__ = ["FrameLog", "HookStack", "Intake", "KeptFrames", "Timers", "Watch"]
