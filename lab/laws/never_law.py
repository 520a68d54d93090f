"""Matches that end without a row: random joins of two streams, and `never` by its definition.

    never after an update  =  the rows that were possible before it, of which afterwards no
                              instance holds or is possible

The clock passes before a message is applied, one deadline after the other: each is an update of its
own, so it does not matter which other messages arrive. The definition is computed by a walk over
the whole document before and after (`future/truth.py`, which law 4 compares with brute force over
futures). Excluded, as in `views/counting/prospects.py`:
a row whose deadline was the clock at which its match began, except for the row without known values
while both streams are open. If a stream ends whose rows can only be completed at their own instant,
that row is judged when this instant has passed.

Where key values are forgotten, a row that one of them rules out may be reported at its deadline,
and then stands for the row without known values. All are reported by the end of a case.

A case is a small document with three calls, a view over two of them, declared keys, and steps:
messages that the view needs or not, the clock, ends of streams. Messages respect the keys. In a
third of the cases values are attributes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from axlog.future.truth import Outlook, Possible
from axlog.live.document import Document
from axlog.live.internals import maintained, streams_of
from axlog.live.options import Options
from axlog.query.truth import Truth
from axlog.views.change import Change
from axlog.views.counting.join_prospects import JoinProspects
from axlog.views.counting.prospects import Prospects
from axlog.views.why import shown_possible
from lab.laws.attributes import attributed, in_fact, in_query, in_steps, in_tree
from lab.laws.small_cases import calling

PATTERNS = (
    ("[p/a[w]/k/$x#t1][q/d/k/$x#t2]", ("$x", "t1.time", "t2.time")),
    ("[p/a[y/$y]/k/$x#t1][q/d/k/$x#t2]", ("$x", "$y", "t1.time", "t2.time")),
    ("[p/a#t1[w]][q/d#t2]", ("t1.time", "t2.time")),
    ("[p/a[w]/k/$x#t1][q/d[k/$x]/v/$y#t2]", ("$x", "$y", "t2.time")),
)
CONSTRAINTS = (
    "", "t2 - t1 <= 2us", "t2 - t1 >= 2us", "t2 - t1 >= 0us and t2 - t1 <= 2us", "t1 - t2 <= 1us",
    "t1 - t2 <= 1us and t2 - t1 <= 1us", "t2 = t1", "t2 + t1 <= 7us", "t2 - t1 > 3us",
    "t1 - t2 < 0us", "2*t2 + t1 <= -1us", "2*t2 - t1 <= 4us", "t2 + 2*t1 <= 9us",
    "3*t1 - 2*t2 = 1us", "2*t2 = t1 + 3us", "2*t2 - 2*t1 = 1us",
    "3*t2 - t1 >= 2us and 2*t2 - t1 < 6us", "t2 - t1 >= 1us and t2 - t1 <= 3us",
)  # fmt: skip
KEYS = ("key p/a by k trusted", "key q/d by k trusted")
_VALUES = ("1", "2", "3")
Step = tuple[str, str, int]
"""What happens (a stream's message, `end` of a stream, `advance`), with what, and when."""
Fallen = tuple[tuple[Any, ...], int]
"""The values of a row that can never come, and the time since when."""


@dataclass(frozen=True, slots=True)
class NeverCase:
    """One case; its `str` is enough to run it again."""

    document: str
    query: str
    facts: tuple[str, ...]
    steps: tuple[Step, ...]


def make_never_case(random: Random) -> NeverCase:
    """A random case."""
    pattern, columns = random.choice(PATTERNS)
    where = random.choice(CONSTRAINTS if random.random() < 0.8 else CONSTRAINTS[3:4])
    shown = [column for column in columns if random.random() < 0.4]
    query = f"match /r{pattern}"
    query += f" where {where}" if where else ""
    query += f" return {', '.join(shown)}" if shown else ""
    facts = tuple(key for key in KEYS if random.random() < 0.5)
    used: dict[str, set[str]] = {"f": set(), "g": set()}
    if not any(KEYS[0] == fact for fact in facts):
        del used["f"]
    if not any(KEYS[1] == fact for fact in facts):
        del used["g"]
    inside = "".join(_message(random, "f", used) for _ in range(random.choice((0, 0, 1, 2))))
    call = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'
    f, g, h = (call.format(stream) for stream in "fgh")
    document = f"<r><p>{inside}{f}</p><q>{g}</q><e>{h}</e></r>"
    document = calling(document) if len(query) % 2 else document
    steps = _steps(random, used)
    labels = attributed(random, "kyv")
    return NeverCase(
        in_tree(document, labels),
        in_query(query, labels),
        tuple(in_fact(fact, labels) for fact in facts),
        in_steps(steps, labels),
    )


def _steps(random: Random, used: dict[str, set[str]]) -> list[Step]:
    found: list[Step] = []
    time, ended = 0, set()
    for _ in range(random.randint(3, 10)):
        time += random.choice((0, 0, 1, 1, 2, 3))
        what = random.choice(("f", "f", "f", "g", "g", "g", "h", "advance", "end"))
        if what == "advance":
            found.append(("advance", "", time))
        elif what == "end":
            stream = random.choice("fgh")
            if stream not in ended:
                ended.add(stream)
                found.append(("end", stream, time))
        elif what not in ended:
            message = _message(random, what, used)
            if message:
                found.append((what, message, time))
            if message and random.random() < 0.15:  # the stream ends at the instant of a row
                ended.add(what)
                found.append(("end", what, time))
    return found


def _message(random: Random, stream: str, used: dict[str, set[str]]) -> str:
    """A message that respects the keys; empty if all values are used."""
    if stream == "h":
        return "<z/>"
    values = [value for value in _VALUES if value not in used.get(stream, ())]
    if not values:
        return ""
    value = random.choice(values)
    if stream in used:
        used[stream].add(value)
    key = f"<k>{value}</k>"
    if stream == "g":
        return f"<d>{key}<v>{random.choice('56')}</v></d>"
    wanted = "<w/>" if random.random() < 0.7 else ""
    return f"<a>{wanted}{key}<y>{random.choice('78')}</y></a>"


# The definition -----------------------------------------------------------------------------------


class Definition:
    """`never` by its definition, step by step, over a document."""

    def __init__(self, doc: Document, brief: Container[str] = ()) -> None:
        """`brief`: the streams whose rows can only be completed at their own instant."""
        self._document = doc
        self._brief = brief
        self._ended_at: int | None = None  # the instant after which to judge the row without values
        self._view = doc.view("v")
        self._since: dict[tuple[tuple[Any, ...], object, float | Any | None], int] = {}
        self._note(self._outlook().possible())

    def _outlook(self) -> Outlook:
        return Outlook(maintained(self._document).nodes(), self._view.query.pattern)

    def _note(self, possible: list[Possible]) -> None:
        """Record the time since which each row has been possible, by its needs and its deadline."""
        clock = maintained(self._document).tree.clock
        ways = {(tuple(one.row.values()), one.needs, one.deadline) for one in possible}
        self._since = {way: self._since.get(way, clock) for way in ways}
        self._open = {"f", "g"} & set(maintained(self._document).tree.calls())

    def passing(self, time: int) -> list[Fallen]:
        """The rows that become impossible while the clock passes, before an update."""
        found: list[Fallen] = []
        while (moment := self._next_moment(time)) is not None:
            self._document.advance(moment / 1_000_000)
            found += self.after()
        return found

    def _next_moment(self, time: int) -> int | None:
        """The next moment of the clock up to a time: after a deadline, or the time itself."""
        deadlines = [self._ended_at, *(until for _, _, until in self._since)]
        return next_moment(maintained(self._document).tree.clock, deadlines, time)

    def after(self) -> list[Fallen]:
        """The rows that have become impossible since the last call."""
        outlook, clock = self._outlook(), maintained(self._document).tree.clock
        columns, before = self._view.columns, self._open
        nothing = tuple(None for _ in columns)
        under_way = {
            row
            for (row, _, until), since in self._since.items()
            if until != since or (len(before) == 2 and row == nothing)
        }
        found = {
            (row, clock)
            for row in under_way
            if outlook.status(dict(zip(columns, row, strict=True))) is Truth.NEVER
        }
        self._note(outlook.possible())
        ended = before - self._open
        if nothing in under_way and len(self._open) == 1 and any(s in self._brief for s in ended):
            self._ended_at = clock
            found.discard((nothing, clock))
        elif self._ended_at is not None and (self._ended_at < clock or not self._open):
            self._ended_at = None
            if not self._view.rows():
                found.add((nothing, clock))
        return list(found)

    @property
    def truth(self) -> Truth:
        return self._outlook().truth

    def possible(self) -> list[Possible]:
        return [
            shown_possible(one, self._view.query.pattern, "seconds")
            for one in self._outlook().possible()
        ]


def next_moment(clock: int, deadlines: Iterable[float | Any | None], time: int) -> int | None:
    """The clock after the next deadline before a time, or the time; None: it has come."""
    passed = [int(each) + 1 for each in deadlines if each is not None and clock <= each < time]
    return min(passed, default=time if clock < time else None)


def take(doc: Document, step: Step) -> list[Change]:
    """Apply one step."""
    what, content, time = step
    if what == "advance":
        return doc.advance(time / 1_000_000)
    if what == "end":
        return doc.end(content, at=time / 1_000_000)
    if what.startswith("delete "):
        return doc.delete(what.removeprefix("delete "), content, at=time / 1_000_000)
    return doc.feed(what, content, at=time / 1_000_000)


def check_never(case: NeverCase, make: Callable[..., Document] = Document) -> Counter[str]:
    """Compare the emitted `never` with the definition; return the number of comparisons by name."""
    seen: Counter[str] = Counter()
    defining = make(
        case.document, facts=case.facts, views={"v": case.query}, options=Options(collect="off")
    )
    options = [
        Options(), Options(keep="needed"), Options(collect="off"), Options(cache="disk"),
        Options(cache="disk", keep="needed"), Options(never="all"),
    ]  # fmt: skip
    views = {"v": case.query}
    documents = [make(case.document, views=views, facts=case.facts, options=o) for o in options]
    prospects = streams_of(documents[0]).prospects(maintained(documents[0]).views["v"])
    is_certain = isinstance(prospects, Prospects | JoinProspects) and not prospects.waiting.is_late
    definition = Definition(defining, _brief_streams(prospects))
    is_owed = False  # whether the row without known values is still to be reported
    end = max((time for _, _, time in case.steps), default=0) + 100
    for step in (*case.steps, ("advance", "", end)):
        wanted = definition.passing(step[2])
        take(defining, step)
        wanted = sorted([*wanted, *definition.after()], key=str)
        each = [take(doc, step) for doc in documents]
        *each, exact = each
        others = each[:1] * (len(each) - 1)
        _same(f"the changes with and without collection, on disk, at {step}", each[1:], others)
        if streams_of(documents[-1]).prospects(maintained(documents[-1]).views["v"]) is not None:
            told = _fallen(exact)
            _same(f'what never="all" tells after {step}', told, wanted)
            seen["exact"] += 1
        never = _fallen(each[0])
        if is_certain:
            _same(f"what never comes after {step}", never, wanted)
            for number in (1, 4):  # nothing is kept: only the tables of the joins know it
                view = documents[number].view("v")
                _same(f"the truth after {step}, {number}", view.truth, definition.truth)
                _same(
                    f"what is possible after {step}, {number}",
                    _plain(view.possible()),
                    _plain(definition.possible()),
                )
        else:
            nothing = tuple(None for _ in documents[0].view("v").columns)
            missing = {row for row, _ in wanted} - {row for row, _ in never}
            is_owed = (is_owed or nothing in missing) and not never
            _same(f"what is missing after {step}", missing - {nothing}, set())
            _same(f"the truth after {step}", documents[0].view("v").truth, definition.truth)
        seen["steps"] += 1
        seen["never"] += len(never)
        seen["rows"] += sum(c.op == "insert" for c in each[0])
    assert not is_owed, "the row without values was never reported, and no row in its place"
    dropped = streams_of(documents[0]).collector.joins
    seen["dropped"] += sum(waiting.dropped for waiting in dropped)
    seen["certain" if is_certain else "late"] += 1
    return seen


def _brief_streams(prospects: object) -> set[str]:
    """The streams whose rows can only be completed at their own instant."""
    if not isinstance(prospects, Prospects):
        return set()
    sides = prospects.waiting.pair.sides
    return {each.stream for side in sides if side.waits_an_instant for each in side.feeders}


def _fallen(changes: list[Change]) -> list[Fallen]:
    found = ((c.row.values_, c.microseconds) for c in changes if c.op == "never")
    return sorted(found, key=str)


def _plain(possible: list[Possible]) -> list[str]:
    return sorted(str(one.to_dict()) for one in possible)


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: found {found}, wanted {wanted}")
