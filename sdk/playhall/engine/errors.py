"""The errors of the SDK.

PlayhallError(Exception)           what Playhall answers: a close code, or 0 or 422 for a call, and its text
FieldError(ValueError)             a value does not fit its field; the write changed nothing
    FieldTypeError(+ TypeError)    it is of the wrong Python type
DeadEntityError(RuntimeError)      the entity was deleted, or was never added
ReadOnlyError(TypeError)           the writer may not write this field of this entity
ProtocolError(ValueError)          bytes from the other side that the protocol does not allow
    SizeLimitError                 they are too many
"""

from __future__ import annotations

from playhall.engine.codes import CloseCode

__all__ = [
    "DeadEntityError",
    "FieldError",
    "FieldTypeError",
    "PlayhallError",
    "ProtocolError",
    "ReadOnlyError",
    "SizeLimitError",
]


class PlayhallError(Exception):
    """What a client gets where Playhall or a room says no."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code: int = code
        """A close code (4000 and above), or a call's: 422 for a no of the room, 404 for a call it does not
        know, 429 for too many at once, 0 for no answer.
        """
        self.message: str = message
        """Says why, for people. Programs look at the code."""


class FieldError(ValueError):
    """A value does not fit its field. The write changed nothing."""

    def __init__(self, kind: str, id: int | None, field: str, reason: str, owner: str | None = None) -> None:
        of = "" if owner is None else f" of {owner}"
        super().__init__(f"{kind} {'(not added)' if id is None else id}{of}: {field}: {reason}")
        self.kind: str = kind
        """The kind's name."""
        self.id: int | None = id
        """The entity's; None before it is added."""
        self.field: str = field
        """The field's name."""
        self.reason: str = reason
        """What is wrong, for people."""
        self.owner: str | None = owner
        """The player that owns the entity, or whose private state it is; None where that is not known."""


class FieldTypeError(FieldError, TypeError):
    """A value is not of the type its field has. It is a TypeError as well."""


class DeadEntityError(RuntimeError):
    """The entity was deleted, or was never added."""


class ReadOnlyError(TypeError):
    """A client wrote what it may not: only writable fields of entities that its player owns are its own.

    Nothing was changed.
    """


class ProtocolError(ValueError):
    """The other side sent what the protocol does not allow. The connection is to be closed with `code`."""

    code: CloseCode = CloseCode.PROTOCOL


class SizeLimitError(ProtocolError):
    """A frame or its payload is over its limit."""

    code = CloseCode.LIMIT_EXCEEDED
