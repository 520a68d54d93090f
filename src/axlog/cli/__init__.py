"""The command line: `axlog VERB ...`, one module per verb.

Output is JSON lines in a pipe, and tables with colour on a terminal. Exit codes: 0 success, 1 a
check failed, 2 bad usage or input. Errors go to standard error as text. An error that the user can
fix never prints a traceback.
"""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """The entry point. Each verb imports its own dependencies, so that `axlog` starts fast."""
    if sys.argv[1:] == ["--version"]:  # needs no argument parser
        from axlog import __version__

        print(f"axlog {__version__}")
        return
    try:
        gc.disable()  # nothing that is imported becomes garbage
        from axlog.cli.application import application

        app = application(sys.argv[1:2])
        gc.freeze()
        gc.enable()
        app()
    except KeyboardInterrupt:  # while modules were imported; verbs handle it themselves
        sys.exit(130)
