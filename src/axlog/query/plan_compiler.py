"""The compiler of plans: XPath and XQuery beyond patterns, to collections that are kept.

A query with `for`, or a path, becomes a collection: the longest beginning of it that a pattern
expresses is its source, and the rest is evaluated for each tuple of the source. Inside the rest,
other queries and paths from the document become collections of their own, with look-ups in their
place:

- a condition that compares a value of the inner tuple with one of the outer tuple becomes the index
  of the inner collection: `=` by value, `<` and `>` by order
- where the inner query needs variables of the outer one elsewhere too, the look-up gives the inner
  tuples, and the outer tuple evaluates the rest for them
- `count(...)`, `sum(...)` and so on of a collection are kept, not computed
- `group by` and distinct-values() make a collection of the keys of another one
- positions among siblings choose from a collection by parent

What no collection expresses is evaluated with the tuple around it; at the top, with the whole
query, which `Plan.reevaluated` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.query.function_names import OF_ONE_ITEM
from axlog.query.plan import Collection, Index, KeysOf, Leaf, OutputItems, Plan
from axlog.query.plan_comparisons import GENERAL, ComparisonCompiler
from axlog.query.plan_groups import Regrouping
from axlog.query.plan_reads import AGAIN, whole_reads
from axlog.query.plan_rewrites import (
    conjuncts,
    declared_by,
    has_context,
    has_positional_filter,
    is_absolute,
    position_bounds,
    rebuilt,
    references_in,
)
from axlog.query.plan_sets import SETS, SetCompiler
from axlog.query.plan_simplification import prepared, refuse_undeclared
from axlog.query.plan_sources import (
    DOWN,
    MOST_COLLECTIONS,
    Block,
    PlanBuilder,
    SourceCompiler,
    TooManyCollections,
    is_value_step,
    may_repeat,
    names_of,
)
from axlog.query.syntax_tree import (
    Binary,
    Call,
    Clause,
    Counted,
    Expression,
    External,
    Flwor,
    For,
    ForKept,
    GroupBy,
    Kept,
    OrderBy,
    OrderKey,
    Path,
    Quantified,
    Reference,
    Root,
    Step,
    Transform,
    Where,
    walk,
)
from axlog.query.value_kinds import kind_of_value

AGGREGATES = frozenset("avg count empty exists max min sum".split())
"""The functions of collections that are kept."""
_READING = frozenset("avg max min sum".split())


@dataclass(slots=True)
class _Found:
    """A collection for an expression: closed if `rest` is None, else with the rest to evaluate."""

    collection: int
    keys: tuple[Expression, ...] = ()
    rest: tuple[tuple[Clause, ...], Expression] | None = None


class PlanCompiler:
    """Compiles one query text."""

    def __init__(self, text: str, limits: Limits = DEFAULT_LIMITS) -> None:
        self._text = text
        self._builder = PlanBuilder(text, limits)
        self._sources = SourceCompiler(self._builder, self.rewritten)
        self._comparisons = ComparisonCompiler(self._builder, self.rewritten)
        self._sets = SetCompiler(self._builder, self._alone)

    def plan(self, expression: Expression, namespaces: Iterable[tuple[str, str]] = ()) -> Plan:
        """The plan of a whole query."""
        self._builder.given = {c.variable for c in walk(expression) if isinstance(c, External)}
        refuse_undeclared(expression, self._builder.given, self._text)
        expression = prepared(expression)
        try:
            self._collect(expression)
            reason = whole_reads(self._builder.collections)
            if reason is None and self._builder.has_mixed_positions:
                reason = f"{AGAIN}: these positions"
        except TooManyCollections:
            whole = Collection(None, outputs=[OutputItems(expression)])
            self._builder.collections[:] = [whole]
            reason = f"{AGAIN}: it needs more than {MOST_COLLECTIONS} collections"
        self._builder.collections[-1].read.add(0)
        return Plan(tuple(self._builder.collections), self._text, tuple(namespaces), reason)

    def _collect(self, expression: Expression) -> None:
        """Make the collections of a whole query; the last one has its items."""
        found = self._collected(expression)
        if found is None or found.rest is not None or found.keys or not self._is_last(found):
            value = self.rewritten(expression) if found is None else self._looked_up(found, "all")
            self._builder.add(Collection(None, outputs=[OutputItems(value)]))

    def _is_last(self, found: _Found) -> bool:
        return found.collection == len(self._builder.collections) - 1

    # Expressions of a tuple -----------------------------------------------------------------------

    def rewritten(self, value: Any) -> Any:
        """An expression with look-ups in place of the collections in it."""
        match value:
            case Call(name=name, arguments=(inside,)) if name in AGGREGATES:
                return self._aggregate(value, inside)
            case Call(name="distinct-values", arguments=(inside,)):
                number = self._distinct(inside)
                if number is not None:
                    return Kept(number, 0, "all", (), value.at)
            case Call(name="not" | "boolean", arguments=(inside,)):
                return replace(value, arguments=(self._condition(inside),))
            case Call(name=name, arguments=arguments) if name in OF_ONE_ITEM:
                return replace(value, arguments=tuple(map(self._first_two, arguments)))
            case Call(name="if", arguments=(condition, first, second)):
                chosen = (self.rewritten(first), self.rewritten(second))
                return replace(value, arguments=(self._condition(condition), *chosen))
            case Binary(operator=operator) if operator in ("and", "or", *GENERAL):
                return self._condition(value)
            case Quantified():
                return self._condition(value)
            case Where(condition=condition):
                return replace(value, condition=self._condition(condition))
            case Binary(operator=operator) if operator in SETS:
                return self._set(value)
            case Path() | Flwor():
                found = self._collected(value)
                if found is not None:
                    return self._looked_up(found, "all")
                if isinstance(value, Path):
                    return self._path(value)
            case Transform(copies=copies, returned=returned):
                # the updates are not a query: no collection keeps them
                return replace(
                    value, copies=self.rewritten(copies), returned=self.rewritten(returned)
                )
        return rebuilt(value, self.rewritten)

    def _aggregate(self, call: Call, inside: Expression) -> Expression:
        argument = self._sources.below(inside) or self.rewritten(inside)
        if isinstance(argument, Kept) and argument.aspect == "all":
            if call.name in _READING:
                self._builder.collections[argument.collection].read.add(argument.output)
            return replace(argument, aspect=call.name, at=call.at)
        return replace(call, arguments=(argument,))

    def _first_two(self, argument: Expression) -> Expression:
        """An argument of which at most one item is allowed: a second one is as good as all."""
        found: Expression = self.rewritten(argument)
        if isinstance(found, Kept) and found.aspect == "all":
            return replace(found, aspect="1:2")
        return found

    def _looked_up(self, found: _Found, aspect: str) -> Expression:
        at = 0
        kept = Kept(found.collection, 0, aspect, found.keys, at)
        if found.rest is None:
            return kept
        clauses, returned = found.rest
        exposed = self._builder.collections[found.collection].exposed
        return Flwor((ForKept(exposed, kept, at), *clauses), returned, at)

    def _path(self, path: Path) -> Expression:
        """A path that is no collection; its start, or what a filter applies to, may be one."""
        for at, step in enumerate(path.steps):
            if isinstance(step, Step) and step.is_filter and at + 1 <= len(path.steps):
                before: Any = Path(path.start, path.steps[:at], path.at)
                if not at:
                    before = path.start
                    if isinstance(before, Root | Reference):
                        break
                start = self.rewritten(before)
                if not isinstance(start, Kept) or start.aspect != "all":
                    break
                return self._sliced(start, step, path.steps[at + 1 :], path.at)
        return Path(
            self.rewritten(path.start), tuple(self.rewritten(s) for s in path.steps), path.at
        )

    def _sliced(self, start: Kept, step: Step, rest: tuple[Any, ...], at: int) -> Expression:
        """A filter of a kept collection; a range of positions is kept as well."""
        predicates = step.predicates
        bounds = position_bounds(predicates[0].condition) if predicates else None
        if bounds is not None:
            start = replace(start, aspect=f"{bounds[0]}:{bounds[1]}")
            predicates = predicates[1:]
        steps = ((replace(step, predicates=predicates),) if predicates else ()) + rest
        if not steps:
            return start
        return Path(start, tuple(self.rewritten(each) for each in steps), at)

    # Conditions -----------------------------------------------------------------------------------

    def _condition(self, value: Expression) -> Expression:
        """A condition, of which only the truth counts."""
        match value:
            case Binary(operator="and" | "or", left=left, right=right):
                return replace(value, left=self._condition(left), right=self._condition(right))
            case Binary(operator=operator) if operator in GENERAL:
                return self._compared(value)
            case Quantified():
                return self._quantified(value)
        found = self.rewritten(value)
        is_nodes = kind_of_value(value, self._builder.kinds) == "untyped" and isinstance(
            value, Path
        )
        if isinstance(found, Kept) and found.aspect == "all" and is_nodes:
            return replace(found, aspect="exists")
        return found  # type: ignore[no-any-return]

    def _quantified(self, value: Quantified) -> Expression:
        """`some` and `every`: whether a query finds something; nested ones are one query."""
        loops = [For(value.variable, value.source, value.at)]
        held = value.condition
        while isinstance(held, Quantified) and held.is_every == value.is_every:
            loops.append(For(held.variable, held.source, held.at))
            held = held.condition
        if not is_absolute(value.source):
            inside = self._condition(value.condition)
            return replace(value, source=self.rewritten(value.source), condition=inside)
        if value.is_every:
            held = Call("not", (held,), value.at)
        item = Path(Reference(value.variable, value.at), (), value.at)
        loop = Flwor((*loops, Where(held, value.at)), item, value.at)
        # A truth value in place of nodes: the item itself may be a false value.
        name = "empty" if value.is_every else "exists"
        return self.rewritten(Call(name, (loop,), value.at))  # type: ignore[no-any-return]

    def _compared(self, value: Binary) -> Expression:
        """`outer = //path` and so on: whether a look-up of the outer value finds something."""
        loop = self._comparisons.loop(value)
        if loop is not None:
            known = len(self._builder.collections)
            found = self._collected(loop)
            if found is not None and found.rest is None and found.keys:
                return self._looked_up(found, "exists")
            del self._builder.collections[known:]
        return replace(value, left=self.rewritten(value.left), right=self.rewritten(value.right))

    # Sets -----------------------------------------------------------------------------------------

    def _alone(self, value: Expression) -> int | None:
        """The collection of an expression without keys and rest."""
        known = len(self._builder.collections)
        found = self._collected(value)
        if found is None or found.rest is not None or found.keys:
            del self._builder.collections[known:]
            return None
        return found.collection

    def _set(self, value: Binary) -> Expression:
        """A set of nodes that is no collection; its right operand may be one."""
        found = self._collected(value)
        if found is not None:
            return self._looked_up(found, "all")
        query = None if value.operator == "|" else self._sets.query(value)
        if query is None or not isinstance(query.clauses[0], For):
            return rebuilt(value, self.rewritten)  # type: ignore[no-any-return]
        return rebuilt(query, self.rewritten)  # type: ignore[no-any-return]

    def _of_set(self, value: Binary, steps: tuple[Any, ...] = ()) -> _Found | None:
        """The collection of a set of nodes, or of a path from it."""
        if not all(isinstance(step, Step) and step.axis in DOWN for step in steps):
            return None
        if value.operator == "|":
            name = self._builder.new_name()
            block = self._sets.union(value, name)
            if block is None:
                return None
            return self._finished(block, [], Path(Reference(name, 0), steps, 0), is_path=True)
        query = self._sets.query(value)
        if query is None:
            return None
        first, where = query.clauses
        assert isinstance(first, For)
        block = self._first(first)
        if block is None:
            return None
        returned = Path(Reference(first.variable, 0), steps, 0)
        return self._finished(block, [where], returned, is_path=True)

    # Collections ----------------------------------------------------------------------------------

    def _collected(self, value: Any) -> _Found | None:
        """The collection for a path or a query; None if it has no source."""
        known = len(self._builder.collections)
        match value:
            case Path(start=Root(), steps=steps) if steps and not has_positional_filter(steps):
                found = self._of_path(value)
            case Flwor(clauses=(For() as first, *_)) if type(first) is For:
                if has_context(value):  # the item of a predicate around it, which has no name
                    return None
                found = self._of_query(value)
            case Binary(operator=operator) if operator in SETS:
                found = self._of_set(value)
            case Path(start=Binary(operator=operator) as start, steps=steps) if (
                operator in SETS and not has_positional_filter(steps)
            ):
                found = self._of_set(start, steps)
            case _:
                return None
        if found is None:
            del self._builder.collections[known:]
        return found

    def _of_path(self, path: Path) -> _Found | None:
        known = len(self._builder.collections)
        block = self._sources.block(path, None)
        if block is None:
            return None
        tail = path.steps[len(path.steps) - block[1] :] if block[1] else ()
        returned = Path(Reference(block[0].variable, path.at), tail, path.at)
        is_values = bool(tail) and is_value_step(tail[-1])
        is_path = not is_values
        if tail and not isinstance(tail[-1], Step) and not _goes_down(tail[:-1]):
            # Several tuples may reach a node, which has its values once.
            del self._builder.collections[known:]
            return None
        return self._finished(block[0], [], returned, is_path=is_path)

    def _of_query(self, query: Flwor) -> _Found | None:
        first, *rest = query.clauses
        assert isinstance(first, For)
        block = self._first(first)
        if block is None:
            return None
        waiting = list(rest)
        following: list[Clause] = []
        while waiting:
            clause = waiting.pop(0)
            if isinstance(clause, GroupBy | OrderBy | Counted):
                following += [clause, *waiting]
                break
            if not self._joins_leaf(block, clause, following):
                following += self._split(clause, block)
        return self._finished(block, following, query.returned)

    def _split(self, clause: Clause, block: Block) -> list[Clause]:
        """A `where` as one clause for each condition, those that a pattern has left out."""
        if not isinstance(clause, Where):
            return [clause]
        found: list[Clause] = []
        for condition in conjuncts(clause.condition):
            each = Where(condition, clause.at)
            if not self._joins_leaf(block, each, found):
                found.append(each)
        return found

    def _joins_leaf(self, block: Block, clause: Clause, following: Sequence[Clause]) -> bool:
        """Whether the pattern of a block can take a clause too."""
        if not isinstance(block.source, Leaf) or not isinstance(clause, For | Where):
            return False
        loops = any(isinstance(each, For) for each in (*block.clauses, *following))
        if isinstance(clause, For) and (loops or type(clause) is not For):
            return False
        if references_in(clause) - set(block.source.names):
            return False
        leaf = self._builder.leaf([*block.leaf, clause])
        if leaf is None:
            return False
        block.source, block.leaf = leaf, [*block.leaf, clause]
        self._builder.kinds |= dict.fromkeys(leaf.names, "untyped")
        return True

    def _first(self, clause: For) -> Block | None:
        """The block of the first `for`: a path from the document, or distinct values."""
        if clause.allows_empty:
            return None
        match clause.source:
            case Call(name="distinct-values", arguments=(inside,)):
                number = self._distinct_keys(inside)
                if number is None:
                    return None
                self._builder.kinds[clause.variable] = kind_of_value(inside, self._builder.kinds)
                return Block(KeysOf(number, (clause.variable,)))
            case Path(start=Root(), steps=steps) as path if steps:
                return self._sources.loop(path, clause)
            case Binary(operator="|") as union:
                return self._sets.union(union, clause.variable)
            case Binary(operator="intersect" | "except") as sets:
                query = self._sets.query(sets)
                if query is not None:
                    return self._continued(query, clause)
        return None

    def _continued(self, query: Flwor, clause: For) -> Block | None:
        """The block of `for` over nodes of a path that meet a condition."""
        first, where = query.clauses
        assert isinstance(first, For)
        block = self._first(first)
        if block is not None:
            here = Path(Reference(first.variable, clause.at), (), clause.at)
            block.clauses += [where, For(clause.variable, here, clause.at)]
            self._builder.kinds[clause.variable] = "untyped"
        return block

    # Keys -----------------------------------------------------------------------------------------

    def _distinct_keys(self, inside: Expression) -> int | None:
        """A collection whose keys are the distinct values of an expression."""
        name = self._builder.new_name("v")
        loop = Flwor((For(name, inside, 0),), Path(Reference(name, 0), (), 0), 0)
        known = len(self._builder.collections)
        found = self._collected(loop if isinstance(inside, Path) else inside)
        if found is None or found.rest is not None or found.keys:
            del self._builder.collections[known:]
            return None
        collection = self._builder.collections[found.collection]
        values = (collection.outputs[0].value,)
        collection.index = Index("distinct", values)
        collection.read.add(0)
        return found.collection

    def _distinct(self, inside: Expression) -> int | None:
        number = self._distinct_keys(inside)
        if number is None:
            return None
        name = self._builder.new_name("v")
        value = Path(Reference(name, 0), (), 0)
        return self._builder.add(Collection(KeysOf(number, (name,)), outputs=[OutputItems(value)]))

    def _finished(
        self,
        block: Block,
        following: list[Clause],
        returned: Expression,
        is_path: bool = False,
    ) -> _Found | None:
        """The collection of a block with its remaining clauses."""
        own = set(names_of(block))
        self._builder.note_chains(block)
        closed: list[Clause] = []
        order: tuple[OrderKey, ...] = ()
        index = Index()
        keys: tuple[Expression, ...] = ()
        waiting = [*block.clauses, *following]
        while waiting:
            clause = waiting[0]
            outer = references_in(clause) - own - self._builder.given
            if isinstance(clause, GroupBy):
                if outer or index.kind != "one" or order:
                    break
                return self._grouped(block, closed, own, clause, waiting[1:], returned)
            if isinstance(clause, Counted):
                break
            if outer:
                is_free = index.kind == "one"
                at, joined = self._comparisons.first(waiting, own) if is_free else (0, None)
                if joined is None:
                    break
                index, keys = joined
                waiting.insert(0, waiting.pop(at))
            elif isinstance(clause, OrderBy):
                order = (*(self.rewritten(key) for key in clause.keys), *order)
            else:
                closed.append(self.rewritten(clause))
                own |= declared_by(clause)
                self._builder.note_kind(clause)
            waiting.pop(0)
        made = Collection(block.source, tuple(closed), order, index)
        if not waiting and not references_in(returned) - own - self._builder.given:
            made.outputs.append(OutputItems(self.rewritten(returned), is_path))
            return _Found(self._builder.add(made), keys)
        made.exposed = tuple(sorted(own))
        rest = tuple(self.rewritten(each) for each in waiting)
        for each in waiting:
            self._builder.note_kind(each)
        after = self.rewritten(returned)
        if is_path and may_repeat(after):
            return None
        return _Found(self._builder.add(made), keys, (rest, after))

    # Groups ---------------------------------------------------------------------------------------

    def _grouped(
        self,
        block: Block,
        closed: list[Clause],
        own: set[str],
        clause: GroupBy,
        waiting: list[Clause],
        returned: Expression,
    ) -> _Found | None:
        """The keys of a grouped collection, with look-ups of the other variables."""
        values: list[Expression] = []
        names = tuple(name for name, _ in clause.keys)
        for name, value in clause.keys:
            given = Path(Reference(name, clause.at), (), clause.at) if value is None else value
            kind = kind_of_value(given, self._builder.kinds)
            values.append(self.rewritten(given))
            self._builder.kinds[name] = "string" if kind == "untyped" else kind
        grouped = Collection(block.source, tuple(closed), index=Index("group", tuple(values)))
        number = self._builder.add(grouped)
        lookups = tuple(Path(Reference(name, clause.at), (), clause.at) for name in names)
        regroup = Regrouping(number, grouped, own - set(names), lookups)
        rest = [regroup.of(each) for each in waiting]
        after = regroup.of(returned)
        return self._finished(Block(KeysOf(number, names)), rest, after)


def _goes_down(steps: Iterable[object]) -> bool:
    """Whether steps lead from different nodes to different nodes."""
    return all(isinstance(step, Step) and step.axis in DOWN for step in steps)
