"""Law 4 for queries with `not`: truth, status, possible rows and deadlines by brute force.

    law 4   NEVER: no future that is tried brings the row. POSSIBLE: a future brings it, either one
            of these, or the one that the analysis gives as its reason, which is carried out
            here and must respect every declared fact. TRUE: the row is there.

The futures are all those of one or two trees a call, of the shapes that the pattern mentions, at
all times that its constraints distinguish, after every choice of deletions. A key forbids a value
that any node ever had, also one that was deleted. A reference needs a node that came before, or
with the node that refers to it; messages of several streams with one time come in any order.

Not compared: verdicts that are refused, questions after a case has spent the budget of one analysis
(AX502), and relevance where the smallest bound has too many futures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from itertools import combinations, islice, product
from math import comb
from random import Random
from typing import Any

from axlog.document.parser import Element
from axlog.document.tree import NodeKind, Tree
from axlog.errors import AxlogError, UndecidedError, UpdateError
from axlog.evaluate.definition import row_of, valuations
from axlog.future.grounding import has_not
from axlog.future.instances import Instances
from axlog.future.profile_trees import FutureTree
from axlog.future.profiles import Arrival, Events, Removal
from axlog.future.reasons import FINAL, why_not
from axlog.future.relevance import relevance
from axlog.future.search_budget import FIRST, bounded
from axlog.future.truth import Outlook, Possible, column_of
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.query.pattern import Kind, Pattern, TimeConstraint
from axlog.query.truth import Truth
from axlog.views.change import Change
from lab.laws.absence_cases import VALUES, AbsenceCase, values_to_ask
from lab.laws.questions import QUESTIONS
from lab.laws.row_parts import compare_part
from lab.reference import Alphabet, Bound, Fragment, Future, Outcomes, agrees, relevant
from lab.reference.declared_facts import DeclaredFacts
from lab.reference.fragments import attribute, element, text
from lab.reference.futures import Deletion, allowed, inserted, message_of, reachable

_MOST_FUTURES = 100
_MOST_ROWS = 20
_MOST_FINAL = 60
_PLACES = {"p": "a", "q": "d", "e": "c"}
Seen = Counter[str]


# Futures ------------------------------------------------------------------------------------------


def bound_for(tree: Tree, pattern: Pattern) -> Bound:
    """All futures of small trees, as many as can be tried."""
    said = str(pattern)
    times = _times(tree, pattern)
    for trees, size, number in ((2, 2, 9), (1, 3, 9), (1, 2, 9), (1, 2, 4), (1, 1, 3), (1, 1, 1)):
        pools = {
            stream: tuple(_pool(tree, call, said, size)) for stream, call in tree.calls().items()
        }
        bound = Bound(
            Alphabet(()), trees, size, times=times[:number], pools=pools,
            deletions=any(tree.call(c).deletes != "no" for c in tree.calls().values()),
            allows=DeclaredFacts.of(tree),
        )  # fmt: skip
        if _number(tree, bound) <= _MOST_FUTURES:
            break
    return bound


def _number(tree: Tree, bound: Bound) -> int:
    """An estimate of the number of futures."""
    count = 1
    for stream, node in tree.calls().items():
        call = tree.call(node)
        if call.deletes != "no":
            count *= 2 ** sum(1 for _ in tree.children(tree.parent(node)))
        pool = len(bound.pool(stream)) * len(bound.times_from(tree.clock))
        pool = 0 if call.deletes == "only" else pool
        count *= sum(comb(pool, k) for k in range(bound.trees_per_call + 1))
    return count


def _times(tree: Tree, pattern: Pattern) -> tuple[int, ...]:
    is_timed = any(output.kind is Kind.TIME for output in pattern.outputs) or "where" in str(
        pattern
    )
    clock = tree.clock
    return tuple(range(clock, clock + 6)) if is_timed else (clock,)


def _pool(tree: Tree, call: int, said: str, size: int) -> Iterator[Fragment]:
    leaves = [element("k", text(value)) for value in (*VALUES, "3")]
    leaves += [element(label) for label in "wz" if label in said]
    leaves += [element("v", text(value)) for value in ("7", "4") if "v" in said]
    leaves += [element("z", text("1"))] if "z" in said else []
    leaves += [attribute("i", value) for value in (*VALUES, "3")] if "@i" in said else []
    parent = tree.label(tree.parent(call))
    if parent not in _PLACES:
        yield from (leaf for leaf in leaves if leaf.kind is NodeKind.ELEMENT)
        return
    for number in range(size + 1):
        for chosen in combinations(leaves, number):
            if sum(each.kind is NodeKind.ATTRIBUTE for each in chosen) <= 1:
                below = sorted(chosen, key=lambda each: each.kind is not NodeKind.ATTRIBUTE)
                yield element(_PLACES[parent], *below)


# The law ------------------------------------------------------------------------------------------


def check_absence(case: AbsenceCase) -> Seen:
    """Compare every verdict on a case; return the number of comparisons by name."""
    seen: Seen = Counter()
    tree, pattern = case.tree(), case.pattern
    with bounded(len(tree), FIRST):  # one budget for all questions of the case: AX502 then
        try:
            check = _Check(tree, pattern, seen)
        except UndecidedError as error:
            seen[f"refused {error.code}"] += 1
            return seen
        check.truth()
        check.rows()
        check.possible()
        check.relevance()
        check.reasons()
    if not case.types:
        check_final(case, seen)
    return seen


def check_final(case: AbsenceCase, seen: Seen) -> None:
    """Check that no deleted row that a change calls final can return.

    A third of the cases are checked again with a stream that may delete.
    """
    _check_deleted(case, seen)
    random = Random(str(case))
    if "deletes" not in case.document and random.random() < 0.35:
        call = f'stream="{random.choice("fgh")}"'
        declared = call + random.choice((' deletes="yes"', ' deletes="yes"', ' deletes="only"'))
        _check_deleted(replace(case, document=case.document.replace(call, declared)), seen)


def _check_deleted(case: AbsenceCase, seen: Seen) -> None:
    doc = Document(case.document, facts=case.facts, views={"v": case.query})
    for stream, content, time in _with_deletions(case):
        is_deleting = any(
            tree.call(node).deletes != "no"
            for tree in [maintained(doc).tree]
            for node in tree.calls().values()
        )
        try:
            told = _took(doc, stream, content, time / 1_000_000)
        except AxlogError:
            continue
        for change in told:
            if change.op == "delete":
                tree = maintained(doc).nodes()
                row = dict(zip(change.row.columns, change.row.values_, strict=True))
                try:
                    found = Outlook(tree, case.pattern).status(row)
                except (UndecidedError, UpdateError):  # no node has the id any more
                    continue
                if change.final and found is not Truth.NEVER:
                    raise AssertionError(f"{change} is final after {content}, but {found}")
                beside = " beside a stream that deletes" if is_deleting else ""
                seen[f"delete {change.final}, {found.value}{beside}"] += 1


def _took(doc: Document, stream: str, content: str, at: float) -> list[Change]:
    if content.startswith("-"):
        return doc.delete(stream, content[1:], at=at)
    return doc.feed(stream, content, at=at) if content else doc.end(stream, at=at)


def _with_deletions(case: AbsenceCase) -> Iterator[tuple[str, str, int]]:
    """The steps, each followed by what streams delete, where they may."""
    random = Random(str(case))
    for stream, content, time in case.steps:
        yield stream, content, time
        if "deletes" in case.document and random.random() < 0.4:
            yield random.choice("fgh"), f"-match /{random.choice('adc*')}", time


class Shown:
    """The futures that the analysis gives as the reason of its verdict, carried out."""

    def __init__(self, tree: Tree, pattern: Pattern, outlook: Outlook, bound: Bound) -> None:
        self.tree, self.pattern, self.outlook, self.bound = tree, pattern, outlook, bound

    def documents(self, what: str, values: tuple[Any, ...]) -> Iterator[Tree]:
        """The documents after these futures, which respect every declared fact."""
        if not has_not(self.pattern):
            yield from self._instances(values)
            return
        events = self.outlook.future(dict(zip(self.pattern.columns, values, strict=True)))
        if events is None:
            raise AssertionError(f"{what}: possible without a future that shows it")
        yield self._carried_out(what, events)

    def _instances(self, values: tuple[Any, ...]) -> Iterator[Tree]:
        """The most general futures of every scenario of a query without `not`."""
        respects = DeclaredFacts.of(self.tree) or (lambda later: True)
        outlook = self._at_times(values)
        columns = outlook.columns
        wanted = {column_of(o): v for o, v in zip(self.pattern.outputs, values, strict=True)}
        instances = Instances(self.tree, outlook.pattern, together=False)
        for bound, need in outlook.met():
            pinned = tuple(
                wanted.get(c) if v is None else v for c, v in zip(columns, bound, strict=True)
            )
            for sent in instances.of(columns, pinned, need) if need.brought else ():
                for times in self._times_of([each.stream for each in sent], values):
                    trees: dict[tuple[int, str], list[Element]] = {}
                    for time, each in zip(times, sent, strict=True):
                        trees.setdefault((time, each.stream), []).append(copy(each.tree))
                    messages = [(*at, trees[at]) for at in sorted(trees)]
                    later = inserted(self.tree, messages, respects)
                    if later is not None:
                        yield later

    def _times_of(self, streams: list[str], values: tuple[Any, ...]) -> Iterator[tuple[int, ...]]:
        """Every choice of times for some trees; those of a one-shot call have one time."""
        clock = self.tree.clock
        asked = {each for each in values if isinstance(each, int) and each >= clock}
        times = (clock,)
        if len(_times(self.tree, self.pattern)) > 1:
            times = tuple(sorted({*range(clock, clock + 7), *asked}))
        for chosen in product(times, repeat=len(streams)):
            one_shot = [
                (stream, time)
                for stream, time in zip(streams, chosen, strict=True)
                if self.tree.call(self.tree.calls()[stream]).mode == "one-shot"
            ]
            if len(dict(one_shot)) == len(set(one_shot)):
                yield chosen

    def _at_times(self, values: tuple[Any, ...]) -> Outlook:
        """The outlook of the query with the times of a row as constraints."""
        times = [
            TimeConstraint(((1, output.of),), "=", value)
            for output, value in zip(self.pattern.outputs, values, strict=True)
            if output.kind is Kind.TIME and value is not None
        ]
        if not times:
            return self.outlook
        return Outlook(self.tree, replace(self.pattern, where=(*self.pattern.where, *times)))

    def _carried_out(self, what: str, events: Events) -> Tree:
        """The document after the future that the analysis found; it must be one."""
        future = future_of(self.tree, events)
        self._check_facts(what, future)
        later = allowed(future, self.tree, replace(self.bound, allows=DeclaredFacts.of(self.tree)))
        if later is None:
            raise AssertionError(f"{what}: a declared fact forbids {future}")
        return later

    def _check_facts(self, what: str, future: Future) -> None:
        tree = self.tree
        for stream, node in tree.calls().items():
            call = tree.call(node)
            mine = [each for each in future.messages if each.stream == stream]
            number = sum(len(each.forest) for each in mine) + tree.brought.get(stream, 0)
            is_bad = (
                (call.most is not None and mine and number > call.most)
                or (call.mode == "one-shot" and len({each.time for each in mine}) > 1)
                or (call.deletes == "only" and mine)
                or (call.deletes == "no" and any(d.stream == stream for d in future.deletions))
                or any(each.time < tree.clock for each in mine)
            )
            if is_bad:
                raise AssertionError(f"{what}: the call of {stream} forbids {future}")


class _Check:
    """The verdicts on one document."""

    def __init__(self, tree: Tree, pattern: Pattern, seen: Seen) -> None:
        self.tree, self.pattern, self.seen = tree, pattern, seen
        self._random = Random(f"{len(tree)} {tree.clock} {pattern}")
        self.outlook = Outlook(tree, pattern)
        self.bound = bound_for(tree, pattern)
        self.tried = Outcomes(tree, pattern, self.bound, _MOST_FUTURES)
        seen["futures"] += self.tried.tried

    def truth(self) -> None:
        try:
            found = self.outlook.truth
        except UndecidedError as error:
            self.seen[f"truth refused {error.code}"] += 1
            return
        self._compare("the truth", found, (None,) * len(self.pattern.outputs))
        self.seen[f"truth {found.value}"] += 1

    def rows(self) -> None:
        choices = [values_to_ask(self.tree, output.kind) for output in self.pattern.outputs]
        rows = list(product(*choices))
        for values in self._random.sample(rows, min(len(rows), _MOST_ROWS)):
            asked = dict(zip(self.pattern.columns, values, strict=True))
            try:
                found = self.outlook.status(asked)
            except UndecidedError as error:
                self.seen[f"row refused {error.code}"] += 1
                continue
            self._compare(f"the status of {asked}", found, values)
            self.seen[f"row {found.value}"] += 1

    def _compare(self, what: str, found: Truth, values: tuple[Any, ...]) -> None:
        self.seen[QUESTIONS] += 1
        wanted = self.tried.status(values)
        if found is wanted:
            return
        if found is not Truth.POSSIBLE or wanted is not Truth.NEVER:
            raise AssertionError(f"{what}: found {found}, wanted {wanted}")
        shown = Shown(self.tree, self.pattern, self.outlook, self.bound)
        documents = shown.documents(what, values)
        if not any(agrees(row, values) for later in documents for row in self.tried.rows(later)):
            raise AssertionError(f"{what}: found {found}, and no future of the analysis shows it")
        self.seen["shown by its future"] += 1

    def relevance(self) -> None:
        """A stream whose data changes rows in some future is wanted."""
        if self.bound.deletions or len(str(self.pattern)) % 3:
            return
        if _number(self.tree, self.bound) > 2 * _MOST_FUTURES:
            self.seen["relevance by too many futures"] += 1
            return
        try:
            found = relevance(self.tree, self.pattern)
        except UndecidedError as error:
            self.seen[f"relevance refused {error.code}"] += 1
            return
        for stream, each in found.items():
            wanted = relevant(self.tree, self.pattern, stream, self.bound)
            if wanted and (each.relevant is False or not each.axlog or not each.lazy):
                raise AssertionError(f"{stream} is relevant, found {each}")
            self.seen[QUESTIONS] += 1
            self.seen[f"relevant {each.relevant}, by futures {wanted}"] += 1

    def reasons(self) -> None:
        """A verdict has its reasons. Each asks without every fact, so half of the cases do."""
        if self._random.random() < 0.5:
            return
        for value in self._random.sample((*VALUES, "3"), 1):
            row: dict[str, Any] = {c: value for c in self.pattern.columns if c in ("x", "y")}
            there = sorted(self.tried.present, key=str)
            if there and self._random.random() < 0.5:
                values = zip(self.pattern.columns, self._random.choice(there), strict=True)
                row = {c: value for c, value in values if c in row}
            try:
                found = why_not(self.tree, self.pattern, row)
                wanted = self.outlook.status(row)
            except UndecidedError:
                continue
            if found.truth is not wanted or not found.reasons:
                raise AssertionError(f"{row} is {wanted}, and why: {found}")
            compare_part(self.tree, self.pattern, row, self.seen)
            if any(each.text == FINAL for each in found.reasons):
                self._is_final(row)
            self.seen[f"reason {found.reasons[-1].kind}"] += 1

    def _is_final(self, row: dict[str, Any]) -> None:
        """No future is without a row that nothing ends."""
        values = tuple(row.get(column) for column in self.pattern.columns)
        for later in islice(reachable(self.tree, self.bound), _MOST_FINAL):
            there = {row_of(later, self.pattern, v)[1] for v in valuations(later, self.pattern)}
            if not any(agrees(each, values) for each in there):
                raise AssertionError(f"nothing ends {row}, and a future is without it")
        self.seen["final"] += 1

    def possible(self) -> None:
        """Possible rows cover every row that can come, and each of them can come, until its end."""
        try:
            listed = self.outlook.possible()
        except UndecidedError as error:
            self.seen[f"possible refused {error.code}"] += 1
            return
        self.seen[QUESTIONS] += 1
        rows = [tuple(one.row.values()) for one in listed]
        for row in self.tried.satisfiable - self.tried.present:
            if not any(agrees(row, one) for one in rows):
                raise AssertionError(f"no possible row covers {row}")
        for one in listed:
            try:
                found = self.outlook.status(dict(one.row))
            except UndecidedError:
                continue
            if found is Truth.NEVER:
                raise AssertionError(f"the possible row {one} can never come")
        try:
            self._deadlines(listed)
        except UndecidedError as error:
            if error.code != "AX502":  # the budget of the case
                raise
            self.seen["deadlines refused AX502"] += 1
        self.seen["possible"] += len(rows)

    def _deadlines(self, listed: list[Possible]) -> None:
        """At its deadline a row may come, and a moment later it may not."""
        for one in listed:
            values = tuple(one.row.values())
            ways = [each.deadline for each in listed if _meet(values, tuple(each.row.values()))]
            known = [int(each) for each in ways if each is not None]
            if len(known) < len(ways) or self.outlook.status(one.row) is Truth.TRUE:
                continue
            until = max(known)
            for clock, wanted in ((until, Truth.POSSIBLE), (until + 1, Truth.NEVER)):
                later = self.tree.copied()
                later.clock = clock
                found = Outlook(later, self.pattern).status(one.row)
                if found is not wanted:
                    raise AssertionError(f"{one} at {clock}: found {found}, wanted {wanted}")
            self.seen["deadlines"] += 1


def _meet(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether some row is one of both; None is any value."""
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


# Futures that the analysis gives ------------------------------------------------------------------


def future_of(tree: Tree, events: Events) -> Future:
    """The messages and deletions of some events."""
    gone: dict[str, set[int]] = {}
    trees: dict[tuple[int, str], list[Fragment]] = {}
    for event in events:
        if isinstance(event, Removal):
            gone.setdefault(event.stream, set()).add(event.node)
        elif isinstance(event, Arrival):
            assert event.tree.time is not None
            key = (event.tree.time, event.stream)
            trees.setdefault(key, []).append(_fragment(event.tree, None))
    messages = [m for (time, stream), forest in trees.items()
                for m in message_of(time, stream, forest)]  # fmt: skip
    return Future(
        tuple(sorted(messages, key=lambda each: (each.time, each.stream))),
        tuple(Deletion(s, frozenset(map(tree.id, nodes))) for s, nodes in gone.items()),
    )


def _fragment(tree: FutureTree, above: int | None) -> Fragment:
    below: list[Fragment] = [attribute(name, value) for name, value in tree.attributes]
    for child in tree.children:
        is_text = isinstance(child, str)
        if is_text and below and below[-1].kind is NodeKind.TEXT:
            below.append(Fragment(NodeKind.COMMENT, ""))  # else the two would be one text
        time = above if tree.time is None else tree.time
        below.append(text(child) if isinstance(child, str) else _fragment(child, time))
    at = None if above is None or tree.time in (above, None) else tree.time
    return Fragment(NodeKind.ELEMENT, tree.label, tuple(below), at=at)
