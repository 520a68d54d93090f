"""External conformance suites of the languages: adapters, and a report.

The data is not in the repository: `AXLOG_CONFORMANCE` is its location. A case passes if its answer
is the expected one (or, if an error is expected, if it is refused). It is outside if its text is
refused, with the reason of the refusal. It is not judged if its expectation is in a form that is
not evaluated here. Anything else has failed. `python -m lab.conformance` prints the report.
"""

from lab.conformance.cases import Case, Outcome, Result, run
from lab.conformance.report import report

__all__ = ["Case", "Outcome", "Result", "report", "run"]
