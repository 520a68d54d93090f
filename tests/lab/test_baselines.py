"""The baselines of benchmarks; `lab/laws/algebra_law.py` compares their rows with re-evaluation."""

from axlog.document import pending
from axlog.document.loader import load
from axlog.evaluate.statements import operations_of
from axlog.query.query import parse_query
from axlog.query.update_parser import parse_statements
from lab.baselines.ivma import Ivma
from lab.laws.algebra_law import Watcher


def test_ivma_keeps_a_deferred_view_at_once() -> None:
    tree = load("<b><c/><b k='1'/></b>")
    view = Ivma(tree, parse_query("for $x in //c, $y in //@k return id($x)").pattern)
    watcher = Watcher(view, is_deferred=True)
    updates = 'for $x in //c return rename node $x as "a"; delete node //a'
    for statement in parse_statements(updates):
        pending.apply(tree, operations_of(tree, statement), watchers=[watcher])
    assert view.rows() == []
