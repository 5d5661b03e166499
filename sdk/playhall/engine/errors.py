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
    """What a client gets where Playhall or a room says no.

    `code` is a close code, or a call's: 422 for what the room answered, 0 for no answer. `message` says why.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class FieldError(ValueError):
    """A value does not fit its field. The write changed nothing.

    `kind` and `field` are names, `reason` is for people; `id` is None before the entity is added.
    """

    def __init__(self, kind: str, id: int | None, field: str, reason: str) -> None:
        super().__init__(f"{kind} {'(not added)' if id is None else id}: {field}: {reason}")
        self.kind = kind
        self.id = id
        self.field = field
        self.reason = reason


class FieldTypeError(FieldError, TypeError):
    """A value is not of the type its field has."""


class DeadEntityError(RuntimeError):
    """The entity was deleted, or was never added."""


class ReadOnlyError(TypeError):
    """The writer may not write this field of this entity."""


class ProtocolError(ValueError):
    """The other side sent what the protocol does not allow. The connection is to be closed with `code`."""

    code: CloseCode = CloseCode.PROTOCOL


class SizeLimitError(ProtocolError):
    """A frame or its payload is over its limit."""

    code = CloseCode.LIMIT_EXCEEDED
