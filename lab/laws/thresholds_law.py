"""Law 4 for views with aggregates: truth, status and possible rows by brute force.

    law 4   TRUE: the row is there. NEVER: no future that is tried brings it. POSSIBLE: one does.

The futures are all those of one or two trees a call, of the shapes that the pattern mentions, at
all times that its constraints distinguish, after every choice of deletions; and in addition futures
of several equal trees, and of trees with several equal children, which reach higher counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import chain, combinations, islice, permutations, product
from random import Random
from typing import Any

from axlog.document.tree import NodeKind, Tree
from axlog.errors import UndecidedError
from axlog.evaluate.answers import answers
from axlog.evaluate.steps_definition import apply_steps
from axlog.future.group_outlook import GroupOutlook
from axlog.future.reasons import why_no_group
from axlog.future.truth import column_of
from axlog.query.aggregate_patterns import counted_once
from axlog.query.compile import compile_pattern
from axlog.query.query import Query
from axlog.query.truth import Truth
from lab.laws.questions import QUESTIONS
from lab.laws.thresholds_cases import VALUES, ThresholdCase
from lab.reference import Alphabet, Bound, Fragment, Future
from lab.reference.declared_facts import DeclaredFacts
from lab.reference.fragments import attribute, element, text
from lab.reference.futures import Deletion, Message, allowed, futures

_MOST_FUTURES = 25
_MOST_AIMED = 35
_MOST_TO_SHOW = 4000
_NUMBERS = ("0", "1", "2", "3", "9", "-9")
_OTHERS = ("-1", "-2", "1.0", "2.0")
"""With these a sum reaches every small number by one more value, also beside a used key value."""
Seen = Counter[str]
Row = tuple[Any, ...]


class Outcomes:
    """The rows that a document has, and those that some future gives it."""

    def __init__(self, tree: Tree, query: Query) -> None:
        self._tree, self._key = tree, query.row_key
        self._counted = counted_once(self._key.pattern)
        columns = compile_pattern(self._counted).root.columns
        self._at = [columns.index(column_of(output)) for output in self._key.pattern.outputs]
        self._known: dict[frozenset[Any], frozenset[Row]] = {}
        self.present = self._rows(tree)
        self.satisfiable = set(self.present)
        self.tried = 0
        self._bound, self._said = _bound(tree, query), query.text
        self._random = Random(len(self._said))
        few = islice(futures(tree, self._bound), _MOST_FUTURES)
        self.try_all(few)
        self.try_all(islice(self._aimed(None), _MOST_AIMED))

    def try_all(self, futures: Iterable[Future]) -> None:
        """Add the rows that futures bring, of those that the declared facts allow."""
        for future in futures:
            later = allowed(future, self._tree, self._bound)
            if later is not None:
                self.satisfiable |= self._rows(later)
                self.tried += 1

    def _rows(self, tree: Tree) -> frozenset[Row]:
        """The rows of a document. The interpreter matches the pattern; law 1 checks it."""
        key = self._key
        base = [(tuple(row[i] for i in self._at), 1) for row in answers(tree, self._counted)]
        counted = frozenset(Counter(row for row, _ in base).items())
        if counted not in self._known:
            found = apply_steps(base, key.pattern, key.steps)
            self._known[counted] = frozenset(row[: len(key.columns)] for row, _ in found)
        return self._known[counted]

    def _aimed(self, value: str | None) -> Iterator[Future]:
        return aimed(self._tree, self._bound, self._said, value, self._random)

    def status(self, wanted: Mapping[int, Any]) -> Truth:
        """The truth of a row with these values, by the positions of its columns."""
        if any(_agrees(row, wanted) for row in self.present):
            return Truth.TRUE
        is_possible = any(_agrees(row, wanted) for row in self.satisfiable)
        return Truth.POSSIBLE if is_possible else Truth.NEVER

    def show(self, wanted: Mapping[int, Any]) -> bool:
        """Whether one of many futures made for a row brings it."""
        value = next((each for each in wanted.values() if isinstance(each, str)), None)
        values = [value] if value is not None else [None, *self._addends(wanted)]
        made = chain.from_iterable(zip(*map(self._aimed, values), strict=False))
        for future in islice(made, _MOST_TO_SHOW * len(values)):
            self.try_all([future])
            if self.status(wanted) is not Truth.NEVER:
                return True
        return False

    def _addends(self, wanted: Mapping[int, Any]) -> Iterator[str]:
        """Values of a variable that is summed or compared, up to four of which give a number."""
        if "($x)" not in self._said:
            return
        for number, size in product(wanted.values(), (1, 2, 4)):
            if isinstance(number, int):
                yield str(Decimal(number) / size)


def _agrees(row: Row, wanted: Mapping[int, Any]) -> bool:
    return all(row[at] == value for at, value in wanted.items())


# Futures ------------------------------------------------------------------------------------------


def _bound(tree: Tree, query: Query) -> Bound:
    said = str(query)
    times = tuple(range(tree.clock, tree.clock + 6)) if "time" in said or " o " in said else ()
    small = 1 if len(times) > 1 or len(tree.calls()) > 1 else 2
    pools = {stream: tuple(_pool(tree, call, said, small)) for stream, call in tree.calls().items()}
    return Bound(
        Alphabet(()), small, 2, times=times or (tree.clock,), pools=pools,
        deletions=any(tree.call(c).deletes != "no" for c in tree.calls().values()),
        allows=DeclaredFacts.of(tree),
    )  # fmt: skip


def _pool(tree: Tree, call: int, said: str, size: int) -> Iterator[Fragment]:
    leaves = [attribute("i", value) for value in (*VALUES, "3")] if "@i" in said else []
    leaves += [element("k", text(value)) for value in (*VALUES, "3")] if "k" in said else []
    leaves += [element("v", text(v)) for v in _NUMBERS] if "$v" in said else []
    leaves += [element("w")] if "w" in said else []
    parent = tree.label(tree.parent(call))
    if parent not in ("p", "q"):
        yield from (leaf for leaf in leaves if leaf.kind is NodeKind.ELEMENT)
        return
    label = {"p": "a", "q": "d"}[parent]
    for number in range(size + 2):
        for chosen in combinations(leaves, number):
            if sum(each.kind is NodeKind.ATTRIBUTE for each in chosen) <= 1:
                below = sorted(chosen, key=lambda each: each.kind is not NodeKind.ATTRIBUTE)
                yield element(label, *below)


def aimed(
    tree: Tree, bound: Bound, said: str, value: str | None, random: Random
) -> Iterator[Future]:
    """Futures of up to four trees a stream, equal or not, and of trees with equal children."""
    streams = [s for s, c in sorted(tree.calls().items()) if tree.call(c).deletes != "only"]
    values = (*VALUES, "0", "3", "9", "-9", *_OTHERS) if value is None else (value,)
    choices = [list(_copies(tree, stream, said, values)) for stream in streams]
    gone = [()] if not bound.deletions else [(), *_everything_gone(tree)]
    times = bound.times_from(tree.clock)[:4]
    if not any(choices):
        return
    singles = [
        [[c for c in _copies(tree, stream, said, (v,)) if len(c) == 1] for v in values]
        for stream in streams
    ]
    rooms = [_room(tree, stream) for stream in streams]
    while True:
        chosen = [random.choice(each) if each and random.random() < 0.6 else () for each in choices]
        if random.random() < 0.25:  # trees of several values, the same in all streams
            at = random.sample(range(len(values)), min(len(values), random.randint(1, 4)))
            is_full = random.random() < 0.5
            chosen = [
                tuple(
                    max(each[n], key=_size)[0] if is_full else random.choice(each[n])[0]
                    for n in at[:room]
                    if each[n]
                )
                for each, room in zip(singles, rooms, strict=True)
            ]
        if any(chosen):
            time = random.choice(times)
            messages = [Message(time, s, f) for s, f in zip(streams, chosen, strict=True) if f]
            yield Future(tuple(messages), random.choice(gone))


def _size(copies: tuple[Fragment, ...]) -> int:
    return sum(len(each.below) for each in copies)


def _copies(
    tree: Tree, stream: str, said: str, values: tuple[str, ...]
) -> Iterator[tuple[Fragment, ...]]:
    parent, room = tree.label(tree.parent(tree.calls()[stream])), _room(tree, stream)
    if room <= 0:
        return
    numbers = range(1, room + 1)
    if parent not in ("p", "q"):
        leaves = list(_leaves(said, values))
        if "//" in said and tree.types is None:
            leaves += [element("a", *inside) for inside in _contents(said, values, "a")]
        yield from ((leaf,) * n for leaf in leaves for n in numbers)
        for one, other in permutations(leaves, 2):  # trees that match together
            yield from ((one, *[other] * (n - 1)) for n in numbers if n > 1)
        return
    label = {"p": "a", "q": "d"}[parent]
    made = [element(label, *inside) for inside in _contents(said, values, label)]
    for fragment in made:
        yield from ((fragment,) * number for number in numbers)
        if any(each.kind is NodeKind.ELEMENT for each in fragment.below):
            for number in (2, 3, 4):
                yield (replace(fragment, below=tuple(_repeated(fragment, number))),)
    if "//" in said and tree.types is None:
        for inside in _contents(said, values, "a"):
            for number in (1, 2, 3, 4):
                yield (element("z", *(element("a", *inside),) * number),)
    if room > 1:
        yield from combinations(made, 2)


def _room(tree: Tree, stream: str) -> int:
    """How many trees of a stream a future has at most."""
    most = tree.call(tree.calls()[stream]).most
    return 4 if most is None else min(4, most - tree.brought.get(stream, 0))


def _contents(said: str, values: tuple[str, ...], label: str) -> Iterator[tuple[Fragment, ...]]:
    parts: list[list[tuple[Fragment, ...]]] = []
    if "@i" in said:
        parts.append([(), *((attribute("i", value),) for value in values)])
    if "k" in said:
        parts.append([(), *((element("k", text(value)),) for value in values)])
    if "$v" in said and label == "a":
        parts.append([(), *((element("v", text(v)),) for v in (*_NUMBERS, "-1", "-2", "-3"))])
    if "w" in said and label == "a":
        parts.append([(), (element("w"),)])
    for chosen in product(*parts):
        yield tuple(chain(*chosen))


def _leaves(said: str, values: tuple[str, ...]) -> Iterator[Fragment]:
    yield from (element("k", text(value)) for value in values)
    if "$v" in said:
        yield from (element("v", text(v)) for v in _NUMBERS)
    yield element("w")


def _repeated(fragment: Fragment, number: int) -> Iterator[Fragment]:
    for child in fragment.below:
        yield from [child] * (number if child.kind is NodeKind.ELEMENT else 1)


def _everything_gone(tree: Tree) -> Iterator[tuple[Deletion, ...]]:
    for stream, call in tree.calls().items():
        if tree.call(call).deletes != "no":
            siblings = [n for n in tree.children(tree.parent(call)) if n != call]
            yield (Deletion(stream, frozenset(map(tree.id, siblings))),)


# The law ------------------------------------------------------------------------------------------


def check_thresholds(case: ThresholdCase) -> Seen:
    """Compare every verdict on a case; return the number of comparisons by name."""
    seen: Seen = Counter()
    tree, query = case.tree(), case.query
    outcomes = Outcomes(tree, query)
    seen["futures"] += outcomes.tried
    try:
        outlook = GroupOutlook(tree, query.row_key)
    except UndecidedError as error:
        seen[f"refused {error.code}"] += 1
        return seen
    columns = query.columns
    for asked in _questions(columns):
        wanted = outcomes.status({columns.index(name): value for name, value in asked.items()})
        try:
            found = outlook.status(asked) if asked else outlook.truth
        except UndecidedError as error:
            if wanted is Truth.TRUE:
                raise AssertionError(f"{asked} is there, but refused: {error}") from error
            kind = "value" if "n" in asked else "row" if asked else "truth"
            seen[f"{kind} refused {error.code}"] += 1
            continue
        at = {columns.index(name): value for name, value in asked.items()}
        if found is Truth.POSSIBLE and wanted is Truth.NEVER and outcomes.show(at):
            wanted = found
        seen[QUESTIONS] += 1
        if found is not wanted:
            raise AssertionError(f"the status of {asked}: found {found}, wanted {wanted}")
        kind = "value" if "n" in asked else "row" if asked else "truth"
        seen[f"{kind} {found.value}"] += 1
        if asked in ({"x": "1"}, {"n": 2}):
            why = why_no_group(tree, query.row_key, asked, "seconds")
            if why.truth is not found or not why.reasons:
                raise AssertionError(f"{asked} is {found}, and why: {why}")
            seen[f"reason {why.reasons[0].kind}"] += 1
    _check_possible(outlook, outcomes, list(columns), seen)
    return seen


def _questions(columns: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    yield {}
    for x in (*VALUES, "3"):
        if "x" in columns:
            yield {"x": x}
            if "n" in columns:
                yield from ({"x": x, "n": n} for n in (0, 1, 2, 3))
    if "n" in columns:
        yield from ({"n": n} for n in (0, 1, 2, 3))


def _check_possible(
    outlook: GroupOutlook, outcomes: Outcomes, columns: list[str], seen: Seen
) -> None:
    """Possible rows cover every row that can come, and each of them can come."""
    try:
        listed = outlook.possible()
    except UndecidedError as error:
        seen[f"possible refused {error.code}"] += 1
        return
    seen[QUESTIONS] += 1
    rows = [tuple(one.row.values()) for one in listed]
    keys = [at for at, name in enumerate(columns) if name == "x"]
    there = {tuple(row[at] for at in keys) for row in outcomes.present}
    for row in outcomes.satisfiable:
        key = tuple(row[at] for at in keys)
        if key not in there and not any(_covers(one, row) for one in rows):
            raise AssertionError(f"no possible row covers {row}")
    for one in rows:
        wanted = {at: value for at, value in enumerate(one) if value is not None}
        if outcomes.status(wanted) is Truth.NEVER and not outcomes.show(wanted):
            raise AssertionError(f"the possible row {one} can never come")
    seen["possible"] += len(rows)


def _covers(general: Row, row: Row) -> bool:
    return all(g is None or g == value for g, value in zip(general, row, strict=True))
