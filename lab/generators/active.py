"""Active documents with a pattern, and streams of updates for them.

`workload` draws a pattern, plants partial matches of it in a document, and adds calls where the
missing sub-patterns could arrive. The pattern is therefore satisfiable by construction. `updates`
then draws messages. With probability `pertinence`, a message matches the sub-pattern wanted at its
call, with join values that sometimes match. Otherwise it has data of the same size that does not
match: other labels, or the wanted sub-pattern without one leaf.

Pertinence is exact: no label is used for two pattern nodes, and other data uses other labels (see
`planting`). Parts are missing at three places of the pattern at most, the two sides of a join
first, because the number of derivations grows with the product of the arrivals at different places.

Other data is drawn while it is written. Memory therefore depends on the pattern and the calls, not
on `document_size`.

Not handled: calls in messages, and time constraints.

(The generator of paper 3, section 5.4.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from axlog.samples.chance import Chance
from lab.generators.planting import Element, Planter, leaves
from lab.generators.random_documents import AX, alphabet, refuse
from lab.generators.random_patterns import PatternNode, PatternTree, pattern_tree

_PLACES = 3


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a document: its stream, and the sub-pattern that is missing at its place."""

    stream: str
    missing: PatternNode
    deletes: bool

    @property
    def wanted(self) -> str:
        """The missing sub-pattern as native text."""
        return f"match {self.missing.axis}{self.missing.relative()}"

    def __str__(self) -> str:
        deletes = ' deletes="yes"' if self.deletes else ""
        return f'<ax:call stream="{self.stream}"{deletes}/>'


@dataclass(frozen=True, slots=True)
class Workload:
    """An active document, its pattern and its calls; reading it draws the other data again."""

    tree: PatternTree
    calls: tuple[Call, ...]
    planted: str
    unplanted: int
    noise: tuple[str, ...]
    values: int
    seed: int

    @property
    def pattern(self) -> str:
        """The pattern as native text."""
        return str(self.tree)

    @property
    def document(self) -> str:
        """The whole document; for large ones write `chunks`."""
        return "".join(self.chunks())

    def chunks(self) -> Iterator[str]:
        """The document in pieces, with other data before and after the planted elements."""
        root, before = self.tree.root, self.unplanted // 2
        planter = Planter(Chance(self.seed, "filling"), self.noise, self.values)
        yield f'<{root.test} xmlns:ax="{AX}">'
        yield from planter.filling(root, before)
        yield self.planted
        yield from planter.filling(root, self.unplanted - before)
        yield f"</{root.test}>"


def workload(
    document_size: int = 5000,
    pattern_size: int = 10,
    descendants: int = 2,
    joins: int = 1,
    paths: int = 5,
    calls: int = 10,
    seed: int = 0,
    outputs: int = 1,
    values: int = 50,
    labels: int | Sequence[str] = 40,
    deletes: bool = False,
    root: str = "r",
) -> Workload:
    """A document of `document_size` elements with `calls` calls, and a pattern it can satisfy.

    `values` is the number of values that a variable may take: the fewer, the more joins match. With
    `deletes`, streams may delete.

    >>> made = workload(document_size=300, calls=4, seed=2)
    >>> len(made.calls), made.document.count("<ax:call ")
    (4, 4)
    """
    chance = Chance(seed, "widget")  # the word of version 0.1: seeds give the same workloads
    names = [name for name in alphabet(labels) if name != root]
    tree = pattern_tree(
        pattern_size,
        descendants,
        joins,
        paths,
        names,
        chance,
        outputs=outputs,
        root=root,
        distinct=True,
        covered=1 + chance.below(2) if joins else 0,
    )
    used = {node.test for node in tree.root.walk()}
    noise = tuple(name for name in names if name not in used)
    if not noise:
        raise refuse("the pattern uses every label, none is left for other data", "more labels")
    places = _places(tree.root, chance)
    if calls and not places:
        raise refuse("a pattern of one node leaves nothing for a call to bring", "a larger pattern")
    made = tuple(Call(f"f{i}", places[i % len(places)], deletes) for i in range(calls))
    planted = _plant(tree.root, made, Planter(chance, noise, values))
    unplanted = document_size - planted.size
    if unplanted < 0:
        raise refuse(
            f"the partial matches alone have {planted.size} elements",
            f"a document_size from {planted.size} on",
        )
    inside = "".join([*map(str, planted.children), *planted.calls])
    return Workload(tree, made, inside, unplanted, noise, values, seed)


def _places(root: PatternNode, chance: Chance) -> list[PatternNode]:
    """Up to three pattern nodes, none an ancestor of another, whose sub-patterns calls insert.

    An element that carries a variable has no room for other data, so it is a last resort. The nodes
    right below the root come late in the choice, because calls there could insert every branch.
    """
    elements = [node for node in root.walk() if node.is_element and node is not root]
    roomy = [node for node in elements if _has_room(node)]
    top = set(map(id, root.children))
    deep = [node for node in roomy if id(node) not in top]
    shallow = [node for node in roomy if id(node) in top]
    order = _join_sides(root, chance)
    order += chance.sample(deep, len(deep)) + chance.sample(shallow, len(shallow))
    chosen: list[PatternNode] = []
    for node in order or chance.sample(elements, len(elements)):
        if len(chosen) < _PLACES and not any(_related(node, other) for other in chosen):
            chosen.append(node)
    return chosen


def _has_room(node: PatternNode) -> bool:
    return all(child.is_element for child in node.children)


def _join_sides(root: PatternNode, chance: Chance) -> list[PatternNode]:
    """For two leaves that share a variable, a node above each but not above the other."""
    ways = [way for way in _ways(root) if way[-1].variable]
    for i, first in enumerate(ways):
        for second in ways[i + 1 :]:
            if first[-1].test == second[-1].test:
                return _side(first, second, chance) + _side(second, first, chance)
    return []


def _side(way: list[PatternNode], other: list[PatternNode], chance: Chance) -> list[PatternNode]:
    own = [node for node in way[:-2] if not any(node is each for each in other)]
    return chance.sample(own, min(1, len(own)))


def _stocked(root: PatternNode, places: Sequence[PatternNode]) -> frozenset[int]:
    """The elements outside all places that arriving data joins with, by a shared variable."""
    brought = {id(node) for place in places for node in place.walk()}
    arriving = {node.variable for place in places for node in place.walk() if node.variable}
    return frozenset(
        id(leaf)
        for leaf in leaves(root)
        if id(leaf) not in brought and any(child.variable in arriving for child in leaf.children)
    )


def _ways(node: PatternNode) -> Iterator[list[PatternNode]]:
    """The path from this node to each leaf below."""
    if not node.children:
        yield [node]
    for child in node.children:
        for way in _ways(child):
            yield [node, *way]


def _related(one: PatternNode, other: PatternNode) -> bool:
    return any(node is other for node in one.walk()) or any(node is one for node in other.walk())


def _plant(root: PatternNode, calls: Sequence[Call], planter: Planter) -> Element:
    """The root with one match of the pattern, and more matches of the branches with calls.

    Each round adds one call at every place, so that the calls of a place belong to different
    partial matches. All rounds bind the variables alike: the parts that do not depend on calls
    already join.
    """
    places = list({id(call.missing): call.missing for call in calls}.values())
    stocked = _stocked(root, places)
    top, bindings = Element(root.test), dict[str, str]()
    for start in range(0, max(1, len(calls)), max(1, len(places))):
        hung = {id(call.missing): str(call) for call in calls[start : start + len(places)]}
        for branch in root.children:
            if start == 0 or any(id(node) in hung for node in branch.walk()):
                alone = PatternNode(root.test, children=[branch])
                match = planter.match(alone, bindings, hung, stocked)
                top.children += match.children
                top.calls += match.calls
    return top


def updates(
    made: Workload,
    count: int,
    pertinence: float = 0.7,
    message_size: int = 20,
    seed: int = 0,
    deletions: float = 0.0,
    interval: float = 1.0,
) -> Iterator[dict[str, object]]:
    """`count` updates for random streams, `interval` seconds apart.

    A message is one tree of about `message_size` elements (two trees where the wanted sub-pattern
    has no room for other data). A share `deletions` of the updates are deletions: of the subtrees
    that one value of the stream's variable selects, or of the stream's data if it has no variable.

    >>> next(updates(workload(document_size=300), 1))["at"]
    1.0
    """
    if not made.calls:
        raise refuse("a document without calls takes no updates", "a workload with calls")
    if deletions and not made.calls[0].deletes:
        raise refuse("this document's streams may not delete", "workload(deletes=True)")
    drawn = _updates(made, pertinence, message_size, seed, deletions)
    return (
        update | {"at": (i + 1) * interval} for i, update in zip(range(count), drawn, strict=False)
    )


def _updates(
    made: Workload, pertinence: float, message_size: int, seed: int, deletions: float
) -> Iterator[dict[str, object]]:
    """An infinite sequence of updates without times."""
    chance = Chance(seed, "updates", made.seed)
    planter = Planter(chance, made.noise, made.values)
    while True:
        call = chance.choose(made.calls)
        update: dict[str, object] = {"stream": call.stream}
        if chance.happens(deletions):
            update["delete"] = _deletion(call.missing, planter)
        else:
            pertinent = chance.happens(pertinence)
            update["insert"] = _message(call.missing, pertinent, message_size, planter, chance)
        yield update


def _message(
    wanted: PatternNode, pertinent: bool, size: int, planter: Planter, chance: Chance
) -> str:
    element: Element | None = None
    if pertinent:
        element = planter.match(wanted)
    elif chance.happens(0.5):
        element = planter.near_miss(wanted)
    if element is None:
        return str(planter.other(size))
    # Below a // edge the data may also arrive deeper.
    deeper = wanted.axis == "//" and chance.happens(0.5)
    message = "".join(map(str, planter.pad(element, wanted, size - deeper)))
    return planter.wrap(message) if deeper else message


def _deletion(missing: PatternNode, planter: Planter) -> str:
    """A pattern for the subtrees that the stream inserted with one value."""
    bound = [leaf for leaf in leaves(missing) if leaf.children]
    top = f"match //{missing.test}"
    if not bound:
        return top
    if bound[0] is missing:
        return f'{top}/"{planter.value()}"'
    return f'{top}//{bound[0].test}/"{planter.value()}"'
