"""What a class overrides, held against what will be called: a slip is told where the class is made.

Else a misspelt hook would never run, and one that takes other arguments would fail at its first call.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection
from difflib import SequenceMatcher
from typing import Any, Final

__all__ = ["check_overrides"]

_ALIKE: Final = 0.8


def check_overrides(cls: type, base: type, hooks: Collection[str], *, own: Collection[str] = ()) -> None:
    """Raise TypeError for a method that cannot be called as the hook of `base` it is, or is a misspelt one.

    `own`: methods that are no hooks, whatever they resemble.
    """
    for hook in hooks:
        _check_call(cls, base, hook)
    for name, value in vars(cls).items():
        if name in hooks or name in own or not isinstance(value, _Methods):
            continue
        meant = _meant(name, hooks)
        if meant is not None:
            raise TypeError(
                f"{cls.__name__}.{name} is no hook of {base.__name__}, and nothing would call it: did you"
                f" mean {_shown(base, meant)}? A method of your own needs another name"
            )


# What else a class holds (a partial, an object that can be called) says nothing of how it is bound.
_Function: Final[Any] = type(lambda: None)
_Methods: Final[Any] = (_Function, staticmethod, classmethod)


def _check_call(cls: type, base: type, hook: str) -> None:
    value = inspect.getattr_static(cls, hook)
    if not callable(value) and not hasattr(type(value), "__get__"):
        raise TypeError(f"{cls.__name__}.{hook} is no method: write def {_shown(base, hook)}")
    if not isinstance(value, _Methods):
        return
    function = value if isinstance(value, _Function) else value.__func__
    bound = () if isinstance(value, staticmethod) else (cls,)
    try:
        # A decorated function takes what its wrapper does, and not what the one below takes.
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return  # something written in C, which does not tell
    try:
        signature.bind(*bound, *_arguments(base, hook))
    except TypeError as error:
        raise TypeError(
            f"{cls.__name__}.{hook} cannot be called: {error}; write def {_shown(base, hook)}"
        ) from None


def _arguments(base: type, hook: str) -> list[str]:
    """The names of what a hook is called with, all by position."""
    return list(inspect.signature(getattr(base, hook)).parameters)[1:]


def _shown(base: type, hook: str) -> str:
    return f"{hook}({', '.join(['self', *_arguments(base, hook)])})"


def _meant(name: str, hooks: Collection[str]) -> str | None:
    """The hook that somebody may have meant by the name of a method; None for one of the author's own."""
    for hook in hooks:
        plain = hook.replace("_", "")
        if not name.startswith("_") and name.replace("_", "").lower() in (plain, f"on{plain}"):
            return hook
    stems = {hook.removeprefix("on_"): hook for hook in hooks if hook.startswith("on_")}
    if not stems or not name.startswith("on_"):
        return None
    stem = name.removeprefix("on_")
    nearest = max(stems, key=lambda known: _likeness(stem, known))
    if nearest[:1] == stem[:1] and _likeness(stem, nearest) >= _ALIKE:
        return stems[nearest]
    # on_player_join is put together of what hooks are called.
    words = stem.split("_")
    known_words = {word for known in stems for word in known.split("_")}
    return next((stems[word] for word in words if word in stems), None) if known_words >= {*words} else None


def _likeness(a: str, b: str) -> float:
    """How alike two words are, 0 to 1. Letters that changed places (jion) count as no difference."""
    same_letters = len(a) > 2 and sorted(a) == sorted(b)
    return 1.0 if same_letters else SequenceMatcher(None, a, b).ratio()
