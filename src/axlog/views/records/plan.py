"""The choice of an algorithm for a question, from its axes and connectives alone.

    Boolean, downward axes, and, or, not          records S and D with counts      theorem 4.1
    Boolean, forward axes, and                    matching triples                 theorem 6.1
    anything else, selected nodes included        lazily built tree automaton      theorem 3.2

The states of the automaton are functions of the nodes outside a subtree. In the worst case their
number is exponential in the steps that reach outside. Only those that the document needs are made;
a view that needs too many continues by re-evaluation (`automaton.py`). Law: the algorithms agree
wherever several accept a question. (The theorems are those of paper 4.)
"""

from __future__ import annotations

from dataclasses import dataclass

from axlog.views.records.downward import DOWNWARD
from axlog.views.records.forward import forward_refusal
from axlog.views.records.question import Question


@dataclass(frozen=True, slots=True)
class Plan:
    """An algorithm, the reason for it, and the reason why the pattern is declined, if it is."""

    algorithm: str  # downward, forward, automaton
    why: str
    refusal: str | None = None

    def __str__(self) -> str:
        return f"{_DESCRIPTIONS[self.algorithm]}; {self.why}"


_DESCRIPTIONS = {
    "downward": "records with counts: an update costs depth x pattern",
    "forward": "matching triples: an update costs depth x log width",
    "automaton": "tree automaton: an update costs depth x log width",
}


def plan(question: Question) -> Plan:
    """The plan for a question."""
    if question.is_boolean and question.ways <= DOWNWARD:
        return Plan("downward", "all axes go downward")
    refusal = forward_refusal(question)
    if refusal is None:
        return Plan("forward", "it is conjunctive and its axes go forward")
    return Plan("automaton", refusal)
