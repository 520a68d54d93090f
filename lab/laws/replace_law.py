"""Streams that replace: rows and changes are those of the document with the old trees replaced.

    rows(document after the messages)  =  definition(text of the document, written by hand)

The reference is an lxml tree. A message is put before its call, or in the place of the earlier
message of its stream with the same key; the rows are those of the definition on the parsed text,
with the times of the messages. Compared after every step: the rows of every view with their counts,
and the rows that a subscriber has who merges the changes by key. Documents are kept in every way:
with and without nodes, tuned, collected, with every maintainer that accepts the pattern, in batches
that are rolled back, restarted from a snapshot. Embedded and Spark are compared by law `pipelines`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Any

from lxml import etree

from axlog.document.ids import Id
from axlog.document.loader import load
from axlog.document.parser import DEFAULT_LIMITS
from axlog.document.tree import CALL_LABEL, Tree
from axlog.errors import AxlogError
from axlog.evaluate import definition
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.log_records import settings_of
from axlog.live.options import Options
from axlog.live.recovery import load_parts, snapshot_parts
from axlog.query.pattern import Kind, Pattern
from axlog.query.query import Query
from axlog.views.change import Change
from lab.laws import small_cases
from lab.laws.small_cases import DOWNWARD, Features

PATHS = ("@k", "@k", "b", "a/@m", "c/b", ".")
_SHORT = Features(outputs=(Kind.VARIABLE, Kind.TIME, Kind.LABEL), collects=False, size=5)
_MAINTAINERS = (None, None, None, "counting", "algebraic", "records", "adaptive", "reevaluate")
Element = Any  # of lxml, whose types are too wide here
_DECLARATION = "<?xml version='1.0'?>"
Step = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ReplaceCase:
    """A document with streams that replace, views, and steps."""

    document: str
    patterns: tuple[Pattern, ...]
    steps: tuple[Step, ...]
    keep: str = "all"
    options: tuple[tuple[str, Any], ...] = ()
    maintainer: str | None = None


def make_replace_case(random: Random) -> ReplaceCase:
    """A random case; half of them can be kept without nodes."""
    streams = random.choice((1, 2, 2, 3))
    text = small_cases.document(random, random.randint(1, 8), streams)
    paths: dict[str, str] = {}
    text = text.replace(' calls="1000000"', "")
    for number in range(streams):
        said = ""
        if number == 0 or random.random() < 0.4:
            paths[f"s{number}"] = random.choice(PATHS)
            said = f' replace="{paths[f"s{number}"]}"'
        said += random.choice(("", "", "", "", ' deletes="yes"', ' most="4"', ' late="clock"'))
        text = text.replace(f'stream="s{number}"', f'stream="s{number}"{said}')
    features = random.choice((_SHORT, _SHORT, DOWNWARD))
    patterns = tuple(small_cases.pattern(random, features) for _ in range(random.choice((1, 2))))
    keep = random.choice(("all", "all", "needed"))
    steps = tuple(_step(random, streams, paths, keep) for _ in range(random.randint(3, 14)))
    options = {
        "collect": random.choice(("off", "state", "auto")),
        "cache": random.choice(("memory", "memory", "disk")),
        "never": random.choice(("off", "joins", "kept", "all")),
    }
    maintainer = random.choice(_MAINTAINERS) if keep == "all" else None
    return ReplaceCase(text, patterns, steps, keep, tuple(options.items()), maintainer)


def _step(random: Random, streams: int, paths: dict[str, str], keep: str) -> Step:
    """A step. Where messages are not kept, no stream ends: such documents cannot be restored."""
    pick = random.random()
    stream = f"s{random.randrange(streams)}"
    if pick < 0.03 and keep == "all":
        return ("end", stream)
    if pick < 0.06:
        return ("tune",)
    if pick < 0.09:
        return ("collect",)
    if pick < 0.15:
        return ("restart",)
    if pick < 0.19 and keep == "all":
        return ("delete", stream, random.choice(small_cases.LABELS))
    if pick < 0.23 and keep == "all":
        return ("read",)
    if pick < 0.27 and keep == "all":
        return ("update", random.choice(small_cases.LABELS))
    if pick < 0.31:
        inside = [_message(random, stream, paths) for _ in range(random.randint(1, 3))]
        return ("batch", random.random() < 0.5, tuple(inside))
    return _message(random, stream, paths)


def _message(random: Random, stream: str, paths: dict[str, str]) -> Step:
    root = etree.fromstring(small_cases.fragment(random, random.randint(1, 5)))
    if stream in paths and random.random() < 0.95:
        _put_key(root, paths[stream], random.choice(("1", "2", "a", "z")))
    text = etree.tostring(root, encoding="unicode")
    if random.random() < 0.04:
        text = random.choice(
            (f"{text}<a/>", f"<!--c-->{text}", "<a>", "<?xml version='1.0'?>" + text)
        )
    return ("feed", stream, text, random.choice((0, 0, 1, 2)))


def _put_key(root: Element, path: str, key: str) -> None:
    """Give a message one key."""
    if path == ".":
        for child in list(root):
            root.remove(child)
        root.text = key
        return
    *steps, last = path.split("/")
    place = root
    for step in steps:
        for other in place.findall(step):
            place.remove(other)
        place = etree.SubElement(place, step)
    if last.startswith("@"):
        place.set(last[1:], key)
        return
    for other in place.findall(last):
        place.remove(other)
    etree.SubElement(place, last).text = key


# The reference ------------------------------------------------------------------------------------


class Reference:
    """The document as text, changed by hand."""

    def __init__(self, document: str) -> None:
        self.root: Element = etree.fromstring(document)
        self.times: dict[Element, int] = {}
        self.current: dict[tuple[str, str], Element] = {}

    def copied(self) -> Reference:
        """A copy, for a batch that is rolled back."""
        made = Reference("<r/>")
        made.root = deepcopy(self.root.getroottree()).getroot()  # with comments beside the root
        both = dict(zip(self.root.iter(), made.root.iter(), strict=True))
        made.times = {both[node]: time for node, time in self.times.items() if node in both}
        made.current = {key: both[node] for key, node in self.current.items() if node in both}
        return made

    def call(self, stream: str) -> Element:
        """The call of a stream."""
        (found,) = [c for c in self.root.iter(CALL_LABEL) if c.get("stream") == stream]
        return found

    def feed(self, stream: str, text: str, time: int) -> None:
        """Put the trees of a message before the call, or in the place of an earlier message."""
        call = self.call(stream)
        wrapped = etree.fromstring(
            b"<_>" + text.replace("<?xml version='1.0'?>", "").encode() + b"</_>"
        )
        for tree in list(wrapped):
            tree.tail = None
            self.times |= dict.fromkeys(tree.iter(), time)
            path = call.get("replace")
            key = None if path is None else (stream, _key_of(tree, path))
            old = None if key is None else self.current.get(key)
            if old is None:
                call.addprevious(tree)
            else:
                tree.tail = old.tail
                old.getparent().replace(old, tree)
            if key is not None:
                self.current[key] = tree

    def remove(self, nodes: list[Element]) -> None:
        """Remove elements, and forget the messages that go with them."""
        for node in nodes:
            parent, before = node.getparent(), node.getprevious()
            tail, node.tail = node.tail, None
            parent.remove(node)
            if tail and before is not None:
                before.tail = (before.tail or "") + tail
            elif tail:
                parent.text = (parent.text or "") + tail
        kept = set(self.root.iter())
        self.current = {key: node for key, node in self.current.items() if node in kept}

    def end(self, stream: str) -> None:
        """Remove the call of a stream."""
        self.remove([self.call(stream)])
        self.current = {key: node for key, node in self.current.items() if key[0] != stream}

    def tree(self) -> Tree:
        """The document parsed anew, with the times of the messages."""
        tops = etree.ElementTree(self.root)
        tree = load(etree.tostring(tops, encoding="unicode"), limits=DEFAULT_LIMITS)
        nodes = [n for n in tree.subtree(tree.root) if tree.kind(n).name in ("ELEMENT", "CALL")]
        elements = list(self.root.iter(etree.Element))
        for node, element in zip(nodes, elements, strict=True):
            if element in self.times:
                for below in (node, *tree.chain(node)):
                    tree.time_column[below] = self.times[element]
                    for value in tree.chain(below):
                        if tree.kind(below).name == "ATTRIBUTE":
                            tree.time_column[value] = self.times[element]
        return tree


def _key_of(root: Element, path: str) -> str:
    if path == ".":
        return root.text or ""
    found = root.xpath(path if "@" in path else f"{path}/text()")
    return str(found[0]) if found else ""


# The law ------------------------------------------------------------------------------------------


class _Reader:
    """A subscriber that merges changes by key."""

    def __init__(self) -> None:
        self.rows: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def take(self, change: Change) -> None:
        """Merge one change; it must fit the rows."""
        key, values = change.key, change.row.values_
        if change.op == "insert":
            assert key not in self.rows, f"{change} although the row exists"
            self.rows[key] = values
        elif change.op == "delete":
            assert self.rows.get(key) == values, f"{change} although the row is another"
            del self.rows[key]
        elif change.op == "update":
            assert change.before is not None
            assert self.rows.get(key) == change.before.values_, f"{change}: another row before"
            assert change.before.values_ != values, f"{change} changes nothing"
            self.rows[key] = values


class _Run:
    def __init__(self, case: ReplaceCase) -> None:
        self.case = case
        self.options: dict[str, Any] = {**dict(case.options), "keep": case.keep}
        self.doc = Document(case.document, options=Options(**self.options))
        self.wanted = Reference(case.document)
        self.readers: dict[str, _Reader] = {}
        self.seen: Counter[str] = Counter()
        self.has_texts = True
        for number, pattern in enumerate(case.patterns):
            name = f"v{number}"
            query = Query(pattern, str(pattern))
            try:
                self.doc.watch(query, name, maintainer=case.maintainer)
            except AxlogError:
                self.doc.watch(query, name)
            self.readers[name] = _Reader()
        self.listen()

    def listen(self) -> None:
        for name, reader in self.readers.items():
            reader.rows = {row.key: row.values_ for row in self.doc.view(name).rows()}
            self.doc.view(name).subscribe(reader.take)

    def step(self, step: Step) -> None:
        kind, *given = step
        getattr(self, f"_{kind}")(*given)

    def _feed(self, stream: str, text: str, ahead: int) -> None:
        clock = maintained(self.doc).tree.clock
        late = ahead == 2 and clock > 3
        try:
            changes = self.doc.feed(stream, text, at=(clock - 1 if late else clock + ahead) / 1e6)
        except AxlogError as error:
            self.seen[error.code] += 1
            return
        self.seen["update"] += any(change.op == "update" for change in changes)
        self.wanted.feed(stream, text, maintained(self.doc).tree.clock)
        self.seen["messages"] += 1

    def _end(self, stream: str) -> None:
        if stream in maintained(self.doc).tree.calls() and len(self.doc.collected) == 0:
            self.doc.end(stream)
            self.wanted.end(stream)

    def _delete(self, stream: str, label: str) -> None:
        try:
            self.doc.delete(stream, f"match /{label}")
        except AxlogError as error:
            self.seen[error.code] += 1
            return
        self.wanted.remove(list(self.wanted.call(stream).getparent().findall(label)))
        self.has_texts = False

    def _update(self, label: str) -> None:
        try:
            self.doc.update(f"insert node <b>2</b> as last into /*/{label}[1]")
        except AxlogError as error:
            self.seen[error.code] += 1
            return
        for node in self.wanted.root.xpath(f"/*/{label}[1]"):
            last = node[-1] if len(node) else None
            made = etree.SubElement(node, "b")
            made.text = "2"
            self.wanted.times[made] = maintained(self.doc).tree.clock
            assert last is None or made.getprevious() is last

    def _tune(self) -> None:
        self.doc.tune()

    def _collect(self) -> None:
        self.doc.collect()

    def _read(self) -> None:
        try:
            assert self.doc.xml()
        except AxlogError as error:
            self.seen[error.code] += 1

    def _batch(self, is_undone: bool, messages: tuple[Step, ...]) -> None:
        before = self.wanted.copied()

        class Undone(Exception):
            pass

        try:
            with self.doc.batch():
                for message in messages:
                    self.step(message)
                if is_undone:
                    raise Undone
        except Undone:
            self.wanted = before

    def _restart(self) -> None:
        if maintained(self.doc).collected:
            return
        for name in self.readers:
            if self.doc.view(name).broken is not None:
                return
        options = {name: self.options[name] for name in ("keep", "collect", "never")}
        settings = settings_of("", options, asdict(DEFAULT_LIMITS))
        found = load_parts(snapshot_parts(self.doc, settings, {}), 1)
        self.doc = found.document
        self.listen()
        self.seen["restarts"] += 1

    def compare(self, step: Step) -> None:
        tree = self.wanted.tree()
        for number, pattern in enumerate(self.case.patterns):
            view = self.doc.view(f"v{number}")
            if view.broken is not None:
                continue
            if not self.has_texts and "time" in str(pattern):
                continue  # a deletion merges texts: the merged one has another time
            wanted = definition.rows(tree, pattern)
            shown = Counter[tuple[Any, ...]]()
            for answer in wanted.values():
                shown[_without_ids(answer.values)] += answer.count if self.counts else 1
            rows = view.rows()
            found = Counter[tuple[Any, ...]]()
            for row in rows:
                found[_without_ids(row.values_)] += row.count if self.counts else 1
            if found != shown:
                raise AssertionError(f"{step}: {pattern} has {found}, wanted {shown}")
            merged = self.readers[view.name].rows
            if merged != {row.key: row.values_ for row in rows}:
                raise AssertionError(f"{step}: {pattern} has {rows}, its changes give {merged}")

    @property
    def counts(self) -> bool:
        """Whether derivations are counted exactly: filters and collection may change counts."""
        steps = {step[0] for step in self.case.steps}
        return self.options["collect"] == "off" and "tune" not in steps and "collect" not in steps


def _without_ids(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple("id" if isinstance(value, Id) else value for value in values)


def check_replace(case: ReplaceCase) -> Counter[str]:
    """Compare one case after every step; return the number of events by name."""
    try:
        run = _Run(case)
    except AxlogError as error:
        return Counter({error.code: 1})
    run.compare(("start",))
    for step in case.steps:
        run.step(step)
        run.compare(step)
    return run.seen


def smaller_replace(case: ReplaceCase) -> Iterator[ReplaceCase]:
    """Cases with fewer steps or views."""
    for number in range(len(case.steps)):
        yield replace(case, steps=case.steps[:number] + case.steps[number + 1 :])
    for number in range(len(case.patterns)) if len(case.patterns) > 1 else ():
        yield replace(case, patterns=case.patterns[:number] + case.patterns[number + 1 :])
    if case.maintainer is not None:
        yield replace(case, maintainer=None)
