"""The XQuery Update tests: axlog runs the statements, and another engine reads the result.

A case is a sequence of steps. Updates go through `Document.update`. Queries after them go to Saxon,
with the document as axlog left it, so that axlog does not judge itself. A case that only asks
(`copy ... modify`) is a view of axlog. If a case has several documents, one is the document and the
others are variables; a case that updates more than one of them is outside. White space is kept, as
the suite counts it. If an error is expected, raising any error passes; the reason names it, if it
is another. The adapter uses the public API alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import axlog
from axlog.errors import AxlogError, InputError, QueryError, SetupError, UnsupportedError
from axlog.query.template import Piece, PieceKind
from lab.conformance.answering import Answer
from lab.conformance.cases import Case, Outcome, Result, reason_of
from lab.conformance.judging import judge_of

FOLDER = "xquery-update"
_OUTSIDE = ("AX2",)  # codes for texts that are not statements of axlog
_OTHER_ENGINES = "it is for engines that refuse `declare revalidation skip`"
_SEVERAL = "it updates several documents"


@dataclass(frozen=True, slots=True)
class UpdateCase:
    """A case with its steps: texts, each with whether it updates."""

    case: Case
    steps: tuple[tuple[str, bool], ...]
    sources: tuple[tuple[str, Path], ...]
    """The variable of each document, `.` for the context, and its file."""
    expected: str


def results(data: Path) -> Iterator[Result]:
    """Return the outcome of every case."""
    return (run(given) for given in cases(data))


def cases(data: Path) -> Iterator[UpdateCase]:
    """The cases of the selection."""
    folder = data / FOLDER
    with (folder / "xquts_fragment.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            yield _case(json.loads(line), folder)


def _case(given: dict[str, Any], folder: Path) -> UpdateCase:
    sources = tuple(
        (source["role"].removeprefix("$"), folder / source["file"]) for source in given["sources"]
    )
    steps = tuple((step["src"], bool(step.get("update"))) for step in given["steps"])
    (expected,) = given["result"]
    case = Case(
        suite="XQuery Update",
        part=given["cls"],
        name=given["id"],
        text=" ; ".join(text for text, _ in steps),
        document=sources[0][1] if sources else None,
        judge=judge_of(expected, lambda name: None),
        expects_error=bool(given["expects_error"]) or "<error" in expected,
        namespaces=given["ns"],
        outside=_OTHER_ENGINES if "SkipUnsupported" in given["set"] else None,
    )
    return UpdateCase(case, steps, sources, expected)


def run(given: UpdateCase) -> Result:
    """Run one case."""
    case = given.case
    if case.outside is not None:
        return Result(case, Outcome.OUTSIDE, case.outside)
    try:
        answer = _answer(given)
    except InputError as refusal:
        return Result(case, Outcome.OUTSIDE, f"the document is refused: {refusal.message}")
    except AxlogError as refusal:
        return _raised(given, refusal)
    if answer is None:
        if case.expects_error:
            return _without_error(given)
        return Result(case, Outcome.UNJUDGED, "it says nothing of the document")
    verdict = case.judge(answer)
    if verdict is None:
        return Result(case, Outcome.UNJUDGED, "its expectation is an expression over the result")
    if verdict:
        return Result(case, Outcome.PASSED)
    return Result(case, Outcome.FAILED, f"the answer is {answer}")


def _raised(given: UpdateCase, refusal: AxlogError) -> Result:
    case = given.case
    if case.expects_error:
        is_same = f'"{refusal.code}"' in given.expected
        reason = "" if is_same else f"another error: {refusal.code} {refusal.message}"
        return Result(case, Outcome.RAISED, reason)
    if isinstance(refusal, QueryError) and refusal.code.startswith(_OUTSIDE):
        return Result(case, Outcome.OUTSIDE, reason_of(refusal))
    if refusal.code == "AX302" and len(given.sources) > 1:
        return Result(case, Outcome.OUTSIDE, _SEVERAL)
    return Result(case, Outcome.FAILED, f"it raises {refusal.code}: {refusal.message}")


def _without_error(given: UpdateCase) -> Result:
    return Result(given.case, Outcome.FAILED, "no error is raised")


def _answer(given: UpdateCase) -> Answer | None:
    """Run the steps; return the answer of the last query, None if there is none."""
    files = list(dict.fromkeys(path for _, path in given.sources))
    for number, file in enumerate(files or [None]):
        try:
            return _answer_on(given, file)
        except AxlogError as refusal:
            is_other = refusal.code == "AX302" and number + 1 < len(files)
            if not is_other:
                raise
    raise AssertionError("the last document raises")


def _answer_on(given: UpdateCase, file: Path | None) -> Answer | None:
    """Run the steps with one of the files as the document, and the others as variables."""
    document = _document(file or "<none/>", given)
    others = {name: path for name, path in given.sources if path != file}
    variables = {name: _document(path, given) for name, path in others.items()}
    found = None
    for text, updates in given.steps:
        if not updates and any(updates for _, updates in given.steps):
            found = _asked(text, document, given, others)
        elif not updates:
            found = _viewed(text, document)
        elif text.strip() != ".":  # the suite's marker that the next step sees the document
            _run(text, document, variables)
    return found


def _document(source: Path | str, given: UpdateCase) -> axlog.Document:
    options = axlog.Options(keep_whitespace=True, namespaces=given.case.namespaces)
    return axlog.parse(source, options=options)


def _run(text: str, document: axlog.Document, variables: dict[str, axlog.Document]) -> None:
    """Run a statement; a text that changes nothing is a query, whose value is not judged."""
    try:
        document.update(text, variables=variables)
    except UnsupportedError as refusal:
        if "changes nothing" not in refusal.message:
            raise
        _viewed(text, document)


def _viewed(text: str, document: axlog.Document) -> Answer:
    """The answer of a view."""
    items = document.watch(text, language="xquery", on_value_error="reject").items()
    if len(items) == 1 and isinstance(items[0], bool):
        return Answer(truth=items[0])
    return Answer(tuple(_shown(item) for item in items))


def _shown(item: Any) -> Piece:
    is_xml = isinstance(item, str) and item.startswith("<")
    return Piece(PieceKind.XML if is_xml else PieceKind.VALUE, str(item))


@cache
def _saxon() -> Any:
    try:
        import saxonche
    except ImportError:
        raise SetupError(
            "AX901", "the updates are judged by Saxon", advice="pip install saxonche"
        ) from None
    return saxonche.PySaxonProcessor(license=False)


def _asked(
    text: str, document: axlog.Document, given: UpdateCase, others: dict[str, Path]
) -> Answer:
    """Return Saxon's answer on a document."""
    saxon = _saxon()
    context = saxon.parse_xml(xml_text=document.xml())
    query = saxon.new_xquery_processor()
    query.set_context(xdm_item=context)
    for name, _ in given.sources:
        path = others.get(name)
        if name != ".":
            other = context if path is None else saxon.parse_xml(xml_file_name=str(path))
            query.set_parameter(name, other)
    query.set_query_content(text)
    found = query.run_query_to_value()
    items = [] if found is None else [found.item_at(at) for at in range(found.size)]
    return Answer(tuple(_piece(saxon, item) for item in items))


def _piece(saxon: Any, item: Any) -> Piece:
    if item.is_atomic:
        return Piece(PieceKind.VALUE, item.get_atomic_value().string_value)
    node = item.get_node_value()
    if node.node_kind_str == "text":
        return Piece(PieceKind.TEXT, node.string_value)
    if node.node_kind_str == "attribute":
        return Piece(PieceKind.ATTRIBUTE, node.string_value, node.local_name)
    return Piece(PieceKind.XML, _written(saxon, node))


def _written(saxon: Any, node: Any) -> str:
    """Return a node as XML without the white space that Saxon's serializer adds."""
    query = saxon.new_xquery_processor()
    query.set_context(xdm_item=node)
    query.set_query_content(
        "serialize(., map {'method': 'xml', 'indent': false(), 'omit-xml-declaration': true()})"
    )
    return str(query.run_query_to_value().item_at(0).get_atomic_value().string_value)
