"""The text of a view to a query: our own languages first, then any XQuery by Saxon.

A text that our own parsers or compilers refuse is a query of Saxon's if the extra `xquery` is
installed and Saxon accepts it. Otherwise the refusal is raised, with the extra as advice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.document.tree import Tree
from axlog.errors import QueryError, QuerySyntaxError, UnsupportedError, ValueProblem
from axlog.evaluate.constants import refuse_constants_without_value
from axlog.evaluate.static_types import refuse_type_errors
from axlog.query.plan import EVERYTHING
from axlog.query.query import Language, Query, checked_language, language_of, parse_query

INSTALL = 'pip install "axlog[xquery]"'


def parse_view(
    text: str,
    namespaces: Mapping[str, str] | None = None,
    language: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    maintainer: str | None = None,
) -> Query:
    """Parse the query of a view; `maintainer` is the one that the caller asks for."""
    if maintainer == "saxon":
        return _foreign(text, namespaces, language, "requested")
    try:
        query = parse_query(text, namespaces, language, limits=limits)
        refuse_constants_without_value(query)
        if query.plan is not None and query.plan.written is not None:
            refuse_type_errors(query.plan.written, text)
        return query
    except QueryError as refusal:
        if (
            not _is_refused(refusal)
            or (checked_language(language) or language_of(text)) == "pattern"
        ):
            raise
        if not _is_saxon_installed():
            raise _with_advice(refusal) from None
        try:
            return _foreign(text, namespaces, language, refusal.message)
        except QueryError as error:
            is_ours = error.code == "AX201" and (
                not isinstance(refusal, UnsupportedError)
                or "XPST0003" in error.message
                or ("XPST0017" in error.message and refusal.message.startswith("the function "))
            )
            raise (refusal if is_ours else error) from None


def _is_refused(refusal: QueryError) -> bool:
    """Whether Saxon may know more: prefixes that constructors declare, for example."""
    return isinstance(refusal, QuerySyntaxError | UnsupportedError) or refusal.code == "AX206"


def evaluated_by_saxon(query: Query, refusal: QueryError, maintainer: str | None) -> Query:
    """The query for Saxon, if our own evaluator refuses it for the data; else raises the refusal.

    Only where the caller leaves the choice of the maintainer to axlog.
    """
    is_ours = query.foreign is not None or query.language == "pattern" or maintainer is not None
    if not _is_refused(refusal) or is_ours or not _is_saxon_installed():
        raise refusal
    try:
        return _foreign(query.text, dict(query.namespaces), query.language, refusal.message)
    except QueryError:
        raise refusal from None


def _is_saxon_installed() -> bool:
    from axlog.views.saxon.process import is_installed

    return is_installed()


def _with_advice(refusal: QueryError) -> QueryError:
    """The refusal with the extra as a remedy; a text that does not parse stays as it is."""
    if not isinstance(refusal, UnsupportedError):
        return refusal
    advice = f"{refusal.advice}; or {INSTALL}" if refusal.advice else INSTALL
    return UnsupportedError(
        refusal.code, refusal.message, place=refusal.place, expected=refusal.expected,
        advice=advice,
    )  # fmt: skip


def _foreign(
    text: str, namespaces: Mapping[str, str] | None, language: str | None, reason: str
) -> Query:
    from axlog.query.foreign import ForeignQuery, refuse_changing_functions
    from axlog.query.projection import projection_of

    asked = checked_language(language) or language_of(text)
    if asked == "pattern":
        raise QueryError(
            "AX212", "Saxon declines a tree pattern", expected="a query in XPath or XQuery"
        )
    given = tuple(sorted((namespaces or {}).items()))
    refuse_changing_functions(text, dict(given), asked)
    if language is None:
        asked = _language_for_saxon(text, asked, given)
    else:
        _check(text, asked, given)
    projection = projection_of(text, dict(given), asked)
    foreign = ForeignQuery(text, asked, given, reason, projection)
    return Query(EVERYTHING, text, asked, foreign=foreign, namespaces=given)


def _language_for_saxon(
    text: str, asked: Language, namespaces: tuple[tuple[str, str], ...]
) -> Language:
    """XQuery, which extends XPath with few exceptions."""
    try:
        _check(text, "xquery", namespaces)
    except QueryError:
        if asked != "xpath" or not _may_be_xpath_alone(text):
            raise
        _check(text, asked, namespaces)
        return asked
    return "xquery"


_STRING = re.compile(r"\"[^\"]*\"|'[^']*'")


def _may_be_xpath_alone(text: str) -> bool:
    """Whether a text may be XPath but no XQuery: the axis of namespaces, `&` in a string."""
    return ("namespace::" in text or "&" in text) and "&" not in _STRING.sub("", text)


@lru_cache(maxsize=256)
def _check(text: str, language: str, namespaces: tuple[tuple[str, str], ...]) -> None:
    """Evaluate the query on an empty document: errors of the query itself are raised.

    Saxon reports errors of XPath without their codes, so it is asked for XQuery where it can be:
    `&` in a string of XPath is `&amp;` in XQuery.
    """
    from axlog.views.saxon.documents import SaxonDocument
    from axlog.views.saxon.process import Asked

    if language == "xpath" and "namespace::" not in text:
        escaped = _STRING.sub(lambda found: found[0].replace("&", "&amp;"), text)
        _check(escaped, "xquery", namespaces)
        return
    try:
        SaxonDocument().run(Tree(), Asked(text, language, namespaces))
    except ValueProblem:
        return  # it may have a value for other data
    except QueryError as error:
        if error.code != "AX216":
            raise
