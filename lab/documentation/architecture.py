"""The picture of the packages and their imports, drawn from the source.

`make docs` writes it to `docs/figures/imports.svg`.

An arc diagram: packages from the lowest layer at the bottom to the command line at the top, and an
arc for every import between two packages that does not follow from others. All arcs point down;
`tests/test_layers.py` keeps it so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from html import escape
from pathlib import Path

import axlog

SOURCE = Path(axlog.__file__).parent
_ROW, _LEFT, _WIDTH, _HEIGHT = 34, 40, 150, 24


def packages() -> dict[str, str]:
    """Every package with the first line of its docstring."""
    return {
        path.parent.name: _first_line(path)
        for path in sorted(SOURCE.glob("*/__init__.py"))
        if path.parent.name != "__pycache__"
    }


def _first_line(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n")[0]


def imports() -> dict[str, set[str]]:
    """For each package, the other packages that its modules import."""
    known = packages()
    found: dict[str, set[str]] = {}
    for name in known:
        targets = {
            target
            for path in (SOURCE / name).rglob("*.py")
            for target in _imported(ast.parse(path.read_text(encoding="utf-8")))
        }
        found[name] = (targets & known.keys()) - {name}
    return found


def _imported(tree: ast.AST) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("axlog."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.ImportFrom) and node.module == "axlog":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (
                alias.name.split(".")[1] for alias in node.names if alias.name.startswith("axlog.")
            )


def ordered(graph: dict[str, set[str]]) -> list[str]:
    """The packages so that each comes after all that it imports; ties by name."""
    order: list[str] = []
    while len(order) < len(graph):
        ready = [name for name in sorted(graph) if name not in order and graph[name] <= set(order)]
        if not ready:
            raise ValueError("the packages import each other in a cycle")
        order.append(ready[0])
    return order


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The imports without those that follow from others."""
    reach: dict[str, set[str]] = {}
    for name in ordered(graph):
        reach[name] = graph[name].union(*(reach[below] for below in graph[name]))
    return {
        name: {
            below
            for below in targets
            if not any(below in reach[other] for other in targets if other != below)
        }
        for name, targets in graph.items()
    }


def picture() -> str:
    """The arc diagram as SVG."""
    graph = imports()
    order = ordered(graph)
    height = _ROW * len(order) + 20
    middle = {name: height - 10 - _ROW * at - _ROW // 2 for at, name in enumerate(order)}
    said = packages()
    right = _LEFT + _WIDTH
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 {height}" '
        'font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for name, targets in reduced(graph).items():
        for below in sorted(targets):
            top, bottom = middle[name], middle[below]
            bend = right + 12 + (bottom - top) * 0.28
            parts.append(
                f'<path d="M {right} {top} C {bend:.0f} {top}, {bend:.0f} {bottom}, '
                f'{right} {bottom}" fill="none" stroke="#5b7fa6" stroke-opacity="0.7"/>'
            )
    for name in order:
        y = middle[name]
        parts.append(
            f'<rect x="{_LEFT}" y="{y - _HEIGHT // 2}" width="{_WIDTH}" height="{_HEIGHT}" rx="4" '
            f'fill="#eef3f8" stroke="#5b7fa6"/>'
            f'<text x="{_LEFT + 10}" y="{y + 5}" font-weight="bold">{escape(name)}</text>'
            f'<text x="{right + 110}" y="{y + 5}" fill="#444444">{escape(said[name])}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"
