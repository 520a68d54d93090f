"""Sessions of browsers, which cannot send a token with an event stream or a link.

    POST   /session   {"token": "..."}: sign in; the answer sets the cookie
    GET    /session   who is signed in, and what they may
    DELETE /session   sign out

The cookie is for this server alone: HttpOnly, SameSite=Strict, Secure under TLS; its name has the
port, because browsers share cookies between the ports of a host. What it holds is random and is
kept as a hash. A session ends after `LASTS` seconds, when the principal is taken away, when the
token is replaced, and with the process.

A link that signs in has the token behind `#`, which browsers send to nobody: the page posts it and
takes it out of the address bar. So no GET begins a session.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_urlsafe
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

from axlog.server.roles import SERVER, VERBS, Principal

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

LASTS = 12 * 3600
"""Seconds that a session lasts."""
MOST = 100
"""Sessions of one principal; beyond, the oldest ends."""


@dataclass(frozen=True, slots=True)
class Session:
    """Who signed in, and with which token."""

    name: str
    digest: bytes = field(repr=False)
    ends: float


class Sessions:
    """The sessions of a server."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_key: OrderedDict[bytes, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_key)

    def begin(self, principal: Principal) -> str:
        """A new session; what its cookie holds."""
        held = token_urlsafe(32)
        with self._lock:
            now = monotonic()
            for key, each in list(self._by_key.items()):
                if each.ends < now:
                    del self._by_key[key]
            mine = [k for k, each in self._by_key.items() if each.name == principal.name]
            for key in mine[: max(0, len(mine) + 1 - MOST)]:
                del self._by_key[key]
            self._by_key[_hashed(held)] = Session(principal.name, principal.digest, now + LASTS)
        return held

    def of(self, request: Request) -> Session | None:
        """The session whose cookie a request brings."""
        held = request.cookies.get(cookie_name(request))
        found = None if held is None else self._by_key.get(_hashed(held))
        return found if found is not None and found.ends > monotonic() else None

    def end(self, request: Request) -> None:
        """Sign out."""
        held = request.cookies.get(cookie_name(request))
        if held is not None:
            with self._lock:
                self._by_key.pop(_hashed(held), None)


def _hashed(held: str) -> bytes:
    return sha256(held.encode("utf-8", "surrogatepass")).digest()


def cookie_name(request: Request) -> str:
    """The cookie's name; under TLS browsers take `__Host-` from this host over TLS alone."""
    server = request.scope.get("server") or ("", 0)
    prefix = "__Host-" if request.url.scheme == "https" else ""
    return f"{prefix}axlog-{server[1]}"


def set_cookie(request: Request, response: Response, held: str | None) -> None:
    """Set the cookie of a session; with nothing, remove it."""
    response.set_cookie(
        cookie_name(request),
        held or "",
        max_age=LASTS if held else 0,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def said_of(principal: Principal) -> dict[str, Any]:
    """What a principal is told of itself."""
    return {
        "name": principal.name,
        "grants": [grant.model_dump(exclude_none=True) for grant in principal.grants],
        "server": [verb for verb in VERBS if principal.may(verb, SERVER)],
    }
