"""Cases of law 9: shapes of queries, and documents, watching, messages and statements at random."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from axlog.query.parameters import with_parameters

_STREAMS = ("p", "q", "o")
_NAMES = {"p": "a", "q": "b", "o": "c"}  # of the elements that a stream brings
TEXTS = ("1", "2", "3")
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
    'match /r[p/a[k/"?"]/x/$x#t][q/b/x/$x#u] where u - t <= ~ return $x',
    "match /r[p/a[n > #]/x/$x#t][q/b/x/$x#u] where u - t <= ~ and t - u <= 2 return $x, u.time",
    'match /r[p/a/x/$x#t][q/b[k/"?"]/x/$x#u] where u - t <= ~ and t - u <= ~ return $x',
    "match /r[p/a[n > #]/x/$x#t][q/b/x/$x#u] where u - t >= 0 and u - t <= ~ return $x",
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
    'match //a#t[k/"?"] return t.val, count() as n having n >= #',
    'match //a#t[k/"?"]/x/$x return $x, collect(t.val) as v',
    'match //a#t[k/"?"]/x#v return v.val, t.time order by v.val limit #',
    'match //a#t[k/"?"]/x#v where v.val * 2 > # return t.id, v.val',
    "match //a[n > #]/k#v return v.cont, count() as n",
    '//a[k = "?"]/x',
    "//a[n > #]/x/text()",
    'for $a in //a where $a/k = "?" return <x>{$a/x/text()}</x>',
    'for $a in //a where $a/k = "?" and $a/n > # return $a/x/text()',
    'for $a in /r/p/a, $b in /r/q/b where $a/x = $b/x and $a/k = "?" return <x>{$a/x/text()}</x>',
    'for $a in //a where $a/k = "?" group by $x := string($a/x) return <g x="{$x}">{count($a)}</g>',
    "for $a in //a[n > #] order by string($a/x) return $a/x/text()",
    '//a[k = "?"][n > #]/x/text()',
    'count(//a[k = "?"])',
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
    "match //a[n/$n]/x/$x return count() as n, sum($n) as s having s != # order by n limit #",
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
    attributes: tuple[tuple[str, str], ...] = ()  # of the calls of streams
    is_heard: bool = True  # whether somebody subscribes; else the results of updates are compared

    @property
    def document(self) -> str:
        """The document: an element for each stream, with a call if it is open."""
        calls = {stream: self.call(stream) for stream in self.open}
        return "<r>{}</r>".format("".join(f"<{s}>{calls.get(s, '')}</{s}>" for s in _STREAMS))

    def call(self, stream: str) -> str:
        """The call of a stream."""
        said = dict(self.attributes).get(stream, "")
        return f'<ax:call xmlns:ax="urn:axlog" stream="{stream}" {said}/>'


# Generation ---------------------------------------------------------------------------------------


def make_shared_case(random: Random) -> SharedCase:
    """A random case."""
    known = random.choices((_GROUPS, _HAVING, _SHAPES), (15, 15, 70))[0]
    shapes = random.sample(known, random.choice((1, 1, 2, 3)))
    streams = tuple(stream for stream in _STREAMS if stream != "o" or "o/c" in "".join(shapes))
    is_joined = any("/q/" in shape or "(q/" in shape or "[q/" in shape for shape in shapes)
    chance = random.choice((0.2, 0.6)) if is_joined else 0
    attributes = dict[str, str]()
    for stream in streams if random.random() < 0.4 else ():
        if random.random() < 0.7:
            attributes[stream] = random.choice(_ATTRIBUTES)
    facts = tuple(
        fact
        for stream, fact in zip(streams, _FACTS, strict=False)
        if random.random() < chance and stream not in attributes
    )
    options = {"keep": random.choice(("all", "all", "all", "needed"))}
    options["never"] = random.choice(("kept", "kept", "all", "joins", "off"))
    options["collect"] = random.choice(("state", "state", "off"))
    used: dict[str, set[str]] = {fact.split()[1][0]: set() for fact in facts}
    steps = list(_steps(random, shapes, streams, used, attributes))
    if options["keep"] == "needed":  # the document of a later view would not be whole
        watches = [step for step in steps if step[0] == "watch"]
        names = [step[1] for step in watches]
        rest = [step for step in steps if step[0] not in ("watch", *_WITH_NODES)]
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
    said = tuple(sorted(attributes.items()))
    is_heard = random.random() < 0.7
    if facts and not attributes and random.random() < 0.15:
        facts = tuple(fact.replace("by x", "by k") for fact in facts)
        steps = [_exchanged(step) for step in steps]
    return SharedCase(tuple(steps), facts, ordered, opened, is_many, is_requested, said, is_heard)


def _exchanged(part: Any) -> Any:
    """A step whose messages have their `k` as `x`: keys have values that queries give."""
    if isinstance(part, tuple):
        return tuple(map(_exchanged, part))
    if not isinstance(part, str) or not part.startswith("<"):
        return part
    return re.sub(r"(?<=[</])[kx](?=>)", lambda found: "kx"[found[0] == "k"], part)


def _steps(
    random: Random,
    shapes: list[str],
    streams: Sequence[str],
    used: dict[str, set[str]],
    attributes: dict[str, str],
) -> Iterator[Step]:
    watched: list[str] = []
    count = time = sent = 0
    deleting = [stream for stream in streams if "deletes" in attributes.get(stream, "")]
    has_parameters = random.random() < 0.2
    restarts = random.choice((0, 0, 0.06))
    for number in range(random.randint(6, 24)):
        time += random.choice((0, 0, 1, 1, 2, 4))
        chance = random.random()
        if chance < 0.25 or number < 3:
            count += 1
            watched.append(f"v{count}")
            shape = random.choice(shapes)
            yield "watch", f"v{count}", *_given(random, shape, has_parameters)
        elif chance < 0.3 and watched:
            yield "unwatch", watched.pop(random.randrange(len(watched)))
        elif chance < 0.32 and watched:
            yield "change", random.choice(watched), _filled(random, random.choice(shapes))
        elif chance < 0.36:
            yield "advance", time
        elif chance < 0.39:
            yield from _end(random, streams, time)
        elif chance < 0.45:
            statement = random.choice(_STATEMENTS)
            if "p" not in used or statement != _BREAKS_KEYS:
                yield "update", statement
        elif chance < 0.5:
            feeds = [_message(random, streams, used, time) for _ in range(2)]
            yield "batch", random.random() < 0.5, tuple(feed for feed in feeds if feed)
        elif chance < 0.55:
            yield "ask", random.randrange(16)
        elif chance < 0.6 and deleting:
            stream = random.choice(deleting)
            yield "delete", stream, _deletion(random, stream), time
        elif chance < 0.62 and sent and not used:
            yield "retract", random.choice(streams), random.randint(1, sent)
        elif chance < 0.62 + restarts:
            yield ("restart",)
        else:
            feed = _message(random, streams, used, time)
            if feed:
                sent += 1
                yield feed


def _end(random: Random, streams: Sequence[str], time: int) -> Iterator[Step]:
    """The end of a stream; sometimes a batch that is rolled back follows."""
    yield "end", random.choice(streams), time
    if random.random() < 0.3:
        yield "batch", False, ()


_ATTRIBUTES = ('deletes="yes"', 'deletes="yes"', 'replace="x"', 'replace="@m"')
_WITH_NODES = ("update", "change", "delete", "retract")
"""Steps that need the nodes of messages, or the rows of a view that is made later."""
_BREAKS_KEYS = "replace value of node (//a/x)[1] with '1'"
_STATEMENTS = (
    "delete nodes (//a)[1]",
    "insert node <a m='2'><k>1</k><n>2</n><x>3</x></a> into /r",
    "replace value of node (//a/k)[1] with '2'",
    _BREAKS_KEYS,
    "rename node (//a)[1] as 'c'",
)


def _deletion(random: Random, stream: str) -> str:
    """A query for the messages that a stream deletes."""
    path = random.choice(("k", "x"))
    return f'match /{_NAMES[stream]}[{path}/"{random.choice(TEXTS)}"]'


def _filled(random: Random, shape: str) -> str:
    """A query: a shape with constants in its holes."""
    return with_parameters(*_with_variables(random, shape))


def _given(random: Random, shape: str, has_parameters: bool) -> tuple[Any, ...]:
    """A query; with external variables, also their values."""
    text, parameters = _with_variables(random, shape)
    if has_parameters and parameters:
        return text, tuple(parameters.items())
    return (with_parameters(text, parameters),)


def _with_variables(random: Random, shape: str) -> tuple[str, dict[str, Any]]:
    """A shape with external variables in its holes, and their values."""
    parts: list[str] = []
    parameters: dict[str, Any] = {}
    for part in _HOLES.split(shape):
        if part == "~":
            parts.append(random.choice(_DURATIONS))
        elif part in ('"?"', "#"):
            name, value = f"p{len(parameters) + 1}", random.choice(TEXTS)
            parts.append(f"${name}")
            parameters[name] = value if part == '"?"' else int(value)
        else:
            parts.append(part)
    prolog = [f"declare variable ${name} external;\n" for name in parameters]
    return "".join((*(prolog if shape.startswith("for ") else ()), *parts)), parameters


_HOLES = re.compile(r'("\?"|(?<= )#|~)')


def query_of(step: Step) -> str:
    """The query that a step watches, with the values of its variables."""
    return with_parameters(step[2], dict(step[3])) if len(step) > 3 else str(step[2])


def _message(
    random: Random, streams: Sequence[str], used: dict[str, set[str]], time: int
) -> Step | None:
    stream = random.choice(streams)
    values = [value for value in TEXTS if value not in used.get(stream, ())]
    if not values:
        return None
    x = random.choice(values)
    if stream in used:
        used[stream].add(x)
    k, n, m = (random.choice(TEXTS) for _ in range(3))
    more = f"<k>{random.choice(TEXTS)}</k>" if random.random() < 0.2 else ""
    name = _NAMES[stream]
    return "feed", stream, f"<{name} m='{m}'><k>{k}</k>{more}<n>{n}</n><x>{x}</x></{name}>", time


def smaller_shared(case: SharedCase) -> Iterator[SharedCase]:
    """Cases with less in them."""
    for at in range(len(case.steps)):
        yield replace(case, steps=case.steps[:at] + case.steps[at + 1 :])
    for at in range(len(case.attributes)):
        yield replace(case, attributes=case.attributes[:at] + case.attributes[at + 1 :])
    for at in range(len(case.facts)):
        yield replace(case, facts=case.facts[:at] + case.facts[at + 1 :])
