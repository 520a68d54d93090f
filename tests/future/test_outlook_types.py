"""Types in use: documents and documents that refuse what breaks them, verdicts that they narrow.

`differential_` tests compare scenarios under types with `typing.typed_future`, which
`test_typing.py` checks by brute force.
"""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

import axlog
from axlog import Truth
from axlog.cli.application import application
from axlog.document.loader import load
from axlog.document.schema_parser import parse_schema
from axlog.document.schema_sources import read_types
from axlog.document.tree import Tree
from axlog.errors import InputError, SchemaError, StreamError, UndecidedError, UpdateError
from axlog.future.relevance import relevance
from axlog.future.truth import Outlook
from axlog.future.typed_truth import typed_future, typed_truth
from axlog.live.internals import maintained
from axlog.query.native import parse_pattern
from axlog.query.normalize import bound_variables
from axlog.query.pattern import Kind, Output
from tests.document.test_schema import P2_TYPE
from tests.papers import document, xml
from tests.type_brute_force import Brute, Maker, as_node, cases

EXAMPLE = xml("a[b, ?f{service=w}]")
D1 = "<!ELEMENT a (b+)><!ELEMENT b (c)><!ELEMENT c EMPTY>"
D2 = "<!ELEMENT d ((a, b, c)+)><!ELEMENT a ANY><!ELEMENT b ANY><!ELEMENT c ANY>"


def typed(notation: str, types: str) -> Tree:
    tree = document(notation)
    tree.types = parse_schema(types)
    return tree


def truth(tree: Tree, query: str) -> Truth:
    return Outlook(tree, parse_pattern(query)).truth


# Refusing -----------------------------------------------------------------------------------------


def test_example_10_p2_a_document_refuses_what_breaks_its_type() -> None:
    queries = {"c": "match /a/c#t return t.id", "e": "match /a/e"}
    doc = axlog.parse(EXAMPLE, views=queries, types=P2_TYPE)
    before = doc.xml()
    assert (doc.view("c").truth, doc.view("e").truth) == (Truth.POSSIBLE, Truth.NEVER)
    with pytest.raises(UpdateError, match="AX705"):
        doc.feed("f", "<e/>")
    assert doc.xml() == before
    assert doc.view("c").rows() == []
    assert [change.op for change in doc.feed("f", "<c/>")] == ["insert"]
    assert doc.view("c").truth is Truth.TRUE


def test_a_refused_message_goes_to_the_dead_letters() -> None:
    doc = axlog.parse(
        EXAMPLE,
        views={"c": "match /a/c"},
        types=P2_TYPE,
        options=axlog.Options(on_error="dead-letter"),
    )
    assert doc.feed("f", "<e/>") == []
    assert [letter.error.code for letter in doc.dead_letters] == ["AX705"]
    assert len(doc.feed("f", "<c/>")) == 1


def test_a_service_brings_only_what_its_type_says() -> None:
    types = "root: a  a -> |b| >= 0 & |w| >= 0  b -> |b| <= 1  call w root: b  b -> |b| = 1"
    doc = axlog.parse(EXAMPLE, types=types)
    with pytest.raises(StreamError, match="AX706"):
        doc.feed("f", "<b/>")


def test_an_end_that_leaves_too_few_calls_is_refused() -> None:
    doc = axlog.parse(EXAMPLE, types=P2_TYPE)
    with pytest.raises(UpdateError, match="AX705"):
        doc.end("f")
    assert "f" in maintained(doc).tree.calls()


@pytest.mark.parametrize(
    ("dtd", "start", "added", "is_seen"),
    [
        (D1, "<a><b><c/></b></a>", "<b/>", True),
        (D1, "<a><b><c/></b></a>", "<b><c/></b>", False),
        (D2, "<d><a/><b/><c/></d>", "<a/><b/>", True),
        (D2, "<d><a/><b/><c/></d>", "<a/><b/><c/>", False),
    ],
)
def test_example_21_p5_documents_refuse_what_breaks_a_dtd(
    dtd: str, start: str, added: str, is_seen: bool
) -> None:
    doc = axlog.parse(start, types=dtd)
    view = doc.watch("match //c#t return t.id")
    root = maintained(doc).tree.label(maintained(doc).tree.root)
    if not is_seen:
        assert maintained(doc).insert(f"match /{root}#t return t.id", added)
        return
    with pytest.raises(UpdateError, match="AX705"):
        maintained(doc).insert(f"match /{root}#t return t.id", added)
    assert doc.xml() == start
    assert len(view.rows()) == 1


def test_example_21_p5_the_tables_are_necessary_only() -> None:
    doc = axlog.parse("<a><b><c/></b></a>", types=D1)
    with pytest.raises(UpdateError, match="b holds nothing"):
        doc.update("insert nodes (<b/>, <b><c/></b>) into /a")


# Sources ------------------------------------------------------------------------------------------


def test_calls_are_added_to_a_dtd(tmp_path: Path) -> None:
    path = tmp_path / "d.dtd"
    path.write_text(D1, encoding="utf-8")
    written = xml("a[b[c], ?f]")
    with pytest.raises(InputError, match="AX704"):
        axlog.parse(written, types=path)
    doc = axlog.parse(written, types=(path, "a -> |f| >= 0  call f root: b"))
    with pytest.raises(UpdateError):
        doc.feed("f", "<b/>")
    doc.feed("f", "<b><c/></b>")


def test_a_second_type_must_be_one_that_adds() -> None:
    with pytest.raises(SchemaError, match="AX703"):
        read_types((D1, D2), "a")
    with pytest.raises(SchemaError, match="AX703"):
        read_types((), "a")


# Narrowing ----------------------------------------------------------------------------------------

SHOP = (
    "root: r  r -> |o| >= 0 & |s| <= 2 & |w| >= 0 & |v| >= 0  o -> |id| = 1 & |k| <= 1"
    "  s -> |id| = 1  id -> |text()| = 1  k ->  call w root: o  call v root: s"
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("match /r[o/id/$x][s/id/$x]", Truth.POSSIBLE),
        ("match /r[s[id/$x]][s[id/$y]][s[id/$z]] where $x != $y, $y != $z, $x != $z", Truth.NEVER),
        ("match /r[s[id/$x]][s[id/$y]] where $x != $y", Truth.POSSIBLE),
        ("match /r/s/k", Truth.NEVER),
        ('match /r/o[id = "5"]', Truth.POSSIBLE),
        ("match /r/o[id > 5][id < 6]", Truth.POSSIBLE),
        ("match /r/o[id > 6][id < 5]", Truth.NEVER),
        ("match /r/o/id/$x where $x > 5", Truth.POSSIBLE),
        ("match /r[o#t][s#u] where u - t >= 5", Truth.POSSIBLE),
        ("match /r/o[#t/k#u] where u > t".replace("[#t/k#u]", "#t/k#u"), Truth.NEVER),
    ],
)
def test_types_narrow_truth(query: str, expected: Truth) -> None:
    assert truth(typed("r[?f{service=w}, ?g{service=v}]", SHOP), query) is expected


def test_an_order_that_types_and_times_both_ask_for_is_refused() -> None:
    tree = typed(
        "r[?f{service=w}]",
        "root: r  r -> |a| <= |b| & |b| >= 0 & |w| >= 0  a ->  b ->  call w root: a, b",
    )
    assert truth(tree, "match /r[a][b]") is Truth.POSSIBLE
    with pytest.raises(UndecidedError, match="AX503"):
        truth(tree, "match /r[a#t][b#u] where t < u")


def test_possible_rows_and_needs_under_types() -> None:
    tree = typed('r[o[id["7"]], ?f{service=w}, ?g{service=v}]', SHOP)
    outlook = Outlook(tree, parse_pattern("match /r[o/id/$x][s/id/$x] return $x"))
    shown = [(p.row["x"], [(n.stream, n.pattern) for n in p.needs]) for p in outlook.possible()]
    assert ("7", [("g", "s/id/$x")]) in shown
    assert all(stream != "f" or "o" in pattern for _, needs in shown for stream, pattern in needs)
    assert outlook.status({"x": "7"}) is Truth.POSSIBLE
    assert outlook.status({"x": "8"}) is Truth.POSSIBLE
    assert (
        Outlook(tree, parse_pattern("match /r/o[k]/id/$x return $x")).status({"x": "7"})
        is Truth.POSSIBLE
    )


def test_relevance_under_types() -> None:
    tree = typed("r[?f{service=w}, ?g{service=v}]", SHOP)
    found = relevance(tree, parse_pattern("match /r/o/id/$x return $x"))
    assert (found["f"].lazy, found["f"].axlog, found["f"].relevant) == (True, True, True)
    assert (found["g"].lazy, found["g"].axlog, found["g"].relevant) == (False, False, False)
    assert found["f"].wanted == ("o/id/$x",)


def test_a_stream_whose_data_is_there_already_is_not_relevant_under_types() -> None:
    tree = typed('r[o[id["7"]], ?f{service=w}, ?g{service=v}]', SHOP)
    there = relevance(tree, parse_pattern("match /r/o/id"))
    assert [there[s].relevant for s in "fg"] == [False, False]
    both = relevance(tree, parse_pattern("match /r[o/id][s/id]"))
    assert [both[s].relevant for s in "fg"] == [False, True]


@pytest.mark.parametrize("seed", range(2))
def test_differential_relevance_under_types(seed: int) -> None:
    """A stream that is not relevant changes no answer in any future of one or two messages."""
    maker, verdicts = Maker(Random(2000 + seed)), Counter[bool | None]()
    for schema, written in cases(seed, 12):
        tree = load(written)
        tree.types = schema
        brute = Brute(schema, tree)
        start = as_node(tree, tree.root)
        for _ in range(4):
            pattern = maker.pattern()
            for stream, found in relevance(tree, pattern).items():
                verdicts[found.relevant] += 1
                if found.relevant is False:
                    steps = 2 if len(brute.pools[stream]) < 6 else 1
                    shown = brute.is_relevant(start, stream, pattern, steps)
                    assert not shown, f"{stream}: {pattern}\n{schema}\n{written}"
    assert min(verdicts[False], verdicts[True]) > 5
    assert not verdicts[None]


def test_example_10_p2_on_the_command_line(tmp_path: Path) -> None:
    types = tmp_path / "types.txt"
    types.write_text(P2_TYPE, encoding="utf-8")
    for query, verdict in (("match /a/c", "possible"), ("match /a/e", "never")):
        arguments = ["truth", EXAMPLE, query, "--types", str(types), "--json"]
        result = CliRunner().invoke(application(["truth"]), arguments)
        assert json.loads(result.stdout)["truth"] == verdict
    arguments = ["truth", xml("a[c]"), "match /a/c", "--types", str(types)]
    result = CliRunner().invoke(application(["truth"]), arguments)
    assert result.exit_code == 2
    assert "AX704" in result.output


# Differential -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_differential_scenarios_under_types(seed: int) -> None:
    maker = Maker(Random(1000 + seed))
    verdicts: Counter[Truth] = Counter()
    for schema, written in cases(seed, 30):
        tree = load(written)
        tree.types = schema
        for _ in range(4):
            pattern = maker.pattern()
            if "x" in bound_variables(pattern.branches):
                pattern = replace(pattern, outputs=(Output(Kind.VARIABLE, "x"),))
            outlook = Outlook(tree, pattern)
            expected = typed_truth(tree, pattern, schema)
            assert outlook.truth is expected, f"{pattern}\n{schema}\n{written}"
            verdicts[expected] += 1
            if not pattern.outputs:
                continue
            for value in ("a", "c", "1", "other"):
                messages = typed_future(tree, pattern, schema, bindings={"x": value})
                wanted = Truth.NEVER if messages is None else Truth.POSSIBLE
                wanted = Truth.TRUE if messages == [] else wanted
                assert outlook.status({"x": value}) is wanted, f"{pattern}\n{schema}\n{written}"
            for possible in outlook.possible():
                bindings = {"x": possible.row["x"]} if possible.row["x"] is not None else {}
                assert typed_future(tree, pattern, schema, bindings=bindings) is not None
    assert min(verdicts[each] for each in Truth) > 5
