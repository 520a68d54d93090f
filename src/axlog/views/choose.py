"""Which maintainer keeps a view: from the pattern's features, unless the user names one.

Counting keeps every pattern whose axes go downward and whose connectives can be evaluated where
they stand; records keep sibling and reverse axes (P4); re-evaluation keeps the rest. Over a large
document that no stream feeds, statements may touch thousands of nodes: there `adaptive` decides
between counting and the algebra by the size of each pending update list. `choice` says why.
"""

from __future__ import annotations

from dataclasses import dataclass

from axlog.document.tree import Tree
from axlog.errors import QueryError
from axlog.query.pattern import Pattern
from axlog.views.adaptive import MEASURED, Adaptive, Prices
from axlog.views.algebraic.engine import AlgebraicEngine
from axlog.views.algebraic.maintainer import Algebraic
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.maintainer import Counting
from axlog.views.ivma import Ivma
from axlog.views.maintainer import Maintainer
from axlog.views.records.maintainer import Records, keep_records
from axlog.views.reevaluate import Reevaluate

LARGE = 20_000
"""Nodes of a document from which it matters how a statement is propagated."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What the choice goes by; laws lower it so that small documents are kept as large ones are."""

    large: int = LARGE
    prices: Prices = MEASURED


DEFAULT_THRESHOLDS = Thresholds()

MAINTAINERS: dict[str, type[Maintainer]] = {
    kind.name: kind for kind in (Counting, Algebraic, Adaptive, Records, Reevaluate, Ivma)
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """A maintainer's name, and why it was taken."""

    name: str
    reason: str


def choice(
    pattern: Pattern,
    wanted: str | None = None,
    tree: Tree | None = None,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> Chosen:
    """The maintainer for a pattern, or an error that says why the wanted one declines.

    With the tree that the view is over, its size and streams count too.
    """
    if wanted is not None:
        kind = MAINTAINERS.get(wanted)
        if kind is None:
            raise QueryError(
                "AX212", f"there is no maintainer {wanted!r}", expected=" or ".join(MAINTAINERS)
            )
        refusal = kind.refusal(pattern)
        if refusal is not None:
            raise QueryError(
                "AX212",
                f"{wanted} declines the query: {refusal}",
                advice="leave the choice to axlog",
            )
        return Chosen(wanted, "asked for")
    refusal = Counting.refusal(pattern)
    is_edited = tree is not None and len(tree) >= thresholds.large and not tree.calls()
    if is_edited and Adaptive.refusal(pattern) is None:
        return Chosen(Adaptive.name, "by the size of each update, as the document is large")
    if refusal is None:
        return Chosen(Counting.name, "its cost does not grow with the document")
    declined = Records.refusal(pattern)
    if declined is None:
        return Chosen(Records.name, Records.reason(pattern))
    return Chosen(
        Reevaluate.name, f"counting declines it: {refusal}; records decline it: {declined}"
    )


@dataclass(frozen=True, slots=True)
class Engines:
    """What the views of one document share."""

    counting: CountingEngine
    algebraic: AlgebraicEngine
    prices: Prices = MEASURED


def make(
    tree: Tree, pattern: Pattern, name: str, engines: Engines, work: int | None = None
) -> Maintainer:
    """The maintainer of this name for a view of the tree; `work` is the view's own budget."""
    if name == Counting.name:
        return Counting(tree, pattern, engines.counting, work)
    if name == Reevaluate.name:
        return Reevaluate(tree, pattern, work)
    if name == Records.name:
        return keep_records(tree, pattern, engines.counting)
    if name == Adaptive.name:
        return Adaptive(tree, pattern, engines.algebraic, engines.prices)
    for kind in (Algebraic, Ivma):
        if name == kind.name:
            return kind(tree, pattern, engines.algebraic)
    return MAINTAINERS[name](tree, pattern)
