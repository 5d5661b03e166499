"""Values whose classes run code when the engine looks at them, as room code's may: subclasses of int, float,
str, bytes and dict, a number that is none of these, a mapping, a sequence, and what NumPy asks for its array.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

__all__ = ["SORTS", "Deed", "meddling"]

Deed = Callable[[], object]


class _Meddler:
    """Runs `deed` the first time that anything is asked of it."""

    deed: Deed | None = None

    def run(self) -> None:
        deed, self.deed = self.deed, None
        if deed is not None:
            deed()


class MeddlingInt(_Meddler, int):
    def __int__(self) -> int:
        self.run()
        return 7

    __index__ = __trunc__ = __int__

    def __float__(self) -> float:
        self.run()
        return 7.0

    def __le__(self, other: object) -> bool:
        self.run()
        return True

    __ge__ = __lt__ = __gt__ = __le__


class MeddlingFloat(_Meddler, float):
    def __float__(self) -> float:
        self.run()
        return 0.5

    def __le__(self, other: object) -> bool:
        self.run()
        return True

    __ge__ = __lt__ = __gt__ = __le__


class MeddlingNumber(_Meddler):
    """An int to `numbers`, and to nobody else."""

    def __int__(self) -> int:
        self.run()
        return 9

    __index__ = __trunc__ = __int__

    def __float__(self) -> float:
        self.run()
        return 9.0


numbers.Integral.register(MeddlingNumber)


class MeddlingStr(_Meddler, str):
    def __str__(self) -> str:
        self.run()
        return "other"

    def encode(self, *args: Any, **keywords: Any) -> bytes:
        self.run()
        return b"\xff"

    def __len__(self) -> int:
        self.run()
        return 3

    def __hash__(self) -> int:
        self.run()
        return str.__hash__(self)

    def __eq__(self, other: object) -> bool:
        self.run()
        return str.__eq__(self, other) is True


class MeddlingBytes(_Meddler, bytes):
    def __bytes__(self) -> bytes:
        self.run()
        return b"other bytes"

    def __len__(self) -> int:
        self.run()
        return 3


class MeddlingMapping(_Meddler, Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        self.run()
        return 1

    def __iter__(self) -> Iterator[str]:
        self.run()
        return iter(("a", "b"))

    def __len__(self) -> int:
        self.run()
        return 2


class MeddlingDict(_Meddler, dict[str, Any]):
    def items(self) -> Any:
        self.run()
        return {"c": None}.items()

    def __iter__(self) -> Iterator[str]:
        self.run()
        return iter(("a",))


class MeddlingSequence(_Meddler, Sequence[Any]):
    def __getitem__(self, at: Any) -> Any:
        self.run()
        if at > 2:
            raise IndexError(at)
        return at

    def __len__(self) -> int:
        self.run()
        return 3


class MeddlingArray(_Meddler):
    """What NumPy asks for its array."""

    def __array__(self, *args: Any, **keywords: Any) -> Any:
        self.run()
        import numpy as np

        return np.asarray(3.0)

    def __float__(self) -> float:
        self.run()
        return 3.0


SORTS: dict[str, Callable[[], _Meddler]] = {
    "int": lambda: MeddlingInt(3),
    "float": lambda: MeddlingFloat(2.5),
    "number": MeddlingNumber,
    "str": lambda: MeddlingStr("text"),
    "bytes": lambda: MeddlingBytes(b"bytes"),
    "mapping": MeddlingMapping,
    "dict": lambda: MeddlingDict(a=1),
    "sequence": MeddlingSequence,
    "array": MeddlingArray,
}


def meddling(sort: str, deed: Deed) -> Any:
    """Return a value of a sort that does the deed when it is looked at."""
    value = SORTS[sort]()
    value.deed = deed
    return value
