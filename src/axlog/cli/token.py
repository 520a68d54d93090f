"""`axlog token NAME`: create a token, and print the entry of a roles file that holds its hash.

The token is printed once and stored nowhere. If it is lost, create another. `--stdin` hashes an
existing token.
"""

from __future__ import annotations

import re
import sys
from typing import Annotated

import typer

from axlog.cli.check import missing

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,99}")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("token", epilog="Example: axlog token shop --may publish --may subscribe")(token)


def token(
    name: Annotated[str, typer.Argument(help="The principal's name.")],
    may: Annotated[
        list[str] | None,
        typer.Option(help="A grant: read, publish, subscribe, watch or administer; repeatable."),
    ] = None,
    stdin: Annotated[
        bool,
        typer.Option("--stdin", help="Hash the token on standard input instead of creating one."),
    ] = False,
) -> None:
    """Create a token for a principal, and print its entry for a roles file."""
    try:
        from axlog.server.roles import VERBS, check_token, new_token, written_hash
    except ImportError as error:
        raise missing(error) from None
    verbs = may or ["read"]
    for verb in verbs:
        if verb not in VERBS:
            raise typer.BadParameter(", ".join(VERBS), param_hint="--may")
    if not _NAME.fullmatch(name):
        raise typer.BadParameter("letters, digits, '_', '.', '@', '-'", param_hint="NAME")
    if stdin:
        made = sys.stdin.readline().rstrip("\r\n")
        check_token(made)
    else:
        made = new_token()
        typer.echo(f"# the token, shown once: {made}")
    typer.echo("principals:")
    typer.echo(f"  {name}:")
    typer.echo(f'    hash: "{written_hash(made)}"')
    typer.echo(f"    grants: [{', '.join(verbs)}]")
