"""The XQuery Update tests: axlog runs the statements, and another engine reads the result.

A case is a sequence of steps. Updates go through `Document.update`; queries go to Saxon, with the
document as axlog left it, so that axlog does not judge itself. White space is kept, as the suite
counts it. Outside: cases over several documents, cases without updates, and refused texts. If an
error is expected, raising any error passes; the reason names it, if it is another.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from axlog.document.loader import load
from axlog.errors import AxlogError, InputError, QueryError, SetupError
from axlog.live.document import Document
from axlog.live.options import Options
from axlog.query.template import Piece, PieceKind
from lab.conformance.answering import Answer
from lab.conformance.cases import Case, Outcome, Result, reason_of
from lab.conformance.judging import judge_of

FOLDER = "xquery-update"
_OUTSIDE = ("AX2",)  # codes for texts that are not statements of axlog


@dataclass(frozen=True, slots=True)
class UpdateCase:
    """A case with its steps: texts, each with whether it updates."""

    case: Case
    steps: tuple[tuple[str, bool], ...]
    variables: tuple[str, ...]
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
    files = {source["file"] for source in given["sources"]}
    steps = tuple((step["src"], bool(step.get("update"))) for step in given["steps"])
    outside = None
    if len(files) > 1:
        outside = "it is about several documents"
    elif not any(updates for _, updates in steps):
        outside = "it only asks: `copy ... modify`, or no update at all"
    (expected,) = given["result"]
    case = Case(
        suite="XQuery Update",
        part=given["cls"],
        name=given["id"],
        text=" ; ".join(text for text, updates in steps if updates),
        document=folder / files.pop() if len(files) == 1 else None,
        judge=judge_of(expected, lambda name: None),
        expects_error=bool(given["expects_error"]) or "<error" in expected,
        namespaces=given["ns"],
        outside=outside,
    )
    roles = [source["role"].removeprefix("$") for source in given["sources"]]
    variables = tuple(role for role in roles if role != ".")
    return UpdateCase(case, steps, variables, expected)


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
    return Result(case, Outcome.FAILED, f"it raises {refusal.code}: {refusal.message}")


def _without_error(given: UpdateCase) -> Result:
    return Result(given.case, Outcome.FAILED, "no error is raised")


def _answer(given: UpdateCase) -> Answer | None:
    """Run the updates; return the answer of the last query, None if there is none."""
    source = given.case.document or "<none/>"
    tree = load(source, keep_whitespace=True)
    document = Document(
        tree, options=Options(keep_whitespace=True, namespaces=given.case.namespaces)
    )
    found = None
    for text, updates in given.steps:
        if not updates:
            found = _asked(text, document.xml(), given.variables)
        elif text.strip() != ".":  # the suite's marker that the next step sees the document
            document.update(text)
    return found


@cache
def _saxon() -> Any:
    try:
        import saxonche
    except ImportError:
        raise SetupError(
            "AX901", "the updates are judged by Saxon", advice="pip install saxonche"
        ) from None
    return saxonche.PySaxonProcessor(license=False)


def _asked(text: str, xml: str, variables: tuple[str, ...]) -> Answer:
    """Return Saxon's answer on a document."""
    saxon = _saxon()
    document = saxon.parse_xml(xml_text=xml)
    query = saxon.new_xquery_processor()
    query.set_context(xdm_item=document)
    for variable in variables:
        query.set_parameter(variable, document)
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
