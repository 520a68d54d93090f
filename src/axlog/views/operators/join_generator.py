"""Generated joins: one term of a relation's delta rule as straight-line Python.

    ΔR = ΔL_i ⋈ own ⋈ L_1 ⋈ ... (without i) ⋈ L_k   where tests, projected

The code is written from the `Term` that the interpreter in `join.py` uses, and it looks up the same
tables. The order of the parts, the keys and the places of the tests are therefore the same. Joins
with many parts, or with several products, are left to the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from axlog.errors import QueryError
from axlog.evaluate.generated_code import function_of
from axlog.evaluate.joins import Row, make_check
from axlog.evaluate.work import Meter
from axlog.match.matcher_generator import Answers, Sink
from axlog.query.compile import Column, Relation, Test
from axlog.query.pattern import TimeConstraint
from axlog.views.operators.join import Join, JoinRule, Step, Term
from axlog.views.operators.table import Table

if TYPE_CHECKING:
    from axlog.views.counting.join_prospects import Watch

Keeper: TypeAlias = Callable[[Row, int], None]
"""Keeps a row of a join, with its count."""

MOST_LOOPS = 15
"""The largest number of parts with a loop in generated code: Python nests twenty."""
MOST_PARTS = 40
"""The largest number of parts in generated code: each is a block, and Python nests a hundred."""
MOST_PRODUCTS = 1
"""The largest number of parts that share no column with the others: generated code does not count
the rows that it joins."""


def can_generate(rule: JoinRule, tables: Sequence[Table]) -> bool:
    """Whether code can be generated for a join: it must not have too many parts."""
    parts = rule.plan.parts
    if sum(map(bool, parts)) > MOST_PARTS:
        return False
    is_plain = all(table.is_plain for table in tables)
    for term in map(rule.term, range(len(parts))):
        looked = [step for step in term.steps if parts[step.part]]
        loops = sum(not (is_plain and _names_row(step, parts[step.part])) for step in looked)
        if loops > MOST_LOOPS or term.products > MOST_PRODUCTS:
            return False
    return True


Scale: TypeAlias = Callable[[Answers, int, int], bool]
"""Multiplies the counts of all joined rows, if it can: the answers, the count before and after."""


def generate_sink(
    join: Join,
    part: int,
    then: Sink,
    scale: Scale | None = None,
    root: Relation | None = None,
) -> tuple[Sink, str]:
    """A sink for rows of one part of a join, with its source; joined rows go to `then`.

    `scale` is used for a part without columns, whose count is a factor of every joined row. With
    `root`, `then` adds rows to the answers of that relation; the sink does it itself.
    """
    writer = _SinkWriter(join.rule.term(part), part, join.rule.meter, root is not None)
    scope: dict[str, object] = {
        "root": root,
        "then": then,
        "own": join.own,
        "read": join.rule.meter.read,
        "note": join.rule.note,
        "QueryError": QueryError,
    }
    keeps = join.waiting is None or join.waiting.keeper(part) is None
    if scale is not None and keeps and not join.rule.plan.parts[part]:
        scope["scale"] = scale
    source = writer.function(join.kept, join.waiting, scope)
    return function_of("sink", source, scope), source


class _SinkWriter:
    """Writes the code of one sink."""

    def __init__(self, term: Term, number: int, meter: Meter, answers: bool) -> None:
        """`answers`: joined rows are added to the answers of the relation `root`."""
        self.term = term
        self.answers = answers
        self.meter = meter
        self.relation = term.plan.relation
        self.number = number
        self.lines: list[str] = []
        self.keys: dict[str, str] = {}  # tuples of the row's values, and their names in the code

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def function(self, tables: list[Table], waiting: Watch | None, scope: dict[str, object]) -> str:
        name, number = self.relation.name, self.number + 1
        self.line(0, f"def sink(row, count, answers):  # {name}, part {number}")
        at = len(self.lines)
        if waiting is not None and isinstance(waiting.brief, list):
            scope |= {"brief": waiting.brief, "settle": waiting.settle}
            self.line(1, "if brief:")
            self.line(2, "settle()")
        if "scale" in scope and tables:
            self._scale(tables[self.number], scope)
        self.line(1, "try:")
        self._join(tables, scope)
        self.line(1, "except QueryError as error:  # over budget: the relation is set aside")
        self.line(2, "note(error)")
        keeper = None if waiting is None else waiting.keeper(self.number)
        if waiting is None or keeper is None:
            if tables:
                self._keep(tables[self.number], scope)
        else:
            self._wait(tables, waiting, keeper, scope)
        self.lines[at:at] = [f"    {name} = {value}" for value, name in self.keys.items()]
        return "\n".join(self.lines) + "\n"

    def _wait(
        self, tables: list[Table], waiting: Watch, keeper: Keeper, scope: dict[str, object]
    ) -> None:
        """Keep the row as long as a proof allows."""
        if not waiting.drops:
            self._keep(tables[self.number], scope)
        if waiting.keeps_none(self.number):
            waiting.passes_by = True
            return
        code = waiting.keep_code(self.number, scope, self._key)
        if code is None:
            scope["keep"] = keeper
            self.line(1, "keep(row, count)")
            return
        for line in code:
            self.line(1, line)
        self._keep(tables[self.number], scope)

    def _scale(self, table: Table, scope: dict[str, object]) -> None:
        """Multiply the counts of the joined rows, if the factor was and stays positive."""
        scope["factor"] = table.index(table.keys()[0])
        self.line(1, "known = factor.get(())")
        self.line(1, "if type(known) is tuple and known[1] > 0 and known[1] + count > 0:")
        self.line(2, "if scale(answers, known[1], known[1] + count):")
        start = len(self.lines)
        self._keep(table, scope)
        self.lines[start:] = ["        " + line for line in self.lines[start:]]
        self.line(3, "return")

    def _join(self, tables: list[Table], scope: dict[str, object]) -> None:
        """The loops of the join, in the order of the term's steps."""
        term, parts = self.term, self.term.plan.parts
        own = list(dict.fromkeys(term.plan.own))
        where = {column: f"row[{i}]" for i, column in enumerate(term.columns)}
        conditions = [f"{where[c]} == own[{i}]" for i, c in enumerate(own) if c in where]
        where.update({c: f"own[{i}]" for i, c in enumerate(own) if c not in where})
        counts = ["count"]
        for at, step in enumerate(term.steps):
            scope[f"index{at}"] = tables[step.part].index(step.meeting.positions)
            if not parts[step.part]:  # no columns: the part only multiplies the count
                self.line(2, f"scale{at} = index{at}.get(())")
                conditions.append(f"scale{at}")
                counts.append(f"scale{at}[1]")
        conditions += [_condition(test, where, scope) for test in term.first_tests]
        depth = self._open_if(2, conditions)
        for at, step in enumerate(term.steps):
            columns = parts[step.part]
            if not columns:
                continue
            if step.range is not None:
                scope[f"find{at}"] = tables[step.part].finder(step.range, self.meter)
                self.line(depth, f"if index{at}:")
                counts.append(f"count{at}")
                pairs = f"find{at}({where[step.range.column]})"
            else:
                key = self._tuple([where[columns[i]] for i in step.meeting.positions])
                self.line(depth, f"found = index{at}.get({key})")
                self.line(depth, "if found is not None:")
                counts.append(f"count{at}")
                if tables[step.part].is_plain and _names_row(step, columns):
                    self.line(depth + 1, f"count{at} = found[1]")
                    tests = [_condition(test, where, scope) for test in step.tests]
                    depth = self._open_if(depth + 1, tests)
                    continue
                pairs = "read(found) if type(found) is dict else (found,)"
            self.line(depth + 1, f"for row{at}, count{at} in {pairs}:")
            for i, column in enumerate(columns):
                where.setdefault(column, f"row{at}[{i}]")
            tests = [_condition(test, where, scope) for test in step.tests]
            depth = self._open_if(depth + 2, tests)
        shown = self._tuple([where[column] for column in self.term.schema])
        if not self.answers:
            self.line(depth, f"then({shown}, {' * '.join(counts)}, answers)")
            return
        self.line(depth, "known = answers.get(root)")
        self.line(depth, "if known is None:")
        self.line(depth + 1, f"answers[root] = {{{shown}: {' * '.join(counts)}}}")
        self.line(depth, "else:")
        self.line(depth + 1, f"total = known.get({shown}, 0) + {' * '.join(counts)}")
        self.line(depth + 1, "if total:")
        self.line(depth + 2, f"known[{shown}] = total")
        self.line(depth + 1, "else:")
        self.line(depth + 2, f"del known[{shown}]")

    def _open_if(self, depth: int, conditions: list[str]) -> int:
        """Write an `if` for the conditions, if there are any; the depth of the code inside."""
        if not conditions:
            return depth
        self.line(depth, f"if {' and '.join(conditions)}:")
        return depth + 1

    def _keep(self, table: Table, scope: dict[str, object]) -> None:
        """Add the row to its own table."""
        scope["put"] = table.put
        for at, positions in enumerate(table.keys()):
            scope[f"kept{at}"] = table.index(positions)
            key = self._key(positions)
            if table.is_ranged:
                self.line(1, f"put(kept{at}, {key}, row, count)")
                continue
            if table.is_plain and positions == tuple(range(len(self.term.columns))):
                self.line(1, f"known = kept{at}.get(row)")  # a bucket has one row
                self.line(1, "if known is None:")
                self.line(2, f"kept{at}[row] = (row, count)")
                self.line(1, "elif known[1] + count:")
                self.line(2, f"kept{at}[row] = (known[0], known[1] + count)")
                self.line(1, "else:")
                self.line(2, f"del kept{at}[row]")
                continue
            self.line(1, f"known = kept{at}.get({key})")
            self.line(1, "if known is None:")
            self.line(2, f"kept{at}[{key}] = (row, count)")
            if table.is_plain:
                self.line(1, "elif type(known) is dict and known.get(row, 0) + count:")
                self.line(2, "known[row] = known.get(row, 0) + count")
            self.line(1, "else:")
            self.line(2, f"put(kept{at}, {key}, row, count)")

    def _key(self, positions: Sequence[int]) -> str:
        """The values of the row at some positions, as a tuple."""
        return self._tuple([f"row[{i}]" for i in positions])

    def _tuple(self, values: list[str]) -> str:
        """A tuple of these values; built once, or the row itself, if it uses the row alone."""
        if values == [f"row[{i}]" for i in range(len(self.term.columns))]:
            return "row"
        made = f"({''.join(value + ', ' for value in values)})"
        if values and all(value.startswith("row[") for value in values):
            return self.keys.setdefault(made, f"key{len(self.keys)}")
        return made


def _names_row(step: Step, columns: Sequence[Column]) -> bool:
    """Whether a part is looked up by all its columns: then it has one row with these values."""
    return step.range is None and len(set(step.meeting.positions)) == len(columns)


def _condition(test: Test, where: dict[Column, str], constants: dict[str, object]) -> str:
    """A test as an expression; functions that it calls are added to the constants."""
    constraint = test.constraint
    if isinstance(constraint, TimeConstraint):
        terms = " + ".join(
            f"{coefficient} * {where[column]}"
            for (coefficient, _), column in zip(constraint.terms, test.columns, strict=True)
        )
        symbol = "==" if constraint.operator == "=" else constraint.operator
        return f"{terms} {symbol} {constraint.bound}"
    name = f"TEST_{len(constants)}"
    constants[name] = make_check(test, test.columns)
    return f"{name}(({''.join(where[column] + ', ' for column in test.columns)}))"
