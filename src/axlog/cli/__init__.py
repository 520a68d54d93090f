"""The command line: `axlog VERB ...`, one module a verb (DESIGN section 7).

Output is JSON lines when piped and tables with colour on a terminal. Exit codes: 0 done, 1 a check
failed, 2 bad usage or input. Errors go to standard error as text; no traceback for what a user can
put right.
"""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point. What only one verb needs is imported by that verb."""
    if sys.argv[1:] == ["--version"]:  # the one answer that needs no parser of arguments
        from axlog import __version__

        print(f"axlog {__version__}")
        return
    from axlog.cli.application import application

    application(sys.argv[1:2])()
