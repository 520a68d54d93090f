"""Truth under types: the papers' examples, futures that can be played, and brute force.

`oracle_` tests: a verdict POSSIBLE comes with messages; they are fed one by one under a guard, and
the reference must then see a row. A verdict NEVER is compared with every document that a few small
valid messages lead to, enumerated on trees of tuples, and some by the reference's own futures.
"""

import copy
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice, product
from random import Random

import pytest

from axlog.document.cardinality import All, Constraint, Count, Formula
from axlog.document.loader import load
from axlog.document.schema import Schema, is_valid
from axlog.document.schema_parser import parse_schema
from axlog.document.tree import Tree
from axlog.errors import InputError, UndecidedError
from axlog.future.truth import Outlook
from axlog.future.type_messages import Message, apply_messages
from axlog.future.type_steps import Caller, Removable, reach
from axlog.future.typed_truth import (
    can_bring,
    document_allows,
    example_tree,
    most_trees,
    typed_future,
    typed_truth,
)
from axlog.query.compile import compile_pattern
from axlog.query.native import parse_pattern
from axlog.query.pattern import Name, Pattern, PatternNode
from axlog.query.truth import Truth
from lab.reference import Alphabet, Bound, fragments, rows, truth
from lab.reference.fragments import as_element
from tests.document.test_schema import P2_TYPE
from tests.papers import document
from tests.type_brute_force import SERVICES, Brute, Maker, as_node, cases, evaluate, matches


def said(tree: Tree, query: str, schema: Schema) -> Truth:
    return typed_truth(tree, parse_pattern(f"match {query}"), schema)


def wanted(path: str) -> PatternNode:
    (node,) = parse_pattern(f"match {path}").branches
    assert isinstance(node, PatternNode)
    return node


# Examples -----------------------------------------------------------------------------------------


def test_p2_type() -> None:
    """EXAMPLES 10: `a[e]` is NEVER, and so is what w does not bring."""
    schema = parse_schema(P2_TYPE)
    tree = document("a[b, ?f{service=w}]")
    for query, verdict in (
        ("/a/b", Truth.TRUE),
        ("/a/c", Truth.POSSIBLE),
        ("/a[b][c]", Truth.POSSIBLE),
        ("/a/e", Truth.NEVER),
        ("/a/c/b", Truth.NEVER),
        ("//c/*", Truth.NEVER),
        ('/a/"text"', Truth.NEVER),
        ("/a/c/@k", Truth.POSSIBLE),
    ):
        assert said(tree, query, schema) is verdict, query
    assert most_trees(tree, schema, tree.root, "w", "c") is None
    assert not document_allows(tree, schema, tree.root, {("w", "b"): 1})


def test_numbers_bound_what_several_branches_can_have() -> None:
    schema = parse_schema(
        "root: a  a -> |b| <= 2 & |w| >= 0  b -> |c| <= 1 & |d| <= 1  c -> |text()| <= 1  d ->"
        "  call w root: b"
    )
    tree = document('a[b[c["1"]], ?f{service=w}]')
    for query, verdict in (
        ('/a[b/c/"1"][b/c/"2"]', Truth.POSSIBLE),
        ('/a[b/c/"2"][b/c/"3"]', Truth.NEVER),  # one more b, with one c, with one text
        ('/a[b/c/"2"][b/d]', Truth.POSSIBLE),
        ("/a[b/c/$x][b[d]/c/$x]", Truth.POSSIBLE),
        ('/a[b/c/$x][b[d]/c/$x][b/c/"2"]', Truth.POSSIBLE),
        ('/a[b[c/$x][d]][b/c/$y] where $x = "2", $y = "3"', Truth.NEVER),
    ):
        assert said(tree, query, schema) is verdict, query
    assert most_trees(tree, schema, tree.root, "w", "b") == 1


def test_trees_are_finite() -> None:
    schema = parse_schema(
        "root: a  a -> |b| >= 0 & |w| >= 0  b -> |b| >= 1 or |c| >= 1  c -> |c| >= 1"
        "  call w root: b"
    )
    tree = document("a[?f{service=w}]")
    assert said(tree, "/a/b", schema) is Truth.NEVER
    assert not can_bring(schema, "w", wanted("/b"))


def test_steps_must_be_valid_one_by_one() -> None:
    """f brings b only and g c only: neither may come first, though both together would be valid."""
    text = "root: a  a -> |w| = 1 & |v| = 1 & {}  b ->  c ->  call w root: b  call v root: c"
    both = "(|b| = 0 & |c| = 0 or |b| >= 1 & |c| >= 1)"
    tree = document("a[?f{service=w}, ?g{service=v}]")
    assert said(tree, "/a/b", parse_schema(text.format(both))) is Truth.NEVER
    second = "(|b| = 0 or |c| >= 1) & |c| >= 0"
    schema = parse_schema(text.format(second))
    messages = typed_future(tree, parse_pattern("match /a/b"), schema)
    assert messages is not None
    assert [message.stream for message in messages] == ["g", "f"]
    assert not document_allows(tree, parse_schema(text.format(both)), tree.root, {("w", "b"): 1})


def test_one_shot_calls_and_most() -> None:
    text = "root: a  a -> |w| {} & |b| >= 0  b -> |c| <= 1  c -> |text()| >= 0  call w root: b"
    free, kept = parse_schema(text.format(">= 0")), parse_schema(text.format("= 1"))
    for notation, schema, query, verdict in (
        ("a[?f{service=w mode=one-shot}]", free, "/a/b", Truth.POSSIBLE),
        ("a[?f{service=w mode=one-shot}]", kept, "/a/b", Truth.NEVER),  # the call would go
        ("a[?f{service=w}]", kept, "/a/b", Truth.POSSIBLE),
        ("a[?f{service=w most=1}]", free, '/a[b/c/"1"][b/c/"2"]', Truth.POSSIBLE),
        ("a[?f{service=w most=2}]", free, "/a[b/c[text()]][b[c]]", Truth.POSSIBLE),
        ("a[?f{service=w most=0}]", free, "/a/b", Truth.NEVER),
    ):
        assert said(document(notation), query, schema) is verdict, (notation, query)
    narrow = parse_schema(text.format(">= 0").replace("|text()| >= 0", "|text()| <= 1"))
    tree = document("a[?f{service=w most=1}]")
    assert said(tree, '/a[b/c/"1"][b/c/"2"]', narrow) is Truth.NEVER
    assert most_trees(tree, narrow, tree.root, "w", "b") == 1


def test_calls_inside_what_comes() -> None:
    """P2 remark 5: b comes with a call, which brings c under it; w itself brings no c."""
    schema = parse_schema(
        "root: a  a -> |b| >= 0 & |w| >= 0  b -> |v| <= 1 & |c| <= 2  c ->"
        "  call w root: b  b -> |v| <= 1  call v root: c"
    )
    assert typed_future(document("a[?f{service=w}]"), parse_pattern("match /a/b/c"), schema) is None
    tree = document("a[?f{service=w calls=yes}]")
    pattern = parse_pattern("match /a/b/c")
    messages = typed_future(tree, pattern, schema)
    assert messages is not None
    assert len(messages) == 2
    assert rows(played(tree, messages, schema), pattern)
    without = parse_schema(str(schema).replace("b -> |v| <= 1\n", "b ->\n"))
    assert said(document("a[?f{service=w calls=yes}]"), "/a/b/c", without) is Truth.NEVER


def test_can_bring_sub_patterns() -> None:
    schema = parse_schema(
        "root: r  r -> |a| >= 0 & |w| >= 0  a -> |b| = 1 & |dom| <= 1 & |@k| <= 1"
        "  b -> |text()| <= 1 & |@k| = 0  call w root: a"
    )
    for path, is_possible in (
        ("/a", True),
        ("/b", False),
        ("//b", True),
        ("/a[b][other]", True),
        ("/a[b][other][another]", False),
        ('/a[b/"1"][@k = "1"]', True),
        ("/a/b[@k]", False),
        ("/a/b/@m", True),
        ("/a[$x][b/$x]", True),  # a text of a's own is dom, too
        ("/a[$x/@k][b/$x]", True),
        ("/a[b or c]", True),
        ("/a/other/text()", False),  # a leaf
        ('/a[@k = "1"][@k = "2"]', False),
    ):
        assert can_bring(schema, "w", wanted(path)) is is_possible, path
    assert not can_bring(schema, "w", wanted("//@k").branches[0])  # type: ignore[arg-type]


def test_can_bring_takes_relations_and_bindings() -> None:
    schema = parse_schema("root: r  r -> |a| >= 0 & |w| >= 0  a -> |b| <= 1  b ->  call w root: a")
    program = compile_pattern(parse_pattern("match /r/a/$x return $x"))
    (relation,) = [r for r in program.relations if r.node is not None and r.node.test == Name("a")]
    assert can_bring(schema, "w", relation)
    assert can_bring(schema, "w", wanted("/a/$x"), bindings={"x": "b"})
    assert not can_bring(schema, "w", wanted("/a/$x"), bindings={"x": "17"})
    found = example_tree(schema, "w", wanted("/a/$x"))
    assert found is not None
    assert str(found[0]) == "w: <a><b/></a>"


def test_what_is_not_decided_is_refused() -> None:
    schema = parse_schema(P2_TYPE)
    for notation, query in (
        ("a[b, ?f{service=w}]", "/a[not(c)]"),
        ("a[b, ?f{service=w}]", "/a[b#s][c#t] where t - s <= 1"),
        ("a[b, ?f{service=w}]", '/a[. = "1"]'),
        ("a[b, ?f{service=w}]", '/a[c = "1"]'),
    ):
        with pytest.raises(UndecidedError) as undecided:
            said(document(notation), query, schema)
        assert undecided.value.code == "AX503", query


def test_the_limit_is_said() -> None:
    schema = parse_schema(P2_TYPE)
    tree = document("a[b, ?f{service=w}]")
    pattern = parse_pattern("match /a[c/@k][c/@m][c[@n]][c[@o]][c/x]")
    with pytest.raises(UndecidedError) as undecided:
        typed_truth(tree, pattern, schema, limit=20)
    assert undecided.value.code == "AX502"
    assert typed_truth(tree, pattern, schema) is Truth.NEVER


def test_many_values_to_join_are_not_tried_for_ever() -> None:
    schema = parse_schema(
        "root: r  r -> |a| >= 0 & |b| >= 0 & |w| >= 0  a -> |text()| = 1  b -> |c| = 1  c ->"
        "  call w root: b"
    )
    inside = ", ".join(f'a["{number}"]' for number in range(800))
    tree = document(f"r[{inside}, ?f{{service=w}}]")
    assert said(tree, "/r[a/$x][b/c]", schema) is Truth.POSSIBLE
    with pytest.raises(UndecidedError) as undecided:
        said(tree, "/r[a/$x][b/$x]", schema)
    assert undecided.value.code == "AX502"


def test_a_document_without_its_type_is_refused() -> None:
    with pytest.raises(InputError):
        said(document("a[c]"), "/a/c", parse_schema(P2_TYPE))


# Playing a future ---------------------------------------------------------------------------------


def played(tree: Tree, messages: list[Message], schema: Schema) -> Tree:
    """The document after messages, each of which must be valid, and deletes what a pattern can."""
    for message in messages:
        gone = {node for node in message.removed if isinstance(node, int)}
        twins = {content(tree, node) for node in gone}
        if gone:  # equal siblings go together
            parent = tree.parent(min(gone))
            assert gone == {n for n in tree.children(parent) if content(tree, n) in twins}
    later = apply_messages(tree, messages, checked=schema)
    assert is_valid(later, schema)
    return later


def content(tree: Tree, node: int) -> tuple[object, ...]:
    return tree.time(node), as_node(tree, node)


@pytest.mark.parametrize(("seed", "deleting"), [(0, 0.0), (2, 0.8)])
def test_oracle_typed_truth(seed: int, deleting: float) -> None:
    """P2 theorems 3 to 5: with calls that may delete, too."""
    maker = Maker(Random(100 + seed))
    verdicts: Counter[Truth] = Counter()
    made_room = compared = refused = 0
    for schema, written in cases(seed, 40, deleting):
        tree = load(written)
        brute = Brute(schema, tree)
        start = as_node(tree, tree.root)
        documents = list(islice(brute.documents(start, 2), 200))
        for _ in range(8):
            pattern = maker.pattern()
            try:
                messages = typed_future(tree, pattern, schema)
            except UndecidedError:  # a deletion may merge two texts
                refused += 1
                continue
            found_by_scenarios = typed_verdict(tree, pattern, schema)
            compared += found_by_scenarios is not None
            assert found_by_scenarios in (None, verdict_of(messages)), (str(pattern), written)
            verdicts[verdict_of(messages)] += 1
            if messages is None:
                found = [d for d in documents if matches(pattern, d)]
                assert not found, f"{pattern}\n{schema}\n{written}\n{found[:1]}"
                continue
            assert bool(messages) is not matches(pattern, start)
            grown = played(tree, messages, schema)
            assert rows(grown, pattern), f"{pattern}\n{schema}\n{written}"
            made_room += any(message.removed for message in messages)
    assert min(verdicts[truth] for truth in Truth) > 20, verdicts
    assert (made_room > 8) is (deleting > 0), made_room
    assert refused <= (10 if deleting else 0)
    assert compared > 0.9 * sum(verdicts.values())


def verdict_of(messages: list[Message] | None) -> Truth:
    if messages is None:
        return Truth.NEVER
    return Truth.POSSIBLE if messages else Truth.TRUE


def typed_verdict(tree: Tree, pattern: Pattern, schema: Schema) -> Truth | None:
    """The verdict of the scenarios, which views use; None if they do not cover the pattern."""
    typed = copy.deepcopy(tree)
    typed.types = schema
    try:
        return Outlook(typed, pattern).truth
    except UndecidedError:
        return None


def test_oracle_typed_truth_by_the_reference() -> None:
    """The same by the reference's futures, with the type as what is allowed."""
    maker = Maker(Random(9))
    alphabet = Alphabet(("a", "b"), ("1",))
    tried = possible = 0
    for schema, written in cases(50, 100):
        tree = load(written)
        if any(tree.call(node).mode == "one-shot" for node in tree.calls().values()):
            continue
        pools = {}
        for stream, node in tree.calls().items():
            type_ = schema.service(tree.call(node).service or "")
            alone = Schema(type_)
            pools[stream] = tuple(
                fragment
                for fragment in fragments(alphabet, 2, ordered=True)
                if is_valid(load(as_element(fragment)), alone)
            )
        bound = Bound(
            alphabet, 1, 2, times=(0, 1), ordered=True, pools=pools,
            allows=partial(is_valid, schema=schema),
        )  # fmt: skip
        pattern = maker.pattern()
        verdict = truth(tree, pattern, bound)
        ours = typed_truth(tree, pattern, schema)
        tried += 1
        if verdict is not Truth.NEVER:
            possible += verdict is Truth.POSSIBLE
            assert ours is verdict, f"{pattern}\n{schema}\n{written}"
    assert tried > 40
    assert possible > 5


# Numbers ------------------------------------------------------------------------------------------


def test_oracle_reach() -> None:
    """Which numbers valid steps lead to, against a search that tries them all up to six."""
    random = Random(21)
    maker = Maker(random)
    symbols = ("a", "b", "?w", "?v")
    kinds = {symbol: (symbol,) for symbol in symbols}
    verdicts: Counter[bool] = Counter()
    while min(verdicts[True], verdicts[False]) < 150:
        admitted = tuple(Count(symbol, ">=", 0) for symbol in symbols)
        formula = All((*admitted, *maker.parts(symbols, random.randint(1, 3))))
        callers = [
            Caller(
                name, random.choice(SERVICES), random.choice((("a",), ("b",), ("a", "b"))),
                (random.random() < 0.3,), random.choice((None, None, 1, 2)),
                deletes=random.random() < 0.25,
            )
            for name in ("f", "g")[: random.randint(1, 2)]
        ]  # fmt: skip
        start = Counter({"a": random.randint(0, 1), "b": random.randint(0, 1)})
        start.update(f"?{caller.service}" for caller in callers)
        if not evaluate(formula, start):
            continue
        labels = random.choice((("a",), ("b",), ("a", "b")))
        goal = {(random.choice(callers).service, label): random.randint(1, 2) for label in labels}
        removable = [
            Removable(kind, start[kind], 1)
            for kind in ("a", "b")
            if start[kind] and random.random() < 0.7
        ]
        gone = {each.kind for each in removable}
        steps = reach(Constraint(formula, kinds), start, callers, goal, removable)
        verdicts[steps is not None] += 1
        expected = any(
            all(brought.get(key, 0) >= number for key, number in goal.items())
            for brought in reachable(formula, start, callers, gone)
        )
        assert (steps is not None) is expected, (formula, start, callers, goal, steps)


def reachable(
    formula: Formula, start: Counter[str], callers: list[Caller], removable: set[str]
) -> Iterator[dict[tuple[str, str], int]]:
    """What services have brought and nothing deleted, after valid steps, up to four of a label."""
    first = (
        tuple((0, 0) for _ in callers),
        (0,) * len(callers),
        frozenset[int](),
        frozenset[str](),
    )
    known, waiting = {first}, [first]
    while waiting:
        state = waiting.pop()
        brought: Counter[tuple[str, str]] = Counter()
        for caller, (a, b) in zip(callers, state[0], strict=True):
            brought.update({(caller.service, "a"): a, (caller.service, "b"): b})
        yield brought
        for following in (*deliveries(state, callers), *deletions(state, callers, removable)):
            added, _, gone, removed = following
            numbers = start.copy()
            numbers["a"] += sum(each[0] for each in added)
            numbers["b"] += sum(each[1] for each in added)
            for kind in removed:
                numbers[kind] -= start[kind]
            for index in gone:
                numbers[f"?{callers[index].service}"] -= 1
            if following not in known and evaluate(formula, numbers):
                known.add(following)
                waiting.append(following)


State = tuple[tuple[tuple[int, int], ...], tuple[int, ...], frozenset[int], frozenset[str]]
"""The trees of each call that are there, those it has brought, closed calls, removed kinds."""


def deliveries(state: State, callers: list[Caller]) -> Iterator[State]:
    added, spent, gone, removed = state
    for at, caller in enumerate(callers):
        if at in gone:
            continue
        for a, b in product(range(5), repeat=2):
            more = (added[at][0] + a, added[at][1] + b)
            is_bringable = (not a or "a" in caller.roots) and (not b or "b" in caller.roots)
            is_short = caller.room is None or spent[at] + a + b <= caller.room
            if not (a or b) or not is_bringable or not is_short or max(more) > 4:
                continue
            total = spent[at] + a + b if caller.room is not None else 0
            yield (
                (*added[:at], more, *added[at + 1 :]),
                (*spent[:at], total, *spent[at + 1 :]),
                gone | {at} if caller.goes[0] else gone,
                removed,
            )


def deletions(state: State, callers: list[Caller], removable: set[str]) -> Iterator[State]:
    added, spent, gone, removed = state
    if any(caller.deletes and at not in gone for at, caller in enumerate(callers)):
        ranges = [product(range(a + 1), range(b + 1)) for a, b in added]
        for left in product(*ranges):
            for more in ((), ("a",), ("b",), ("a", "b")):
                if removable.issuperset(more):
                    yield left, spent, gone, removed.union(more)
