"""Who may use what a verb serves: a file of roles, or an administrator whose token is generated.

Without a file a server listens on loopback only, and one principal may do everything: its token is
`AXLOG_TOKEN` of the environment, or a new one that is shown once, in a link that signs in. SIGHUP
has the file read again; so does a change of it.
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
    typer.Option("--roles", help="A YAML file: who may do what; see docs/security.md."),
]


@dataclass(frozen=True, slots=True)
class Admission:
    """Who may, and the token that was generated for it, if one was."""

    access: Access
    token: str | None = None

    def link(self, address: str) -> str:
        """The live page's address; one that signs in by itself where the token is new.

        What stands behind `#` is sent to no server and logged by none.
        """
        return address if self.token is None else f"{address}/#token={self.token}"


def admitted(roles: Path | None, host: str = "127.0.0.1") -> Admission:
    """Who may use a server on this host."""
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
            f"a server on {host!r} can be reached by others, and no file says what they may",
            advice="--roles FILE, or let it listen on 127.0.0.1",
        )
    given = os.environ.get(VARIABLE)
    if given:
        return Admission(Access.of_token(given))
    token = new_token()
    return Admission(Access.of_token(token), token)


@contextmanager
def reloaded_by_signal(access: Access) -> Iterator[None]:
    """SIGHUP has the file of roles read again while the block runs."""
    before = signal.signal(signal.SIGHUP, lambda number, frame: access.reload())
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
