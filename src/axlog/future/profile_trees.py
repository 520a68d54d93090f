"""Profiles of nodes and of future trees, for a ground pattern.

The profile of a tree is the set of relations that hold at its root, the set of relations that hold
somewhere in it, and its string value as far as the pattern can distinguish it. The profile of a
node follows from its label, its time and the union of its children's profiles; the number and order
of children with equal profiles do not matter. So future trees have finitely many profiles. They are
found by a fixpoint over the labels of the pattern and one other label, from the leaves up.

Only relations are examined that the nodes above can ask for (`Demand`): below `p` in a pattern
`/r[p/a][q/b]` these are the relations of `a`.

- Times. All nodes of a future tree have one time, or, in a stream that declares `calls`, no time
  before their parent's. One time of each interval that the constraints distinguish is tried.
- Values. The value of an element is the concatenation of its texts. It is known as long as it can
  become a string that the pattern compares with (`_Values`), and else some other string.
- Keys. Each string that a key could forbid is a relation of its own (`KeyRelations`), which two
  siblings at the place of the key must not both have.

Every profile carries the smallest tree found for it, so that a verdict can be shown by messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import count, product
from typing import NamedTuple

from axlog.document.tree import ATTRIBUTE, ELEMENT, TEXT
from axlog.errors import UndecidedError
from axlog.evaluate.value_tests import comparison
from axlog.future.disjuncts import is_name, is_text
from axlog.future.grounding import Ground
from axlog.future.key_relations import KeyRelations, key_strings, program_of, resolved
from axlog.future.keys import Key
from axlog.future.search_budget import spend
from axlog.future.value_classes import is_of_times, needs_types, samples_of
from axlog.query.compile import Edge, Relation
from axlog.query.formula import Formula
from axlog.query.pattern import (
    AnyNode,
    AnyText,
    Axis,
    Constant,
    Literal,
    Name,
    PatternNode,
    Variable,
    Wildcard,
)
from axlog.query.values import ORDERS, parted

LIMIT = 4000
"""Largest number of profiles, or unions of profiles, to examine."""


class Profile(NamedTuple):
    """Relations at the root of a tree that an edge can reach, relations anywhere, and the value.

    As the union of the profiles of siblings: what their parent sees. The value None is any string
    that the pattern does not distinguish.
    """

    here: int
    anywhere: int
    value: str | None


class FutureTree(NamedTuple):
    """A tree that a message may hold; children are trees and texts."""

    label: str
    attributes: tuple[tuple[str, str], ...]
    children: tuple[FutureTree | str, ...]
    time: int | None  # None: as its parent


Forest = tuple[FutureTree | str, ...]
Forests = dict[Profile, Forest]


class Demand(NamedTuple):
    """What a node asks of its children: relations at them, relations anywhere, their values."""

    here: int
    anywhere: int
    value: bool

    @property
    def is_empty(self) -> bool:
        return not (self.here or self.anywhere or self.value)


# Values -------------------------------------------------------------------------------------------


class _Values:
    """The strings that comparisons and keys distinguish, and how they are put together."""

    def __init__(
        self, whole: Iterable[str], samples: Iterable[str], special: set[str], is_plain: bool
    ) -> None:
        """The strings that values are equal to or not, and one value of each class of others.

        `special`: the texts that the pattern tests; `is_plain`: it has no test for any text.
        """
        whole = sorted(set(whole))
        self.parts = {part for each in whole for part in _factors(each, special, is_plain)}
        self.known = self.parts | set(samples)

    def of(self, text: str) -> str | None:
        return text if text in self.known else None

    def joined(self, left: str | None, right: str | None) -> str | None:
        if left is None or right is None:
            return None
        return self.of(left + right)


_SHORT = 6


def _factors(whole: str, special: set[str], is_plain: bool) -> Iterator[str]:
    """The parts into which texts may divide a string.

    Of texts that the pattern does not test, two make as much of a difference as many, if it does
    not ask for any text either. Otherwise: the parts between the first characters, the end, and
    the borders of tested texts. A tree that divides the string in more places has the profile of
    one that divides it in these.
    """
    inside = [each for each in special if each and each != whole and each in whole]
    cuts = {0, len(whole), *range(min(len(whole), 1 if is_plain and not inside else _SHORT) + 1)}
    for each in inside:
        at = whole.find(each)
        while at >= 0:
            cuts |= {at, at + len(each)}
            at = whole.find(each, at + 1)
    for start, end in product(sorted(cuts), repeat=2):
        if start <= end:
            yield whole[start:end]


# Keys ---------------------------------------------------------------------------------------------


class NodeProfiles:
    """The relations of a ground pattern, and the profile of a node."""

    def __init__(self, keys: Iterable[Key], ground: Ground, is_lenient: bool = False) -> None:
        """`is_lenient`: a comparison with an unknown value both holds and fails."""
        self.ground = ground
        self.is_lenient = is_lenient
        self.saw_unknown = False  # whether a comparison with an unknown value was met
        program = program_of(ground.pattern)
        self.root = program.root
        strings = {key: key_strings(ground, key) for key in keys}
        self.keys = KeyRelations(strings)
        mine = [r for r in program.relations if r.node is not None]
        self.relations = [*mine, *self.keys.relations]
        self._strings = {**ground.strings, **self.keys.known}
        self.bit = {relation: 1 << number for number, relation in enumerate(self.relations)}
        self._used = [self.bit[relation] for relation in self.keys.chain]
        self.values, self.names, self.attributes, self.texts = self._alphabet(strings)
        self._known: dict[tuple[object, ...], list[Profile]] = {}
        self._demands: dict[tuple[int, str, Demand], tuple[list[Relation], Demand]] = {}

    def _alphabet(
        self, keyed: Mapping[Key, set[str]]
    ) -> tuple[_Values, list[str], list[str], list[str]]:
        """The values, element names, attribute names and texts that the pattern distinguishes."""
        nodes = [r.node for r in self.relations if r.node is not None]
        compared = [(n, c.operator, resolved(c.operand, self._strings))
                    for n in nodes for c in n.comparisons]  # fmt: skip
        tests = [test for each in self.ground.tests.values() for test in each]
        tests += [(operator, constant) for _, operator, constant in compared]
        for operator, constant in tests:
            _check_operator(operator, constant)
        constants = [constant for _, constant in tests]
        samples = [*samples_of(constants)] if any(map(_is_number_like, constants)) else []
        samples += [variant for each in samples if (variant := _variant(each))]
        by_value = [constant for n, _, constant in compared if _may_be_element(n)]
        whole = {each for each in by_value if isinstance(each, str)}
        special = {n.test.text for n in nodes if isinstance(n.test, Literal)}
        special |= {self._strings[n.test.name] for n in nodes
                    if isinstance(n.test, Variable) and n.test.name in self._strings}  # fmt: skip
        is_plain = not any(
            isinstance(n.test, AnyText)
            or (isinstance(n.test, Variable) and n.test.name not in self._strings)
            for n in nodes
        )
        values = _Values(whole, samples if by_value else (), special, is_plain)
        names = {n.test.label for n in nodes
                 if isinstance(n.test, Name) and n.axis is not Axis.ATTRIBUTE}  # fmt: skip
        attributes = {n.test.label for n in nodes
                      if isinstance(n.test, Name) and n.axis is Axis.ATTRIBUTE}  # fmt: skip
        texts = {n.test.text for n in nodes if isinstance(n.test, Literal)}
        texts |= {each for each in constants if isinstance(each, str)}
        strings = {*self._strings.values(), *self.ground.labels.values()}
        strings |= {each for given in keyed.values() for each in given}
        names |= {each for each in strings if is_name(each)}
        texts |= {each for each in strings if is_text(each)} | values.parts | set(samples)
        sees_attributes = any(n.axis is Axis.ATTRIBUTE for n in nodes)
        self.other_name, self.other_text = _fresh(names), _fresh(texts)
        self.samples = set(samples) - whole - special - {*strings}
        return (
            values,
            [self.other_name, *sorted(names)],
            [self.other_name, *sorted(attributes)] if sees_attributes else [],
            [self.other_text, *sorted(text for text in texts if text)],
        )

    def distinct(self, trees: Iterable[FutureTree]) -> Iterator[FutureTree]:
        """The trees with a string of its own wherever the pattern does not tell strings apart."""
        numbers = count(1)

        def text(given: str) -> str:
            if given == self.other_text:
                return f"{given}{next(numbers)}"
            if given in self.samples and not is_of_times("<", given):  # the same number, longer
                return f"{given}{'' if '.' in given else '.'}{'0' * next(numbers)}"
            return given

        def tree(given: FutureTree) -> FutureTree:
            label = given.label
            return given._replace(
                label=f"{label}{next(numbers)}" if label == self.other_name else label,
                attributes=tuple((name, text(value)) for name, value in given.attributes),
                children=tuple(
                    text(child) if isinstance(child, str) else tree(child)
                    for child in given.children
                ),
            )

        return map(tree, trees)

    # Demands

    def inside(self, kind: int, label: str, demand: Demand) -> tuple[list[Relation], Demand]:
        """The relations that a node may have, of those demanded, and what it demands in turn."""
        key = (kind, label, demand)
        if key not in self._demands:
            self._demands[key] = self._inside(kind, label, demand)
        return self._demands[key]

    def _inside(self, kind: int, label: str, demand: Demand) -> tuple[list[Relation], Demand]:
        asked = demand.here | demand.anywhere
        here, anywhere, value = 0, demand.anywhere, demand.value
        found: set[Relation] = set()
        for relation in reversed(self.relations):  # those above first
            node = relation.node
            assert node is not None
            if not asked & self.bit[relation] or not self._passes_label(node, kind, label):
                continue
            found.add(relation)
            value = value or (bool(node.comparisons) and kind == ELEMENT)
            for edge in _edges(relation):
                bit = self.bit[edge.relation]
                if edge.axis in (Axis.CHILD, Axis.ATTRIBUTE):
                    here |= bit
                elif edge.axis is not Axis.SELF:
                    anywhere |= bit
                if edge.axis in (Axis.SELF, Axis.DESCENDANT_OR_SELF):
                    asked |= bit
        return [r for r in self.relations if r in found], Demand(here, anywhere, value)

    @cached_property
    def top(self) -> Demand:
        """What the document node demands."""
        here, anywhere = 0, 0
        for edge in (*_edges(self.root), *self.keys.roots):
            if edge.axis is Axis.CHILD:
                here |= self.bit[edge.relation]
            elif edge.axis in (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF):
                anywhere |= self.bit[edge.relation]
        return Demand(here, anywhere, False)

    def is_timed(self, demand: Demand) -> bool:
        """Whether the time of a node or of one inside it makes a difference."""
        return bool((demand.here | demand.anywhere) & self._timed)

    @cached_property
    def _timed(self) -> int:
        found = 0
        for relation in self.relations:  # those below first
            node = relation.node
            assert node is not None
            below = any(found & self.bit[edge.relation] for edge in _edges(relation))
            if below or node.name in self.ground.times:
                found |= self.bit[relation]
        return found

    def masks(self, demand: Demand) -> list[int]:
        """The bits of which siblings must not share one."""
        return [bit for bit in self._used if bit & demand.here]

    def joined(self, left: Profile, right: Profile, masks: Iterable[int]) -> Profile | None:
        """The union of two profiles; None if both have a node of a key with one value."""
        for mask in masks:
            if left.here & mask and right.here & mask:
                return None
        return Profile(
            left.here | right.here,
            left.anywhere | right.anywhere,
            self.values.joined(left.value, right.value),
        )

    @staticmethod
    def nothing(demand: Demand) -> Profile:
        return Profile(0, 0, "" if demand.value else None)

    # One node

    def of(
        self,
        kind: int,
        label: str,
        value: str | None,
        inside: Profile,
        time: int,
        demand: Demand,
        at: int | None = None,
    ) -> list[Profile]:
        """The profiles of a node: one, or none or several if an unknown value is compared.

        The label of an attribute begins with `@`. `at` is None for a future node.
        """
        if not self.ground.nodes:
            at = None  # no row names a node
        key = (kind, label, value, inside, time, demand)
        if at is None and key in self._known:
            return self._known[key]
        spend(1)
        found = list(self._compute(kind, label, value, inside, time, demand, at))
        if at is None:
            self._known[key] = found
        return found

    def _compute(
        self, kind: int, label: str, value: str | None, inside: Profile, time: int, demand: Demand,
        at: int | None,
    ) -> Iterator[Profile]:  # fmt: skip
        passing: list[list[Relation]] = [[]]
        for relation in self.inside(kind, label, demand)[0]:
            verdict = self._passes(relation, label, value, time, at)
            if verdict is False:
                continue
            if verdict is None:
                self.saw_unknown = True
                if not self.is_lenient:
                    return
                passing = [[*each, *more] for each in passing for more in ([], [relation])]
                check_limit(passing)
            else:
                for each in passing:
                    each.append(relation)
        shown: str | None = None
        if demand.value:
            shown = "" if kind == ATTRIBUTE else value and self.values.of(value)
            shown = "" if value == "" else shown
        for chosen in passing:
            here = 0
            for relation in chosen:
                if self.satisfies(relation, inside, here):
                    here |= self.bit[relation]
            everywhere = 0 if kind == ATTRIBUTE else (here | inside.anywhere) & demand.anywhere
            yield Profile(here & demand.here, everywhere, shown)

    def satisfies(self, relation: Relation, inside: Profile, here: int) -> bool:
        """Whether a relation holds at a node that passes its test."""
        for edge in relation.edges:
            if not self._seen(edge.axis, inside, here) & self.bit[edge.relation]:
                return False
        for choice in relation.choices:
            if not any(self.satisfies(each, inside, here) for each in choice.alternatives):
                return False
        return not any(self.satisfies(each.body, inside, here) for each in relation.absences)

    @staticmethod
    def _seen(axis: Axis, inside: Profile, here: int) -> int:
        if axis in (Axis.CHILD, Axis.ATTRIBUTE):
            return inside.here
        if axis is Axis.DESCENDANT:
            return inside.anywhere
        return here if axis is Axis.SELF else inside.anywhere | here

    def _passes(
        self, relation: Relation, label: str, value: str | None, time: int, at: int | None
    ) -> bool | None:
        """Whether a node with the label passes other tests; None if its unknown value decides."""
        node = relation.node
        assert node is not None
        if node.name is not None and not self._passes_name(node.name, label, time, at):
            return False
        verdict: bool | None = True
        for each in node.comparisons:
            holds = _compares(each.operator, resolved(each.operand, self._strings), value)
            if holds is False:
                return False
            verdict = holds if holds is None else verdict
        return verdict

    def _passes_name(self, name: str, label: str, time: int, at: int | None) -> bool:
        ground = self.ground
        if name in ground.nodes and ground.nodes[name] != at:
            return False
        if name in ground.labels and ground.labels[name] != label:
            return False
        return all(test.holds(time) for test in ground.times.get(name, ()))

    def _passes_label(self, node: PatternNode, kind: int, label: str) -> bool:
        test = node.test
        if kind == ATTRIBUTE:
            if node.axis is Axis.SELF:
                return isinstance(test, AnyNode)
            return node.axis is Axis.ATTRIBUTE and (
                isinstance(test, Wildcard) or (isinstance(test, Name) and label == f"@{test.label}")
            )
        if node.axis is Axis.ATTRIBUTE:
            return False
        match test:
            case Name(label=wanted):
                return kind == ELEMENT and label == wanted
            case Wildcard():
                return kind == ELEMENT
            case Literal(text=text):
                return kind == TEXT and label == text
            case AnyText():
                return kind == TEXT
            case Variable(name=name) if name in self._strings:
                return label == self._strings[name]
            case Variable(name=name):
                tests = self.ground.tests.get(name, ())
                return all(comparison(operator, each)(label) for operator, each in tests)
        return True


def _edges(relation: Relation) -> Iterator[Edge]:
    """The edges of a relation and of the conjunctions at its node."""
    yield from relation.edges
    for below in (*(a for c in relation.choices for a in c.alternatives),
                  *(a.body for a in relation.absences)):  # fmt: skip
        if below.node is None:
            yield from _edges(below)


def _compares(operator: str, operand: Constant, value: str | None) -> bool | None:
    if value is not None:
        return comparison(operator, operand)(value)
    if isinstance(operand, str) and operator in ("=", "!="):
        return operator == "!="  # every string that is compared in this way is known
    return None


def _check_operator(operator: str, operand: object) -> None:
    """Reject comparisons for which there are no sample values."""
    is_text_order = parted(operator)[0] in ORDERS and isinstance(operand, str)
    if needs_types(operator) or isinstance(operand, float) or (
        is_text_order and not (is_of_times(operator, operand) or _is_number_like(operand))
    ):  # fmt: skip
        compared = operand if isinstance(operand, Formula) else f"{operator} {operand}"
        raise UndecidedError("AX503", f"`not` beside the comparison {compared} is not covered")


def _is_number_like(operand: object) -> bool:
    return not isinstance(operand, str) or bool(samples_of([operand]))


def _variant(sample: str) -> str:
    """Another string of the same class: a second number that is written differently."""
    if is_of_times("<", sample):
        return ""
    return f"{sample}0" if "." in sample else f"{sample}.0"


def _may_be_element(node: PatternNode) -> bool:
    return node.axis is not Axis.ATTRIBUTE and not isinstance(node.test, Literal | AnyText)


def _fresh(known: set[str]) -> str:
    """A name or text that the pattern does not mention."""
    other = "other"
    while other in known:
        other += "-"
    return other


def check_limit(found: object) -> None:
    if len(found) > LIMIT:  # type: ignore[arg-type]
        raise UndecidedError(
            "AX502",
            f"there are more than {LIMIT:,} ways to satisfy the query",
            advice="use a smaller query",
        )
