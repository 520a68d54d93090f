"""A server whose administrator's token the tests know."""

import ssl
from functools import cache
from typing import Any

import httpx

from axlog.server.access import Access
from axlog.server.application import Settings
from axlog.server.roles import Grant, Principal, Roles

TOKEN = "a token for the tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def secured(*others: Principal, **given: Any) -> Settings:
    """Settings with an administrator, and other principals."""
    admin = Principal.of("administrator", TOKEN, "administer")
    return Settings(**{"port": 0, "access": Access(Roles((admin, *others))), **given})


def client_of(address: str, token: str | None = TOKEN, **given: Any) -> httpx.Client:
    """A client that brings a token."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    settings = {"timeout": 60, "verify": _verification(), **given}
    return httpx.Client(base_url=address, trust_env=False, headers=headers, **settings)


@cache
def _verification() -> ssl.SSLContext:
    """One for all clients: reading the authorities takes most of the time to make a client."""
    return ssl.create_default_context()


def principal(name: str, *grants: Grant | str, **limits: Any) -> Principal:
    """A principal whose token is made from its name."""
    return Principal.of(name, token_of(name), *grants, **limits)


def token_of(name: str) -> str:
    return f"{name}: a token for the tests"
