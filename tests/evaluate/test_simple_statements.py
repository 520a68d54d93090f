"""Statements without an evaluator, against the same statements with one."""

from random import Random
from typing import Any

import pytest

from axlog.document.loader import load
from axlog.document.tree import Tree
from axlog.document.value_index import ValueIndex
from axlog.errors import AxlogError
from axlog.evaluate import simple_statements, statements
from axlog.evaluate.simple_statements import simple_of
from axlog.evaluate.statements import operations_of
from axlog.query.syntax_tree import Statement
from axlog.query.update_parser import parse_statements
from tests.amounts import cases

DOCUMENTS = (
    "<r><a k='1'>x</a><b><a k='2'/><c>1</c></b></r>",
    "<r><b/><!-- c --><a k='1'><b><a/></b></a></r>",
    "<a/>",
)
PATHS = (
    "/r/a", "//a", "//a[@k = '1']", "//a[@k = $v]", "/r/b/c", "/r", "//none", "/", "//a/@k",
    "//text()", "//comment()", "//a[1]", "(//a)[1]", "$d//a", "doc('x')//a", "//*[a]", "//a/..",
    "//a[. = $w]", "//a[$w]", "id('x')",
)  # fmt: skip
CONTENTS = (
    "<n/>", "<n k='1'>t<m/></n>", "<n>{1}</n>", "attribute k {'1'}", "'text'", "(<n/>, <m/>)", "()",
    "<n>{$v}</n>", "<p:n xmlns:p='urn:p' p:k='1'/>", "//c", "<n k='1' k='2'/>",
)  # fmt: skip
UPDATES = (
    "delete node {path}", "delete nodes {path}", "insert node {content} into {path}",
    "insert nodes {content} as first into {path}", "insert node {content} as last into {path}",
    "insert node {content} before {path}", "insert {content} into {path}", "delete {path}",
    "for $x in {path} return insert node {content} into $x",
    "for $x in {path} return delete node $x",
    "for $x in {path} where $x/@k return delete nodes $x/b",
    "let $d := doc('y') for $x in {path} return insert node {content} as first into $x",
    "let $d := /r/b for $x in {path} return delete node $x",
    "let $d := doc('y') return delete nodes {path}", "rename node {path} as 'z'",
    "replace value of node {path} with '1'", "delete nodes {path}, insert node {content} into /*",
)  # fmt: skip
VARIABLES: tuple[dict[str, Any] | None, ...] = (
    None, {"v": "1"}, {"v": "1", "w": ""}, {"v": 1, "w": "x"}, {"v": ["1", "2"], "w": "1"},
    {"d": "1"},
)  # fmt: skip


def outcome(
    tree: Tree, statement: Statement, index: ValueIndex | None, variables: dict[str, Any] | None
) -> object:
    """The operations, each with its content as it is written, or the code of the error."""
    try:
        found = operations_of(tree, statement, index, variables)
    except AxlogError as error:
        return error.code
    return type(found), [
        (type(each), each.target, getattr(each, "where", None), _written(each)) for each in found
    ]


def _written(operation: object) -> list[object]:
    pieces: list[Any] = list(getattr(operation, "content", ()))
    return [piece if not hasattr(piece, "iter") else _shape(piece) for piece in pieces]


def _shape(piece: Any) -> object:
    return [(each.tag, dict(each.attrib), each.text, each.tail) for each in piece.iter()]


@pytest.mark.parametrize("start", [0, 1])
def test_differential_without_an_evaluator(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random, simple, seen = Random(f"simple:{start}"), 0, 0
    trees = [load(text) for text in DOCUMENTS]
    for _ in range(cases(600)):
        text = random.choice(UPDATES).format(
            path=random.choice(PATHS), content=random.choice(CONTENTS)
        )
        try:
            (statement,) = parse_statements(text, {})
        except AxlogError:
            continue
        tree, variables = random.choice(trees), random.choice(VARIABLES)
        index = random.choice((None, ValueIndex(tree)))
        seen += 1
        found = simple_of(statement, tree)
        is_handled = found is not None and _operations(found, tree, index, variables)
        simple += is_handled
        got = [outcome(tree, statement, index, variables) for _ in range(2)]
        with monkeypatch.context() as patched:
            patched.setattr(statements, "simple_of", lambda *given: None)
            assert got == [outcome(tree, statement, index, variables)] * 2, (text, variables)
    assert simple > cases(600) // 12
    assert simple < seen * 3 // 4


def _operations(
    found: simple_statements.SimpleStatement,
    tree: Tree,
    index: ValueIndex | None,
    variables: dict[str, Any] | None,
) -> bool:
    return found.operations(tree, index, variables) is not None
