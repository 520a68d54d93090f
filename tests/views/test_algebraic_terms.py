"""Terms and their pruning: every rule removes a term, and keeps one that it must keep."""

from collections import Counter
from typing import Any

import pytest

from axlog.document.delta import Delta
from axlog.document.loader import load, read_forest
from axlog.document.operations import Delete, Insert, Rename, ReplaceValue, Where
from axlog.document.pending import apply
from axlog.document.tree import Tree
from axlog.live.document import parse
from axlog.live.internals import maintained
from axlog.query.native import parse_pattern
from axlog.views.algebraic.maintainer import Algebraic
from axlog.views.algebraic.reports import Options
from axlog.views.algebraic.shape import refusal, shape_of
from axlog.views.algebraic.terms import (
    ALL,
    MOST_TERMS,
    Facts,
    Pruned,
    Term,
    judged,
    nothing_above_has_the_label,
    rows_of_stored_nodes_go_whole,
    some_delta_is_empty,
    surviving,
    terms,
)
from axlog.views.change import Row
from lab.reference import rows as reference_rows
from tests.papers import document, xml

ABC = parse_pattern("match //a#x//b#y//c#z return x.id, y.id, z.id")
TERMS_ONLY = Options(may_recompute=False)


class Watched:
    """A view over a tree, as a watcher that keeps the changes."""

    def __init__(self, tree: Tree, query: str, options: Options = TERMS_ONLY) -> None:
        self.tree = tree
        self.view = Algebraic(tree, parse_pattern(query), options=options)
        self.changes: list[Any] = []

    def before(self, delta: Delta) -> None:
        self.view.before(delta)

    def after(self, delta: Delta) -> None:
        self.changes = self.view.after(delta)

    def insert(self, path: str, fragment: str) -> list[Any]:
        targets = [n for n in self.tree.subtree(0) if self.tree.path(n) == path]
        content = tuple(read_forest(fragment))
        apply(self.tree, [Insert(Where.LAST, t, content) for t in targets], watchers=[self])
        return self.checked()

    def delete(self, *paths: str) -> list[Any]:
        targets = [n for n in self.tree.subtree(0) if n and self.tree.path(n) in paths]
        apply(self.tree, [Delete(target) for target in targets], watchers=[self])
        return self.checked()

    def checked(self) -> list[Any]:
        defined = reference_rows(self.tree, self.view.pattern).values()
        wanted = Counter((answer.values, answer.count) for answer in defined)
        assert Counter((row.values_, row.count) for row in self.view.rows()) == wanted
        return self.changes

    def evaluated(self) -> list[str]:
        return [str(term) for term in self.view.report.evaluated]


def left(sign: int = 1, facts: Facts | None = None, **rules: Any) -> list[str]:
    return [str(t) for t in judged(shape_of(ABC), sign, facts, **rules) if isinstance(t, Term)]


# Example 20 ---------------------------------------------------------------------------------------


def test_example_20_seven_terms_of_which_nesting_leaves_three() -> None:
    assert len(list(terms(shape_of(ABC)))) == 7
    assert left() == ["R_a R_b Δ+_c", "R_a Δ+_b Δ+_c", "Δ+_a Δ+_b Δ+_c"]
    assert len(left(rules=ALL - {"nesting"})) == 7


def test_example_20_no_c_in_the_fragment_leaves_nothing() -> None:
    watched = Watched(document("r[a[b[c]]]"), str(ABC))
    assert watched.insert("/r/a/b", "<a><b/><b/></a>") == []
    assert watched.evaluated() == []


def test_example_20_no_b_above_leaves_one_term() -> None:
    watched = Watched(document("r[a[x], b[c]]"), str(ABC))
    (change,) = watched.insert("/r/a", "<b><c/></b>")
    assert change.op == "insert"
    assert watched.evaluated() == ["R_a Δ+_b Δ+_c"]


def test_example_20_a_value_test_that_no_new_node_meets() -> None:
    watched = Watched(
        load("<r><d/><a>5<b/></a></r>"), 'match //a#x[. = "5"]//b#y return x.id, y.id'
    )
    assert watched.insert("/r/d", "<a>3<b/></a>") == []
    assert watched.evaluated() == []
    (lost,) = watched.insert("/r/a", "<a>3<b/></a>")
    assert lost.op == "delete"  # its value is "53" now
    assert list(watched.view.rows()) == []


# Examples 22 to 24 --------------------------------------------------------------------------------


def test_example_22_rows_are_modified_and_none_is_added() -> None:
    watched = Watched(
        load("<a><b><d><c>1</c></d><c/></b></a>"), "match /a/b//c#z return z.id, z.cont"
    )
    (change,) = watched.insert("/a/b/d/c", "<extra>some value</extra>")
    assert change.op == "update"
    assert (change.before["z.cont"], change.row["z.cont"]) == (
        "<c>1</c>",
        "<c>1<extra>some value</extra></c>",
    )
    assert watched.evaluated() == []


def test_example_23_rows_and_counts_under_deletion() -> None:
    watched = Watched(document("a[c[b], f[b]]"), "match //a#x//b#y return x.id, y.id")
    (change,) = watched.delete("/a/c/b")
    assert change.op == "delete"
    assert watched.evaluated() == []  # the reverse index found the row
    watched = Watched(document("a[c[b], f[b]]"), "match //a#x[//b] return x.id")
    assert watched.delete("/a/c/b") == []
    assert watched.evaluated() == ["R_a Δ-_b"]
    (row,) = watched.view.rows()
    assert row.count == 1
    (change,) = watched.delete("/a/f/b")
    assert change.op == "delete"


def test_example_24_deletion() -> None:
    watched = Watched(
        document("a[c[b, b], f[c[b], b]]"), "match //a#x[//c#z]//b#y return x.id, z.id, y.id"
    )
    before = set(watched.view.rows())
    changes = watched.delete("/a/f/c")
    after = set(watched.view.rows())
    assert {change.op for change in changes} == {"delete"}
    assert {change.row for change in changes} == before - after
    assert (len(before), len(changes), len(after)) == (8, 5, 3)  # the numbers of the paper


def test_example_24_counts() -> None:
    watched = Watched(document("a[c[b], c, b]"), "match //a#x[//c][//b] return x.id")
    (row,) = watched.view.rows()
    assert row.count == 4
    assert watched.delete("/a/c[1]") == []
    (row,) = watched.view.rows()
    assert row.count == 1
    assert {"R_a Δ-_c R_b", "R_a R_c Δ-_b", "R_a Δ-_c Δ-_b"} <= set(watched.evaluated())


# Each rule ----------------------------------------------------------------------------------------


def pruned_by(shape: Any, sign: int, name: str, facts: Facts | None) -> set[str]:
    every = judged(shape, sign, facts, frozenset({name}))
    return {str(one.term) for one in every if isinstance(one, Pruned)}


def test_nesting_prunes_a_new_parent_of_what_stays_and_keeps_what_a_rename_brings() -> None:
    pruned = pruned_by(shape_of(ABC), 1, "nesting", None)
    assert "Δ+_a R_b R_c" in pruned
    assert "R_a R_b Δ+_c" not in pruned
    # A renamed node has old nodes below it: they are restated with it, so that the rule
    # holds, and the row is found by the term that it leaves.
    watched = Watched(document("r[q[b[c]]]"), str(ABC))
    (q,) = [n for n in watched.tree.subtree(0) if watched.tree.path(n) == "/r/q"]
    apply(watched.tree, [Rename(q, "a")], watchers=[watched])
    assert [change.op for change in watched.checked()] == ["insert"]
    assert watched.evaluated() == ["Δ+_a Δ+_b Δ+_c"]
    apply(watched.tree, [Rename(q, "q")], watchers=[watched])
    assert [change.op for change in watched.checked()] == ["delete"]


def test_empty_prunes_what_the_fragment_does_not_match() -> None:
    facts = Facts(frozenset({2, 3}), frozenset({1, 2}))
    pruned = pruned_by(shape_of(ABC), 1, "empty", facts)
    assert "Δ+_a Δ+_b Δ+_c" in pruned
    assert "R_a Δ+_b Δ+_c" not in pruned
    assert "Δ_a is empty" in str(some_delta_is_empty(Term(shape_of(ABC), frozenset({1})), facts))


def test_above_prunes_where_no_ancestor_has_the_label() -> None:
    facts = Facts(frozenset({1, 2, 3}), frozenset({1}))
    pruned = pruned_by(shape_of(ABC), 1, "above", facts)
    assert "R_a R_b Δ+_c" in pruned
    assert "R_a Δ+_b Δ+_c" not in pruned
    reason = nothing_above_has_the_label(Term(shape_of(ABC), frozenset({3})), facts)
    assert reason == "no b is above the update, so R_b Δ_c is empty"


def test_nesting_prunes_what_stays_below_what_goes() -> None:
    shape = shape_of(parse_pattern("match //a#x[//c][//b] return x.id"))
    pruned = pruned_by(shape, -1, "nesting", None)
    assert "Δ-_a R_c R_b" in pruned
    assert "R_a Δ-_c Δ-_b" not in pruned


def test_stored_prunes_only_where_the_id_is_stored() -> None:
    stored = shape_of(parse_pattern("match //a#x[//c#z]//b#y return x.id, z.id, y.id"))
    assert "R_a Δ-_c Δ-_b" in pruned_by(stored, -1, "stored", None)  # an even term, as printed
    counted = shape_of(parse_pattern("match //a#x[//c][//b] return x.id"))
    assert "R_a Δ-_c Δ-_b" not in pruned_by(counted, -1, "stored", None)  # example 24: it counts
    assert rows_of_stored_nodes_go_whole(Term(counted, frozenset({2}), -1), None) is None


def test_above_prunes_by_the_ids_of_what_goes() -> None:
    watched = Watched(document("a[c[b], f[b]]"), "match //c#x[//b] return x.id")
    assert watched.delete("/a/f") == []
    assert watched.evaluated() == []
    assert any(p.rule == "above" for p in watched.view.report.pruned(watched.view.shape))
    assert watched.delete("/a/c/b")[0].op == "delete"
    assert watched.evaluated() == ["R_c Δ-_b"]


def test_surviving_terms_are_those_that_no_rule_prunes() -> None:
    shape = shape_of(parse_pattern("match //a#x[b[c]/d#y][//e]/f#z return x.id, z.id"))
    numbers = range(1, len(shape.nodes))
    for mask in range(0, 1 << len(numbers), 7):
        matched = frozenset(n for n in numbers if mask >> (n - 1) & 1)
        for above in (frozenset(numbers), frozenset({1, 2}), frozenset({1}), frozenset()):
            for sign in (1, -1):
                facts = Facts(matched, frozenset(above))
                slow = {t.delta for t in judged(shape, sign, facts) if isinstance(t, Term)}
                fast = surviving(shape, sign, facts)
                assert fast is not None
                assert {term.delta for term in fast} == slow


def test_a_term_survives_if_the_parents_of_its_snowcap_stay() -> None:
    shape = shape_of(ABC)
    for term in terms(shape):
        parents = {shape.nodes[number].above for number in term.snowcap} - {0}
        assert (parents <= term.snowcap) == (str(term) in left())
    assert Term(shape, frozenset({3})).snowcap == {1, 2}


def test_too_many_terms_are_not_listed() -> None:
    wide = "match //a#x" + "".join(f"[b{n}]" for n in range(12)) + " return x.id"
    shape = shape_of(parse_pattern(wide))
    everything = Facts(frozenset(range(1, 14)), frozenset({1}))
    assert MOST_TERMS < 1 << 12
    assert surviving(shape, 1, everything) is None
    watched = Watched(document("r[a]"), wide, Options())
    fragment = "".join(f"<b{n}/>" for n in range(12))
    (change,) = watched.insert("/r/a", fragment)
    assert change.op == "insert"
    assert watched.view.report.way == "recomputed"


# Work, counted ------------------------------------------------------------------------------------


def test_a_deletion_looks_at_its_own_rows_only() -> None:
    """F9: the reverse index finds the deleted rows without reading the others."""
    looked_at = []
    for size in (50, 2000):
        tree = load("<r>" + "<a><b/></a>" * size + "</r>")
        watched = Watched(tree, "match /r/a#x/b#y return x.id, y.id", Options())
        before = watched.view.relation.looked_at
        node = tree.partition("a")[7]
        expected = tree.id(node)
        apply(tree, [Delete(node)], watchers=[watched])
        (change,) = watched.changes
        assert (change.op, change.row["x.id"]) == ("delete", expected)
        looked_at.append(watched.view.relation.looked_at - before)
    assert looked_at[0] == looked_at[1]


def test_an_update_that_no_term_can_notice_looks_at_nothing() -> None:
    """Law 8: the delta's labels decide, nothing that stays is looked at."""
    watched = Watched(load("<r>" + "<a><b/></a>" * 50 + "<z/></r>"), "match //a#x//b#y return y.id")
    before = watched.view.relation.looked_at
    assert watched.insert("/r/z", "<q><w>1</w></q>") == []
    assert watched.view.report.scanned == 0
    assert watched.evaluated() == []
    assert watched.view.relation.looked_at == before


# What is declined, what is said -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("match //a[b/$x][c/$x] return $x", "variables join"),
        ("match //a[b/$x] where $x != 1 return $x", "constraint on values"),
        ("match //a[b#t or c#t] return t.id", "inside `or`"),
        ("match //a[not(b#u[c#v])] where u - v <= 1", "inside `not`"),
    ],
)
def test_what_the_algebra_declines(query: str, reason: str) -> None:
    assert reason in str(refusal(parse_pattern(query)))


def test_explain_lists_terms_and_why_others_are_pruned() -> None:
    explained = parse("<r/>").watch(str(ABC), maintainer="algebraic").explain()
    assert "insertions add: 3 of 7 terms" in explained.terms
    assert "  R_a R_b Δ+_c" in explained.terms
    assert any("no node that stays is below a Δ_a" in line for line in explained.terms)
    assert any("rows show the id of a" in line for line in explained.terms)
    assert "terms" in str(explained)


def test_explain_is_short() -> None:
    doc = parse("<r/>")
    query = "match //a[b][c][d][e][f]/g/$x return $x"
    assert "terms" not in str(doc.watch(query, maintainer="counting").explain())
    explained = doc.watch(query, maintainer="algebraic").explain()
    assert len(explained.terms) > 50
    assert len(str(explained).splitlines()) < 60
    assert "more in `explain().terms`" in str(explained)


def test_explain_shows_the_last_update() -> None:
    doc = parse(xml("r[a[x], b[c]]"))
    view = doc.watch(str(ABC), maintainer="algebraic")
    maintained(doc).insert("match /r/a#t return t.id", "<b><c/></b>")
    assert any("no b is above the update" in line for line in view.explain().terms)
    assert any(line.startswith("last update: ") for line in view.explain().terms)


def test_a_text_that_is_written_again_keeps_its_row() -> None:
    """Regression: the row of a text replaced by itself was deleted together with other rows."""
    tree = load("<r><a>1</a><a>1</a><a>1</a><a>1</a></r>")
    watched = Watched(tree, "match //$x#t return t.id, $x")
    texts = [tree.first_column[node] for node in tree.partition("a")]
    same, other = ReplaceValue(texts[0], "1"), ReplaceValue(texts[1], "2")
    node = tree.id(texts[1])
    apply(tree, [same, other], 7, watchers=[watched])
    changes = {(change.op, change.row) for change in watched.checked()}
    columns = ("t.id", "x")
    assert changes == {
        ("delete", Row(columns, (node, "1"))),
        ("insert", Row(columns, (node, "2"))),
    }


def test_a_node_that_is_renamed_is_asked_what_its_new_name_asks() -> None:
    tree = load("<r><c><b/></c></r>")
    watched = Watched(tree, "match //a[b or c]")
    apply(tree, [Rename(tree.partition("c")[0], "a")], watchers=[watched])
    (change,) = watched.checked()
    assert (change.op, dict(change.row)) == ("insert", {})


def test_a_part_of_a_name_is_tested_in_every_copy_of_a_fragment() -> None:
    doc = parse(f"<r>{'<a/>' * 20}</r>")
    view = doc.watch("match /r/a//*:c#t return t.id", maintainer="algebraic")
    doc.update("for $a in /r/a return insert node <b><c/><x:c xmlns:x='urn:x'/></b> into $a")
    again = doc.watch("match /r/a//*:c#t return t.id", "again", maintainer="reevaluate")
    assert [row["t.id"] for row in view.rows()] == [row["t.id"] for row in again.rows()]
    assert len(view.rows()) == 40
