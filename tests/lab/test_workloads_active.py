"""Active documents and updates: what is planted can match, only pertinent messages do.

The oracle is a matcher of its own over lxml trees: every valuation, by the definition (P3 def. 2).
"""

import json
from collections import Counter
from hashlib import sha256
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from axlog.errors import WorkloadError
from lab.generators.active import Workload, updates, workload
from lab.generators.random_patterns import PatternNode

CALL = "{urn:axlog}call"
Binding = frozenset[tuple[str, str]]


def children(element: etree._Element) -> list[etree._Element]:
    return [child for child in element if child.tag != CALL]


def texts(element: etree._Element) -> list[str]:
    return [text for text in (element.text, *(child.tail for child in element)) if text]


def valuations(node: PatternNode, element: etree._Element) -> Counter[Binding]:
    """The bindings of the sub-pattern's matches with `node` at `element`, with their counts."""
    if element.tag != node.test:
        return Counter()
    branches = []
    for child in node.children:
        if child.variable:
            labels = texts(element) + [below.tag for below in children(element)]
            branches.append(Counter(frozenset({(child.variable, label)}) for label in labels))
        else:
            found: Counter[Binding] = Counter()
            near = children(element)
            below = near if child.axis == "/" else [e for c in near for e in c.iter(child.test)]
            for each in below:
                found.update(valuations(child, each))
            branches.append(found)
    joined: Counter[Binding] = Counter()
    for chosen in product(*(branch.items() for branch in branches)):
        merged, count = frozenset[tuple[str, str]](), 1
        for binding, times in chosen:
            merged, count = merged | binding, count * times
        if len(dict(merged)) == len(merged):
            joined[merged] += count
    return joined


def parsed(made: Workload) -> etree._Element:
    return etree.fromstring(made.document)


def forest(message: str) -> list[etree._Element]:
    return list(etree.fromstring(f"<message>{message}</message>"))


def apply(root: etree._Element, update: dict[str, object]) -> None:
    (call,) = (each for each in root.iter(CALL) if each.get("stream") == update["stream"])
    for tree in forest(str(update["insert"])):
        call.addprevious(tree)


def is_wanted(made: Workload, update: dict[str, object]) -> bool:
    (call,) = (each for each in made.calls if each.stream == update["stream"])
    trees = forest(str(update["insert"]))
    if call.missing.axis == "//":
        trees = [element for tree in trees for element in tree.iter(call.missing.test)]
    return any(valuations(call.missing, tree) for tree in trees)


@st.composite
def documents(draw: st.DrawFn, values: int = 5) -> Workload:
    joins = draw(st.integers(0, 2))
    paths = draw(st.integers(joins + 1, 5))
    outputs = 1
    ended = min(paths, 2 * joins + 1)
    size = draw(st.integers(1 + paths + ended, 13))
    return workload(
        document_size=draw(st.integers(400, 700)),
        pattern_size=size,
        descendants=draw(st.integers(0, min(3, paths))),
        joins=joins,
        paths=paths,
        calls=draw(st.integers(1, 8)),
        seed=draw(st.integers(0, 2**32)),
        outputs=outputs,
        values=values,
    )


@given(documents())
@settings(max_examples=60)
def test_a_document_has_the_sizes_asked_for(made):
    root = parsed(made)
    streams = Counter(call.get("stream") for call in root.iter(CALL))
    assert streams == Counter(call.stream for call in made.calls)
    labels = [e.tag for e in root.iter(etree.Element) if e.tag != CALL]
    assert 400 <= len(labels) <= 700


@pytest.mark.parametrize("size", [500, 5000, 20_000])
def test_document_size_is_exact(size):
    root = parsed(workload(document_size=size))
    assert sum(1 for e in root.iter(etree.Element) if e.tag != CALL) == size


@given(documents())
@settings(max_examples=60)
def test_oracle_calls_stand_below_their_patterns_parent(made):
    """Where a call stands, the missing sub-pattern would hang on what its parent matches."""
    root = parsed(made)
    above = {id(c): n for n in made.tree.root.walk() for c in n.children}
    for call in made.calls:
        (element,) = (e for e in root.iter(CALL) if e.get("stream") == call.stream)
        ancestors = [ancestor.tag for ancestor in element.iterancestors()]
        if call.missing.axis == "/":
            ancestors = ancestors[:1]
        assert above[id(call.missing)].test in ancestors


@given(documents(values=1))
@settings(max_examples=60)
def test_oracle_a_document_is_satisfiable(made):
    """With one value for all variables, what each call wants makes the pattern hold."""
    root = parsed(made)
    wanted = {call.stream for call in made.calls}
    for update in updates(made, 1000, pertinence=1.0, message_size=8):
        if update["stream"] in wanted:
            wanted.remove(update["stream"])
            apply(root, update)
    assert not wanted
    assert valuations(made.tree.root, root)


@given(documents(values=2))
@settings(max_examples=60)
def test_oracle_joins_can_meet(made):
    """With two values, enough messages make every join meet, planted data included."""
    root = parsed(made)
    for update in updates(made, 60, pertinence=1.0, message_size=8):
        apply(root, update)
    assert valuations(made.tree.root, root)


@given(documents())
@settings(max_examples=60)
def test_oracle_pertinent_messages_match_what_is_wanted(made):
    assert all(is_wanted(made, update) for update in updates(made, 30, pertinence=1.0))


@given(documents())
@settings(max_examples=60)
def test_oracle_other_messages_change_nothing(made):
    root = parsed(made)
    before = valuations(made.tree.root, root)
    for update in updates(made, 30, pertinence=0.0):
        assert not is_wanted(made, update)
        apply(root, update)
    assert valuations(made.tree.root, root) == before


@given(documents())
@settings(max_examples=40)
def test_oracle_the_filling_matches_nothing(made):
    planted = etree.fromstring(
        f'<{made.tree.root.test} xmlns:ax="urn:axlog">{made.planted}</{made.tree.root.test}>'
    )
    root = made.tree.root
    assert valuations(root, parsed(made)) == valuations(root, planted)


@pytest.mark.parametrize("pertinence", [0.1, 0.7, 0.9])
def test_pertinence_is_the_share_of_wanted_messages(pertinence):
    made = workload(seed=3)
    share = sum(is_wanted(made, update) for update in updates(made, 1000, pertinence)) / 1000
    assert share == pytest.approx(pertinence, abs=0.04)


def test_joins_meet_now_and_then():
    """Over P3's experiment, some rows come by joins of messages, but not all values join."""
    met = 0
    for seed in range(10):
        made = workload(document_size=1000, seed=seed)
        root = parsed(made)
        before = {row["x1"] for row in map(dict, valuations(made.tree.root, root))}
        for update in updates(made, 100):
            apply(root, update)
        after = {row["x1"] for row in map(dict, valuations(made.tree.root, root))}
        assert before <= after < {f"v{i}" for i in range(made.values)}
        met += len(after - before)
    assert met >= 10


@pytest.mark.parametrize("seed", range(10))
def test_a_join_has_a_side_that_arrives(seed):
    made = workload(seed=seed)
    inside = [
        {node.test for node in call.missing.walk() if node.variable} for call in made.calls[:3]
    ]
    assert any("$x1" in variables for variables in inside)


@pytest.mark.parametrize("size", [12, 20, 50])
def test_messages_have_the_size_asked_for(size):
    made = workload(seed=1)
    for update in updates(made, 200, message_size=size):
        (tree,) = forest(str(update["insert"]))
        assert sum(1 for _ in tree.iter()) == size


def test_updates_are_json_in_the_order_of_time():
    made = workload(document_size=500, calls=4)
    drawn = list(updates(made, 50, interval=0.5))
    assert [json.loads(json.dumps(update)) for update in drawn] == drawn
    assert [update["at"] for update in drawn] == [0.5 * (i + 1) for i in range(50)]
    assert {update["stream"] for update in drawn} == {"f0", "f1", "f2", "f3"}


def test_deletions_are_the_share_asked_for_and_select_something():
    made = workload(values=2, deletes=True, seed=4)
    assert 'deletes="yes"' in made.document
    drawn = list(updates(made, 500, deletions=0.2))
    deletions = [update for update in drawn if "delete" in update]
    assert len(deletions) / 500 == pytest.approx(0.2, abs=0.05)
    labels = {call.missing.test for call in made.calls}
    tests = {str(update["delete"]).removeprefix("match //").split("/")[0] for update in deletions}
    assert tests == labels


def test_one_seed_one_document():
    made, again = workload(seed=9, document_size=600), workload(seed=9, document_size=600)
    assert made.document == again.document
    assert made.pattern == again.pattern != workload(seed=8).pattern
    drawn = list(updates(made, 20, seed=2))
    assert drawn == list(updates(again, 20, seed=2)) != list(updates(again, 20, seed=3))
    text = made.document + made.pattern + json.dumps(drawn)
    assert sha256(text.encode()).hexdigest()[:16] == "31352bea85a6cbf9"


def test_a_large_document_comes_in_pieces():
    pieces = list(workload(document_size=50_000).chunks())
    assert max(map(len, pieces)) < 20_000


@pytest.mark.parametrize(
    "parameters",
    [
        {"document_size": 10},
        {"labels": 7},
        {"labels": 5},
        {"pattern_size": 1, "paths": 1, "joins": 0, "descendants": 0, "outputs": 0},
    ],
)
def test_documents_that_cannot_be_are_refused(parameters):
    with pytest.raises(WorkloadError) as refused:
        workload(**parameters)
    assert refused.value.code == "AX601"


def test_updates_that_cannot_be_are_refused():
    with pytest.raises(WorkloadError):
        updates(workload(calls=0), 1)
    with pytest.raises(WorkloadError):
        updates(workload(), 1, deletions=0.5)
