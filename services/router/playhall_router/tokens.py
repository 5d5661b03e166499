"""Who a client is: player tokens signed by a game's backend, and guest tokens signed here.

Both are HS256 JWTs. A player token names its key by `kid` and says sub, prj, iat, exp (at most 24 h after
iat), and where it likes nbf, room and meta. A guest token is bound to its project and lives 30 days; a client
gets a new one in welcome when its own is over a day old, so that a guest who comes back stays the same guest.

Times are arguments, in seconds since 1970. Randomness is one too. Nothing here raises but AuthError.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from playhall.engine.jsontext import MAX_DEPTH, is_too_deep
from playhall_common.ids import is_player_id

__all__ = ["AuthError", "Identity", "TokenRules", "check_token", "issue_guest"]

LEEWAY_S = 60
MAX_LIFE_S = 24 * 3600
GUEST_LIFE_S = 30 * 24 * 3600
GUEST_RENEW_S = 24 * 3600
GUEST_PREFIX = "guest:"
BOT_PREFIX = "bot:"
_GUEST_KID = "playhall-guest"
_GUEST_RANDOM_BYTES = 16
_MAX_META_BYTES = 8 * 1024

# Times are checked below, with the time that was given.
_DECODE: Any = {
    "verify_exp": False, "verify_iat": False, "verify_nbf": False, "verify_aud": False, "verify_iss": False,
    "verify_sub": False, "verify_jti": False,
}  # fmt: skip


class AuthError(Exception):
    """The client is not who it says, or may not come in: close 4001. The text is shown to the client."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What a token is checked against."""

    project: str
    room: str
    keys: Mapping[str, str]
    """Secrets of the project's active player token keys, by key id."""
    guests: bool
    guest_key: str


@dataclass(frozen=True, slots=True)
class Identity:
    """A player who may come in."""

    player: str
    meta: bytes
    """The meta claim as JSON; empty: none."""
    guest_token: str
    """A new guest token to keep; empty: none."""

    @property
    def is_guest(self) -> bool:
        """Whether nobody vouches for the player."""
        return self.player.startswith(GUEST_PREFIX)


def check_token(token: str, rules: TokenRules, *, now_s: float, new_id: bytes) -> Identity:
    """Who bears this token; none at all is a new guest, whose id is made of `new_id`, 16 random bytes. Raises
    AuthError.
    """
    if not token:
        _check_guests(rules)
        return issue_guest(rules, now_s=now_s, new_id=new_id)
    if _kid(token) == _GUEST_KID:
        return _check_guest(token, rules, now_s)
    return _check_player(token, rules, now_s)


def issue_guest(rules: TokenRules, *, now_s: float, new_id: bytes) -> Identity:
    """A new guest of the project, and the token that makes them the same guest later."""
    if len(new_id) != _GUEST_RANDOM_BYTES:
        raise ValueError("a guest's id is made of 16 random bytes")
    player = GUEST_PREFIX + new_id.hex()
    return Identity(player, b"", _sign_guest(player, rules, now_s))


def _sign_guest(player: str, rules: TokenRules, now_s: float) -> str:
    issued = int(now_s)
    claims = {"sub": player, "prj": rules.project, "iat": issued, "exp": issued + GUEST_LIFE_S}
    return jwt.encode(claims, _guest_secret(rules), algorithm="HS256", headers={"kid": _GUEST_KID})


def _check_guest(token: str, rules: TokenRules, now_s: float) -> Identity:
    _check_guests(rules)
    claims = _claims(token, _guest_secret(rules))
    issued, _ = _check_times(claims, now_s, GUEST_LIFE_S)
    player = _text(claims, "sub")
    if _text(claims, "prj") != rules.project or not player.startswith(GUEST_PREFIX):
        raise AuthError("the guest token is for another project")
    renewed = _sign_guest(player, rules, now_s) if now_s - issued > GUEST_RENEW_S else ""
    return Identity(player, b"", renewed)


def _check_player(token: str, rules: TokenRules, now_s: float) -> Identity:
    secret = rules.keys.get(_kid(token))
    if secret is None:
        raise AuthError("the token's kid names no active key of the project")
    claims = _claims(token, secret)
    _check_times(claims, now_s, MAX_LIFE_S)
    if _text(claims, "prj") != rules.project:
        raise AuthError("the token is for another project")
    if "room" in claims and claims["room"] != rules.room:
        raise AuthError("the token is for another room")
    player = _text(claims, "sub")
    _check_player_id(player)
    return Identity(player, _meta(claims), "")


def _check_player_id(player: str) -> None:
    # Guests' ids are this router's to give, bots' the room's.
    if player.startswith((GUEST_PREFIX, BOT_PREFIX)):
        raise AuthError("the token's sub begins with guest: or bot:")
    if not is_player_id(player):
        raise AuthError("the token's sub is not 1 to 128 bytes of UTF-8 without control characters")


def _check_guests(rules: TokenRules) -> None:
    if not rules.guests:
        raise AuthError("the project lets no guests in")


def _guest_secret(rules: TokenRules) -> str:
    # The project is in the key as well as in the claims: a token of one project cannot even be tried at
    # another.
    return f"playhall guest v1/{rules.project}/{rules.guest_key}"


def _kid(token: str) -> str:
    try:
        kid = jwt.get_unverified_header(token).get("kid")
    except (jwt.InvalidTokenError, ValueError, RecursionError):
        raise AuthError("the token is no JWT") from None
    if not isinstance(kid, str):
        raise AuthError("the token's header has no kid")
    return kid


def _claims(token: str, secret: str) -> dict[str, Any]:
    try:
        return jwt.decode(token, secret, algorithms=["HS256"], options=_DECODE)
    except (jwt.InvalidTokenError, ValueError, RecursionError):
        raise AuthError("the token's signature is not valid") from None


def _check_times(claims: Mapping[str, Any], now_s: float, max_life_s: int) -> tuple[float, float]:
    """The token's iat and exp, if it is good now."""
    issued, expires = _time(claims, "iat"), _time(claims, "exp")
    if expires - issued > max_life_s:
        raise AuthError(f"the token lives longer than {max_life_s // 3600} h")
    if now_s > expires + LEEWAY_S:
        raise AuthError("the token is expired")
    not_before = _time(claims, "nbf") if "nbf" in claims else issued
    if now_s + LEEWAY_S < max(issued, not_before):
        raise AuthError("the token is not valid yet")
    return issued, expires


def _time(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1 << 53:
        raise AuthError(f"the token's {name} is no time")
    return value


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str):
        raise AuthError(f"the token's {name} is no text")
    return value


def _meta(claims: Mapping[str, Any]) -> bytes:
    if claims.get("meta") is None:
        return b""
    if not isinstance(claims["meta"], dict):
        raise AuthError("the token's meta is no object")
    if is_too_deep(claims["meta"]):
        raise AuthError(f"the token's meta is nested over {MAX_DEPTH} deep")
    try:
        meta = json.dumps(claims["meta"], allow_nan=False, separators=(",", ":"), ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise AuthError("the token's meta is no JSON") from None
    if len(meta) > _MAX_META_BYTES:
        raise AuthError(f"the token's meta has over {_MAX_META_BYTES} bytes")
    return meta
