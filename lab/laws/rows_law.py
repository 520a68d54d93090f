"""The evaluators agree with the definitions: the interpreter, the columns, the datalog program.

    reference.rows(document, pattern)                       the definition (paper 3)
        ==  the datalog program under integers              lab/datalog
        ==  the bottom-up interpreter                       evaluate/answers.py
        ==  the columnar selection, where it covers         evaluate/select.py
        ==  the algebra's whole view, where it covers       views/algebraic/whole.py

Documents are changed by random updates before they are queried, so that handles are reused and
siblings have components beyond one integer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from axlog.document import pending
from axlog.document.ids import Id
from axlog.document.loader import load
from axlog.document.tree import Tree
from axlog.document.value_index import ValueIndex
from axlog.errors import AxlogError
from axlog.evaluate.answers import answers
from axlog.evaluate.select import covers, select
from axlog.query.compile import compile_pattern
from axlog.query.pattern import Kind, Output, Pattern
from axlog.query.rules import output_columns, rules_of
from axlog.views.algebraic.maintainer import Algebraic
from lab.datalog.annotations import INTEGERS
from lab.datalog.evaluate import evaluate
from lab.datalog.magic import folded, magic
from lab.laws import small_cases
from lab.laws.small_cases import DOWNWARD, Features
from lab.reference import rows

_STRINGS = replace(DOWNWARD, outputs=(Kind.VARIABLE, Kind.LABEL, Kind.TIME), collects=False)
_NODES = Features(times=False, collects=False, outputs=(Kind.ID,), siblings=True, reverse=True)


@dataclass(frozen=True, slots=True)
class RowsCase:
    """A document, the seed of its updates, and a pattern."""

    document: str
    seed: int
    updates: int
    pattern: Pattern


def make_rows_case(random: Random) -> RowsCase:
    """A random case: rows of strings with their counts, or selected nodes."""
    text = small_cases.document(random, random.choice((6, 12, 20)))
    features = _STRINGS if random.random() < 0.6 else _NODES
    made = small_cases.pattern(random, features)
    if features is _NODES:
        names = sorted(output.of for output in made.outputs)
        made = replace(made, outputs=(Output(Kind.ID, names[0]),) if names else ())
    return RowsCase(text, random.getrandbits(32), random.randrange(3), made)


def _living(case: RowsCase) -> Tree:
    random, tree = Random(case.seed), load(case.document)
    for _ in range(case.updates):
        try:
            pending.apply(tree, small_cases.operations(random, tree))
        except AxlogError:
            continue
    return tree


def check_rows(case: RowsCase) -> None:
    """All evaluators that support the pattern find the rows of the definitions."""
    tree, pattern = _living(case), case.pattern
    defined = rows(tree, pattern)
    wanted: dict[tuple[object, ...], int] = {a.values: a.count for a in defined.values()}
    _check_algebra(tree, pattern, wanted)
    if any(output.kind is Kind.ID for output in pattern.outputs):
        nodes = sorted(key[0] for key in defined if isinstance(key[0], Id))
        if covers(pattern) is not None:
            return
        for index in (None, ValueIndex(tree)):
            selected = [tree.id(node) for node in select(tree, pattern, index)]
            how = "by arrays" if index is None else "by an index"
            _same(f"the nodes selected {how}", selected, nodes)
        return
    program = compile_pattern(pattern)
    if program.refusal is not None:
        return
    found = _shown(pattern, program.root.columns, answers(tree, pattern))
    _same("the interpreter's rows", found, wanted)
    rules, columns = rules_of(program), output_columns(program)
    counted = evaluate(rules, tree, INTEGERS)
    _same("the program's rows", _shown(pattern, columns, counted), wanted)
    _same("the rewritten program's rows", evaluate(folded(magic(rules)), tree, INTEGERS), counted)


def _check_algebra(tree: Tree, pattern: Pattern, wanted: Mapping[tuple[object, ...], int]) -> None:
    if Algebraic.refusal(pattern) is None:
        found = {row.values_: row.count for row in Algebraic(tree, pattern).rows()}
        _same("the algebra's rows", found, wanted)


def _shown(
    pattern: Pattern, columns: Sequence[str], counted: Mapping[tuple[Any, ...], int]
) -> dict[tuple[object, ...], int]:
    """Rows by their outputs: variables, labels and times are in the columns."""
    found: Counter[tuple[object, ...]] = Counter()
    at = {name: number for number, name in enumerate(columns)}
    for row, count in counted.items():
        found[tuple(row[at[_column(output)]] for output in pattern.outputs)] += count
    return dict(found)


def _column(output: Output) -> str:
    return f"${output.of}" if output.kind is Kind.VARIABLE else f"{output.of}.{output.kind.value}"


def smaller_rows(case: RowsCase) -> Iterator[RowsCase]:
    """The case with fewer updates."""
    for fewer in range(case.updates):
        yield replace(case, updates=fewer)


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: found {found}, wanted {wanted}")
