"""Unordered DTDs: the paper's examples, the text and back, numbers, guards, real DTDs and XSDs.

`oracle_` tests try everything small: all numbers for the solver, all words for content models, the
whole document again for the guard.
"""

import copy
import re
from collections import Counter
from collections.abc import Callable
from io import StringIO
from itertools import product
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from axlog.document.cardinality import All, Constraint, Count, Formula, Negation, Some, solutions
from axlog.document.content_models import Particle, choice, formula_of, leaf, sequence
from axlog.document.loader import load, read_forest
from axlog.document.operations import Insert, Operation, Where, end_call, insert_at_call
from axlog.document.pending import Plan, apply
from axlog.document.schema import (
    LEAF,
    Schema,
    TypeGuard,
    UnorderedDTD,
    check_update,
    is_valid,
    table_fault,
    validate,
    violations,
)
from axlog.document.schema_derivation import from_dtd, from_xsd
from axlog.document.schema_parser import parse_schema
from axlog.document.serializer import serialise
from axlog.document.tree import Tree
from axlog.errors import AxlogError, InputError, SchemaError, StreamError, UpdateError
from lab.laws import small_cases
from tests.accepted_errors import accept
from tests.papers import document, xml

# The papers' examples -----------------------------------------------------------------------------

P2_TYPE = """d root: a
a -> |b| = 1 & |c| >= 0 & |w| >= 1
b ->
c ->
call w root: c
c ->"""


def into(tree: Tree, node: int, notation: str) -> list[Operation]:
    return [Insert(Where.LAST, node, tuple(read_forest(xml(notation))))]


def test_p2_type_of_a_document_and_its_service() -> None:
    """P2 section 4, EXAMPLES 10."""
    schema = parse_schema(P2_TYPE)
    assert str(schema) == P2_TYPE
    tree = document("a[b, ?f{service=w}]")
    validate(tree, schema)
    guard = TypeGuard(tree, schema)
    with guard.bringing("f"):
        apply(tree, insert_at_call(tree, "f", read_forest("<c/>")), watchers=[guard])
    before = serialise(tree), tree.clock, tree.calls(), dict(tree.brought), len(tree)
    for refused in ("<e/>", "<b/>", "<c><c/></c>", "<c/><e/>"):
        operations = insert_at_call(tree, "f", read_forest(refused))
        with pytest.raises(UpdateError) as error, guard.bringing("f"):
            apply(tree, operations, 5_000_000, watchers=[guard])
        assert error.value.code == "AX705"
        assert (serialise(tree), tree.clock, tree.calls(), dict(tree.brought), len(tree)) == before
    with pytest.raises(UpdateError):  # at least one call of w must stay
        apply(tree, end_call(tree, "f"), watchers=[guard])


@pytest.mark.parametrize(
    ("notation", "fault"),
    [
        ("a[c, ?f{service=w}]", "/a: a holds"),
        ("a[b, b, ?f{service=w}]", "/a: a holds"),
        ("a[b, c]", "requires |b| = 1"),
        ("a[b, e, ?f{service=w}]", "an element without a rule"),
        ('a[b, "text", ?f{service=w}]', "a text"),
        ("a[b, ?f{service=w}, ?g{service=v}]", "a call of v"),
        ("a[b[c], ?f{service=w}]", "/a/b: b may not hold c"),
        ("c", "none of a"),
    ],
)
def test_what_breaks_the_type_is_said(notation: str, fault: str) -> None:
    with pytest.raises(InputError) as error:
        validate(document(notation), parse_schema(P2_TYPE))
    assert error.value.code == "AX704"
    assert fault in error.value.message


def test_a_service_may_bring_less_than_the_document_may_hold() -> None:
    schema = parse_schema(
        "root: a  a -> |b| >= 0 & |c| >= 0 & |w| >= 0  b ->  c ->  call w root: c"
    )
    tree = document("a[?f{service=w}]")
    guard = TypeGuard(tree, schema)
    with pytest.raises(StreamError) as error, guard.bringing("f"):
        apply(tree, insert_at_call(tree, "f", read_forest("<b/>")), watchers=[guard])
    assert error.value.code == "AX706"
    apply(tree, into(tree, tree.root, "b"), watchers=[guard])  # a person may
    assert serialise(tree).count("<b/>") == 1


def test_a_stream_without_a_service_is_its_own() -> None:
    schema = parse_schema("root: a  a -> |f| = 1 & |c| <= 1  c ->  call f root: c")
    tree = document("a[?f]")
    validate(tree, schema)
    guard = TypeGuard(tree, schema)
    for is_allowed in (True, False):
        forest = read_forest("<c/>")
        if is_allowed:
            apply(tree, insert_at_call(tree, "f", forest), watchers=[guard])
        else:
            with pytest.raises(UpdateError):
                apply(tree, insert_at_call(tree, "f", forest), watchers=[guard])


D1 = "<!ELEMENT d1 (a+)><!ELEMENT a (b+)><!ELEMENT b (c)><!ELEMENT c EMPTY>"
D2 = """<!ELEMENT d2 ((a, b, c)+)><!ELEMENT a (x?)><!ELEMENT x (x?)>
<!ELEMENT b EMPTY><!ELEMENT c EMPTY>"""


def test_p5_example_3_9_delta_tables() -> None:
    """EXAMPLES 21: Δ+ of c empty, of b not; then what the tables cannot see."""
    schema = from_dtd(D1, "d1")
    tree = document("d1[a[b[c]]]")
    plan = Plan(tree, into(tree, tree.root, "a[b]"))
    fault = table_fault(tree, plan.delta, schema)
    assert fault is not None
    assert "Δ+ has b" in fault
    with pytest.raises(UpdateError, match="Δ"):
        check_update(tree, plan, schema)
    plan.abandon()

    passing = Plan(tree, into(tree, tree.root, "a[b, b[c]]"))
    assert table_fault(tree, passing.delta, schema) is None
    with pytest.raises(UpdateError, match=r"/d1/a/b"):
        check_update(tree, passing, schema)
    passing.abandon()
    assert serialise(tree) == "<d1><a><b><c/></b></a></d1>"


def test_p5_example_3_10_repeated_groups() -> None:
    """EXAMPLES 21: an a under d2 comes with a b and a c."""
    schema = from_dtd(D2, "d2")
    assert "|a| = |b|" in str(schema)
    tree = document("d2[a, b, c]")
    for notation, is_allowed in (("a", False), ("a, b", False), ("a[x[x]], b, c", True)):
        plan = Plan(tree, into(tree, tree.root, notation))
        if is_allowed:
            check_update(tree, plan, schema)
        else:
            with pytest.raises(UpdateError) as error:
                check_update(tree, plan, schema)
            assert error.value.code == "AX705"
        plan.abandon()


# The text -----------------------------------------------------------------------------------------

SYMBOLS = ("a", "b", "Q{}dom".removeprefix("Q{}"), "{urn:x}c", "?w", "@k", "text()")
COUNTS = st.builds(
    Count,
    st.sampled_from(SYMBOLS),
    st.sampled_from(("=", "!=", "<", "<=", ">", ">=")),
    st.one_of(st.integers(0, 3), st.sampled_from(SYMBOLS)),
)


def _groups(inside: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    parts = st.lists(inside, min_size=2, max_size=3).map(tuple)
    return st.one_of(st.builds(All, parts), st.builds(Some, parts), st.builds(Negation, inside))


FORMULAS: st.SearchStrategy[Formula] = st.recursive(COUNTS, _groups, max_leaves=6)


@given(st.lists(FORMULAS, min_size=1, max_size=3))
def test_text_and_back(formulas: list[Formula]) -> None:
    rules = [("{urn:x}c", LEAF), ("b", LEAF), ("and", LEAF), ("not", LEAF), ("a", formulas[0])]
    rules += [(f"r{i}", formula) for i, formula in enumerate(formulas)]
    services = (("w", UnorderedDTD(("b",), ())), ("v", UnorderedDTD((), (("b", formulas[0]),))))
    schema = Schema(UnorderedDTD(("a", "b"), tuple(rules)), services, "d")
    assert parse_schema(str(schema)) == schema


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("a ->", "AX701", "is not allowed here"),
        ("root: a  a -> |b| ~ 1", "AX701", "'~'"),
        ("root: a  a -> |b| 1  b ->", "AX701", "is not allowed here"),
        ("root: a  a -> (|a| >= 1", "AX701", "ends too early"),
        ("root: a  a -> |a| >=", "AX701", "ends too early"),
        ("root: a  a ->  a ->", "AX701", "two rules"),
        ("root: a  a -> call w root: a call w", "AX701", "declared twice"),
        ("root: a  a -> |b| = 1", "AX702", "b, which has no rule"),
        ("root: b  a ->", "AX702", "b, which has no rule"),
        ("root: a  a -> |w| = 1  w ->  call w", "AX702", "a label and a service"),
    ],
)
def test_texts_that_mean_nothing(text: str, code: str, said: str) -> None:
    with pytest.raises(SchemaError) as error:
        parse_schema(text)
    assert error.value.code == code
    assert said in error.value.message


def test_the_place_of_an_error_is_shown() -> None:
    with pytest.raises(SchemaError) as error:
        parse_schema("root: a\na -> |b| = x")
    assert error.value.place is not None
    assert (error.value.place.line, error.value.place.column) == (2, 12)


def test_a_text_adds_to_a_derived_schema() -> None:
    base = from_dtd(D1, "d1")
    schema = parse_schema("d1 -> |w| >= 0  a -> |w| <= 1  call w root: b", base=base)
    assert is_valid(document("d1[a[b[c], ?f{service=w}]]"), schema)
    assert not is_valid(document("d1[a[b[c], ?f{service=w}, ?g{service=w}]]"), schema)
    assert not is_valid(document("d1[a[?f{service=w}]]"), schema)
    assert schema.lost == base.lost


def test_dom_and_texts() -> None:
    schema = parse_schema("root: a  a -> |dom| <= 2 & |text()| <= 1 & |b| >= 0  b ->")
    for notation, valid in (
        ('a["1"]', True),
        ("a[e, f]", True),
        ("a[e, f, g]", False),
        ('a[e, "1", f]', False),
        ('a["1", b, "2"]', False),
        ("a[e[b]]", False),  # what has no rule is a leaf
        ('a[@k="1", b[@k="2"]]', True),
    ):
        assert is_valid(document(notation), schema) is valid, notation


def test_layout_is_no_content() -> None:
    schema = parse_schema("root: a  a -> |b| >= 0 & |c| >= 0  b ->  c -> |text()| = 0")
    for written, valid in (
        ("<a> </a>", True),
        ("<a><b>\n</b></a>", True),
        ("<a><b>.</b></a>", False),
        ("<a><c> </c></a>", False),  # texts are mentioned: all of them count
    ):
        assert is_valid(load(written), schema) is valid, written


# Numbers ------------------------------------------------------------------------------------------

KINDS = ("a", "b", "text()", "*")
OF_SYMBOL = {"a": ("a",), "b": ("b",), "text()": ("text()",), "dom": ("text()", "*")}
SMALL_COUNTS = st.builds(
    Count,
    st.sampled_from(tuple(OF_SYMBOL)),
    st.sampled_from(("=", "!=", "<", "<=", ">", ">=")),
    st.one_of(st.integers(0, 2), st.sampled_from(("a", "b"))),
)


@given(
    st.recursive(SMALL_COUNTS, _groups, max_leaves=5),
    st.fixed_dictionaries({kind: st.integers(0, 2) for kind in KINDS}),
    st.fixed_dictionaries({kind: st.sampled_from((0, 1, None, None)) for kind in KINDS}),
)
def test_oracle_solutions(
    formula: Formula, least: dict[str, int], most: dict[str, int | None]
) -> None:
    constraint = Constraint(formula, OF_SYMBOL)
    found = list(solutions([constraint], least, most))
    for numbers in found:
        assert constraint.holds(numbers)
        assert all(numbers[kind] >= least[kind] for kind in KINDS)
    ranges = [
        range(least[kind], (7 if most[kind] is None else most[kind]) + 1)  # type: ignore[operator]
        for kind in KINDS
    ]
    exists = any(
        constraint.holds(dict(zip(KINDS, numbers, strict=True))) for numbers in product(*ranges)
    )
    assert bool(found) is exists


# Content models -----------------------------------------------------------------------------------

OCCURRENCES = ((1, 1), (1, 1), (0, 1), (0, None), (1, None), (2, 3))


def random_particle(random: Random, symbols: list[str], depth: int) -> Particle:
    least, most = random.choice(OCCURRENCES)
    if depth == 0 or random.random() < 0.4:
        return leaf(random.choice(symbols), least, most)
    make = random.choice((choice, sequence))
    parts = [random_particle(random, symbols, depth - 1) for _ in range(random.randint(1, 3))]
    return make(*parts, least=least, most=most)


def as_regex(model: Particle) -> str:
    inside = model.symbol or ("|" if model.is_choice else "").join(map(as_regex, model.parts))
    return f"(?:{inside}){{{model.least},{'' if model.most is None else model.most}}}"


def test_oracle_content_models() -> None:
    """All words of up to five letters: their numbers meet the formula; if exact, only theirs."""
    random = Random(3)
    words = ["".join(word) for size in range(6) for word in product("abc", repeat=size)]
    exact = 0
    for _ in range(600):
        model = random_particle(random, ["a", "b", "c"], 2)
        numbers = formula_of(model)
        matches = re.compile(as_regex(model)).fullmatch
        met = {tuple(sorted(word)) for word in words if matches(word)}
        constraint = Constraint(numbers.formula, {symbol: (symbol,) for symbol in "abc"})
        symbols = set(model.symbols)
        for content in {tuple(sorted(word)) for word in words}:
            if content in met:
                assert constraint.holds(Counter(content)), (model, content)
            elif numbers.is_exact and set(content) <= symbols:
                assert not constraint.holds(Counter(content)), (model, content)
        exact += numbers.is_exact
    assert exact > 300


def test_dtd_content_models_are_read() -> None:
    text = "<!ELEMENT r ((a, b?)*, (c | (d, e+)), f)>" + "".join(
        f"<!ELEMENT {label} EMPTY>" for label in "abcdef"
    )
    schema = from_dtd(text, "r")
    assert str(schema).splitlines()[1] == (
        "r -> |a| >= 0 & |b| <= |a|"
        " & (|c| = 1 & |d| = 0 & |e| = 0 or |d| = 1 & |e| >= 1 & |c| = 0) & |f| = 1"
    )
    assert schema.lost == ("the order of children",)


def test_what_is_lost_is_said() -> None:
    text = "<!ELEMENT r ((a | (b, c))*)><!ELEMENT a ANY><!ATTLIST a k CDATA #REQUIRED>"
    schema = from_dtd(text + "<!ELEMENT b EMPTY><!ELEMENT c EMPTY>", "r")
    assert schema.lost == (
        "the order of children",
        "which numbers of children go together in r",
        "which other attributes there may be, and the values of all",
    )
    assert is_valid(document('r[a[@k="1", b, "text"]]'), schema)
    assert not is_valid(document("r[a]"), schema)


def test_dtds_that_cannot_be_derived() -> None:
    for text, root in (("<!ELEMENT a (b)>", "a"), ("<!ELEMENT a EMPTY>", "b"), ("<!ELEMENT", "a")):
        with pytest.raises(SchemaError) as error:
            from_dtd(text, root)
        assert error.value.code == "AX703"


def test_differential_dtd_validation() -> None:
    """What lxml's validation accepts is valid; what this refuses it refuses."""
    text = "<!ELEMENT a (b?, (c | a)*)><!ELEMENT b (#PCDATA)><!ELEMENT c (a, b)>"
    dtd = etree.DTD(StringIO(text))
    schema = from_dtd(dtd, "a")
    random = Random(5)
    accepted = 0
    for _ in range(1500):
        written = small_cases.fragment(random, random.randint(1, 6))
        written = re.sub(r' [km]="."', "", written)
        element = etree.fromstring(written)
        if element.tag == "a" and dtd.validate(element):
            accepted += 1
            assert is_valid(load(element), schema), written
    assert accepted > 50


XSD = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"
    targetNamespace="urn:o" xmlns="urn:o" elementFormDefault="qualified">
  <xs:element name="orders"><xs:complexType><xs:sequence>
    <xs:element name="order" minOccurs="0" maxOccurs="unbounded"><xs:complexType><xs:sequence>
      <xs:element name="oid" type="xs:string"/>
      <xs:element name="line" type="xs:int" maxOccurs="2"/>
      <xs:choice><xs:element name="paid" type="xs:date"/><xs:element name="due"/></xs:choice>
    </xs:sequence><xs:attribute name="k" use="required"/></xs:complexType></xs:element>
  </xs:sequence></xs:complexType></xs:element>
</xs:schema>"""


def test_xml_schema() -> None:
    schema = from_xsd(XSD)
    assert "the order of children" in schema.lost
    assert "the values of texts" in schema.lost
    assert parse_schema(str(schema)) == schema
    for lines, end, is_ok in (
        ("<line>1</line>", "<paid>x</paid>", True),
        ("<line>1</line><line>2</line>", "<due/>", True),
        ("", "<due/>", False),
        ("<line>1</line>", "<paid/><due/>", False),
        ("<line/><line/><line/>", "<due/>", False),
    ):
        written = f'<orders xmlns="urn:o"><order k="1"><oid/>{lines}{end}</order></orders>'
        assert is_valid(load(written), schema) is is_ok, written
    assert not is_valid(load('<orders xmlns="urn:o"><order/></orders>'), schema)


def test_xml_schemas_that_cannot_be_read() -> None:
    for source in ("<a/>", "<xs:schema", "no such file.xsd"):
        with pytest.raises(SchemaError) as error:
            from_xsd(source)
        assert error.value.code == "AX703"
    with pytest.raises(SchemaError):
        from_xsd(XSD, roots=["order"])


@pytest.mark.parametrize(
    ("dtd", "root", "documents"),
    [
        ("yfilter/nitf-2-5.dtd", "nitf", "yfilter/docs"),
        ("xmark-xpathmark/docs/auction.dtd", "site", "xmark-xpathmark/docs"),
    ],
)
def test_real_documents_have_the_types_of_their_dtds(
    dtd: str, root: str, documents: str, conformance: Callable[[str], Path]
) -> None:
    given = etree.DTD(str(conformance(dtd)))
    schema = from_dtd(given, root)
    assert parse_schema(str(schema)) == schema
    files = sorted(conformance(documents).glob("*.xml"))[:12]
    assert files
    for path in files:
        assert not list(violations(load(path), schema)), path


# Guards -------------------------------------------------------------------------------------------

GUARDED = """root: a, b
a -> |a| <= 2 & |b| >= 0 & (|text()| = 0 or |c| >= 1) & |c| <= 2 & |@k| <= 1
b -> |c| >= 0 & |a| <= 1 & |dom| <= 1 & not (|a| >= 1 & |c| >= 1)
c -> |text()| <= 1 & |b| <= 1 & |@m| = 0"""


def test_oracle_guard() -> None:
    """A guard refuses exactly what would leave an invalid document, and then changes nothing."""
    schema = parse_schema(GUARDED)
    random = Random(11)
    refused = applied = 0
    while applied < 400 or refused < 400:
        tree = load(small_cases.document(random, random.randint(1, 8)))
        if not is_valid(tree, schema):
            continue
        guard = TypeGuard(tree, schema)
        for _ in range(12):
            operations = small_cases.operations(random, tree)
            after = copy.deepcopy(tree)
            try:
                apply(after, operations)
            except AxlogError as conflict:
                accept(conflict)
                continue
            if is_valid(after, schema):
                apply(tree, operations, watchers=[guard])
                assert serialise(tree) == serialise(after)
                applied += 1
                continue
            before = serialise(tree)
            with pytest.raises(UpdateError) as error:
                apply(tree, operations, watchers=[guard])
            assert error.value.code == "AX705"
            assert serialise(tree) == before
            refused += 1


def test_a_guard_wants_a_valid_document() -> None:
    with pytest.raises(InputError):
        TypeGuard(document("a[b]"), parse_schema(P2_TYPE))
