"""Which of P4's algorithms keeps a question, from its axes and connectives alone.

    Boolean, downward axes, and, or, not          records S and D with counts      theorem 4.1
    Boolean, forward axes, and                    matching triples                 theorem 6.1
    anything else, selected nodes included        lazily built tree automaton      theorem 3.2

The automaton's states are functions of what lies outside of a subtree, at worst exponentially many
in the steps that look there: patterns with more than `MOST_CONTEXT` such steps are declined.
"""

from __future__ import annotations

from dataclasses import dataclass

from axlog.views.records.downward import DOWNWARD
from axlog.views.records.forward import forward_refusal
from axlog.views.records.question import CONTEXT, Question

MOST_CONTEXT = 24


@dataclass(frozen=True, slots=True)
class Plan:
    """An algorithm, why it is taken, and why it may not be."""

    algorithm: str  # downward, forward, automaton
    why: str
    refusal: str | None = None

    def __str__(self) -> str:
        return f"{_SAID[self.algorithm]}; {self.why}"


_SAID = {
    "downward": "records of P4 theorem 4.1: an update costs depth x pattern",
    "forward": "matching triples of P4 theorem 6.1: an update costs depth x log width",
    "automaton": "tree automaton of P4 theorem 3.2: an update costs depth x log width",
}


def plan(question: Question) -> Plan:
    """How a question is kept."""
    if question.is_boolean and question.ways <= DOWNWARD:
        return Plan("downward", "all axes go downward")
    refusal = forward_refusal(question)
    if refusal is None:
        return Plan("forward", "it is conjunctive and its axes go forward")
    outside = sum(step.way in CONTEXT for step in question.steps)
    declined = None
    if outside > MOST_CONTEXT:
        declined = f"{outside} of its steps look out of a subtree, more than {MOST_CONTEXT}"
    return Plan("automaton", refusal, declined)
