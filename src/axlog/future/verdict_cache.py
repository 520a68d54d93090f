"""Truth as data arrives: a verdict is kept while nothing that it rests on has changed (P1 3).

What streams bring only narrows the future, so verdicts on a view that has no rows last:

    NEVER      the futures of a later document are futures of this one: it stays
    POSSIBLE   rests on one scenario (a witness). What is matched of it stays, so it stands while
               the calls that it asks are open and have trees left, and its deadline has not passed

Asking again costs the size of the scenario, not of the document. When the witness falls, the
scenarios that are kept as data arrives answer (`scenario_tracker.py`), if they are: from the first
end of a stream on, so that a hundred ends cost no hundred walks. Else the document is walked for
another witness, and the one that lasts longest is taken. A view with rows is TRUE without any of
this (`views/view.py`).

`forget` is called for all that streams do not do by adding: statements, deletions, texts that a
call's end brings together, calls that are opened. No witness is kept with `not`, with types, and
for scenarios that hold a key's value, which a message may use up: there a verdict lasts until the
next update, NEVER aside.
"""

from __future__ import annotations

from collections.abc import Callable

from axlog.document.delta import Delta
from axlog.document.tree import CALL, Tree
from axlog.future.truth import Outlook, Witness
from axlog.query.pattern import Pattern
from axlog.query.truth import Truth


class Standing:
    """The truth of a view without rows, kept from one question to the next."""

    def __init__(self, pattern: Pattern, nodes: Callable[[], Tree]) -> None:
        self.pattern = pattern
        self.searches = 0  # walks over the document
        self.may_come: Callable[[], bool | None] = lambda: None
        """Whether scenarios that are kept say that a row may come; None: they are not kept."""
        self._nodes = nodes
        self._is_never = False
        self._witness: Witness | None = None
        self._decided: tuple[int, int, Truth] | None = None  # at which version and clock

    def forget(self) -> None:
        """Something happened that is not a stream bringing data, ending, or the clock."""
        self._is_never, self._witness, self._decided = False, None, None

    @property
    def truth(self) -> Truth:
        """POSSIBLE or NEVER, for a view that has no row now."""
        if self._is_never:
            return Truth.NEVER
        if self._witness is not None and self._witness.stands():
            return Truth.POSSIBLE
        may_come = self.may_come()
        if may_come is not None:
            self._is_never = not may_come
            return Truth.POSSIBLE if may_come else Truth.NEVER
        tree = self._nodes()
        if self._decided is not None and self._decided[:2] == (tree.version, tree.clock):
            return self._decided[2]
        return self._search(tree)

    def _search(self, tree: Tree) -> Truth:
        self.forget()
        self.searches += 1
        outlook = Outlook(tree, self.pattern)
        truth = outlook.truth
        self._is_never = truth is Truth.NEVER
        self._witness = outlook.witness() if truth is Truth.POSSIBLE else None
        self._decided = (tree.version, tree.clock, truth)
        return truth


def only_adds(delta: Delta) -> bool:
    """Whether an update takes nothing away but calls, changes nothing and opens no call."""
    kinds = delta.tree.kind_column
    return not (delta.changed or delta.opened or any(kinds[node] != CALL for node in delta.removed))
