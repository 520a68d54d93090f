"""XPathMark's queries with the number of nodes that lxml finds, on documents of XMark's generator.

At factor 0.01 only patterns that counting accepts are run: the definitions take too long for the
rest. The XMark queries themselves have expected answers among QT3's cases.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from axlog.errors import QueryError
from axlog.query.xpath_compiler import parse_xpath
from axlog.views.counting.maintainer import Counting
from lab.conformance.cases import Case
from lab.conformance.judging import Judge

FOLDER = "xmark-xpathmark"
FACTORS = ("0.001", "0.01")


def cases(data: Path) -> Iterator[Case]:
    """Return the outcomes of the PT queries on the given documents."""
    listed = json.loads((data / FOLDER / "xpathmark_pt.json").read_text(encoding="utf-8"))
    for factor in FACTORS:
        for query in listed:
            expected = query["lxml_count"].get(factor)
            if expected is not None and (factor == FACTORS[0] or _is_quick(query["xpath"])):
                document = data / FOLDER / "docs" / f"auction-{factor}.xml"
                yield Case(
                    suite="XPathMark",
                    part=f"factor {factor}",
                    name=query["id"],
                    text=query["xpath"],
                    document=document,
                    judge=_counts(expected),
                )


def _counts(expected: int) -> Judge:
    return lambda answer: len(answer.items) == expected


def _is_quick(text: str) -> bool:
    try:
        return Counting.refusal(parse_xpath(text)) is None
    except QueryError:
        return True  # refused as quickly
