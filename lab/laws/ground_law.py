"""Law 4 for "ordered and not shipped", by brute force over futures of messages.

    TRUE       the row is there
    POSSIBLE   it is not, and after some messages, at some clock, it is
    NEVER      after none
    possible   covers every row that can come, and lists none that cannot
    never      emitted for rows that are NEVER now; not missing for a row that was listed with all
               its values, where `explain` says that `never` is reported. The clock passes before
               a message is applied: a row whose deadline passes is not listed any more

A message is a stream, a key `k`, a value `y`, a mark `w` or none, and a time. The query is one or
two parts and up to two `not`s over such messages, with variables and constants, keys, limits,
differences of times, and `now`. It is evaluated here from its definition over all choices of
messages. The futures are all choices of at most one message of each stream, with every value that
is there and one that is new, at every time that the constraints distinguish; a part takes one
message, so more bring no other rows. What only a `not` reads is left out of futures: it takes rows
away. Where its stream deletes, all of it may go; where its stream replaces, a message may lose all
but its key.

In a third of the cases values are attributes. A key forbids a value that a deleted message had.

The document under test gets the messages as XML. It is asked for every row, all of whose values
are given or only some, once keeping all messages, and once keeping what is needed, with rows of
finished matches dropped after every update. Both are loaded from a snapshot now and then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import NamedTuple

from axlog.errors import AxlogError
from axlog.future.search_budget import Effort, within
from axlog.live.document import Document
from axlog.live.internals import maintained_view
from axlog.live.options import Options
from axlog.live.view import View
from axlog.query.truth import Truth
from axlog.views.change import Change
from lab.laws.attributes import attributed, in_fact, in_query, in_tree
from lab.laws.prospects_law import reopened
from lab.laws.questions import QUESTIONS
from lab.laws.swept_law import dropped_beside_not, swept_every

_VALUES = ("1", "2", "3")
_NEW = "8"
_MOST_WALKED = 8
_BUDGET = 2_000  # of all searches of one case
_OPTIONS = (Options(), Options(keep="needed"))
Values = tuple[str | None, ...]


class Message(NamedTuple):
    """A message of a stream."""

    stream: str
    k: str
    y: str
    w: bool
    time: int

    @property
    def xml(self) -> str:
        return f"<a>{'<w/>' if self.w else ''}<k>{self.k}</k><y>{self.y}</y></a>"


class Deletion(NamedTuple):
    """A stream deletes its messages with a key."""

    stream: str
    k: str
    time: int

    @property
    def pattern(self) -> str:
        return f'match /a[k/"{self.k}"]'


Step = Message | Deletion | tuple[str, int]
"""A message, a deletion, or a stream that ends; without a name, the clock."""


class Branch(NamedTuple):
    """A part or the inside of a `not`: the variables that a message of a stream binds."""

    stream: str
    k: str | None = None
    y: str | None = None
    w: bool = False
    name: str | None = None  # of the time

    @property
    def text(self) -> str:
        named = f"#{self.name}" if self.name else ""
        tests = "[w]" if self.w else ""
        tests += f"[k/{self.k if self.is_constant else f'${self.k}'}{named}]" if self.k else ""
        return f"{self.stream}/a{tests}" + (f"[y/${self.y}]" if self.y else "")

    @property
    def is_constant(self) -> bool:
        """Whether `k` is a quoted string, and no variable."""
        return self.k is not None and self.k.startswith('"')

    @property
    def variables(self) -> set[str]:
        """The variables that a message binds."""
        return {v for v in (None if self.is_constant else self.k, self.y) if v}

    def binding(self, message: Message) -> dict[str, str] | None:
        """What a message binds; None: it does not match."""
        if message.stream != self.stream or (self.w and not message.w):
            return None
        if self.is_constant and self.k != f'"{message.k}"':
            return None
        found: dict[str, str] = {}
        for variable, value in ((self.k, message.k), (self.y, message.y)):
            if variable in self.variables and found.setdefault(str(variable), value) != value:
                return None
        return found


@dataclass(frozen=True, slots=True)
class GroundCase:
    """One case; its `str` is enough to run it again."""

    parts: tuple[Branch, ...]
    absent: tuple[Branch, ...]
    shown: tuple[str, ...]
    keyed: tuple[str, ...]
    steps: tuple[Step, ...]
    within: int | None = None  # the most between the times of two parts
    since: int | None = None  # the least between the time of the first part and now
    labels: tuple[str, ...] = ()  # of values that are attributes
    deleting: str = ""  # the streams that delete
    replacing: str = ""  # the streams whose messages replace those with the same key
    limits: tuple[tuple[str, int], ...] = ()  # the streams that bring so many messages at most
    least: int | None = None  # the least between the times of two parts

    @property
    def query(self) -> str:
        branches = [each.text for each in self.parts]
        branches += [f"not({each.text})" for each in self.absent]
        where = [] if self.within is None else [f"t2 - t1 <= {self.within}us"]
        where += [] if self.least is None else [f"t2 - t1 >= {self.least}us"]
        where += [] if self.since is None else [f"now - t1 >= {self.since}us"]
        text = f"match /r{''.join(f'[{each}]' for each in branches)}"
        text += f" where {' and '.join(where)}" if where else ""
        text += f" return {', '.join(f'${v}' for v in self.shown)}" if self.shown else ""
        return in_query(text, self.labels)

    @property
    def is_walked(self) -> bool:
        """Whether questions search the document: not all is read off a join."""
        keyed = [p for p in (*self.parts, *self.absent) if p.is_constant and p.stream in self.keyed]
        is_joined = len(self.parts) + len(self.absent) > 1
        return bool(self.deleting or self.replacing or self.limits or keyed or not is_joined)

    @property
    def facts(self) -> list[str]:
        return [in_fact(f"key {stream}/a by k trusted", self.labels) for stream in self.keyed]

    @property
    def document(self) -> str:
        return f"<r>{''.join(f'<{s}>{self._call(s)}</{s}>' for s in 'fgn')}</r>"

    def _call(self, stream: str) -> str:
        path = "@k" if "k" in self.labels else "k"
        said = ' deletes="yes"' if stream in self.deleting else ""
        said += f' replace="{path}"' if stream in self.replacing else ""
        if stream in (limits := dict(self.limits)):
            said += f' most="{limits[stream]}"' if limits[stream] else ' mode="one-shot"'
        return f'<ax:call xmlns:ax="urn:axlog" stream="{stream}"{said}/>'


_FIRST = (Branch("f", "x", name="t1"), Branch("f", "x", "y", name="t1"),
          Branch("f", "x", None, True, "t1"), Branch("f", '"1"', "x", True, "t1"))  # fmt: skip
_SECOND = (Branch("g", "x", name="t2"), Branch("g", "x", "y", name="t2"),
           Branch("g", "y", "z", name="t2"), Branch("g", "z", "x", name="t2"),
           Branch("g", '"2"', "x", name="t2"))  # fmt: skip
_ABSENT = (Branch("n", "x"), Branch("n", "x"), Branch("n", "x", None, True), Branch("n", None, "x"),
           Branch("n", "x", "y"), Branch("n", None, "y"), Branch("n", None, None, True),
           Branch("n", "x", "q"))  # fmt: skip


def make_ground_case(random: Random) -> GroundCase:
    """A random case."""
    parts = [random.choice(_FIRST)]
    if random.random() < 0.5:
        parts.append(random.choice(_SECOND))
    bound = {v for part in parts for v in part.variables}
    known = [each for each in _ABSENT if {each.k, each.y} - {None, "q"} <= bound]
    absent = tuple(random.sample(known, random.choice((0, 1, 1, 1, 1, 1, 1, 2))))
    shown = tuple(v for v in sorted(bound) if random.random() < 0.85)
    keyed = tuple(stream for stream in "fgn" if random.random() < 0.6)
    within = random.choice((None, None, 0, 2)) if len(parts) > 1 else None
    since = random.choice((0, 2, 4)) if random.random() < 0.3 else None
    deleting = "".join(s for s in "fgn" if random.random() < 0.5) if random.random() < 0.12 else ""
    replacing = random.choice("fgn") if random.random() < 0.05 else ""
    changing = {*deleting, *replacing}
    limited = [s for s in "fgn" if random.random() < 0.3] if random.random() < 0.3 else []
    limits = tuple((s, random.choice((0, 1, 2, 3))) for s in limited if s not in changing)
    least = random.choice((None, None, -1, 0, 1)) if len(parts) > 1 else None
    steps = tuple(_steps(random, [s for s in keyed if s not in replacing], deleting, dict(limits)))
    labels = attributed(random, "ky")
    return GroundCase(
        tuple(parts), absent, shown, keyed, steps, within, since, labels, deleting, replacing,
        limits, least,
    )  # fmt: skip


def _steps(
    random: Random, keyed: list[str], deleting: str, limits: dict[str, int]
) -> Iterator[Step]:
    left = {stream: list(_VALUES) for stream in keyed}
    more = {stream: most or 1 for stream, most in limits.items()}
    time, ended = 0, set[str]()
    for _ in range(random.randint(3, 9)):
        time += random.choice((0, 1, 1, 2))
        stream, chance = random.choice("ffgnn"), random.random()
        if chance < 0.12:
            yield "", time
        elif chance < 0.17 and stream not in ended:
            ended.add(stream)
            yield stream, time
        elif chance < 0.4 and stream in deleting and stream not in ended:
            yield Deletion(stream, random.choice(_VALUES), time)
        elif stream not in ended and (values := left.get(stream, list(_VALUES))):
            value = random.choice(values)
            if stream in left:
                values.remove(value)
            if stream in more:
                more[stream] -= 1
                if not more[stream]:
                    ended.add(stream)
            yield Message(stream, value, random.choice(_VALUES), random.random() < 0.5, time)


def smaller_ground(case: GroundCase) -> Iterator[GroundCase]:
    """Cases with less in them."""
    for at in range(len(case.steps)):
        yield replace(case, steps=case.steps[:at] + case.steps[at + 1 :])
    for at in range(len(case.keyed)):
        yield replace(case, keyed=case.keyed[:at] + case.keyed[at + 1 :])
    if case.within is not None or case.since is not None:
        yield replace(case, within=None, since=None)
    if case.least is not None:
        yield replace(case, least=None)
    for field in ("labels", "deleting", "replacing"):
        if getattr(case, field):
            yield replace(case, **{field: type(getattr(case, field))()})


# The definition -----------------------------------------------------------------------------------


class Definition:
    """The rows of a query over messages, now and in all futures."""

    def __init__(self, case: GroundCase) -> None:
        self._case = case
        self._messages: list[Message] = []
        self._used: set[tuple[str, str]] = set()
        self._ended: set[str] = set()
        self.clock = 0
        self.present: set[Values] = set()
        self.satisfiable: set[Values] = set()
        self.look()

    def take(self, step: Step) -> None:
        if isinstance(step, Message | Deletion):
            if isinstance(step, Deletion) or step.stream in self._case.replacing:
                self._messages = [m for m in self._messages if m[:2] != step[:2]]
            if isinstance(step, Message):
                self._messages.append(step)
                self._used.add((step.stream, step.k))
                most = dict(self._case.limits).get(step.stream)
                if sum(m.stream == step.stream for m in self._messages) == (most or 1) and (
                    most is not None
                ):
                    self._ended.add(step.stream)
            self.clock = step.time
        else:
            self._ended.add(step[0])
            self.clock = step[1]
        self.look()

    def pass_to(self, clock: int) -> None:
        """Let the clock pass."""
        self.clock = clock
        self.look()

    def look(self) -> None:
        """Evaluate the query now, and after every future."""
        self.present = set(self._rows((), self.clock))
        self.satisfiable = set(self.present)
        for more in self.futures():
            self.satisfiable.update(self._rows(more, None))

    def futures(self) -> Iterator[tuple[Message, ...]]:
        """Every choice of at most one message of each stream that a part reads."""
        choices = [[(), *((each,) for each in self._pool(part))] for part in self._case.parts]
        for chosen in product(*choices):
            yield tuple(message for each in chosen for message in each)

    def _pool(self, part: Branch) -> Iterator[Message]:
        if part.stream in self._ended:
            return
        is_keyed = part.stream in self._case.keyed and part.stream not in self._case.replacing
        is_tied = self._case.within is not None or self._case.least is not None
        times = range(self.clock, self.clock + (4 if is_tied else 1))
        values = (*_VALUES, _NEW)
        for k, y, time in product(values, values if part.y else _VALUES[:1], times):
            if not is_keyed or (part.stream, k) not in self._used:
                yield Message(part.stream, k, y, True, time)

    def _rows(self, more: tuple[Message, ...], clock: int | None) -> Iterator[Values]:
        """The rows with more messages; `clock` None: at any clock from now on."""
        case, messages = self._case, (*self._messages, *more)
        for chosen in product(*([m for m in messages if m.stream == p.stream] for p in case.parts)):
            bound = _joined(case.parts, chosen)
            if bound is None or (more and not set(more) & set(chosen)):
                continue  # what has none of these messages is a row without them, too
            if len(chosen) > 1:
                between = chosen[1].time - chosen[0].time
                if case.within is not None and between > case.within:
                    continue
                if case.least is not None and between < case.least:
                    continue
            is_early = clock is not None and clock - chosen[0].time < (case.since or 0)
            if case.since is not None and is_early:
                continue
            if not any(self._blocks(each, bound, clock is None) for each in case.absent):
                yield tuple(bound[variable] for variable in case.shown)

    def _blocks(self, absent: Branch, bound: dict[str, str], is_later: bool) -> bool:
        if is_later and absent.stream not in self._ended:
            reads_more = absent.y is not None or absent.w or absent.k is None
            if absent.stream in self._case.deleting:
                return False
            if absent.stream in self._case.replacing and reads_more:
                return False
        for message in self._messages:
            found = absent.binding(message)
            if found is not None and all(
                bound.get(v, value) == value for v, value in found.items()
            ):
                return True
        return False

    def status(self, values: Values) -> Truth:
        if any(_agrees(row, values) for row in self.present):
            return Truth.TRUE
        is_possible = any(_agrees(row, values) for row in self.satisfiable)
        return Truth.POSSIBLE if is_possible else Truth.NEVER


def _joined(parts: tuple[Branch, ...], chosen: tuple[Message, ...]) -> dict[str, str] | None:
    bound: dict[str, str] = {}
    for part, message in zip(parts, chosen, strict=True):
        found = part.binding(message)
        if found is None or any(bound.get(v, value) != value for v, value in found.items()):
            return None
        bound.update(found)
    return bound


def _agrees(row: Values, values: Values) -> bool:
    return all(wanted in (None, found) for found, wanted in zip(row, values, strict=True))


# The check ----------------------------------------------------------------------------------------


def check_ground(case: GroundCase) -> Counter[str]:
    """Check the law on one case; return the number of comparisons by name."""
    seen: Counter[str] = Counter()
    with swept_every(1):
        kept = _OPTIONS[:1] if case.is_walked else _OPTIONS  # others are refused: AX307
        runs = [_Run(case, options, seen) for options in kept]
        definition = Definition(case)
        for run in runs:
            run.compare("at the start", definition)
        for step in case.steps:
            told = [run.take(step) for run in runs]
            before = [run.listed_at(definition, step[-1]) for run in runs]
            definition.take(step)
            for run, listed, changes in zip(runs, before, told, strict=True):
                run.compare(f"after {step}", definition)
                run.never(f"at {step}", listed, changes, definition)
        seen["dropped"] += dropped_beside_not(runs[-1].doc)
    return seen


class _Run:
    """One document under test."""

    def __init__(self, case: GroundCase, options: Options, seen: Counter[str]) -> None:
        self._case, self._seen, self._what = case, seen, options.keep
        self._options = options
        views = {"v": case.query}
        self.doc = Document(case.document, facts=case.facts, views=views, options=options)
        self.view: View = self.doc.view("v")
        self.listed: dict[Values, float | None] = {}  # with their deadlines, in microseconds
        self._effort = Effort(_BUDGET)
        self.is_reported = False

    def take(self, step: Step) -> list[Change]:
        if Random(f"{self._case} {step}").random() < 0.25:
            self.doc = reopened(self.doc, self._options, self._case.facts)
            self.view = self.doc.view("v")
            self._seen["reopened"] += 1
        self.is_reported = maintained_view(self.view).how_never().startswith("reported")
        labels = self._case.labels
        if isinstance(step, Message):
            return self.doc.feed(step.stream, in_tree(step.xml, labels), at=step.time / 1e6)
        if isinstance(step, Deletion):
            pattern = in_query(step.pattern, labels)
            return self.doc.delete(step.stream, pattern, at=step.time / 1e6)
        stream, time = step
        return self.doc.end(stream, at=time / 1e6) if stream else self.doc.advance(time / 1e6)

    def listed_at(self, definition: Definition, time: int) -> list[Values]:
        """The listed rows that are listed at a time too, or are NEVER then: the clock passes."""
        passed = [row for row, until in self.listed.items() if until is not None and until < time]
        if passed:
            definition.pass_to(time)
            passed = [row for row in passed if definition.status(row) is not Truth.NEVER]
        return [row for row in self.listed if row not in passed]

    def compare(self, when: str, definition: Definition) -> None:
        """Compare rows, truth, the status of all rows, and possible rows."""
        with within(self._effort) if self._case.is_walked else nullcontext():
            self._compare(when, definition)

    def _compare(self, when: str, definition: Definition) -> None:
        view, columns = self.view, self.view.columns
        present = {tuple(row[c] for c in columns) for row in view.rows()}
        self._same(f"the rows {when}", present, definition.present)
        try:
            self._ask(f"the truth {when}", view.truth, definition.status((None,) * len(columns)))
        except AxlogError as error:
            self._seen[f"refused {error.code}"] += 1
        rows = list(product((None, *_VALUES, _NEW), repeat=len(columns)))
        if self._case.is_walked:  # each question is a search
            rows = Random(f"{when} {definition.clock}").sample(rows, min(len(rows), _MOST_WALKED))
        for values in rows:
            asked = {c: v for c, v in zip(columns, values, strict=True) if v is not None}
            try:
                found = view.status(asked)
            except AxlogError as error:
                self._seen[f"refused {error.code}"] += 1
                continue
            self._ask(f"the status of {asked} {when}", found, definition.status(values))
            self._seen[f"row {found.value}"] += 1
        if not self._case.is_walked:
            self._explain(when, Random(f"{when} {definition.clock}").choice(rows))
        self._compare_possible(when, definition)

    def _explain(self, when: str, values: Values) -> None:
        """A row whose status is given has its reasons, also where messages are not kept."""
        asked = {c: v for c, v in zip(self.view.columns, values, strict=True) if v is not None}
        try:
            status = self.view.status(asked)
        except AxlogError:
            return
        found = self.view.why_not(asked)
        self._ask(f"the reasons for {asked} {when}", found.truth, status)
        assert found.reasons, f"{asked} has no reasons {when}"
        self._seen[f"reason {found.reasons[0].kind}"] += 1

    def _compare_possible(self, when: str, definition: Definition) -> None:
        try:
            possible = self.view.possible()
        except AxlogError as error:
            self._seen[f"refused {error.code}"] += 1
            self.listed = {}
            return
        listed = [tuple(one.row.values()) for one in possible]
        for row in definition.satisfiable - definition.present:
            if not any(_agrees(row, one) for one in listed):
                raise AssertionError(f"{self._what}: no possible row covers {row} {when}")
        for one in listed:
            if definition.status(one) is Truth.NEVER:
                raise AssertionError(f"{self._what}: the possible row {one} never comes {when}")
        self._seen[QUESTIONS] += 1
        self.listed = {}
        for row, each in zip(listed, possible, strict=True):
            until = None if each.deadline is None else round(1e6 * float(str(each.deadline)))
            if None not in row:
                latest = self.listed.get(row, until)
                self.listed[row] = None if latest is None or until is None else max(latest, until)

    def never(
        self, when: str, listed: list[Values], changes: list[Change], definition: Definition
    ) -> None:
        """Compare the `never` changes of a step with the definition after it."""
        columns = self.view.columns
        told = [tuple(c.row[name] for name in columns) for c in changes if c.op == "never"]
        self._same(f"never twice {when}", len(set(told)), len(told))
        for row in told:
            self._ask(f"never {row} {when}", Truth.NEVER, definition.status(row))
            self._seen["never"] += 1
        is_two = len(self._case.parts) == 2 and not self._case.absent  # see `never_law.py`
        if self.is_reported and not is_two:
            held = {tuple(c.row[name] for name in columns) for c in changes if c.op == "delete"}
            for row in listed:
                is_lost = definition.status(row) is Truth.NEVER and row not in held
                self._ask(f"never {row} {when}", row in told, is_lost)

    def _ask(self, what: str, found: object, wanted: object) -> None:
        """Compare the answers to one question."""
        self._seen[QUESTIONS] += 1
        self._same(what, found, wanted)

    def _same(self, what: str, found: object, wanted: object) -> None:
        if found != wanted:
            text = f"{self._what}: {what}: found {found}, wanted {wanted}"
            raise AssertionError(f"{text}: {self._case.query} {self._case.keyed}")
