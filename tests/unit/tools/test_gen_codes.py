"""tools/gen_codes.py: what it refuses, and that what it writes means what codes.toml says."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from tools import gen_codes

CLOSE = '[[close]]\nnumber = 4001\nname = "UNAUTHENTICATED"\nreconnect = "never"\nhelp = "Get a \\"new\\"."\n'
OTHER = '[[close]]\nnumber = 4008\nname = "ROOM_MOVED"\nreconnect = "now"\nhelp = "It moved."\n'
ERROR = '[[error]]\ncode = "E_UNAVAILABLE"\nhttp = 503\ngrpc = "UNAVAILABLE"\nhelp = "Try again."\n'


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = ModuleType("generated_codes")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(gen_codes.formatted(gen_codes.python(gen_codes.parse(CLOSE + OTHER + ERROR))), module.__dict__)
    return module


def test_python_close_codes_carry_their_answers(generated: Any) -> None:
    assert generated.CloseCode(4001) is generated.CloseCode.UNAUTHENTICATED
    assert generated.CloseCode.UNAUTHENTICATED.reconnect is generated.Reconnect.NEVER
    assert generated.CloseCode.ROOM_MOVED.reconnect == "now"
    assert generated.CloseCode.UNAUTHENTICATED.help == 'Get a "new".'


def test_python_errors_are_found_by_code(generated: Any) -> None:
    info = generated.ERRORS["E_UNAVAILABLE"]
    assert info.code is generated.ErrorCode.UNAVAILABLE
    assert (info.http, info.grpc, info.help) == (503, "UNAVAILABLE", "Try again.")


def test_typescript_and_the_page_name_every_code() -> None:
    codes = gen_codes.parse(CLOSE + OTHER + ERROR)
    module = gen_codes.typescript(codes)
    assert '4001: { name: "UNAUTHENTICATED", reconnect: "never", help: "Get a \\"new\\"." },' in module
    assert 'E_UNAVAILABLE: { http: 503, help: "Try again." },' in module
    page = gen_codes.markdown(codes)
    assert "| 4008 | `ROOM_MOVED` | at once | It moved. |" in page
    assert "| `E_UNAVAILABLE` | 503 | `UNAVAILABLE` | Try again. |" in page


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (CLOSE.replace("never", "maybe"), "UNAUTHENTICATED: reconnect 'maybe'"),
        (ERROR.replace('"UNAVAILABLE"', '"GONE"'), "E_UNAVAILABLE: 'GONE' is no gRPC status"),
        (ERROR.replace("E_UNAVAILABLE", "UNAVAILABLE"), "starts with E_"),
        (CLOSE + OTHER.replace("4008", "4001"), "4001 comes twice"),
        (CLOSE + OTHER.replace("ROOM_MOVED", "UNAUTHENTICATED"), "UNAUTHENTICATED comes twice"),
        (ERROR + ERROR, "E_UNAVAILABLE comes twice"),
        (CLOSE.replace("help", "text"), "text"),
    ],
)
def test_it_refuses(text: str, complaint: str) -> None:
    with pytest.raises(gen_codes.CodesError, match=complaint):
        gen_codes.parse(text)
