"""`python -m lab VERB ...`: the verbs of the laboratory."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from axlog.cli.application import new_application, register

VERBS = ("fuzz", "bench", "torture", "load", "soak", "generate", "paths", "paper", "grammar")


def application(verbs: Sequence[str] = ()) -> typer.Typer:
    """Return the command line with these verbs, or with all if none or an unknown one is named."""
    app = new_application("python -m lab", "Example: python -m lab fuzz --law 1 --cases 10000")

    @app.callback()
    def lab() -> None:
        """Laws, benchmarks and stress runs of axlog. Needs a checkout of the repository."""

    register(app, "lab.cli", verbs if verbs and set(verbs) <= set(VERBS) else VERBS)
    return app


if __name__ == "__main__":
    application(sys.argv[1:2])()
