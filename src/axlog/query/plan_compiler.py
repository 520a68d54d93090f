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
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.errors import QueryError
from axlog.query.compile import compile_pattern
from axlog.query.normalize import check
from axlog.query.pattern import Wildcard
from axlog.query.pattern_fragment import refuse_beyond
from axlog.query.plan import (
    ChosenOf,
    Collection,
    Index,
    KeysOf,
    Leaf,
    OutputItems,
    Plan,
    Source,
)
from axlog.query.plan_rewrites import (
    ValueKind,
    conjuncts,
    in_context,
    is_absolute,
    is_position,
    kind_of_value,
    position_bounds,
    prepared,
    rebuilt,
    references_in,
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
    ForAt,
    ForKept,
    Group,
    GroupBy,
    Kept,
    Let,
    OrderBy,
    OrderKey,
    PartialName,
    Path,
    Quantified,
    Reference,
    Root,
    Step,
    Where,
    walk,
)
from axlog.query.xquery_compiler import XQueryCompiler

AGGREGATES = frozenset("avg count empty exists max min sum".split())
"""The functions of collections that are kept."""
_READING = frozenset("avg max min sum".split())
_MIRRORED = {
    "=": "=", "eq": "eq", "<": ">", "<=": ">=", ">": "<", ">=": "<=",
    "lt": "gt", "le": "ge", "gt": "lt", "ge": "le",
}  # fmt: skip
_GENERAL = {"eq": "=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_TEXTS = ("untyped", "string")
_DOWN = frozenset(("child", "attribute", "self"))
MOST_COLLECTIONS = 64


@dataclass(slots=True)
class _Found:
    """A collection for an expression: closed if `rest` is None, else with the rest to evaluate."""

    collection: int
    keys: tuple[Expression, ...] = ()
    rest: tuple[tuple[Clause, ...], Expression] | None = None


@dataclass(slots=True)
class _Block:
    """A query in the making: its source, the variables that it binds, the clauses that follow."""

    source: Source | None
    leaf: list[Clause] = field(default_factory=list)  # the clauses of a `Leaf`
    clauses: list[Clause] = field(default_factory=list)
    variable: str = ""  # of the last step of a path


class PlanCompiler:
    """Compiles one query text."""

    def __init__(self, text: str, limits: Limits = DEFAULT_LIMITS) -> None:
        self._text = text
        self._limits = limits
        self._collections: list[Collection] = []
        self._kinds: dict[str, ValueKind] = {}
        self._chains: dict[str, list[For]] = {}  # by variable, the `for` clauses that bind it
        self._given: set[str] = set()  # external variables: the same in every tuple
        self._numbers = count(1)

    def plan(self, expression: Expression, namespaces: Iterable[tuple[str, str]] = ()) -> Plan:
        """The plan of a whole query."""
        self._given = {c.variable for c in walk(expression) if isinstance(c, External)}
        expression = prepared(expression)
        found = self._collected(expression)
        if found is None or found.rest is not None or found.keys or not self._is_last(found):
            value = self.rewritten(expression) if found is None else self._looked_up(found, "all")
            self._add(Collection(None, outputs=[OutputItems(value)]))
        root = self._collections[-1]
        root.read.add(0)
        reason = None
        if root.source is None and (is_whole_read(root) or _has_loose_tuples(root)):
            reason = "parts of the query are evaluated again with every update that they may read"
        return Plan(tuple(self._collections), self._text, tuple(namespaces), reason)

    def _is_last(self, found: _Found) -> bool:
        return found.collection == len(self._collections) - 1

    def _add(self, collection: Collection) -> int:
        if len(self._collections) >= MOST_COLLECTIONS:
            raise QueryError("AX213", f"the query needs more than {MOST_COLLECTIONS} collections")
        self._collections.append(collection)
        return len(self._collections) - 1

    def _new_name(self, wanted: str = "n") -> str:
        return f"{wanted}~n{next(self._numbers)}"

    # Expressions of a tuple -----------------------------------------------------------------------

    def rewritten(self, value: Any) -> Any:
        """An expression with look-ups in place of the collections in it."""
        match value:
            case Call(name=name, arguments=(inside,)) if name in AGGREGATES:
                return self._aggregate(value, inside)
            case Call(name="distinct-values", arguments=(inside,)):
                number = self._distinct(inside)
                return value if number is None else Kept(number, 0, "all", (), value.at)
            case Call(name="not" | "boolean", arguments=(inside,)):
                return replace(value, arguments=(self._condition(inside),))
            case Call(name="if", arguments=(condition, first, second)):
                chosen = (self.rewritten(first), self.rewritten(second))
                return replace(value, arguments=(self._condition(condition), *chosen))
            case Binary(operator="and" | "or" | "=") | Quantified():
                return self._condition(value)
            case Where(condition=condition):
                return replace(value, condition=self._condition(condition))
            case Path() | Flwor():
                found = self._collected(value)
                if found is not None:
                    return self._looked_up(found, "all")
                if isinstance(value, Path):
                    return self._path(value)
        return rebuilt(value, self.rewritten)

    def _aggregate(self, call: Call, inside: Expression) -> Expression:
        argument = self._below(inside) or self.rewritten(inside)
        if isinstance(argument, Kept) and argument.aspect == "all":
            if call.name in _READING:
                self._collections[argument.collection].read.add(argument.output)
            return replace(argument, aspect=call.name, at=call.at)
        return replace(call, arguments=(argument,))

    def _below(self, inside: Expression) -> Kept | None:
        """A collection of the nodes below a variable that may have many, by that variable."""
        if not isinstance(inside, Path) or not isinstance(inside.start, Reference):
            return None
        chain = self._chains.get(inside.start.name)
        if not chain or not inside.steps:
            return None
        if not _is_shallow(chain[-1].source) and not any(map(_descends, inside.steps)):
            return None
        name = self._new_name()
        leaf = self._leaf([*chain, For(name, inside, inside.at)])
        if leaf is None:
            return None
        here: tuple[Expression, ...] = (Path(inside.start, (), inside.at),)
        found = Path(Reference(name, inside.at), (), inside.at)
        made = Collection(
            leaf, index=Index("node", here), outputs=[OutputItems(found, is_path=True)]
        )
        return Kept(self._add(made), 0, "all", here, inside.at)

    def _note_chains(self, block: _Block) -> None:
        """Note how the pattern of a block binds each variable."""
        loops = {clause.variable: clause for clause in block.leaf if isinstance(clause, For)}
        for name in loops:
            needed, waiting = {name}, [name]
            while waiting:
                more = references_in(loops[waiting.pop()]) & loops.keys() - needed
                needed |= more
                waiting += more
            self._chains[name] = [clause for each, clause in loops.items() if each in needed]

    def _looked_up(self, found: _Found, aspect: str) -> Expression:
        at = 0
        kept = Kept(found.collection, 0, aspect, found.keys, at)
        if found.rest is None:
            return kept
        clauses, returned = found.rest
        exposed = self._collections[found.collection].exposed
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
                if not isinstance(start, Kept):
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
            case Binary(operator="="):
                return self._equality(value)
            case Quantified(variable=variable, source=source, condition=condition, at=at):
                if not is_absolute(source):
                    inside = self._condition(condition)
                    return replace(value, source=self.rewritten(source), condition=inside)
                held: Expression = condition
                if value.is_every:
                    held = Call("not", (condition,), at)
                loop = Flwor(
                    (For(variable, source, at), Where(held, at)),
                    Path(Reference(variable, at), (), at),
                    at,
                )
                # A truth value in place of nodes: the item itself may be a false value.
                return self.rewritten(Call("empty" if value.is_every else "exists", (loop,), at))  # type: ignore[no-any-return]
        found = self.rewritten(value)
        is_nodes = kind_of_value(value, self._kinds) == "untyped" and isinstance(value, Path)
        if isinstance(found, Kept) and found.aspect == "all" and is_nodes:
            return replace(found, aspect="exists")
        return found  # type: ignore[no-any-return]

    def _equality(self, value: Binary) -> Expression:
        """`outer = //path`: whether a look-up of the outer value finds something."""
        for absolute, other in ((value.left, value.right), (value.right, value.left)):
            is_alone = isinstance(absolute, Path | Flwor) and is_absolute(absolute)
            if is_alone and references_in(other) - self._given and not is_absolute(other):
                name = self._new_name("v")
                loop = Flwor(
                    (
                        For(name, absolute, value.at),
                        Where(
                            Binary(
                                "=", Path(Reference(name, value.at), (), value.at), other, value.at
                            ),
                            value.at,
                        ),
                    ),
                    Path(Reference(name, value.at), (), value.at),
                    value.at,
                )
                known = len(self._collections)
                found = self._collected(loop)
                if found is not None and found.rest is None and found.keys:
                    return self._looked_up(found, "exists")
                del self._collections[known:]
        return replace(value, left=self.rewritten(value.left), right=self.rewritten(value.right))

    # Collections ----------------------------------------------------------------------------------

    def _collected(self, value: Any) -> _Found | None:
        """The collection for a path or a query; None if it has no source."""
        known = len(self._collections)
        match value:
            case Path(start=Root(), steps=steps) if steps and not _has_positional_filter(steps):
                found = self._of_path(value)
            case Flwor(clauses=(For() as first, *_)) if type(first) is For:
                found = self._of_query(value)
            case _:
                return None
        if found is None:
            del self._collections[known:]
        return found

    def _of_path(self, path: Path) -> _Found | None:
        block = self._path_block(path, None)
        if block is None:
            return None
        tail = path.steps[len(path.steps) - block[1] :] if block[1] else ()
        returned = Path(Reference(block[0].variable, path.at), tail, path.at)
        is_values = bool(tail) and (
            isinstance(tail[-1], Call) or (isinstance(tail[-1], Group) and tail[-1].is_map)
        )
        return self._finished(block[0], [], returned, is_path=not is_values)

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

    def _split(self, clause: Clause, block: _Block) -> list[Clause]:
        """A `where` as one clause for each condition, those that a pattern has left out."""
        if not isinstance(clause, Where):
            return [clause]
        found: list[Clause] = []
        for condition in conjuncts(clause.condition):
            each = Where(condition, clause.at)
            if not self._joins_leaf(block, each, found):
                found.append(each)
        return found

    def _joins_leaf(self, block: _Block, clause: Clause, following: Sequence[Clause]) -> bool:
        """Whether the pattern of a block can take a clause too."""
        if not isinstance(block.source, Leaf) or not isinstance(clause, For | Where):
            return False
        loops = any(isinstance(each, For) for each in (*block.clauses, *following))
        if isinstance(clause, For) and (loops or type(clause) is not For):
            return False
        if references_in(clause) - set(block.source.names):
            return False
        leaf = self._leaf([*block.leaf, clause])
        if leaf is None:
            return False
        block.source, block.leaf = leaf, [*block.leaf, clause]
        self._kinds |= dict.fromkeys(leaf.names, "untyped")
        return True

    def _leaf(self, clauses: Sequence[Clause]) -> Leaf | None:
        """The pattern of `for` and `where` clauses; None if patterns do not express them."""
        try:
            for clause in clauses:
                refuse_beyond(clause, self._text)  # type: ignore[arg-type]
            pattern, names = XQueryCompiler(self._text).tuples(clauses)
            check(pattern, limits=self._limits)
            if compile_pattern(pattern).refusal is not None:
                return None
        except QueryError:
            return None
        return Leaf(pattern, names)

    # Sources --------------------------------------------------------------------------------------

    def _first(self, clause: For) -> _Block | None:
        """The block of the first `for`: a path from the document, or distinct values."""
        if clause.allows_empty:
            return None
        match clause.source:
            case Call(name="distinct-values", arguments=(inside,)):
                number = self._distinct_keys(inside)
                if number is None:
                    return None
                self._kinds[clause.variable] = kind_of_value(inside, self._kinds)
                return _Block(KeysOf(number, (clause.variable,)))
            case Path(start=Root(), steps=steps) as path if steps:
                return self._path_loop(path, clause)
        return None

    def _path_loop(self, path: Path, clause: For) -> _Block | None:
        if _has_positional_filter(path.steps):
            return None
        found = self._path_block(path, clause.variable)
        if found is None:
            return None
        block, left = found
        self._kinds[clause.variable] = "untyped"
        if not left:
            if block.variable != clause.variable:
                renamed = Path(Reference(block.variable, clause.at), (), clause.at)
                block.clauses.append(For(clause.variable, renamed, clause.at))
            return block
        tail = path.steps[len(path.steps) - left :]
        inside = Path(Reference(block.variable, clause.at), tail, clause.at)
        is_free = bool(references_in((inside, *block.clauses)) - set(_names(block)) - self._given)
        if all(isinstance(s, Step) and s.axis in _DOWN for s in tail) or is_free:
            block.clauses.append(For(clause.variable, inside, clause.at))
            return block
        keyed = Collection(
            block.source,
            tuple(self.rewritten(each) for each in block.clauses),
            index=Index("node", (self.rewritten(inside),)),
        )
        return _Block(KeysOf(self._add(keyed), (clause.variable,)))

    def _path_block(self, path: Path, variable: str | None) -> tuple[_Block, int] | None:
        """The block of the longest beginning of a path, and the number of steps that are left."""
        steps = path.steps
        name = variable or self._new_name()
        best: tuple[int, Leaf, For] | None = None
        for length in range(len(steps), 0, -1):
            if isinstance(steps[length - 1], Step) and steps[length - 1].is_slashes:  # type: ignore[union-attr]
                continue
            clause = For(name, Path(path.start, steps[:length], path.at), path.at)
            leaf = self._leaf([clause])
            if leaf is not None:
                best = (length, leaf, clause)
                break
        if best is not None and best[0] == len(steps):
            self._kinds[name] = "untyped"
            return _Block(best[1], [best[2]], variable=name), 0
        done = 0 if best is None else best[0]
        longer = self._stripped(path, done, self._new_name())
        if longer is not None:
            return longer
        if best is None:
            return None
        inner = self._new_name()
        clause = replace(best[2], variable=inner)
        leaf = self._leaf([clause])
        assert leaf is not None, "the name of the variable does not matter"
        self._kinds[inner] = "untyped"
        return _Block(leaf, [clause], variable=inner), len(steps) - done

    def _stripped(self, path: Path, done: int, name: str) -> tuple[_Block, int] | None:
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
        plain = replace(step, test=Wildcard()) if isinstance(step.test, PartialName) else step
        for taken in range(len(step.predicates), -1, -1):
            if taken and plain is not step:
                continue
            tried = replace(plain, predicates=step.predicates[:taken])
            clause = For(name, Path(path.start, (*steps[:at], tried), path.at), path.at)
            leaf = self._leaf([clause])
            if leaf is None:
                continue
            self._kinds[name] = "untyped"
            block = _Block(leaf, [clause], variable=name)
            if plain is not step:
                named = replace(step, axis="self", predicates=())
                if step.axis == "attribute":
                    return None
                held = Path(Reference(name, step.at), (named,), step.at)
                block.clauses.append(Where(held, step.at))
            if self._with_predicates(block, step, step.predicates[taken:]):
                return block, len(steps) - at - 1
            return None
        return None

    def _with_predicates(self, block: _Block, step: Step, predicates: Sequence[Any]) -> bool:
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
            here = Path(Reference(block.variable, step.at), (), step.at)
            clauses = tuple(self.rewritten(each) for each in block.clauses)
            inner = Collection(
                block.source, clauses, index=Index("parent", (here,)), outputs=[OutputItems(here)]
            )
            name = self._new_name()
            self._kinds[name] = "untyped"
            bounds = position_bounds(predicate.condition)
            chosen = ChosenOf(self._add(inner), name, predicate.condition, bounds)
            block.source, block.leaf, block.clauses, block.variable = chosen, [], [], name
        return True

    def _mentions_outer(self, block: _Block) -> bool:
        return bool(references_in(tuple(block.clauses)) - set(_names(block)) - self._given)

    # Keys -----------------------------------------------------------------------------------------

    def _distinct_keys(self, inside: Expression) -> int | None:
        """A collection whose keys are the distinct values of an expression."""
        name = self._new_name("v")
        loop = Flwor((For(name, inside, 0),), Path(Reference(name, 0), (), 0), 0)
        known = len(self._collections)
        found = self._collected(loop if isinstance(inside, Path) else inside)
        if found is None or found.rest is not None or found.keys:
            del self._collections[known:]
            return None
        collection = self._collections[found.collection]
        values = (collection.outputs[0].value,)
        collection.index = Index("distinct", values)
        collection.read.add(0)
        return found.collection

    def _distinct(self, inside: Expression) -> int | None:
        number = self._distinct_keys(inside)
        if number is None:
            return None
        name = self._new_name("v")
        value = Path(Reference(name, 0), (), 0)
        return self._add(Collection(KeysOf(number, (name,)), outputs=[OutputItems(value)]))

    def _finished(
        self,
        block: _Block,
        following: list[Clause],
        returned: Expression,
        is_path: bool = False,
    ) -> _Found | None:
        """The collection of a block with its remaining clauses."""
        own = set(_names(block))
        self._note_chains(block)
        closed: list[Clause] = []
        order: tuple[OrderKey, ...] = ()
        index = Index()
        keys: tuple[Expression, ...] = ()
        waiting = [*block.clauses, *following]
        while waiting:
            clause = waiting[0]
            outer = references_in(clause) - own - self._given
            if isinstance(clause, GroupBy):
                if outer or index.kind != "one" or order:
                    break
                return self._grouped(block, closed, own, clause, waiting[1:], returned)
            if isinstance(clause, Counted):
                break
            if outer:
                joined = self._index(clause, own) if index.kind == "one" else None
                if joined is None:
                    break
                index, keys = joined
            elif isinstance(clause, OrderBy):
                order = (*(self.rewritten(key) for key in clause.keys), *order)
            else:
                closed.append(self.rewritten(clause))
                own |= _declared(clause)
                self._note_kind(clause)
            waiting.pop(0)
        made = Collection(block.source, tuple(closed), order, index)
        if not waiting and not references_in(returned) - own - self._given:
            made.outputs.append(OutputItems(self.rewritten(returned), is_path))
            return _Found(self._add(made), keys)
        made.exposed = tuple(sorted(own))
        rest = tuple(self.rewritten(each) for each in waiting)
        for each in waiting:
            self._note_kind(each)
        after = self.rewritten(returned)
        if is_path and _may_repeat(after):
            return None
        return _Found(self._add(made), keys, (rest, after))

    def _note_kind(self, clause: Clause) -> None:
        if isinstance(clause, For):
            self._kinds[clause.variable] = kind_of_value(clause.source, self._kinds)
            if isinstance(clause, ForAt):
                self._kinds[clause.position] = "number"
        elif isinstance(clause, Let):
            self._kinds[clause.variable] = kind_of_value(clause.value, self._kinds)

    def _index(self, clause: Clause, own: set[str]) -> tuple[Index, tuple[Expression, ...]] | None:
        """The index for a comparison of an inner value with an outer one."""
        if not isinstance(clause, Where) or not isinstance(clause.condition, Binary):
            return None
        condition = clause.condition
        if condition.operator not in _MIRRORED:
            return None
        for inner, outer, operator in (
            (condition.left, condition.right, _MIRRORED[condition.operator]),
            (condition.right, condition.left, condition.operator),
        ):
            is_inner = references_in(inner) - self._given <= own and references_in(inner) & own
            if not is_inner or references_in(outer) & own:
                continue
            kinds = {kind_of_value(inner, self._kinds), kind_of_value(outer, self._kinds)}
            is_text = kinds <= set(_TEXTS)
            is_number = kinds == {"untyped", "number"} and operator not in _GENERAL
            if not is_text and not is_number:
                return None
            values, keys = (self.rewritten(inner),), (self.rewritten(outer),)
            general = _GENERAL.get(operator, operator)
            if general == "=":
                return Index("string" if is_text else "number", values), keys
            return Index("order", values, general, is_number), keys
        return None

    # Groups ---------------------------------------------------------------------------------------

    def _grouped(
        self,
        block: _Block,
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
            kind = kind_of_value(given, self._kinds)
            values.append(self.rewritten(given))
            self._kinds[name] = "string" if kind == "untyped" else kind
        grouped = Collection(block.source, tuple(closed), index=Index("group", tuple(values)))
        number = self._add(grouped)
        lookups = tuple(Path(Reference(name, clause.at), (), clause.at) for name in names)
        regroup = _Regrouping(number, grouped, own - set(names), lookups)
        rest = [regroup.of(each) for each in waiting]
        after = regroup.of(returned)
        return self._finished(_Block(KeysOf(number, names)), rest, after)


class _Regrouping:
    """Replaces the variables that `group by` makes sequences of by look-ups of the group."""

    def __init__(
        self, number: int, grouped: Collection, names: set[str], keys: tuple[Expression, ...]
    ) -> None:
        self._number = number
        self._grouped = grouped
        self._names = names
        self._keys = keys

    def of(self, value: Any) -> Any:
        match value:
            case Path(start=Reference(name=name)) if name in self._names:
                return self._path(value)
            case Flwor(clauses=(For() as first, *rest)) if type(first) is For:
                mentioned = references_in(value)
                is_plain = all(type(each) in (For, Let, Where) for each in rest)
                is_one = len(mentioned) == 1 and mentioned <= self._names
                if is_plain and is_one and self._distributes(first.source):
                    return self._output(value, False)
        return rebuilt(value, self.of)

    def _distributes(self, source: Any) -> bool:
        match source:
            case Path(start=Reference(), steps=steps):
                return self._length(steps) == len(steps)
        return False

    def _length(self, steps: tuple[Any, ...]) -> int:
        """The number of steps that may be taken for each tuple by itself."""
        for at, step in enumerate(steps):
            if references_in(step) or _has_positional_filter((step,)):
                return at
        return len(steps)

    def _path(self, path: Path) -> Any:
        length = self._length(path.steps)
        steps = path.steps[:length]
        is_values = bool(steps) and (
            isinstance(steps[-1], Call) or (isinstance(steps[-1], Group) and steps[-1].is_map)
        )
        found = self._output(replace(path, steps=steps), bool(steps) and not is_values)
        if length == len(path.steps):
            return found
        return Path(found, tuple(self.of(step) for step in path.steps[length:]), path.at)

    def _output(self, value: Any, is_path: bool) -> Kept:
        made = OutputItems(value, is_path)
        if made not in self._grouped.outputs:
            self._grouped.outputs.append(made)
        return Kept(self._number, self._grouped.outputs.index(made), "all", self._keys, value.at)


def _names(block: _Block) -> tuple[str, ...]:
    match block.source:
        case Leaf(names=names) | KeysOf(names=names):
            return names
        case ChosenOf(name=name):
            return (name,)
    return ()


def _declared(clause: Clause) -> set[str]:
    match clause:
        case ForAt(variable=variable, position=position):
            return {variable, position}
        case For(variable=variable) | Let(variable=variable):
            return {variable}
    return set()


def _has_positional_filter(steps: Iterable[Any]) -> bool:
    """Whether a filter of the whole sequence may count positions."""
    return any(
        isinstance(step, Step)
        and step.is_filter
        and any(is_position(each.condition) for each in step.predicates)
        for step in steps
    )


def _descends(step: object) -> bool:
    return isinstance(step, Step) and step.axis.startswith("descendant")


def _is_shallow(source: Expression) -> bool:
    """Whether a path leads to the root element or its children, which may have much below them."""
    match source:
        case Path(start=Root(), steps=steps):
            is_plain = all(isinstance(each, Step) and each.axis == "child" for each in steps)
            return is_plain and len(steps) <= 2
    return False


def _may_repeat(returned: Expression) -> bool:
    """Whether a path that is evaluated tuple by tuple may give a node twice."""
    match returned:
        case Path(start=Reference(), steps=steps):
            return not all(isinstance(s, Step) and s.axis in _DOWN for s in steps)
    return True


def is_whole_read(collection: Collection) -> bool:
    """Whether the expressions of a collection read the document by paths."""
    parts = (collection.clauses, tuple(o.value for o in collection.outputs), collection.order)
    return any(isinstance(node, Root) for node in walk(parts))


def _has_loose_tuples(collection: Collection) -> bool:
    """Whether one evaluation goes through all tuples of another collection."""
    parts = (collection.clauses, tuple(o.value for o in collection.outputs))
    return any(isinstance(node, ForKept) for node in walk(parts))
