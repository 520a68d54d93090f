"""W3C's QT3 tests of XPath and XQuery, in the tiers of the given selection."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from lab.conformance.cases import Case
from lab.conformance.judging import assertion_of, judge_of

FOLDER = "xpath-xquery-conformance"


def cases(data: Path) -> Iterator[Case]:
    """The cases of the selection."""
    documents = data / FOLDER / "qt3_docs"
    with (data / FOLDER / "qt3_fragment.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            yield _case(json.loads(line), documents)


def _case(given: dict[str, object], documents: Path) -> Case:
    sources, result, namespaces = given["sources"], given["result"], given["ns"]
    assert isinstance(sources, list)
    assert isinstance(result, list)
    assert isinstance(namespaces, dict)
    (assertion,) = result
    context = [source["file"] for source in sources if source["role"] == "."]
    others = [source["role"] for source in sources if source["role"] != "."]
    return Case(
        suite="QT3",
        part=str(given["tier"]),
        name=str(given["id"]),
        text=str(given["expr"]),
        document=documents / context[0] if context else None,
        judge=judge_of(assertion, lambda name: _find(documents, name)),
        expects_error=bool(given["expects_error"]),
        allows_error="<error " in assertion,
        assertion=assertion_of(assertion),
        namespaces=namespaces,
        outside=f"it is given the variable {others[0]}" if others else None,
    )


def _find(documents: Path, name: str) -> Path | None:
    """A file that an expectation names from the folder of its test set."""
    return next(iter(sorted(documents.glob(f"*/{name}"))), None)
