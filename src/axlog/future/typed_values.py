"""Comparisons of element values under types, rewritten to comparisons of texts.

The value of an element is the concatenation of all its texts, and types do not constrain texts. If
the type says that an element holds one text and nothing else, its value is that text: `oid = "17"`
is then `oid/"17"`, and is rewritten so. Other values of future elements are rejected
(`requirements.py`).

Comparisons with constants are tried on sample strings that represent all others: each constant, and
one string or number below, between and above them (`samples`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from axlog.document.cardinality import TEXT
from axlog.document.schema import LAYOUT, Schema, UnorderedDTD, service_kind
from axlog.document.tree import Tree
from axlog.evaluate.value_tests import comparison
from axlog.future.value_classes import samples_of
from axlog.query.pattern import (
    AnyText,
    Axis,
    Branch,
    Comparison,
    Constant,
    Name,
    Or,
    PatternNode,
    Variable,
)


def with_text_comparisons(node: PatternNode, schema: Schema, tree: Tree) -> PatternNode:
    """The pattern with value comparisons moved to the text, for elements that hold one text."""
    services = {service_kind(tree, call)[1:] for call in tree.calls().values()}
    services |= {service for service, _ in schema.services}
    types = [schema.document, *(schema.service(service) for service in sorted(services))]
    return _rewritten(node, types)


def _rewritten(node: PatternNode, types: list[UnorderedDTD]) -> PatternNode:
    branches = tuple(_branch(branch, types) for branch in node.branches)
    test = node.test
    if (
        node.comparisons
        and node.axis is not Axis.ATTRIBUTE
        and isinstance(test, Name)
        and all(_holds_one_text(type_, test.label) for type_ in types)
        and not all(_passes_empty(each) for each in node.comparisons)
    ):
        text = PatternNode(Axis.CHILD, AnyText(), comparisons=node.comparisons)
        return replace(node, comparisons=(), branches=(*branches, text))
    return replace(node, branches=branches)


def _branch(branch: Branch, types: list[UnorderedDTD]) -> Branch:
    if isinstance(branch, PatternNode):
        return _rewritten(branch, types)
    if isinstance(branch, Or):
        return Or(tuple(tuple(_branch(b, types) for b in each) for each in branch.alternatives))
    return branch


def _holds_one_text(type_: UnorderedDTD, label: str) -> bool:
    """Whether elements of a label hold only texts, and may hold exactly one."""
    constraint = type_.constraint(label)
    others = {kind for kind in constraint.allowed if kind not in (TEXT, LAYOUT)}
    return (
        all(kind.startswith("@") for kind in others)
        and TEXT in constraint.allowed
        and constraint.holds({TEXT: 1})
    )


def _passes_empty(each: Comparison) -> bool:
    """Whether an element without a text passes; a variable may have any value."""
    if isinstance(each.operand, Variable):
        return False
    return comparison(each.operator, each.operand)("")


def samples(constants: Iterable[Constant]) -> list[str]:
    """Strings that represent all others under comparisons with these constants."""
    given = list(constants)
    strings = sorted({c for c in given if isinstance(c, str)})
    found = [string for string in strings if string]
    for string in strings:
        below = string[:-1] + chr(max(33, ord(string[-1:] or "!") - 1))
        found += ["!", string + "\t", below]
    return list(dict.fromkeys([*found, *samples_of(given)]))
