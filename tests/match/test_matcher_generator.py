"""Generated matchers against the interpreter, and the short way of a message against the long way.

Both pairs must agree on everything: rows, counts, changes, errors, and the document in the end. The
cases are small and random, each known by its seed, so that a failure can be run again alone.
"""

from dataclasses import replace
from itertools import count as count_up
from random import Random

import pytest

from axlog.document.loader import load
from axlog.document.parser import Limits, parse
from axlog.document.tree import DOCUMENT_NODE
from axlog.errors import AxlogError
from axlog.evaluate.answers import answers
from axlog.evaluate.gathered import Bags
from axlog.evaluate.interpreter import Interpreter
from axlog.live.document import Document
from axlog.live.internals import maintained, streams_of
from axlog.live.options import Options, Validate
from axlog.live.stream_status import StreamStatus
from axlog.match.filters import Filter
from axlog.match.layout_reader import LayoutReader
from axlog.match.matcher_generator import can_match, generate, names_needed
from axlog.match.message_values import finds_markup, may_have_markup
from axlog.query.compile import Relation, compile_pattern
from axlog.query.pattern import Axis, Kind, Pattern
from axlog.query.query import Query, parse_query
from lab.laws.filters_law import decorate
from lab.laws.layouts_law import changed_message, eager_layouts
from lab.laws.small_cases import VALUES, Features, document, fragment, pattern
from tests.amounts import chunks

CASES, DOCUMENTS = 400, 120
OF_STRINGS = Features(outputs=(Kind.VARIABLE, Kind.LABEL, Kind.TIME), collects=False)
_DESCENT = (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)


def blocks(count: int, size: int) -> list[range]:
    return [range(start, start + size) for start in chunks(count, size)]


def reached(relations: list[Relation], axes: tuple[Axis, ...]) -> list[Relation]:
    """The relations that edges along these axes look for, as far as matchers take them."""
    found = {e.relation: None for r in relations for e in r.edges if e.axis in axes}
    return [relation for relation in found if can_match(relation)]


def nonempty(bags: Bags, wanted: list[Relation]) -> Bags:
    return {relation: bags[relation] for relation in wanted if bags.get(relation)}


@pytest.mark.parametrize("seeds", blocks(CASES, 400), ids=str)
def test_differential_generated_matchers_and_interpreter(seeds: range) -> None:
    matched = 0
    for seed in seeds:
        random = Random(seed)
        program = compile_pattern(pattern(random, OF_STRINGS))
        if program.refusal is not None:
            continue
        relations = list(program.relations)
        interpreter = Interpreter(relations)
        here, everywhere = reached(relations, (Axis.CHILD,)), reached(relations, _DESCENT)
        matcher = generate(here, everywhere)
        for _ in range(3):
            text = decorate(random, fragment(random, random.randint(1, 12)))
            if may_have_markup(text.encode()) and any(map(finds_markup, (*here, *everywhere))):
                continue  # for a tree
            tree = load(text, time=3)
            (root,) = [n for n in tree.children(DOCUMENT_NODE) if n == tree.root]
            risen = interpreter.evaluate(tree, root)
            bags = matcher.run(parse(text).root, 3, text.encode())
            found = (
                nonempty(dict(zip(here, bags, strict=False)), here),
                nonempty(dict(zip(everywhere, bags[len(here) :], strict=True)), everywhere),
            )
            expected = nonempty(risen.here, here), nonempty(risen.everywhere, everywhere)
            assert found == expected, f"seed {seed}: {program.pattern} on {text}\n{matcher.source}"
            matched += bool(found[0] or found[1])
            for relation in (*found[0], *found[1]):
                assert all(name in text for name in names_needed(relation)), seed
    assert matched > len(seeds)  # the cases are about something


JOINS = (
    "match /a[b/$x]/c/$y return $x, $y",
    "match /a[b/$x][c/$y]/d/$z return $z, $x",
    "match /a[b/$x]/c/$x return $x",
    "match /a[b/$x][c/$x][d]",
    "match /a#t[b/$x][d]/c/$y where $x < $y return $y, t.time",
    "match /a[b = $x]/c/$x return $x",
    "match //a[b/$x][.//c/$y] return $x, $y",
    "match /r/a[b/$x]/c[. = $x] return $x",
    "match /r[a/b/$x][a[b/$y]/c/$z] where $x != $y return $x, $z",
)


@pytest.mark.parametrize("query", JOINS)
@pytest.mark.parametrize("rows", [0, 1, 3, 5, 40])
def test_differential_joins_of_few_and_of_many_rows(query: str, rows: int) -> None:
    """Few rows are joined by generated loops, many by the plan of the relation."""
    one = parse_query(query).pattern
    random = Random(rows)
    children = [f"<{random.choice('bc')}>{random.randrange(9)}</b>" for _ in range(rows)]
    inside = "".join(child.replace("/b", f"/{child[1]}") for child in children) + "<d>1</d>"
    for text in (f"<a>{inside}</a>", f"<r><a>{inside}</a><a>{inside}</a></r>"):
        expected = answers(load(text, time=3), one)
        made = Filter()
        made.add("k", one)
        assert made.match(parse(text).root, 3) == ({"k": expected} if expected else {})
        assert made.matches(parse(text).root, 3) == ({"k"} if expected else set())


@pytest.mark.parametrize("steps", [3, 9, 11, 12, 17, 25, 60])
@pytest.mark.parametrize("end", ["/$x return $x", "[b]/c/$x return $x", "[b or c]", "[not(c)]"])
def test_differential_paths_deeper_than_loops_nest(steps: int, end: str) -> None:
    """Python nests at most twenty loops: deeper paths continue in separate functions."""
    path = "".join("/a[d]" if step % 3 else "/a" for step in range(steps))
    for one in (parse_query(f"match {path}{end}").pattern, parse_query(f"match /{path}").pattern):
        made = Filter()
        made.add("k", one)
        for inside in ("1", "<b/><c>1</c>", "<b/>"):
            text = "<a><d/>" * steps + inside + "</a>" * steps
            expected = answers(load(text), one)
            assert made.match(parse(text).root) == ({"k": expected} if expected else {})
            assert made.matches(parse(text).root) == ({"k"} if expected else set())


class LongWay(Document):
    """A document that makes nodes of every message at once."""

    def __init__(self, source: str, **given) -> None:
        super().__init__(source, **given)
        streams_of(self).engine.feed = lambda *message: None  # type: ignore[method-assign]


def messages(random: Random) -> str:
    """A message; some are not for the short way, some for no way."""
    text = fragment(random, random.randint(1, 8))
    pick = random.random()
    if pick < 0.6:
        return text
    if pick < 0.75:
        return decorate(random, text)
    odd = (
        text + fragment(random, 2),
        f"<!--a-->{text}",
        f"{text}<?a b?>",
        f'<?xml version="1.0"?>{text}',
        f"<!DOCTYPE a>{text}",
        f"\n {text} \n",
        f'<a xml:space="preserve"> <b> {text} </b> </a>',
        f'<a xmlns="urn:b">{text}</a>',
        f'<c xmlns:p="urn:b"><p:a>1</p:a>{text}</c>',
        f'<a><b/><ax:call xmlns:ax="urn:axlog" stream="n{random.random()}"/></a>',
        f'<a><call xmlns="urn&#58;axlog" stream="m{random.random()}"/>{text}</a>',
        f'<call xmlns="urn:axlo&#103;" stream="r{random.random()}"/>',
        "<a><b></a>",
        "<a>&unknown;</a>",
        "1",
        "",
        "<a" + "><a" * 20 + ">1</a>" + "</a>" * 20,
        "<a>\ud800</a>",
        "<a>" + "1" * 300 + "</a>",
        f"<{'a' * 60}/>",
    )
    return random.choice(odd)


def outcome(doc: Document, stream: str, message: str | bytes, at: float | None):
    try:
        changes = doc.feed(stream, message, at=at)
    except AxlogError as error:
        return error.code, error.context, str(error.place)
    return [(c.op, c.row, c.row.count, c.before, c.view, c.time, c.position) for c in changes]


def brought(doc: Document) -> dict[str, StreamStatus]:
    """What came over each stream; only the short way counts the messages that it has no use for."""
    return {name: replace(each, unmatched=0) for name, each in doc.streams().items()}


def counted(doc: Document) -> dict[str, list]:
    return {name: [(row, row.count) for row in v.rows()] for name, v in doc.views.items()}


def queries(random: Random, text: str) -> dict[str, Query]:
    """Two views, mostly such that what streams bring can matter to them."""
    tree = load(text.replace("<ax:call", fragment(random, 8) + fragment(random, 8) + "<ax:call"))
    patterns: list[Pattern] = []
    for attempt in count_up():
        drawn = pattern(random, OF_STRINGS)
        if compile_pattern(drawn).refusal is None and (attempt > 20 or answers(tree, drawn)):
            patterns.append(drawn)
        if len(patterns) == 2:
            break
    return {f"v{n}": Query(p, str(p)) for n, p in enumerate(patterns)}


def layout_readers(doc: Document) -> list[LayoutReader]:
    """What the streams of a document have learned about the layouts of messages."""
    engine = streams_of(doc).engine
    return [each for stream in engine.feeds if (each := engine.layouts(stream)) is not None]


SMALL = Limits(depth=16, text=200, name=40)


@pytest.mark.parametrize("seeds", blocks(DOCUMENTS, 120), ids=str)
@pytest.mark.parametrize("validate", ["all", "wanted"])
def test_differential_short_way_and_long_way(seeds: range, validate: Validate) -> None:
    with eager_layouts():
        _compare_short_way_and_long_way(seeds, validate)


def _compare_short_way_and_long_way(seeds: range, validate: Validate) -> None:
    moved = short_ones = read = 0
    for seed in seeds:
        random = Random(seed)
        text = document(random, 12, streams=2)
        views = queries(random, text)
        # Without the messages only joins tell what never comes.
        short = Document(
            text, views=views, options=Options(limits=SMALL, validate=validate, never="joins")
        )
        needed = Document(
            text,
            views=views,
            options=Options(limits=SMALL, validate=validate, keep="needed", never="joins"),
        )
        long = LongWay(text, views=views, options=Options(limits=SMALL, never="joins"))
        time = 0.0
        sent: list[str] = []
        for step in range(12):
            stream = random.choice(("s0", "s1", "s1"))
            message = messages(random)
            if sent and random.random() < 0.4:  # with a layout that is known by then
                message = changed_message(random, random.choice(sent))
            sent.append(message)
            time += random.choice((0, 0, 1, 0.5, -0.25))
            given = message.encode(errors="replace") if random.random() < 0.5 else message
            at = None if random.random() < 0.2 else time
            said = outcome(long, stream, given, at)
            if validate == "wanted" and isinstance(said, tuple):
                continue  # what is wrong with a message that nobody wants is not looked at
            where = f"seed {seed}, step {step}: {[str(q.pattern) for q in views.values()]}"
            for doc in (short, needed):
                found = outcome(doc, stream, given, at)
                if doc is needed:  # it may not know what never comes
                    said = [change for change in said if change[0] != "never"]
                    found = [change for change in found if change[0] != "never"]
                assert found == said, f"{where}: {given!r} on {text}"
                assert doc.clock == long.clock, where
            moved += bool(said) and isinstance(said, list)
            short_ones += bool(streams_of(short).engine.aside)
        assert counted(short) == counted(needed) == counted(long), f"seed {seed}"
        if validate == "all":
            assert brought(short) == brought(long), f"seed {seed}"
            assert short.xml() == long.xml()
        readers = layout_readers(short) + layout_readers(needed)
        read += sum(each.match is not None for each in readers)
    assert moved > len(seeds) // 2
    assert read > len(seeds) // 2
    assert short_ones > 2 * len(seeds)  # of twelve messages


def test_the_order_monitor_uses_the_short_way() -> None:
    """The comparison above is of two ways: the short one makes no nodes until somebody asks."""
    text = '<a><ax:call xmlns:ax="urn:axlog" stream="s"/></a>'
    doc = Document(text, views={"v": "match /a/b/$x return $x"})
    before = len(maintained(doc).tree)
    doc.feed("s", f"<b>{VALUES[0]}</b>")
    assert len(maintained(doc).tree) == before
    assert len(doc) == before + 2
