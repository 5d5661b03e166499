"""Player tokens and guest tokens (docs/decisions.md, Q-05 to Q-07)."""

from __future__ import annotations

import base64
import json
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall_router.tokens import AuthError, Identity, TokenRules, check_token, issue_guest

NOW = 1_800_000_000.0
SECRET = "the backend's secret, of 32 bytes and more"
OTHER = "another secret of the backend, 32 bytes or more"
DAY = 24 * 3600
RULES = TokenRules("dots", "main", {"k1": SECRET, "k2": OTHER}, guests=True, guest_key="the router's key")
CLOSED = TokenRules("dots", "main", {"k1": SECRET}, guests=False, guest_key="the router's key")
ID = bytes(range(16))


def player_token(secret: str = SECRET, kid: str | None = "k1", **changes: Any) -> str:
    claims: dict[str, Any] = {"sub": "ann", "prj": "dots", "iat": NOW, "exp": NOW + 3600} | changes
    claims = {name: value for name, value in claims.items() if value is not ...}
    return jwt.encode(claims, secret, algorithm="HS256", headers={} if kid is None else {"kid": kid})


def check(token: str, rules: TokenRules = RULES, now: float = NOW) -> Identity:
    return check_token(token, rules, now_s=now, new_id=ID)


@pytest.mark.ledger("RTR-03", "RTR-02", "RTR-13")
def test_a_player_is_who_the_token_says() -> None:
    identity = check(player_token(meta={"name": "Ann", "n": [1, "ä"]}))
    assert (identity.player, identity.is_guest, identity.guest_token) == ("ann", False, "")
    assert json.loads(identity.meta) == {"name": "Ann", "n": [1, "ä"]}
    assert check(player_token()).meta == b""


@pytest.mark.ledger("RTR-03")
def test_each_active_key_is_tried_by_its_kid() -> None:
    assert check(player_token(OTHER, "k2")).player == "ann"
    for token in (
        player_token(OTHER, "k1"),
        player_token(SECRET, "k2"),
        player_token(SECRET, "k3"),
        player_token(SECRET, None),
    ):
        with pytest.raises(AuthError):
            check(token)


@pytest.mark.ledger("RTR-06", "CODE-02", "RTR-03")
@pytest.mark.parametrize(
    "changes",
    [
        {"prj": "other"},
        {"prj": ...},
        {"room": "elsewhere"},
        {"sub": ...},
        {"sub": ""},
        {"sub": 7},
        {"sub": "x" * 129},
        {"sub": "ann\0"},
        {"sub": "ann\n"},
        {"sub": "ann\x85"},
        {"iat": ...},
        {"exp": ...},
        {"exp": NOW + DAY + 1},
        {"exp": "tomorrow"},
        {"exp": True},
        {"iat": NOW + 61, "exp": NOW + 100},
        {"nbf": NOW + 61},
        {"iat": NOW - 200, "exp": NOW - 61},
        {"meta": "text"},
        {"meta": {"deep": json.loads("[" * 512 + "]" * 512)}},
        {"meta": {"x": "y" * 9000}},
        {"iat": -1},
    ],
)
def test_a_claim_that_is_wrong_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(AuthError):
        check(player_token(**changes))


@pytest.mark.ledger("RTR-03")
def test_a_minute_of_skew_and_a_day_of_life_are_allowed() -> None:
    for token in (
        player_token(iat=NOW - 300, exp=NOW - 59),
        player_token(iat=NOW + 59, nbf=NOW + 59),
        player_token(exp=NOW + DAY),
        player_token(room="main"),
    ):
        assert check(token).player == "ann"


@pytest.mark.ledger("RTR-04", "BOT-02")
def test_nobody_is_a_bot_or_a_guest_by_token() -> None:
    for sub in ("bot:1", "guest:" + ID.hex()):
        with pytest.raises(AuthError):
            check(player_token(sub=sub))


@pytest.mark.ledger("RTR-05", "RECO-14")
def test_no_token_is_a_new_guest_who_stays_the_same() -> None:
    new = check("")
    assert new.player == "guest:" + ID.hex()
    assert new.guest_token
    back = check_token(new.guest_token, RULES, now_s=NOW + DAY, new_id=bytes(16))
    assert (back.player, back.guest_token) == (new.player, "")


@pytest.mark.ledger("RTR-05", "RECO-14")
def test_a_guest_token_is_renewed_after_a_day_and_ends_after_thirty() -> None:
    token = check("").guest_token
    renewed = check_token(token, RULES, now_s=NOW + DAY + 1, new_id=bytes(16)).guest_token
    assert renewed
    assert check(renewed, now=NOW + 30 * DAY).player == "guest:" + ID.hex()
    assert check(token, now=NOW + 30 * DAY).player == "guest:" + ID.hex()
    with pytest.raises(AuthError):
        check(token, now=NOW + 30 * DAY + 61)


@pytest.mark.ledger("RTR-05", "RTR-06")
def test_guests_come_in_only_where_they_may() -> None:
    token = check("").guest_token
    for rules in (CLOSED, TokenRules("other", "main", {}, guests=True, guest_key="the router's key")):
        with pytest.raises(AuthError):
            check(token, rules)
    with pytest.raises(AuthError):
        check("", CLOSED)
    with pytest.raises(AuthError):
        check(token, TokenRules("dots", "main", {}, guests=True, guest_key="another key"))


def test_a_guests_id_alone_makes_nobody_that_guest() -> None:
    forged = jwt.encode(
        {"sub": "guest:" + ID.hex(), "prj": "dots", "iat": NOW, "exp": NOW + 60},
        SECRET,
        algorithm="HS256",
        headers={"kid": "playhall-guest"},
    )
    with pytest.raises(AuthError):
        check(forged)


def test_an_algorithm_the_token_chose_is_not_used() -> None:
    head = base64.urlsafe_b64encode(b'{"alg":"none","kid":"k1"}').rstrip(b"=")
    body = base64.urlsafe_b64encode(
        json.dumps({"sub": "ann", "prj": "dots", "iat": NOW, "exp": NOW + 9}).encode()
    ).rstrip(b"=")
    for token in (f"{head.decode()}.{body.decode()}.", player_token()[:-2] + "AA"):
        with pytest.raises(AuthError):
            check(token)


@given(st.text(max_size=200) | st.binary(max_size=100).map(lambda data: data.decode("latin-1")))
def test_any_text_is_a_token_or_refused(token: str) -> None:
    if token:
        with pytest.raises(AuthError):
            check(token)


@given(st.binary(min_size=1, max_size=60), st.binary(max_size=60))
def test_any_header_and_claims_are_refused(head: bytes, body: bytes) -> None:
    parts = [base64.urlsafe_b64encode(each).rstrip(b"=").decode() for each in (head, body, b"x" * 32)]
    with pytest.raises(AuthError):
        check(".".join(parts))


def test_a_guest_is_made_of_sixteen_bytes() -> None:
    with pytest.raises(ValueError):
        issue_guest(RULES, now_s=NOW, new_id=b"short")
