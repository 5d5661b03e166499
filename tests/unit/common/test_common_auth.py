"""Who calls: the service secret, and host tokens."""

from __future__ import annotations

import jwt
import pytest

from playhall.engine.codes import ErrorCode
from playhall_common import auth
from playhall_common.auth import HostClaims
from playhall_common.errors import ApiError

SECRET = "a secret of thirty-two bytes or more"
CLAIMS = HostClaims("dots", "build-1", "host-1", expires_at_s=1_000_000)


def verify(token: str, *, secret: str = SECRET, audience: str = "data", now_s: float = 999_999) -> HostClaims:
    return auth.verify_host_token(token, secret, audience=audience, now_s=now_s)


def refused(token: str, **changes: object) -> None:
    with pytest.raises(ApiError) as caught:
        verify(token, **changes)  # type: ignore[arg-type]
    assert caught.value.code is ErrorCode.UNAUTHENTICATED


@pytest.mark.parametrize("audience", ["statestore", "data"])
def test_a_host_token_says_whose_host_it_is(audience: str) -> None:
    assert verify(auth.sign_host_token(CLAIMS, SECRET), audience=audience) == CLAIMS


def test_a_token_lasts_its_time_and_a_minute() -> None:
    token = auth.sign_host_token(CLAIMS, SECRET)
    assert verify(token, now_s=1_000_060) == CLAIMS
    refused(token, now_s=1_000_060.5)


def test_a_token_is_for_its_audience_and_secret() -> None:
    token = auth.sign_host_token(CLAIMS, SECRET)
    refused(token, audience="router")
    refused(token, secret="another secret of ours")


def test_a_changed_token_is_refused() -> None:
    head, body, signature = auth.sign_host_token(CLAIMS, SECRET).split(".")
    refused(f"{head}.{body[:-2]}AA.{signature}")
    refused("")
    refused("no token")


def test_a_token_under_the_secret_itself_is_refused() -> None:
    claims = {"project": "dots", "build": "b", "host_id": "h", "aud": ["data"], "exp": 1_000_000}
    refused(jwt.encode(claims, SECRET, algorithm="HS256"))


def test_a_token_without_a_signature_is_refused() -> None:
    claims = {"project": "dots", "build": "b", "host_id": "h", "aud": ["data"], "exp": 1_000_000}
    refused(jwt.encode(claims, None, algorithm="none"))


@pytest.mark.parametrize(
    ("value", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        ("Basic abc", None),
        ("abc", None),
        (b"Bearer abc", None),
    ],
)
def test_the_token_of_a_call(value: str | bytes, token: str | None) -> None:
    assert auth.bearer([("user-agent", "x"), ("authorization", value)]) == token


def test_a_call_without_metadata_has_no_token() -> None:
    assert auth.bearer(None) is None
    assert auth.bearer([]) is None


@pytest.mark.parametrize(
    ("token", "good"), [(SECRET, True), (SECRET[:-1], False), ("", False), (None, False)]
)
def test_only_the_whole_secret_is_the_secret(token: str | None, good: bool) -> None:
    assert auth.is_service(token, SECRET) is good


def test_a_token_that_is_not_ascii_is_only_wrong() -> None:
    assert auth.is_service("sécret", SECRET) is False


def test_what_service_metadata_says_is_read_back() -> None:
    assert auth.bearer(auth.service_metadata(SECRET)) == SECRET
