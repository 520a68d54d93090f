"""Random XPaths on random documents: the rows are the nodes that lxml and elementpath select.

Nodes are compared by their position in the document: an element by its number, a text by its
parent's number and its place there, an attribute by its owner's number and its name. Documents have
no comments and no adjacent texts; the expressions stay in the fragment, so a refusal is a failure,
except that of the document node, which is never a row. From an attribute, `following` is left out:
both oracles pass over what the attribute's element holds, which the recommendation counts in (Saxon
too); test_xpath.py has that case by hand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import elementpath
from elementpath import XPath1Parser, XPathContext
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from lxml import etree

from axlog.document.loader import load
from axlog.errors import QueryError, UnsupportedError
from axlog.query.native import parse_pattern
from axlog.query.pattern import Pattern
from axlog.query.xpath_compiler import parse_xpath
from lab.laws.xpath_law import (
    AXES,
    NAMES,
    NUMBERS,
    STRINGS,
    TESTS,
    TEXTS,
    Position,
    selected_by_axlog,
    selected_by_lxml,
)
from lab.reference import rows

# Documents and expressions ------------------------------------------------------------------------


@st.composite
def elements(draw: DrawFn, depth: int = 3) -> str:
    """An element as XML: texts never side by side, never only space."""
    name = draw(st.sampled_from(NAMES))
    attributes = draw(
        st.dictionaries(st.sampled_from(("k", "l")), st.sampled_from(TEXTS), max_size=2)
    )
    written = "".join(f' {key}="{value}"' for key, value in attributes.items())
    content: list[str] = []
    for _ in range(draw(st.integers(0, 3)) if depth else 0):
        if draw(st.booleans()) and (not content or content[-1].startswith("<")):
            content.append(draw(st.sampled_from(TEXTS)))
        else:
            content.append(draw(elements(depth - 1)))
    return f"<{name}{written}>{''.join(content)}</{name}>"


@dataclass(frozen=True)
class World:
    """What expressions may have, so that the oracle judges them rightly."""

    axes: Sequence[str] = AXES
    attributes: bool = True
    goes_on: bool = True  # from attributes, with steps and predicates
    numbers: bool = True


WITH_ATTRIBUTES = World()
WITH_ALL_AXES = World((*AXES, "following", "preceding"), attributes=False)
PLAIN = World(goes_on=False, numbers=False)
"""elementpath takes `@k/@k` for `@k`, finds nothing after a text, and fails where a value is no
number: lxml alone judges these."""


@st.composite
def steps(draw: DrawFn, world: World, depth: int, is_last: bool) -> str:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.sampled_from((".", "..")))
    if kind == 1 and world.attributes and (is_last or world.goes_on):
        step = draw(st.sampled_from(("@k", "@l", "@*", "attribute::node()")))
        if not world.goes_on:
            return step
    elif kind == 2:
        step = draw(st.sampled_from(("following-sibling::*[1]", "preceding-sibling::*[1]")))
    elif kind < 6:
        step = draw(st.sampled_from(TESTS))
    else:
        step = f"{draw(st.sampled_from(world.axes))}::{draw(st.sampled_from(TESTS))}"
    if depth and draw(st.integers(0, 3)) == 0:
        step += f"[{draw(conditions(world, depth - 1))}]"
    return step


@st.composite
def paths(draw: DrawFn, world: World, depth: int = 2, is_absolute: bool = False) -> str:
    count = draw(st.integers(1, 3))
    found = draw(steps(world, depth, count == 1))
    for number in range(1, count):
        slash = draw(st.sampled_from(("/", "/", "//")))
        found += slash + draw(steps(world, depth, number == count - 1))
    if is_absolute or draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from(("/", "//"))) + found
    return draw(st.sampled_from(("", "", "", ".//"))) + found


@st.composite
def conditions(draw: DrawFn, world: World, depth: int, is_absolute: bool = False) -> str:
    path = paths(world, depth, is_absolute)
    constants = st.sampled_from((*STRINGS, *NUMBERS) if world.numbers else STRINGS)
    kind = draw(st.integers(0, 9 if depth else 5))
    if kind < 2:
        return draw(path)
    if kind == 4 and world.numbers:
        operator = draw(st.sampled_from(("<", "<=", ">", ">=")))
        return f"{draw(st.sampled_from(NUMBERS))} {operator} {draw(path)}"
    if kind < 5:
        return f"{draw(path)} {draw(st.sampled_from(('=', '!=')))} {draw(constants)}"
    if kind == 5:
        return f"{draw(path)} {draw(st.sampled_from(('=', '!=')))} {draw(path)}"
    left = draw(conditions(world, depth - 1, is_absolute))
    if kind < 7:
        return f"not({left})"
    right = draw(conditions(world, depth - 1, is_absolute))
    return f"({left}) {draw(st.sampled_from(('and', 'or')))} ({right})"


@st.composite
def selections(draw: DrawFn, *worlds: World) -> str:
    world = draw(st.sampled_from(worlds))
    return " | ".join(draw(st.lists(paths(world, is_absolute=True), min_size=1, max_size=2)))


# Positions ----------------------------------------------------------------------------------------


def selected_by_elementpath(root: etree._Element, expression: str) -> set[Position]:
    numbers = {element: number for number, element in enumerate(root.iter())}
    context = XPathContext(root.getroottree())
    selected: Any = XPath1Parser().parse(expression).select(context)
    found: set[Position] = set()
    for each in selected:
        kind = type(each)  # narrowing `each` itself would hide attributes from the type checker
        if issubclass(kind, elementpath.ElementNode):
            found.add((numbers[each.elem],))
        elif issubclass(kind, elementpath.AttributeNode):
            found.add((numbers[each.parent.elem], f"@{each.name}"))
        elif issubclass(kind, elementpath.TextNode):
            siblings = list(each.parent.children)
            found.add((numbers[each.parent.elem], siblings.index(each)))
    return found


def the_pattern(expression: str) -> Pattern:
    try:
        return parse_xpath(expression)
    except UnsupportedError as refusal:
        assume(refusal.message != "selecting the document node is not supported")
        raise


# Laws ---------------------------------------------------------------------------------------------


@given(elements(), selections(WITH_ATTRIBUTES, WITH_ALL_AXES))
def test_oracle_selected_nodes_are_those_of_lxml(xml: str, expression: str) -> None:
    pattern = the_pattern(expression)
    root = etree.fromstring(xml)
    assert selected_by_axlog(load(xml), pattern) == selected_by_lxml(root, expression)


@given(elements(), selections(PLAIN))
def test_oracle_selected_nodes_are_those_of_elementpath(xml: str, expression: str) -> None:
    pattern = the_pattern(expression)
    root = etree.fromstring(xml)
    assert selected_by_axlog(load(xml), pattern) == selected_by_elementpath(root, expression)


@given(
    elements(),
    conditions(WITH_ATTRIBUTES, 2, is_absolute=True)
    | conditions(WITH_ALL_AXES, 2, is_absolute=True),
)
def test_oracle_conditions_hold_where_lxml_says_so(xml: str, condition: str) -> None:
    expression = f"boolean({condition})"
    try:
        pattern = parse_xpath(expression)
    except QueryError as refused:
        assume(refused.code != "AX213")  # paths that go up and down in too many ways
        raise
    assert pattern.is_boolean
    expected = etree.fromstring(xml).getroottree().xpath(expression)
    assert bool(rows(load(xml), pattern)) == expected


@given(selections(WITH_ATTRIBUTES, WITH_ALL_AXES))
def test_differential_the_native_text_of_a_pattern_is_the_pattern(expression: str) -> None:
    pattern = the_pattern(expression)
    assert parse_pattern(str(pattern)) == pattern
