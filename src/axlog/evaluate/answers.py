"""The rows of a pattern on a document, or on one subtree as a document; no state is kept."""

from __future__ import annotations

from functools import lru_cache

from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.errors import UnsupportedError
from axlog.evaluate.interpreter import Interpreter
from axlog.evaluate.joins import Bag
from axlog.query.compile import Program, compile_pattern
from axlog.query.pattern import Kind, Pattern


@lru_cache(maxsize=256)
def _compiled(pattern: Pattern) -> tuple[Program, Interpreter]:
    program = compile_pattern(pattern)
    if program.refusal is not None:
        raise UnsupportedError("AX211", f"the pattern cannot be used here: {program.refusal}")
    return program, Interpreter(program.relations)


def answers(tree: Tree, pattern: Pattern, top: int = DOCUMENT_NODE) -> Bag:
    """The rows of a pattern's outputs with their counts; nodes as handles."""
    program, interpreter = _compiled(pattern)
    tops = tree.children(top) if top == DOCUMENT_NODE else [top]
    return interpreter.rows(program.root, (), interpreter.gathered(tree, tops), {})


def holds(tree: Tree, pattern: Pattern, top: int = DOCUMENT_NODE) -> bool:
    """Whether a pattern has a row."""
    return bool(answers(tree, pattern, top))


def selected(tree: Tree, pattern: Pattern) -> list[int]:
    """The nodes that a pattern with one node as output selects, in document order."""
    nodes = [output for output in pattern.outputs if output.kind is not Kind.VARIABLE]
    if len({output.of for output in nodes}) != 1 or len(nodes) != len(pattern.outputs):
        raise UnsupportedError(
            "AX211",
            "the pattern does not select nodes",
            advice="use an XPath such as //person[phone], or return one node: `return t.id`",
        )
    found = answers(tree, pattern)
    column = compile_pattern(pattern).root.columns.index(f"{nodes[0].of}.node")
    return sorted({int(row[column]) for row in found}, key=tree.id)
