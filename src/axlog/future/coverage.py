"""The table of features that the analyses decide, limit or reject, as shown in docs/analysis.md.

Each row is a query feature with an example query, each column a declared fact with a document that
declares it. A test asks the analyses for every cell and compares the result with the table, so the
page cannot promise more than the code does.

A verdict is `decided`; `limit`: decided up to a search limit, beyond it AX502; or an error code:
rejected. `shown` means that a future which shows that a row is possible, or a stream relevant, is
searched for, and that its absence decides nothing. Containment is not part of the table
(`containment.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from axlog.document.loader import load
from axlog.document.schema_parser import parse_schema
from axlog.document.tree import Tree
from axlog.future.keys import parse_fact

DECIDED, LIMIT, UNDECIDABLE, REFUSED = "decided", "limit", "AX501", "AX503"
SHOWN = "shown"

_DOCUMENT = '<r><c><ax:call xmlns:ax="urn:axlog" stream="f"{}/></c></r>'
_TYPES = (
    "root: r  r -> |c| >= 0  c -> |a| >= 0 & |b| >= 0 & |d| >= 0 & |f| >= 0"
    "  a -> |a| >= 0 & |b| >= 0 & |text()| >= 0  b -> |text()| <= 1  d ->  call f root: a, b, d"
)


@dataclass(frozen=True, slots=True)
class Setting:
    """A document that declares facts about its future."""

    document: str
    facts: tuple[str, ...] = ()
    types: str | None = None

    def tree(self) -> Tree:
        tree = load(self.document)
        tree.facts = tuple(parse_fact(fact) for fact in self.facts)
        tree.types = None if self.types is None else parse_schema(self.types)
        return tree


FACTS: dict[str, Setting] = {
    "open calls": Setting(_DOCUMENT.format("")),
    "one-shot": Setting(_DOCUMENT.format(' mode="one-shot"')),
    "at most m trees": Setting(_DOCUMENT.format(' most="1"')),
    "deletes": Setting(_DOCUMENT.format(' deletes="yes"')),
    "keys": Setting(_DOCUMENT.format(""), facts=("key c/a by b trusted",)),
    "types": Setting(_DOCUMENT.format(""), types=_TYPES),
    "types, deletes": Setting(_DOCUMENT.format(' deletes="yes"'), types=_TYPES),
}
"""Declared facts, each with a document. The clock and ends of streams always apply."""

Verdicts = tuple[str, str, str, str, str, str, str]
"""One verdict for each declared fact."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A query feature, an example query, and the verdict of each question by declared fact."""

    name: str
    query: str
    truth: Verdicts
    relevance: Verdicts
    note: str = ""


_DECIDED = (DECIDED, DECIDED, LIMIT, DECIDED, DECIDED, LIMIT, LIMIT)
_UNTYPED = (DECIDED, DECIDED, LIMIT, DECIDED, DECIDED, REFUSED, REFUSED)
_NEVER = (REFUSED,) * 7
_NEGATED = (LIMIT, LIMIT, LIMIT, LIMIT, LIMIT, SHOWN, SHOWN)
_NEGATED_STREAMS = (SHOWN, SHOWN, SHOWN, "lazy", SHOWN, SHOWN, "lazy")
_UNDECIDED_STREAMS = (
    "lazy, axlog", "lazy, axlog", "lazy, axlog", "lazy", "lazy, axlog", "lazy, axlog", "lazy",
)  # fmt: skip
_EXACT = (LIMIT, LIMIT, LIMIT, "lazy", LIMIT, SHOWN, "lazy")
_EXACT_UNTYPED = (LIMIT, LIMIT, LIMIT, "lazy", LIMIT, REFUSED, REFUSED)

FEATURES: tuple[Feature, ...] = (
    Feature("child and `//` steps, `*`, texts, attributes", "match /r/c[a//b][d]", _DECIDED,
            _EXACT),
    Feature("`or`", "match /r/c[a or b][d]", _DECIDED, _EXACT),
    Feature("joins of variables", "match /r/c[a/$x][b/$x] return $x", _DECIDED, _EXACT),
    Feature(
        "values of texts and attributes against constants", "match /r/c[a/@k > 5]", _DECIDED,
        _EXACT, "intervals; text and number tests of one value together are refused",
    ),
    Feature(
        "values of elements against constants", "match /r/c[a > 5]", _UNTYPED, _EXACT_UNTYPED,
        "under types: only elements that hold one text",
    ),
    Feature(
        "functions and calculations on one value", 'match /r/c[contains(a/@k, "x")]',
        (DECIDED, DECIDED, LIMIT, DECIDED, DECIDED, REFUSED, REFUSED),
        (SHOWN, SHOWN, SHOWN, "lazy", SHOWN, REFUSED, REFUSED),
        "if a value is known that passes; else refused AX503",
    ),
    Feature("`=` and `!=` of variables", "match /r/c[a/$x][b/$y] where $x != $y", _DECIDED, _EXACT),
    Feature(
        "an order between two variables", "match /r/c[a/$x][b/$y] where $x < $y", _NEVER, _NEVER,
        "decided if one of the two is known",
    ),
    Feature(
        "a value that an open call may change", 'match /r[c = "1"]', _NEVER, _NEVER,
        "not monotone",
    ),
    Feature(
        "a future value with conditions inside", 'match /r/c/a[. = "1"]/b', _NEVER, _NEVER,
    ),
    Feature(
        "times, coefficients 1 and -1", "match /r/c[a#t][b#u] where t - u <= 3", _DECIDED,
        (LIMIT, LIMIT, LIMIT, "lazy", LIMIT, "lazy, axlog", "lazy"),
        "under types: if every order of arrival is valid",
    ),
    Feature(
        "times, other coefficients, three times", "match /r/c[a#t][b#u][d#v] where 2*t - u <= v",
        (LIMIT, LIMIT, LIMIT, LIMIT, LIMIT, LIMIT, LIMIT),
        (LIMIT, LIMIT, LIMIT, "lazy", LIMIT, "lazy, axlog", "lazy"),
        "under types: if every order of arrival is valid",
    ),
    Feature("`not` without joins", "match /r/c[a][not(b)]", _NEGATED, _NEGATED_STREAMS),
    Feature(
        "`not` with a variable or time that also stands outside",
        "match /r/c[a/$x#t][not(b/$x#u)] where 2*u - t <= 3", _NEGATED, _NEGATED_STREAMS,
    ),
    Feature(
        "`not` with values of elements", 'match /r/c[a = "1"][not(b > 5)]',
        (*_NEGATED[:5], REFUSED, REFUSED), _NEGATED_STREAMS,
        "under types: `truth` and `status` as in the row above, possible rows are refused",
    ),
    Feature(
        "a join inside a `not`", "match /r/c[not(a/$x and b/$x)][d]",
        (UNDECIDABLE,) * 7, _UNDECIDED_STREAMS,
        "undecidable; NEVER if the query without its `not`s is, TRUE if the row is there",
    ),
    Feature(
        "`not` with orders of texts, types of values",
        'match /r/c[not(a < "b")][d]', _NEVER, _NEVER,
    ),
    Feature(
        "sibling and reverse axes", "match /r/c/a/following-sibling::b", _NEVER, _NEVER,
        "truth: decided for sibling axes where no call is open below the parent",
    ),
)  # fmt: skip


def matrix(question: str) -> str:
    """The table of one question, `truth` or `relevance`, in Markdown."""
    lines = [
        "| query | " + " | ".join(FACTS) + " | |",
        "|---" * (len(FACTS) + 2) + "|",
    ]
    for feature in FEATURES:
        cells = feature.truth if question == "truth" else feature.relevance
        shown = " | ".join(f"refused {cell}" if cell.startswith("AX") else cell for cell in cells)
        lines.append(f"| {feature.name} | {shown} | {feature.note} |")
    return "\n".join(lines)
