"""`python -m lab VERB ...`: the verbs of the laboratory."""

from __future__ import annotations

import sys

from axlog.cli.application import new_application, register

VERBS = ("fuzz", "bench", "torture", "load", "soak", "generate")


def main() -> None:
    """Run a verb. Only its own module is imported."""
    named = sys.argv[1:2]
    app = new_application("python -m lab", "Example: python -m lab fuzz --law 1 --cases 10000")

    @app.callback()
    def lab() -> None:
        """Laws, benchmarks and stress runs of axlog. Needs a checkout of the repository."""

    register(app, "lab.cli", named if set(named) <= set(VERBS) and named else VERBS)
    app()


if __name__ == "__main__":
    main()
