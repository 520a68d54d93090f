"""A conformance case, how it is run, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from pathlib import Path

import axlog
from axlog.errors import CODES, AxlogError, InputError
from lab.conformance.answering import Answer, answer
from lab.conformance.judging import Judge
from lab.reference.saxon import saxon_items


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
    allows_error: bool = False
    """Raising an error is one of the expectations."""
    assertion: str | None = None
    """A condition on `$result`, for expectations that the judge cannot decide."""
    is_older: bool = False
    """The case is one of XPath 1.0, where nothing raises an error for its data."""


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the report; `refusal` is why axlog alone, without Saxon, has no answer."""

    case: Case
    outcome: Outcome
    reason: str = ""
    refusal: str | None = None

    @property
    def alone(self) -> Result:
        """The result without the extra `xquery`."""
        if self.refusal is None:
            return self
        return Result(self.case, Outcome.OUTSIDE, self.refusal)

    def plain(self) -> dict[str, str]:
        """The result for JSON."""
        case = self.case
        return {
            "suite": case.suite,
            "part": case.part,
            "case": case.name,
            "outcome": self.outcome.value,
            "reason": self.reason,
            "alone": self.alone.outcome.value,
            "refusal": self.refusal or "",
        }


def run(case: Case) -> Result:
    """Run one case."""
    if case.outside is not None:
        return Result(case, Outcome.OUTSIDE, case.outside)
    try:
        doc = document(case.document, tuple(sorted(case.namespaces.items())))
    except InputError as refusal:
        return Result(case, Outcome.OUTSIDE, f"the document is refused: {refusal.message}")
    try:
        found = answer(case.text, doc, case.language)
    except AxlogError as refusal:
        return _raised(case, doc, refusal)
    verdict = case.judge(found)
    if verdict is None and case.assertion is not None:
        verdict = _asserted(case, doc)
    if verdict is False and case.is_older and _is_newer(case, doc, found):
        return Result(case, Outcome.PASSED, "as XPath 3.1 defines it", found.refusal)
    if verdict is None:
        return Result(case, Outcome.UNJUDGED, "its expectation is an expression over the result")
    if verdict:
        return Result(case, Outcome.PASSED, refusal=found.refusal)
    if case.document is None and case.expects_error:
        reason = "it expects that there is no document"
        return Result(case, Outcome.OUTSIDE, reason)
    return Result(case, Outcome.FAILED, f"the answer is {found}", found.refusal)


def _raised(case: Case, doc: axlog.Document, refusal: AxlogError) -> Result:
    if case.expects_error or case.allows_error:
        return Result(case, Outcome.RAISED, refusal.message)
    is_newer = case.is_older and refusal.code in _OF_THE_RECOMMENDATION
    if is_newer and saxon_items(case.text, doc.xml()) is None:
        return Result(case, Outcome.RAISED, f"XPath 3.1 raises {refusal.code}")
    return Result(case, Outcome.OUTSIDE, reason_of(refusal))


def _asserted(case: Case, doc: axlog.Document) -> bool | None:
    """Whether the condition on the result holds, by a view of the query with the condition."""
    try:
        found = answer(f"let $result := ({case.text}) return boolean({case.assertion})", doc)
    except AxlogError:
        return None  # such as a query with a prolog
    return found.truth


def _is_newer(case: Case, doc: axlog.Document, found: Answer) -> bool:
    """Whether the answer is that of XPath 3.1, by Saxon: XPath 1.0 has another."""
    if found.refusal is not None:
        return False  # it is Saxon's own
    expected = saxon_items(case.text, doc.xml())
    if expected is None:
        return False
    return [text for _, text in expected] == found.values()


def reason_of(refusal: AxlogError) -> str:
    """Return the reason of a refusal, without its position."""
    return refusal.message


_OF_THE_RECOMMENDATION = frozenset(code for code in CODES if not code.startswith("AX"))


@lru_cache(maxsize=8)
def document(path: Path | None, namespaces: tuple[tuple[str, str], ...] = ()) -> axlog.Document:
    """Load a document with all its white space, as the suites count it.

    A case without a document gets an empty one: a view is always of a document.
    """
    options = axlog.Options(keep_whitespace=True, namespaces=dict(namespaces))
    return axlog.parse("<none/>" if path is None else path, options=options)
