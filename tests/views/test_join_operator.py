"""The join operator: its deltas against full joins, and its generated code against them."""

from collections.abc import Iterator
from random import Random

import pytest

import axlog
from axlog.evaluate.definition import rows
from axlog.evaluate.gathered import Bags, Gathered
from axlog.evaluate.joins import MOST_ROWS, Bag, Row, add, add_all
from axlog.evaluate.work import Meters
from axlog.live.internals import maintained
from axlog.match.matcher_generator import Answers
from axlog.query.compile import Relation, compile_pattern
from axlog.query.native import parse_pattern
from axlog.views.counting.sites import SiteRelation
from axlog.views.operators import table
from axlog.views.operators.join import JoinRules
from axlog.views.operators.join_generator import can_generate, generate_sink
from tests import amounts

PLAIN = (
    "match /r[a#s/$x][b#t[c/$x]/$y][d] where s - t <= 3 return $x, $y",
    "match //r/$l#n[a/$x][b/$y][//c[$x]/$z] where $x != $y return $x, $y, n.id, $l",
    "match //r#n[a#s/$x][b#t/$x][c#u/$x] where t - s <= 2 and n - u <= 1 return s.time, n.time",
    "match /r[a/$x][b[c/$x]/$y][d[e/$y]/$z] where $x < $z return $x, $z",
    "match //$l[a/$l][b/$x][c] where $x != 2 return $l, $x",
)
CONNECTIVES = (
    "match /r[a/$x or b[c/$x]][d/$x][not(e/$x)] return $x",
    "match /r[a/$x][b/$y][c or d][not(e[$x])][not(f[$y])] return $x, $y",
    "match /r[a/$x or b/$y][c/$x][d/$y] return $x, $y",  # correlated: joined again
    "match /r[a#s/$x][b/$y][not(c#t/$x)] where s - t <= 1 return $x, $y",
)


def relations(query: str) -> list[Relation]:
    """The relations of a query that join something."""
    root = compile_pattern(parse_pattern(query)).root
    return [each for each in root.walk() if each.edges]


def values(columns: tuple[str, ...], random: Random) -> Row:
    return tuple(
        random.randrange(4) if column.endswith((".time", ".node")) else random.choice("123")
        for column in columns
    )


def own_row(relation: Relation, random: Random) -> Row:
    return values(tuple(column for column, _ in relation.own), random)


def bags(relation: Relation, random: Random, size: int) -> Gathered:
    """Random rows for every relation that a relation looks for, in its connectives too."""
    found = Gathered()
    pending = [relation]
    while pending:
        each = pending.pop()
        for edge in each.edges:
            for into in (found.children, found.descendants):
                bag = into.setdefault(edge.relation, {})
                for _ in range(random.randrange(size + 1)):
                    row = values(edge.relation.columns, random)
                    bag[row] = bag.get(row, 0) + 1
        pending += [a for choice in each.choices for a in choice.alternatives]
        pending += [absence.body for absence in each.absences]
    return found


def moves(kept: Gathered, new: Gathered, random: Random) -> Gathered:
    """A delta that inserts the new rows and deletes some of the kept ones; updates `kept`."""
    found = Gathered()
    levels: tuple[tuple[Bags, Bags, Bags], ...] = (
        (kept.children, new.children, found.children),
        (kept.descendants, new.descendants, found.descendants),
    )
    for before, inserted, into in levels:
        for relation, bag in before.items():
            delta: Bag = dict(inserted[relation])
            for row, count in list(bag.items()):
                if random.random() < 0.4:
                    add(delta, row, -random.randint(1, count))
            into[relation] = delta
            add_all(bag, delta)
    return found


def cases(queries: tuple[str, ...]) -> Iterator[tuple[Relation, Random]]:
    for number, query in enumerate(queries):
        for relation in relations(query):
            for seed in range(amounts.cases(16)):
                yield relation, Random(f"{number}:{relation.name}:{seed}")


def new_state(relation: Relation, random: Random) -> tuple[SiteRelation, Gathered]:
    rules = JoinRules(dict, MOST_ROWS, Meters(), {})
    kept = bags(relation, random, 5)
    return SiteRelation(relation, rules, own_row(relation, random), kept, {}), kept


def tables(state: SiteRelation) -> list[Bag]:
    """The rows of all tables of a relation at a site."""
    return [table.rows() for each in state.operators() for table in each.tables()]


@pytest.mark.parametrize("queries", [PLAIN, CONNECTIVES])
def test_the_delta_is_the_difference_of_the_rows(queries: tuple[str, ...]) -> None:
    changed = 0
    for relation, random in cases(queries):
        state, kept = new_state(relation, random)
        for _ in range(3):
            difference: Bag = {}
            add_all(difference, state.all_rows(kept, {}), -1)
            delta = moves(kept, bags(relation, random, 3), random)
            moved = state.update(delta, {})
            add_all(difference, state.all_rows(kept, {}))
            assert moved == difference, relation
            again = SiteRelation(relation, JoinRules(dict, MOST_ROWS, Meters(), {}), (), kept, {})
            assert tables(state) == tables(again)
            changed += bool(moved)
    assert changed > 300


def test_generated_sinks_join_as_the_interpreter_does() -> None:
    joined = 0
    for relation, random in cases(PLAIN + CONNECTIVES):
        start = random.getstate()
        state, _ = new_state(relation, random)
        random.setstate(start)
        twin, _ = new_state(relation, random)
        if state.is_dead or not can_generate(state.rule, state.join.kept):
            continue
        for part, columns in enumerate(state.rule.plan.parts):
            delta = {values(columns, random): random.choice((1, -1, 2))}
            add(delta, values(columns, random), 1)
            found: Bag = {}

            def into(row: Row, count: int, answers: Answers, found: Bag = found) -> None:
                add(found, row, count)

            sink, source = generate_sink(state.join, part, into)
            for row, count in delta.items():
                sink(row, count, {})
            wanted: Bag = {}
            for row, count in delta.items():
                add_all(wanted, twin.join.apply(part, {row: count}))
            assert found == wanted, source
            assert tables(state) == tables(twin)
            joined += bool(found)
    assert joined > 150


# Look-ups by order --------------------------------------------------------------------------------

_VALUES = tuple("1 2 02.0 -1 10 x y 2024-05-01 2024-05-02 2024-05-01T10:00 10:00 NaN".split())


@pytest.mark.parametrize(
    "where",
    [
        "$s > $l",
        "$l >= $s",
        "$s < $l and $l < $m",
        "$s <= $l as xs:double",
        "$s < $l as xs:date",
        "q - p <= 2",
        "p - q < 3 and $s != $l",
        "q - p = 1",
        "2 * q - p > 4",
    ],
)
def test_differential_comparisons_between_branches_and_evaluation(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "MANY", 2)
    third = "[c/z/$m]" if "$m" in where else ""
    query = f"match /r[a/x#p/$s][b/y#q/$l]{third} where {where} return $s, $l"
    random = Random(where)
    found = 0
    for _ in range(4):
        doc = axlog.parse(
            '<r xmlns:ax="urn:axlog"><a><ax:call stream="a" deletes="yes"/></a>'
            '<b><ax:call stream="b" deletes="yes"/></b><c><ax:call stream="c"/></c></r>',
            views={"v": query},
        )
        clock = 0
        for _ in range(60):
            clock += random.randrange(2)
            name, stream = random.choice((("x", "a"), ("y", "b"), ("z", "c")))
            value = random.choice(_VALUES)
            if stream != "c" and random.random() < 0.2:
                doc.delete(stream, f'match /{name}/"{value}"', at=clock)
            elif random.random() < 0.1:
                doc.update(f"insert node <{name}>{value}</{name}> into /r/{stream}", at=clock)
            else:
                doc.feed(stream, f"<{name}>{value}</{name}>", at=clock)
        kept = {row.values_: row.count for row in doc.view("v")}
        answers = rows(maintained(doc).nodes(), parse_pattern(query)).values()
        expected = {each.values: each.count for each in answers}
        assert kept == expected
        found += len(kept)
    assert found > 2
