"""Law 3: the nodes that a random XPath selects on a random document are those that lxml selects.

Nodes are compared by their position in the document: an element, comment or processing instruction
by its number, a text by its parent's number and its position there, an attribute by its owner's
number and its name. Comments and processing instructions are between the other nodes and beside the
root element. Documents have no adjacent texts. Expressions stay in the fragment, so a refusal is a
failure, except for the document node, which is never a row, and for paths with too many
alternatives.

The maintainers that accept a pattern must find the nodes that the definitions find, two in each
case, and so must the columnar selection.

Excluded: `following` from an attribute, where lxml skips the content of the attribute's element,
which the recommendation includes; `preceding` from a node after the root element, where lxml skips
the root element. The conformance tests use Saxon and BaseX.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeAlias
from zlib import crc32

from lxml import etree

from axlog.document.loader import load
from axlog.document.tree import DOCUMENT_NODE, NodeKind, Tree
from axlog.errors import QueryError
from axlog.evaluate.select import covers, select
from axlog.query.native import parse_pattern
from axlog.query.pattern import Pattern
from axlog.query.xpath_compiler import parse_xpath
from axlog.query.xpath_routes import MOST_ROUTES
from axlog.views.change import Row
from axlog.views.choose import MAINTAINERS, Engines, maintainer_named, make_plain
from axlog.views.counting.engine import CountingEngine
from lab.reference import rows

Position: TypeAlias = tuple[object, ...]

NAMES = ("a", "b", "c")
TEXTS = ("x", "1", "2", "10", " 2 ", "1.0")
AXES = tuple(
    """child descendant descendant-or-self self following-sibling preceding-sibling parent
    ancestor ancestor-or-self""".split()
)
MARKUP = ("<!--x-->", "<!--1-->", "<!--2-->", "<?p 1?>", "<?p x?>", "<?q?>")
MARKUP_TESTS = (
    "comment()",
    "processing-instruction()",
    "processing-instruction('p')",
)
TESTS = (*NAMES, "*", "*", "node()", "node()", "text()", *MARKUP_TESTS)
STRINGS = ('"x"', '"1"', '"2"')
NUMBERS = ("1", "2", "-1", "1.5")


@dataclass(frozen=True, slots=True)
class XPathCase:
    """A document and an expression over it."""

    document: str
    expression: str


def make_xpath_case(random: Random) -> XPathCase:
    """A random case; with attributes or with the axes over the whole document, not both."""
    writer = _Writer(random, random.random() < 0.5)
    chosen = [writer.path(2, is_absolute=True) for _ in range(random.choice((1, 1, 1, 2)))]
    expression = " | ".join(chosen)
    if random.random() < 0.25:
        expression = f"boolean({writer.condition(2, is_absolute=True)})"
    before, after = (_markup(random) for _ in range(2))
    text = f"{before}{_element(random, 3)}{'' if 'preceding::' in expression else after}"
    return XPathCase(text, expression)


def _markup(random: Random) -> str:
    """Comments and processing instructions, mostly none."""
    return "".join(random.choice(MARKUP) for _ in range(random.choice((0, 0, 0, 1, 2))))


def _element(random: Random, depth: int) -> str:
    """An element as XML: texts are never adjacent and never only whitespace."""
    name = random.choice(NAMES)
    keys = [key for key in ("k", "l") if random.random() < 0.3]
    written = "".join(f' {key}="{random.choice(TEXTS)}"' for key in keys)
    content: list[str] = []
    for _ in range(random.randint(0, 3) if depth else 0):
        if random.random() < 0.2:
            content.append(random.choice(MARKUP))
        elif random.random() < 0.5 and (not content or content[-1].startswith("<")):
            content.append(random.choice(TEXTS))
        else:
            content.append(_element(random, depth - 1))
    return f"<{name}{written}>{''.join(content)}</{name}>"


class _Writer:
    """Writes random expressions."""

    def __init__(self, random: Random, attributes: bool) -> None:
        self._random = random
        self._attributes = attributes
        self._axes = AXES if attributes else (*AXES, "following", "preceding")

    def path(self, depth: int, is_absolute: bool = False) -> str:
        random = self._random
        found = self._step(depth)
        for _ in range(random.randint(0, 2)):
            found += random.choice(("/", "/", "//")) + self._step(depth)
        if is_absolute or random.random() < 0.15:
            return random.choice(("/", "//")) + found
        return random.choice(("", "", "", ".//")) + found

    def _step(self, depth: int) -> str:
        random = self._random
        kind = random.randrange(10)
        if kind == 0:
            return random.choice((".", ".."))
        if kind == 1 and self._attributes:
            step = random.choice(("@k", "@l", "@*", "attribute::node()"))
        elif kind == 2:
            step = random.choice(("following-sibling::*[1]", "preceding-sibling::*[1]"))
        elif kind < 6:
            step = random.choice(TESTS)
        else:
            step = f"{random.choice(self._axes)}::{random.choice(TESTS)}"
        if depth and random.random() < 0.25:
            step += f"[{self.condition(depth - 1)}]"
        return step

    def condition(self, depth: int, is_absolute: bool = False) -> str:
        random = self._random
        kind = random.randrange(10 if depth else 6)
        path = self.path(depth, is_absolute)
        if kind < 2:
            return path
        if kind == 4:
            return f"{random.choice(NUMBERS)} {random.choice(('<', '<=', '>', '>='))} {path}"
        if kind < 5:
            constant = random.choice((*STRINGS, *NUMBERS))
            return f"{path} {random.choice(('=', '!='))} {constant}"
        if kind == 5:
            if not is_absolute and random.random() < 0.3:
                path = "."
            other = self.path(depth, is_absolute or random.random() < 0.4)
            return f"{path} {random.choice(('=', '!='))} {other}"
        left = self.condition(depth - 1, is_absolute)
        if kind < 7:
            return f"not({left})"
        right = self.condition(depth - 1, is_absolute)
        return f"({left}) {random.choice(('and', 'or'))} ({right})"


# Positions ----------------------------------------------------------------------------------------


def positions_of_tree(tree: Tree) -> dict[int, Position]:
    """Positions by handle."""
    found: dict[int, Position] = {}
    number = 0
    for node in tree.subtree(DOCUMENT_NODE):
        if tree.kind(node) in _NUMBERED:
            found[node] = (number,)
            number += 1
    for node in list(found):
        for attribute in tree.attributes(node):
            found[attribute] = (*found[node], tree.label(attribute))
        for place, child in enumerate(tree.children(node)):
            if tree.kind(child) is NodeKind.TEXT:
                found[child] = (*found[node], place)
    return found


_NUMBERED = (NodeKind.ELEMENT, NodeKind.COMMENT, NodeKind.INSTRUCTION)


MOST_TRIES = 500_000
"""Nodes that the definition may try for one answer; a case that needs more is left out."""


def selected_by_axlog(tree: Tree, pattern: Pattern) -> set[Position]:
    """By the definitions; by the maintainers that support the pattern; by the columns."""
    nodes = positions_of_tree(tree)
    positions: dict[object, Position] = {tree.id(node): at for node, at in nodes.items()}
    found = {positions[answer.values[0]] for answer in rows(tree, pattern, MOST_TRIES).values()}
    for name, shown in maintained(tree, pattern):
        kept = {positions[row["node.id"]] for row in shown}
        if kept != found:
            raise AssertionError(f"{name} finds {kept}, the definitions {found}")
    if covers(pattern) is None:
        columnar = {nodes[node] for node in select(tree, pattern)}
        if columnar != found:
            raise AssertionError(f"the columns find {columnar}, the definitions {found}")
    return found


def maintained(tree: Tree, pattern: Pattern) -> Iterator[tuple[str, list[Row]]]:
    """The first rows of two maintainers that support the pattern; other cases use the others."""
    engines = Engines(CountingEngine(tree))
    taking = [name for name in MAINTAINERS if maintainer_named(name).refusal(pattern) is None]
    first = crc32(str(pattern).encode()) % len(taking)
    for name in (*taking, *taking)[first : first + 2]:
        yield name, list(make_plain(tree, pattern, name, engines).rows())


def selected_by_lxml(root: etree._Element, expression: str) -> set[Position]:
    """By libxml2."""
    whole = [
        *reversed(list(root.itersiblings(preceding=True))),
        *root.iter(),
        *root.itersiblings(),
    ]
    numbers = {element: number for number, element in enumerate(whole)}
    selected: Any = root.getroottree().xpath(expression)
    found: set[Position] = set()
    for each in selected:
        if isinstance(each, etree._Element):
            found.add((numbers[each],))
        elif each.is_attribute:
            found.add((numbers[each.getparent()], f"@{each.attrname}"))
        elif each.is_text:
            found.add((numbers[each.getparent()], 0))
        else:
            before = each.getparent()
            above = before.getparent()
            found.add((numbers[above], _place_behind(above, before)))
    return found


def _place_behind(above: etree._Element, before: etree._Element) -> int:
    """The index of the text after a child among all children, including texts."""
    place = 1 if above.text else 0
    for child in above:
        place += 1
        if child is before:
            return place
        place += 1 if child.tail else 0
    raise AssertionError("not a child")


# The law ------------------------------------------------------------------------------------------


_REFUSED = (
    "selecting the document node is not supported",
    f"the path has more than {MOST_ROUTES} alternatives",
)


def check_xpath(case: XPathCase) -> None:
    """The same nodes, or the same truth; and the pattern's native text parses to the pattern."""
    try:
        pattern = parse_xpath(case.expression)
        again = parse_pattern(str(pattern))
    except QueryError as refusal:
        if refusal.message in _REFUSED or refusal.code == "AX213":  # more than 2,000 parts
            return
        raise
    if again != pattern:
        raise AssertionError(f"the native text of {case.expression} is another pattern: {pattern}")
    try:
        _compare(case, pattern)
    except QueryError as refusal:
        if refusal.code != "AX216":  # more combinations than one answer may cost
            raise


def _compare(case: XPathCase, pattern: Pattern) -> None:
    tree, root = load(case.document), etree.fromstring(case.document)
    if case.expression.startswith("boolean("):
        found: object = bool(rows(tree, pattern, MOST_TRIES))
        for name, shown in maintained(tree, pattern):
            if bool(shown) != found:
                raise AssertionError(f"{name} says {bool(shown)}, the definitions {found}")
        wanted: object = root.getroottree().xpath(case.expression)
    else:
        found, wanted = selected_by_axlog(tree, pattern), selected_by_lxml(root, case.expression)
    if found != wanted:
        raise AssertionError(f"found {found}, lxml says {wanted}")


def smaller_documents(case: XPathCase) -> Iterator[XPathCase]:
    """The case without one node of its document."""
    root = etree.fromstring(case.document)
    if root.getprevious() is not None or root.getnext() is not None:
        yield replace(case, document=etree.tostring(root, encoding="unicode", with_tail=False))
    for number in range(1, len(list(root.iter()))):
        cut = etree.fromstring(case.document)
        gone = list(cut.iter())[number]
        above = gone.getparent()
        if above is not None and not gone.tail:
            above.remove(gone)
            yield replace(case, document=etree.tostring(cut.getroottree(), encoding="unicode"))
