"""Other people's tests of the languages: adapters, and a report of what passes and what is outside.

The data is not in the repository: `AXLOG_CONFORMANCE` says where it lies. A case passes if its
answer is the expected one (or, where an error is expected, if it is refused); it is outside if its
text is refused, for the reason that the refusal gives; it is not judged if its expectation is
written in a way that nothing here evaluates. Anything else has failed. `python -m
lab.conformance` prints the report.
"""

from lab.conformance.cases import Case, Outcome, Result, run
from lab.conformance.report import report

__all__ = ["Case", "Outcome", "Result", "report", "run"]
