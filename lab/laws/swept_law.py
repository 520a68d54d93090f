"""Rows that joins with `not`s drop have no effect (law 5).

"Ordered and not shipped", in several forms: one part or two, with groups or without, with keys on
any of them or on what must be absent, about the clock or not. Three documents get the same
messages: one keeps only what is needed and drops rows after every update, one drops none, one keeps
all messages. One more is saved and restored after every step. After each step all must have made
the same changes, `never` included, and have the same rows, truth, statuses and possible rows. Those
of groups may be refused without the messages: then they are not compared with the third.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from random import Random
from typing import Any

from axlog.errors import AxlogError
from axlog.live import join_sweeps
from axlog.live.document import Document
from axlog.live.internals import streams_of
from axlog.live.options import Options
from axlog.views.change import Change
from axlog.views.counting.join_watch import JoinWatch
from lab.laws.attributes import attributed, in_fact, in_query, in_steps
from lab.laws.never_law import Step, take

_PARTS = (
    "[f/a/k/$x#t1]", "[f/a[k/$x#t1]/y/$y]", "[f/a/k/$x#t1][g/a/k/$x#t2]",
    "[f/a[k/$x#t1]/y/$y][g/a/k/$x]", "[f/a[k/$x#t1]/y/$y][g/a[k/$y]/y/$z]",
    "[f/a/k/$x#t1][g/a/y/$y]",
)  # fmt: skip
_ABSENT = (
    "[not(n/a/k/$x)]", "[not(n/a/k/$x)]", "[not(n/a[w]/k/$x)]", "[not(n/a/w)]", "[not(n/a/y/$y)]",
    "[not(n/a[k/$x]/y/$y)]", "[not(n/a/k/$x)][not(n/a[w]/y/$y)]", "[not(n/a[k/$x]/y/$q)]",
)  # fmt: skip
_STEPS = (
    "count() as n", "{0}, count() as n", "{0}, count() as n having n > 1", "sum({0}) as s",
    "{0}, sum({1}) as s, max({1}) as m", "{0}, count() as n having sum({1}) < 4",
    "{0} order by {0} limit 1", "{0}, count(distinct {1}) as n",
)  # fmt: skip
_NOT_KEPT = "AX307"  # the messages that the answer needs were not kept
_VALUES = ("1", "2", "3")
_OPTIONS = (
    Options(keep="needed"), Options(keep="needed", collect="off"), Options(collect="off"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SweptCase:
    """One case; its `str` is enough to run it again."""

    query: str
    facts: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def document(self) -> str:
        """The document: an element with a call for each stream."""
        call = '<ax:call xmlns:ax="urn:axlog" stream="{0}"/>'
        return f"<r>{''.join(f'<{s}>{call.format(s)}</{s}>' for s in 'fgn')}</r>"


def make_swept_case(random: Random) -> SweptCase:
    """A random case."""
    pattern = random.choice(_PARTS)
    known = [each for each in _ABSENT if "$y" in pattern or "$y" not in each]
    pattern += random.choice(known)
    where = [] if "#t2" not in pattern or random.random() < 0.7 else ["t2 - t1 <= 2us"]
    if "#t1" in pattern and random.random() < 0.3:
        where.append(f"now - t1 >= {random.choice((0, 2, 4))}us")
    named = [f"${name}" for name in "xyz" if f"${name}" in pattern]
    shown = [column for column in named if random.random() < 0.8]
    query = f"match /r{pattern}" + (f" where {' and '.join(where)}" if where else "")
    if random.random() < 0.4:
        one, other = random.choice(named), random.choice(named)
        query += f" return {random.choice(_STEPS).format(one, other)}"
    else:
        query += f" return {', '.join(shown)}" if shown else ""
    keyed = [stream for stream in "fgn" if random.random() < 0.6]
    facts = tuple(f"key {stream}/a by k trusted" for stream in keyed)
    steps, labels = tuple(_steps(random, keyed)), attributed(random, "ky")
    facts = tuple(in_fact(fact, labels) for fact in facts)
    return SweptCase(in_query(query, labels), facts, in_steps(steps, labels))


def _steps(random: Random, keyed: list[str]) -> Iterator[Step]:
    left = {stream: list(_VALUES) for stream in keyed}
    time, ended = 0, set[str]()
    for _ in range(random.randint(4, 14)):
        time += random.choice((0, 1, 1, 2))
        stream, chance = random.choice("fffgnn"), random.random()
        if chance < 0.1:
            yield "advance", "", time
        elif chance < 0.14 and stream not in ended:
            ended.add(stream)
            yield "end", stream, time
        elif stream not in ended and (values := left.get(stream, list(_VALUES))):
            value = random.choice(values)
            if stream in left:
                values.remove(value)
            wanted = "<w/>" if random.random() < 0.5 else ""
            other = random.choice(_VALUES)
            yield stream, f"<a>{wanted}<k>{value}</k><y>{other}</y></a>", time


def smaller_swept(case: SweptCase) -> Iterator[SweptCase]:
    """Cases with less in them."""
    for at in range(len(case.steps)):
        yield replace(case, steps=case.steps[:at] + case.steps[at + 1 :])
    for at in range(len(case.facts)):
        yield replace(case, facts=case.facts[:at] + case.facts[at + 1 :])


# The check ----------------------------------------------------------------------------------------


@contextmanager
def swept_every(updates: int) -> Iterator[None]:
    """Drop rows of joins with `not`s after this many updates, in documents made in the body."""
    usual, join_sweeps.SWEPT_EVERY = join_sweeps.SWEPT_EVERY, updates
    try:
        yield
    finally:
        join_sweeps.SWEPT_EVERY = usual


def dropped_beside_not(doc: Document) -> int:
    """The number of rows that joins with `not`s have dropped."""
    joins = streams_of(doc).collector.joins
    return sum(join.dropped for join in joins if isinstance(join, JoinWatch))


def check_swept(case: SweptCase) -> Counter[str]:
    """Check the law on one case; return the number of comparisons by name."""
    seen: Counter[str] = Counter()
    with swept_every(1):
        documents = [_document(case, options) for options in _OPTIONS]
        restored = documents[0] if len(case.steps) % 2 else _document(case, _OPTIONS[0])
        is_computed = bool(documents[0].view("v").query.steps)
        for number, step in enumerate(case.steps):
            if step[0] != "end" and restored is not documents[0]:
                restored = _restored(case, number, restored)
                seen["restored"] += 1
            each = [_plain(take(doc, step)) for doc in documents]
            if restored is not documents[0]:
                each.append(_plain(take(restored, step)))
            for changes in each[:2] + each[3:]:
                _same(f"the changes at {step}", changes, each[2])
            seen["changes"] += len(each[2])
            seen["never"] += sum(change[0] == "never" for change in each[2])
            wanted = _answers(documents[1])
            _same(f"the answers after {step}", _answers(documents[0]), wanted)
            known = wanted if is_computed else None
            _same(f"all answers after {step}", _answers(documents[2], known), wanted)
            if restored is not documents[0]:
                found = _answers(restored)
                if is_computed:  # it never had the messages that the others may not have had yet
                    pairs = zip(found, wanted, strict=True)
                    found = [other if _NOT_KEPT in one else one for one, other in pairs]
                _same(f"the restored answers after {step}", found, wanted)
            seen["answers"] += sum(_NOT_KEPT not in each for each in wanted)
        dropped = dropped_beside_not(documents[0])
        seen["dropped"] += dropped
        seen["dropped beside groups"] += dropped * is_computed
    return seen


def _document(case: SweptCase, options: Options) -> Document:
    return Document(case.document, facts=case.facts, views={"v": case.query}, options=options)


def _restored(case: SweptCase, number: int, doc: Document) -> Document:
    """A new document with the saved state of another one."""
    state, fresh = streams_of(doc).engine.state(), _document(case, _OPTIONS[0])
    for done in case.steps[:number]:
        if done[0] == "end":
            take(fresh, done)
    streams_of(fresh).engine.restore(state)
    return fresh


def _answers(doc: Document, known: list[str] | None = None) -> list[str]:
    """Rows, truth, the status of rows and possible rows; a refusal is an answer.

    `known`: those of a document without messages. What it refuses for this reason is not asked.
    """
    view = doc.view("v")
    asks: list[tuple[str, Callable[[], Any]]] = [
        ("rows", lambda: sorted(map(str, view.rows()))), ("truth", lambda: view.truth),
    ]  # fmt: skip
    values_asked = _VALUES[:1] if view.query.steps else _VALUES  # each is a search
    for values in product((None, *values_asked), repeat=len(view.columns)):
        row = {c: v for c, v in zip(view.columns, values, strict=True) if v is not None}
        asks.append((str(row), partial(view.status, row)))
    asks.append(("possible", lambda: sorted(str(one.to_dict()) for one in view.possible())))
    return [
        f"{name} {_NOT_KEPT if known is not None and _NOT_KEPT in known[at] else _answer(ask)}"
        for at, (name, ask) in enumerate(asks)
    ]


def _answer(ask: Callable[[], Any]) -> str:
    try:
        return str(ask())
    except AxlogError as error:
        return error.code


def _plain(changes: list[Change]) -> list[tuple[str, str, Any]]:
    return sorted((c.op, str(c.row.values_), c.final) for c in changes)


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: found {found}, wanted {wanted}")
