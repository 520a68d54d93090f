"""The choice of a maintainer for a view: from the features of the pattern, or by the user.

Counting keeps every pattern whose axes go downward and whose connectives can be evaluated at their
own node. Records keep sibling and reverse axes. Re-evaluation keeps the rest. On a large document
that no stream feeds, a statement may touch many nodes at once. There `adaptive` chooses between
counting and the algebra by the size of each pending update list. `choice` gives the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

from axlog.document.tree import Tree
from axlog.errors import QueryError
from axlog.evaluate.value_tests import check_formulas
from axlog.query.aggregate_patterns import counted_once
from axlog.query.pattern import Pattern
from axlog.query.query import Query
from axlog.query.steps import Step, has_groups, side_patterns
from axlog.views.change import Change, Row, split_row
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.maintainer import Counting
from axlog.views.maintainer import Maintainer
from axlog.views.prices import MEASURED, Prices
from axlog.views.step_rows import Stepping

if TYPE_CHECKING:
    from axlog.views.algebraic.engine import AlgebraicEngine
    from axlog.views.saxon.documents import SaxonDocument

LARGE = 2_000
"""Nodes from which on a document is large: the propagation of a statement matters there."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The limits of the choice; laws lower them so that small documents count as large."""

    large: int = LARGE
    prices: Prices = MEASURED


DEFAULT_THRESHOLDS = Thresholds()
_FAR = 1 << 62  # microseconds, after all times
INCREMENTAL = "incremental"
"""In place of a maintainer's name: any that does not evaluate the whole query again."""

MAINTAINERS = {
    "counting": "axlog.views.counting.maintainer:Counting",
    "algebraic": "axlog.views.algebraic.maintainer:Algebraic",
    "adaptive": "axlog.views.adaptive:Adaptive",
    "records": "axlog.views.records.maintainer:Records",
    "reevaluate": "axlog.views.reevaluate:Reevaluate",
}
"""The maintainers of patterns by name. Each is imported when a view first needs it."""


def maintainer_named(name: str) -> type[Maintainer]:
    """Return the class of a maintainer of patterns."""
    place, _, kind = MAINTAINERS[name].partition(":")
    found: type[Maintainer] = getattr(import_module(place), kind)
    return found


@dataclass(frozen=True, slots=True)
class Chosen:
    """The name of a maintainer, and why it was chosen."""

    name: str
    reason: str
    is_incremental: bool = True  # False: it evaluates the whole query again


def choice(
    pattern: Pattern,
    wanted: str | None = None,
    tree: Tree | None = None,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    steps: tuple[Step, ...] = (),
) -> Chosen:
    """The maintainer for a pattern; raises AX212 if the wanted maintainer declines it.

    `incremental` is any maintainer that does not evaluate the whole query again. If the tree of the
    view is given, its size and its streams influence the choice. With groups, maintainers other
    than counting keep the ids of all bound nodes.
    """

    if wanted == INCREMENTAL:
        chosen = choice(pattern, None, tree, thresholds, steps)
        if chosen.name == "reevaluate":
            raise QueryError(
                "AX212",
                f"the query cannot be kept incrementally: {chosen.reason}",
                advice="leave the choice to axlog",
            )
        return chosen
    if has_groups(steps):
        if wanted in (None, "counting") and _refusal("counting", pattern, steps) is None:
            return Chosen("counting", "it gives groups the counts of their rows")
        pattern = counted_once(pattern)
    if wanted is not None:
        if wanted not in MAINTAINERS:
            raise QueryError(
                "AX212", f"there is no maintainer {wanted!r}", expected=" or ".join(MAINTAINERS)
            )
        refusal = _refusal(wanted, pattern, steps)
        if refusal is not None:
            raise QueryError(
                "AX212",
                f"{wanted} declines the query: {refusal}",
                advice="leave the choice to axlog",
            )
        return Chosen(wanted, "requested", wanted != "reevaluate")
    refusal = _refusal("counting", pattern, steps)
    is_edited = tree is not None and len(tree) >= thresholds.large and not tree.calls()
    if is_edited and _refusal("adaptive", pattern, steps) is None:
        return Chosen("adaptive", "by the size of each update, as the document is large")
    if refusal is None:
        return Chosen("counting", "its cost does not grow with the document")
    declined = _refusal("records", pattern, steps)
    if declined is None:
        from axlog.views.records.maintainer import Records

        return Chosen("records", Records.reason(pattern))
    return Chosen(
        "reevaluate",
        f"counting declines it: {refusal}; records decline it: {declined}",
        is_incremental=False,
    )


def _refusal(name: str, pattern: Pattern, steps: tuple[Step, ...] = ()) -> str | None:
    """Why a maintainer declines a pattern, or one beside it; None: it does not."""
    kind = maintainer_named(name)
    refusals = (kind.refusal(each) for each in (pattern, *side_patterns(steps)))
    return next((each for each in refusals if each is not None), None)


def choice_for(
    query: Query,
    wanted: str | None = None,
    tree: Tree | None = None,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> Chosen:
    """The maintainer for a query: of its pattern, or of its plan; Saxon for a foreign query.

    Raises QueryError, with the place in the text, also for expressions that cannot be computed for
    any row: a function with a wrong number of arguments, for example.
    """

    if query.foreign is not None:
        if wanted == INCREMENTAL:
            raise QueryError(
                "AX212",
                f"the query cannot be kept incrementally: {query.foreign.reason}",
                advice="leave the choice to axlog",
            )
        if wanted not in (None, "saxon"):
            raise QueryError(
                "AX212",
                f"{wanted} declines the query: {query.foreign.reason}",
                advice="leave the choice to axlog",
            )
        return Chosen(
            "saxon",
            f"evaluated again with the document: {query.foreign.reason}",
            is_incremental=False,
        )
    if query.plan is None:
        key = query.row_key
        check_formulas(key.pattern)
        if key.steps:
            from axlog.views.step_chain import StepChain

            StepChain(key.steps, key.pattern.columns, query.text)  # compiles the expressions
        return choice(key.pattern, wanted, tree, thresholds, key.steps)
    if wanted not in (None, "dataflow", INCREMENTAL):
        raise QueryError(
            "AX212",
            f"{wanted} declines the query: it is more than a pattern",
            advice="leave the choice to axlog",
        )
    if query.plan.reevaluated is None:
        reason = "an update costs the tuples that read what it changes"
        return Chosen("dataflow", reason if wanted != "dataflow" else "requested")
    if wanted == INCREMENTAL:
        raise QueryError(
            "AX212",
            f"the query cannot be kept incrementally: {query.plan.reevaluated}",
            advice="leave the choice to axlog",
        )
    return Chosen("dataflow", query.plan.reevaluated, is_incremental=False)


class Engines:
    """The engines that the views of one document share, the others made when they are needed."""

    def __init__(self, counting: CountingEngine, prices: Prices = MEASURED) -> None:
        self.counting = counting
        self.prices = prices

    @cached_property
    def algebraic(self) -> AlgebraicEngine:
        from axlog.views.algebraic.engine import AlgebraicEngine

        return AlgebraicEngine(self.counting.tree)

    @cached_property
    def saxon(self) -> SaxonDocument:
        from axlog.views.saxon.documents import SaxonDocument

        return SaxonDocument()


def make_for(
    tree: Tree,
    query: Query,
    stepping: Stepping,
    name: str,
    engines: Engines,
    work: int | None = None,
) -> Maintainer:
    """Create the maintainer of this name for a query; `work` is the budget of the view."""

    if query.foreign is not None:
        from axlog.views.saxon.maintainer import Saxon

        return Saxon(tree, query, engines.saxon, stepping.on_value_error == "reject")
    if query.plan is not None:
        from axlog.views.dataflow.maintainer import Dataflow

        rejects = stepping.on_value_error == "reject"
        return Dataflow(tree, query, engines.counting, work, rejects=rejects)
    return make(tree, stepping, name, engines, work)


def make(
    tree: Tree, stepping: Stepping, name: str, engines: Engines, work: int | None = None
) -> Maintainer:
    """Create the maintainer of this name for a view; `work` is the budget of the view."""

    if not stepping.key.steps:
        return make_plain(tree, stepping.key.pattern, name, engines, work)
    if name == "counting":
        from axlog.views.counting.stepped import SteppedCounting

        return SteppedCounting(tree, stepping, engines.counting, work)
    from axlog.views.stepped import Stepped

    return Stepped(tree, stepping, lambda p: make_plain(tree, p, name, engines, work))


def make_plain(
    tree: Tree, pattern: Pattern, name: str, engines: Engines, work: int | None = None
) -> Maintainer:
    """Create the maintainer of this name for a pattern."""

    if name == "counting":
        return Counting(tree, pattern, engines.counting, work)
    if name == "reevaluate":
        from axlog.views.reevaluate import Reevaluate

        return Reevaluate(tree, pattern, work)
    if name == "records":
        from axlog.views.records.maintainer import keep_records

        return keep_records(tree, pattern, engines.counting)
    if name == "adaptive":
        from axlog.views.adaptive import Adaptive

        return Adaptive(tree, pattern, engines.algebraic, engines.prices)
    if name == "algebraic":
        from axlog.views.algebraic.maintainer import Algebraic

        return Algebraic(tree, pattern, engines.algebraic)
    return maintainer_named(name)(tree, pattern)


def recomputed(tree: Tree, query: Query, name: str | None = None) -> list[Row]:
    """The rows of a query over a tree, computed anew, as views show them.

    `name`: the maintainer that computes them; None: counting if it accepts the query, else
    re-evaluation.
    """
    key = query.row_key
    rows = _made_anew(tree, query, name).rows()
    return list(rows) if key.is_all else [split_row(row, key) for row in rows]


def changes_of_time(tree: Tree, query: Query) -> list[Change]:
    """The changes that time alone makes to the rows of a query from the clock of a tree on."""
    return _made_anew(tree, query).pass_time(_FAR)


def _made_anew(tree: Tree, query: Query, name: str | None = None) -> Maintainer:
    key = query.row_key
    if query.foreign is not None:
        name = "saxon"
    if name is None:
        declined = _refusal("counting", key.pattern, key.steps)
        name = "reevaluate" if declined else "counting"
    return make_for(tree, query, Stepping(key, query.text), name, Engines(CountingEngine(tree)))
