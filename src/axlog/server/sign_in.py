"""Signing in and out: a token becomes the cookie of a session (`sessions.py`)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from axlog.server.access import Access
from axlog.server.operations import Operation
from axlog.server.responses import answer, json_of, wrong
from axlog.server.roles import Principal
from axlog.server.sessions import set_cookie, summary_of

LARGEST = 4096
"""Maximum size of a sign-in request: it is read before authentication."""


def signing_operations(access: Access) -> list[Operation]:
    """Return the operations of sessions."""

    async def sign_in(request: Request, caller: Principal) -> Response:
        token = (await json_of(request, LARGEST)).get("token")
        if not isinstance(token, str):
            raise wrong("the token is not a text", '{"token": "..."}')
        principal = access.of_secret(token)
        answered = answer(summary_of(principal))
        set_cookie(request, answered, access.sessions.begin(principal))
        return answered

    async def signed_in(request: Request, caller: Principal) -> Response:
        access.check_known(caller)
        return answer(summary_of(caller))

    async def sign_out(request: Request, caller: Principal) -> Response:
        access.sessions.end(request)
        answered = Response(status_code=204)
        set_cookie(request, answered, None)
        return answered

    json = ("application/json",)
    return [
        Operation(
            "POST", "/session", "Sign in: the response sets a cookie", sign_in, "", body=json
        ),
        Operation("GET", "/session", "The signed-in principal", signed_in, "own"),
        Operation("DELETE", "/session", "Sign out", sign_out, "", success="204"),
    ]
