"""The generator of matchers: straight-line Python that evaluates relations on a parsed message.

A matcher gives the rows of the relations that a stream's messages can add to, with their counts. It
leaves a branch as soon as one of its tests fails. Branches without columns are counted first. The
branch with columns comes last, and its rows go straight into the result. Several branches with
columns are joined. `filter_generator.py` writes the same walks to say only whether there is a row.

Law: a matcher gives the same bags as `evaluate/interpreter.py` on the message's tree. The source is
kept (`Matcher.source`), with the pattern node of each loop as a comment.

Not handled: relations with node columns (`can_match`), because nodes of a message that is not
stored have no handles; messages with comments, for relations that may find them (`finds_markup`).

A text that a relation needs is searched for in the message's bytes before its walk: most messages
lack it. Two ideas were tried without gain: the same for names, and compiled XPath of lxml for a
whole relation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TypeAlias, cast

from axlog.document.parser import DEFAULT_LIMITS, Element, Limits
from axlog.evaluate.interpreter import distinct
from axlog.evaluate.joins import FEW, Bag, JoinPlan, Row, Tables, make_check
from axlog.evaluate.work import message_meter
from axlog.match.code_writer import CodeWriter
from axlog.match.walk_writer import DEEPEST, DOCUMENT, ELEMENT, Node, WalkWriter
from axlog.query.compile import Column, Edge, Relation
from axlog.query.pattern import Axis, Literal, Name, Variable

Match: TypeAlias = Callable[[Element, int, bytes], tuple[Bag, ...]]
"""From a message's root element, its time, and its UTF-8 bytes to its bags."""
Answers: TypeAlias = dict[Relation, Bag]
Sink: TypeAlias = Callable[[Row, int, Answers], None]
"""The bag that a row and its count are added to; at the document node, bags become answers."""
MOST_PARTS = 4
"""The most branches with columns that are joined by nested loops."""
MOST_STEPS = 3
"""The most steps of a branch that is counted in the pass over the children of its node."""
MOST_TEXTS = 4
"""The most texts of which one is searched for before a walk."""
MOST_NAMES = 3
"""The most names that are searched for in a message to rule out a relation."""
NO_SIGNS: Mapping[Relation, str] = {}


@lru_cache(maxsize=8192)
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


def tags_needed(relation: Relation) -> frozenset[bytes]:
    """The starts of tags that a message must contain to have a row of a relation.

    A name outside of namespaces is written without a prefix, any other with one or without.
    """
    node = relation.node
    found: set[bytes] = set()
    if node is not None and isinstance(node.test, Name):
        uri, _, local = node.test.label.rpartition("}")
        found.add(local.encode() if uri else b"<" + local.encode())
    below = (edge.relation for edge in relation.edges if edge.axis is not Axis.ATTRIBUTE)
    return frozenset(found).union(*map(tags_needed, below))


def sign_of(relation: Relation, is_inside: bool) -> str:
    """An expression: whether a message `m` may have a row of a relation; empty: it always may.

    By its bytes. A relation is matched at the message's root, or anywhere in it (`is_inside`).
    """
    node = relation.node
    tests: list[str] = []
    tags = tags_needed(relation)
    if node is not None and isinstance(node.test, Name) and not is_inside:
        start = b"<" + node.test.label.encode()
        if start in tags:
            tests.append(f"m.startswith({start!r})")
            tags -= {start}
    rare = sorted(tags, key=_rarest)[: MOST_NAMES - len(tests)]
    return " and ".join([*tests, *(f"m.find({tag!r}) >= 0" for tag in rare)])


def texts_needed(relation: Relation) -> frozenset[bytes]:
    """Texts that a message must contain, as it is written, to have a row of a relation.

    They hold for messages without references, comments, sections and instructions (`ODD_TEXT`).
    White space can be written in several ways, so texts with it are left out.
    """
    found: set[str] = set()
    node = relation.node
    if node is not None and isinstance(node.test, Literal):
        found.add(node.test.text)
    for edge in relation.edges:
        below = edge.relation.node
        if edge.axis is Axis.ATTRIBUTE and below is not None:
            found |= {
                one.operand
                for one in below.comparisons
                if one.operator == "=" and isinstance(one.operand, str)
            }
    written = {
        text.encode(errors="ignore") for text in found if text.isprintable() and " " not in text
    }
    of_edges = (texts_needed(edge.relation) for edge in relation.edges)
    return frozenset(text for text in written if len(text) > 1).union(*of_edges)


ODD_TEXT = (b"&", b"!", b"?")
"""What a message contains in which a text may not stand as it is written: references, sections,
comments, instructions. One byte is found ten times faster than two of which the first is `<`."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """A compiled matcher: the relations at a message's root, and those anywhere in the message."""

    here: tuple[Relation, ...]
    everywhere: tuple[Relation, ...]
    source: str
    run: Match = field(repr=False)


def generate(
    here: Iterable[Relation], everywhere: Iterable[Relation], limits: Limits = DEFAULT_LIMITS
) -> Matcher:
    """Make a matcher for relations wanted at the root of messages and anywhere in them.

    A message whose branches join to more rows than the limits allow raises AX215 or AX216.
    """
    here, everywhere = tuple(here), tuple(everywhere)
    writer = RowWriter(limits)
    source = writer.function(here, everywhere)
    return Matcher(here, everywhere, source, cast("Match", writer.compiled("match", source)))


# Rows ---------------------------------------------------------------------------------------------

Emit: TypeAlias = Callable[[dict[Column, str], str], None]
"""Writes the use of one row: the expressions of its columns, and that of its count."""


@dataclass(frozen=True, slots=True)
class _IntoBag:
    """Writes the addition of a row to a bag, or of its count to a number."""

    writer: CodeWriter
    columns: tuple[Column, ...]
    bag: str

    def __call__(self, values: dict[Column, str], count: str) -> None:
        bag = self.bag
        if not self.columns:
            self.writer.line(f"{bag} += {count}")
            return
        key = self.writer.fresh("k")
        self.writer.line(f"{key} = {_tuple([values[column] for column in self.columns])}")
        self.writer.line(f"{bag}[{key}] = {bag}.get({key}, 0) + {count}")


class RowWriter(WalkWriter):
    """Writes a function that returns a bag for each relation, or the body of one (`bags`)."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self.limits = limits
        self.meters = False  # whether the code counts its work: it joins, or loops inside loops
        self.constants |= {"Tables": Tables, "distinct": distinct, "message_meter": message_meter}

    def function(self, here: tuple[Relation, ...], everywhere: tuple[Relation, ...]) -> str:
        self.open("def match(e, t, m):")
        found = self.bags(here, everywhere)
        self.line(f"return {_tuple([as_bag(relation, name) for relation, name in found])}")
        self.end()
        return "\n".join(self.lines) + "\n"

    def bags(
        self,
        here: tuple[Relation, ...],
        everywhere: tuple[Relation, ...],
        signs: Mapping[Relation, str] = NO_SIGNS,
    ) -> list[tuple[Relation, str]]:
        """Write the matching of a message: its root `e`, its time `t` and its bytes `m`.

        Each relation with the variable that has its bag, or its number if it has no columns.
        `signs` are variables that say whether it may have rows of a relation of `everywhere`.
        """
        self._start = len(self.lines), self.depth
        document = Node("e", DOCUMENT)
        bags = {relation: self._zero(relation) for relation in here}
        deep = {relation: self._zero(relation) for relation in everywhere}
        for group in _by_label(here):
            levels = self.open_if_written(group)
            self.walk(Axis.CHILD, group[0], document, partial(self._at_root, group, bags))
            self.close(levels)
        for relation, bag in deep.items():
            sign = signs.get(relation)
            levels = self.open_if([sign]) if sign else self.open_if_written([relation])
            self.write_edge(Edge(Axis.DESCENDANT, relation), document, self._into(relation, bag))
            self.close(levels)
        return [*bags.items(), *deep.items()]

    def end(self) -> None:
        """Write the separate functions, and the meter that all share."""
        is_split = self.write_apart(", t, work")
        if self.meters or is_split:
            made = f"message_meter({self.limits.work})" if is_split and self.meters else "None"
            line, depth = self._start
            self.lines.insert(line, "    " * depth + f"work = {made}")

    def open_if_written(self, relations: list[Relation]) -> int:
        """Start a block for messages that may contain the texts that some relation needs."""
        needed = [min(texts_needed(each), key=_rarest, default=b"") for each in relations]
        if not all(needed) or len(needed) > MOST_TEXTS:
            return 0
        odd = [f"m.find({text!r}) >= 0" for text in (*dict.fromkeys(needed), *ODD_TEXT)]
        self.open(f"if {' or '.join([*odd, 'not m'])}:")
        return 1

    def _at_root(self, group: list[Relation], bags: dict[Relation, str], at: Node) -> None:
        """The rows of relations with the same label at the message's root."""
        is_shared = self.share_children([edge for each in group for edge in each.edges], at)
        self._rows_of_all([(each, self._into(each, bags[each])) for each in group], at)
        if is_shared:
            self.forget_children(at)

    def _rows_of_all(self, wanted: list[tuple[Relation, Emit]], at: Node) -> None:
        """The rows of several relations at a node. Relations that only go on alike share a walk."""
        walks: dict[object, list[tuple[Relation, Emit]]] = {}
        is_deep = self.depth > self.deepest
        for relation, emit in wanted:
            walk = None if is_deep else _only_walk(relation)
            walks.setdefault(walk or relation, []).append((relation, emit))
        for together in walks.values():
            if len(together) == 1:
                relation, emit = together[0]
                self._rows(relation, at, emit)
                continue
            below = [(relation.edges[0].relation, emit) for relation, emit in together]
            axis = together[0][0].edges[0].axis
            self.walk(axis, below[0][0], at, partial(self._rows_of_all, below))

    def descend(self) -> None:
        """Meter the iterations of nested loops over descendants, which multiply."""
        super().descend()
        if self.descents > 1:
            self._meter()
            self.line("work.spend(1)")

    def _meter(self) -> None:
        """Make the message's meter, which most messages do not need, on first use."""
        self.line(f"work = work or message_meter({self.limits.work})")
        self.meters = True

    # Bags -----------------------------------------------------------------------------------------

    def _zero(self, relation: Relation) -> str:
        """Start a bag, or a number for a relation without columns; its name."""
        name = self.fresh("bag" if relation.columns else "n")
        self.line(f"{name} = {'{}' if relation.columns else '0'}")
        return name

    def _into(self, relation: Relation, bag: str) -> Emit:
        return _IntoBag(self, relation.columns, bag)

    def _found(self, edge: Edge, at: Node) -> str:
        """The bag of an edge, or its number; the name of the variable."""
        number = self.counted(edge, at)
        if number is not None:
            return number
        if self.depth <= self.deepest or at.kind != ELEMENT:
            name = self._zero(edge.relation)
            self.write_edge(edge, at, self._into(edge.relation, name))
            return name

        def write(top: Node) -> None:
            self.line(f"return {self._found(edge, top)}")

        name = self.fresh("bag" if edge.relation.columns else "n")
        self.line(f"{name} = {self.apart('part', at, write)}({at.name}, t, work)")
        return name

    def counts(self, edge: Edge) -> bool:
        """Whether a branch has no columns and is short: no descendants, no connectives."""
        relation = edge.relation
        return not relation.columns and _is_short(relation, MOST_STEPS)

    def count(self, edge: Edge, at: Node, number: str) -> None:
        self._rows(edge.relation, at, self._into(edge.relation, number))

    # Relations ------------------------------------------------------------------------------------

    def write_edge(self, edge: Edge, at: Node, emit: Emit) -> None:
        """The rows of a relation at all nodes that an edge reaches."""
        self.walk(edge.axis, edge.relation, at, lambda node: self._rows(edge.relation, node, emit))

    def _rows(self, relation: Relation, at: Node, emit: Emit) -> None:
        """The rows of a relation at a node that passes its test."""
        levels = self.open_if(self.comparisons(relation, at))
        is_shared = self.share_children(list(relation.edges), at)
        parts = [edge for edge in relation.edges if edge.relation.columns]
        columns = [column for column, _ in relation.own]
        has_duplicates = len(set(columns)) < len(columns)
        columns += [column for edge in parts for column in edge.relation.columns]
        if (
            relation.choices
            or relation.absences
            or has_duplicates
            or len(parts) > MOST_PARTS
            or len(relation.edges) > DEEPEST
        ):
            self._rows_of_plan(relation, at, emit)
        elif len(parts) < 2 and len(set(columns)) == len(columns):
            levels += self._rows_of_walk(relation, at, parts, emit)
        else:
            levels += self.rows_of_loops(relation, at, parts, emit)
        self.close(levels)
        if is_shared:
            self.forget_children(at)

    def count_branches(self, edges: list[Edge], at: Node) -> list[str]:
        """Count the rows of branches, each an early exit; one block for each stays open."""
        numbers = []
        for edge in edges:
            numbers.append(self._found(edge, at))
            self.open(f"if {numbers[-1]}:")
        return numbers

    def _rows_of_walk(self, relation: Relation, at: Node, parts: list[Edge], emit: Emit) -> int:
        """One branch with columns at most: its rows are used where they are found."""
        counted = [edge for edge in relation.edges if edge not in parts]
        last = parts[0] if parts else None
        if last is None and counted and not (relation.columns or relation.own):
            last = next((edge for edge in counted if self.counted(edge, at) is None), None)
            counted = [edge for edge in counted if edge is not last]
        is_deep = self.depth > self.deepest
        numbers = self.count_branches(counted, at)
        own = self.own_columns(relation, at)

        def use(values: dict[Column, str], count: str) -> None:
            self.use_row(relation, own | values, product([count, *numbers]), emit)

        if last is None:
            use({}, "1")
        elif not is_deep:
            self.write_edge(last, at, use)
        else:
            self._use_all(last.relation, self._found(last, at), use)
        return len(numbers)

    def rows_of_loops(self, relation: Relation, at: Node, parts: list[Edge], emit: Emit) -> int:
        """Several branches with columns: nested loops over few rows, else the relation's plan."""
        edges = [edge for edge in relation.edges if edge not in parts] + parts
        found = dict(zip(edges, self.count_branches(edges, at), strict=True))
        own = self.own_columns(relation, at)
        bags = [as_bag(edge.relation, found[edge]) for edge in relation.edges]
        self.open(f"if {' * '.join(f'len({found[edge]})' for edge in parts)} > {FEW}:")
        rows = self._join(relation, [own[column] for column, _ in relation.own], bags, "Tables()")
        is_flat = isinstance(emit, _IntoBag) and emit.columns == relation.columns
        if is_flat:  # otherwise the code that uses a row may be large, and is written once
            self._each(relation.columns, rows, emit)
        elif not relation.columns:
            self.line(f"{rows} = sum({rows}.values())")
        self.close()
        self.open("else:")
        if not is_flat:
            self.line(f"{rows} = {'{}' if relation.columns else '0'}")
        values, depth = dict(own), self.depth
        counts = [name for edge, name in found.items() if edge not in parts]
        for edge in parts:
            row, count = self.fresh("r"), self.fresh("c")
            self.open(f"for {row}, {count} in {found[edge]}.items():")
            counts.append(count)
            columns = edge.relation.columns
            same = [f"{values[c]} == {row}[{i}]" for i, c in enumerate(columns) if c in values]
            values = {c: f"{row}[{i}]" for i, c in enumerate(columns)} | values
            self.open_if(same)
        into = emit if is_flat else self._into(relation, rows)
        self.use_row(relation, values, product(counts), into)
        self.close(self.depth - depth + 1)
        if not is_flat:
            self._use_all(relation, rows, emit)
        return len(found)

    def _rows_of_plan(self, relation: Relation, at: Node, emit: Emit) -> None:
        """The general case: a bag for each part, joined by the relation's plan."""
        self._each(relation.columns, self._joined(relation, at), emit)

    def _joined(self, relation: Relation, at: Node) -> str:
        """The bag of a relation at a node; its name."""
        bags = [as_bag(edge.relation, self._found(edge, at)) for edge in relation.edges]
        alternatives = []
        for choice in relation.choices:
            inside = _tuple([self._joined(each, at) for each in choice.alternatives])
            alternatives.append(inside)
            merged = self.fresh("bag")
            columns = self.constant("columns", choice.columns)
            relations = self.constant("relations", choice.alternatives)
            self.line(f"{merged} = distinct({columns}, {relations}, {inside})")
            bags.append(merged)
        bodies = [self._joined(absence.body, at) for absence in relation.absences]
        own = [self._own_column(source, at) for _, source in relation.own]
        return self._join(relation, own, bags, f"Tables({_tuple(alternatives)}, {_tuple(bodies)})")

    def _join(self, relation: Relation, own: list[str], bags: list[str], tables: str) -> str:
        """The bag of a relation, by its plan; its name."""
        self._meter()
        rows, most = self.fresh("bag"), self.limits.rows
        plan = self.constant("plan", JoinPlan(relation))
        self.line(f"{rows} = {plan}.join({_tuple(own)}, {_tuple(bags)}, {tables}, {most}, work)")
        return rows

    def _each(self, columns: tuple[Column, ...], bag: str, use: Emit) -> None:
        """Use every row of a bag."""
        row, count = self.fresh("r"), self.fresh("c")
        self.open(f"for {row}, {count} in {bag}.items():")
        use({column: f"{row}[{i}]" for i, column in enumerate(columns)}, count)
        self.close()

    def _use_all(self, relation: Relation, found: str, use: Emit) -> None:
        """Use the rows of a bag, or a number."""
        if relation.columns:
            self._each(relation.columns, found, use)
        else:
            self.open(f"if {found}:")
            use({}, found)
            self.close()

    def own_columns(self, relation: Relation, at: Node) -> dict[Column, str]:
        """The node's own columns; a value that must be built is built once."""
        return {
            column: self.own_value(at)
            if source == "value" and at.kind == ELEMENT
            else self._own_column(source, at)
            for column, source in relation.own
        }

    def own_value(self, at: Node) -> str:
        """Write the value of an element; the variable that has it."""
        name = self.fresh("v")  # an element usually has a single text
        self.line(f"{name} = {self.value_of(at)} if len({at.name}) else {at.name}.text or ''")
        return name

    def _own_column(self, source: str, at: Node) -> str:
        """An own column of a node, as an expression."""
        if source == "time":
            return "t"
        return self.value_of(at) if source == "value" else self.label_of(at)

    def use_row(
        self, relation: Relation, values: dict[Column, str], count: str, emit: Emit
    ) -> None:
        """Use a row, if the relation's tests hold."""
        layout, row = list(values), _tuple(list(values.values()))
        checks = [self.constant("test", make_check(test, layout)) for test in relation.tests]
        levels = self.open_if([f"{check}({row})" for check in checks])
        emit({column: values[column] for column in relation.columns}, count)
        self.close(levels)


def _by_label(relations: tuple[Relation, ...]) -> list[list[Relation]]:
    """Relations with a name as their test, by that name; each other relation alone."""
    groups: dict[object, list[Relation]] = {}
    for relation in relations:
        test = relation.node.test if relation.node is not None else None
        groups.setdefault(test.label if isinstance(test, Name) else relation, []).append(relation)
    return list(groups.values())


def _only_walk(relation: Relation) -> object | None:
    """The walk of a relation that passes on the rows of one branch; None: it does more."""
    edges, node = relation.edges, relation.node
    if node is None or len(edges) != 1 or edges[0].relation.columns != relation.columns:
        return None
    if relation.own or relation.tests or relation.choices or relation.absences or node.comparisons:
        return None
    below = edges[0].relation.node
    test = None if below is None else below.test
    if isinstance(test, Name):
        return edges[0].axis, test
    return (edges[0].axis, Variable) if isinstance(test, Variable) else None


def as_bag(relation: Relation, name: str) -> str:
    """A bag as an expression, from a variable with a bag or a number."""
    return name if relation.columns else f"{{(): {name}}} if {name} else {{}}"


def _is_short(relation: Relation, steps: int) -> bool:
    """Whether a relation goes down at most some steps, and only by children and attributes."""
    if relation.choices or relation.absences or relation.tests or not steps:
        return False
    return all(
        edge.axis in (Axis.CHILD, Axis.ATTRIBUTE) and _is_short(edge.relation, steps - 1)
        for edge in relation.edges
    )


def _rarest(text: bytes) -> tuple[int, bytes]:
    """The order of texts to search for: long ones are rarer and faster to search for."""
    return -len(text), text


def product(counts: list[str]) -> str:
    return " * ".join(count for count in counts if count != "1") or "1"


def _tuple(parts: list[str]) -> str:
    return f"({', '.join(parts)},)" if parts else "()"
