"""What is said of an exception that room code raised.

The exception is the author's own: its `__str__` may raise, its text may be no Unicode (a file name, what came
over a socket) or as long as a level. What is made of it here is none of that, so that it can be logged, sent
and stored like any other text.
"""

from __future__ import annotations

import traceback

__all__ = ["MAX_ERROR", "MAX_TRACEBACK", "error_text", "said_by", "traceback_text"]

MAX_ERROR = 1_000
"""Characters of `error_text`."""
MAX_TRACEBACK = 16_000
"""Characters of `traceback_text`."""

_CUT = "\n  ...\n"


def error_text(error: BaseException) -> str:
    """Return the exception's type and text."""
    return _unicode(f"{type(error).__name__}: {_text_of(error)}"[:MAX_ERROR])


def said_by(error: BaseException) -> str:
    """Return the exception's text, of any length; its type where it has none."""
    return _unicode(_text_of(error)) or type(error).__name__


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as another:
        return f"(its __str__ raised {type(another).__name__})"


def traceback_text(error: BaseException) -> str:
    """Return the traceback as Python prints it; the middle of a long one is left out."""
    text = "".join(traceback.format_exception(error))
    if len(text) > MAX_TRACEBACK:
        half = (MAX_TRACEBACK - len(_CUT)) // 2
        text = text[:half] + _CUT + text[-half:]
    return _unicode(text)


def _unicode(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
