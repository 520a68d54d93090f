"""What the analyses decide, limit or refuse, as one table; `docs/analysis.md` shows it.

Each row is a feature of queries with a query that has it, each column a declared fact with a
document that declares it. A test asks every one of them and compares what comes with what the table
says, so the page cannot promise more than the code does.

A verdict is `decided`; `limit`: decided up to a search limit, beyond it AX502; or a code: refused.
Types, keys and containment are their own modules' subjects.
"""

from __future__ import annotations

from dataclasses import dataclass

DECIDED, LIMIT, UNDECIDABLE, REFUSED = "decided", "limit", "AX501", "AX503"

_DOCUMENT = '<r><c><ax:call xmlns:ax="urn:axlog" stream="f"{}/></c></r>'

FACTS: dict[str, str] = {
    "open calls": _DOCUMENT.format(""),
    "one-shot": _DOCUMENT.format(' mode="one-shot"'),
    "at most m trees": _DOCUMENT.format(' most="1"'),
    "deletes": _DOCUMENT.format(' deletes="yes"'),
}
"""Declared facts, each with a document. The clock and ends of streams always count."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of queries, one such query, and what each question gives by declared fact."""

    name: str
    query: str
    truth: tuple[str, str, str, str]
    relevance: tuple[str, str, str, str]
    note: str = ""


_ALL = (DECIDED,) * 4
_MOST = (DECIDED, DECIDED, LIMIT, DECIDED)
_NEVER = (REFUSED,) * 4
_LAZY = (LIMIT, LIMIT, "lazy, axlog", "lazy")
_ONLY_AXLOG = ("lazy, axlog", "lazy, axlog", "lazy, axlog", "lazy")

FEATURES: tuple[Feature, ...] = (
    Feature("child and `//` steps, `*`, texts, attributes", "match /r/c[a//b][d]", _MOST, _LAZY),
    Feature("`or`", "match /r/c[a or b][d]", _MOST, _LAZY,
            "relevance: an `or` inside what a stream brings is lazy, axlog"),
    Feature("joins of variables", "match /r/c[a/$x][b/$x] return $x", _MOST, _LAZY),
    Feature(
        "values against constants", "match /r/c[a > 5]", _MOST, _ONLY_AXLOG,
        "intervals; text and number tests of one value together are refused",
    ),
    Feature(
        "`=` and `!=` of variables", "match /r/c[a/$x][b/$y] where $x != $y", _MOST, _ONLY_AXLOG
    ),
    Feature(
        "an order of two variables", "match /r/c[a/$x][b/$y] where $x < $y", _NEVER, _NEVER,
        "decided where one of the two is known",
    ),
    Feature(
        "a value that an open call may change", 'match /r[c = "1"]', _NEVER, _NEVER,
        "not monotone",
    ),
    Feature(
        "a value to come with conditions inside", 'match /r/c/a[. = "1"]/b', _NEVER, _NEVER,
    ),
    Feature("times, coefficients 1 and -1", "match /r/c[a#t][b#u] where t - u <= 3", _MOST,
            _ONLY_AXLOG),
    Feature(
        "times, other coefficients", "match /r/c[a#t][b#u] where 2*t - u <= 3", _NEVER, _NEVER
    ),
    Feature(
        "`not` without joins", "match /r/c[a][not(b)]", (LIMIT, LIMIT, LIMIT, REFUSED), _NEVER,
        "truth of the whole query; its possible rows are not listed",
    ),
    Feature(
        "`not` with joins", "match /r/c[a/$x][not(b/$x)]", (UNDECIDABLE,) * 4, _NEVER,
        "undecidable: P2 theorem 7",
    ),
    Feature(
        "`not` with times or values of elements", 'match /r/c[a = "1"][not(b)]', _NEVER, _NEVER
    ),
    Feature(
        "sibling and reverse axes", "match /r/c/a/following-sibling::b", _NEVER, _NEVER
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
