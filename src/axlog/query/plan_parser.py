"""Texts of XPath and XQuery to plans."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from axlog.document.parser import Limits
from axlog.query.plan import Plan
from axlog.query.plan_compiler import PlanCompiler
from axlog.query.value_kinds import may_give_nodes
from axlog.query.xpath_parser import XPathParser
from axlog.query.xquery_parser import XQueryParser


@lru_cache(maxsize=512)
def parse_plan(
    text: str, namespaces: tuple[tuple[str, str], ...], language: str, limits: Limits
) -> Plan:
    """The plan of a query that is no pattern."""
    if language == "xpath":
        expression = XPathParser(text, dict(namespaces)).parse()
    else:
        parser = XQueryParser(text, dict(namespaces))
        expression = parser.parse_query()
        namespaces = tuple(sorted(parser.namespaces.items()))
    plan = PlanCompiler(text, limits).plan(expression, namespaces)
    return replace(plan, written=expression, has_nodes=may_give_nodes(expression, {}))
