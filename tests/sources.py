"""What the modules of the repository import, define and use, each parsed once."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Module:
    """What the tests ask of a module; its tree is not kept."""

    imports: tuple[ast.Import | ast.ImportFrom, ...]
    private_definitions: frozenset[str]
    """The private names that the module, its classes and their instances define."""
    private_accesses: tuple[tuple[int, str], ...]
    """Line and name of every private attribute of anything but `self` and `cls`."""
    code_lines: int
    """The lines outside of docstrings: explaining more is not a reason to split."""
    has_docstring: bool


@cache
def parsed(text: str) -> Module:
    """Parse a module and walk it once."""
    tree = ast.parse(text)
    imports: list[ast.Import | ast.ImportFrom] = []
    definitions: set[str] = set()
    accesses: list[tuple[int, str]] = []
    explained = 0
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED):
            explained += _docstring_lines(node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and not is_own(node.value):
            accesses.append((node.lineno, node.attr))
        definitions.update(name for name in _defined(node) if is_private(name))
    return Module(
        imports=tuple(imports),
        private_definitions=frozenset(definitions),
        private_accesses=tuple(accesses),
        code_lines=len(text.splitlines()) - explained,
        has_docstring=bool(ast.get_docstring(tree)),
    )


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def is_own(node: ast.expr) -> bool:
    """Whether an expression is `self` or `cls`."""
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _defined(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Name(ctx=ast.Store()):
            yield node.id
        case ast.Attribute(ctx=ast.Store()) if is_own(node.value):
            yield node.attr
        case ast.Assign(targets=[ast.Name(id="__slots__")], value=ast.Tuple(elts=slots)):
            yield from (str(slot.value) for slot in slots if isinstance(slot, ast.Constant))


def _docstring_lines(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
) -> int:
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return (first.end_lineno or first.lineno) - first.lineno + 1
    return 0
