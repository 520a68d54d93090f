"""Random tree patterns with exact numbers of nodes, // edges, paths and joins.

The defaults are those of the experiments in paper 3, section 5.4: "10 nodes, 2 // -links and more
than 4 paths each [...] at least one join condition". Every test of the native text is a node:
names, variables and texts. A path is a leaf. A join is an equality between two leaves, so a
variable at three leaves makes two joins.

A variable or text is the only child of its element (`oid/$x`), and // edges lead to elements only,
because `//$x` would match every node below.

Not handled: `or`, `not`, `*`, attributes and comparisons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from axlog.samples.chance import Chance
from lab.generators.random_documents import alphabet, refuse


@dataclass(eq=False, slots=True)
class PatternNode:
    """One test of a pattern: its text, the edge that leads to it, its children and its name."""

    test: str
    axis: str = "/"
    children: list[PatternNode] = field(default_factory=list)
    name: str = ""

    @property
    def variable(self) -> str:
        """`x` for the test `$x`, else empty."""
        return self.test[1:] if self.test.startswith("$") else ""

    @property
    def is_element(self) -> bool:
        """Whether the test names an element."""
        return self.test[0] not in '$"'

    def walk(self) -> Iterator[PatternNode]:
        """This node and all its descendants, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def relative(self) -> str:
        """The text of the pattern below this node's edge: `a[b]/c`, without the leading axis."""
        own = f"{self.test}#{self.name}" if self.name else self.test
        if not self.children:
            return own
        *branches, last = self.children
        predicates = "".join(f"[{_step(branch, inside=True)}]" for branch in branches)
        return f"{own}{predicates}{_step(last, inside=False)}"


def _step(node: PatternNode, inside: bool) -> str:
    """A child with its edge; inside a predicate the child axis is not written."""
    axis = "" if inside and node.axis == "/" else node.axis
    return axis + node.relative()


@dataclass(frozen=True, slots=True)
class PatternTree:
    """A pattern as a tree, with its constraints and outputs; `str` gives the native text."""

    root: PatternNode
    constraints: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"match {self.root.axis}{self.root.relative()}"
        if self.constraints:
            text += f" where {' and '.join(self.constraints)}"
        if self.outputs:
            text += f" return {', '.join(self.outputs)}"
        return text


def pattern(
    size: int = 10,
    descendants: int = 2,
    joins: int = 1,
    paths: int = 5,
    labels: int | Sequence[str] = 20,
    seed: int = 0,
    outputs: int = 1,
    constants: int = 0,
    times: int = 0,
    ids: int = 0,
    values: int = 100,
    horizon: int = 100,
    root: str = "r",
) -> str:
    """A pattern in the native text.

    The pattern returns `outputs` variables, joined ones first, and the ids of `ids` elements.
    `constants` leaves test for one of `values` texts. `times` constraints compare the times of two
    leaves within `horizon` seconds. Labels may repeat.

    >>> pattern(size=6, descendants=1, joins=1, paths=2, labels=3, seed=1)
    'match /r/c[//a/$x1]/b/$x1 return $x1'
    """
    chance = Chance(seed, "pattern")
    names = alphabet(labels)
    tree = pattern_tree(
        size, descendants, joins, paths, names, chance, outputs, constants, values, root
    )
    return str(_with_ids(_with_times(tree, times, horizon, chance), ids, chance))


def pattern_tree(
    size: int,
    descendants: int,
    joins: int,
    paths: int,
    names: Sequence[str],
    chance: Chance,
    outputs: int = 1,
    constants: int = 0,
    values: int = 100,
    root: str = "r",
    distinct: bool = False,
    covered: int = 0,
) -> PatternTree:
    """A random pattern as a tree; with `distinct`, no label is used for two pattern nodes.

    With `covered` 1 or 2, that many of the first two leaves (those of the first join) get an
    ancestor that is not an ancestor of the other, where the size allows it. A subtree can then
    contain one side of the join, and other data.
    """
    variables = _variables(joins, outputs, paths, constants)
    elements = size - len(variables) - constants
    _check(elements, descendants, paths, len(variables) + constants, size)
    top = PatternNode(root)
    carriers = _grow(top, elements, paths, covered, chance)
    below = [node for node in top.walk() if node is not top]
    if distinct and len(names) < len(below):
        raise refuse(f"{len(below)} labels are needed", f"more labels than {len(names)}")
    drawn = chance.sample(names, len(below)) if distinct else [chance.choose(names) for _ in below]
    for node, name in zip(below, drawn, strict=True):
        node.test = name
    for node in chance.sample(below, descendants):
        node.axis = "//"
    tests = [f"${x}" for x in variables] + [f'"v{chance.below(values)}"' for _ in range(constants)]
    fixed = 2 if covered else 0
    first, rest = carriers[:fixed], carriers[fixed:]
    for carrier, test in zip([*first, *chance.sample(rest, len(rest))], tests, strict=False):
        carrier.children.append(PatternNode(test))
    returned = list(dict.fromkeys(variables))[:outputs]
    return PatternTree(top, (), tuple(f"${x}" for x in returned))


def _variables(joins: int, outputs: int, paths: int, constants: int) -> list[str]:
    """The variable of each leaf that has one: joined ones first, then those only returned."""
    room = paths - constants
    if joins and joins + 1 > room:
        raise refuse(
            f"{joins} joins need {joins + 1} leaves, {room} are free",
            f"at most {max(0, room - 1)} joins",
            "raise paths",
        )
    # Put as many variables as fit at two leaves each; remaining joins give the first more leaves.
    pairs = min(joins, room - joins)
    leaves = [f"x{1 + i // 2}" for i in range(2 * pairs)] + ["x1"] * (joins - pairs)
    leaves += [f"x{pairs + 1 + i}" for i in range(outputs - pairs)]
    if len(leaves) > room:
        raise refuse(
            f"{outputs} outputs and {joins} joins need {len(leaves)} leaves, {room} are free",
            "fewer outputs or joins",
            "raise paths",
        )
    return leaves


def _check(elements: int, descendants: int, paths: int, ended: int, size: int) -> None:
    if min(elements, descendants, paths, ended) < 0 or size < 1 or paths < 1:
        raise refuse("a pattern cannot have less than nothing of a part", "numbers from 0 on")
    least = 1 if paths == 1 else 1 + paths
    if elements < least or (ended and elements < 1 + paths):
        raise refuse(
            f"{size} nodes are too few for {paths} paths, {ended} ending in a variable or text",
            f"a size of at least {1 + paths + ended}",
        )
    if descendants > elements - 1:
        raise refuse(
            f"{descendants} // edges need as many elements below the root",
            f"at most {elements - 1} // edges",
        )


def _grow(
    top: PatternNode, elements: int, paths: int, covered: int, chance: Chance
) -> list[PatternNode]:
    """Give `top` that many elements (including itself) and leaves, and return the leaves.

    All leaves start below the root. Each further element is inserted between a node and some of its
    children. This reaches every shape and never changes the number of leaves.
    """
    if elements == 1:
        return [top]
    carriers = [PatternNode("") for _ in range(paths)]
    top.children = list(carriers)
    inner = [top, *_cover(top, min(covered, elements - 1 - paths), chance)]
    for _ in range(elements - len(inner) - paths):
        parent = chance.choose(inner)
        taken = set(map(id, chance.sample(parent.children, 1 + chance.below(len(parent.children)))))
        between = PatternNode("", children=[c for c in parent.children if id(c) in taken])
        kept = [c for c in parent.children if id(c) not in taken]
        kept.insert(chance.below(len(kept) + 1), between)
        parent.children = kept
        inner.append(between)
    return carriers


def _cover(top: PatternNode, count: int, chance: Chance) -> list[PatternNode]:
    """Insert an element above each of the first `count` leaves; the third and later may move in."""
    covers = [PatternNode("", children=[leaf]) for leaf in top.children[:count]]
    if covers:
        others = top.children[2:]
        top.children = [*covers, *top.children[count:2]]
        for leaf in others:
            parent = chance.choose(covers) if chance.happens(0.5) else top
            parent.children.append(leaf)
    return covers


def _with_times(tree: PatternTree, times: int, horizon: int, chance: Chance) -> PatternTree:
    """Name two leaves for each constraint and bound the distance of their times."""
    leaves = [node for node in tree.root.walk() if not node.children]
    if times and len(leaves) < 2:
        raise refuse("a time constraint compares two leaves", "two paths or more", "raise paths")
    constraints = []
    for _ in range(times):
        first, second = (_named(tree, node) for node in chance.sample(leaves, 2))
        sign = chance.choose(("<=", ">="))
        constraints.append(f"{second} - {first} {sign} {1 + chance.below(horizon)}")
    return PatternTree(tree.root, tuple(constraints), tree.outputs)


def _with_ids(tree: PatternTree, ids: int, chance: Chance) -> PatternTree:
    """Return the ids of some elements as well."""
    elements = [node for node in tree.root.walk() if node.is_element]
    if ids > len(elements):
        raise refuse(f"{ids} ids need as many elements", f"at most {len(elements)} ids")
    stored = [f"{_named(tree, node)}.id" for node in chance.sample(elements, ids)]
    return PatternTree(tree.root, tree.constraints, tree.outputs + tuple(stored))


def _named(tree: PatternTree, node: PatternNode) -> str:
    if not node.name:
        node.name = f"t{1 + sum(bool(each.name) for each in tree.root.walk())}"
    return node.name
