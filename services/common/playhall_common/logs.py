"""Logs: one JSON object a line on stderr.

    log = logs.get_logger()
    log.info("room_started", room_uid=uid, generation=generation)

The event is a fixed name, what varies is in fields. `bind` adds fields to every later line of the current
task and of tasks it starts. What libraries log through `logging` comes out in the same form.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, cast

import msgspec


def _without_rich() -> None:
    """Import structlog, but not rich: that is for consoles, and costs 0.1 s of CPU at every start."""
    if "structlog" in sys.modules or "rich" in sys.modules:
        return
    hidden = cast(MutableMapping[str, Any], sys.modules)
    hidden["rich"] = None  # makes `import rich` raise ImportError, which structlog is ready for
    try:
        __import__("structlog")
    finally:
        del hidden["rich"]


_without_rich()

import structlog  # noqa: E402  # after it was imported in its light form
from structlog.contextvars import bind_contextvars as bind  # noqa: E402
from structlog.contextvars import bound_contextvars as bound  # noqa: E402
from structlog.contextvars import clear_contextvars as clear  # noqa: E402

if TYPE_CHECKING:
    from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

__all__ = ["bind", "bound", "clear", "configure", "get_logger", "writes"]

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(service: str, level: str = "info") -> None:
    """Send the process's log lines to stderr under this service's name. Call once, before anything logs."""
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _name_service(service),
        _render,
    ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.BytesLoggerFactory(sys.stderr.buffer),
        cache_logger_on_first_use=True,
    )
    # Libraries speak of their own workings at info; only their warnings are about ours.
    logging.basicConfig(handlers=[_Forward()], level=max(_LEVELS[level], logging.WARNING), force=True)


def get_logger() -> FilteringBoundLogger:
    """A logger. Cheap; modules keep one each."""
    return cast("FilteringBoundLogger", structlog.get_logger())


def writes(logger: FilteringBoundLogger, level: str) -> bool:
    """Whether a logger writes lines of this level, or drops them."""
    return logger.is_enabled_for(_LEVELS[level])


class _Forward(logging.Handler):
    """Lines of `logging`, in our form."""

    def emit(self, record: logging.LogRecord) -> None:
        get_logger().log(
            record.levelno,
            "library_log",
            logger=record.name,
            message=record.getMessage(),
            exc_info=record.exc_info or None,
        )


def _name_service(service: str) -> Processor:
    def add(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        return {"timestamp": event.pop("timestamp"), "level": event.pop("level"), "service": service, **event}

    return add


_encoder = msgspec.json.Encoder(enc_hook=repr)


def _render(_logger: WrappedLogger, _method: str, event: EventDict) -> bytes:
    try:
        return _encoder.encode(event)
    except (TypeError, ValueError, RecursionError):
        # Text that is no Unicode, or what holds itself: an odd line is better than a lost one.
        return _encoder.encode({ascii(key)[1:-1]: _plain(value) for key, value in event.items()})


def _plain(value: object) -> object:
    if isinstance(value, int | float) or (isinstance(value, str) and value.isascii()):
        return value
    return ascii(value)
