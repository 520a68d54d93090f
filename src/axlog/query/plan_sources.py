"""The sources of collections: the longest beginnings of paths and queries that are patterns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from axlog.document.parser import Limits
from axlog.errors import QueryError
from axlog.query.compile import compile_pattern
from axlog.query.normalize import check
from axlog.query.pattern_fragment import refuse_beyond
from axlog.query.plan import (
    ChosenOf,
    Collection,
    Index,
    KeysOf,
    Leaf,
    OutputItems,
    Source,
    UnionOf,
)
from axlog.query.plan_rewrites import (
    conjuncts,
    has_positional_filter,
    in_context,
    is_position,
    position_bounds,
    reads_nodes,
    references_in,
)
from axlog.query.syntax_tree import (
    Call,
    Clause,
    Expression,
    For,
    ForAt,
    Group,
    Kept,
    Let,
    Path,
    Reference,
    Root,
    Step,
    Where,
)
from axlog.query.value_kinds import ValueKind, kind_of_value
from axlog.query.xquery_compiler import XQueryCompiler

MOST_COLLECTIONS = 64
DOWN = frozenset(("child", "attribute", "self"))
"""Axes that lead from different nodes to different nodes, step by step."""


class TooManyCollections(Exception):
    """The plan of a query would keep more than `MOST_COLLECTIONS` collections."""


@dataclass(slots=True)
class Block:
    """A query in the making: its source, the variables that it binds, the clauses that follow."""

    source: Source | None
    leaf: list[Clause] = field(default_factory=list)  # the clauses of a `Leaf`
    clauses: list[Clause] = field(default_factory=list)
    variable: str = ""  # of the last step of a path


def names_of(block: Block) -> tuple[str, ...]:
    """The variables that the source of a block binds."""
    match block.source:
        case Leaf(names=names) | KeysOf(names=names):
            return names
        case ChosenOf(name=name) | UnionOf(name=name):
            return (name,)
    return ()


def is_value_step(step: object) -> bool:
    """Whether a step may give values in place of nodes: a call, or the operand of `!`."""
    return isinstance(step, Call) or (isinstance(step, Group) and step.is_map)


class PlanBuilder:
    """The collections of a plan in the making, and what is known of its variables."""

    def __init__(self, text: str, limits: Limits) -> None:
        self.text = text
        self.collections: list[Collection] = []
        self.kinds: dict[str, ValueKind] = {}
        self.given: set[str] = set()  # external variables: the same in every tuple
        self.chains: dict[str, list[For]] = {}  # by variable, the `for` clauses that bind it
        self.has_mixed_positions = False  # conditions on positions and on what nodes contain
        self._limits = limits
        self._numbers = count(1)

    def add(self, collection: Collection) -> int:
        """Add a collection; its number."""
        if len(self.collections) >= MOST_COLLECTIONS:
            raise TooManyCollections
        self.collections.append(collection)
        return len(self.collections) - 1

    def new_name(self, wanted: str = "n") -> str:
        """A name for a variable that the query does not have."""
        return f"{wanted}~n{next(self._numbers)}"

    def leaf(self, clauses: Sequence[Clause]) -> Leaf | None:
        """The pattern of `for` and `where` clauses; None if patterns do not express them."""
        try:
            for clause in clauses:
                refuse_beyond(clause, self.text)  # type: ignore[arg-type]
            pattern, names = XQueryCompiler(self.text).tuples(clauses)
            check(pattern, limits=self._limits)
            if compile_pattern(pattern).refusal is not None:
                return None
        except QueryError:
            return None
        return Leaf(pattern, names)

    def note_kind(self, clause: Clause) -> None:
        """Note the kind of the variable that a clause declares."""
        if isinstance(clause, For):
            self.kinds[clause.variable] = kind_of_value(clause.source, self.kinds)
            if isinstance(clause, ForAt):
                self.kinds[clause.position] = "number"
        elif isinstance(clause, Let):
            self.kinds[clause.variable] = kind_of_value(clause.value, self.kinds)

    def note_chains(self, block: Block) -> None:
        """Note how the pattern of a block binds each variable."""
        loops = {clause.variable: clause for clause in block.leaf if isinstance(clause, For)}
        for name in loops:
            needed, waiting = {name}, [name]
            while waiting:
                more = references_in(loops[waiting.pop()]) & loops.keys() - needed
                needed |= more
                waiting += more
            self.chains[name] = [clause for each, clause in loops.items() if each in needed]


class SourceCompiler:
    """Compiles paths to sources; `rewritten` puts look-ups into the expressions of a tuple."""

    def __init__(self, builder: PlanBuilder, rewritten: Callable[[Any], Any]) -> None:
        self._builder = builder
        self._rewritten = rewritten

    def loop(self, path: Path, clause: For) -> Block | None:
        """The block of `for` over a path from the document."""
        if has_positional_filter(path.steps):
            return None
        found = self.block(path, clause.variable)
        if found is None:
            return None
        block, left = found
        self._builder.kinds[clause.variable] = kind_of_value(path, self._builder.kinds)
        if not left:
            if block.variable != clause.variable:
                renamed = Path(Reference(block.variable, clause.at), (), clause.at)
                block.clauses.append(For(clause.variable, renamed, clause.at))
            return block
        tail = path.steps[len(path.steps) - left :]
        inside = Path(Reference(block.variable, clause.at), tail, clause.at)
        is_free = bool(
            references_in((inside, *block.clauses)) - set(names_of(block)) - self._builder.given
        )
        nodes, values = (tail[:-1], tail[-1:]) if is_value_step(tail[-1]) else (tail, ())
        if _keeps_order(path.steps[: len(path.steps) - left], nodes):
            block.clauses.append(For(clause.variable, inside, clause.at))
            return block
        if is_free:
            return None
        keyed = Collection(
            block.source,
            tuple(self._rewritten(each) for each in block.clauses),
            index=Index("node", (self._rewritten(replace(inside, steps=nodes)),)),
        )
        name = self._builder.new_name() if values else clause.variable
        made = Block(KeysOf(self._builder.add(keyed), (name,)))
        if values:
            self._builder.kinds[name] = "untyped"
            each = Path(Reference(name, clause.at), values, clause.at)
            made.clauses.append(For(clause.variable, each, clause.at))
        return made

    def block(self, path: Path, variable: str | None) -> tuple[Block, int] | None:
        """The block of the longest beginning of a path, and the number of steps that are left."""
        steps = path.steps
        name = variable or self._builder.new_name()
        best: tuple[int, Leaf, For] | None = None
        for length in range(len(steps), 0, -1):
            if isinstance(steps[length - 1], Step) and steps[length - 1].is_slashes:  # type: ignore[union-attr]
                continue
            clause = For(name, Path(path.start, steps[:length], path.at), path.at)
            leaf = self._builder.leaf([clause])
            if leaf is not None:
                best = (length, leaf, clause)
                break
        if best is not None and best[0] == len(steps):
            self._builder.kinds[name] = "untyped"
            return Block(best[1], [best[2]], variable=name), 0
        done = 0 if best is None else best[0]
        longer = self._stripped(path, done, self._builder.new_name())
        if longer is not None:
            return longer
        if best is None:
            return None
        inner = self._builder.new_name()
        clause = replace(best[2], variable=inner)
        leaf = self._builder.leaf([clause])
        assert leaf is not None, "the name of the variable does not matter"
        self._builder.kinds[inner] = "untyped"
        return Block(leaf, [clause], variable=inner), len(steps) - done

    def _stripped(self, path: Path, done: int, name: str) -> tuple[Block, int] | None:
        """The block of the next step without the predicates that patterns do not express."""
        steps = path.steps
        at = done
        if at < len(steps) and isinstance(steps[at], Step) and steps[at].is_slashes:  # type: ignore[union-attr]
            at += 1
        if at >= len(steps):
            return None
        step = steps[at]
        if not isinstance(step, Step) or step.is_filter:
            return None
        for taken in range(len(step.predicates), -1, -1):
            tried = replace(step, predicates=step.predicates[:taken])
            clause = For(name, Path(path.start, (*steps[:at], tried), path.at), path.at)
            leaf = self._builder.leaf([clause])
            if leaf is None:
                continue
            self._builder.kinds[name] = "untyped"
            block = Block(leaf, [clause], variable=name)
            if self._with_predicates(block, step, step.predicates[taken:]):
                return block, len(steps) - at - 1
            return None
        return None

    def _with_predicates(self, block: Block, step: Step, predicates: Sequence[Any]) -> bool:
        """Add predicates to a block: as conditions, or as a choice by position."""
        for predicate in predicates:
            if not is_position(predicate.condition):
                condition = in_context(predicate.condition, block.variable)
                block.clauses += [Where(each, step.at) for each in conjuncts(condition)]
                continue
            if step.axis != "child" or self._mentions_outer(block):
                return False
            if references_in(predicate.condition):
                return False
            if reads_nodes(predicate.condition):  # siblings are evaluated together, at their parent
                self._builder.has_mixed_positions = True
                return False
            here = Path(Reference(block.variable, step.at), (), step.at)
            clauses = tuple(self._rewritten(each) for each in block.clauses)
            inner = Collection(
                block.source, clauses, index=Index("parent", (here,)), outputs=[OutputItems(here)]
            )
            name = self._builder.new_name()
            self._builder.kinds[name] = "untyped"
            bounds = position_bounds(predicate.condition)
            chosen = ChosenOf(self._builder.add(inner), name, predicate.condition, bounds)
            block.source, block.leaf, block.clauses, block.variable = chosen, [], [], name
        return True

    def _mentions_outer(self, block: Block) -> bool:
        return bool(
            references_in(tuple(block.clauses)) - set(names_of(block)) - self._builder.given
        )

    def below(self, inside: Expression) -> Kept | None:
        """A collection of the nodes below a variable that may have many, by that variable."""
        if not isinstance(inside, Path) or not isinstance(inside.start, Reference):
            return None
        chain = self._builder.chains.get(inside.start.name)
        if not chain or not inside.steps:
            return None
        if not _is_shallow(chain[-1].source) and not any(map(_descends, inside.steps)):
            return None
        name = self._builder.new_name()
        leaf = self._builder.leaf([*chain, For(name, inside, inside.at)])
        if leaf is None:
            return None
        here: tuple[Expression, ...] = (Path(inside.start, (), inside.at),)
        found = Path(Reference(name, inside.at), (), inside.at)
        made = Collection(
            leaf, index=Index("node", here), outputs=[OutputItems(found, is_path=True)]
        )
        return Kept(self._builder.add(made), 0, "all", here, inside.at)


def _descends(step: object) -> bool:
    return isinstance(step, Step) and step.axis.startswith("descendant")


def _keeps_order(before: Sequence[object], nodes: Sequence[object]) -> bool:
    """Whether steps from one node after the other find every node once, in document order.

    The children of an element follow the elements inside it that come before them.
    """
    if not all(isinstance(step, Step) and step.axis in DOWN for step in nodes):
        return False
    leads_to_children = any(isinstance(step, Step) and step.axis == "child" for step in nodes)
    return not leads_to_children or not any(map(_descends, before))


def _is_shallow(source: Expression) -> bool:
    """Whether a path leads to the root element or its children, which may have much below them."""
    match source:
        case Path(start=Root(), steps=steps):
            is_plain = all(isinstance(each, Step) and each.axis == "child" for each in steps)
            return is_plain and len(steps) <= 2
    return False


def may_repeat(returned: Expression) -> bool:
    """Whether a path that is evaluated tuple by tuple may give a node twice."""
    match returned:
        case Path(start=Reference(), steps=steps):
            return not all(isinstance(s, Step) and s.axis in DOWN for s in steps)
    return True
