"""Texts of XPath and XQuery to plans."""

from __future__ import annotations

from functools import lru_cache

from axlog.document.parser import Limits
from axlog.query.plan import Plan
from axlog.query.plan_compiler import PlanCompiler
from axlog.query.xpath_parser import XPathParser
from axlog.query.xquery_parser import XQueryParser


@lru_cache(maxsize=512)
def parse_plan(
    text: str, namespaces: tuple[tuple[str, str], ...], language: str, limits: Limits
) -> Plan:
    """The plan of a query that is no pattern."""
    if language == "xpath":
        simple = XPathParser(text, dict(namespaces))
        return PlanCompiler(text, limits).plan(simple.parse(), namespaces)
    parser = XQueryParser(text, dict(namespaces))
    expression = parser.parse_query()
    return PlanCompiler(text, limits).plan(expression, tuple(sorted(parser.namespaces.items())))
