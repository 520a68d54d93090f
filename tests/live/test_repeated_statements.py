"""Statements that are used again: their fragments are kept, and copied into the columns."""

from random import Random

import pytest

from axlog.document import bulk_operations
from axlog.document.bulk_operations import Insertion
from axlog.document.pending import Plan
from axlog.evaluate.statements import operations_of
from axlog.live.document import parse
from axlog.live.internals import maintained
from axlog.query.update_parser import parse_statements
from tests.amounts import cases
from tests.document.test_alike_updates import seen
from tests.document_invariants import invariants

FRAGMENTS = ("<b/>", "<b k='1'>x</b>", "<b><c>y</c><c/></b>", "<b>x</b><c k='2'>y</c>")
QUERIES = (
    "match //a[b]/c/$y return $y",
    "match //a#x/b#y return x.id, y.id",
    'match //b#y["x"] return y.id',
    "match /r/a#x[not(c)] return x.cont",
)


def _statement(random: Random, names: int) -> str:
    target = f'//*[@i = "{random.randrange(names)}"]'
    if random.random() < 0.2:
        return f"delete nodes {target}/{random.choice('bc')}"
    where = random.choice(("into", "as last into", "as first into"))
    content = random.choice(FRAGMENTS)
    wrapped = f"({content.replace('><c k', '>, <c k')})"
    loop = random.choice((target, "//a")) if random.random() < 0.3 else None
    if loop is not None:
        return f"for $x in {loop} return insert nodes {wrapped} {where} $x"
    return f"insert nodes {wrapped} {where} {target}"


@pytest.mark.parametrize("start", [0, 100])
def test_differential_statements_used_again(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Insertion] = []
    plan_of = bulk_operations.plan_of

    def watched(*given: object) -> object:
        made = plan_of(*given)  # type: ignore[arg-type]  # passed on
        plans.extend([made] if isinstance(made, Insertion) else [])
        return made

    monkeypatch.setattr("axlog.document.pending.plan_of", watched)
    monkeypatch.setattr("axlog.query.statement_templates.OFTEN", 1)
    for seed in range(start, start + cases(4)):
        random = Random(f"again:{seed}")
        text = "<r i='0'><a i='1'><c/></a><a i='2'>t<a i='3'/></a><d i='4'><a i='5'/></d></r>"
        document, plain = parse(text), maintained(parse(text)).nodes()
        ways = ("counting", "algebraic", "adaptive", "reevaluate")
        views = [[document.watch(query, maintainer=way) for way in ways] for query in QUERIES]
        for _ in range(30):
            statement = _statement(random, 6)
            document.update(statement)
            (parsed,) = parse_statements(statement, {})
            Plan(plain, list(operations_of(plain, parsed))).commit()
            tree = maintained(document).nodes()
            invariants(tree)
            assert seen(tree) == seen(plain), (seed, statement)
            for alike in views:
                rows = [sorted(map(repr, view.rows())) for view in alike]
                assert rows == [rows[-1]] * len(ways), (seed, statement)
    assert any(len(each.delta.added) == 1 for each in plans), "a copy at a single place"
    assert any(each.delta.blocks for each in plans)
