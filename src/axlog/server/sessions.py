"""Sessions of browsers, which cannot send a token with an event stream or a link.

    POST   /session   {"token": "..."}: sign in; the response sets the cookie
    GET    /session   the signed-in principal and its grants
    DELETE /session   sign out

The cookie is for this server only: HttpOnly, SameSite=Strict, Secure under TLS. Its name contains
the port, because browsers share cookies between the ports of a host. Its value is random and is
stored as a hash. A session ends after `LASTS` seconds, when the principal is removed, when the
token is replaced, and with the process.

A sign-in link has the token after `#`, which browsers do not send: the page posts it and removes it
from the address bar. So no GET starts a session.
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
"""Lifetime of a session in seconds."""
MOST = 100
"""Sessions per principal; beyond this the oldest ends."""


@dataclass(frozen=True, slots=True)
class Session:
    """The principal of a session, and its token's hash."""

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
        """Start a session; return the value of its cookie."""
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
        """Return the session of a request's cookie."""
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
    """Return the cookie's name; under TLS the prefix `__Host-` binds it to this host."""
    server = request.scope.get("server") or ("", 0)
    prefix = "__Host-" if request.url.scheme == "https" else ""
    return f"{prefix}axlog-{server[1]}"


def set_cookie(request: Request, response: Response, held: str | None) -> None:
    """Set the cookie of a session; without a value, remove it."""
    response.set_cookie(
        cookie_name(request),
        held or "",
        max_age=LASTS if held else 0,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def summary_of(principal: Principal) -> dict[str, Any]:
    """Describe a principal to itself."""
    return {
        "name": principal.name,
        "grants": [grant.model_dump(exclude_none=True) for grant in principal.grants],
        "server": [verb for verb in VERBS if principal.may(verb, SERVER)],
    }
