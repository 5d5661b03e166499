"""Generate the close codes and API errors of protos/codes.toml for Python, for TypeScript and for readers."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "protos" / "codes.toml"
RECONNECTS = {
    "never": "never: the client reports it and stops",
    "backoff": "after a growing wait",
    "now": "at once",
}
GRPC_STATUSES = frozenset(status.name for status in grpc.StatusCode) - {"OK"}


class CodesError(Exception):
    """codes.toml says something that cannot be; the text names the entry."""


@dataclass(frozen=True)
class Close:
    """A close code, and whether a client comes back after it."""

    number: int
    name: str
    reconnect: str
    help: str


@dataclass(frozen=True)
class Error:
    """An API error, with its status in both of the API's forms."""

    code: str
    http: int
    grpc: str
    help: str

    @property
    def name(self) -> str:
        """The code as a name in an enum."""
        return self.code.removeprefix("E_")


@dataclass(frozen=True)
class Codes:
    """All of codes.toml."""

    closes: tuple[Close, ...]
    errors: tuple[Error, ...]


def parse(text: str) -> Codes:
    """Read codes.toml. Raises CodesError where an entry is malformed, or a number or a name comes twice."""
    document = tomllib.loads(text)
    codes = Codes(tuple(_entries(document, "close", Close)), tuple(_entries(document, "error", Error)))
    for close in codes.closes:
        if close.reconnect not in RECONNECTS:
            raise CodesError(
                f"{close.name}: reconnect {close.reconnect!r} is not one of {', '.join(RECONNECTS)}"
            )
    for error in codes.errors:
        if error.grpc not in GRPC_STATUSES:
            raise CodesError(f"{error.code}: {error.grpc!r} is no gRPC status")
        if not error.code.startswith("E_"):
            raise CodesError(f"{error.code}: an error code starts with E_")
    _unique(close.number for close in codes.closes)
    _unique(close.name for close in codes.closes)
    _unique(error.code for error in codes.errors)
    return codes


def _entries(document: dict[str, Any], table: str, kind: type) -> Iterable[Any]:
    for entry in document.get(table, []):
        try:
            yield kind(**entry)
        except TypeError as error:
            raise CodesError(f"[[{table}]] {entry}: {error}") from None


def _unique(values: Iterable[object]) -> None:
    seen: set[object] = set()
    for value in values:
        if value in seen:
            raise CodesError(f"{value} comes twice")
        seen.add(value)


def python(codes: Codes) -> str:
    """Return the Python module, before ruff has formatted it."""
    lines = [
        '"""Close codes and API errors. Generated from protos/codes.toml by `make gen`."""',
        "from __future__ import annotations\n",
        "import enum",
        "from collections.abc import Mapping",
        "from dataclasses import dataclass",
        "from types import MappingProxyType",
        '__all__ = ["ERRORS", "CloseCode", "ErrorCode", "ErrorInfo", "Reconnect"]',
        "class Reconnect(enum.StrEnum):",
        '    """Whether and when a client comes back after a close."""\n',
        *(f"    {name.upper()} = {json.dumps(name)}" for name in RECONNECTS),
        "class CloseCode(enum.IntEnum):",
        '    """Why a connection was closed. Any number that is not here means Reconnect.BACKOFF."""\n',
        *(f"    {close.name} = {close.number}" for close in codes.closes),
        "    @property",
        "    def reconnect(self) -> Reconnect:",
        '        """Whether and when a client comes back."""',
        "        return _CLOSES[self][0]",
        "    @property",
        "    def help(self) -> str:",
        '        """What happened, and what to do about it."""',
        "        return _CLOSES[self][1]",
        "_CLOSES: Mapping[CloseCode, tuple[Reconnect, str]] = {",
        *(
            f"CloseCode.{close.name}: (Reconnect.{close.reconnect.upper()}, {_text(close.help)}),"
            for close in codes.closes
        ),
        "}",
        "class ErrorCode(enum.StrEnum):",
        '    """Why a request failed."""\n',
        *(f"    {error.name} = {_text(error.code)}" for error in codes.errors),
        "@dataclass(frozen=True, slots=True)",
        "class ErrorInfo:",
        '    """An error in both of the API\'s forms: an HTTP status, and the name of a gRPC status."""\n',
        "    code: ErrorCode",
        "    http: int",
        "    grpc: str",
        "    help: str",
        "ERRORS: Mapping[str, ErrorInfo] = MappingProxyType({",
        *(
            f"{_text(error.code)}: ErrorInfo(ErrorCode.{error.name}, {error.http}, {_text(error.grpc)},"
            f" {_text(error.help)}),"
            for error in codes.errors
        ),
        "})",
        "",
    ]
    return "\n".join(lines)


def typescript(codes: Codes) -> str:
    """Return the TypeScript module."""
    lines = [
        "// Close codes and API errors. Generated from protos/codes.toml by `make gen`.",
        "",
        "/** Whether and when a client comes back after a close. */",
        f"export type Reconnect = {' | '.join(map(json.dumps, RECONNECTS))};",
        "",
        '/** Why a connection was closed. Any number that is not here means reconnect "backoff". */',
        "export const CloseCode = {",
        *(f"  {close.name}: {close.number}," for close in codes.closes),
        "} as const;",
        "export type CloseCode = (typeof CloseCode)[keyof typeof CloseCode];",
        "",
        "export interface CloseInfo {",
        "  readonly name: keyof typeof CloseCode;",
        "  readonly reconnect: Reconnect;",
        "  readonly help: string;",
        "}",
        "",
        "export const CLOSES: Readonly<Record<CloseCode, CloseInfo>> = {",
        *(
            f"  {close.number}: {{ name: {_text(close.name)}, reconnect: {_text(close.reconnect)},"
            f" help: {_text(close.help)} }},"
            for close in codes.closes
        ),
        "};",
        "",
        "/** Why a request failed. */",
        "export const ErrorCode = {",
        *(f"  {error.name}: {_text(error.code)}," for error in codes.errors),
        "} as const;",
        "export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode];",
        "",
        "export interface ErrorInfo {",
        "  readonly http: number;",
        "  readonly help: string;",
        "}",
        "",
        "export const ERRORS: Readonly<Record<ErrorCode, ErrorInfo>> = {",
        *(f"  {error.code}: {{ http: {error.http}, help: {_text(error.help)} }}," for error in codes.errors),
        "};",
        "",
    ]
    return "\n".join(lines)


def markdown(codes: Codes) -> str:
    """Return the reference page."""
    lines = [
        "# Codes",
        "",
        "Generated from `protos/codes.toml` by `make gen`. Numbers and names are never given a second",
        "meaning; the text beside them may change, so programs look at the code only.",
        "",
        "## Close codes",
        "",
        "What a client's connection is closed with. After a code that is not listed, a client reconnects",
        "after a growing wait.",
        "",
        "| number | name | reconnects | meaning |",
        "|---|---|---|---|",
        *(
            f"| {close.number} | `{close.name}` | {RECONNECTS[close.reconnect]} | {close.help} |"
            for close in codes.closes
        ),
        "",
        "## Errors",
        "",
        "What a call, an HTTP request or an RPC fails with.",
        "",
        "| code | HTTP | gRPC | meaning |",
        "|---|---|---|---|",
        *(f"| `{error.code}` | {error.http} | `{error.grpc}` | {error.help} |" for error in codes.errors),
        "",
    ]
    return "\n".join(lines)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def formatted(module: str) -> str:
    """Return `module` as `ruff format` of this repository leaves it."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "tools/codes.py", "-"]
    return subprocess.run(command, input=module, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def main() -> int:
    """Write the three files."""
    codes = parse(SOURCE.read_text())
    outputs = {
        ROOT / "sdk/playhall/engine/codes.py": formatted(python(codes)),
        ROOT / "clients/web/src/gen/codes.ts": typescript(codes),
        ROOT / "docs/reference/codes.md": markdown(codes),
    }
    for path, text in outputs.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
