"""Authentication and authorization of requests: tokens, sessions, grants and limits.

A request is made by the principal of its token (`Authorization: Bearer`), by the principal of its
session cookie, or by `anyone`. The roles are replaced as a whole when their file changes or when
the process gets SIGHUP (`reload`). An invalid file leaves the roles unchanged, and `problem` holds
the reason. Waiting and streaming requests check again before each delivery (`check`), so revoking a
grant ends the requests that it allowed.

Tokens and sessions are looked up by a digest with a key of this process, so that the time of a
look-up reveals nothing about them.
"""

from __future__ import annotations

import hmac
import logging
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from secrets import token_bytes
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from axlog.errors import AccessError, AxlogError
from axlog.reporting import Health, report
from axlog.server.roles import (
    ANYONE,
    Principal,
    Resource,
    Roles,
    administrator,
    digest_of,
    load_roles,
)
from axlog.server.sessions import Sessions

if TYPE_CHECKING:
    from starlette.requests import Request

BURST = 2.0
"""The burst size of a rate, in seconds."""
MOST_METERS = 10_000
"""Principals and addresses whose use is counted; beyond this the oldest counters are reset."""
SAFE = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing."""
_log = logging.getLogger("axlog.server.access")


def is_loopback(host: str) -> bool:
    """Whether a server that listens on this host is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(slots=True)
class _Bucket:
    """A token bucket: an allowance that refills with time."""

    left: float
    at: float = field(default_factory=monotonic)

    def wait(self, rate: float, wanted: float) -> float:
        """Take an amount; return how many seconds are missing if there is too little."""
        now = monotonic()
        self.left = min(max(BURST * rate, 1.0), self.left + (now - self.at) * rate)
        self.at = now
        if wanted > self.left:
            return (wanted - self.left) / rate
        self.left -= wanted
        return 0.0


@dataclass(slots=True)
class _Meter:
    """The use of one principal."""

    requests: _Bucket
    messages: _Bucket
    streams: int = 0


class Access:
    """Authorizes requests and counts them."""

    def __init__(self, roles: Roles | None = None, path: str | Path | None = None) -> None:
        self.sessions = Sessions()
        self.problem: str | None = None
        self._key = token_bytes(32)
        self._path = None if path is None else Path(path)
        self._meters: OrderedDict[str, _Meter] = OrderedDict()
        self._lock = Lock()
        self._stamp = self._seen()
        self._take(load_roles(self._path) if self._path is not None else roles or Roles())

    @classmethod
    def of_token(cls, token: str) -> Access:
        """Return an access policy with one principal, the administrator, with this token."""
        return cls(administrator(token))

    def _take(self, roles: Roles) -> None:
        self.roles = roles
        self._anyone = roles.anyone
        self._by_token = {self._keyed(each.digest): each for each in roles.principals}
        self._by_name = {each.name: each for each in roles.principals}

    def _keyed(self, digest: bytes) -> bytes:
        return hmac.digest(self._key, digest, "sha256")

    # The file -------------------------------------------------------------------------------------

    def _seen(self) -> tuple[int, ...]:
        """Return a stamp that changes with the file."""
        if self._path is None:
            return ()
        try:
            found = self._path.stat()
        except OSError:
            return (0,)
        return (found.st_mtime_ns, found.st_size, found.st_ino)

    def refresh(self) -> None:
        """Reload the file if it has changed."""
        if self._seen() != self._stamp:
            self.reload()

    def reload(self) -> None:
        """Load the roles of the file; keep the current ones if it is invalid."""
        if self._path is None:
            return
        self._stamp = self._seen()
        try:
            roles = load_roles(self._path)
        except AxlogError as error:
            self.problem = f"{self._path} was changed and is invalid: {error.message}"
            where = None if error.place is None else str(error.place)
            report(_log, logging.ERROR, "roles kept", error=error.message, place=where)
            return
        self.problem = None
        self._take(roles)
        report(_log, logging.INFO, "roles loaded", principals=len(roles.principals))

    def health(self) -> Health:
        """Whether the roles are those of the file."""
        return Health(troubles=() if self.problem is None else (self.problem,))

    # Who ------------------------------------------------------------------------------------------

    def of_secret(self, token: str) -> Principal:
        """Return the principal of a token."""
        found = self._by_token.get(self._keyed(digest_of(token)))
        if found is None:
            raise AccessError("AX811", "unknown token")
        return found

    def named(self, name: str) -> Principal | None:
        """Return the principal of a name."""
        return self._by_name.get(name)

    def caller(self, request: Request) -> Principal:
        """Return the principal of a request."""
        authorization = request.headers.get("authorization")
        if authorization is not None:
            scheme, _, token = authorization.partition(" ")
            if scheme.lower() != "bearer":
                raise _no_token()
            return self.of_secret(token.strip())
        session = self.sessions.of(request)
        if session is not None:
            self._check_site(request)
            signed_in = self._by_name.get(session.name)
            # Replacing a token ends the sessions that it started.
            if signed_in is not None and hmac.compare_digest(signed_in.digest, session.digest):
                return signed_in
        return self._anyone

    def _check_site(self, request: Request) -> None:
        """Refuse a cross-site request of a browser, which would carry the cookie.

        Browsers send the origin of a request. A request that writes with a cookie must have one.
        """
        site = request.headers.get("sec-fetch-site")
        names_its_origin = site == "same-origin" or request.headers.get("origin") is not None
        if site in ("cross-site", "same-site") or not (request.method in SAFE or names_its_origin):
            raise AccessError(
                "AX815",
                "a session can only be used by pages of this server",
                advice="send the token: Authorization: Bearer TOKEN",
            )

    # What -----------------------------------------------------------------------------------------

    def current(self, principal: Principal) -> Principal:
        """Return the principal with its current grants; a removed one may do nothing."""
        if principal.name == ANYONE:
            return self._anyone
        found = self._by_name.get(principal.name)
        if found is None or found.digest != principal.digest:
            return Principal(principal.name, principal.digest)
        return found

    def check(self, principal: Principal, verb: str, resource: Resource) -> None:
        """Refuse a request without a current grant; the same whether or not the object exists."""
        if self.current(principal).may(verb, resource):
            return
        if principal.name == ANYONE:
            raise _no_token()
        raise AccessError("AX814", f"{principal.name!r} may not {verb} {resource}")

    def check_known(self, principal: Principal) -> None:
        """Refuse a request without a token, if nothing is public."""
        if not self.current(principal).grants and principal.name == ANYONE:
            raise _no_token()

    # How much -------------------------------------------------------------------------------------

    def spend(self, principal: Principal, address: str, messages: int | None = None) -> None:
        """Count a request, or messages, against the principal's rate."""
        limits = principal.limits
        with self._lock:
            meter = self._meter(principal, address)
            if messages is None:
                seconds, what = meter.requests.wait(limits.requests, 1), "requests"
                rate = limits.requests
            else:
                seconds, what = meter.messages.wait(limits.rate, messages), "messages"
                rate = limits.rate
        if seconds:
            raise AccessError(
                "AX812",
                f"{principal.name!r} may send {rate:g} {what} per second",
                advice=f"try again in {seconds:.1f} seconds",
            )

    @contextmanager
    def streaming(self, principal: Principal, address: str) -> Iterator[None]:
        """Count a waiting or streaming request while it runs."""
        most = principal.limits.streams
        with self._lock:
            meter = self._meter(principal, address)
            if meter.streams >= most:
                raise AccessError(
                    "AX812", f"{principal.name!r} may have {most} waiting or streaming requests"
                )
            meter.streams += 1
        try:
            yield
        finally:
            with self._lock:
                meter.streams -= 1

    def _meter(self, principal: Principal, address: str) -> _Meter:
        """Return the meter of a principal; requests without a token have one per address."""
        name = f"{ANYONE} {address}" if principal.name == ANYONE else principal.name
        meter = self._meters.get(name)
        if meter is None:
            limits = principal.limits
            meter = self._meters[name] = _Meter(
                _Bucket(max(BURST * limits.requests, 1.0)), _Bucket(max(BURST * limits.rate, 1.0))
            )
            if len(self._meters) > MOST_METERS:
                self._drop_meter()
        self._meters.move_to_end(name)
        return meter

    def _drop_meter(self) -> None:
        for name, meter in self._meters.items():
            if not meter.streams:
                del self._meters[name]
                return


def _no_token() -> AccessError:
    return AccessError(
        "AX811",
        "a token is needed",
        expected="Authorization: Bearer TOKEN",
        advice="in a browser, sign in on the live page",
    )


def used_up(principal: Principal, kind: str, count: int) -> None:
    """Refuse an object beyond a principal's limit."""
    most: int = getattr(principal.limits, kind)
    if count >= most:
        raise AccessError("AX812", f"{principal.name!r} may have {most} {kind}")
