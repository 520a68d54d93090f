"""The report: for each suite and part the number of passed cases, and why the others are
outside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from lab.conformance.cases import Outcome, Result

_COLUMNS = (
    Outcome.PASSED,
    Outcome.RAISED,
    Outcome.OUTSIDE,
    Outcome.UNJUDGED,
    Outcome.FAILED,
)


def report(results: Sequence[Result], console: Console, reasons: int | None = 20) -> None:
    """Print the table, the most frequent reasons, and every failure.

    First for axlog alone, without the extra `xquery`, then for axlog with Saxon.
    """
    alone = [result.alone for result in results]
    for title, these in (("axlog alone", alone), ("with the extra xquery", results)):
        console.print(f"\n{title}: {share(these):.1%} pass or raise as they should")
        console.print(table(these))
        for outcome in (Outcome.OUTSIDE, Outcome.UNJUDGED):
            found = why(these, outcome)
            if found:
                console.print(f"\n{outcome.value}, because")
            for reason, count in found.most_common(reasons):
                console.print(f"{count:6}  {reason}", markup=False, highlight=False)
    for result in results:
        if result.outcome is Outcome.FAILED:
            case = result.case
            what = f"FAILED {case.suite} {case.name}: {case.text.strip()}\n    {result.reason}"
            console.print(what, markup=False, highlight=False)


def share(results: Sequence[Result]) -> float:
    """The share of cases that pass, or raise as they should."""
    right = [each for each in results if each.outcome in (Outcome.PASSED, Outcome.RAISED)]
    return len(right) / max(1, len(results))


def table(results: Sequence[Result]) -> Table:
    """Cases by suite and part."""
    shown = Table("suite", "part", "cases")
    for outcome in _COLUMNS:
        shown.add_column(outcome.value, justify="right")
    parts = dict.fromkeys((each.case.suite, each.case.part) for each in results)
    for suite, part in parts:
        here = [r for r in results if (r.case.suite, r.case.part) == (suite, part)]
        shown.add_row(suite, part, str(len(here)), *_counts(here))
    shown.add_section()
    shown.add_row("all", "", str(len(results)), *_counts(results))
    return shown


def _counts(results: Sequence[Result]) -> list[str]:
    found = Counter(result.outcome for result in results)
    return [str(found[outcome]) for outcome in _COLUMNS]


def why(results: Sequence[Result], outcome: Outcome) -> Counter[str]:
    """Count each reason."""
    return Counter(result.reason for result in results if result.outcome is outcome)
