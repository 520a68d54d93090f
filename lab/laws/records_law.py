"""Laws 1 and 2 for the records maintainer: patterns with sibling and reverse axes.

Three kinds of cases: any pattern that records accept on any document; conjunctive forward patterns;
and sibling patterns on one row of children, which exercise algorithm 1 of paper 4. Rows are
compared with their counts; changes without, since records know that a row holds, not how often.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

from axlog.errors import AxlogError
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.view import View
from axlog.query.pattern import Axis, Kind, Name, Pattern, PatternNode, Wildcard
from axlog.query.query import Query
from axlog.views.change import Change
from axlog.views.net_changes import net
from axlog.views.records.maintainer import Records
from lab.laws import small_cases
from lab.laws.edits import carry_out, edit_of
from lab.laws.exact_law import check_labels
from lab.laws.fuzz_cases import Case, Step
from lab.laws.small_cases import LABELS, Features

_ANY = Features(siblings=True, reverse=True, times=False, collects=False, outputs=(Kind.ID,))
_FEATURES = (
    _ANY,
    replace(_ANY, outputs=(Kind.VAL, Kind.CONT, Kind.ID)),
    replace(_ANY, outputs=()),
    replace(_ANY, reverse=False, connectives=False, values=False, outputs=()),
    replace(_ANY, reverse=False, connectives=False, values=False),
)


def make_records_case(random: Random) -> Case:
    """A case with a view that the records maintainer keeps."""
    in_a_row = random.random() < 0.3
    if in_a_row:
        children = "".join(f"<{random.choice(LABELS)}/>" for _ in range(random.randint(1, 8)))
        text, pattern = f"<r>{children}</r>", _row_pattern(random)
    else:
        text, pattern = small_cases.document(random, random.randint(1, 16)), _pattern(random)
    doc = Document(text)
    steps: list[Step] = []
    for _ in range(random.randint(1, 6)):
        tree = maintained(doc).nodes()
        step = tuple(edit_of(tree, op) for op in small_cases.operations(random, tree))
        try:
            if step:
                carry_out(doc, step)
        except AxlogError:
            continue
        steps += [step] if step else []
    return Case(text, (pattern,), tuple(steps))


def _pattern(random: Random) -> Pattern:
    while True:
        made = small_cases.pattern(random, random.choice(_FEATURES))
        made = replace(made, outputs=made.outputs[:1])
        if Records.refusal(made) is None:
            return made


def _row_pattern(random: Random) -> Pattern:
    """Siblings of one child of the root, with branches."""
    left = random.randint(1, 5)

    def node(axis: Axis) -> PatternNode:
        nonlocal left
        branches = []
        while left > 0 and random.random() < 0.7:
            left -= 1
            nearest = random.random() < 0.5
            branches.append(node(Axis.NEXT_SIBLING if nearest else Axis.FOLLOWING_SIBLING))
        test = Wildcard() if random.random() < 0.3 else Name(random.choice(LABELS))
        return PatternNode(axis, test, branches=tuple(branches))

    return Pattern((PatternNode(Axis.CHILD, Wildcard(), branches=(node(Axis.CHILD),)),))


def check_records(case: Case) -> None:
    """Rows, counts and changes equal those of re-evaluation, after every update and in a batch."""
    (pattern,) = case.patterns
    query = Query(pattern=pattern, template=None, language="tree", text=str(pattern))
    tested, plain, batched = (Document(case.document) for _ in range(3))
    view = tested.watch(query, "view", maintainer="records")
    wanted = plain.watch(query, "view", maintainer="reevaluate")
    together = batched.watch(query, "view", maintainer="records")
    heard: list[Change] = []
    together.subscribe(heard.append)
    _same("the first rows", _rows(view), _rows(wanted))
    every: list[Change] = []
    with batched.batch():
        for step in case.steps:
            found = carry_out(tested, step)
            _same("the changes", _told(found), _told(carry_out(plain, step)))
            _same("the rows", _rows(view), _rows(wanted))
            every += carry_out(batched, step)
    _same("the rows of a batch", _rows(together), _rows(wanted))
    _same("what a batch tells", heard, net(every))


def _rows(view: View) -> Counter[tuple[object, int]]:
    check_labels(view)
    return Counter((row.values_, row.count) for row in view.rows())


def _told(changes: list[Change]) -> Counter[tuple[object, ...]]:
    return Counter(
        (c.op, c.row.values_, None if c.before is None else c.before.values_) for c in changes
    )


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: found {found!r}, wanted {wanted!r}")
