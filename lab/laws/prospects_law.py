"""The future of joins of two, three and four parts, read off their tables, and by its definition.

    truth, status(row), possible()   equal those that a walk over the whole document finds
                                     (`future/truth.py`, which law 4 compares with brute force)
    never after an update            the rows that were possible before it, of which afterwards no
                                     instance holds or is possible; the clock passes before it,
                                     each deadline as an update of its own (`never_law.py`)

Documents that keep all messages, or what is needed of them, that drop rows or not, one that is
saved and restored after every step, and one whose clock passes by itself before every message, must
all emit the same changes. Joins of two parts leave out a
row that only the same instant could have completed (`never_law.py`), and may report a row that a
forgotten key value rules out at its deadline: `never` is compared for the others. `status` and
`possible` are compared for documents that keep no messages unless key values were forgotten.

With a `not` beside the parts, the walk decides one part, and single rows of joins. `status` is
compared for the rows that it decides, and `never` has every row that was listed as possible and
that it now rules out.

With `now - t1 >= c`, the walk is that of `future/clock_outlook.py`, and `never` leaves out rows
that the same step first shows.

Joins with `not`s are swept after every update, so that a row dropped too early is missed at once.

Cases: one part and a `not`, chains and stars of parts, with and without `not`s, shared and other
variables, keys on some parts, differences of times, streams that end, messages that a part does not
match although its key does, values in elements and in attributes.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import product
from random import Random
from typing import Any, TypeVar, cast

from axlog.document.parser import DEFAULT_LIMITS
from axlog.errors import AxlogError, UndecidedError, UpdateError
from axlog.future.clock_outlook import shown_outputs
from axlog.future.search_budget import Effort, within
from axlog.future.truth import Outlook, Possible
from axlog.live.document import Document
from axlog.live.internals import maintained, streams_of
from axlog.live.log_records import settings_of
from axlog.live.options import Options
from axlog.live.recovery import load_parts, snapshot_parts
from axlog.live.view import View
from axlog.query.truth import Truth
from axlog.views.change import Change
from axlog.views.counting.prospects import Prospects
from axlog.views.view import MaintainedView
from axlog.views.why import shown_possible
from lab.laws.attributes import attributed, in_fact, in_query, in_steps, in_tree
from lab.laws.never_law import Step, next_moment, take
from lab.laws.swept_law import dropped_beside_not, swept_every

T = TypeVar("T")
Told = tuple[str, tuple[Any, ...]]
"""A change: what it does, and the values of its row."""
_STREAMS = "fghi"
_PARTS = {
    1: ("[f/a{w}/k/$x#t1]", "[f/a{w}[k/$x#t1]/y/$y]"),
    2: ("[f/a{w}/k/$x#t1][g/a/k/$x#t2]", "[f/a{w}[k/$x#t1]/y/$y][g/a[k/$x#t2]/y/$z]",
        "[f/a[k/$x]/y/$y][g/a{w}[k/$y]/y/$x]"),
    3: ("[f/a{w}/k/$x#t1][g/a/k/$x#t2][h/a/k/$x#t3]",
        "[f/a[k/$x#t1]/y/$y][g/a{w}/k/$y#t2][h/a/k/$x]",
        "[f/a{w}/k/$x#t1][g/a/k/$x#t2][h/a/y/$y#t3]",
        "[f/a/y/$x#t1][g/a{w}[k/$x]/y/$y#t2][h/a/k/$y#t3]"),
    4: ("[f/a{w}/k/$x#t1][g/a/k/$x#t2][h/a/k/$x#t3][i/a/k/$x]",
        "[f/a[k/$x#t1]/y/$y][g/a{w}/k/$y][h/a/k/$x#t3][i/a[k/$x]/y/$z]"),
}  # fmt: skip
_ABSENT = ("[not(n/a/k/$x)]", "[not(n/a[w]/k/$x)]", "[not(n/a/w)]", "[not(n/a[k/$x]/y/$y)]",
           "[not(n/a/k/$x)][not(n/a[w]/y/$y)]")  # fmt: skip
_TIMES = {
    1: ("",),
    2: ("", "", "t2 - t1 <= 2us", "t2 - t1 <= 2us and t2 >= t1", "t1 = t2"),
    3: ("", "", "t2 - t1 <= 2us", "t3 - t1 <= 3us and t2 - t1 >= 0us", "t3 = t1",
        "t3 - t2 <= 1us and t2 - t1 <= 2us"),
    4: ("", "", "t3 - t1 <= 2us", "t3 - t1 <= 3us and t3 >= t1"),
}  # fmt: skip
_VALUES = ("1", "2")
_NOT_ASKED = object()
MOST_WAYS = 100_000
"""The budget of all walks of a case: some seconds."""
_MOST_WALKED = 12
"""Most rows that one walk beside `not` decides: each costs up to the budget of an analysis."""


@dataclass(frozen=True, slots=True)
class ProspectsCase:
    """One case; its `str` is enough to run it again."""

    parts: int
    query: str
    facts: tuple[str, ...]
    inside: tuple[tuple[str, str], ...]  # streams, and trees that are there at the beginning
    steps: tuple[Step, ...]

    @property
    def streams(self) -> str:
        """The streams, one letter each: those of the parts, and that of `not`s."""
        return _STREAMS[: self.parts] + ("n" if "not(" in self.query else "")

    @property
    def document(self) -> str:
        """The document: an element with a call for each stream."""
        call = '<ax:call xmlns:ax="urn:axlog" stream="{0}"/>'
        return "<r>{}</r>".format(
            "".join(
                f"<{s}>{''.join(tree for of, tree in self.inside if of == s)}{call.format(s)}</{s}>"
                for s in self.streams
            )
        )


def make_prospects_case(random: Random, first: Sequence[int] = (0, 0, 1, 2)) -> ProspectsCase:
    """A random case; `first`: how many trees the document may have at first."""
    parts = random.choice((1, 1, 2, 2, 3, 3, 3, 4, 4))
    pattern = random.choice(_PARTS[parts])
    absent = parts == 1 or (parts < 4 and random.random() < 0.5)  # the walk takes long with more
    if absent:
        known = [each for each in _ABSENT if "$y" in pattern or "$y" not in each]
        pattern = random.choice(known) + pattern
    pattern = pattern.replace("{w}", random.choice(("", "[w]")))
    times = [
        t for t in _TIMES[parts] if all(f"#{n}" in pattern for n in ("t1", "t2", "t3") if n in t)
    ]
    where = random.choice(times)
    named = [f"${name}" for name in "xyz" if f"${name}" in pattern]
    named += [f"{name}.time" for name in ("t1", "t2") if f"#{name}" in pattern]
    shown = [c for c in named if random.random() < (0.7 if c[0] == "$" else 0.15)]
    if random.random() < 0.15:  # what shows no key
        shown = [random.choice(named)]
    query = f"match /r{pattern}" + (f" where {where}" if where else "")
    query += f" return {', '.join(shown)}" if shown else ""
    streams = _STREAMS[:parts] + ("n" if absent else "")
    keyed = [s for s in streams if random.random() < 0.5]
    facts = tuple(f"key {stream}/a by k trusted" for stream in keyed)
    used: dict[str, set[str]] = {stream: set() for stream in keyed}
    inside = tuple(
        (stream, tree)
        for stream in random.choices(streams, k=random.choice(first))
        if (tree := _tree(random, stream, used))
    )
    steps = tuple(_steps(random, streams, used))
    if "#t1" in pattern and absent == (parts < 3) and random.random() < 0.4:
        body, found, outputs = query.partition(" return ")
        body += f"{' and' if where else ' where'} now - t1 >= {random.choice((0, 1, 2, 4))}us"
        query = body + found + outputs
    labels = attributed(random, "ky")
    return ProspectsCase(
        parts,
        in_query(query, labels),
        tuple(in_fact(fact, labels) for fact in facts),
        tuple((stream, in_tree(tree, labels)) for stream, tree in inside),
        in_steps(steps, labels),
    )


def _tree(random: Random, stream: str, used: dict[str, set[str]]) -> str:
    """A message that respects the keys; empty if all values are used."""
    values = [value for value in _VALUES if value not in used.get(stream, ())]
    if not values:
        return ""
    value = random.choice(values)
    if stream in used:
        used[stream].add(value)
    wanted = "<w/>" if random.random() < 0.6 else ""
    return f"<a>{wanted}<k>{value}</k><y>{random.choice(_VALUES)}</y></a>"


def _steps(random: Random, streams: str, used: dict[str, set[str]]) -> Iterator[Step]:
    time, ended = 0, set()
    for _ in range(random.randint(3, 9)):
        time += random.choice((0, 0, 1, 1, 2, 3))
        stream = random.choice(streams)
        chance = random.random()
        if chance < 0.1:
            yield "advance", "", time
        elif stream in ended:
            continue
        elif chance < 0.2:
            ended.add(stream)
            yield "end", stream, time
        else:
            tree = _tree(random, stream, used)
            if tree:
                yield stream, tree, time


def smaller_prospects(case: ProspectsCase) -> Iterator[ProspectsCase]:
    """Cases with less in them."""
    for at in range(len(case.steps)):
        yield replace(case, steps=case.steps[:at] + case.steps[at + 1 :])
    for at in range(len(case.facts)):
        yield replace(case, facts=case.facts[:at] + case.facts[at + 1 :])
    for at in range(len(case.inside)):
        yield replace(case, inside=case.inside[:at] + case.inside[at + 1 :])


# The check ----------------------------------------------------------------------------------------

_OPTIONS = (
    Options(), Options(keep="needed"), Options(collect="off"), Options(never="all"),
    Options(keep="needed", collect="off"),
)  # fmt: skip


def check_prospects(case: ProspectsCase) -> Counter[str]:
    """Check one case; return the number of comparisons by name."""
    seen: Counter[str] = Counter()
    with swept_every(1):
        _check(case, seen)
    return seen


def _check(case: ProspectsCase, seen: Counter[str]) -> None:
    try:
        run = _Run(case)
        run.compare("at the start", seen)
        for step in case.steps:
            run.step(step, seen)
            run.compare(str(step), seen)
    except _Spent:
        seen["the walk is too long"] += 1
    else:
        seen["dropped beside not"] += sum(map(dropped_beside_not, run.documents))


def reopened(doc: Document, options: Options, facts: Sequence[str]) -> Document:
    """The document of a snapshot of another one."""
    chosen = {
        "facts": facts,
        "keep": options.keep,
        "collect": options.collect,
        "never": options.never,
    }
    settings = settings_of("", chosen, asdict(DEFAULT_LIMITS))
    return load_parts(snapshot_parts(doc, settings, {}), 1).document


class _Undone(Exception):
    """A batch fails on purpose."""


class _Spent(Exception):
    """The walks of a case have used up its budget."""


class _Walk:
    """A walk whose questions share the budget of the case."""

    def __init__(self, walk: Outlook | _ClockWalk, effort: Effort) -> None:
        self._walk, self._effort = walk, effort

    def _ask(self, question: Callable[[], T]) -> T:
        try:
            with within(self._effort):
                return question()
        except UndecidedError:
            if self._effort.left < 0:
                raise _Spent from None
            raise

    @property
    def truth(self) -> Truth:
        return self._ask(lambda: self._walk.truth)

    def status(self, row: dict[str, Any]) -> Truth:
        return self._ask(lambda: self._walk.status(row))

    def possible(self) -> list[Possible]:
        return self._ask(self._walk.possible)


class _ClockWalk:
    """The future of a view about the clock, by a walk; with times in microseconds."""

    def __init__(self, view: MaintainedView) -> None:
        questions = view.clock_questions()
        self.possible, self.status, self.truth = (
            questions.to_come,
            questions.verdict,
            questions.truth,
        )


class _Run:
    """The documents of one case: with each of the options, one restored, one for the walk."""

    def __init__(self, case: ProspectsCase) -> None:
        self.case = case
        self.random = Random(str(case))
        views = {"v": case.query}
        self.documents = [
            Document(case.document, facts=case.facts, views=views, options=options)
            for options in _OPTIONS
        ]
        counted = f"{case.query}{',' if ' return ' in case.query else ' return'} count() as n"
        self.counted: Document | None = None
        if "now" not in case.query:
            both = {"v": case.query, "counted": counted}
            options = self.random.choice(_OPTIONS[:3])
            self.counted = Document(case.document, facts=case.facts, views=both, options=options)
        self.restored = self._fresh()
        self.options = self.random.choice(_OPTIONS)
        self.reopened = Document(case.document, facts=case.facts, views=views, options=self.options)
        self.stepped = self._fresh()
        self.was_always_known = True  # else documents that keep no messages lack some
        self._walk: _Walk | None = None
        self._effort = Effort(MOST_WAYS)
        self._walked: object = _NOT_ASKED
        self.walked = Document(
            case.document, facts=case.facts, views=views, options=Options(collect="off")
        )
        query = self.walked.view("v").query
        self.pattern = query.pattern
        if query.steps:
            self.pattern = replace(query.pattern, outputs=shown_outputs(query) or ())
        self.before = self._possible()
        self.listed = self._listed()

    def _listed(self) -> list[tuple[Any, ...]] | None:
        """The rows that a document lists as possible, by the state of its join; None: it does not.

        Only rows whose values are all known.
        """
        if not (self.was_always_known and self._kind()[2]):
            return None
        rows = [tuple(one.row.values()) for one in self.stepped.view("v").possible()]
        return [row for row in rows if None not in row]

    def _fresh(self) -> Document:
        return Document(
            self.case.document, facts=self.case.facts, views={"v": self.case.query},
            options=Options(keep="needed"),
        )  # fmt: skip

    def _outlook(self) -> _Walk:
        """The walk, the same one until the next step."""
        if self._walk is None:
            if "now" in self.case.query:
                made: Outlook | _ClockWalk = _ClockWalk(maintained(self.walked).views["v"])
            else:
                made = Outlook(maintained(self.walked).nodes(), self.pattern)
            self._walk = _Walk(made, self._effort)
        return self._walk

    def _possible(self) -> list[tuple[Any, ...]] | None:
        found = self._to_come()
        return None if found is None else [tuple(one.row.values()) for one in found]

    def _to_come(self) -> list[Possible] | None:
        """The possible rows by the walk; None: it does not decide them."""
        if self._walk is None or self._walked is _NOT_ASKED:
            try:
                self._walked = self._outlook().possible()
            except UndecidedError:
                self._walked = None
        return cast(list[Possible] | None, self._walked)

    def step(self, step: Step, seen: Counter[str]) -> None:
        """Apply a step everywhere, and compare the changes."""
        was_known = self._kind()[2]
        self.was_always_known = self.was_always_known and was_known
        ends = self._ends()
        changes = [take(doc, step) for doc in self.documents]
        for change in changes[0]:
            if change.op == "delete" and change.row.values_ in ends:
                said = ends[change.row.values_]
                assert step[0] in said, f"{change} at {step}, though only {said} end it"
                seen["ended as said"] += 1
            if change.op == "delete" and change.final:
                status = self.documents[0].view("v").status(change.row.to_dict())
                _same(
                    f"the status of a row that is gone for good after {step}", status, Truth.NEVER
                )
                seen["final"] += 1
        each = [_told(told) for told in changes]
        is_late, is_two, is_known = self._kind()
        for doc, options, mine in zip(self.documents, _OPTIONS, each, strict=True):
            if options.never == "all" and is_late:
                continue  # it remembers key values
            wanted_here = each[0]
            if options.keep == "needed" and not was_known:
                is_silent = "never       not reported" in str(doc.view("v").explain())
                assert is_silent or step[0] == "end", "from the end of a stream on it may report"
                wanted_here = [told for told in each[0] if told[0] != "never"]
            _same(f"the changes at {step} with {options}", mine, wanted_here)
        self._count(step, each[1], was_known, seen)
        if step[0] != "end":
            state = streams_of(self.restored).engine.state()
            fresh = self._fresh()
            for done in self.case.steps[: self.case.steps.index(step)]:
                if done[0] == "end":
                    take(fresh, done)
            streams_of(fresh).engine.restore(state)
            self.restored = fresh
            seen["restored"] += 1
        _same(f"the changes at {step} after a restart", _told(take(self.restored, step)), each[1])
        self._reopen(step, each[_OPTIONS.index(self.options)], seen)
        told: list[Told] = []
        fallen: set[tuple[Any, ...]] | None = set()
        while (moment := self._next_moment(step[2])) is not None:
            passed = self._stage(("advance", "", moment), told, seen)
            fallen = None if fallen is None or passed is None else fallen | passed
        passed = self._stage(step, told, seen)
        told.sort(key=str)
        _same(f"the changes of a clock that passes by itself until {step}", told, each[1])
        if fallen is None or passed is None or is_two or not is_known:
            seen["never not compared"] += 1
            return
        wanted = fallen | passed
        wanted -= {values for op, values in each[0] if op == "insert"}
        never = sorted((values for op, values in each[0] if op == "never"), key=str)
        _same(f"what never comes after {step}", never, sorted(wanted, key=str))
        seen["never"] += len(never)

    def _count(self, step: Step, wanted: list[Told], was_known: bool, seen: Counter[str]) -> None:
        """Apply a step where another view counts the rows of the same join."""
        if self.counted is None:
            return
        changes = [each for each in take(self.counted, step) if each.view == "v"]
        if was_known and "join's tables" in str(self.counted.view("v").explain().never):
            _same(f"the changes at {step} beside a count", _told(changes), wanted)
            seen["counted beside"] += 1
        rows = self.documents[0].view("v").rows()
        counted = sorted((row.values_[:-1] for row in self.counted.view("counted").rows()), key=str)
        shown = sorted((row.values_ for row in rows), key=str)
        if not self.counted.view("v").columns:
            return
        _same(f"the counted rows after {step}", counted, shown)

    def _ends(self) -> dict[tuple[Any, ...], set[str | None]]:
        """The streams that end rows, as a document says that keeps no messages; None: nothing."""
        view = self.documents[1].view("v")
        found: dict[tuple[Any, ...], set[str | None]] = {}
        for row in view.rows()[:3]:
            try:
                reasons = view.why_not(row.to_dict()).reasons
            except AxlogError:
                continue
            ends = {each.stream for each in reasons if each.kind == "ends"}
            if ends:
                found[row.values_] = ends
        return found

    def _reopen(self, step: Step, wanted: list[Told], seen: Counter[str]) -> None:
        """Apply a step after a batch that fails, or a restart, and compare the changes."""
        if self.random.random() < 0.3:
            with suppress(_Undone), self.reopened.batch():
                take(self.reopened, step)
                raise _Undone
            seen["rolled back"] += 1
        if self.random.random() < 0.6:
            self.reopened = reopened(self.reopened, self.options, self.case.facts)
            seen["reopened"] += 1
        what = f"the changes at {step} of a document reopened with {self.options}"
        _same(what, _told(take(self.reopened, step)), wanted)

    def _next_moment(self, time: int) -> int | None:
        """The next moment up to a time at which rows may become impossible; None: none is left."""
        found = self._to_come()
        if found is not None:
            deadlines = [one.deadline for one in found]
        else:
            shown = self.stepped.view("v").possible() if self.listed is not None else ()
            deadlines = [one.deadline and round(one.deadline * 1e6) for one in shown]
        return next_moment(maintained(self.walked).tree.clock, deadlines, time)

    def _stage(
        self, step: Step, told: list[Told], seen: Counter[str]
    ) -> set[tuple[Any, ...]] | None:
        """Apply a step, or a part of it; the rows that become impossible, None: not decided."""
        before, listed = self.before, self.listed
        new = _told(take(self.stepped, step))
        told += new
        take(self.walked, step)
        fallen = self._fallen(before)
        self.listed = self._listed()
        if before is None and listed is not None and self.listed is not None:
            self._compare_listed(step, listed, new, seen)
        return fallen

    def _fallen(self, before: list[tuple[Any, ...]] | None) -> set[tuple[Any, ...]] | None:
        """The rows that were possible before the last step and are not; None: not decided."""
        self._walk, self._walked = None, _NOT_ASKED
        self.before = self._possible()
        if before is None or self.before is None:
            return None
        columns, outlook = self.walked.view("v").columns, self._outlook()
        return {
            row
            for row in before
            if outlook.status(dict(zip(columns, row, strict=True))) is Truth.NEVER
        }

    def _compare_listed(
        self,
        step: Step,
        listed: list[tuple[Any, ...]],
        told: list[Told],
        seen: Counter[str],
    ) -> None:
        """Compare `never` with the rows that were listed, where the walk decides single rows."""
        never = [values for op, values in told if op == "never"]
        columns, outlook = self.walked.view("v").columns, self._outlook()
        for row in {*listed, *(each for each in never if None not in each)}:
            inner = [
                round(v * 1e6) if c.endswith("time") else v
                for c, v in zip(columns, row, strict=True)
            ] if row in listed else row  # fmt: skip
            try:
                status = outlook.status(dict(zip(columns, inner, strict=True)))
            except UndecidedError:
                seen["status undecided"] += 1
                continue
            told_so = tuple(inner) in never
            if row in listed or told_so:
                _same(f"never {row} after {step}", told_so, status is Truth.NEVER)
            seen["never of listed rows"] += 1

    def _kind(self) -> tuple[bool, bool, bool]:
        """Whether key values are forgotten; whether the join has two parts; whether it answers."""
        doc = self.documents[0]
        found = streams_of(doc).prospects(maintained(doc).views["v"])
        is_two = isinstance(found, Prospects)
        return isinstance(found, Prospects) and found.waiting.is_late, is_two, found is not None

    def compare(self, when: str, seen: Counter[str]) -> None:
        """Compare truth, status and possible rows."""
        is_late, _, is_known = self._kind()
        seen["by the state" if is_known else "by the document"] += 1
        if not is_known and "not(" in self.case.query:
            return  # both are the walk
        outlook, view = self._outlook(), self.walked.view("v")
        to_come = self._to_come()
        if to_come is None:
            if is_known:
                self._compare_status(when, outlook, seen)
            seen["undecided"] += 1
            return
        rows = list(product(*([None, *self._values(c)] for c in view.columns)))
        listed = _plain([shown_possible(one, self.pattern, "seconds") for one in to_come])
        for doc, options in zip(self.documents, _OPTIONS, strict=True):
            if options.keep == "needed" and (is_late or not self.was_always_known or not is_known):
                continue
            may_forget = options.keep == "needed" and bool(self.case.facts)
            mine = doc.view("v")
            try:
                _same(f"the truth {when} with {options}", mine.truth, outlook.truth)
            except UpdateError as error:
                if error.code != "AX307":
                    raise
                seen["AX307"] += 1
                continue
            for row in self.random.sample(rows, min(8, len(rows))):
                asked = {c: v for c, v in zip(view.columns, row, strict=True) if v is not None}
                inner = {c: round(v * 1e6) if c.endswith("time") else v for c, v in asked.items()}
                wanted = outlook.status(inner)
                try:
                    found = mine.status(asked)
                except UpdateError as error:
                    if error.code != "AX307" or not may_forget:
                        raise
                    seen["AX307"] += 1
                    continue
                _same(f"the status of {asked} {when} with {options}", found, wanted)
                seen["status"] += 1
            _same(f"what is possible {when} with {options}", _plain(mine.possible()), listed)
            paged = _pages(mine, self.random.choice((1, 2, 3)))
            _same(f"the pages {when} with {options}", _plain(paged), listed)
            limits = [math.inf if p.deadline is None else p.deadline for p in paged]
            _same(f"the order of pages {when} with {options}", limits, sorted(limits))

    def _compare_status(self, when: str, outlook: _Walk, seen: Counter[str]) -> None:
        """Compare the status of rows that the walk decides, though not all of them."""
        columns = self.walked.view("v").columns
        rows = list(product(*(self._values(column) for column in columns)))
        for row in self.random.sample(rows, min(_MOST_WALKED, len(rows))):
            asked = dict(zip(columns, row, strict=True))
            inner = {c: round(v * 1e6) if c.endswith("time") else v for c, v in asked.items()}
            try:
                wanted = outlook.status(inner)
            except UndecidedError:
                seen["status undecided"] += 1
                continue
            for doc, options in zip(self.documents, _OPTIONS, strict=True):
                if options.keep == "needed" and not self.was_always_known:
                    continue
                found = doc.view("v").status(asked)
                _same(f"the status of {asked} {when} with {options}", found, wanted)
                seen["status beside `not`"] += 1

    def _values(self, column: str) -> tuple[Any, ...]:
        clock = maintained(self.walked).tree.clock
        if column.endswith("time"):
            return ((clock - 1) / 1e6, (clock + 1) / 1e6) if clock else ((clock + 1) / 1e6,)
        return (*_VALUES, "9")


def _pages(view: View, limit: int) -> list[Possible]:
    """All possible rows, page by page."""
    found: list[Possible] = []
    while page := view.possible(limit=limit, after=found[-1] if found else None):
        found += page
    return found


def _told(changes: list[Change]) -> list[tuple[str, tuple[Any, ...]]]:
    return sorted(((c.op, c.row.values_) for c in changes), key=str)


def _plain(possible: list[Possible]) -> list[str]:
    """Possible rows as texts. Equal branches are one relation, which has the name of one node."""
    return sorted(re.sub(r"#t\d", "", str(one.to_dict())) for one in possible)


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: found {found}, wanted {wanted}")
