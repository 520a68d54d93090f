"""Law 5: filters, tuning and collection on or off give the same changes (docs/design.md).

A case is a document with streams, views, and the messages of the streams in order. Between the
messages the tested document is tuned at random moments, streams end, and the clock advances. An
untuned document gets the same input. Compared after every step: rejections, the changes of each
view, the rows (except counts, which tuning may change), the calls of listeners, the clock; at the
end the documents, if all is kept, and the rows by re-evaluation. Without the messages, `never` is
emitted for the views whose joins know it, and for no others. If all is kept, some views have
other maintainers than counting, whose streams must not be filtered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from typing import Any

from axlog.connect.channels.subscription_filters import passes
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError
from axlog.live.document import Document
from axlog.live.internals import maintained, streams_of
from axlog.live.options import Keep, Options, Validate
from axlog.live.tuner import TuningReport
from axlog.match.filters import Filter
from axlog.query.native import parse_pattern
from axlog.query.pattern import Kind, Pattern
from axlog.query.query import Query
from axlog.views.change import Change
from axlog.views.choose import maintainer_named
from axlog.views.counting.maintainer import Counting
from lab.laws import small_cases
from lab.laws.edits import carry_out
from lab.laws.fuzz_cases import Case, Step
from lab.laws.small_cases import DOWNWARD, Features, calling, fragment

KEEPS: tuple[Keep, ...] = ("all", "needed")
VALIDATIONS: tuple[Validate, ...] = ("all", "wanted")


_CONNECTED = replace(DOWNWARD, outputs=(Kind.VARIABLE, Kind.LABEL, Kind.TIME), collects=False)
_PLAIN = replace(_CONNECTED, connectives=False)
TUNE: dict[str, Any] = {"tune": True}
"""The step at which the tested document is tuned; the other one goes on."""
EXACTLY: dict[str, Any] = {"tune": "exact"}


def make_tuning_case(random: Random) -> Case:
    """Streams that feed a document with views, tuned from time to time."""
    return make_joined_case(random) if random.random() < 0.4 else _make_any_case(random)


_JOINS = (
    "match /r[a[$x][k]][b/$x]",
    "match /r[a[$x][k]][b[$x][m]]",
    "match /r[a/$x][b/$x][c/$y] return $y",
    "match /r[a[$x]/$y][b/$x] return $y",
    "match /r[a[$x][b/$x][k]][c] return $x",
    "match /r[a[b/$x][c/$x]]/c/$y return $y",
    "match /r[//a[$x][k]][b/$x][c/k]",
    "match /r[a/k or b/k][c/$x] return $x",
    "match /r[a[$x][k] or b[$x][m]][c/$x]",
    "match /r[a/$x#t1][b/$x#t2] where t2 - t1 <= 3us return $x",
    "match /r[a/$x#t1][b/$x#t2][c/k] where t1 <= 4us return $x, t2.time",
    "match /r[a/$x][b/$y][c/$z] where $x = $y return $z",
    "match /r[a/k]/b#n/m return n.cont",
    "match /r[a/k]/b/m#n return n.val",
    "match /r[a[$x]][not(b/$x)] return $x",
)
"""Queries in which rows depend on several streams, so that much is dominated and joined."""
_VALUES = ("p", "q", "k", "m")


def make_joined_case(random: Random) -> Case:
    """Streams that complete each other's rows."""
    parts: list[str] = []
    streams = 0
    for label in random.choices(("a", "b", "c", "a", "b"), k=random.randint(2, 5)):
        inside = "".join(f"<{each}/>" for each in _VALUES if random.random() < 0.3)
        for below in "bc":
            if random.random() < 0.15:
                inside += f"<{below}>{_leaf(random)}</{below}>"
        if random.random() < 0.6:
            deletes = ' deletes="yes"' if random.random() < 0.08 else ""
            inside += f'<ax:call xmlns:ax="urn:axlog" stream="s{streams}"{deletes}/>'
            streams += 1
        parts.append(f"<{label}>{inside}</{label}>")
    if not streams or random.random() < 0.3:
        parts.append(f'<ax:call xmlns:ax="urn:axlog" stream="s{streams}"/>')
    text = f"<r>{''.join(parts)}</r>"
    text = calling(text) if len(text) % 2 else text
    count = random.choice((1, 1, 2))
    patterns = tuple(parse_pattern(each) for each in random.sample(_JOINS, count))
    follower = Document(text)
    steps: list[Step] = [(TUNE,)] if random.random() < 0.6 else []
    for _ in range(random.randint(2, 10)):
        step = (_leaves(random, follower),)
        carry_out(follower, step)
        steps.append(step)
        if random.random() < 0.3:
            steps.append((random.choice((TUNE, TUNE, EXACTLY)),))
        if random.random() < 0.1:
            steps.append(
                (
                    {
                        "advance": (maintained(follower).tree.clock + random.choice((1, 4)))
                        / 1_000_000
                    },
                )
            )
            follower.advance(steps[-1][0]["advance"])
        if not maintained(follower).tree.calls():
            break
    keep, validate = random.choice(KEEPS), random.choice(VALIDATIONS)
    at_source = keep == "needed" and random.random() < 0.4
    return Case(text, patterns, tuple(steps), keep=keep, validate=validate, at_source=at_source)


def _leaf(random: Random) -> str:
    return f"<{random.choice(_VALUES)}/>"


def _leaves(random: Random, doc: Document) -> dict[str, Any]:
    """A likely message for the call of a random stream, given its place."""
    tree = maintained(doc).tree
    stream = random.choice(sorted(tree.calls()))
    edit: dict[str, Any] = {"stream": stream}
    is_top = tree.label(tree.parent(tree.calls()[stream])) == "r"
    if random.random() < 0.12:
        edit["end"] = True
    elif tree.call(tree.calls()[stream]).deletes != "no" and random.random() < 0.4:
        edit["delete"] = f"match /{random.choice((*_VALUES, '*'))}"
    elif is_top or random.random() < 0.15:
        label = random.choice("abc")
        inside = "".join(_leaf(random) for _ in range(random.randint(0, 3)))
        edit["insert"] = f"<{label}>{inside}</{label}>"
    else:
        edit["insert"] = _leaf(random)
    return {**edit, "at": (maintained(doc).tree.clock + random.choice((0, 0, 1, 2))) / 1_000_000}


def _make_any_case(random: Random) -> Case:
    streams = random.randint(1, 4)
    text = small_cases.document(random, random.randint(1, 12), streams)
    may_delete = random.random() < 0.15
    for number in range(streams):
        declared = random.choice(("", "", "", "", ' mode="one-shot"', ' most="2"'))
        deletes = random.choice(("", ' deletes="yes"')) if may_delete else ""
        text = text.replace(f'stream="s{number}"', f'stream="s{number}"{declared}{deletes}')
    features = random.choice((_PLAIN, _PLAIN, _CONNECTED, _CONNECTED, DOWNWARD))
    count = random.choice((1, 1, 1, 2, 3))
    patterns = tuple(_pattern(random, features) for _ in range(count))
    follower = Document(text)
    steps: list[Step] = []
    for _ in range(random.randint(2, 9)):
        if random.random() < 0.3:
            steps.append((TUNE,))
        step = (_message(random, follower, streams),)
        try:
            carry_out(follower, step)
        except AxlogError:
            if random.random() < 0.8:  # others stay: both must refuse them
                continue
        steps.append(step)
    keep = random.choice(KEEPS)
    validate: Validate = random.choice(VALIDATIONS) if _is_sound(steps) else "all"
    at_source = keep == "needed" and random.random() < 0.4
    made = Case(text, patterns, tuple(steps), keep=keep, validate=validate, at_source=at_source)
    if keep == validate == "all" and random.random() < 0.3:
        return replace(made, maintainer=random.choice(("algebraic", "adaptive", "records")))
    return made


def _pattern(random: Random, features: Features) -> Pattern:
    """A pattern, mostly without `not`, which is not tuned."""
    while True:
        made = small_cases.pattern(random, features)
        if "not(" not in str(made) or random.random() < 0.1:
            return made


def _message(random: Random, doc: Document, streams: int) -> dict[str, Any]:
    open_streams = sorted(maintained(doc).tree.calls()) or ["s0"]
    edit: dict[str, Any] = {"stream": random.choice(open_streams)}
    pick = random.random()
    if pick < 0.82:
        trees = [fragment(random, random.randint(1, 6)) for _ in range(random.choice((1, 1, 1, 2)))]
        content = "".join(trees)
        if random.random() < 0.05:
            call = f'<ax:call xmlns:ax="urn:axlog" stream="n{random.randrange(100)}"/>'
            content = content.replace("</", f"{call}</", 1)
        edit["insert"] = content
    elif pick < 0.88:
        edit["delete"] = f"match //{random.choice(small_cases.LABELS)}"
    else:
        edit["end"] = True
    ahead = random.choice((None, 0, 1, 2, 5))
    clock = maintained(doc).tree.clock
    return edit if ahead is None else {**edit, "at": (clock + ahead) / 1_000_000}


def _is_sound(steps: list[Step]) -> bool:
    """Whether messages may pass unparsed: none is rejected for its content."""
    return all("delete" not in edit for step in steps for edit in step)


def check_tuning(case: Case, tell: Callable[[TuningReport], object] | None = None) -> None:
    """Check law 5 on one case; `tell` is called with the result of each tuning."""
    tested = Document(case.document, options=Options(keep=case.keep, validate=case.validate))
    keeps = case.keep == case.validate == "all"
    untuned, plain = Document(case.document), Document(case.document)
    source = _Source(tested) if case.at_source else None
    patterns: dict[str, Pattern] = {}
    heard: dict[str, list[Change]] = {}
    for number, pattern in enumerate(case.patterns):
        name = f"view{number + 1}"
        if Counting.refusal(pattern) is not None:
            continue
        query = Query(pattern=pattern, template=None, language="tree", text=str(pattern))
        patterns[name], heard[name] = pattern, []
        is_taken = maintainer_named(case.maintainer).refusal(pattern) is None
        kept_by = case.maintainer if is_taken else Counting.name
        tested.watch(query, name, maintainer=kept_by).subscribe(heard[name].append)
        untuned.watch(query, name, maintainer=kept_by)
        plain.watch(query, name, maintainer="reevaluate")
    for step in case.steps:
        if "tune" in step[0]:
            report = tested.tune(exact=step[0]["tune"] == "exact")
            if source is not None:
                source.install()
            if tell is not None:
                tell(report)
            continue
        reporting = {name for name in patterns if keeps or _is_reported_by_join(untuned, name)}
        told = _take(tested, step) if source is None else source.send(step)
        wanted, too = _take(plain, step), _take(untuned, step)
        if isinstance(told, str) or isinstance(wanted, str) or isinstance(too, str):
            if told == "AX307":  # data that was not kept is needed: an error, never a wrong answer
                return
            _same("what an update is refused for", told, wanted)
            continue
        _same("the clock", tested.clock, plain.clock)
        for name in patterns:
            mine = [change for change in told if change.view == name]
            _same(f"what listeners to {name} heard", heard[name], mine)
            heard[name].clear()
            others = [change for change in wanted if change.view == name]
            _same(
                f"the changes of {name}",
                _changes(c for c in mine if c.op != "never"),
                _changes(c for c in others if c.op != "never"),
            )
            others = [
                change
                for change in too
                if change.view == name and (change.op != "never" or name in reporting)
            ]
            _same(f"what never comes to {name}", _changes(mine), _changes(others))
            _same(f"the rows of {name}", _rows(tested, name), _rows(plain, name))
    if not maintained(tested).lacks_messages:
        _same("the document", tested.xml(), plain.xml())


class _Source:
    """The source of a document's streams; it does not send messages that its filters reject."""

    def __init__(self, doc: Document) -> None:
        self._document = doc
        self._filters: dict[str, Filter | None] = {}

    def install(self) -> None:
        for stream in maintained(self._document).tree.calls():
            made = self._document.filter(stream)
            self._filters[stream] = None if made is None else Filter.from_json(made.to_json())

    def send(self, step: Step) -> list[Change] | str:
        if "stream" not in step[0]:
            return _take(self._document, step)
        update = StreamUpdate.of(step[0])
        wanted = self._filters.get(update.stream)
        is_open = update.stream in maintained(self._document).tree.calls()
        if wanted is None or not is_open or passes(wanted, update):
            return _take(self._document, step)
        return self._document.advance(self._document.clock if update.at is None else update.at)


def _take(doc: Document, step: Step) -> list[Change] | str:
    try:
        if "advance" in step[0]:
            return doc.advance(step[0]["advance"])
        return carry_out(doc, step)
    except AxlogError as error:
        return error.code


def _is_reported_by_join(doc: Document, name: str) -> bool:
    """Whether a join's state reports `never` of a view: all that does without the messages."""
    return streams_of(doc).prospects(maintained(doc).views[name]) is not None


def _changes(changes: Iterable[Change]) -> Counter[tuple[object, ...]]:
    """Changes without counts."""
    return Counter(
        (c.op, c.row.values_, None if c.before is None else c.before.values_, c.time)
        for c in changes
    )


def _rows(doc: Document, name: str) -> Counter[tuple[object, ...]]:
    return Counter(row.values_ for row in doc.view(name).rows())


def _same(what: str, found: Any, wanted: Any) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: found {found!r}, wanted {wanted!r}")
