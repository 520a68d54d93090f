"""Runs verbs in a process that lacks some modules: `python without_extras.py REQUEST`.

The request is JSON: `{"blocked": [MODULE, ...], "calls": [[ARGUMENT, ...], ...]}`. For each call it
writes one line of JSON: exit code, output, and the traceback if one escaped.
"""

import json
import sys
import traceback
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from typing import Any


class Blocker:
    """Finds nothing of some modules, before anybody else looks for them."""

    def __init__(self, blocked: Sequence[str]) -> None:
        self.blocked = tuple(blocked)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if any(name == each or name.startswith(f"{each}.") for each in self.blocked):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def main() -> None:
    request = json.loads(sys.argv[1])
    sys.meta_path.insert(0, Blocker(request["blocked"]))
    from typer.testing import CliRunner

    from axlog.cli.application import application

    for call in request["calls"]:
        escaped = ""
        try:
            result = CliRunner().invoke(application(call[:1]), call)
            code, output = result.exit_code, result.output
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                escaped = "".join(traceback.format_exception(result.exception))
        except Exception:
            code, output, escaped = 1, "", traceback.format_exc()
        print(json.dumps({"code": code, "output": output, "escaped": escaped}), flush=True)


if __name__ == "__main__":
    main()
