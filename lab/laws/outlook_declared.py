"""Cases for law 4 with declared keys and types, and the futures to try for them.

Documents are two levels deep: a root, elements a and b, their content, and calls at either level.
Patterns match such elements, often two that share a value. A key or a type restricts the future
data. Every future is tried that inserts trees of these shapes, one or two per call, and that the
declared facts allow at every step. With types, these futures may be too few: a verdict that they do
not show is then checked by the messages that `typing.typed_future` returns for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from math import comb, prod
from random import Random

from axlog.document.loader import load
from axlog.document.schema import Schema, is_valid
from axlog.document.schema_parser import parse_schema
from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.errors import UndecidedError
from axlog.evaluate.answers import answers
from axlog.future.keys import is_broken, parse_fact
from axlog.future.relevance import relevance
from axlog.future.truth import Outlook
from axlog.future.type_messages import apply_messages
from axlog.future.typed_truth import typed_future
from axlog.query.compile import compile_pattern
from axlog.query.pattern import (
    Axis,
    Branch,
    Comparison,
    Kind,
    Name,
    Output,
    Pattern,
    PatternNode,
    ValueConstraint,
    Variable,
)
from axlog.query.truth import Truth
from lab import reference
from lab.laws.fuzz_cases import Case
from lab.laws.questions import QUESTIONS
from lab.reference import Bound, bound_of, reachable
from lab.reference.fragments import Fragment, as_element, element, text

KEY = "key a by b trusted"
_VALUES = ("1", "2", "3", "4")
_MOST_FUTURES = 120
_CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"{}/>'


# Cases --------------------------------------------------------------------------------------------


def make_keyed_case(random: Random) -> Case:
    """Elements a with the key b, some present, some future, and a pattern that matches them."""
    while True:
        inside = [_element(random, "a", number) for number in range(random.choice((0, 1, 1, 2)))]
        most = random.choice(("", "", "", ' most="1"', ' most="2"'))
        document = f"<r>{''.join(inside)}{_CALL.format('s0', most)}</r>"
        if not is_broken(load(document), parse_fact(KEY)):
            return Case(document, (_pattern(random, ("a", "a", "a", "d"), "ccd"),), facts=(KEY,))


def make_typed_case(random: Random) -> Case:
    """A random type for r, a and b, a document of that type, and a pattern."""
    while True:
        types = _types(random)
        inside = [
            _element(random, random.choice(("a", "d")), number)
            for number in range(random.choice((0, 1, 1, 2)))
        ]
        more = random.choice(("", "", ' mode="one-shot"', ' most="1"')) + ' service="w"'
        more += random.choice(("", "", ' deletes="yes"'))
        document = f"<r>{''.join(inside)}{_CALL.format('s0', more)}</r>"
        if is_valid(load(document), parse_schema(types)):
            return Case(document, (_pattern(random, ("a", "a", "d"), "c"),), types=types)


def _element(random: Random, label: str, number: int) -> str:
    value = f"<b>{random.choice(_VALUES[:2])}</b>" if random.random() < 0.6 else ""
    leaf = "<c/>" if random.random() < 0.3 else ""
    call = _CALL.format(f"t{number}", "") if number == 0 and random.random() < 0.4 else ""
    return f"<{label}>{value}{leaf}{call}</{label}>"


def _pattern(random: Random, labels: tuple[str, ...], leaves: str) -> Pattern:
    branches: list[Branch] = []
    for _ in range(random.choice((1, 1, 2, 2, 3))):
        variable = Variable(random.choice("xxy"))
        value = PatternNode(Axis.CHILD, Name("b"), comparisons=(Comparison("=", variable),))
        if random.random() < 0.7:
            value = PatternNode(
                Axis.CHILD, Name("b"), branches=(PatternNode(Axis.CHILD, variable),)
            )
        below: tuple[Branch, ...] = (value,)
        if random.random() < 0.4:
            leaf = PatternNode(Axis.CHILD, Name(random.choice(leaves)))
            below = (*below, leaf) if random.random() < 0.8 else (leaf,)
        branches.append(PatternNode(Axis.CHILD, Name(random.choice(labels)), branches=below))
    root = PatternNode(Axis.CHILD, Name("r"), branches=tuple(branches))
    bound = sorted(v for v in "xy" if f"${v}" in str(root))
    outputs = tuple(Output(Kind.VARIABLE, name) for name in bound if random.random() < 0.6)
    differ = ValueConstraint(Variable("x"), random.choice(("!=", "=")), Variable("y"))
    where = (differ,) if len(bound) == 2 and random.random() < 0.4 else ()
    return Pattern((root,), where, outputs)


def _types(random: Random) -> str:
    def most(symbol: str, *numbers: int) -> str:
        return f"|{symbol}| <= {random.choice(numbers)}"

    extra = random.choice(
        ("", "", " & |a| <= |d|", " & (|a| = 0 or |d| >= 1)", " & not |a| = 1", " & |a| >= 1")
    )
    calls = "|w| >= 0 & |t0| >= 0"
    return (
        f"root: r  r -> {most('a', 1, 2, 2, 3)} & {most('d', 1, 2)} & |w| >= 0{extra}"
        f"  a -> {most('b', 0, 1, 1, 2)} & {most('c', 0, 1, 1)} & {calls}"
        f"  d -> {most('b', 0, 1, 1)} & {most('c', 0, 1, 1)} & {calls}"
        f"  b -> |text()| <= 1  c ->  call w root: {random.choice(('a', 'd', 'a, d'))}"
        f"  call t0 root: {random.choice(('b', 'c', 'b, c'))}"
    )


# Futures ------------------------------------------------------------------------------------------


def declared_bound(tree: Tree, pattern: Pattern) -> Bound:
    """Every future of trees of the cases' shapes that the declared facts allow."""
    leaves = [element("b", text(value)) for value in strings_of(tree, pattern)]
    named = {n.test.label for n in pattern.nodes() if isinstance(n.test, Name)}
    leaves += [element(label) for label in sorted(named & {"c", "d"})]
    # where several patterns must share a tree, an element may need two values
    values = 2 if any(tree.call(c).most is not None for c in tree.calls().values()) else 1
    labels = sorted(named & {"a", "d"}) if tree.types is None else ["a", "d"]
    roots = [element(label, *below) for label in labels for below in _some(leaves, values)]
    pools: dict[str, tuple[Fragment, ...]] = {}
    for stream, call in tree.calls().items():
        is_top = tree.parent(call) == tree.root
        pools[stream] = tuple(_typed(tree, call, roots if is_top else leaves))
    (root,) = pattern.branches
    assert isinstance(root, PatternNode)
    below = [len(each.branches) for each in root.branches if isinstance(each, PatternNode)]
    most = max(len(below), *below) if tree.types is None else 2
    # the value of an element is that of its one text: the order of children does not matter
    bound = bound_of(tree, pattern, most, 3)
    deletions = tree.types is not None  # without types, they make no row possible
    return replace(bound, ordered=False, pools=pools, deletions=deletions, allows=_is_allowed)


def _some(leaves: list[Fragment], values: int) -> Iterator[tuple[Fragment, ...]]:
    """The contents that an element may have: some leaves, with a limited number of values."""
    for size in range(4):
        for chosen in combinations(leaves, size):
            if sum(bool(each.below) for each in chosen) <= values:
                yield chosen


def _typed(tree: Tree, call: int, pool: list[Fragment]) -> Iterator[Fragment]:
    if tree.types is None:
        yield from pool
        return
    given = tree.call(call)
    type_ = tree.types.service(given.service or given.stream)
    for fragment in pool:
        if is_valid(load(as_element(fragment)), Schema(type_)):
            yield fragment


def _is_allowed(tree: Tree) -> bool:
    if any(is_broken(tree, key) for key in tree.facts):
        return False
    return tree.types is None or is_valid(tree, tree.types)


def strings_of(tree: Tree, pattern: Pattern) -> list[str]:
    """The strings that rows of these cases can show: present ones, and one per variable."""
    labels = {tree.label(n) for n in tree.subtree(DOCUMENT_NODE) if n != DOCUMENT_NODE}
    others = [
        value for value, name in zip(_VALUES[2:], "xy", strict=True) if f"${name}" in str(pattern)
    ]
    return sorted({*(label for label in labels if label.isdigit()), *others})


# Comparing ----------------------------------------------------------------------------------------


class Shown:
    """The rows that are possible, now and in every future that is tried."""

    def __init__(self, tree: Tree, pattern: Pattern, bound: Bound) -> None:
        self.tree = tree
        self.pattern = pattern
        self.present = set(_rows(tree, pattern))
        documents = reachable(tree, bound)
        self.satisfiable = {row for document in documents for row in _rows(document, pattern)}

    def status(self, values: tuple[str | None, ...]) -> Truth:
        """The truth of a row; None as a value stands for any value."""
        if any(_agree(row, values) for row in self.present):
            return Truth.TRUE
        if any(_agree(row, values) for row in self.satisfiable):
            return Truth.POSSIBLE
        return Truth.POSSIBLE if self._is_shown(values) else Truth.NEVER

    def _is_shown(self, values: tuple[str | None, ...]) -> bool:
        """Whether messages that are valid under the types lead to such a row."""
        if self.tree.types is None:
            return False
        pairs = zip(self.pattern.columns, values, strict=True)
        bindings = {column.lstrip("$"): value for column, value in pairs if value is not None}
        messages = typed_future(self.tree, self.pattern, self.tree.types, bindings=bindings)
        if messages is None:
            return False
        later = apply_messages(self.tree, messages, checked=self.tree.types)
        return any(_agree(row, values) for row in _rows(later, self.pattern))


def _rows(tree: Tree, pattern: Pattern) -> Iterator[tuple[str, ...]]:
    columns = compile_pattern(pattern).root.columns
    at = [columns.index(f"${output.of}") for output in pattern.outputs]
    for row in answers(tree, pattern):
        yield tuple(str(row[i]) for i in at)


def _agree(row: tuple[str, ...], values: tuple[str | None, ...]) -> bool:
    return all(wanted is None or found == wanted for found, wanted in zip(row, values, strict=True))


def check_declared(tree: Tree, pattern: Pattern, seen: Counter[str]) -> None:
    """Compare truth, rows and relevance of a case with a key or a type with every future."""
    kind = "key" if tree.facts else "type"
    bound = declared_bound(tree, pattern)
    futures = prod(comb(len(bound.pool(s)) + 1, bound.trees_per_call) for s in tree.calls())
    if futures > _MOST_FUTURES:
        seen["too large"] += 1
        return
    try:
        outlook = Outlook(tree, pattern)
        shown = Shown(tree, pattern, bound)
        anything = (None,) * len(pattern.outputs)
        _same("the truth", outlook.truth, shown.status(anything))
        seen[f"{kind} {outlook.truth.value}"] += 1
        seen[QUESTIONS] += 1
        for values in product(strings_of(tree, pattern), repeat=len(pattern.outputs)):
            asked = dict(zip(pattern.columns, values, strict=True))
            _same(f"the status of {asked}", outlook.status(asked), shown.status(values))
            seen[QUESTIONS] += 1
        rows = [tuple(one.row.values()) for one in outlook.possible()]
        for row in shown.satisfiable - shown.present:
            _same(f"whether {row} is covered", any(_agree(row, each) for each in rows), True)
        for row in rows:
            may_come = shown.status(row) is not Truth.NEVER
            _same(f"whether the possible row {row} may come", may_come, True)
        seen[QUESTIONS] += 1
    except UndecidedError as error:
        seen[f"{kind} refused {error.code}"] += 1
        return
    _check_relevance(tree, pattern, bound, seen, kind)


def _check_relevance(
    tree: Tree, pattern: Pattern, bound: Bound, seen: Counter[str], kind: str
) -> None:
    bound = replace(bound, deletions=False)
    for stream, each in relevance(tree, pattern).items():
        wanted = reference.relevant(tree, pattern, stream, bound)
        _same(f"that relevance of {stream} implies axlog", wanted <= each.axlog <= each.lazy, True)
        seen[QUESTIONS] += 1
        if each.relevant is None or (tree.types is not None and each.relevant):
            seen[f"{kind} relevance {each.relevant}, by futures {wanted}"] += 1
            continue
        _same(f"the relevance of {stream}", each.relevant, wanted)
        seen[f"{kind} relevant {wanted}"] += 1


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: found {found}, wanted {wanted}")
