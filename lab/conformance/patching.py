"""RFC 5261 triples: a document, a patch, and the patched document.

The comparison ignores white space around texts and prefixes, because the suite's own expected
documents differ from the RFC's in them. The lists of a patch are also aggregated before they are
applied, so that a case passes only if both ways give the same document.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lxml import etree

from axlog.document import pending
from axlog.document.aggregation import aggregate
from axlog.document.loader import load
from axlog.document.serializer import serialise
from axlog.document.tree import Tree
from axlog.document.update_lists import UpdateList, resolved
from axlog.errors import AxlogError
from axlog.evaluate.patches import read_patch
from lab.conformance.cases import Case, Outcome, Result

FOLDER = Path("xml-patch-diff") / "eidng8_rfc5261"


def results(data: Path) -> Iterator[Result]:
    """Return the outcome of every triple."""
    for patch in sorted((data / FOLDER).glob("*A.diff.xml")):
        name = patch.name.removesuffix("A.diff.xml")
        case = Case(
            suite="RFC 5261",
            part="the RFC's own" if name.startswith("rfc-") else "others",
            name=name.strip("-"),
            text=patch.read_text(encoding="utf-8"),
            document=patch.with_name(f"{name}A.xml"),
            judge=lambda answer: None,
        )
        yield _run(case, patch.with_name(f"{name}B.xml"))


def _run(case: Case, expected: Path) -> Result:
    assert case.document is not None
    tree = load(case.document)
    try:
        lists = read_patch(tree, case.text.encode())
    except AxlogError as refusal:
        return Result(case, Outcome.OUTSIDE, _reason(refusal, case.document))
    wanted = _plain(load(expected))
    for applied in (lists, aggregate(lists)):
        found = _plain(_after(case.document, applied))
        if found != wanted:
            return Result(case, Outcome.FAILED, f"the document is {found}")
    return Result(case, Outcome.PASSED)


def _after(document: Path, lists: list[UpdateList]) -> Tree:
    tree = load(document)
    for one in lists:
        pending.apply(tree, resolved(tree, one))
    return tree


def _reason(refusal: AxlogError, document: Path) -> str:
    if b"<![CDATA[" in document.read_bytes() and "selects 0 nodes" in refusal.message:
        return "it counts a CDATA section as a text of its own"
    return refusal.message


def _plain(tree: Tree) -> Any:
    """A document as nested tuples, without prefixes and without white space around texts."""
    return _of_element(etree.fromstring(serialise(tree, tree.root)))


def _of_element(element: Any) -> Any:
    tag = element.tag if isinstance(element.tag, str) else element.tag.__name__
    below = tuple((_of_element(one), (one.tail or "").strip()) for one in element)
    return tag, tuple(sorted(element.attrib.items())), (element.text or "").strip(), below
