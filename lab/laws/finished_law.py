"""Garbage collection has no visible effect: documents with and without it are equal (law 5).

A case is a small document of managers and of two joined parts, one or two views, and steps:
messages (needed or not, with new calls in them), ends of streams, the clock. One document collects
after every step, one after every second, one never. After each step they must have emitted the same
changes, including `never`, and have the same rows, truth and possible rows. After nodes were
dropped under a key, truth may be refused instead (AX307).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from axlog.errors import AxlogError, StreamError, UpdateError
from axlog.live.document import Document
from axlog.live.options import Collect, Options
from axlog.live.view import View
from lab.laws.attributes import attributed, in_fact, in_query, in_steps
from lab.laws.never_law import Step, make_never_case, take
from lab.laws.small_cases import calling

_CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'
QUERIES = (
    "match /r/m[n/$n][p/d] return $n",
    "match /r/m[n/$n]//d/$x return $n, $x",
    "match /r/m[n/$n][p/d/$x] return $n, $x",
    "match //m[p/d]",
    "match /r/m[p/d][p/e]",
    "match /r[m/p/d/$x][q/a/$x] return $x",
    "match /r[m[n/$n]/p/d/$x][q/a/$x] return $n",
    "match /r[m/p/d/$x#t1][q/a/$x#t2] where t2 - t1 <= 2us return $x",
    "match /r[m/p/d][q/a]",
    "match /r/q/a/$x return $x",
    "match /r[m/p/d/$x#t1][q/a/k/$x#t2] where t2 - t1 >= 0us and t2 - t1 <= 2us return $x",
    "match //p[e/$x][d/$x] return $x",
    "match /r/m/p/d#t where t <= 3us",
    "match /r/m[p/d or p/e][n/$n] return $n",
    "match /r[m/p/d/$x or m/p/e/$x][q/a/$x] return $x",
    "match /r[q/a/$x or m[n/$x]/p/d] return $x",
    "match /r/m[n/$n]/p/d#t return $n, t.id",
    "match /r[m/p/d/$x][q/a#t/$x] return t.id, t.val",
    "match /r/m#t/p[d][e] return t.val",
    "match /r/q#t[a] return t.cont",
    "match /r/m[p#t/d] return t.id",
)
NEGATED = (
    "match /r[m/p/d/$x][not(q/a/$x)] return $x",
    "match /r/m[n/$n][not(p/d)] return $n",
    "match /r/m[n/$n][p/d/$x][not(p/e/$x)] return $n, $x",
    "match /r[q/a/$x][not(m/p/d/$x)][not(m/p/e/$x)] return $x",
    "match /r[m/p/d/$x#t1][not(q/a/$x#t2)] where t2 - t1 <= 2us return $x",
    "match /r/m[p/d or not(p/e)][n/$n] return $n",
    "match /r[m/p/d/$x][q/a][not(m/p/e/$x)] return $x",
    "match /r[m/p/d/$x][q/a/$y][not(m/p/e/$x)] return $x, $y",
    "match /r/m#t[p/d][not(p/e)] return t.id",
    "match /r[q[not(a/k)]][m/p/d/$x] return $x",
    "match /r[m/p/d][not(q/a)]",
    "match /r[m[n/$n]/p/d/$x][q/a/$y][not(q/a/k/$y or m[n/$n]/p/e/$x)] return $x, $y",
)
"""Queries with `not`."""

COLLECTS: tuple[Collect, ...] = ("auto", "state")


@dataclass(frozen=True, slots=True)
class FinishedCase:
    """One case; its `str` is enough to run it again."""

    document: str
    queries: tuple[str, ...]
    steps: tuple[Step, ...]
    facts: tuple[str, ...] = ()


def make_keyed_case(random: Random) -> FinishedCase:
    """A join of two streams under declared keys, with messages that respect them."""
    case = make_never_case(random)
    return FinishedCase(case.document, (case.query,), case.steps, case.facts)


_ABSENT = (
    "match /r[o/a/id/$x][not(s/a/id/$x)] return $x",
    "match /r[o/a/id/$x][p/a/id/$x][not(s/a/id/$x)] return $x",
    "match /r[o/a/id/$x][not(s/a/id/$x)][not(p/a/id/$x)] return $x",
    "match /r[o/a[id/$x][v/$y]][not(s/a[id/$x]/v/$y)] return $x",
    "match /r[o/a/id/$x#t1][not(s/a/id/$x#t2)] where t2 - t1 <= 2us return $x",
    "match /r[o/a/id/$x][p/a/id/$y][not(s/a[id/$x]/v/$y)] return $x, $y",
)


def make_absent_case(random: Random) -> FinishedCase:
    """Rows that a `not` ends, under some keys, with messages that respect them."""
    keyed = [s for s in "osp" if random.random() < 0.6]
    steps: list[Step] = []
    used: set[tuple[str, str]] = set()
    is_open, time = list("osp"), 0
    for _ in range(random.randint(4, 10)):
        time += random.choice((0, 1, 2))
        stream, value = random.choice("oosp"), random.choice("123")
        if stream not in is_open or (stream in keyed and (stream, value) in used):
            continue
        if random.random() < 0.08:
            is_open.remove(stream)
            steps.append(("end", stream, time))
            continue
        used.add((stream, value))
        steps.append((stream, f"<a><id>{value}</id><v>{random.choice('12')}</v></a>", time))
    document = "".join(f"<{stream}>{_CALL.format(stream)}</{stream}>" for stream in "osp")
    query, labels = random.choice(_ABSENT), attributed(random, ("id", "v"))
    facts = tuple(in_fact(f"key {stream}/a by id trusted", labels) for stream in keyed)
    query = in_query(query, labels)
    return FinishedCase(f"<r>{document}</r>", (query,), in_steps(steps, labels), facts)


def make_finished_case(random: Random) -> FinishedCase:
    """A random case."""
    streams = ["f", "g"]
    managers = ""
    for number in range(random.randint(1, 3)):
        stream = f"s{number}"
        call = _call(random, stream) if random.random() < 0.8 else ""
        streams += [stream] if call else []
        managers += f"<m><n>{number}</n><p>{_content(random, 'm')}{call}</p></m>"
    queue = "".join(_content(random, "f") for _ in range(random.randint(0, 2)))
    top = _call(random, "g") if random.random() < 0.4 else ""
    streams = streams if top else [s for s in streams if s != "g"]
    document = f"<r>{managers}<q>{queue}{_call(random, 'f')}</q>{top}</r>"
    drawn = NEGATED if random.random() < 0.4 else QUERIES
    queries = tuple(random.sample(drawn, random.choice((1, 1, 2))))
    deleting = [s for s in streams if f'stream="{s}" deletes' in document]
    return FinishedCase(calling(document), queries, tuple(_steps(random, streams, deleting)))


def _call(random: Random, stream: str) -> str:
    """A call; one in ten may delete."""
    deletes = ' deletes="yes"' if random.random() < 0.1 else ""
    return _CALL.format(stream).replace("/>", f"{deletes}/>")


def _steps(random: Random, streams: list[str], deleting: list[str]) -> list[Step]:
    found: list[Step] = []
    is_open, time = list(streams), 0
    for number in range(random.randint(2, 9)):
        time += random.choice((0, 0, 1, 2))
        what = random.random()
        if not is_open or what < 0.1:
            found.append(("advance", "", time))
            continue
        stream = random.choice(is_open)
        if what < 0.28:
            is_open.remove(stream)
            found.append(("end", stream, time))
        elif stream in deleting and random.random() < 0.4:
            pattern = random.choice(("match /a", "match /d", "match //k", "match /m", "match /*"))
            found.append((f"delete {stream}", pattern, time))
        else:
            message = _content(random, stream) or "<z/>"
            if random.random() < 0.15:
                message = f"<p>{message}{_CALL.format(f'x{number}')}</p>"
                is_open.append(f"x{number}")
            found.append((stream, message, time))
    return found


def _content(random: Random, stream: str) -> str:
    value = random.choice("12")
    if stream == "f":
        return random.choice((f"<a>{value}</a>", f"<a><k>{value}</k></a>", "<z/>"))
    if stream == "g":
        name = random.choice("01")
        return f"<m><n>{name}</n><p>{_content(random, 'm')}</p></m>"
    found = random.choice(("d", "d", "d", "e", "e", "z", ""))
    return f"<{found}>{value}</{found}>" if found else ""


def check_finished(case: FinishedCase, make: Callable[..., Document] = Document) -> Counter[str]:
    """Compare documents with and without collection; return the number of comparisons by name."""
    seen: Counter[str] = Counter()
    views = {f"v{n}": query for n, query in enumerate(case.queries)}
    plain = make(case.document, views=views, facts=case.facts, options=Options(collect="off"))
    documents = [
        make(case.document, views=views, facts=case.facts, options=Options(collect=collect))
        for collect in COLLECTS
    ]
    for number, step in enumerate(case.steps):
        try:
            wanted = take(plain, step)
        except StreamError:  # the call was deleted, or its stream may not bring calls
            continue
        for every, doc in enumerate(documents, 1):
            _same(f"the changes at {step}", take(doc, step), wanted)
            if number % every == 0:
                report = doc.collect()
                seen["streams"] += len(report.streams)
                seen["nodes"] += report.nodes
            for name in views:
                _compare(f"after {step}", doc.view(name), plain.view(name), bool(case.facts), seen)
        seen["steps"] += 1
        seen["changes"] += len(wanted)
    return seen


def _compare(when: str, view: View, wanted: View, has_keys: bool, seen: Counter[str]) -> None:
    rows = [[row.values_ for row in each.rows()] for each in (view, wanted)]
    _same(f"the rows {when}", rows[0], rows[1])
    try:
        truth, possible = wanted.truth, wanted.possible()
    except AxlogError:
        return
    try:
        _same(f"the truth {when}", view.truth, truth)
        said = [sorted(str(one.to_dict()) for one in each) for each in (view.possible(), possible)]
    except UpdateError as error:
        _same(f"the refusal {when}", (error.code, has_keys), ("AX307", True))
        seen["refused"] += 1
        return
    _same(f"what is possible {when}", said[0], said[1])
    for row in wanted.rows() if not has_keys else ():
        try:
            status = wanted.status(dict(row))
        except AxlogError:  # its content may still change
            continue
        _same(f"the status of {row} {when}", view.status(dict(row)), status)
    seen["truths"] += 1


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: found {found}, wanted {wanted}")
