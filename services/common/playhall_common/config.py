"""Settings of a service, read from the environment once, at start.

A service has one frozen dataclass of settings. Each field is made with `setting`, which holds its meaning and
limits, and is read from one environment variable: the prefix and the field's name in capitals, or `env` where
services share a name. `load` reads all of them and raises one `ConfigError` that lists every problem. A
variable with the prefix that no field reads is one: a mistyped name must never leave a default in force.

    @dataclass(frozen=True, kw_only=True)
    class VoiceConfig(TrustedConfig):
        livekit_url: str | None = setting("Where clients find LiveKit (ws:// or wss://).", default=None)

    config = load_or_exit(VoiceConfig, "PLAYHALL_VOICE")
"""

from __future__ import annotations

import dataclasses
import math
import os
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

__all__ = [
    "ConfigError", "Secret", "ServiceConfig", "SettingDoc", "TrustedConfig", "describe", "load",
    "load_or_exit", "setting",
]  # fmt: skip

T = TypeVar("T")

_META = "playhall_setting"
_BOOLS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}
MIN_SECRET_CHARS = 16


class ConfigError(Exception):
    """The settings cannot be used. `problems` holds one line for each reason."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Secret(str):
    """A string that does not show in a repr, nor in the repr of what holds it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Secret('***')"


@dataclass(frozen=True, slots=True)
class _Setting:
    doc: str
    env: str | None
    low: float | None
    high: float | None
    choices: tuple[str, ...] | None


def setting(
    doc: str,
    *,
    default: Any = MISSING,
    default_factory: Any = MISSING,
    env: str | None = None,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] | None = None,
) -> Any:
    """A field of a settings class.

    `low` and `high` bound a number, both inclusive; `env` names the variable in full, where it is not the
    prefix and the field's name. Without a default the variable must be set.
    """
    metadata = {_META: _Setting(doc, env, low, high, choices)}
    if default_factory is not MISSING:
        return dataclasses.field(default_factory=default_factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class ServiceConfig:
    """What every service can be told."""

    address: str = setting(
        "Where gRPC listens: host:port, or unix:path. Port 0 takes a free one.", default="127.0.0.1:0"
    )
    metrics_address: str = setting("Where /metrics listens: host:port. Empty: nowhere.", default="")
    log_level: str = setting(
        "The least severe lines that are logged.",
        default="info",
        choices=("debug", "info", "warning", "error"),
    )
    drain_s: float = setting(
        "How long a drain may take before what is left is cut off, in seconds.",
        default=25.0,
        low=0.1,
        high=3600,
    )
    ready_fd: int | None = setting(
        "File descriptor that gets one JSON line with the bound addresses once the service serves.",
        default=None,
        env="PLAYHALL_READY_FD",
        low=0,
    )

    def problems(self) -> Iterable[str]:
        """What is wrong with the values together; a subclass that overrides this yields `super()`'s too."""
        if ":" not in self.address:
            yield f"address {self.address!r} is neither host:port nor unix:path"
        if self.metrics_address and ":" not in self.metrics_address:
            yield f"metrics_address {self.metrics_address!r} is not host:port"


@dataclass(frozen=True, kw_only=True)
class TrustedConfig(ServiceConfig):
    """For the services that trust one another. Processes that run room code never hold this."""

    service_secret: Secret = setting(
        "What trusted services show each other, 16 characters or more.", env="PLAYHALL_SERVICE_SECRET"
    )

    def problems(self) -> Iterable[str]:
        yield from super().problems()
        if len(self.service_secret) < MIN_SECRET_CHARS:
            yield f"PLAYHALL_SERVICE_SECRET is shorter than {MIN_SECRET_CHARS} characters"


@dataclass(frozen=True, slots=True)
class SettingDoc:
    """A row of the settings' reference page. `default` is None where the variable must be set."""

    env: str
    type: str
    default: str | None
    doc: str


def describe(cls: type[Any], prefix: str) -> list[SettingDoc]:
    """What `load(cls, prefix)` reads, in the order of the fields."""
    hints = typing.get_type_hints(cls)
    return [
        SettingDoc(
            _env_name(field, prefix), _type_name(hints[field.name]), _default_text(field), _meta(field).doc
        )
        for field in dataclasses.fields(cls)
    ]


def load(cls: type[T], prefix: str, environ: Mapping[str, str] | None = None) -> T:
    """Read a settings class from the environment. Raises ConfigError with every problem found."""
    environ = os.environ if environ is None else environ
    prefix = prefix.rstrip("_")
    hints = typing.get_type_hints(cls)
    problems: list[str] = []
    values: dict[str, Any] = {}
    names: set[str] = set()
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]  # callers pass dataclasses
        name = _env_name(field, prefix)
        names.add(name)
        if name in environ:
            try:
                values[field.name] = _parse(environ[name], hints[field.name], _meta(field))
            except ValueError as error:
                shown = "" if hints[field.name] is Secret else f" {environ[name]!r}"
                problems.append(f"{name}{shown}: {error}")
        elif field.default is MISSING and field.default_factory is MISSING:
            problems.append(f"{name} is not set: {_meta(field).doc}")
    problems += _unknown(prefix, environ, names)
    if problems:
        raise ConfigError(problems)
    config = cls(**values)
    if isinstance(config, ServiceConfig):
        problems = list(config.problems())
    if problems:
        raise ConfigError(problems)
    return config


def load_or_exit(cls: type[T], prefix: str, environ: Mapping[str, str] | None = None) -> T:
    """`load`, but a person reads the problems on stderr, and the process ends with code 2."""
    try:
        return load(cls, prefix, environ)
    except ConfigError as error:
        _exit(prefix, error.problems)


def _exit(prefix: str, problems: list[str]) -> NoReturn:
    service = prefix.rstrip("_").removeprefix("PLAYHALL_").lower()
    print(f"playhall {service}: cannot start with these settings:", file=sys.stderr)
    for problem in problems:
        print(f"  - {problem}", file=sys.stderr)
    raise SystemExit(2)


def _meta(field: dataclasses.Field[Any]) -> _Setting:
    try:
        return typing.cast(_Setting, field.metadata[_META])
    except KeyError:
        raise TypeError(f"{field.name} is not made with setting()") from None


def _env_name(field: dataclasses.Field[Any], prefix: str) -> str:
    return _meta(field).env or f"{prefix.rstrip('_')}_{field.name.upper()}"


def _unknown(prefix: str, environ: Mapping[str, str], names: set[str]) -> list[str]:
    problems = []
    for name in sorted(environ):
        if name.startswith(prefix + "_") and name not in names:
            # Here and not above: no service that starts well pays for the import.
            import difflib

            near = difflib.get_close_matches(name, names, n=1)
            problems.append(f"{name} is not a setting" + (f"; did you mean {near[0]}?" if near else ""))
    return problems


def _parse(text: str, hint: Any, meta: _Setting) -> Any:
    """The value of a variable. Raises ValueError with what was expected."""
    if isinstance(hint, types.UnionType):
        return None if text == "" else _parse(text, _without_none(hint), meta)
    if typing.get_origin(hint) is list:
        (element,) = typing.get_args(hint)
        return [_parse(part.strip(), element, meta) for part in text.split(",") if part.strip()]
    parse = _PARSERS.get(hint)
    if parse is None:
        raise TypeError(f"settings cannot be of type {hint!r}")
    value = parse(text)
    if meta.choices is not None and value not in meta.choices:
        raise ValueError("expected one of " + ", ".join(meta.choices))
    if meta.low is not None and value < meta.low:
        raise ValueError(f"expected {meta.low} or more")
    if meta.high is not None and value > meta.high:
        raise ValueError(f"expected {meta.high} or less")
    return value


def _without_none(hint: types.UnionType) -> Any:
    """The X of `X | None`."""
    (arm,) = (arm for arm in typing.get_args(hint) if arm is not type(None))
    return arm


def _parse_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("expected a whole number") from None


def _parse_float(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError("expected a number") from None
    if not math.isfinite(value):
        raise ValueError("expected a finite number")
    return value


def _parse_bool(text: str) -> bool:
    try:
        return _BOOLS[text.lower()]
    except KeyError:
        raise ValueError("expected true or false") from None


def _parse_path(text: str) -> Path:
    if not text:
        raise ValueError("expected a path")
    return Path(text).expanduser()


_PARSERS: Mapping[Any, Callable[[str], Any]] = {
    str: str,
    Secret: Secret,
    int: _parse_int,
    float: _parse_float,
    bool: _parse_bool,
    Path: _parse_path,
}

_TYPE_NAMES = {
    str: "text",
    Secret: "secret",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Path: "path",
}


def _type_name(hint: Any) -> str:
    if isinstance(hint, types.UnionType):
        return _type_name(_without_none(hint))
    if typing.get_origin(hint) is list:
        return f"list of {_type_name(typing.get_args(hint)[0])}"
    return _TYPE_NAMES[hint]


def _default_text(field: dataclasses.Field[Any]) -> str | None:
    if field.default is not MISSING:
        return "" if field.default is None else str(field.default)
    if field.default_factory is not MISSING:
        return ",".join(str(item) for item in field.default_factory())
    return None
