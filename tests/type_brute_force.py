"""Random types, documents and patterns, and P2 section 4 by enumeration on trees of tuples.

Naive on purpose, and sharing nothing with the package but the forms of types and patterns: what
`test_typing.py` checks verdicts by.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from random import Random

from axlog.document.cardinality import All, Count, Formula, Negation, Some
from axlog.document.loader import load
from axlog.document.schema import LEAF, Schema, UnorderedDTD, is_valid
from axlog.document.tree import Tree
from axlog.errors import QueryError
from axlog.query.normalize import check
from axlog.query.pattern import (
    Axis,
    Branch,
    Literal,
    Name,
    Or,
    Pattern,
    PatternNode,
    Test,
    Variable,
    Wildcard,
)

# Random types, documents and patterns -------------------------------------------------------------

LABELS = ("a", "b", "c")
SERVICES = ("v", "w")


@dataclass
class Maker:
    random: Random
    deleting: float = 0.0
    """The share of calls that may delete."""
    written: str = ""
    """The document that the next schema is for."""

    def schema(self) -> Schema:
        rules: list[tuple[str, Formula]] = [("r", self.top())]
        rules += [(label, self.rule(0.7)) for label in LABELS]
        services = []
        for service in SERVICES:
            own = [(label, self.rule(0.6)) for label in LABELS if self.random.random() < 0.25]
            roots = self.random.sample(LABELS, self.random.randint(1, 2))
            services.append((service, UnorderedDTD(tuple(roots), tuple(own))))
        return Schema(UnorderedDTD(("r",), tuple(rules)), tuple(services))

    def top(self) -> Formula:
        counts = [Count(f"?{service}", ">=", 0) for service in SERVICES]
        free = [Count(label, ">=", 0) for label in LABELS if self.random.random() < 0.7]
        if self.deleting:  # no room, so that something must go
            return All(
                (*counts, *(Count(a, "<=", max(1, self.written.count(f"<{a}>"))) for a in LABELS))
            )
        return All((*counts, *free, *self.parts(LABELS, self.random.randint(0, 2))))

    def rule(self, chance: float) -> Formula:
        symbols = (*LABELS, "text()", "dom")
        if self.random.random() > chance:
            return LEAF
        admitted = [s for s in (*symbols, "?v", "?w") if self.random.random() < 0.4]
        free = [Count(symbol, ">=", 0) for symbol in admitted]
        return All((*free, *self.parts(symbols, self.random.randint(0, 2))))

    def parts(self, symbols: tuple[str, ...], number: int) -> Iterator[Formula]:
        for _ in range(number):
            yield self.part(symbols)

    def part(self, symbols: tuple[str, ...]) -> Formula:
        pick = self.random.random()
        if pick < 0.25:
            return Some((self.count(symbols), self.count(symbols)))
        if pick < 0.35:
            return Negation(All((self.count(symbols), self.count(symbols))))
        return self.count(symbols)

    def count(self, symbols: tuple[str, ...]) -> Count:
        symbol = self.random.choice(symbols)
        if self.random.random() < 0.1:
            return Count(symbol, self.random.choice(("=", "<=")), self.random.choice(LABELS))
        return Count(symbol, self.random.choice(("<=", ">=", "=", "<=")), self.random.randint(0, 2))

    def xml(self) -> str:
        """A document of a few nodes with one or two calls below the root, or one level down."""
        calls = []
        for name in ("f", "g")[: self.random.choice((1, 1, 2))]:
            service = self.random.choice(SERVICES)
            mode = ' mode="one-shot"' if self.random.random() < 0.15 else ""
            most = f' most="{self.random.randint(1, 2)}"' if self.random.random() < 0.15 else ""
            if self.random.random() < self.deleting:
                mode += f' deletes="{self.random.choice(("yes", "yes", "only"))}"'
            calls.append(
                f'<ax:call xmlns:ax="urn:axlog" stream="{name}" service="{service}"{mode}{most}/>'
            )
        inside = [self.element(1) for _ in range(self.random.randint(0, 2) + (self.deleting > 0))]
        if inside and self.random.random() < 0.4:  # one call below another element
            inside[0] = inside[0].replace("</", f"{calls.pop()}</", 1)
        return f"<r>{''.join([*inside, *calls])}</r>"

    def element(self, depth: int) -> str:
        label = self.random.choice(LABELS)
        below = [self.element(depth - 1) for _ in range(self.random.randint(0, depth))]
        text = self.random.choice(("", "", "1"))
        return f"<{label}>{text}{''.join(below)}</{label}>"

    def pattern(self) -> Pattern:
        while True:
            self.left = self.random.choice((1, 2, 2, 3, 3, 4))
            below: list[Branch] = [self.branch()]
            while self.left > 0:
                below.append(self.branch())
            made = Pattern((PatternNode(Axis.CHILD, Name("r"), None, (), tuple(below)),))
            try:
                check(made)
            except QueryError:
                continue
            return made

    def branch(self) -> Branch:
        if self.left > 1 and self.random.random() < 0.1:
            return Or(((self.branch(),), (self.branch(),)))
        self.left -= 1
        axis = self.random.choice((Axis.CHILD, Axis.CHILD, Axis.DESCENDANT))
        tests: list[Test] = [*map(Name, LABELS)] * 3
        tests += [Name("z"), Wildcard(), Wildcard(), Variable("x"), Variable("x"), Literal("1")]
        test = self.random.choice(tests)
        branches: list[Branch] = []
        while self.left > 0 and not isinstance(test, Literal) and self.random.random() < 0.5:
            branches.append(self.branch())
        return PatternNode(axis, test, None, (), tuple(branches))


# Brute force on tuples ----------------------------------------------------------------------------
#
# A node is (label, children); a text is ("#1", ()), a call ("?stream", ()). Children are sorted.

Node = tuple[str, tuple["Node", ...]]


def as_node(tree: Tree, node: int) -> Node:
    label = tree.label(node)
    kind = tree.kind(node).name
    if kind == "TEXT":
        return (f"#{label}", ())
    if kind == "CALL":
        return (f"?{tree.call(node).stream}", ())
    return (label, tuple(sorted(as_node(tree, child) for child in tree.children(node))))


def small_trees() -> Iterator[Node]:
    """All trees over the labels, two texts and an unknown label, of at most three nodes."""
    leaves: list[Node] = [(label, ()) for label in (*LABELS, "z", "#1", "#2")]
    for label in LABELS:
        yield (label, ())
        for one in leaves:
            yield (label, (one,))
            yield from ((label, (one, other)) for other in leaves if one <= other)
            if one[0] in LABELS:
                yield from ((label, ((one[0], (leaf,)),)) for leaf in leaves)


TREES = list(small_trees())


class Brute:
    """The definitions of P2 4, by enumeration."""

    def __init__(self, schema: Schema, tree: Tree) -> None:
        self.schema = schema
        self.calls = {s: tree.call(n) for s, n in tree.calls().items()}
        self.known: dict[tuple[int, Node], bool] = {}
        trees = TREES
        self.pools = {
            stream: [
                t
                for t in trees
                if t[0] in schema.service(call.service or "").roots
                and self.is_typed(t, schema.service(call.service or ""))
                and self.is_typed(t, schema.document)
            ]
            for stream, call in self.calls.items()
        }

    def is_typed(self, node: Node, type_: UnorderedDTD) -> bool:
        key = (id(type_), node)
        if key not in self.known:
            self.known[key] = self.check(node, type_)
        return self.known[key]

    def check(self, node: Node, type_: UnorderedDTD) -> bool:
        label, below = node
        if label[0] in "#?":
            return True
        formula = type_.table.get(label, LEAF)
        numbers: Counter[str] = Counter()
        for child, _ in below:
            for symbol in self.symbols(child, type_):
                numbers[symbol] += 1
        mentioned = set(mentions(formula))
        for child, _ in below:
            if not mentioned & set(self.symbols(child, type_)):
                return False
        return evaluate(formula, numbers) and all(self.is_typed(c, type_) for c in below)

    def symbols(self, label: str, type_: UnorderedDTD) -> tuple[str, ...]:
        if label[0] == "#":
            return ("text()", "dom")
        if label[0] == "?":
            return (f"?{self.calls[label[1:]].service}",)
        return (label,) if label in type_.table else ("dom",)

    def documents(self, start: Node, most: int) -> Iterator[Node]:
        """Every document that at most so many valid messages of one or two trees lead to."""
        first: tuple[Node, tuple[str, ...]] = (start, ())
        known, level = {first}, [first]
        yield start
        for _ in range(most):
            following = []
            for at, brought in level:
                steps = [
                    (s, forest, self.insert(at, s, forest)) for s, forest in self.messages(brought)
                ]
                steps += [("", (), grown) for grown in self.deletions(at)]
                for stream, forest, grown in steps:
                    if grown is None or not self.is_typed(grown, self.schema.document):
                        continue
                    counted = tuple(sorted((*brought, *[stream] * len(forest))))
                    if (grown, counted) not in known:
                        known.add((grown, counted))
                        following.append((grown, counted))
                        yield grown
            level = following

    def is_relevant(self, start: Node, stream: str, pattern: Pattern, most: int) -> bool:
        """Whether one of these futures matches, and does not without the trees of a stream."""
        level: list[tuple[Node, Node, tuple[str, ...]]] = [(start, start, ())]
        for _ in range(most):
            following = []
            for whole, less, brought in level:
                for name, forest in self.messages(brought):
                    grown = self.insert(whole, name, forest)
                    if grown is None or not self.is_typed(grown, self.schema.document):
                        continue
                    left = self.insert(less, name, () if name == stream else forest)
                    assert left is not None
                    if matches(pattern, grown) and not matches(pattern, left):
                        return True
                    counted = tuple(sorted((*brought, *[name] * len(forest))))
                    following.append((grown, left, counted))
            level = list(dict.fromkeys(following))
        return False

    def deletions(self, node: Node) -> Iterator[Node]:
        """The document without children of a node that deletes: all that are equal, or none."""
        label, below = node
        if any(each[0][0] == "?" and self.calls[each[0][1:]].deletes != "no" for each in below):
            for gone in subsets({each for each in below if each[0][0] != "?"}):
                if gone:
                    yield (label, tuple(each for each in below if each not in gone))
        for at, child in enumerate(below):
            for less in self.deletions(child):
                yield (label, tuple(sorted((*below[:at], less, *below[at + 1 :]))))

    def messages(self, brought: tuple[str, ...]) -> Iterator[tuple[str, tuple[Node, ...]]]:
        for stream, call in self.calls.items():
            for size in (1, 2) if call.deletes != "only" else ():
                if call.most is not None and brought.count(stream) + size > call.most:
                    continue
                for forest in combinations_with_replacement(self.pools[stream], size):
                    yield stream, forest

    def insert(self, node: Node, stream: str, forest: tuple[Node, ...]) -> Node | None:
        """The document with a forest beside a call; a one-shot call goes."""
        label, below = node
        call = (f"?{stream}", ())
        if call in below:
            rest = list(below)
            if self.calls[stream].mode == "one-shot":
                rest.remove(call)
            return (label, tuple(sorted((*rest, *forest))))
        for at, child in enumerate(below):
            grown = self.insert(child, stream, forest)
            if grown is not None:
                return (label, tuple(sorted((*below[:at], grown, *below[at + 1 :]))))
        return None


def subsets(nodes: set[Node]) -> Iterator[set[Node]]:
    for size in range(len(nodes) + 1):
        yield from map(set, combinations(sorted(nodes), size))


def mentions(formula: Formula) -> Iterator[str]:
    match formula:
        case Count(symbol=symbol, than=than):
            yield symbol
            if isinstance(than, str):
                yield than
        case Negation(part=part):
            yield from mentions(part)
        case All(parts=parts) | Some(parts=parts):
            for part in parts:
                yield from mentions(part)


def evaluate(formula: Formula, numbers: Counter[str]) -> bool:
    match formula:
        case Count(symbol=symbol, operator=operator, than=than):
            left, right = numbers[symbol], numbers[than] if isinstance(than, str) else than
            return {"=": left == right, "<=": left <= right, ">=": left >= right}[operator]
        case Negation(part=part):
            return not evaluate(part, numbers)
        case All(parts=parts):
            return all(evaluate(part, numbers) for part in parts)
        case Some(parts=parts):
            return any(evaluate(part, numbers) for part in parts)


def matches(pattern: Pattern, root: Node) -> bool:
    """Whether a pattern with at most one variable, $x, matches, for some value of it."""
    values = {label.lstrip("#") for label, _ in descendants(("", (root,)))}
    return any(holds(pattern.branches, ("", (root,)), value) for value in values)


def holds(branches: tuple[Branch, ...], node: Node, value: str) -> bool:
    for branch in branches:
        if isinstance(branch, Or):
            if not any(holds(inside, node, value) for inside in branch.alternatives):
                return False
            continue
        assert isinstance(branch, PatternNode)
        reached = node[1] if branch.axis is Axis.CHILD else tuple(descendants(node))
        if not any(
            passes(branch.test, below, value) and holds(branch.branches, below, value)
            for below in reached
        ):
            return False
    return True


def descendants(node: Node) -> Iterator[Node]:
    for child in node[1]:
        yield child
        yield from descendants(child)


def passes(test: Test, node: Node, value: str) -> bool:
    label = node[0]
    if label[0] == "?":
        return False
    match test:
        case Name(label=name):
            return label == name
        case Wildcard():
            return label[0] != "#"
        case Literal(text=text):
            return label == f"#{text}"
        case Variable():
            return label.lstrip("#") == value
    raise AssertionError(test)


def cases(seed: int, count: int, deleting: float = 0.0) -> Iterator[tuple[Schema, str]]:
    maker = Maker(Random(seed), deleting)
    while count:
        written = maker.written = maker.xml()
        schema = maker.schema()
        if is_valid(load(written), schema):
            count -= 1
            yield schema, written
