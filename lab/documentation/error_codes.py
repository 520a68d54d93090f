"""The page of error codes: the one table of `errors.py`, and which class each code is raised as.

The classes are read from the package's own source: every call that makes an error names its code.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import axlog
from axlog import errors

_HEAD = """# Error codes

Made by `make docs` from `axlog.errors`, the one table of codes.

Every error of axlog is an `axlog.AxlogError` with a `code` that does not change, and says what is
wrong, where (line, column and the text, or view and message), what was expected and what to try:

```pycon
>>> import axlog
>>> try:
...     axlog.parse("<a><b/></a>").watch("match /a[b return $x")
... except axlog.AxlogError as error:
...     print(error)
...     print(type(error).__name__, error.code, isinstance(error, ValueError))
AX201: unexpected `return` (line 1, column 12)
    match /a[b return $x
               ^
expected: a node name `#t`, a comparison, `/`, `[`, `]`, `and` or `or`
QuerySyntaxError AX201 True
```

Commands write the same on standard error and end with exit code 2; servers answer with problem
details (RFC 9457) whose `code` it is; pipelines put it into `error` of a dead letter. An update or
message that is refused has changed nothing.

## The classes

Each also is the built-in error that a caller would expect, in brackets.
"""


def page() -> str:
    """The whole page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    tree = (errors.__doc__ or "").split("\n\n")[1]
    yield from ("```text", inspect.cleandoc(tree), "```")
    raised = classes()
    for title, codes in _groups():
        yield from ("", f"## {title[0].upper()}{title[1:]}", "")
        yield from ("| code | what is wrong | raised as |", "|---|---|---|")
        for code in codes:
            names = ", ".join(f"`{name}`" for name in sorted(raised[code]))
            if not names:
                raise ValueError(f"{code} is in the table, but nothing raises it")
            yield f"| {code} | {errors.CODES[code]} | {names} |"


def _groups() -> list[tuple[str, list[str]]]:
    """The codes below the headings that the table has as comments."""
    groups: list[tuple[str, list[str]]] = []
    for line in inspect.getsource(errors).splitlines():
        title = re.fullmatch(r"    # (.+)", line)
        code = re.match(r'    "(\w+)": ', line)
        if title is not None:
            groups.append((title[1], []))
        elif code is not None and groups:
            groups[-1][1].append(code[1])
    return [(title, codes) for title, codes in groups if codes]


@cache
def classes() -> dict[str, frozenset[str]]:
    """For each code the classes that it is raised as, somewhere in the package.

    Where a code is passed on before the error is made, these are the classes that its module makes
    of codes that it is given.
    """
    found: dict[str, set[str]] = {}
    passed: dict[str, set[str]] = {}
    for path in sorted(Path(axlog.__file__).parent.rglob("*.py")):
        if path.name != "errors.py":
            _read(ast.parse(path.read_text(encoding="utf-8")), found, passed)
    nothing: set[str] = set()
    return {code: frozenset(found.get(code) or passed.get(code, nothing)) for code in errors.CODES}


def _read(module: ast.Module, found: dict[str, set[str]], passed: dict[str, set[str]]) -> None:
    makers: set[str] = set()
    mentioned: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and node.value in errors.CODES:
            mentioned.add(str(node.value))
        if not isinstance(node, ast.Call) or not node.args or not _makes_error(node.func):
            continue
        name, first = ast.unparse(node.func), node.args[0]
        if isinstance(first, ast.Constant):
            found.setdefault(str(first.value), set()).add(name)
        else:
            makers.add(name)
    for code in mentioned:
        passed.setdefault(code, set()).update(makers)


def _makes_error(function: ast.expr) -> bool:
    found = getattr(errors, function.id, None) if isinstance(function, ast.Name) else None
    return isinstance(found, type) and issubclass(found, errors.AxlogError)
