"""Laws 1 and 2 for the algebra: `algebraic`, `ivma` and `adaptive` against re-evaluation, on trees.

This law is cheaper than law 1, which runs documents. It uses one view on one tree, so that its
cases can be run by the hundred thousand. A case names the maintainer of the view and its options:
every choice of snowcaps, with tables of bindings and without. Adaptive views
switch every few updates; deferred ones are read from time to time, and then emit the net changes.

Patterns have `or`, `not` and `collect` at the document node too, as absolute paths in predicates
produce them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from axlog.document import pending
from axlog.document.delta import Delta
from axlog.document.loader import load
from axlog.document.operations import Delete, Insert, Operation, Where
from axlog.document.tree import ELEMENT, Tree
from axlog.errors import AxlogError
from axlog.query.pattern import Pattern
from axlog.views.adaptive import Adaptive
from axlog.views.algebraic.maintainer import Algebraic
from axlog.views.algebraic.reports import Options
from axlog.views.change import Change, Row
from axlog.views.maintainer import Maintainer
from axlog.views.net_changes import net
from axlog.views.reevaluate import Reevaluate
from lab.baselines.ivma import Ivma
from lab.laws import small_cases
from lab.laws.edits import edit_of, operations_of
from lab.laws.exact_law import RESTLESS, replayed
from lab.laws.fuzz_cases import Case, Step, less_of
from lab.laws.small_cases import DOWNWARD

_FEATURES = (  # the simplest first: Hypothesis reduces to it
    replace(DOWNWARD, values=False, connectives=False, times=False),
    replace(DOWNWARD, values=False, connectives=False),
    replace(DOWNWARD, values=False),
    DOWNWARD,
    DOWNWARD,
)
_SMALL = 24
"""Nodes of a document up to which one statement is put everywhere."""


@dataclass(frozen=True, slots=True)
class AlgebraCase:
    """A case of law 1 with one view, its maintainer's options, and the steps that read it.

    Without `reads`, the view is not deferred.
    """

    case: Case
    options: Options = field(default_factory=Options)
    reads: tuple[int, ...] = ()


def make_algebra_case(random: Random) -> AlgebraCase:
    """A random case."""
    maintainer = random.choice(("algebraic", "algebraic", "ivma", "adaptive"))
    pattern = accepted(random)
    text = small_cases.document(random, random.choice((2, 4, 6, 9, 14)))
    steps = _steps(random, load(text))
    reads: tuple[int, ...] = ()
    if maintainer != "ivma" and random.random() < 0.25:
        reads = tuple(n for n in range(len(steps)) if random.random() < 0.4)
    options = make_options(random) if maintainer == "algebraic" else Options()
    return AlgebraCase(Case(text, (pattern,), steps, maintainer=maintainer), options, reads)


def accepted(random: Random) -> Pattern:
    """A random pattern that the algebra and counting support."""
    while True:
        made = small_cases.pattern(random, random.choice(_FEATURES))
        if Adaptive.refusal(made) is None:
            return made


def make_options(random: Random) -> Options:
    """The defaults, or options that switch off some of the optimizations."""
    if random.random() < 0.5:
        return Options(snowcaps=random.choice(("cost", "levels")), is_measured=False)
    return Options(
        snowcaps=random.choice(("cost", "levels", "leaves")),
        may_recompute=False,
        is_measured=False,
        is_direct=random.random() < 0.5,
    )


def _steps(random: Random, tree: Tree) -> tuple[Step, ...]:
    """Updates that the tree accepts, and sometimes one that it refuses."""
    steps: list[Step] = []
    for _ in range(random.randint(1, 4)):
        made = tuple(edit_of(tree, operation) for operation in random_operations(random, tree))
        if made:
            steps.append(({**made[0], "at": random.choice((0, 1))}, *made[1:]))
            _apply(tree, steps[-1], ())
    return tuple(steps)


def random_operations(random: Random, tree: Tree) -> list[Operation]:
    """A pending update list of single operations or of one statement."""
    if len(tree) < _SMALL and random.random() < 0.3:
        return _everywhere(random, tree)
    return small_cases.operations(random, tree, random.choice((1, 2, 4)))


def _everywhere(random: Random, tree: Tree) -> list[Operation]:
    """One fragment inserted into most elements, or many of them deleted, as statements do."""
    content = small_cases.content(random, attributes=False)
    elements = [node for node in tree.subtree(0) if tree.kind_column[node] == ELEMENT]
    if random.random() < 0.3:
        return [Delete(node) for node in elements[1:] if random.random() < 0.3]
    where = random.choice((Where.LAST, Where.LAST, Where.BEFORE))
    targets = elements[1:] if where is Where.BEFORE else elements
    return [Insert(where, node, content) for node in targets if random.random() < 0.8]


def _apply(tree: Tree, step: Step, watchers: Sequence[Any]) -> None:
    try:
        operations = operations_of(tree, step)
        pending.apply(tree, operations, tree.clock + step[0].get("at", 0), watchers)
    except AxlogError:  # a refused update must change nothing; the rows show it
        return


def update(random: Random, tree: Tree, watchers: Sequence[Any]) -> None:
    """Apply a random pending update list, observed by watchers."""
    operations = random_operations(random, tree)
    try:
        pending.apply(tree, operations, tree.clock + random.choice((0, 1)), watchers)
    except AxlogError:  # a refused update must change nothing; the rows show it
        return


class Watcher:
    """A maintainer that observes a tree, with the last changes that it emitted."""

    def __init__(self, maintainer: Maintainer, is_deferred: bool = False) -> None:
        self.maintainer = maintainer
        self.is_deferred = is_deferred
        self.changes: list[Change] = []

    def before(self, delta: Delta) -> None:
        self.maintainer.before(delta)

    def after(self, delta: Delta) -> None:
        if self.is_deferred:
            self.changes += self.maintainer.later(delta)
        else:
            self.changes = self.maintainer.after(delta)

    def rows(self) -> Counter[Any]:
        """The rows with their counts."""
        return Counter((row.values_, row.count) for row in self.maintainer.rows())

    def shown(self) -> Counter[Any]:
        """The rows without their counts."""
        return Counter(row.values_ for row in self.maintainer.rows())

    def told(self) -> Counter[Any]:
        """The last changes, in a comparable form."""
        return Counter(
            (change.op, change.row.values_, change.row.count, _counted(change.before))
            for change in self.changes
        )


def _counted(row: Row | None) -> object:
    return None if row is None else (row.values_, row.count)


def check_algebra(made: AlgebraCase) -> None:
    """Rows, counts and changes equal those of re-evaluation after every update, or when read."""
    case = made.case
    (pattern,) = case.patterns
    tree = load(case.document)
    tested = Watcher(_maintainer(tree, pattern, case.maintainer, made.options), bool(made.reads))
    plain = Watcher(Reevaluate(tree, pattern))
    _same("the first rows", tested.rows(), plain.rows())
    before = tested.shown()
    for number, step in enumerate(case.steps):
        if not tested.is_deferred:
            tested.changes = plain.changes = []
        _apply(tree, step, (tested, plain))
        if plain.maintainer.broken is not None:  # too many combinations to try
            return
        if not tested.is_deferred:
            _same("the rows", tested.rows(), plain.rows())
            _same("the changes", tested.told(), plain.told())
        elif number in made.reads:
            told = net([*tested.changes, *tested.maintainer.catch_up()])
            _same("the rows when read", tested.rows(), plain.rows())
            _same("what is told when read", replayed(before, told), tested.shown())
            before, tested.changes = tested.shown(), []


def _maintainer(tree: Tree, pattern: Pattern, name: str, options: Options) -> Maintainer:
    if name == Adaptive.name:
        return Adaptive(tree, pattern, prices=RESTLESS)
    kind = Ivma if name == Ivma.name else Algebraic
    return kind(tree, pattern, options=options)


def smaller_algebra(made: AlgebraCase) -> Iterator[AlgebraCase]:
    """The case with fewer steps, fewer operations, or the default options."""
    for case in less_of(made.case):
        if case.maintainer == made.case.maintainer:
            yield replace(made, case=case)
    if made.reads:
        yield replace(made, reads=())
    if made.options != Options():
        yield replace(made, options=Options())


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: found {found}, wanted {wanted}")
