"""The validity of a pattern, and its normal form: every variable and constraint in its scope.

`check` enforces these rules for patterns of every language (docs/meaning.md, Rows):

- A name is declared once, or once in every alternative of one `or`, which then declares it.
- The home of a variable is the innermost scope that contains all its occurrences. It must be bound
  there: by `$x` or `= $x`, outside deeper `not`s, and inside an `or` only if all alternatives bind
  it. So a variable that occurs only in two `not`s is refused, and so is an output variable that
  only some alternatives bind. A variable of only some alternatives of an `or` is local to each.
- A constraint belongs to the innermost `not` that declares one of its names or variables. Its other
  names and variables must be visible there.
- Names inside a `not`, or in only some alternatives, are never output. Names inside `collect` can
  only be output.

`normalise` gives variables that are local to several alternatives different names (`x~1`, `x~2`)
and moves each constraint into its `not`. Law: `normalise(normalise(p)) == normalise(p)`. It does
not simplify patterns: satisfiability and containment belong to `future/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import count

from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.errors import Place, QueryError
from axlog.query.clock_terms import NOW
from axlog.query.pattern import (
    Branch,
    Collect,
    Comparison,
    Constraint,
    Kind,
    Not,
    Or,
    Pattern,
    PatternNode,
    TimeConstraint,
    ValueConstraint,
    Variable,
)
from axlog.query.positions import Places
from axlog.query.scopes import (
    Choice,
    Scope,
    ScopeKind,
    bound_names,
    bound_variables,
    exported_names,
    exported_variables,
    names_of,
    scope_of,
    variables_of,
)
from axlog.query.shape import MOST_NESTING, check_shape

__all__ = [
    "MOST_NESTING",
    "bound_names",
    "bound_variables",
    "check",
    "exported_names",
    "exported_variables",
    "names_of",
    "normalise",
    "variables_of",
]


def check(pattern: Pattern, places: Places | None = None, limits: Limits = DEFAULT_LIMITS) -> None:
    """Refuse an invalid pattern; errors point into its text if `places` has the offsets."""
    _Judgement(pattern, places or Places("")).judge(limits)


@lru_cache(maxsize=1024)
def normalise(pattern: Pattern) -> Pattern:
    """The checked pattern with local variables renamed and constraints in their scopes."""
    judgement = _Judgement(pattern, Places(""))
    judgement.judge(None)  # the size was checked when the pattern was made
    root = judgement.root
    if not any(scope.renames or scope.moved for scope in root.walk() if scope is not root):
        return pattern
    branches = _rebuilt(pattern.branches, iter(root.parts), {})
    return Pattern(branches, tuple(root.moved), pattern.outputs)


# The judgement ------------------------------------------------------------------------------------


class _Judgement:
    """The scopes of one pattern, and the home of each of its names and variables."""

    def __init__(self, pattern: Pattern, places: Places) -> None:
        self.pattern = pattern
        self.places = places
        self.name_homes: dict[str, Scope] = {}
        self.variable_homes: dict[str, list[Scope]] = {}
        self.output_variables = {out.of for out in pattern.outputs if out.kind is Kind.VARIABLE}

    def judge(self, limits: Limits | None) -> None:
        check_shape(self.pattern, self.places, limits)
        self.root = scope_of(self.pattern.branches)
        self._declare_names(self.root)
        self._check_outputs()
        self._settle(self.root, self.root.variables)
        for index, constraint in enumerate(self.pattern.where):
            home = self._home_of(constraint, self.root, self.places.constraint(index))
            home.moved.append(constraint)
        self._check_inner_constraints()

    # names

    def _declare_names(self, scope: Scope) -> tuple[set[str], set[str]]:
        """The names visible in a scope, and all names inside it; sets the home of each."""
        visible: set[str] = set()
        everything: set[str] = set()
        for name in scope.names:
            self._add({name}, everything)
            visible.add(name)
        for part in scope.parts:
            if isinstance(part, Scope):
                self._add(self._declare_names(part)[1], everything)
            else:
                exported, inside = self._declare_choice(part)
                self._add(inside, everything)
                visible |= exported
        for name in visible:
            self.name_homes[name] = scope  # enclosing scopes overwrite this later
        return visible, everything

    def _declare_choice(self, choice: Choice) -> tuple[set[str], set[str]]:
        declared = [self._declare_names(alternative) for alternative in choice.alternatives]
        exported = set.intersection(*(visible for visible, _ in declared))
        others: set[str] = set()
        for _, everything in declared:
            self._add(everything - exported, others)
        return exported, others | exported

    def _add(self, new: set[str], known: set[str]) -> None:
        for name in sorted(new & known):
            raise QueryError(
                "AX202",
                f"the name #{name} is declared twice",
                place=self.places.name(name),
                expected="one declaration, or one in every alternative of an `or`",
            )
        known |= new

    # variables

    def _settle(self, scope: Scope, variables: set[str]) -> None:
        """Find the homes of variables that occur only in this scope."""
        parts: dict[str, list[Scope | Choice]] = {}
        for part in scope.parts:
            for variable in part.variables & variables:
                parts.setdefault(variable, []).append(part)
        inner: dict[Scope | Choice, set[str]] = {}
        for variable in sorted(variables):
            within = parts.get(variable, [])
            if variable in scope.used or self._lives_here(variable, scope, within):
                self._bind(variable, scope, within)
            else:
                inner.setdefault(within[0], set()).add(variable)
        for part, below in inner.items():
            if isinstance(part, Scope):
                self._settle(part, below)
            else:
                self._settle_alternatives(part, below)

    def _lives_here(self, variable: str, scope: Scope, within: list[Scope | Choice]) -> bool:
        if len(within) > 1 or (isinstance(within[0], Choice) and variable in within[0].exported):
            return True
        return scope is self.root and variable in self.output_variables

    def _settle_alternatives(self, choice: Choice, variables: set[str]) -> None:
        for variable in sorted(variables):
            having = [scope for scope in choice.alternatives if variable in scope.variables]
            if len(having) > 1:
                for scope in having:
                    scope.renames[variable] = self._fresh(variable)
        for scope in choice.alternatives:
            self._settle(scope, variables & scope.variables)

    def _fresh(self, variable: str) -> str:
        taken = self.root.variables
        fresh = next(name for n in count(1) if (name := f"{variable}~{n}") not in taken)
        taken.add(fresh)
        return fresh

    def _bind(self, variable: str, scope: Scope, within: list[Scope | Choice]) -> None:
        self.variable_homes.setdefault(variable, []).append(scope)
        if variable in scope.surely:
            return
        raise QueryError(
            "AX204",
            _why_unbound(variable, scope, within),
            place=self.places.variable(variable),
            advice=f"bind it outside `not` and `or` by a step ${variable} or a path = ${variable}",
        )

    # outputs

    def _check_outputs(self) -> None:
        columns: set[str] = set()
        for index, output in enumerate(self.pattern.outputs):
            place = self.places.output(index)
            if output.column in columns:
                raise QueryError(
                    "AX202",
                    f"two outputs are called {output.column}",
                    place=place,
                    advice="give one of them another name with `as`",
                )
            columns.add(output.column)
            if output.kind is Kind.VARIABLE:
                self._check_variable_output(output.of, place)
            else:
                self._check_node_output(output.of, place)

    def _check_variable_output(self, variable: str, place: Place | None) -> None:
        if variable not in self.root.variables:
            raise _undeclared(f"${variable}", place)
        if variable in self.root.surely:
            return
        holding = [scope for scope in self.root.walk() if variable in scope.used]
        if all(_inside_not(scope) for scope in holding):
            raise _output_inside_not(f"${variable}", place)
        raise QueryError(
            "AX204",
            f"the output ${variable} does not have a value in every row",
            place=place,
            expected="a variable bound outside any `or`, or in all its alternatives",
        )

    def _check_node_output(self, name: str, place: Place | None) -> None:
        scope = self.name_homes.get(name)
        if scope is None:
            raise _undeclared(f"#{name}", place)
        if _inside_not(scope):
            raise _output_inside_not(f"#{name}", place)
        if scope.kind is ScopeKind.ALTERNATIVE:
            raise QueryError(
                "AX204",
                f"the output #{name} does not have a node in every row",
                place=place,
                expected="a name declared outside any `or`, or in all its alternatives",
            )

    # constraints

    def _home_of(self, constraint: Constraint, inside: Scope, place: Place | None) -> Scope:
        """The scope to which a constraint written `inside` a scope belongs: the root or a `not`."""
        words = _words_of(constraint)
        if f"#{NOW}" in words and NOW not in self.name_homes:
            words.remove(f"#{NOW}")  # the clock
        if not words:
            return self.root
        homes = [(word, self._home(word, inside, place)) for word in words]
        last, deepest = max(homes, key=lambda home: home[1].depth)
        for word, scope in homes:
            if not deepest.lies_in(scope):
                raise QueryError(
                    "AX204",
                    f"{word} is not visible where {last} is, in {deepest.kind.value}",
                    place=place,
                    expected="nodes and variables of one not(...) and of what is around it",
                )
            if scope.kind is ScopeKind.COLLECT:
                raise _not_once(word, scope, place)
        if deepest.kind is ScopeKind.ALTERNATIVE:
            raise _not_once(last, deepest, place)
        return deepest

    def _home(self, word: str, inside: Scope, place: Place | None) -> Scope:
        name = word[1:]
        if word.startswith("#"):
            homes = [self.name_homes[name]] if name in self.name_homes else []
        else:
            homes = self.variable_homes.get(name, [])
        if not homes:
            raise _undeclared(word, place)
        if len(homes) == 1:
            return homes[0]
        # A variable of several alternatives: only a constraint inside one of them can name it.
        for home in homes:
            if inside.lies_in(home):
                return home
        raise _not_once(word, homes[0], place)

    def _check_inner_constraints(self) -> None:
        for scope in self.root.walk():
            for constraint in scope.where:
                if self._home_of(constraint, scope, None) is not scope:
                    raise QueryError(
                        "AX204",
                        f"the constraint {constraint} does not belong to its not(...)",
                        expected="a constraint that names something declared directly inside",
                    )


def _inside_not(scope: Scope | None) -> bool:
    while scope is not None:
        if scope.kind is ScopeKind.NOT:
            return True
        scope = scope.above
    return False


def _undeclared(word: str, place: Place | None) -> QueryError:
    return QueryError(
        "AX203",
        f"{word} is used but never declared",
        place=place,
        advice=f"write {word} in the pattern"
        + (" right after the test of the node that it names" if word.startswith("#") else ""),
    )


def _output_inside_not(word: str, place: Place | None) -> QueryError:
    return QueryError(
        "AX205",
        f"{word} is declared inside not(...), so no row has a value for it",
        place=place,
        expected="an output declared outside of not(...)",
    )


def _not_once(word: str, scope: Scope, place: Place | None) -> QueryError:
    return QueryError(
        "AX204",
        f"{word} is declared in {scope.kind.value}, so a constraint cannot name it",
        place=place,
        expected="a node or variable that every match has once",
    )


def _words_of(constraint: Constraint) -> list[str]:
    if isinstance(constraint, TimeConstraint):
        return [f"#{name}" for _, name in constraint.terms]
    operands = (constraint.left, constraint.right)
    return [f"${operand.name}" for operand in operands if isinstance(operand, Variable)]


def _why_unbound(variable: str, scope: Scope, within: list[Scope | Choice]) -> str:
    alternatives = [a for part in within if isinstance(part, Choice) for a in part.alternatives]
    if any(variable in alternative.surely for alternative in alternatives):
        return f"${variable} is bound by only some alternatives of an `or`"
    if variable in scope.used:
        return f"${variable} is compared, but not bound there"
    return f"${variable} occurs in several parts of the query, but is not bound around them"


# Rebuilding ---------------------------------------------------------------------------------------


def _rebuilt(
    branches: tuple[Branch, ...], parts: Iterator[Scope | Choice], renames: Mapping[str, str]
) -> tuple[Branch, ...]:
    """The branches with variables renamed and constraints moved; `parts` are their scopes."""
    result: list[Branch] = []
    for branch in branches:
        if isinstance(branch, PatternNode):
            below = _rebuilt(branch.branches, parts, renames)
            result.append(_renamed(branch, below, renames))
            continue
        part = next(parts)
        if isinstance(branch, Or) and isinstance(part, Choice):
            alternatives = []
            for inside, scope in zip(branch.alternatives, part.alternatives, strict=True):
                inner = {**renames, **scope.renames}
                alternatives.append(_rebuilt(inside, iter(scope.parts), inner))
            result.append(Or(tuple(alternatives)))
        elif isinstance(branch, Not) and isinstance(part, Scope):
            kept = _rebuilt(branch.branches, iter(part.parts), renames)
            where = [_renamed_constraint(constraint, renames) for constraint in branch.where]
            result.append(Not(kept, (*where, *part.moved)))
        elif isinstance(branch, Collect) and isinstance(part, Scope):
            (node,) = _rebuilt((branch.node,), iter(part.parts), renames)
            assert isinstance(node, PatternNode)
            result.append(Collect(node))
    return tuple(result)


def _renamed(
    node: PatternNode, branches: tuple[Branch, ...], renames: Mapping[str, str]
) -> PatternNode:
    test = _renamed_variable(node.test, renames) if isinstance(node.test, Variable) else node.test
    comparisons = tuple(
        Comparison(comparison.operator, _renamed_variable(comparison.operand, renames))
        if isinstance(comparison.operand, Variable)
        else comparison
        for comparison in node.comparisons
    )
    return PatternNode(node.axis, test, node.name, comparisons, branches)


def _renamed_constraint(constraint: Constraint, renames: Mapping[str, str]) -> Constraint:
    if isinstance(constraint, TimeConstraint):
        return constraint
    right = constraint.right
    return ValueConstraint(
        _renamed_variable(constraint.left, renames),
        constraint.operator,
        _renamed_variable(right, renames) if isinstance(right, Variable) else right,
    )


def _renamed_variable(variable: Variable, renames: Mapping[str, str]) -> Variable:
    return Variable(renames.get(variable.name, variable.name))
