"""Many different views on one document, against the same views one by one.

The views are of the kind of paper 3 (10 nodes, 2 //, a value join), drawn at random over one set of
labels. Every message is made for one of them: a match of one of its branches below the root, with
other data around it, which may match other views by chance. The fewer labels there are, the more
views a message concerns. The other side is one document for each view, fed with the same messages:
a sample of the views is measured, times their number. All times are processor times.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from statistics import median
from time import process_time

from axlog.live.document import Document
from axlog.live.internals import maintained, streams_of
from axlog.live.options import Options
from axlog.query.compile import Relation
from axlog.samples.chance import Chance
from axlog.views.counting.maintainer import Counting
from lab.benchmarks.measuring import Cost, Result, Side, interleave
from lab.benchmarks.messages import WARM, Message, parsing
from lab.generators.planting import Planter
from lab.generators.random_documents import AX, alphabet
from lab.generators.random_patterns import PatternTree, pattern_tree

STREAMS = 10
SIZE = 20
"""The elements of a message."""
SAMPLE = 100
"""The views that are measured one by one."""
ALONE = 300
"""The messages that a document with one view gets before it is measured."""
WATCHED = 8
"""The views that are watched one by one."""
WATCHED_AT = (100, 300)
"""The numbers of views to which others are added, besides the number of all."""
LABELS = (1000, 100)
"""The labels of the document: a message concerns few or many of 1,000 views."""


def shapes(
    count: int = 200, rounds: int = 2, views: int = 1000, labels_of: Sequence[int] = LABELS
) -> Result:
    """Measure `count` messages with this many different views.

    The document with all views gets messages for each of them before, since code for a branch is
    generated when it first matches. The documents with one view get some of these messages.
    """
    result = Result("shapes", "different views one by one / together (20 x or more)")
    result.sizes = {"messages": count, "rounds": rounds, "views": views}
    for labels in labels_of:
        trees = different_views(views, labels)
        sent = messages_for(trees, 4 * views + count, labels)
        warm, measured = sent[:-count], sent[-count:]
        sample = trees[:: max(views // SAMPLE, 1)]
        costs = interleave(
            {
                "together": _together(trees, warm),
                "one by one": _one_by_one(sample, warm[-ALONE:]),
                "bare parse": parsing,
            },
            measured,
            max(count // 4, 1),
            rounds,
            process_time,
        )
        each, times = costs["one by one"], views / len(sample)
        costs["one by one"] = Cost(times * each.least, times * each.median)
        what = f"{views} views, {labels} labels"
        result.compare(what, costs, "one by one", "together", "20 or more")
        result.compare(f"{what}, parse", costs, "together", "bare parse")
        result.figures[f"{what}: views that a message concerns"] = _concerned(trees, measured)
    for number in sorted({*WATCHED_AT, views}):
        if number <= views:
            _measure_watching(result, number)
    result.remarks.append(f"Python {sys.version.split()[0]}, processor time")
    return result


def different_views(count: int, labels: int, seed: int = 0) -> list[PatternTree]:
    """Different patterns of the kind of paper 3."""
    chance, names = Chance(seed, "shapes"), [name for name in alphabet(labels) if name != "r"]
    found: dict[str, PatternTree] = {}
    while len(found) < count:
        made = pattern_tree(10, 2, 1, 5, names, chance, distinct=True)
        found.setdefault(str(made), made)
    return list(found.values())


def messages_for(
    trees: Sequence[PatternTree], count: int, labels: int, seed: int = 0
) -> list[Message]:
    """Messages of which each matches a branch of one of the views."""
    chance = Chance(seed, "messages")
    names = [name for name in alphabet(labels) if name != "r"]
    planter = Planter(chance, names, 50)
    sent: list[Message] = []
    while len(sent) < count:
        branch = chance.choose(chance.choose(trees).root.children)
        filled = planter.pad(planter.match(branch), branch, SIZE)
        if len(filled) == 1:  # otherwise there was no room for other data
            stream = f"f{chance.below(STREAMS)}"
            sent.append((stream, str(filled[0]).encode(), float(len(sent))))
    return sent


def document_text() -> str:
    """The document: its root has the calls of all streams."""
    calls = "".join(f'<ax:call stream="f{number}"/>' for number in range(STREAMS))
    return f'<r xmlns:ax="{AX}">{calls}</r>'


def _watching(trees: Sequence[PatternTree]) -> Document:
    doc = Document(document_text(), options=Options(keep="needed"))
    for number, tree in enumerate(trees):
        doc.watch(str(tree), f"v{number}")
    return doc


def _together(trees: Sequence[PatternTree], warm: Sequence[Message]) -> Callable[[], Side[Message]]:
    return lambda: _feeding([_watching(trees)], warm)


def _one_by_one(
    trees: Sequence[PatternTree], warm: Sequence[Message]
) -> Callable[[], Side[Message]]:
    return lambda: _feeding([_watching([tree]) for tree in trees], warm)


def _feeding(documents: Sequence[Document], warm: Sequence[Message]) -> Side[Message]:
    def work(chunk: Sequence[Message]) -> None:
        for doc in documents:
            feed = doc.feed
            for stream, message, at in chunk:
                feed(stream, message, at=at)

    work(warm)
    return work


def _concerned(trees: Sequence[PatternTree], sent: Sequence[Message]) -> float:
    """The mean number of views that a message has a binding for."""
    doc = _watching(trees)
    users: dict[Relation, set[str]] = {}
    for name, view in maintained(doc).views.items():
        assert isinstance(view.maintainer, Counting)
        for relation in view.maintainer.root.walk():
            users.setdefault(relation, set()).add(name)
    engine, concerned = streams_of(doc).engine, 0
    for stream, message, at in sent:
        plan = engine.plan(stream)
        assert plan is not None
        bags = plan.bags(message, int(at))
        assert bags is not None
        relations = (*plan.here, *plan.everywhere)
        found = [users[relation] for relation, bag in zip(relations, bags, strict=True) if bag]
        concerned += len(set().union(*found))
    return concerned / len(sent)


def _measure_watching(result: Result, views: int) -> None:
    """One view more, of another shape, and the message after it."""
    labels = LABELS[0]
    trees = different_views(views + WATCHED, labels)
    sent = messages_for(trees, WARM + 2 * WATCHED, labels)
    doc = _watching(trees[:views])
    for stream, message, at in sent[:WARM]:
        doc.feed(stream, message, at=at)
    watching: list[float] = []
    after: list[float] = []
    for number in range(WATCHED):
        start = process_time()
        doc.watch(str(trees[views + number]), f"more{number}", since="now")
        watching.append(process_time() - start)
        stream, message, at = sent[WARM + number]
        start = process_time()
        doc.feed(stream, message, at=at)
        after.append(process_time() - start)
    result.figures[f"watching one view more than {views}, median, ms"] = 1e3 * median(watching)
    result.figures[f"the message after it, with {views}, median, ms"] = 1e3 * median(after)
