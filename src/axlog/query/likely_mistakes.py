"""Advice for texts that are often written where a query is expected: SQL, JSONPath, the operators
of programming languages, an unquoted query that a shell has changed.
"""

from __future__ import annotations

import re

from axlog.errors import QuerySyntaxError

_MISTAKES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"\s*(select\s|insert\s+into\s|update\s+\w+\s+set\s|delete\s+from\s|with\s+\w+\s+as)",
                   re.IGNORECASE),
        "this looks like SQL. A query selects from a document, by path:"
        " match /document/orders/order[total >= 100][client/$client] return $client",
    ),
    (
        re.compile(r"\s*\$(\.|\[|\.\.)"),
        "this looks like JSONPath. JSON messages are elements here: //order/client",
    ),
    (
        re.compile(r"\s*\.\w[\w.]*(\[\]|\s*\|)"),
        "this looks like jq. JSON messages are elements here: //order/client",
    ),
    (
        re.compile(r"\s*match\b.*(/\s*(\]|return\b|$)|return\s*(,|$))", re.DOTALL),
        "in a shell, put the query into single quotes: double quotes replace $x by nothing",
    ),
)  # fmt: skip
_OPERATORS = {
    "==": "write `=`",
    "&&": "write `and`",
    "||": "write `or`",
    "<>": "write `!=`",
}


def with_advice(error: QuerySyntaxError, text: str) -> QuerySyntaxError:
    """Return the error of a query with advice for a likely mistake, if it is one.

    >>> error = QuerySyntaxError("AX201", "unexpected `from`")
    >>> with_advice(error, "select x from orders").advice.split(".")[0]
    'this looks like SQL'
    """
    advice = next((advice for form, advice in _MISTAKES if form.match(text)), _of_operator(error))
    if advice is not None:
        error.advice = advice
        error.args = (error.describe(),)
    return error


def _of_operator(error: QuerySyntaxError) -> str | None:
    """Advice for an operator of another language at the place of the error, or just before."""
    place = error.place
    if place is None or place.text is None:
        return None
    line = (place.text.splitlines() or [""])[place.line - 1]
    at = place.column - 1
    if line[at : at + 1] == "$" and re.search(r"\bas\s+$", line[:at]):
        return "name a column without `$`: as total"
    near = line[max(0, at - 1) : at + 2]
    return next((advice for operator, advice in _OPERATORS.items() if operator in near), None)
