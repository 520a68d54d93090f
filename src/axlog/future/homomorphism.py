"""Whether a positive pattern has a given row on a model.

A pattern without joins is matched bottom-up with sets of nodes, in time linear in the model for
each pattern node. Joins are decided by trying the strings that the model has for a join variable. A
variable that is not bound yet matches anything, so a failing value is abandoned early.

On a model with open choices (`canonical_models.py`) a match is a homomorphism: it holds for every
way to make the choices. A value test on an element holds only where the value is known. (Paper 2,
theorem 9.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from axlog.future.canonical_models import Model, Sort, bits
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Kind,
    Literal,
    Name,
    Or,
    PartialName,
    Pattern,
    PatternNode,
    ValueConstraint,
    Variable,
    Wildcard,
    branches_of,
)

_LABELLED = (Sort.ELEMENT, Sort.TEXT, Sort.EITHER)


class Matcher:
    """A normalised positive pattern, to be matched with many models."""

    def __init__(self, pattern: Pattern, count: Callable[[], None]) -> None:
        self.pattern = pattern
        self._count = count
        self._same, self._given = _equalities(pattern)
        self.uses = Counter(self._root(name) for name in _variables(pattern.branches))
        self._certain = {self._root(n) for n in _variables(pattern.branches, ors=False)}
        shown = {self._root(o.of) for o in pattern.outputs if o.kind is Kind.VARIABLE}
        self.joins = sorted(
            name
            for name, uses in self.uses.items()
            if uses > 1 and name not in shown and name not in self._given
        )

    def _root(self, variable: str) -> str:
        while variable in self._same:
            variable = self._same[variable]
        return variable

    def matches(self, model: Model, row: Sequence[str | int]) -> bool:
        """Whether the pattern has this row: strings, and the numbers of nodes."""
        if self._given is _CONTRADICTION:
            return False
        state = _Match(model, self._root, dict(self._given))
        for output, shown in zip(self.pattern.outputs, row, strict=True):
            if output.kind is Kind.VARIABLE:
                assert isinstance(shown, str)
                if state.bound.setdefault(self._root(output.of), shown) != shown:
                    return False
            elif isinstance(shown, str):
                labelled = model.with_label(shown, *Sort)
                state.restrict(output.of, labelled)
            else:
                state.restrict(output.of, 1 << shown)
        return self._decide(state, self.joins)

    def passing(self, model: Model, node: PatternNode) -> int:
        """The nodes that pass the test of a pattern node, its branches ignored."""
        return _Match(model, self._root)._passing(node)

    def _decide(self, state: _Match, joins: list[str]) -> bool:
        self._count()
        state.seen.clear()
        if not state.contexts_of(self.pattern.branches) & 1:
            return False
        if not joins:
            return True
        variable, *others = joins
        for string in self._candidates(state, variable):
            state.bound[variable] = string
            if self._decide(state, others):
                return True
        state.bound.pop(variable, None)
        return False

    def _candidates(self, state: _Match, variable: str) -> list[str]:
        """The strings that a variable can have: the intersection over its mandatory occurrences."""
        found = state.seen.get(variable, [])
        certain = [strings for strings, is_certain in found if is_certain]
        if variable in self._certain and certain:
            return sorted(set.intersection(*certain))
        return sorted(set().union(*(strings for strings, _ in found))) or [""]


_CONTRADICTION: dict[str, str] = {"": ""}


def _equalities(pattern: Pattern) -> tuple[dict[str, str], dict[str, str]]:
    """The equalities of `where`: between variables, and of variables with strings."""
    same: dict[str, str] = {}
    given: dict[str, str] = {}

    def root(variable: str) -> str:
        while variable in same:
            variable = same[variable]
        return variable

    for constraint in pattern.where:
        assert isinstance(constraint, ValueConstraint)
        if isinstance(constraint.right, Variable):
            left, right = root(constraint.left.name), root(constraint.right.name)
            if left != right:
                same[left] = right
    for constraint in pattern.where:
        assert isinstance(constraint, ValueConstraint)
        if isinstance(constraint.right, str):
            name = root(constraint.left.name)
            if given.setdefault(name, constraint.right) != constraint.right:
                return same, _CONTRADICTION
    return same, given


def _variables(branches: tuple[Branch, ...], ors: bool = True) -> Iterator[str]:
    """Every occurrence of a variable; with `ors` false, without those inside `or`s."""
    for branch in branches:
        if isinstance(branch, PatternNode):
            operands = [comparison.operand for comparison in branch.comparisons]
            for operand in (branch.test, *operands):
                if isinstance(operand, Variable):
                    yield operand.name
        if ors or not isinstance(branch, Or):
            yield from _variables(tuple(branches_of(branch)), ors)


@dataclass(slots=True)
class _Match:
    """One attempt: a model, the bindings of variables, and the allowed places of named nodes."""

    model: Model
    root: Callable[[str], str]
    bound: dict[str, str] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    seen: dict[str, list[tuple[set[str], bool]]] = field(default_factory=dict)
    in_or: int = 0

    def restrict(self, name: str, mask: int) -> None:
        self.places[name] = self.places.get(name, self.model.everything) & mask

    def contexts_of(self, branches: tuple[Branch, ...]) -> int:
        """The nodes at which all branches hold."""
        mask = self.model.everything
        for branch in branches:
            mask &= self._contexts(branch)
        return mask

    def _contexts(self, branch: Branch) -> int:
        if isinstance(branch, Or):
            self.in_or += 1
            mask = 0
            for alternative in branch.alternatives:
                mask |= self.contexts_of(alternative)
            self.in_or -= 1
            return mask
        assert isinstance(branch, PatternNode)
        return self._inverse(branch.axis, self._matching(branch))

    def _inverse(self, axis: Axis, found: int) -> int:
        """The nodes from which an axis reaches one of these."""
        if axis is Axis.SELF:
            return found
        above = 0
        model = self.model
        if axis is Axis.CHILD or axis is Axis.ATTRIBUTE:
            is_attribute = axis is Axis.ATTRIBUTE
            for number in bits(found):
                if (model.sorts[number] is Sort.ATTRIBUTE) == is_attribute:
                    above |= 1 << model.parents[number] if number else 0
            return above
        for number in bits(found):
            above |= model.ancestors[number]
        return above | found if axis is Axis.DESCENDANT_OR_SELF else above

    def _matching(self, node: PatternNode) -> int:
        """The nodes that pass the test, the comparisons and the branches of a pattern node."""
        mask = self._passing(node)
        if node.name in self.places:
            mask &= self.places[node.name]
        if node.branches and mask:
            mask &= self.contexts_of(node.branches)
        for comparison in node.comparisons:
            mask &= self._with_value(comparison.operand, mask)
        if isinstance(node.test, Variable):
            labels = {self.model.labels[number] for number in bits(mask)}
            self._note_strings(node.test.name, labels)
        return mask

    def _passing(self, node: PatternNode) -> int:
        model = self.model
        if node.axis is Axis.ATTRIBUTE:
            if isinstance(node.test, Name):
                return model.with_label(f"@{node.test.label}", Sort.ATTRIBUTE)
            if isinstance(node.test, PartialName):
                return model.with_part(node.test, Sort.ATTRIBUTE)
            return model.of_sort(Sort.ATTRIBUTE)
        match node.test:
            case Name(label=label):
                return model.with_label(label, Sort.ELEMENT)
            case PartialName():
                return model.with_part(node.test, Sort.ELEMENT)
            case Wildcard():
                return model.of_sort(Sort.ELEMENT)
            case Literal(text=text):
                return model.with_label(text, Sort.TEXT)
            case AnyText():
                return model.of_sort(Sort.TEXT)
            case AnyComment() | AnyInstruction():
                return 0
            case AnyNode():
                is_self = node.axis is Axis.SELF
                return model.everything if is_self else model.of_sort(*_LABELLED)
            case Variable(name=name):
                string = self.bound.get(self.root(name))
                if string is None:
                    return model.of_sort(*_LABELLED)
                return model.with_label(string, *_LABELLED)

    def _with_value(self, operand: object, among: int) -> int:
        if isinstance(operand, str):
            return self.model.with_value(operand)
        assert isinstance(operand, Variable)
        string = self.bound.get(self.root(operand.name))
        if string is not None:
            return self.model.with_value(string)
        values = (self.model.values[number] for number in bits(among))
        self._note_strings(operand.name, {value for value in values if value is not None})
        return self.model.everything

    def _note_strings(self, variable: str, strings: set[str]) -> None:
        self.seen.setdefault(self.root(variable), []).append((strings, not self.in_or))
