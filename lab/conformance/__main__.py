"""`python -m lab.conformance [DATA] [--json FILE] [--reasons N]`: run all suites and report.

DATA is the location of the conformance data (default: the environment variable
`AXLOG_CONFORMANCE`). The file gets one JSON object per case: suite, part, case, outcome, reason.
The exit code is 1 if a case failed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from rich.console import Console

from lab.conformance.cases import Outcome
from lab.conformance.report import report
from lab.conformance.suites import SUITES, given


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.conformance")
    parser.add_argument("data", nargs="?", default=os.environ.get("AXLOG_CONFORMANCE"))
    parser.add_argument("--json", type=Path, help="write every result to this file")
    parser.add_argument("--reasons", type=int, default=20, help="how many reasons to list")
    asked = parser.parse_args(arguments)
    if not asked.data or not Path(asked.data).is_dir():
        print("no conformance data: name its folder, or set AXLOG_CONFORMANCE", file=sys.stderr)
        return 2
    data = Path(asked.data)
    suites = given(data)
    for suite in SUITES:
        if suite not in suites:
            print(f"{suite.name}: not in this data ({suite.folder})", file=sys.stderr)
    results = [result for suite in suites for result in suite.results(data)]
    report(results, Console(), asked.reasons)
    if asked.json is not None:
        lines = [json.dumps(result.plain(), ensure_ascii=False) + "\n" for result in results]
        asked.json.write_text("".join(lines), encoding="utf-8")
    return 1 if any(result.outcome is Outcome.FAILED for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
