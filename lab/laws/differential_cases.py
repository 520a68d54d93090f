"""Random cases for the whole public API: documents, queries in three languages, updates, faces.

A case is data and follows from its seed: a document as text, queries as text, updates as statements
and messages, and the faces that run it (`Face`): the class of the document, the maintainer of the
views, the location of the engine's rows, whether the views are read at once.

`Switches` selects the parts of the languages that queries use, so that a part whose meaning is
being changed can be excluded or included in one place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal

from axlog.document.loader import load
from axlog.document.tree import Tree
from axlog.errors import QueryError
from axlog.evaluate.answers import holds
from axlog.query.query import parse_query
from axlog.views.counting.maintainer import Counting
from lab.laws import small_cases
from lab.laws.fuzz_cases import DEFAULT
from lab.laws.small_cases import DOWNWARD, KEYS, LABELS, Features
from lab.laws.xpath_law import make_xpath_case

Step = dict[str, Any]
"""One of {"update": statement}, a message of a stream, {"batch": steps}, or {"reopen": how}, which
a durable face alone takes notice of. `ahead`: how many microseconds after the clock it comes."""


@dataclass(frozen=True, slots=True)
class Switches:
    """The parts of the languages that random cases use."""

    comments: bool = True  # documents contain comments and processing instructions
    comment_tests: bool = True  # queries and statements select them
    values: tuple[str, ...] = ("1", "2", "a", "10", "1.0", "2024-01-31")


SWITCHES = Switches()


@dataclass(frozen=True, slots=True)
class Face:
    """One way to create a document and its views; the answers do not depend on it."""

    kind: Literal["tree", "document", "durable"] = "document"
    maintainer: str = DEFAULT  # if it supports the query; else the default
    cache: Literal["memory", "disk"] = "memory"
    is_deferred: bool = False
    is_restless: bool = True  # whether documents count as large, and adaptive views switch

    def __str__(self) -> str:
        words = [self.kind, self.maintainer, self.cache]
        return " ".join([*words, *(["deferred"] if self.is_deferred else [])])


@dataclass(frozen=True, slots=True)
class DifferentialCase:
    """One random case. `padding` is the number of nodes added after those of the document."""

    document: str
    queries: tuple[str, ...]
    steps: tuple[Step, ...]
    faces: tuple[Face, ...]
    padding: int = 0

    @property
    def text(self) -> str:
        """The document with its padding, of labels that no small document has."""
        filling = "<d><e>1</e></d>" * (self.padding // 3)
        at = self.document.rindex("</")
        return f"{self.document[:at]}{filling}{self.document[at:]}"


MAINTAINERS = (DEFAULT, "counting", "algebraic", "adaptive", "records", "reevaluate")
LARGE = (20_000, 30_000, 50_000)
_ANY = Features(siblings=True, reverse=True, size=5)


def make_differential_case(random: Random) -> DifferentialCase:
    """A random case: mostly small, some of hundreds of nodes, few of tens of thousands."""
    pick = random.random()
    if pick < 0.0005:
        return make_large_case(random, random.choice(LARGE))
    if pick < 0.01:
        return make_large_case(random, random.randint(100, 1500))
    streams = random.randint(1, 2) if random.random() < 0.4 else 0
    document = _document(random, random.choice((3, 6, 10, 14, 20)), streams)
    tree = load(document)
    queries = tuple(_lively(random, tree) for _ in range(random.choice((1, 1, 2))))
    steps = _steps(random, streams, random.randint(1, 5))
    return DifferentialCase(document, queries, steps, _faces(random, streams))


def make_large_case(random: Random, padding: int) -> DifferentialCase:
    """A case whose document is large, with queries whose rows grow no faster than it does."""
    queries = tuple(random.sample(_LINEAR, 2))
    steps = tuple({"update": random.choice(_SELECTIVE)} for _ in range(4))
    document = _document(random, 14, 0)
    faces = tuple(
        Face(
            random.choice(("tree", "document", "durable")),
            maintainer,
            random.choice(("memory", "disk")),
            is_restless=random.random() < 0.5,
        )
        for maintainer in (DEFAULT, random.choice(("algebraic", "adaptive")))
    )
    return DifferentialCase(document, queries, steps, faces, padding)


def _faces(random: Random, streams: int) -> tuple[Face, ...]:
    kinds = ("document", "durable") if streams else ("tree", "tree", "document", "durable")
    return tuple(
        Face(
            random.choice(kinds),  # type: ignore[arg-type]  # they are literals
            maintainer,
            "disk" if random.random() < 0.1 else "memory",
            random.random() < 0.15,
        )
        for maintainer in random.sample(MAINTAINERS, 2)
    )


# Documents ----------------------------------------------------------------------------------------


def _document(random: Random, size: int, streams: int) -> str:
    text = small_cases.document(random, size, streams)
    if random.random() < 0.3:
        text = _with_values(random, text)
    for number in range(streams):
        deletes = random.choice(("", ' deletes="yes"'))
        text = text.replace(f'stream="s{number}"', f'stream="s{number}"{deletes}')
    if SWITCHES.comments and random.random() < 0.3:
        for _ in range(random.randint(1, 3)):
            text = _with_comment(random, text)
    return text


def _with_values(random: Random, text: str) -> str:
    """The document with some values replaced by values of several kinds."""
    for value in small_cases.VALUES:
        text = text.replace(f">{value}<", f">{random.choice(SWITCHES.values)}<", 2)
    return text


def _with_comment(random: Random, text: str) -> str:
    places = [at for at in range(1, len(text)) if text.startswith("</", at)]
    at = random.choice(places)
    return f"{text[:at]}{random.choice(('<!--1-->', '<?p 1?>'))}{text[at:]}"


# Queries ------------------------------------------------------------------------------------------


def _lively(random: Random, tree: Tree) -> str:
    """A query that probably has rows: most of those without rows stay without."""
    for _ in range(3):
        text = _query(random)
        if random.random() < 0.2 or _has_rows(tree, text):
            break
    return text


def _has_rows(tree: Tree, text: str) -> bool:
    try:
        pattern = parse_query(text).pattern
        if Counting.refusal(pattern) is not None:
            return True
        return holds(tree, replace(pattern, outputs=()))
    except QueryError:
        return False


def _query(random: Random) -> str:
    """A query in one of the three languages; it may be refused, then by all faces alike."""
    pick = random.random()
    if pick < 0.4:
        features = DOWNWARD if random.random() < 0.7 else _ANY
        return str(small_cases.pattern(random, features))
    if pick < 0.55:
        return make_xpath_case(random).expression
    if pick < 0.75:
        return path(random)
    return _flwor(random)


_LINEAR = (
    "//c[not(/a/z)]",
    "//b[//z or //c]",
    "//e[not(/*/stop)]",
    "//d[count(//stop)=0]/e",
    "/*/d[/*/a or /*/b]",
    "match not(//stop)",
    "match //d#t, not(//stop) return t.id",
    "match /*[a or not(b)]/d#t return t.id",
    "match //e/$x return $x",
    "match /*/a#t[c or not(b)] return t.id, t.val",
    "for $x in //e where empty(//stop) return id($x)",
    "for $x in //d where $x/e = '1' and not(/*/stop) return <r>{$x/e}</r>",
    "for $x in /*/a, $y in //c where $x/b = $y return <r>{id($x)}{string($y)}</r>",
    "//a[following-sibling::b]",
)
"""Queries whose rows are at most about as many as the nodes of the document."""


_SELECTIVE = (
    "insert node <stop/> into /*",
    "insert nodes (<stop/>, <d><e>2</e></d>) as first into /*",
    "delete nodes //stop",
    "for $x in //stop return rename node $x as 'b'",
    "insert node <d><e>2</e></d> into /*",
    "delete nodes /*/d[e = '2']",
    "insert node <b>1<c>1</c></b> as first into /*",
    "for $x in /*/b return insert node <z/> into $x",
    "for $x in //c return replace value of node $x with '1'",
    "for $x in /*/c return rename node $x as 'a'",
    "for $x in /*/a return insert node <d><e>1</e></d> before $x",
    "delete nodes /*/a",
)
"""Statements that touch few nodes of a large document, many of them what its queries ask for."""


def path(random: Random, depth: int = 2) -> str:
    """An absolute XPath with conditions, some of which are absolute paths too."""
    text = random.choice(("//", "//", "/*/")) + _step(random, depth)
    for _ in range(random.choice((0, 0, 1))):
        text += random.choice(("/", "//")) + _step(random, depth)
    return text


def _step(random: Random, depth: int) -> str:
    tests = [*LABELS, *LABELS, "*", "text()", "node()"]
    if SWITCHES.comment_tests:
        tests += ["comment()", "processing-instruction()"]
    name = random.choice(tests)
    if random.random() < 0.1:
        return f"@{random.choice(KEYS)}"
    return f"{name}[{_condition(random, depth - 1)}]" if depth and random.random() < 0.4 else name


def _condition(random: Random, depth: int) -> str:
    """A condition on its context node, or on the document."""
    beginning = random.choice(("", "", "//", "/*/", "/"))
    found = f"{beginning}{random.choice(LABELS)}"
    return _asked(random, depth, found, lambda: _condition(random, depth - 1))


def _asked(random: Random, depth: int, found: str, other: Callable[[], str]) -> str:
    """A condition on a path: it exists or not, its value, or a combination with another."""
    match random.randrange(9 if depth > 0 else 6):
        case 0:
            return f"not({found})"
        case 1:
            return f"count({found})=0"
        case 2:
            return f"empty({found})"
        case 3:
            value = random.choice(SWITCHES.values)
            return f"{found} {random.choice(('=', '!='))} '{value}'"
        case 4:
            return f"exists({found})"
        case 6:
            return f"{found} or {other()}"
        case 7:
            return f"not({found} or {other()})"
        case 8:
            return f"({found}) and {other()}"
    return found


def _flwor(random: Random) -> str:
    """An XQuery query: one variable or two, a condition, a returned value."""
    variables = ["x"]
    ranges = [f"$x in {path(random, 1)}"]
    if random.random() < 0.35:
        variables.append("y")
        ranges.append(f"$y in {random.choice((path(random, 1), f'$x//{random.choice(LABELS)}'))}")
    text = f"for {', '.join(ranges)}"
    if random.random() < 0.7:
        text += f" where {_where(random, variables, 1)}"
    return f"{text} return {_shown(random, variables)}"


def _where(random: Random, variables: list[str], depth: int) -> str:
    start = random.choice(("//", "/*/", *(f"${name}/" for name in variables)))
    if len(variables) == 2 and random.random() < 0.4:
        ends = [random.choice(("", f"/{random.choice(LABELS)}", "/@k")) for _ in variables]
        return f"$x{ends[0]} = $y{ends[1]}"
    found = f"{start}{random.choice(LABELS)}"
    return _asked(random, depth, found, lambda: _where(random, variables, depth - 1))


def _shown(random: Random, variables: list[str]) -> str:
    name = random.choice(variables)
    label = random.choice(LABELS)
    return random.choice(
        (
            f"id(${name})",
            f"string(${name})",
            f"<r>{{string(${name})}}</r>",
            f"<r>{{${name}/{label}}}</r>",
            f"<r>{{id(${name})}}{{//{label}}}</r>",
            f'<r k="{{${name}/@k}}">{{${name}}}</r>',
        )
    )


# Updates ------------------------------------------------------------------------------------------


def _steps(random: Random, streams: int, count: int) -> tuple[Step, ...]:
    steps: list[Step] = []
    for _ in range(count):
        pick = random.random()
        if pick < 0.1:
            inside = [_one(random, streams) for _ in range(random.randint(2, 3))]
            steps.append({"batch": inside})
        elif pick < 0.15:
            steps.append({"reopen": random.choice(("killed", "snapshot and killed"))})
        else:
            steps.append(_one(random, streams))
    return tuple(steps)


def _one(random: Random, streams: int) -> Step:
    step: Step
    if streams and random.random() < 0.6:
        step = _message(random, streams)
    else:
        step = {"update": statement(random)}
    if random.random() < 0.3:
        step["ahead"] = random.choice((0, 1, 2))  # microseconds after the clock
    return step


def _message(random: Random, streams: int) -> Step:
    step: Step = {"stream": f"s{random.randrange(streams)}"}
    pick = random.random()
    if pick < 0.8:
        step["insert"] = small_cases.fragment(random, random.randint(1, 5))
    elif pick < 0.93:
        step["delete"] = f"match //{random.choice(LABELS)}"
    else:
        step["end"] = True
    return step


def statement(random: Random) -> str:
    """A statement of XQuery Update; it may be refused, then by all faces alike."""
    found = path(random)
    content = small_cases.fragment(random, random.randint(1, 4))
    if SWITCHES.comments and random.random() < 0.1:
        content = random.choice(("<!--2-->", "<?p 2?>"))
    label, value = random.choice(LABELS), random.choice(SWITCHES.values)
    where = random.choice(("into", "as first into", "as last into", "before", "after"))
    each = f"for $x in {found}"
    if random.random() < 0.2:
        each += f" where {_where(random, ['x'], 0)}"
    match random.randrange(10):
        case 0 | 1 | 2:
            return f"{each} return insert node {content} {where} $x"
        case 3 | 4 | 5:
            return f"delete nodes {found}"
        case 6:
            return f'{each} return rename node $x as "{label}"'
        case 7:
            return f'{each} return replace value of node $x with "{value}"'
        case 8:
            return f"{each} return replace node $x with {content}"
    key = random.choice((*KEYS, "l", "n"))
    return f"{each} return insert node attribute {key} {{'{value}'}} into $x"
