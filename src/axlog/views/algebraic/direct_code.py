"""Generated functions that test and count the nodes of one shape, node by node.

For each pattern node there are three: `passes(n)` tells whether a node is in its relation,
`sides(n)` counts the ways in which the branches beside the path hold at a node, and `upper(n)` the
ways in which the pattern from the document down to this node holds with it, with the branches
beside that path. Branches are counted by walking over children. Long chains of children are counted
by `below(number, n)`, which the caller gives.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from axlog.document.tree import ATTRIBUTE, DOCUMENT_NODE, ELEMENT, NONE, TEXT, Tree
from axlog.evaluate import node_tests
from axlog.evaluate.generated_code import function_of
from axlog.evaluate.value_tests import comparison
from axlog.query.pattern import AnyText, Axis, Literal, Name, Variable
from axlog.views.algebraic.shape import ROOT, Shape, ShapeNode

LONG = 48
"""The longest chain of children that is walked."""
FAR = (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)


class TooFarError(Exception):
    """Walking costs more than arrays would."""


class Walk(Protocol):
    """What the functions tell their caller: the nodes read, of which `most` are allowed."""

    scanned: int
    most: float


class Counters(NamedTuple):
    """The functions of a shape on a tree, by the number of the pattern node."""

    passes: tuple[Callable[[int], bool], ...]
    sides: tuple[Callable[[int], int], ...]
    upper: tuple[Callable[[int], int], ...]
    forget: Callable[[], None]
    """To be called before they are used for another update: `upper` remembers its results."""


Maker = Callable[[Tree, Walk, Callable[[int, int], int]], Counters]


@lru_cache(maxsize=512)
def counters_of(shape: Shape, key: int) -> Maker:
    """A function that makes the functions of a shape whose rows the pattern node `key` gives."""
    return _Writer(shape, key).maker()


class _Writer:
    """Writes the functions of one shape."""

    def __init__(self, shape: Shape, key: int) -> None:
        self._nodes = shape.nodes
        self._way = {key, *shape.above[key]}
        self._lines: list[str] = []
        self._constants: dict[str, Any] = {
            "Counters": Counters,
            "TooFarError": TooFarError,
            "LIMIT": range(LONG),
            "passes": node_tests.passes,
        }

    def maker(self) -> Maker:
        nodes = self._nodes[1:]
        for node in nodes:
            if isinstance(node.step.test, Name):
                self._constants[f"NAME{node.number}"] = node.wanted
                self._line(1, f"l{node.number} = number(NAME{node.number}, -2)")
            self._constants[f"STEP{node.number}"] = node.step
        for node in nodes:
            self._line(1, f"def p{node.number}(n): return {self._test(node, 'n')}")
            if node.number not in self._way:
                self._branch(node)
        for node in (self._nodes[ROOT], *nodes):
            self._sides(node)
            self._upper(node)
        caches = [f"k{node.number}" for node in nodes]
        self._line(1, f"def forget(): {'; '.join(f'{each}.clear()' for each in caches) or 'pass'}")
        every = [node.number for node in self._nodes]
        columns = (
            ", ".join(f"{kind}{n}" if kind != "p" or n else "None" for n in every) for kind in "psu"
        )
        source = "\n".join(
            (
                "def make(tree, walk, below):",
                " first, following = tree.first_column, tree.next_column",
                " kinds, labels, parents = tree.kind_column, tree.label_column, tree.parent_column",
                " number, text, string_value = tree.name_ids.get, tree.text, tree.string_value",
                *self._lines,
                f" return Counters({', '.join(f'({each},)' for each in columns)}, forget)",
            )
        )
        made: Maker = function_of("make", source, self._constants)
        return made

    def _line(self, depth: int, text: str) -> None:
        self._lines.append(" " * depth + text)

    def _test(self, node: ShapeNode, name: str) -> str:
        """The condition that a node is in a relation."""
        number, test = node.number, node.step.test
        is_attribute, step = node.step.axis is Axis.ATTRIBUTE, f"STEP{number}"
        kind = ATTRIBUTE if is_attribute else ELEMENT
        if isinstance(test, Name):
            parts = [f"labels[{name}] == l{number} and kinds[{name}] == {kind}"]
        elif isinstance(test, AnyText):
            parts = [f"kinds[{name}] == {TEXT}"]
        elif isinstance(test, Literal):
            self._constants[f"TEXT{number}"] = test.text
            parts = [f"kinds[{name}] == {TEXT} and text({name}) == TEXT{number}"]
        else:
            operator = "==" if is_attribute else "!="
            parts = [f"kinds[{name}] {operator} {ATTRIBUTE}"]
            parts.append(f"passes(tree, {name}, {step}.axis, {step}.test)")
        for at, asked in enumerate(node.step.comparisons):
            if not isinstance(asked.operand, Variable):
                self._constants[f"HOLDS{number}_{at}"] = comparison(asked.operator, asked.operand)
                parts.append(f"HOLDS{number}_{at}(string_value({name}))")
        return " and ".join(parts)

    def _beside(self, node: ShapeNode) -> list[int]:
        return [below for below in node.below if below not in self._way]

    def _branch(self, node: ShapeNode) -> None:
        """The number of matches of a branch at a node above it."""
        number, found = node.number, self._beside(node)
        self._line(1, f"def b{number}(n):")
        self._line(2, "found, at = 0, first[n]")
        self._line(2, "for read in LIMIT:")
        is_last = f"at == {NONE}"
        if node.step.axis is Axis.ATTRIBUTE:
            is_last += f" or kinds[at] != {ATTRIBUTE}"
        self._line(3, f"if {is_last}: break")
        self._line(3, f"if {self._test(node, 'at')}: found += {f's{number}(at)' if found else 1}")
        self._line(3, "at = following[at]")
        self._line(2, f"else: return below({number}, n)")
        self._line(2, "walk.scanned += read")
        self._line(2, "if walk.scanned > walk.most: raise TooFarError")
        self._line(2, "return found")

    def _sides(self, node: ShapeNode) -> None:
        """The number of ways in which the branches beside the path hold."""
        beside = self._beside(node)
        self._line(1, f"def s{node.number}(n):")
        for number in beside[:-1]:
            self._line(2, f"c{number} = b{number}(n)")
            self._line(2, f"if not c{number}: return 0")
        product = [*(f"c{number}" for number in beside[:-1]), *(f"b{n}(n)" for n in beside[-1:])]
        self._line(2, f"return {' * '.join(product) or 1}")

    def _upper(self, node: ShapeNode) -> None:
        """The number of ways in which the pattern down to this node holds."""
        number = node.number
        if number == ROOT:
            self._line(1, f"def u{ROOT}(n): return int(n == {DOCUMENT_NODE})")
            return
        self._line(1, f"k{number} = {{}}")
        self._line(1, f"def u{number}(n):")
        self._line(2, f"known = k{number}.get(n)")
        self._line(2, "if known is not None: return known")
        self._line(2, f"if n == {DOCUMENT_NODE} or n == {NONE} or not ({self._test(node, 'n')}):")
        self._line(3, "return 0")
        if node.step.axis in FAR:
            self._line(2, f"known = int(kinds[parents[n]] != {ATTRIBUTE})")
        else:
            self._line(2, f"known = u{node.above}(parents[n])")
        if self._beside(node):
            self._line(2, f"if known: known *= s{number}(n)")
        self._line(2, f"k{number}[n] = known")
        self._line(2, "return known")
