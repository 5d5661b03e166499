"""What is said of an exception that room code raised.

The exception is the author's own: its `__str__` may raise, its text may be no Unicode (a file name, what came
over a socket) or as long as a level. What is made of it here is none of that, so that it can be logged, sent
and stored like any other text.
"""

from __future__ import annotations

import os.path
import traceback

__all__ = ["MAX_ERROR", "MAX_TRACEBACK", "error_text", "said_by", "traceback_text"]

MAX_ERROR = 1_000
"""Characters of `error_text`."""
MAX_TRACEBACK = 16_000
"""Characters of `traceback_text`."""

_CUT = "\n  ...\n"
# Native code is named as it was when it was compiled.
_NATIVE = os.path.join("playhall", "engine", "native", "")
_SDK = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


def error_text(error: BaseException) -> str:
    """Return the exception's type and text."""
    return _unicode(f"{type(error).__name__}: {_text_of(error)}"[:MAX_ERROR])


def said_by(error: BaseException) -> str:
    """Return the exception's text, of any length; its type where it has none."""
    return _unicode(_text_of(error)) or type(error).__name__


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as another:
        return f"(its __str__ raised {type(another).__name__})"


def traceback_text(error: BaseException) -> str:
    """Return the traceback as Python prints it, from room code to room code.

    The SDK's frames before it are left out, and those after it where the SDK says no: an author looks for the
    line that did it. So is the middle of a long one.
    """
    try:
        told = traceback.TracebackException.from_exception(error)
        told.stack = _of_room_code(told.stack)
        text = "".join(told.format())
    except KeyboardInterrupt:
        raise
    except BaseException as another:  # a property of the exception's own, of which Python reads some
        text = f"{error_text(error)}\n(its traceback cannot be told: {type(another).__name__})\n"
    if len(text) > MAX_TRACEBACK:
        half = (MAX_TRACEBACK - len(_CUT)) // 2
        text = text[:half] + _CUT + text[-half:]
    return _unicode(text)


def _of_room_code(stack: traceback.StackSummary) -> traceback.StackSummary:
    """Return a stack without the SDK's frames at its ends; all of it where there are no others."""
    others = [index for index, frame in enumerate(stack) if not frame.filename.startswith((_SDK, _NATIVE))]
    if not others:
        return stack
    # What says no is a raise of the SDK's own. Anything else is a fault in it, which its frames tell of.
    last = stack[-1]
    says_no = (last.line or "").startswith("raise ") or last.filename.startswith(_NATIVE)
    return traceback.StackSummary.from_list(stack[others[0] : others[-1] + 1 if says_no else None])


def _unicode(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
