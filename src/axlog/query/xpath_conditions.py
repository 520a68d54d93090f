"""What XPath's predicates and XQuery's `where` mean: expressions to what must hold at a node.

An expression is true by its effective Boolean value: a path if it finds a node. `some $x in p
satisfies c` is `p[c]` with a name for the node; `every` is the absence of one that does not. What
an `or` or a `not` speaks of must be one node (besides the document), and it hangs there.
"""

from __future__ import annotations

from dataclasses import replace

from axlog.query.pattern import AnyNode
from axlog.query.syntax_tree import (
    Binary,
    Call,
    Constant,
    Expression,
    Path,
    Predicate,
    Quantified,
    Reference,
    Sequence,
    Step,
    operands,
)
from axlog.query.xpath_branches import Holder
from axlog.query.xpath_comparisons import Comparing
from axlog.query.xpath_paths import Found, Site, absent, either
from axlog.query.xpath_steps import DOCUMENT

BOOLEAN_CALLS = frozenset("boolean empty exists false not true".split())


def is_condition(expression: Expression) -> bool:
    """Whether an expression's value is a truth value."""
    match expression:
        case Binary(operator=operator):
            return operator != "|"
        case Call(name=name):
            return name in BOOLEAN_CALLS
    return isinstance(expression, Quantified)


class Conditions(Comparing):
    """All of it: paths, comparisons, conditions."""

    def condition(self, expression: Expression, site: Site) -> Found:
        match expression:
            case Binary(operator="and", left=left, right=right):
                first, second = self.condition(left, site), self.condition(right, site)
                return None if first is None or second is None else first + second
            case Binary(operator="or") | Call(name="not" | "empty"):
                return self._connective(expression, site)
            case Quantified(is_every=is_every):
                return (
                    self._connective(expression, site) if is_every else self._some(expression, site)
                )
            case Binary(operator="|") | Path() | Sequence():
                return self._nodes(expression, site)
            case Binary():
                return self.compare(expression, site)
            case Constant(value=value):
                return [] if value else None
            case Call():
                return self._call(expression, site)
        raise self.unsupported("this as a condition", expression.at)

    def _nodes(self, expression: Expression, site: Site) -> Found:
        match expression:
            case Path(start=Reference(name=name), steps=()) if name in self.variables.constants:
                return self.condition(self.variables.constants[name], site)
            case Path(steps=(*_, Call() as last)):
                raise self.unsupported(f"the function {last.name}() as a condition", last.at)
        return self.exists(self.spreading.trails(expression), site)

    def _call(self, call: Call, site: Site) -> Found:
        match call.name:
            case "true" | "false":
                self.arguments(call, 0)
                return [] if call.name == "true" else None
            case "boolean":
                (inside,) = self.arguments(call, 1)
                return self.condition(inside, site)
            case "exists" | "count":
                (inside,) = self.arguments(call, 1)
                return self.exists(self.spreading.trails(inside), site)
            case "string":
                return self.compare(Binary("!=", call, Constant("", call.at), call.at), site)
            case "doc" | "document" | "collection":
                return self.exists(self.spreading.trails(call), site)
        raise self.unsupported(f"{call.name}() as a condition", call.at)

    # connectives

    def _connective(self, expression: Expression, site: Site) -> Found:
        """An `or`, `not` or `every`, where what it speaks of is."""
        if site.lifted is None:
            return self._alone(expression, site)
        starts = self._starts(expression, site)
        names = starts - {"/", "."}
        if "." in starts:
            return self._alone(expression, site.alone)
        holder: Holder = site.lifted
        home = Site(DOCUMENT)
        if names:
            variable = self.node_variable(min(names), expression.at)
            holder, home = variable.node, Site(variable.spot, None, min(names))
        found = self._alone(expression, home)
        if found is None:
            return None
        holder.take(found)
        return []

    def _alone(self, expression: Expression, site: Site) -> Found:
        """A connective all of whose conditions hang here."""
        match expression:
            case Binary():
                sides = [self.condition(side, site) for side in operands(expression, "or")]
                return either([side for side in sides if side is not None], site)
            case Quantified(condition=condition, at=at):
                other = replace(expression, condition=Call("not", (condition,), at))
                return absent(self._some(other, site), site)
            case Call(name="empty"):
                (inside,) = self.arguments(expression, 1)
                return absent(self.exists(self.spreading.trails(inside), site), site)
            case Call():
                (inside,) = self.arguments(expression, 1)
                return absent(self.condition(inside, site), site)
        raise self.unsupported("this as a condition", expression.at)

    def _some(self, quantified: Quantified, site: Site) -> Found:
        predicate = Predicate(quantified.condition, quantified.variable)
        step = Step("self", AnyNode(), (predicate,), quantified.at, is_filter=True)
        trails = self.spreading.trails(quantified.source)
        return self.exists([replace(t, steps=(*t.steps, step)) for t in trails], site)

    def _starts(self, expression: Expression, site: Site) -> set[str]:
        """Where the paths of a connective start: `.` here, `/` the document, else variables."""
        match expression:
            case Path(start=Reference(name=name), steps=()) if (
                name in self.variables.constants or name in self.variables.values
            ):
                return set()
            case Binary(operator="|") | Path():
                trails = self.trails_of_values(expression)
                return {self.start_of(trail, site) for trail in trails}
            case Binary(left=left, right=right):
                return self._starts(left, site) | self._starts(right, site)
            case Sequence(items=items):
                return set[str]().union(*(self._starts(item, site) for item in items))
            case Call(name="doc" | "document" | "collection"):
                return {"/"}
            case Call(name="string" | "number", arguments=()):
                return {"."}
            case Call(arguments=arguments):
                return set[str]().union(*(self._starts(each, site) for each in arguments))
            case Quantified(source=source, condition=condition, variable=variable):
                inner = self._starts(condition, site) - {variable}
                return self._starts(source, site) | inner
        return set()
