"""A conformance case, how it is run, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from pathlib import Path

from axlog.document.loader import load
from axlog.document.tree import Tree
from axlog.errors import AxlogError, InputError
from lab.conformance.answering import answer
from lab.conformance.judging import Judge


class Outcome(Enum):
    """The outcome of a case."""

    PASSED = "passed"
    RAISED = "raised, as it should"
    OUTSIDE = "outside"
    UNJUDGED = "not judged"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Case:
    """A query on a document, and the judge of its answer.

    `outside` is a reason of the suite itself, known before running, why the case does not apply.
    """

    suite: str
    part: str
    name: str
    text: str
    document: Path | None
    judge: Judge
    expects_error: bool = False
    namespaces: Mapping[str, str] = field(default_factory=dict)
    language: str | None = None
    outside: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the report."""

    case: Case
    outcome: Outcome
    reason: str = ""

    def plain(self) -> dict[str, str]:
        """The result for JSON."""
        case = self.case
        return {
            "suite": case.suite,
            "part": case.part,
            "case": case.name,
            "outcome": self.outcome.value,
            "reason": self.reason,
        }


def run(case: Case) -> Result:
    """Run one case."""
    if case.outside is not None:
        return Result(case, Outcome.OUTSIDE, case.outside)
    if case.document is None:
        if case.expects_error:
            return Result(case, Outcome.RAISED, "there is no document")
        return _refused_or(case, Result(case, Outcome.OUTSIDE, "it has no document"))
    try:
        tree = document(case.document)
    except InputError as refusal:
        return Result(case, Outcome.OUTSIDE, f"the document is refused: {refusal.message}")
    try:
        found = answer(case.text, tree, case.namespaces, case.language)
        verdict = case.judge(found)
    except AxlogError as refusal:
        if case.expects_error:
            return Result(case, Outcome.RAISED, refusal.message)
        return Result(case, Outcome.OUTSIDE, reason_of(refusal))
    if verdict is None:
        return Result(case, Outcome.UNJUDGED, "its expectation is an expression over the result")
    if verdict:
        return Result(case, Outcome.PASSED)
    return Result(case, Outcome.FAILED, f"the answer is {found}")


def _refused_or(case: Case, otherwise: Result) -> Result:
    """Check at least whether the text of a case without a document is accepted."""
    try:
        answer(case.text, load("<none/>"), case.namespaces, case.language)
    except AxlogError as refusal:
        return Result(case, Outcome.OUTSIDE, reason_of(refusal))
    return otherwise


def reason_of(refusal: AxlogError) -> str:
    """Return the reason of a refusal, without its position."""
    return refusal.message


@lru_cache(maxsize=8)
def document(path: Path) -> Tree:
    """Load a document with all its white space, as the suites count it."""
    return load(path, keep_whitespace=True)
