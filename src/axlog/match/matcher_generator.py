"""Generated matchers: straight-line Python for the relations that a stream's messages can add to.

A matcher walks the parsed message only where a pattern can match (`iterchildren(tag)`,
`iter(tag)`), makes no object for nodes that no relation needs, and leaves a branch as soon as one
of its tests fails. Law: it gives the same bags as `evaluate/interpreter.py` on the message's tree,
and is checked by it. The source is kept (`Matcher.source`), with the pattern node of each loop as a
comment.

Not handled: relations with node columns (`can_match`), because nodes of a message that is not
stored have no handles; messages with comments, for relations that may find them (`finds_markup`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from axlog.document.parser import DEFAULT_LIMITS, Element, Limits
from axlog.evaluate.interpreter import Bags, distinct
from axlog.evaluate.joins import Bag, JoinPlan, Row, Tables, make_check
from axlog.evaluate.work import message_meter
from axlog.match.code_writer import CodeWriter
from axlog.match.message_values import all_texts, is_element, texts, value
from axlog.query.compile import Edge, Relation
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Literal,
    Name,
    PatternNode,
    Variable,
    Wildcard,
)
from axlog.query.values import comparison

Match: TypeAlias = Callable[[Element, int, bytes], tuple[Bag, ...]]
"""From a message's root element, its time, and its UTF-8 bytes to its bags."""
Answers: TypeAlias = dict[Relation, Bag]
Sink: TypeAlias = Callable[[Row, int, Answers], None]
"""The bag that a row and its count are added to; at the document node, bags become answers."""
_ELEMENT, _TEXT, _ATTRIBUTE = "element", "text", "attribute"
_DESCENT = (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)
_FEW = 8
"""Children up to which testing each is faster than an iterator that searches for a name."""
_KIDS = " in kids if kids is not None "
"""The source of children in a loop over the children of the message's root."""


def can_match(relation: Relation) -> bool:
    """Whether a matcher can be generated for a relation and all below it."""
    return all(source != "node" for each in relation.walk() for _, source in each.own)


def names_needed(relation: Relation) -> frozenset[str]:
    """Local names that a message must contain to have a row of a relation."""
    node = relation.node
    found: set[str] = set()
    if node is not None and isinstance(node.test, Name):
        found.add(node.test.label.rpartition("}")[2])
    return frozenset(found).union(*(names_needed(edge.relation) for edge in relation.edges))


DEEPEST = 10
"""The depth of nested blocks from which separate functions are written: Python nests at most twenty
loops."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """A compiled matcher: the relations at a message's root, and those anywhere in the message."""

    here: tuple[Relation, ...]
    everywhere: tuple[Relation, ...]
    source: str
    run: Match = field(repr=False)

    def bags(self, element: Element, time: int, message: bytes) -> tuple[Bags, Bags]:
        """The bags of the message's root, in the form of the interpreter."""
        found = self.run(element, time, message)
        at = len(self.here)
        return (
            {r: bag for r, bag in zip(self.here, found[:at], strict=True) if bag},
            {r: bag for r, bag in zip(self.everywhere, found[at:], strict=True) if bag},
        )


def generate(
    here: Iterable[Relation], everywhere: Iterable[Relation], limits: Limits = DEFAULT_LIMITS
) -> Matcher:
    """Make a matcher for relations wanted at the root of messages and anywhere in them.

    A message whose branches join to more rows than the limits allow raises AX215 or AX216.
    """
    here, everywhere = tuple(here), tuple(everywhere)
    writer = _Writer(limits)
    source = writer.function(here, everywhere)
    scope: dict[str, object] = dict(writer.constants)
    exec(compile(source, "<matcher>", "exec"), scope)
    return Matcher(here, everywhere, source, scope["match"])  # type: ignore[arg-type]


class _Writer(CodeWriter):
    """Writes the code of one matcher."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self.limits = limits
        self.is_split = False  # whether some of the code is in separate functions
        self.counts = False  # whether the code counts its work: it joins, or loops inside loops
        self.waiting: list[
            tuple[str, Axis, Relation, int]
        ] = []  # parts nested too deep to be written inline
        self.descents = 0  # loops over descendants around the current code
        self.constants |= {
            "texts": texts, "all_texts": all_texts, "value": value, "is_element": is_element,
            "Tables": Tables, "distinct": distinct, "message_meter": message_meter,
        }  # fmt: skip

    def function(self, here: tuple[Relation, ...], everywhere: tuple[Relation, ...]) -> str:
        self.open("def match(e, t, m):")
        names = []
        for relation in (*here, *everywhere):
            bag = self.fresh("bag")
            names.append(bag)
            self.line(f"{bag} = {self._zero(relation)}")
        self.line("tag = e.tag")
        first = len(self.lines)
        for relation, bag in zip(here, names, strict=False):
            self._at_root(relation, bag)
        for relation, bag in zip(everywhere, names[len(here) :], strict=True):
            self._sum(Axis.DESCENDANT_OR_SELF, relation, "e", bag)
        if sum(_KIDS in line for line in self.lines) > 1:  # several loops read them
            self.lines.insert(first, f"    kids = e[:] if len(e) < {_FEW} else None")
        else:
            few = f" in e[:] if len(e) < {_FEW} "
            self.lines = [line.replace(_KIDS, few) for line in self.lines]
        shown = [
            name if relation.columns else f"{{(): {name}}} if {name} else {{}}"
            for name, relation in zip(names, (*here, *everywhere), strict=True)
        ]
        self.line(f"return {_tuple(shown)}")
        self._write_apart()
        if self.counts:
            self.lines.insert(1, f"    work = message_meter({self.limits.work})")
        elif self.is_split:
            self.lines.insert(1, "    work = None")
        return "\n".join(self.lines) + "\n"

    # Relations ------------------------------------------------------------------------------------

    def _zero(self, relation: Relation) -> str:
        return "{}" if relation.columns else "0"

    def _describe(self, relation: Relation) -> str:
        """A comment with the pattern node, escaped because a text in it must not end the line."""
        if relation.node is None:
            return ""
        return f"  # {relation.name} {repr(str(relation.node))[1:-1]}"

    def _at_root(self, relation: Relation, bag: str) -> None:
        """Rows of a relation at the message's root, if its test passes."""
        assert relation.node is not None
        match relation.node.test:
            case Name(label=label):
                self.open(f"if tag == {label!r}:" + self._describe(relation))
            case Wildcard() | Variable() | AnyNode():
                self.open("if True:" + self._describe(relation))
            case _:
                return  # a message's root is an element
        self._rows(relation, "e", _ELEMENT, bag)
        self.close()

    def _sum(self, axis: Axis, relation: Relation, at: str, bag: str) -> None:
        """Add the rows of a relation over all nodes that an axis reaches from an element."""
        if self.depth > DEEPEST:
            self._sum_apart(axis, relation, at, bag)
            return
        node = relation.node
        assert node is not None
        if axis is Axis.ATTRIBUTE:
            self._sum_attributes(relation, node, at, bag)
            return
        test = node.test
        if isinstance(test, AnyComment | AnyInstruction):
            return  # messages with such nodes are matched on a tree
        if axis is Axis.CHILD and isinstance(test, Variable | AnyNode | AnyText | Literal):
            self._sum_content(relation, node, at, bag)
            return
        if not isinstance(test, Literal | AnyText):
            self._sum_elements(axis, relation, node, at, bag)
        if not isinstance(test, Name | Wildcard) and axis is not Axis.SELF:
            self._sum_texts(axis, relation, node, at, bag)

    def _sum_apart(self, axis: Axis, relation: Relation, at: str, bag: str) -> None:
        """The same in a separate function, which is written when this one is done."""
        name = self.fresh("sum")
        self.is_split = True
        self.waiting.append((name, axis, relation, self.descents))
        self.line(f"{bag} = {name}({at}, t, m, work, {bag})")

    def _write_apart(self) -> None:
        """Write the pending functions and those that they add, in a loop without recursion."""
        while self.waiting:
            name, axis, relation, self.descents = self.waiting.pop()
            self.depth = 0
            self.open(f"def {name}(top, t, m, work, found):")  # `e` is the message's root
            self._sum(axis, relation, "top", "found")
            self.line("return found")

    def _sum_elements(
        self, axis: Axis, relation: Relation, node: PatternNode, at: str, bag: str
    ) -> None:
        child = self.fresh("e")
        tag = repr(node.test.label) if isinstance(node.test, Name) else ""
        described = self._describe(relation)
        if axis is Axis.SELF:
            self.open((f"if {at}.tag == {tag}:" if tag else f"if is_element({at}):") + described)
            self._rows(relation, at, _ELEMENT, bag)
            self.close()
            return
        few = _KIDS if at == "e" else f" in {at}[:] if len({at}) < {_FEW} "
        reach = {
            Axis.CHILD: f"{few}else {at}.iterchildren({tag})",
            Axis.DESCENDANT: f" in {at}.iterdescendants({tag})",
            Axis.DESCENDANT_OR_SELF: f" in {at}.iter({tag})",
        }[axis]
        self.open(f"for {child}{reach}:{described}")
        levels = 1
        self._descend(axis)
        if not tag or axis is Axis.CHILD:
            self.open(f"if {child}.tag == {tag}:" if tag else f"if is_element({child}):")
            levels = 2
        self._rows(relation, child, _ELEMENT, bag)
        self.close(levels)
        self.descents -= axis in _DESCENT

    def _descend(self, axis: Axis) -> None:
        """Meter the iterations of nested loops over descendants, which multiply."""
        self.descents += axis in _DESCENT
        if axis in _DESCENT and self.descents > 1:
            self.line("work.spend(1)")
            self.counts = True

    def _sum_content(self, relation: Relation, node: PatternNode, at: str, bag: str) -> None:
        """Texts, or elements and texts, in an element; usually it has a single text."""
        self.open(f"if len({at}):{self._describe(relation)}")
        if isinstance(node.test, Variable | AnyNode):
            self._sum_elements(Axis.CHILD, relation, node, at, bag)
        self._sum_texts(Axis.CHILD, relation, node, at, bag)
        self.close()
        self.open("else:")
        text = self.fresh("s")
        self.line(f"{text} = {at}.text")
        if isinstance(node.test, Literal):
            self.open(f"if {text} == {node.test.text!r}:" if node.test.text else "if False:")
        else:
            self.open(f"if {text}:")
        self._rows(relation, text, _TEXT, bag)
        self.close(2)

    def _sum_texts(
        self, axis: Axis, relation: Relation, node: PatternNode, at: str, bag: str
    ) -> None:
        text = self.fresh("s")
        reach = f"texts({at})" if axis is Axis.CHILD else f"all_texts({at})"
        self.open(f"for {text} in {reach}:{self._describe(relation)}")
        self._descend(axis)
        if isinstance(node.test, Literal):
            self.open(f"if {text} == {node.test.text!r}:" if node.test.text else "if False:")
        else:
            self.open(f"if {text}:")
        self._rows(relation, text, _TEXT, bag)
        self.close(2)
        self.descents -= axis in _DESCENT

    def _sum_attributes(self, relation: Relation, node: PatternNode, at: str, bag: str) -> None:
        text = self.fresh("s")
        if isinstance(node.test, Name):
            self.line(f"{text} = {at}.get({node.test.label!r})")
            self.open(f"if {text} is not None:{self._describe(relation)}")
            self._rows(relation, text, _ATTRIBUTE, bag, repr(f"@{node.test.label}"))
        else:
            name = self.fresh("a")
            self.open(f"for {name}, {text} in {at}.attrib.items():{self._describe(relation)}")
            self._rows(relation, text, _ATTRIBUTE, bag, f"'@' + {name}")
        self.close()

    def _rows(self, relation: Relation, at: str, kind: str, bag: str, label: str = "") -> None:
        """Add the rows of a relation at one node to a bag (or its count to a number)."""
        levels = self._compare(relation, at, kind)
        own = [self._own(source, at, kind, label) for _, source in relation.own]
        if self._is_simple(relation):
            levels += self._rows_inline(relation, own, at, kind, bag, label)
        else:
            self._rows_joined(relation, own, at, kind, bag, label)
        self.close(levels)

    def _compare(self, relation: Relation, at: str, kind: str) -> int:
        node = relation.node
        text = at if kind != _ELEMENT else f"value({at})"
        conditions = []
        for one in node.comparisons if node is not None else ():
            if isinstance(one.operand, Variable):
                continue
            if one.operator == "=" and isinstance(one.operand, str):
                conditions.append(f"{text} == {one.operand!r}")
            else:
                check = self.constant("compare", comparison(one.operator, one.operand))
                conditions.append(f"{check}({text})")
        if conditions:
            self.open(f"if {' and '.join(conditions)}:")
        return bool(conditions)

    def _own(self, source: str, at: str, kind: str, label: str) -> str:
        if source == "time":
            return "t"
        if source == "value":
            return at if kind != _ELEMENT else f"value({at})"
        return {_ELEMENT: f"{at}.tag", _TEXT: at, _ATTRIBUTE: label}[kind]

    def _is_simple(self, relation: Relation) -> bool:
        """Whether no join is needed: at most one part has columns, and none are shared."""
        if relation.choices or relation.absences or len(relation.edges) > DEEPEST:
            return False
        own = [column for column, _ in relation.own]
        carrying = [e for e in relation.edges if e.relation.columns]
        columns = own + [c for e in carrying for c in e.relation.columns]
        return len(carrying) <= 1 and len(set(columns)) == len(columns)

    def _rows_inline(
        self, relation: Relation, own: list[str], at: str, kind: str, bag: str, label: str
    ) -> int:
        """Write the counts first, each an early exit; then the one part with rows."""
        levels = 0
        factors: list[str] = []
        carrying: Edge | None = None
        for edge in relation.edges:
            if edge.relation.columns:
                carrying = edge
                continue
            number = self.fresh("n")
            self.line(f"{number} = 0")
            self._edge(edge, at, kind, number, label)
            self.open(f"if {number}:")
            levels += 1
            factors.append(number)
        if carrying is None:
            self._emit(relation, own, [], bag, " * ".join(factors) or "1")
        elif (
            not relation.own
            and not relation.tests
            and not factors
            and (carrying.relation.columns == relation.columns)
        ):
            self._edge(carrying, at, kind, bag, label)
        else:
            rows, row, count = self.fresh("rows"), self.fresh("r"), self.fresh("c")
            self.line(f"{rows} = {{}}")
            self._edge(carrying, at, kind, rows, label)
            self.open(f"for {row}, {count} in {rows}.items():")
            parts = [f"{row}[{i}]" for i in range(len(carrying.relation.columns))]
            self._emit(relation, own, parts, bag, " * ".join([count, *factors]), carrying)
            self.close()
        return levels

    def _emit(
        self,
        relation: Relation,
        own: list[str],
        parts: list[str],
        bag: str,
        count: str,
        carrying: Edge | None = None,
    ) -> None:
        """Write code that adds one row, if the relation's tests hold."""
        layout = [column for column, _ in relation.own]
        layout += carrying.relation.columns if carrying is not None else ()
        values = dict(zip(layout, [*own, *parts], strict=True))
        checks = [self.constant("test", make_check(test, layout)) for test in relation.tests]
        if checks:
            row = ", ".join(values[c] for c in layout)
            self.open(f"if {' and '.join(f'{check}(({row},))' for check in checks)}:")
        if relation.columns:
            key = self.fresh("k")
            self.line(f"{key} = ({', '.join(values[c] for c in relation.columns)},)")
            self.line(f"{bag}[{key}] = {bag}.get({key}, 0) + {count}")
        else:
            self.line(f"{bag} += {count}")
        self.close(len(checks[:1]))

    def _edge(self, edge: Edge, at: str, kind: str, bag: str, label: str) -> None:
        """Write the rows of an edge from a node; texts have no content, attributes have a text."""
        if kind == _ELEMENT:
            self._sum(edge.axis, edge.relation, at, bag)
            return
        node = edge.relation.node
        assert node is not None
        into_text = kind == _ATTRIBUTE and edge.axis in (Axis.CHILD, Axis.DESCENDANT)
        stays = edge.axis in (Axis.SELF, Axis.DESCENDANT_OR_SELF)
        if into_text or (kind == _ATTRIBUTE and edge.axis is Axis.DESCENDANT_OR_SELF):
            self._text_passes(edge.relation, node, at, bag)
        if stays and kind == _TEXT:
            self._text_passes(edge.relation, node, at, bag)
        if (
            stays
            and kind == _ATTRIBUTE
            and isinstance(node.test, AnyNode)
            and edge.axis is Axis.SELF
        ):
            self._rows(edge.relation, at, _ATTRIBUTE, bag, label)

    def _text_passes(self, relation: Relation, node: PatternNode, at: str, bag: str) -> None:
        match node.test:
            case Literal(text=text):
                self.open(f"if {at} == {text!r}:{self._describe(relation)}")
            case AnyText() | AnyNode() | Variable():
                self.open("if True:" + self._describe(relation))
            case _:
                return
        self._rows(relation, at, _TEXT, bag)
        self.close()

    def _rows_joined(
        self, relation: Relation, own: list[str], at: str, kind: str, bag: str, label: str
    ) -> None:
        """Write the general case: a bag for each part, joined by the relation's plan."""
        rows = self._joined(relation, own, at, kind, label)
        row, count = self.fresh("r"), self.fresh("c")
        self.open(f"for {row}, {count} in {rows}.items():")
        if relation.columns:
            self.line(f"{bag}[{row}] = {bag}.get({row}, 0) + {count}")
        else:
            self.line(f"{bag} += {count}")
        self.close()

    def _joined(self, relation: Relation, own: list[str], at: str, kind: str, label: str) -> str:
        """Write code for a relation's bag at a node; the name of the bag."""
        bags = [self._edge_bag(edge, at, kind, label) for edge in relation.edges]
        alternatives = []
        for choice in relation.choices:
            each = [self._joined(a, [], at, kind, label) for a in choice.alternatives]
            inside = f"({', '.join(each)},)"
            alternatives.append(inside)
            merged = self.fresh("bag")
            columns = self.constant("columns", choice.columns)
            relations = self.constant("relations", choice.alternatives)
            self.line(f"{merged} = distinct({columns}, {relations}, {inside})")
            bags.append(merged)
        bodies = [self._joined(absence.body, [], at, kind, label) for absence in relation.absences]
        plan = self.constant("plan", JoinPlan(relation))
        rows = self.fresh("bag")
        tables = f"Tables({_tuple(alternatives)}, {_tuple(bodies)})"
        most = self.limits.rows
        self.line(f"{rows} = {plan}.join({_tuple(own)}, {_tuple(bags)}, {tables}, {most}, work)")
        self.counts = True
        return rows

    def _edge_bag(self, edge: Edge, at: str, kind: str, label: str) -> str:
        bag = self.fresh("bag")
        if edge.relation.columns:
            self.line(f"{bag} = {{}}")
            self._edge(edge, at, kind, bag, label)
            return bag
        number = self.fresh("n")
        self.line(f"{number} = 0")
        self._edge(edge, at, kind, number, label)
        self.line(f"{bag} = {{(): {number}}} if {number} else {{}}")
        return bag


def _tuple(parts: list[str]) -> str:
    return f"({', '.join(parts)},)" if parts else "()"
