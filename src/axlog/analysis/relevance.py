"""Which streams can still matter: lazy, axlog and exact relevance (P1 5, P2 6, P3 3.4).

- Lazy: some scenario asks the stream for something.
- Axlog: a scenario that no other dominates does. Dominance compares output and join variables, so
  the pattern is taken with its join variables as outputs.
- Exact (P2 definition 7): for some future, leaving out what the stream brings changes the answer. A
  scenario shows it if the answer fails on its most general instance without the stream: fresh
  labels for `*`, fresh values for unknowns, and every length of chain, up to one more than the
  longest run of `*` in the pattern, for each `//` (the canonical models of Miklau and Suciu).

Exact implies axlog implies lazy. With any stream that may delete, only lazy relevance is meant, and
exact relevance of patterns with time constraints or `not` is not covered: asking raises.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from lxml import etree

from axlog.analysis.capacity import fits
from axlog.analysis.generalised import Need, Values
from axlog.analysis.scenarios import Scenarios, can_be_met, is_limited, with_join_variables
from axlog.analysis.type_messages import played
from axlog.analysis.typed_scenarios import typed_scenarios
from axlog.analysis.typing import typed_future
from axlog.datalog.compile import Relation
from axlog.document.pending import Plan
from axlog.document.reading import Element
from axlog.document.tree import Tree
from axlog.document.updates import Insert, Where
from axlog.errors import UndecidedError
from axlog.evaluate.answers import answers
from axlog.language.pattern import (
    AnyNode,
    AnyText,
    Axis,
    Literal,
    Name,
    Pattern,
    PatternNode,
    ValueConstraint,
    Variable,
    Wildcard,
    nodes_of,
)


@dataclass(frozen=True, slots=True)
class Relevance:
    """What a stream is wanted for."""

    stream: str
    lazy: bool
    axlog: bool
    relevant: bool | None  # None: not decided, see `reason`
    wanted: tuple[str, ...]  # the sub-patterns that scenarios not dominated ask it for
    reason: str | None = None

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        said: dict[str, Any] = {
            "stream": self.stream,
            "lazy": self.lazy,
            "axlog": self.axlog,
            "relevant": self.relevant,
            "wanted": list(self.wanted),
        }
        return said if self.reason is None else {**said, "reason": self.reason}


def relevance(
    tree: Tree, pattern: Pattern, *, limit: int = 2000, together: bool = False
) -> dict[str, Relevance]:
    """The relevance of every open stream for a pattern; `together`: messages hold no calls."""
    lazy = lazily_wanted(tree, pattern, together=together)
    scenarios = Scenarios(tree, with_join_variables(pattern), together=together)
    types = typed_scenarios(tree, pattern)
    ways = [
        (values, need)
        for values, needs in scenarios.rows.items()
        for need in needs
        if need.brought
        and fits(tree, scenarios.columns, values, need, together)
        and (types is None or types.allow(scenarios.columns, values, need))
    ]
    deletes = any(tree.call(node).deletes != "no" for node in tree.calls().values())
    found: dict[str, Relevance] = {}
    for stream in sorted(tree.calls()):
        mine = [(v, n) for v, n in ways if any(s == stream for _, s in n.brought)]
        asked = {str(r.node) for _, n in mine for r, s in n.brought if s == stream}
        if deletes:
            asked = {str(r.node) for r, s in lazy if s == stream}
            found[stream] = Relevance(
                stream, bool(asked), bool(asked), None, tuple(sorted(asked)),
                "some stream may delete: only lazy relevance is meant",
            )  # fmt: skip
            continue
        relevant, reason = _exact(tree, pattern, scenarios.columns, mine, stream, limit)
        is_lazy = any(s == stream for _, s in lazy)
        found[stream] = Relevance(
            stream, is_lazy, bool(mine), relevant, tuple(sorted(asked)), reason
        )
    return found


def lazily_wanted(
    tree: Tree, pattern: Pattern, *, together: bool = False
) -> set[tuple[Relation, str]]:
    """Every sub-pattern that some scenario, dominated or not, asks a stream for."""
    scenarios = Scenarios(tree, with_join_variables(pattern), together=together, prune="gathered")
    columns = scenarios.columns
    types = typed_scenarios(tree, pattern)
    found = {
        pair
        for values, needs in scenarios.rows.items()
        for need in needs
        # What scenarios under the same constraints ask for is put together here, so how many trees
        # a call may bring is not asked: lazy relevance is the coarse one.
        if can_be_met(tree.clock, columns, values, need)
        for pair in need.brought
    }
    return {p for p in found if types is None or types.allow((), (), Need(frozenset({p})))}


Ways = list[tuple[Values, Need]]
"""Scenarios that no other dominates."""

_HOLDER = "holder"

# Exact relevance ----------------------------------------------------------------------------------


def _exact(
    tree: Tree,
    pattern: Pattern,
    columns: tuple[str, ...],
    ways: Ways,
    stream: str,
    limit: int,
) -> tuple[bool | None, str | None]:
    if not ways:
        return False, None  # what is relevant is axlog relevant
    if tree.types is not None:
        return _typed(tree, pattern, columns, ways, stream)
    if pattern.where and any(need.times for _, need in ways):
        return None, "exact relevance with time constraints is not covered"
    if is_limited(tree):
        return None, "exact relevance where calls bring only so many trees is not covered"
    if any(isinstance(each, ValueConstraint) for each in pattern.where):
        return None, "exact relevance with comparisons is not covered"
    tried = 0
    try:
        for values, need in ways:
            for with_stream, without in _instances(tree, pattern, columns, values, need, stream):
                tried += 1
                if tried > limit:
                    return None, f"undecided within {limit} instances"
                if without_loses(pattern, with_stream, without):
                    return True, None
    except UndecidedError as error:
        return None, error.message
    return False, None


def _typed(
    tree: Tree, pattern: Pattern, columns: tuple[str, ...], ways: Ways, stream: str
) -> tuple[bool | None, str | None]:
    """Under types a future that shows it is looked for; that there is none is not decided."""
    try:
        for values, _ in ways:
            pairs = zip(columns, values, strict=True)
            known = {c[1:]: str(v) for c, v in pairs if c.startswith("$") and v is not None}
            messages = typed_future(tree, pattern, tree.types, bindings=known) or []
            without = [message for message in messages if message.stream != stream]
            if len(without) < len(messages) and without_loses(
                pattern, played(tree, messages), played(tree, without)
            ):
                return True, None
    except UndecidedError as error:
        return None, error.message
    return None, "exact relevance under types is shown by a future or not decided (P2 theorem 9)"


def without_loses(pattern: Pattern, with_stream: Tree, without: Tree) -> bool:
    """Whether some row of the one document is no row of the other."""
    return bool(set(answers(with_stream, pattern)) - set(answers(without, pattern)))


def _instances(
    tree: Tree,
    pattern: Pattern,
    columns: tuple[str, ...],
    values: Values,
    need: Need,
    stream: str,
) -> Iterator[tuple[Tree, Tree]]:
    """Documents after a scenario's most general instances, with and without one stream's part."""
    known = {c: str(v) for c, v in zip(columns, values, strict=True) if v is not None}
    longest = 1 + _longest_run(pattern)
    brought = sorted(need.brought, key=lambda pair: (pair[1], str(pair[0].node)))
    edges = sum(_descents(relation) for relation, _ in brought)
    if (longest + 1) ** edges > 5000:
        raise UndecidedError("AX502", "undecided within the limit: too many // to instantiate")
    for lengths in product(range(longest + 1), repeat=edges):
        chains = iter(lengths)
        fresh = _Fresh(known)
        messages = [(s, _instance(r, fresh, chains)) for r, s in brought]
        yield (
            _after(tree, messages),
            _after(tree, [(s, made) for s, made in messages if s != stream]),
        )


def _after(tree: Tree, messages: list[tuple[str, Element]]) -> Tree:
    later = copy.deepcopy(tree)
    calls = later.calls()
    operations = [Insert(Where.BEFORE, calls[stream], (made,)) for stream, made in messages]
    # later than all that is here: a time that an output shows is a new one
    Plan(later, operations, later.clock + 1, keep_whitespace=True).commit()
    return later


class _Fresh:
    """Labels and values that occur nowhere else; a variable always gets the same one."""

    def __init__(self, known: dict[str, str]) -> None:
        self.known = known
        self.number = 0

    def label(self) -> str:
        self.number += 1
        return f"fresh-{self.number}"

    def of(self, variable: str) -> str:
        return self.known.setdefault(f"${variable}", self.label())


def _instance(relation: Relation, fresh: _Fresh, chains: Iterator[int]) -> Element:
    """One tree that matches a relation; wrapped in fresh elements where it need not be the root."""
    assert relation.node is not None
    holder = etree.Element(_HOLDER)
    _grow(holder, relation.node, fresh, chains)
    made = holder[0] if len(holder) else None
    if made is None or holder.text:
        inside = etree.Element(fresh.label())
        inside.text = holder.text
        return inside
    return made


def _grow(parent: Element, node: PatternNode, fresh: _Fresh, chains: Iterator[int]) -> None:
    """Add a match of a pattern node below an element."""
    if node.axis in (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF):
        for _ in range(next(chains)):
            parent = etree.SubElement(parent, fresh.label())
    value = _value(node, fresh)
    if node.axis is Axis.ATTRIBUTE:
        name = node.test.label if isinstance(node.test, Name) else fresh.label()
        below = [n for n in nodes_of(node) if n is not node]
        parent.set(name, value or (_value(below[0], fresh) if below else None) or fresh.label())
        return
    match node.test:
        case Literal() | AnyText():
            _add_text(parent, value or fresh.label())
            return
        case Name(label=label):
            made = etree.SubElement(parent, label)
        case Variable(name=name) if not node.branches and (
            parent.tag != _HOLDER or node.axis is not Axis.CHILD
        ):
            _add_text(parent, fresh.of(name))
            return
        case Variable(name=name):
            made = etree.SubElement(parent, fresh.of(name))
        case Wildcard() | AnyNode():
            made = etree.SubElement(parent, fresh.label())
    if value is not None:
        _add_text(made, value)
    for branch in node.branches:
        if not isinstance(branch, PatternNode) or branch.axis is Axis.SELF:
            raise UndecidedError("AX503", "exact relevance with connectives is not covered")
        _grow(made, branch, fresh, chains)


def _value(node: PatternNode, fresh: _Fresh) -> str | None:
    if isinstance(node.test, Literal):
        return node.test.text
    for each in node.comparisons:
        if each.operator == "=" and isinstance(each.operand, Variable):
            return fresh.of(each.operand.name)
        if each.operator == "=" and isinstance(each.operand, str):
            return each.operand
        raise UndecidedError("AX503", "exact relevance with comparisons is not covered")
    if isinstance(node.test, Variable) and node.axis is Axis.ATTRIBUTE:
        return fresh.of(node.test.name)
    return None


def _add_text(parent: Element, text: str) -> None:
    """Add a text node of its own: a comment, which no test sees, keeps it apart from another."""
    if (parent[-1].tail if len(parent) else parent.text) is not None:
        parent.append(etree.Comment(""))
    if len(parent):
        parent[-1].tail = text
    else:
        parent.text = text


def _descents(relation: Relation) -> int:
    assert relation.node is not None
    axes = (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)
    return sum(node.axis in axes for node in nodes_of(relation.node))


def _longest_run(pattern: Pattern) -> int:
    """The longest chain of `*` (or variables) by child steps."""
    best = 0

    def walk(node: PatternNode, run: int) -> None:
        nonlocal best
        vague = isinstance(node.test, Wildcard | Variable | AnyNode)
        run = run + 1 if vague else 0
        best = max(best, run)
        for branch in node.branches:
            for below in nodes_of(branch):
                walk(below, run if below.axis is Axis.CHILD else 0)
                break

    for node in pattern.nodes():
        walk(node, 0)
    return best
