"""Fixture files: a document, queries, updates and their changes, as plain text.

    A sentence that describes the file.

    == document
    <a><b/></a>
    == query
    match //b#t return t.id
    == rows
    {"row": {"t.id": "1.1"}, "count": 1}
    == update
    {"insert": "<b/>", "target": "/a"}
    == changes
    {"op": "insert", "row": {"t.id": "1.2"}}

Several views have names: `== query late`, `== rows late`, `== changes late`. Updates use the
notation of `edits`, one per line; the lines of one section are applied together. `== error AX404`
replaces the changes where an update is refused. Rows may be given after any update, or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from axlog.errors import AxlogError, InputError, Place
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.view import View
from axlog.views.change import Change
from lab.laws.edits import Edit, carry_out, with_paths
from lab.laws.fuzz_cases import Case

Plain = dict[str, Any]
ByView = dict[str, list[Plain]]
_ONLY = "view"


@dataclass(frozen=True, slots=True)
class Step:
    """One update and its expected results."""

    updates: tuple[Edit, ...]
    changes: ByView = field(default_factory=dict)
    rows: ByView = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Fixture:
    """The content of one file."""

    title: str
    document: str
    queries: dict[str, str]
    rows: ByView = field(default_factory=dict)
    steps: tuple[Step, ...] = ()


# Text ---------------------------------------------------------------------------------------------


def read_fixture(text: str, source: str | None = None) -> Fixture:
    """The fixture in a text."""
    title, sections = _sections(text, source)
    document = ""
    queries: dict[str, str] = {}
    # The parts before the first update are kept as a step without one.
    steps = [Step(())]
    for place, word, name, body in sections:
        if word == "document":
            document = body
        elif word == "query":
            queries[name or _ONLY] = body
        elif word == "update":
            steps.append(Step(tuple(_objects(body, place))))
        elif word == "changes":
            steps[-1].changes[name or _ONLY] = _objects(body, place)
        elif word == "rows":
            steps[-1].rows[name or _ONLY] = _objects(body, place)
        elif word == "error":
            steps[-1] = replace(steps[-1], error=name)
        else:
            raise _unreadable(f"there is no section {word!r}", place)
    if not document or not queries:
        raise _unreadable("a fixture has a document and a query", Place(1, 1, text, source))
    return Fixture(title, document, queries, steps[0].rows, tuple(steps[1:]))


def _sections(
    text: str, source: str | None
) -> tuple[str, list[tuple[Place, str, str | None, str]]]:
    """The title, and each section: its line, its keyword, its name, its text."""
    title: list[str] = []
    found: list[tuple[Place, str, str | None, list[str]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("== "):
            word, _, name = line[3:].strip().partition(" ")
            found.append((Place(number, 1, text, source), word, name.strip() or None, []))
        elif found:
            found[-1][3].append(line)
        else:
            title.append(line)
    sections = [(place, word, name, "\n".join(body).strip()) for place, word, name, body in found]
    return "\n".join(title).strip(), sections


def _objects(body: str, place: Place) -> list[Plain]:
    try:
        return [json.loads(line) for line in body.splitlines() if line.strip()]
    except json.JSONDecodeError as error:
        raise _unreadable(f"a line is not JSON: {error.msg}", place) from None


def _unreadable(what: str, place: Place) -> InputError:
    return InputError("AX103", f"this is no fixture: {what}", place=place)


def write_fixture(fixture: Fixture) -> str:
    """The text of a fixture."""
    return "\n".join(_lines(fixture)) + "\n"


def _lines(fixture: Fixture) -> Iterator[str]:
    yield from (fixture.title, "", "== document", fixture.document)
    for name, query in fixture.queries.items():
        yield from (_head("query", name), query)
    yield from _by_view("rows", fixture.rows)
    for step in fixture.steps:
        yield from ("== update", *map(_json, step.updates))
        if step.error is not None:
            yield f"== error {step.error}"
        yield from _by_view("changes", step.changes)
        yield from _by_view("rows", step.rows)


def _by_view(word: str, each: ByView) -> Iterator[str]:
    for name, objects in each.items():
        yield from (_head(word, name), *map(_json, objects))


def _head(word: str, name: str) -> str:
    return f"== {word}" if name == _ONLY else f"== {word} {name}"


def _json(thing: Mapping[str, Any]) -> str:
    return json.dumps(thing, ensure_ascii=False)


# Replay -------------------------------------------------------------------------------------------


def play(fixture: Fixture, maintainer: str | None = None, block: int = 64) -> Fixture:
    """The fixture with the actual results of its updates, in the sections that it has."""
    doc = Document(fixture.document)
    document = maintained(doc)
    document.make_engines(None, block)
    for name, query in fixture.queries.items():
        doc.watch(query, name, maintainer=maintainer)
    first = _rows(doc, fixture.rows)
    steps = tuple(_play_step(doc, step) for step in fixture.steps)
    return replace(fixture, rows=first, steps=steps)


def _play_step(doc: Document, step: Step) -> Step:
    try:
        changes = carry_out(doc, step.updates)
    except AxlogError as error:
        return replace(step, changes={}, error=error.code, rows=_rows(doc, step.rows))
    each = {name: _of_view(name, changes) for name in step.changes}
    return replace(step, changes=each, error=None, rows=_rows(doc, step.rows))


def _of_view(name: str, changes: Iterable[Change]) -> list[Plain]:
    """The changes of a view: operation, row and row before, which all maintainers agree on."""
    each = [change.to_dict() for change in changes if change.view == name]
    return [{part: one[part] for part in ("op", "row", "before") if part in one} for one in each]


def _rows(doc: Document, names: Iterable[str]) -> ByView:
    return {name: plain_rows(doc.view(name)) for name in names}


def plain_rows(view: View) -> list[Plain]:
    """The rows of a view as `axlog query` writes them."""
    return [{"row": row.to_dict(), "count": row.count} for row in view.rows()]


def fixture_of(case: Case, title: str) -> Fixture:
    """A random case as a fixture, with the results of re-evaluation as expected results."""
    count = len(case.patterns)
    names = [_ONLY] if count == 1 else [f"view{number + 1}" for number in range(count)]
    queries = {name: str(pattern) for name, pattern in zip(names, case.patterns, strict=True)}
    every: ByView = {name: [] for name in names}
    doc = Document(case.document)
    steps: list[Step] = []
    for step in case.steps:
        tree = maintained(doc).nodes()
        written = tuple(with_paths(tree, edit) for edit in step)
        steps.append(Step(written, every, every))
        try:
            carry_out(doc, step)
        except AxlogError:
            continue
    bare = Fixture(title, case.document, queries, every, tuple(steps))
    return play(bare, maintainer="reevaluate")
