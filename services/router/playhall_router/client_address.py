"""Where a client is, seen past the proxies that are trusted."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["client_address"]


def client_address(peer: str, forwarded: Sequence[str], trusted_proxies: int) -> str:
    """The address that the outermost of `trusted_proxies` proxies saw.

    Each proxy appends to X-Forwarded-For the address it was called from, so with n proxies the n-th entry
    from the right is the last that a trusted one wrote; what stands before it is the client's own word.
    """
    if trusted_proxies == 0:
        return peer
    hops = [hop.strip() for header in forwarded for hop in header.split(",") if hop.strip()]
    return hops[-trusted_proxies] if len(hops) >= trusted_proxies else peer
