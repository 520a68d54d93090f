"""A query in any of the three languages: its pattern, and its template if it has one.

The caller names the language, or the first word decides: `match` begins a tree pattern; `for`,
`let`, a constructor or a prolog begins an XQuery view; any other text is XPath.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.errors import QueryError, QuerySyntaxError, UnsupportedError
from axlog.query.columns import Columns
from axlog.query.compile import compile_pattern
from axlog.query.depth import too_deep
from axlog.query.foreign import ForeignQuery
from axlog.query.likely_mistakes import with_advice
from axlog.query.native import parse_native
from axlog.query.native_text import native_text
from axlog.query.pattern import Axis, Pattern, PatternNode, Variable
from axlog.query.plan import EVERYTHING, ITEM_KEY, VALUE_KEY, Plan
from axlog.query.plan_parser import parse_plan
from axlog.query.root_element import with_one_root
from axlog.query.row_key import RowKey, row_key
from axlog.query.steps import Step
from axlog.query.template import Template
from axlog.query.xpath_compiler import parse_xpath
from axlog.query.xquery_compiler import parse_xquery
from axlog.query.xquery_parser import looks_like_xquery

Language: TypeAlias = Literal["pattern", "xpath", "xquery"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

_MATCH = re.compile(r"\s*match(?![\w.\-:(])")


@dataclass(frozen=True, slots=True)
class Query:
    """One query: its pattern and steps, its text and language, and the template of its rows."""

    pattern: Pattern
    text: str
    language: str = "pattern"
    template: Template | None = None
    steps: tuple[Step, ...] = ()
    """What happens to the rows of the pattern; () where they are the rows of the query."""
    plan: Plan | None = field(default=None, compare=False)
    """How a query is kept that is more than a pattern; `pattern` then stands for all nodes."""
    foreign: ForeignQuery | None = field(default=None, compare=False)
    """Set if another engine evaluates the query; `pattern` then stands for all nodes."""
    namespaces: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    selects: Pattern | None = field(default=None, compare=False, repr=False)
    """The pattern of a query that is kept as a plan although a pattern expresses it."""

    def __str__(self) -> str:
        """The canonical native text of its pattern and steps.

        >>> print(parse_query("match //a/$x return count( ) as n"))
        match //a/$x return count() as n
        """
        return native_text(self.pattern, self.steps)

    @property
    def is_pattern(self) -> bool:
        """Whether its rows are those of its pattern: it has neither steps nor a plan."""
        return not self.has_items and not self.steps

    @property
    def has_items(self) -> bool:
        """Whether its rows are items: it has a plan, or another engine evaluates it."""
        return self.plan is not None or self.foreign is not None

    @property
    def only_pattern(self) -> Pattern:
        """The pattern of a query that is no more than a pattern; raises AX211 for others.

        For uses that need nodes or matches, not computed rows.
        """
        if self.selects is not None:
            return self.selects
        if not self.is_pattern:
            raise UnsupportedError(
                "AX211",
                "computed values, aggregates and order are not supported here",
                expected="a pattern: paths, constraints and plain outputs",
            )
        return self.pattern

    @property
    def row_key(self) -> RowKey:
        """The columns that identify a row, and the pattern and steps that maintainers keep."""
        if self.foreign is not None or (self.plan is not None and not self.plan.has_nodes):
            return VALUE_KEY
        return row_key(self.pattern, self.steps) if self.plan is None else ITEM_KEY

    @property
    def item_plan(self) -> Plan:
        """The plan that gives the items of an XPath or XQuery query; AX211 for a tree pattern."""
        if self.plan is not None:
            return self.plan
        if self.language == "pattern":
            raise QueryError(
                "AX211", "a tree pattern has rows, not items", advice="rows(), or XPath and XQuery"
            )
        return parse_plan(self.text, self.namespaces, self.language, DEFAULT_LIMITS)

    @property
    def columns(self) -> Columns:
        """The names of the columns of a row, with their types.

        >>> parse_query("match //a#t/$x return $x, t.time").columns.types
        ('text', 'time')
        """
        return self.row_key.columns

    @property
    def key(self) -> tuple[str, ...]:
        """The names of the columns that identify a row.

        >>> parse_query("match //a#t return t.val").key
        ('t.id',)
        """
        return self.row_key.names


def parse_query(
    text: str,
    namespaces: Mapping[str, str] | None = None,
    language: str | None = None,
    show: Sequence[str] = ("id",),
    limits: Limits = DEFAULT_LIMITS,
) -> Query:
    """Parse a query; `show` lists the columns of XPath rows.

    >>> parse_query("//a/b").language, parse_query("match //a#t return t.id").language
    ('xpath', 'pattern')
    """
    try:
        return _parse_query(text, namespaces, language, show, limits)
    except RecursionError:
        raise too_deep(text, 0) from None
    except QuerySyntaxError as error:
        raise with_advice(error, text) from None


def _parse_query(
    text: str,
    namespaces: Mapping[str, str] | None,
    language: str | None,
    show: Sequence[str],
    limits: Limits,
) -> Query:
    asked = checked_language(language)
    language = asked or language_of(text)
    if language == "pattern":
        pattern, steps = parse_native(text, namespaces, limits)
        return Query(with_one_root(pattern), text, steps=steps)
    try:
        return _parse(text, namespaces, language, show, limits)
    except (QuerySyntaxError, UnsupportedError) as error:
        if asked is not None or language == "xquery":
            raise
        try:  # XQuery, which extends XPath, has more inside than at the start
            return _parse(text, namespaces, "xquery", show, limits)
        except QueryError:
            raise error from None


def _parse(
    text: str,
    namespaces: Mapping[str, str] | None,
    language: Language,
    show: Sequence[str],
    limits: Limits,
) -> Query:
    given = tuple(sorted((namespaces or {}).items()))
    try:
        if language == "xquery":
            pattern, template = parse_xquery(text, namespaces, limits)
            query = Query(with_one_root(pattern), text, language, template, namespaces=given)
        else:
            pattern = parse_xpath(text, namespaces, show, limits)
            query = Query(with_one_root(pattern), text, language, namespaces=given)
    except QueryError as error:
        if error.code != "AX203" and not isinstance(error, UnsupportedError):
            raise
        plan = parse_plan(text, given, language, limits)  # it sees the variables of `some`
        return Query(EVERYTHING, text, language, plan=plan, namespaces=given)
    return _maintainable(query, limits) if tuple(show) == ("id",) else query


def _maintainable(query: Query, limits: Limits) -> Query:
    """A query as its plan, if its pattern would be evaluated again and its plan would not.

    Such a pattern compares values inside `not` or `or` with those of a path from the document, or
    in a `not` inside an `or` or `not`.
    """
    pattern = query.pattern
    axes = {node.axis for node in pattern.nodes() if not node.axis.is_downward}
    is_up = not axes or (Axis.ANCESTOR_OR_SELF in axes and axes <= _UP)
    if not is_up or not any(map(_binds, pattern.nodes())):
        return query
    if compile_pattern(pattern).refusal is None:
        return query
    try:
        plan = parse_plan(query.text, query.namespaces, query.language, limits)
    except QueryError:
        return query
    if plan.reevaluated is not None:
        return query
    return replace(query, pattern=EVERYTHING, template=None, plan=plan, selects=pattern)


_UP = frozenset((Axis.ANCESTOR_OR_SELF, Axis.ANCESTOR, Axis.PARENT))


def _binds(node: PatternNode) -> bool:
    """Whether a node binds a variable, which the maintainer of such axes does not."""
    return isinstance(node.test, Variable) or any(
        isinstance(comparison.operand, Variable) for comparison in node.comparisons
    )


def checked_language(given: str | None) -> Language | None:
    """Return the name of a language, or None if none is given; refuse other names."""
    if not given:
        return None
    for language in LANGUAGES:
        if given == language:
            return language
    raise QueryError(
        "AX201", f"there is no language {given!r}", expected="one of " + ", ".join(LANGUAGES)
    )


def language_of(text: str) -> Language:
    """Return the language of a text, by its first word."""
    if _MATCH.match(text):
        return "pattern"
    return "xquery" if looks_like_xquery(text) else "xpath"


def xpath(
    text: str, namespaces: Mapping[str, str] | None = None, show: Sequence[str] = ("id",)
) -> Query:
    """Return an XPath query whose rows show chosen properties of the selected node.

    Parameters:
        text: The XPath expression.
        namespaces: Prefixes that the expression may use, with their namespace names.
        show: Columns: `id`, `val` (string value), `cont` (XML), `label`, `time`.

    >>> xpath("//person[phone]", show=("id", "val")).columns
    ('node.id', 'node.val')
    """
    return parse_query(text, namespaces, "xpath", show)
