"""Law 9: a view that shares a plan has what it has alone.

    document with many views  =  one document for each view, fed with the same updates

Compared after every step, for each view: its rows with their counts, its changes (operation, row,
row before, time, cause, position, finality), and at some steps its truth and the status of rows.

A case is one shape or several (paths from streams, joins, times, `or`, `not`, aggregates, order,
nodes in rows) that have parts or groups in common, constants for its members, and steps: watching,
unwatching, another query for a view, feeding, statements, ends of streams, calls for further
streams, the clock, batches that are kept or rolled back. The shared document shares plans from two
views on; in some cases because the user asks for it. In some cases it finds the relations that a
message concerns by an automaton, and has the deadlines of all joins in one heap, as documents with
many views do. The others never do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from axlog.errors import AxlogError, UndecidedError, UpdateError
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.options import Options
from axlog.views.change import Change

_STREAMS = ("p", "q", "o")
_NAMES = {"p": "a", "q": "b", "o": "c"}  # of the elements that a stream brings
_TEXTS = ("1", "2", "3")
_DURATIONS = ("1.5", "2", "3", "4", "7")  # most have a weaker bound in common
_SHAPES = (
    # A query with holes: `?` for a text, `#` for a number, `~` for a duration.
    'match //a[k != "?"]/x/$x return $x',
    'match //a[k/"?"][n != #]/x/$x return $x',
    'match //a[n != #][n <= #]/x/$x where $x != "?" return $x',
    "match //a[n * 2 > #]/x/$x return $x",
    'match //a[k/"?"][n + 1 = #]/x/$x return $x',
    'match //a[k/"?"]/x/$x return $x, count() as n having n > #',
    'match //a[k/"?"][x/$x]/n/$n return $x, sum($n) as s having s >= # and s != #',
    "match //a[n > #]/x/$x return $x, count() as n having n >= # order by n limit #",
    "match //a[n/$n]/x/$x where $n * 2 > # return $x",
    'match //a[k/"?"][n/$n]/x/$x where $n + 1 > # return $x, count() as n having n < #',
    'match //a[k/"?"]/x/$x return $x order by $x limit #',
    'match //a#t[k/"?"]/x/$x where now - t >= ~ return $x',
    'match //a#t[k/"?"]/x/$x where now - t <= ~ return $x, t.time',
    "match //a#t/x/$x where now - t >= ~ and now - t < ~ return $x",
    'match //a#t[k/"?"]/x/$x where now - t < ~ return $x, count() as n having n >= #',
    "match //a#t[n > #]/x/$x where now - t > ~ return count() as n",
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x] where now - t >= ~ return $x',
    'match /r[p/a[k/"?"]/x/$x#t][not(q/b/x/$x)] where now - t >= ~ return $x',
    'match //a#t[k/"?"]/x/$x where t >= ~ return $x',
    "match //a#t/x/$x where t <= ~ return $x",
    'match //a#t[k/"?"]/x/$x where t >= ~ and t < ~ return $x, count() as n',
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u] where t >= ~ return $x',
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u] where u - t > 0 and u <= ~ return $x',
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u] where u - t <= ~ and t >= ~ return $x',
    'match /r/p/a[k/"?"]/x/$x return $x',
    'match /r/p/a[k/"?"][n > #]/x/$x return $x',
    "match /r/p/a[n >= #][n < #]/x/$x return $x",
    "match //a[n <= #]/x/$x return $x",
    "match //a[n = #]/x/$x return $x",
    'match //a[@m = "?"]/x/$x return $x',
    'match //a/x/$x where $x > "?" return $x',
    'match //a#t[k/"?"] return t.time',
    'match //a[k/"?"]',
    'match //a[k/"?"]/x/$x return count() as n',
    'match //a[k/"?"]/x/$x return $x, count() as n',
    "match //a[n > #]/x/$x return sum($x) as s, count() as n",
    'match //a[k/"?"]/x/$x return $x order by $x limit 1',
    'match //a[k/"?"]/x/$y return $y, count() as n having n > 1',
    'match //a[k/"?"][x/$x]/n/$n return $x, sum($n) as s',
    'match /r[p/a[k/"?"]/x/$x][q/b/x/$x] return $x',
    'match /r[p/a[k/"?"]/x/$y][q/b/x/$y] return $y',
    'match /r[p/a[k/"?"][n/$n]/x/$x][q/b/x/$x] return $x, $n',
    'match /r[p/a[k/"?"]/x/$x][q/b/x/$x] return $x, count() as n',
    'match /r[p/a[k/"?"]/x/$x][q/b[n/$n]/x/$x] return $n, count() as c',
    'match /r[p/a/x/$x][q/b/x/$x][//a/k/"?"] return $x',
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u] where u - t > 0 return $x',
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u] where u - t > 0 and u - t <= 2 return $x',
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u] where u - t > 0 and u - t <= 2 return $x, t.time',
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u] where u - t > 0 and u - t <= 2',
    'match /r[p/a[k/"?"][n > #]/x/$x#t][q/b/x/$x#u] where u - t > 0 and u - t <= 2 return $x',
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u] where u - t > 0 and u - t <= ~ return $x',
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u] where u - t > 0 and u - t < ~ return $x, u.time',
    'match /r[p/a[k/"?"][n/$n]/x/$x#t][q/b/x/$x#u] where u - t > 0 and u - t <= ~ return $n',
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u] where u - t >= ~ return $x',
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u] where u - t >= 0 return $x',
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u] where u - t >= 0 and u - t <= 2 return $x',
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u] where u - t >= 0 and u - t < ~ return $x',
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u] where u - t >= ~ and u - t <= ~ return $x, t.time',
    "match /r[p/a/x/$x#t][q/b/x/$x#u] where u - t > 0 and u - t <= ~ return $x",
    "match /r[p/a/x/$x#t][q/b/x/$x#u] where u - t <= ~ return $x",
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u] where u - t >= ~ return $x, count() as n',
    'match /r[p/a/x/$x#t][q/b/x/$x#u][not(q/b/k/"?")] where u - t >= ~ return $x',
    'match /r[p/a[k/"?"]/x/$x][q/b[k/"?"]/x/$x] return $x',
    'match /r[p/a[k/"?"]/x/$x][not(q/b/x/$x)] return $x',
    'match /r[p/a[k/"?"]/x/$x][q/b/x/$x or q/b/k/$x] return $x',
    'match /r[p/a[k/"?"]/x/$x][q/b/x/$x][q/b/k/$x] return $x',
    'match /r[p/a[k/"?"]/x/$x][q/b/x/$x][o/c/x/$x] return $x',
    'match /r[p/a[k/"?"]/x/$x][q/b[k/"?"]/x/$x][o/c/x/$x] return $x',
    'match /r[p/a[k/"?"]/x/$x][q/b/x/$x][o/c/k/$k] return $x, $k',
    'match /r[p/a[k/"?"][n > #]/x/$x][q/b/x/$x][o/c/x/$x] return $x',
    "match /r[p/a[n > #]/x/$x][q/b[n <= #]/x/$x][o/c/x/$x] return $x",
    'match /r[p/a[k/"?"]/x/$x][q/b/x/$x][not(o/c/x/$x)] return $x',
    "match /r[p/a[n > #]/x/$x][not(q/b/x/$x)] return $x",
    'match /r[p/a[k/"?"][n/$n]/x/$x][not(q/b/x/$x)] return $n',
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u][o/c/x/$x#w] where u - t > 0 and w - u > 0 return $x',
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u][o/c/x/$x] where u - t > 0 and u - t <= 2 return $x',
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u][o/c/x/$x] where u - t > 0 and u - t <= ~ return $x',
    "match /r[p/a[n > #]/x/$x#t][q/b/x/$x#u][o/c/x/$x] where u - t <= 2 and t - u <= 2 return $x",
    'match /r[p/a[k/"?"]/x/$x#t][not(q/b/x/$x)] where now - t >= ~ return $x, t.time',
    "match /r[p/a[n > #]/x/$x#t][o/c/x/$x][not(q/b/x/$x)] where now - t >= ~ return $x",
    "match /r[p/a[n > #]/x/$x][q/b/x/$x] return $x",
    "match /r[p/a[n > #]/x/$x][q/b[n <= #]/x/$x] return $x",
    "match /r[p/a[n > #][n/$n]/x/$x][q/b/x/$x] return $n",
    "match /r[p/a[n > #]/x/$x#t][q/b/x/$x#u] where u - t > 0 and u - t <= 2 return $x",
    "match /r[p/a[n > #]/x/$x#t][q/b/x/$x#u] where u - t <= 2 and t - u <= 2 return $x",
    'match /r[p/a[k/"?"][n > #]/x/$x#t][q/b/x/$x#u] where u - t > 0 and u - t <= ~ return $x',
    'match /r[p/a[k/"?"]/x/$x#t][q/b[k/"?"]/x/$x#u] where u - t > 0 and u - t <= 2 return $x',
    'match /r[p/a[k/"?"]/x/$x#t][q/b[k/"?"]/x/$x#u] where u - t <= 2 and t - u <= 2 return $x',
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u] where u - t <= 2 and t - u <= 3 return $x',
    'match /r[p/a[k/"?" or n/"1"]/x/$x] return $x',
    'match //a#t[k/"?"] return t.id',
    'match //a#t[k/"?"]/x#v return v.val',
    "match //a#t[n > #] return t.cont",
    '//a[k = "?"]/x',
    "//a[n > #]/x/text()",
    'for $a in //a where $a/k = "?" return <x>{$a/x/text()}</x>',
)
_GROUPS = (
    # Queries with equal groups, whose steps after them differ.
    "match //a[n/$n]/x/$x return $x, sum($n) as s, count() as n",
    "match //a[n/$n]/x/$x return $x, sum($n) as s, count() as n having n > #",
    "match //a[n/$n]/x/$x return $x, sum($n) as s, count() as n having s >= # and n < #",
    "match //a[n/$n]/x/$x return $x, sum($n) as s, count() as n order by s limit #",
    "match //a[n/$n]/x/$x return $x, min($n) as m having m > #",
    "match //a[n/$n]/x/$x return $x, min($n) as m order by m limit #",
)
_HAVING = (
    # Queries whose members have their groups in common, and differ behind them.
    "match //a[n/$n]/x/$x return $x, sum($n) as s, count() as n having n > # and s <= #",
    "match //a[n/$n]/x/$x return $x, avg($n) as m having m >= #",
    "match //a[n/$n]/x/$x return $x, max($n) as m having # < m",
    "match //a[n/$n]/x/$x return $x, min($n) as m having m = # or m > #",
    "match //a[n/$n]/x/$x return $x, count(distinct $n) as n having n != #",
    "match //a/x/$x return $x, count() as n having $x > # order by n limit #",
    "match //a[n/$n]/x/$x return $x, latest($n by $x) as l having l >= #",
    "match //a/x/$x return count() as n having n < #",
    'match //a[k/"?"]/x/$x return count() as n having n <= #',
    'match //a[k/"?"][n/$n]/x/$x where $n * 2 > 3 return $x, sum($n) as s having s < #',
    'match //a[k/"?"]/x/$x return $x, count() as n having n = #',
    'match //a[k/"?"]/x/$x return $x, max($x) as m having m != "?"',
    'match //a[k/"?"][n > #]/x/$x return $x, count() as n having n >= #',
    'match /r[p/a[k/"?"][n/$n]/x/$x][q/b/x/$x] return $x, sum($n) as s having s > #',
    "match /r[p/a[n/$n]/x/$x][q/b/x/$x] return $n, count() as c having c >= #",
    'match /r[p/a[k/"?"]/x/$x][not(q/b/x/$x)] return $x, count() as n having n > #',
)
_FACTS = tuple(f"key {stream}/{name} by x trusted" for stream, name in _NAMES.items())
_CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'
Step = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SharedCase:
    """One case; its `str` is enough to run it again."""

    steps: tuple[Step, ...]
    facts: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    open: tuple[str, ...] = _STREAMS  # the streams that have a call from the start
    is_many: bool = False  # whether the shared document works as with many views
    is_requested: bool = False  # whether the user asks for shared plans; `never` is `joins` then

    @property
    def document(self) -> str:
        """The document: an element for each stream, with a call if it is open."""
        calls = {stream: _CALL.format(stream) for stream in self.open}
        return "<r>{}</r>".format("".join(f"<{s}>{calls.get(s, '')}</{s}>" for s in _STREAMS))


def make_shared_case(random: Random) -> SharedCase:
    """A random case."""
    known = random.choices((_GROUPS, _HAVING, _SHAPES), (15, 15, 70))[0]
    shapes = random.sample(known, random.choice((1, 1, 2, 3)))
    streams = tuple(stream for stream in _STREAMS if stream != "o" or "o/c" in "".join(shapes))
    is_joined = any("/q/" in shape or "(q/" in shape or "[q/" in shape for shape in shapes)
    chance = random.choice((0.2, 0.6)) if is_joined else 0
    facts = tuple(fact for fact in _FACTS[: len(streams)] if random.random() < chance)
    options = {"keep": random.choice(("all", "all", "all", "needed"))}
    options["never"] = random.choice(("kept", "kept", "all", "joins", "off"))
    options["collect"] = random.choice(("state", "state", "off"))
    used: dict[str, set[str]] = {fact.split()[1][0]: set() for fact in facts}
    steps = list(_steps(random, shapes, streams, used))
    if options["keep"] == "needed":  # the document of a later view would not be whole
        watches = [step for step in steps if step[0] == "watch"]
        names = [step[1] for step in watches]
        rest = [step for step in steps if step[0] not in ("watch", "update", "change")]
        steps = watches + [s for s in rest if s[0] != "unwatch" or s[1] in names]
    opened = tuple(stream for stream in streams if random.random() < 0.9)
    for stream in streams:
        if stream not in opened and options["keep"] == "all":
            steps.insert(random.randrange(len(steps)), ("open", stream))
    is_many = random.random() < 0.5
    is_requested = random.random() < 0.5
    if is_requested:
        options["never"] = "joins"
    ordered = tuple(sorted(options.items()))
    return SharedCase(tuple(steps), facts, ordered, opened, is_many, is_requested)


def _steps(
    random: Random, shapes: list[str], streams: Sequence[str], used: dict[str, set[str]]
) -> Iterator[Step]:
    watched: list[str] = []
    count = time = 0
    for number in range(random.randint(6, 24)):
        time += random.choice((0, 0, 1, 1, 2, 4))
        chance = random.random()
        if chance < 0.25 or number < 3:
            count += 1
            watched.append(f"v{count}")
            yield "watch", f"v{count}", _filled(random, random.choice(shapes))
        elif chance < 0.3 and watched:
            yield "unwatch", watched.pop(random.randrange(len(watched)))
        elif chance < 0.32 and watched:
            yield "change", random.choice(watched), _filled(random, random.choice(shapes))
        elif chance < 0.36:
            yield "advance", time
        elif chance < 0.39:
            yield "end", random.choice(streams), time
        elif chance < 0.45:
            statement = random.choice(_STATEMENTS)
            if "p" not in used or statement != _BREAKS_KEYS:
                yield "update", statement
        elif chance < 0.5:
            feeds = [_message(random, streams, used, time) for _ in range(2)]
            yield "batch", random.random() < 0.5, tuple(feed for feed in feeds if feed)
        elif chance < 0.55:
            yield "ask", random.randrange(16)
        else:
            feed = _message(random, streams, used, time)
            if feed:
                yield feed


_BREAKS_KEYS = "replace value of node (//a/x)[1] with '1'"
_STATEMENTS = (
    "delete nodes (//a)[1]",
    "insert node <a m='2'><k>1</k><n>2</n><x>3</x></a> into /r",
    "replace value of node (//a/k)[1] with '2'",
    _BREAKS_KEYS,
    "rename node (//a)[1] as 'c'",
)


def _filled(random: Random, shape: str) -> str:
    parts: list[str] = []
    for part in shape:
        if part == "?" or (part == "#" and (not parts or parts[-1][-1:] == " ")):
            parts.append(random.choice(_TEXTS))
        elif part == "~":
            parts.append(random.choice(_DURATIONS))
        else:
            parts.append(part)
    return "".join(parts)


def _message(
    random: Random, streams: Sequence[str], used: dict[str, set[str]], time: int
) -> Step | None:
    stream = random.choice(streams)
    values = [value for value in _TEXTS if value not in used.get(stream, ())]
    if not values:
        return None
    x = random.choice(values)
    if stream in used:
        used[stream].add(x)
    k, n, m = (random.choice(_TEXTS) for _ in range(3))
    more = f"<k>{random.choice(_TEXTS)}</k>" if random.random() < 0.2 else ""
    name = _NAMES[stream]
    return "feed", stream, f"<{name} m='{m}'><k>{k}</k>{more}<n>{n}</n><x>{x}</x></{name}>", time


def smaller_shared(case: SharedCase) -> Iterator[SharedCase]:
    """Cases with less in them."""
    for at in range(len(case.steps)):
        yield replace(case, steps=case.steps[:at] + case.steps[at + 1 :])
    for at in range(len(case.facts)):
        yield replace(case, facts=case.facts[:at] + case.facts[at + 1 :])


# The check ----------------------------------------------------------------------------------------


class _Side:
    """A document, and what its views emit."""

    def __init__(self, case: SharedCase, share_from: int | None) -> None:
        self.doc = Document(
            case.document,
            facts=case.facts,
            options=Options(**dict(case.options)),  # type: ignore[arg-type]
        )
        families = maintained(self.doc).families
        families.share_from = share_from
        families.is_requested = case.is_requested and share_from is not None
        if share_from is not None and case.is_many:
            maintained(self.doc).many_relations, maintained(self.doc).few_joins = 1, 0
        self.emitted: dict[str, list[Any]] = {}

    def apply(self, step: Step) -> str:
        """Apply a step; the code of the error if it is refused."""
        try:
            self._apply(step)
        except AxlogError as error:
            return error.code
        return ""

    def _apply(self, step: Step) -> None:
        doc = self.doc
        match step:
            case "watch", name, query:
                view = doc.watch(query, name)
                emitted = self.emitted.setdefault(name, [])
                view.subscribe(lambda change: emitted.append(_plain(change)))
            case "unwatch", name:
                doc.unwatch(name)
            case "change", name, query:
                doc.change(name, query)
            case "feed", stream, message, time:
                doc.feed(stream, message, at=time)
            case "end", stream, time:
                doc.end(stream, at=time)
            case "open", stream:
                doc.update(f"insert node {_CALL.format(stream)} into /r/{stream}")
            case "advance", time:
                doc.advance(time)
            case "update", statement:
                doc.update(statement)
            case "batch", is_kept, feeds:
                self._batch(is_kept, feeds)

    def _batch(self, is_kept: bool, feeds: tuple[Step, ...]) -> None:
        try:
            with self.doc.batch():
                for _, stream, message, time in feeds:
                    self.doc.feed(stream, message, at=time)
                if not is_kept:
                    raise _RolledBackError
        except _RolledBackError:
            pass

    def rows(self, name: str) -> Any:
        try:
            return [(tuple(row.values_), row.key, row.count) for row in self.doc.view(name).rows()]
        except AxlogError as error:
            return error.code

    def asked(self, name: str, texts: Sequence[str]) -> Any:
        """The truth of a view, and the status of rows with these values."""
        view = self.doc.view(name)
        rows = [{column: value} for column in view.columns for value in texts]
        found: list[Any] = []
        for row in (None, *rows):
            try:
                found.append(view.truth if row is None else view.status(row))
            except UndecidedError:
                found.append("undecided")
            except UpdateError as error:
                found.append(error.code)
        return found


class _RolledBackError(Exception):
    pass


def _plain(change: Change) -> Any:
    values = tuple(change.row.values_)
    before = None if change.before is None else (change.before.values_, change.before.count)
    return (change.op, values, change.key, change.row.count, before, change.microseconds,
            change.origin, change.position, change.final)  # fmt: skip


def check_shared(case: SharedCase) -> Counter[str]:
    """Compare a document with many views and documents with one view each."""
    pair = _Pair(case)
    for step in case.steps:
        pair.take(step)
        pair.compare(step)
    return pair.summary()


class _Pair:
    """The shared document, and one document for each view."""

    def __init__(self, case: SharedCase) -> None:
        self._case = case
        self._shared = _Side(case, 2)
        self._alone: dict[str, _Side] = {}
        self._done: list[Step] = []
        self._seen: Counter[str] = Counter()
        self._lacks_messages = dict(case.options).get("keep") == "needed"

    def take(self, step: Step) -> None:
        match step[0]:
            case "ask":
                self._ask(step)
            case "watch":
                self._watch(step)
            case "unwatch":
                if self._alone.pop(step[1], None) is not None:
                    assert self._shared.apply(step) == ""
            case "change":
                if step[1] in self._alone:
                    one, other = self._shared.apply(step), self._alone[step[1]].apply(step)
                    assert one == other, f"{step}: {one!r} != {other!r}"
            case _:
                self._done.append(step)
                refused = self._shared.apply(step)
                for name, side in self._alone.items():
                    other = side.apply(step)
                    assert refused == other, f"{step} {name}: {refused!r} != {other!r}"

    def _ask(self, step: Step) -> None:
        names = list(self._alone)
        texts: Sequence[str] = _TEXTS
        if len(step) > 1:  # one view and one value; questions cost more than all else
            names = names[step[1] % max(len(names), 1) :][:1]
            texts = _TEXTS[step[1] // 5 % 3 :][:1]
        for name in names:
            side = self._alone[name]
            found, alone = self._shared.asked(name, texts), side.asked(name, texts)
            if found != alone and self._lacks_messages:
                # the tables of the plan may decide more, as a document with all messages does
                exact = self._with_messages(name).asked(name, texts)
                alone = [
                    right if one == right else other
                    for one, other, right in zip(found, alone, exact, strict=True)
                ]
            for one, other in zip(found, alone, strict=True):
                is_refused = other == "AX307"
                assert one == other or is_refused, f"{step} {name}: {one} != {other}"

    def _with_messages(self, name: str) -> _Side:
        """A document with this view alone that keeps all messages."""
        options = dict(self._case.options) | {"keep": "all"}
        side = _Side(replace(self._case, options=tuple(options.items())), None)
        for step in self._case.steps:
            if step[:2] == ("watch", name):
                side.apply(step)
        for step in self._done:
            side.apply(step)
        return side

    def _watch(self, step: Step) -> None:
        side = _Side(self._case, None)
        for before in self._done:
            side.apply(before)
        one, other = self._shared.apply(step), side.apply(step)
        if one == "" and other == "AX307":
            self._shared.apply(("unwatch", step[1]))  # more than a view alone can do
        else:
            assert one == other, f"{step}: {one!r} != {other!r}"
            if not one:
                self._alone[step[1]] = side
                self._seen["views compared"] += 1
        self._seen[f"watch {one}"] += 1

    def compare(self, step: Step) -> None:
        """Compare the rows and the changes of every view."""
        self._seen["comparisons"] += len(self._alone)
        for name, side in self._alone.items():
            assert self._shared.rows(name) == side.rows(name), f"{step} {name}"
            one, other = self._shared.emitted[name], side.emitted[name]
            assert one == other, f"{step} {name}: {one} != {other}"

    def summary(self) -> Counter[str]:
        """What the case had: the views that were compared with themselves alone, and how often."""
        families = maintained(self._shared.doc).families
        self._seen["histories"] += 1
        self._seen["members"] += len(families.members)
        arrangements = maintained(self._shared.doc).engine.arrangements or {}
        self._seen["shared groups"] += sum(len(one.users) > 1 for one in arrangements.values())
        self._seen.update(f"family {family.how}" for family in families.by_shape.values())
        every_family = families.by_shape.values()
        self._seen["families with groups"] += sum(
            one.kept.groups is not None for one in every_family
        )
        for side in self._alone.values():
            every = (change for changes in side.emitted.values() for change in changes)
            self._seen.update(f"emitted {change[0]}" for change in every)
        return self._seen
