"""Who may do what: tokens and their quotas.

A server that listens on loopback only may run without tokens; then everybody on the machine may
write, and requests must name a loopback host and come from no other site (a page in a browser must
not reach it by a name that resolves to it). Any other server needs tokens for whatever changes
something: publishing, subscribing by name, views. Reading is open unless `open_reading` is off.

Tokens are kept as digests, compared in constant time. Quotas are a token's: messages a second (a
bucket that holds two seconds' worth), bytes a request, named subscriptions, views.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import ip_address
from math import inf
from time import monotonic
from typing import Any

from axlog.errors import AccessError, ChannelError

LARGEST = 16 * 1024 * 1024
"""Bytes that a request may have where no quota says less."""


@dataclass(frozen=True, slots=True)
class Token:
    """A name, the digest of its secret, and what it may use."""

    name: str
    digest: bytes
    rate: float = inf  # messages a second
    size: int = LARGEST  # bytes a request
    subscriptions: int = 1000
    views: int = 100

    @classmethod
    def of(cls, name: str, secret: str, **quotas: Any) -> Token:
        """The token of a secret, which is not kept."""
        if len(secret) < 16:
            raise ChannelError(
                "AX807",
                f"the token of {name!r} is too short to be secret",
                expected="16 characters or more",
            )
        return cls(name, sha256(secret.encode()).digest(), **quotas)


ANYONE = Token("anyone", b"")


def read_tokens(written: Mapping[str, Mapping[str, Any]]) -> list[Token]:
    """Tokens as a settings file has them: by name, `token` and quotas."""
    found = []
    for name, fields in written.items():
        quotas = {key: value for key, value in fields.items() if key != "token"}
        unknown = sorted(set(quotas) - {"rate", "size", "subscriptions", "views"})
        if unknown or not isinstance(fields.get("token"), str):
            raise ChannelError(
                "AX807",
                f"the token {name!r} has "
                + (f"an unknown key {unknown[0]!r}" if unknown else "no secret"),
                expected="token, rate, size, subscriptions, views",
            )
        if any(isinstance(q, bool) or not isinstance(q, int | float) for q in quotas.values()):
            raise ChannelError("AX807", f"a quota of the token {name!r} is not a number")
        found.append(Token.of(name, fields["token"], **quotas))
    return found


def is_loopback(host: str) -> bool:
    """Whether a server that listens on this host is reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(slots=True)
class _Used:
    """What a token has used."""

    allowance: float
    at: float
    subscriptions: set[str] = field(default_factory=set)
    views: set[str] = field(default_factory=set)


class Access:
    """Lets requests through, and counts."""

    def __init__(self, tokens: Iterable[Token] = (), *, open_reading: bool = True) -> None:
        self.tokens = list(tokens)
        self.open_reading = open_reading
        self._used: dict[str, _Used] = {}

    def who(self, authorization: str | None, *, writes: bool) -> Token:
        """The token of a request, by its `Authorization` header."""
        if not self.tokens:
            return ANYONE
        scheme, _, secret = (authorization or "").partition(" ")
        if scheme.lower() != "bearer":
            if writes or not self.open_reading:
                raise AccessError(
                    "AX811", "a token is needed", expected="Authorization: Bearer TOKEN"
                )
            return ANYONE
        digest = sha256(secret.strip().encode()).digest()
        found = None
        for token in self.tokens:  # all of them: the time says nothing
            if hmac.compare_digest(token.digest, digest):
                found = token
        if found is None:
            raise AccessError("AX811", "the token is not known")
        return found

    def spend(self, token: Token, messages: int) -> None:
        """Count messages against a token's rate."""
        if token.rate == inf:
            return
        used, now = self._of(token), monotonic()
        most = max(2 * token.rate, 1.0)
        used.allowance = min(most, used.allowance + (now - used.at) * token.rate)
        used.at = now
        if messages > used.allowance:
            raise AccessError(
                "AX812",
                f"the token {token.name!r} may bring {token.rate:g} messages a second",
                advice=f"try again in {(messages - used.allowance) / token.rate:.1f} seconds",
            )
        used.allowance -= messages

    def claim(self, token: Token, kind: str, what: str) -> None:
        """Count a subscription or a view against a token's quota."""
        held: set[str] = getattr(self._of(token), kind)
        most: int = getattr(token, kind)
        if what not in held and len(held) >= most:
            raise AccessError("AX812", f"the token {token.name!r} may have {most} {kind}")
        held.add(what)

    def release(self, kind: str, what: str) -> None:
        """Give back what a token had claimed."""
        for used in self._used.values():
            getattr(used, kind).discard(what)

    def _of(self, token: Token) -> _Used:
        known = self._used.get(token.name)
        if known is None:
            first = max(2 * token.rate, 1.0)
            known = self._used[token.name] = _Used(first, monotonic())
        return known
