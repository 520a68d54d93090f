"""A counting engine that begins with rows that are known, instead of an evaluation.

Sites of most views keep nothing: a relation with one edge passes deltas on, and one without edges
has its own row alone. If the rows of the view are known from another maintainer, only the subtrees
of sites that keep rows must be evaluated.
"""

from __future__ import annotations

from itertools import islice

from axlog.document.tree import DOCUMENT_NODE
from axlog.evaluate.gathered import Gathered
from axlog.evaluate.joins import Bag
from axlog.query.compile import Relation
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.sites import Site, SiteRelation

KEEPING = 8
"""One in this many nodes may be below sites that keep rows."""


def begin_with(engine: CountingEngine, root: Relation, rows: Bag) -> bool:
    """Set up the only program of an engine with its rows. False: it is left to `build`."""
    if len(engine._waiting) != 1 or len(engine._programs) != 1 or engine._rules.shares:
        return False
    engine._new_interpreter()
    tree, rules = engine.tree, engine._rules
    chosen = engine._choose_sites(DOCUMENT_NODE) - {DOCUMENT_NODE}
    keeping = _keeping(engine, chosen)
    inside = (node for top in keeping for node in tree.subtree(top))
    most = len(tree) // KEEPING
    if not rules[root].keeps_nothing or sum(1 for _ in islice(inside, most + 1)) > most:
        return False
    ((_, load),), engine._waiting = engine._waiting, []
    engine._sites = {}
    engine._begin_work(engine._most_rows)
    for top in keeping:
        engine._interpreter.evaluate(tree, top, chosen, engine._set_up)
    engine._end_work()
    nothing = Gathered()
    for node in chosen - engine._sites.keys():
        engine._sites[node] = engine._make_site(node, nothing, {})
    engine._sites[DOCUMENT_NODE] = Site((), False)
    engine._roots = {root: SiteRelation(root, rules, (), nothing, {})}
    engine._is_stale = False
    engine._set_aside()
    if root in engine._programs:
        load(rows)
    return True


def _keeping(engine: CountingEngine, sites: set[int]) -> list[int]:
    """The sites at which a relation keeps rows, without those below others."""
    tree, candidates, rules = engine.tree, engine._interpreter.candidates, engine._rules
    found = {
        node
        for node in sites
        if not all(rules[relation].keeps_nothing for relation in candidates(tree, node))
    }
    return [node for node in found if found.isdisjoint(tree.ancestors(node))]
