"""Random valid patterns for Hypothesis: `patterns()` draws one, its parameters say which features.

A pattern is drawn as a tree first, then what would make it invalid is taken out again: variables
that are not bound where they are needed, constraints and outputs that name what is not visible. So
nothing is rejected, and shrinking leads to small patterns. Names are t1, t2, ...
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from axlog.errors import QueryError
from axlog.query.normalize import bound_names, bound_variables, check, names_of, variables_of
from axlog.query.pattern import (
    OPERATORS,
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Collect,
    Comparison,
    Constant,
    Constraint,
    Kind,
    Literal,
    Moment,
    Name,
    Not,
    Or,
    Output,
    Pattern,
    PatternNode,
    Test,
    TimeConstraint,
    ValueConstraint,
    Variable,
    Wildcard,
)

DOWNWARD = (Axis.CHILD, Axis.CHILD, Axis.DESCENDANT)
SELVES = (Axis.SELF, Axis.DESCENDANT_OR_SELF)
FORWARD_SIBLINGS = (Axis.NEXT_SIBLING, Axis.FOLLOWING_SIBLING)
REVERSE = (
    Axis.PREVIOUS_SIBLING,
    Axis.PRECEDING_SIBLING,
    Axis.PARENT,
    Axis.ANCESTOR,
    Axis.ANCESTOR_OR_SELF,
)
KINDS = tuple(Kind)


def moments(microseconds: SearchStrategy[int]) -> SearchStrategy[Moment]:
    return microseconds.map(lambda moment: Moment(moment, "drawn"))


SMALL_CONSTANTS: SearchStrategy[Constant] = st.one_of(
    st.sampled_from((0.0, 1.0, 1.5, 2.0, -1.0)),
    moments(st.sampled_from((0, 86_400_000_000, 172_800_000_000))),
)


@dataclass
class Features:
    """What a drawn pattern may have."""

    labels: Sequence[str]
    variables: Sequence[str]
    texts: Sequence[str]
    disjunction: bool
    negation: bool
    time: bool
    values: bool
    constants: SearchStrategy[Constant]
    outputs: Sequence[Kind]
    attributes: bool
    selves: bool
    siblings: bool
    reverse: bool
    collect: bool

    @property
    def axes(self) -> list[Axis]:
        axes = [*DOWNWARD]
        axes += SELVES if self.selves else ()
        axes += FORWARD_SIBLINGS if self.siblings else ()
        axes += REVERSE if self.reverse else ()
        return axes + ([Axis.ATTRIBUTE] if self.attributes else [])

    @property
    def names_nodes(self) -> bool:
        return self.time or any(kind is not Kind.VARIABLE for kind in self.outputs)


def patterns(
    *,
    labels: Sequence[str] = ("a", "b", "c"),
    variables: Sequence[str] = ("x", "y"),
    texts: Sequence[str] = ("1", "2"),
    max_nodes: int = 6,
    disjunction: bool = True,
    negation: bool = True,
    time: bool = True,
    values: bool = True,
    constants: SearchStrategy[Constant] = SMALL_CONSTANTS,
    outputs: Sequence[Kind] = KINDS,
    attributes: bool = True,
    selves: bool = False,
    siblings: bool = False,
    reverse: bool = False,
    collect: bool = False,
) -> SearchStrategy[Pattern]:
    """Valid patterns of at most `max_nodes` nodes; without variables, pass `variables=()`.

    `values` are comparisons and text tests, with `texts` and `constants` to compare with; `selves`
    the axes self and descendant-or-self; `outputs` the kinds that may be returned (none: Boolean
    patterns only).
    """
    features = Features(
        labels,
        variables,
        texts,
        disjunction,
        negation,
        time,
        values,
        constants,
        outputs,
        attributes,
        selves,
        siblings,
        reverse,
        collect,
    )
    return _patterns(features, max_nodes)


@st.composite
def _patterns(draw: DrawFn, features: Features, max_nodes: int) -> Pattern:
    maker = _Maker(draw, features, left=draw(st.integers(1, max_nodes)))
    pattern = Pattern(maker.conjunction(at_root=True, enclosed=False))
    for variable in features.variables:
        pattern = _sound(pattern, variable)
    pattern = maker.with_constraints(pattern)
    pattern = maker.with_outputs(pattern)
    check(pattern)
    return pattern


@dataclass
class _Maker:
    draw: DrawFn
    features: Features
    left: int
    named: int = field(default=0)

    # branches

    def conjunction(self, *, at_root: bool, enclosed: bool) -> tuple[Branch, ...]:
        """One branch or more, of the nodes that are left; at least one must be."""
        branches = [self.branch(at_root, enclosed)]
        while self.left > 0 and self.draw(st.integers(0, 2)) > 1:
            branches.append(self.branch(at_root, enclosed))
        return tuple(branches)

    def branch(self, at_root: bool, enclosed: bool) -> Branch:
        kinds = ["node"] * 4
        if self.left > 1:
            kinds += ["or"] if self.features.disjunction else []
            kinds += ["not"] if self.features.negation else []
            kinds += ["collect"] if self.features.collect and not enclosed else []
        match self.draw(st.sampled_from(kinds)):
            case "or":
                return self.choice(at_root)
            case "not":
                return Not(self.conjunction(at_root=at_root, enclosed=True))
            case "collect":
                return Collect(self.node(at_root, enclosed=True))
        return self.node(at_root, enclosed)

    def choice(self, at_root: bool) -> Or:
        size = self.draw(st.integers(2, min(3, self.left)))
        self.left -= size  # each alternative has one node for itself
        inside = []
        for _ in range(size):
            self.left += 1
            inside.append(self.conjunction(at_root=at_root, enclosed=True))
        heads = [branches[0] for branches in inside]
        if self.features.names_nodes and self.draw(st.booleans()):
            name = self.fresh_name()
            if all(isinstance(head, PatternNode) for head in heads):
                inside = [(_named(branches[0], name), *branches[1:]) for branches in inside]
        return Or(tuple(inside))

    def node(self, at_root: bool, enclosed: bool) -> PatternNode:
        self.left -= 1
        axis = self.draw(st.sampled_from(DOWNWARD if at_root else self.features.axes))
        test = self.test(axis, at_root)
        name = None
        if self.features.names_nodes and self.draw(st.booleans()):
            name = self.fresh_name()
        comparisons = self.comparisons()
        branches: tuple[Branch, ...] = ()
        if not isinstance(test, Literal | AnyText) and self.left and self.draw(st.integers(0, 3)):
            branches = self.conjunction(at_root=False, enclosed=enclosed)
        return PatternNode(axis, test, name, comparisons, branches)

    def fresh_name(self) -> str:
        self.named += 1
        return f"t{self.named}"

    def test(self, axis: Axis, at_root: bool) -> Test:
        tests: list[Test] = [Name(label) for label in self.features.labels]
        tests.append(Wildcard())
        if axis is not Axis.ATTRIBUTE:
            tests += [Variable(variable) for variable in self.features.variables]
            if self.features.values and not at_root:  # a document has no text of its own
                tests += [AnyNode(), AnyText()]
                tests += [Literal(text) for text in self.features.texts]
        return self.draw(st.sampled_from(tests))

    def comparisons(self) -> tuple[Comparison, ...]:
        found: list[Comparison] = []
        while len(found) < 2 and self.draw(st.integers(0, 3)) == 3:
            if self.draw(st.booleans()) and self.features.variables:
                operator = self.draw(st.sampled_from(("=", "=", *OPERATORS)))
                variable = self.draw(st.sampled_from(self.features.variables))
                found.append(Comparison(operator, Variable(variable)))
            elif self.features.values:
                operator = self.draw(st.sampled_from(OPERATORS))
                found.append(Comparison(operator, self.constant()))
        return tuple(found)

    def constant(self) -> Constant:
        return self.draw(st.one_of(st.sampled_from(self.features.texts), self.features.constants))

    # constraints and outputs

    def with_constraints(self, pattern: Pattern) -> Pattern:
        names = sorted({name for branch in pattern.branches for name in names_of(branch)})
        variables = sorted({x for branch in pattern.branches for x in variables_of(branch)})
        for _ in range(self.draw(st.integers(0, 2))):
            constraint: Constraint | None = None
            if names and self.features.time and self.draw(st.booleans()):
                constraint = self.time_constraint(names)
            elif variables and self.features.values:
                constraint = self.value_constraint(variables)
            if constraint is not None:
                wider = replace(pattern, where=(*pattern.where, constraint))
                pattern = wider if _is_valid(wider) else pattern
        return pattern

    def time_constraint(self, names: Sequence[str]) -> Constraint:
        some = st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)
        terms = tuple((self.coefficient(), name) for name in self.draw(some))
        bound = st.one_of(
            st.integers(-5, 5).map(lambda seconds: seconds * 1_000_000),
            st.integers(-(10**9), 10**9),
        )
        return TimeConstraint(terms, self.draw(st.sampled_from(OPERATORS)), self.draw(bound))

    def coefficient(self) -> int:
        return self.draw(st.sampled_from((1, -1, 1, -1, 2, -3)))

    def value_constraint(self, variables: Sequence[str]) -> Constraint:
        left = Variable(self.draw(st.sampled_from(variables)))
        operator = self.draw(st.sampled_from(OPERATORS))
        if self.draw(st.booleans()):
            return ValueConstraint(left, operator, Variable(self.draw(st.sampled_from(variables))))
        return ValueConstraint(left, operator, self.constant())

    def with_outputs(self, pattern: Pattern) -> Pattern:
        names = bound_names(pattern.branches)
        for branch in _collects(pattern.branches):
            names |= bound_names((branch.node,))
        kinds = [kind for kind in self.features.outputs if kind is not Kind.VARIABLE]
        possible = [Output(kind, name) for name in sorted(names) for kind in kinds]
        if Kind.VARIABLE in self.features.outputs:
            variables = sorted(bound_variables(pattern.branches))
            possible += [Output(Kind.VARIABLE, variable) for variable in variables]
        if not possible:
            return pattern
        fewest = self.draw(st.sampled_from((0, 1, 1)))
        some = st.lists(st.sampled_from(possible), min_size=fewest, max_size=3, unique=True)
        outputs = [
            replace(output, alias=f"column {index}")
            if self.draw(st.integers(0, 5)) == 5
            else output
            for index, output in enumerate(self.draw(some))
        ]
        return replace(pattern, outputs=tuple(outputs))


def _named(branch: Branch, name: str) -> Branch:
    assert isinstance(branch, PatternNode)
    return replace(branch, name=name)


def _is_valid(pattern: Pattern) -> bool:
    try:
        check(pattern)
    except QueryError:
        return False
    return True


def _sound(pattern: Pattern, variable: str) -> Pattern:
    """The pattern without this variable, unless it is bound wherever it is needed.

    Whether it is does not depend on other variables, so they are left out of the question.
    """
    others = {x for branch in pattern.branches for x in variables_of(branch)} - {variable}
    alone = Pattern(tuple(_without(branch, others) for branch in pattern.branches))
    if _is_valid(alone):
        return pattern
    return Pattern(tuple(_without(branch, {variable}) for branch in pattern.branches))


def _without(branch: Branch, variables: set[str]) -> Branch:
    match branch:
        case PatternNode():
            return _node_without(branch, variables)
        case Or(alternatives=alternatives):
            return Or(
                tuple(tuple(_without(b, variables) for b in inside) for inside in alternatives)
            )
        case Not(branches=branches):
            return Not(tuple(_without(below, variables) for below in branches))
        case Collect(node=node):
            return Collect(_node_without(node, variables))


def _node_without(node: PatternNode, variables: set[str]) -> PatternNode:
    test = node.test
    return PatternNode(
        node.axis,
        Wildcard() if isinstance(test, Variable) and test.name in variables else test,
        node.name,
        tuple(
            comparison
            for comparison in node.comparisons
            if not (
                isinstance(comparison.operand, Variable) and comparison.operand.name in variables
            )
        ),
        tuple(_without(below, variables) for below in node.branches),
    )


def _collects(branches: Sequence[Branch]) -> list[Collect]:
    """The collects that stand outside `or` and `not`, where alone they may stand."""
    found = []
    for branch in branches:
        if isinstance(branch, Collect):
            found.append(branch)
        elif isinstance(branch, PatternNode):
            found += _collects(branch.branches)
    return found
