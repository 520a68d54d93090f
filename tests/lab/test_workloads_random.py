"""Random documents and patterns have exactly the sizes asked for."""

from dataclasses import dataclass, field
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from axlog.errors import WorkloadError
from lab.generators.random_documents import capacity, document
from lab.generators.random_patterns import pattern

CALL = "{urn:axlog}call"


def elements(root: etree._Element) -> list[etree._Element]:
    return [element for element in root.iter(etree.Element) if element.tag != CALL]


def depth(root: etree._Element) -> int:
    return 1 + max((depth(child) for child in root if child.tag != CALL), default=0)


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, int, int]:
    levels, fanout = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    size = draw(st.integers(1, min(400, capacity(levels, fanout))))
    return size, levels, fanout


@given(shapes(), st.integers(0, 2**32), st.floats(0, 1))
@settings(max_examples=100)
def test_a_document_has_the_shape_asked_for(shape, seed, ratio):
    size, levels, fanout = shape
    text = "".join(document(size, levels, fanout, 5, seed, ratio, ratio, mixed=ratio))
    root = etree.fromstring(text)
    assert len(elements(root)) == size
    assert depth(root) <= levels
    assert max(map(len, elements(root))) <= fanout


@given(st.integers(1, 200), st.data())
@settings(max_examples=50)
def test_a_document_has_the_calls_asked_for(size, data):
    calls = data.draw(st.integers(0, size))
    root = etree.fromstring("".join(document(size, calls=calls, seed=data.draw(st.integers()))))
    streams = [call.get("stream") for call in root.iter(CALL)]
    assert len(streams) == calls
    assert set(streams) == {f"f{i}" for i in range(calls)}
    assert len(elements(root)) == size
    closed = [element for element in elements(root) if len(element) and element[-1].tag == CALL]
    assert len(closed) == calls


def test_ratios_are_kept():
    text = "".join(document(5000, text_ratio=0.3, attributes=0.2, mixed=0.4, values=7))
    every = elements(etree.fromstring(text))
    leaves = [element for element in every if not len(element)]
    inner = [element for element in every if len(element)]
    assert sum(bool(e.text) for e in leaves) / len(leaves) == pytest.approx(0.3, abs=0.03)
    assert sum(bool(e.text) for e in inner) / len(inner) == pytest.approx(0.4, abs=0.05)
    assert sum("k" in e.attrib for e in every) / len(every) == pytest.approx(0.2, abs=0.02)
    assert {e.text for e in leaves if e.text} == {f"v{i}" for i in range(7)}


def test_one_seed_one_document():
    text = "".join(document(300, calls=3, seed=5))
    assert text == "".join(document(300, calls=3, seed=5)) != "".join(document(300, seed=6))
    assert sha256(text.encode()).hexdigest()[:16] == "3079e265ae1a0482"


def test_a_document_comes_in_pieces():
    pieces = list(document(20_000))
    assert len(pieces) > 50
    assert max(map(len, pieces)) < 20_000


@pytest.mark.parametrize(
    "parameters",
    [
        {"size": 8, "depth": 3, "fanout": 2},
        {"size": 0},
        {"fanout": 0},
        {"size": 3, "calls": 4},
        {"labels": 0},
        {"values": 0},
    ],
)
def test_documents_that_cannot_be_are_refused(parameters):
    with pytest.raises(WorkloadError) as refused:
        document(**parameters)
    assert refused.value.code == "AX601"
    assert refused.value.expected


# Patterns: counted on their text by a scanner of their own.


@dataclass
class Scanned:
    """A test of a pattern's text and what stands below it."""

    test: str
    axis: str
    name: str = ""
    children: list["Scanned"] = field(default_factory=list)

    def walk(self):
        yield self
        for child in self.children:
            yield from child.walk()


def scan(text: str, at: int, axis: str) -> tuple[Scanned, int]:
    """The step that starts at `at`, with everything below it, and where it ends."""
    for skipped in ("//", "/"):
        if text.startswith(skipped, at):
            axis, at = skipped, at + len(skipped)
            break
    end = text.index('"', at + 1) + 1 if text[at] == '"' else at + 1
    while end < len(text) and text[at] != '"' and (text[end].isalnum() or text[end] in "_."):
        end += 1
    step, at = Scanned(text[at:end], axis), end
    if text.startswith("#", at):
        end = at + 1
        while end < len(text) and text[end].isalnum():
            end += 1
        step.name, at = text[at + 1 : end], end
    while text.startswith("[", at):
        child, at = scan(text, at + 1, "/")
        assert text[at] == "]", text[at:]
        step.children.append(child)
        at += 1
    if text.startswith("/", at):
        child, at = scan(text, at, "/")
        step.children.append(child)
    return step, at


def scan_pattern(text: str) -> tuple[Scanned, list[str], list[str]]:
    """The tree, the constraints and the outputs of a native text."""
    assert text.startswith("match ")
    body, _, returned = text.removeprefix("match ").partition(" return ")
    body, _, where = body.partition(" where ")
    tree, end = scan(body, 0, "/")
    assert end == len(body), body[end:]
    outputs = returned.split(", ") if returned else []
    return tree, where.split(" and ") if where else [], outputs


@given(st.data())
@settings(max_examples=200)
def test_a_pattern_has_the_parts_asked_for(data):
    paths = data.draw(st.integers(1, 7))
    constants = data.draw(st.integers(0, paths))
    joins = data.draw(st.integers(0, max(0, paths - constants - 1)))
    room = paths - constants
    free = room - min(2 * joins, joins + min(joins, room - joins))
    outputs = data.draw(st.integers(0, min(joins, room - joins) + free))
    ended = paths  # enough nodes whichever leaves end in a variable or text
    size = data.draw(st.integers(1 + paths + ended, 20))
    descendants = data.draw(st.integers(0, paths))
    times = data.draw(st.integers(0, 2 if paths > 1 else 0))
    ids = data.draw(st.integers(0, 1 + paths))
    text = pattern(
        size,
        descendants,
        joins,
        paths,
        labels=4,
        seed=data.draw(st.integers(0, 2**32)),
        outputs=outputs,
        constants=constants,
        times=times,
        ids=ids,
    )
    tree, constraints, returned = scan_pattern(text)
    nodes = list(tree.walk())
    leaves = [node for node in nodes if not node.children]
    variables = [node.test for node in nodes if node.test.startswith("$")]
    assert len(nodes) == size
    assert sum(node.axis == "//" for node in nodes) == descendants
    assert len(leaves) == paths
    assert len(variables) - len(set(variables)) == joins
    assert sum(node.test.startswith('"') for node in nodes) == constants
    assert all(not node.children for node in nodes if node.test[0] in '$"')
    assert len(constraints) == times
    assert len([each for each in returned if each.startswith("$")]) == outputs
    assert len([each for each in returned if each.endswith(".id")]) == ids
    assert len(set(returned)) == len(returned)
    names = {node.name for node in nodes} - {""}
    assert {each.removesuffix(".id") for each in returned} <= names | set(variables)
    for constraint in constraints:
        second, _, first, sign, _ = constraint.split()
        assert {first, second} <= names
        assert sign in ("<=", ">=")


def test_the_defaults_are_those_of_p3():
    tree, _, _ = scan_pattern(pattern())
    nodes = list(tree.walk())
    assert len(nodes) == 10
    assert sum(node.axis == "//" for node in nodes) == 2
    assert sum(not node.children for node in nodes) > 4


def test_shapes_vary():
    trees = [scan_pattern(pattern(size=12, seed=seed))[0] for seed in range(40)]

    def height(node: Scanned) -> int:
        return 1 + max(map(height, node.children), default=0)

    assert len({height(tree) for tree in trees}) >= 3
    assert len({len(tree.children) for tree in trees}) >= 4


def test_one_seed_one_pattern():
    text = pattern(seed=5, times=1)
    assert text == pattern(seed=5, times=1) != pattern(seed=6, times=1)
    assert text == ("match /r[//c[//a#t1]/h/o][e/$x1][k#t2]/o/$x1 where t2 - t1 <= 100 return $x1")


@pytest.mark.parametrize(
    "parameters",
    [
        {"size": 7},
        {"descendants": 8},
        {"paths": 0},
        {"paths": 1, "joins": 1},
        {"joins": 5},
        {"outputs": 5},
        {"paths": 1, "joins": 0, "times": 1},
        {"ids": 11},
        {"size": 0, "paths": 1, "joins": 0, "outputs": 0},
    ],
)
def test_patterns_that_cannot_be_are_refused(parameters):
    with pytest.raises(WorkloadError) as refused:
        pattern(**parameters)
    assert refused.value.code == "AX601"
