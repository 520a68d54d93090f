"""The truth of a view between updates, reused while its evidence holds.

Data from streams only narrows the future, so verdicts on a view without rows last:

    NEVER      stays: every future of a later document is a future of this one
    POSSIBLE   rests on one scenario, the witness. Its matched parts stay, so it holds while the
               calls that it needs are open and have trees left, and its deadline has not passed

Checking the witness costs the size of the scenario, not of the document. When the witness becomes
impossible, the incrementally maintained scenarios answer (`scenario_tracker.py`), if they exist.
They are maintained from the first end of a stream on, so a hundred ends do not cost a hundred walks
over the document. Otherwise the document is searched for another witness, and the longest-lived one
is chosen. A view with rows is TRUE without any of this (`views/view.py`).

The document counts its revisions: every change other than added data, as statements, deletions,
texts that merge when a call ends, opened calls. A revision ends every verdict from before. There is
no witness with `not`, with types, and for scenarios that hold a key's value, which a message may
use up. There, POSSIBLE lasts until the next update; NEVER still stays.

(Paper 1, section 3.)
"""

from __future__ import annotations

from collections.abc import Callable

from axlog.document.tree import Tree
from axlog.future.evidence import Witness
from axlog.future.sibling_axes import has_sibling_axes, truth_over_siblings
from axlog.future.truth import Outlook
from axlog.query.pattern import Pattern
from axlog.query.truth import Truth


class TruthCache:
    """The truth of a view without rows, cached between questions."""

    def __init__(
        self, pattern: Pattern, nodes: Callable[[], Tree], revisions: Callable[[], int]
    ) -> None:
        self.pattern = pattern
        self.searches = 0  # number of searches over the document
        self.may_come: Callable[[], bool | None] = lambda: None
        """Whether the maintained scenarios allow a row; None: no scenarios are maintained."""
        self._nodes = nodes
        self._is_never = False
        self._revisions = revisions
        self._revision = revisions()  # that of the document when the verdict was found
        self._witness: Witness | None = None
        self._decided: tuple[int, int, Truth] | None = None  # document version, clock, verdict

    def _forget(self) -> None:
        self._is_never, self._witness, self._decided = False, None, None
        self._revision = self._revisions()

    @property
    def truth(self) -> Truth:
        """POSSIBLE or NEVER, for a view that has no row now."""
        if self._revision != self._revisions():
            self._forget()
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
        self._forget()
        self.searches += 1
        if has_sibling_axes(self.pattern):
            truth = truth_over_siblings(tree, self.pattern)
        else:
            outlook = Outlook(tree, self.pattern)
            truth = outlook.truth
            self._witness = outlook.witness() if truth is Truth.POSSIBLE else None
        self._is_never = truth is Truth.NEVER
        self._decided = (tree.version, tree.clock, truth)
        return truth
