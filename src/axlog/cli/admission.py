"""Access to the servers that verbs start: a roles file, or one administrator with a generated
token.

Without a roles file a server listens on loopback only, and one principal may do everything. Its
token is the environment variable `AXLOG_TOKEN`, or a new token that is shown once, in a link that
signs in. SIGHUP reloads the file; so does a change of the file.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from axlog.cli.check import missing
from axlog.errors import ChannelError

if TYPE_CHECKING:
    from axlog.server.access import Access

VARIABLE = "AXLOG_TOKEN"
Roles = Annotated[
    Path | None,
    typer.Option(
        "--roles", help="A YAML file of principals and their grants; see docs/security.md."
    ),
]


@dataclass(frozen=True, slots=True)
class Admission:
    """An access policy, and the token that was generated for it, if any."""

    access: Access
    token: str | None = None

    def link(self, address: str) -> str:
        """Return the address of the live page; with a generated token, a link that signs in.

        Browsers do not send the part after `#`, so the token is in no server's log.
        """
        return address if self.token is None else f"{address}/#token={self.token}"


def admitted(roles: Path | None, host: str = "127.0.0.1") -> Admission:
    """Return the access policy of a server on this host."""
    try:
        from axlog.server.access import Access, is_loopback
        from axlog.server.roles import new_token
    except ImportError as error:
        raise missing(error) from None
    if roles is not None:
        return Admission(Access(path=roles))
    if not is_loopback(host):
        raise ChannelError(
            "AX807",
            f"a server on {host!r} is reachable from other machines and needs a roles file",
            advice="pass --roles FILE, or listen on 127.0.0.1",
        )
    given = os.environ.get(VARIABLE)
    if given:
        return Admission(Access.of_token(given))
    token = new_token()
    return Admission(Access.of_token(token), token)


@contextmanager
def reloaded_by_signal(access: Access) -> Iterator[None]:
    """Reload the roles file on SIGHUP while the block runs."""
    before = signal.signal(signal.SIGHUP, lambda number, frame: access.reload())
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
