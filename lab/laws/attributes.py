"""Cases with the values of some elements as attributes: `k/$x` becomes `@k/$x`, in every text.

The laws of truth draw messages such as `<a><k>1</k></a>`, queries and keys over them. The functions
rewrite one element label in these texts, so that a law compares the same case with attributes. The
time of an attribute and of its text is that of its element.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from random import Random

from lxml import etree


def attributed(random: Random, labels: Iterable[str]) -> tuple[str, ...]:
    """The labels whose elements become attributes in a case: none in two cases of three."""
    if random.random() < 0.67:
        return ()
    return tuple(label for label in labels if random.random() < 0.7)


def in_query(text: str, labels: Iterable[str]) -> str:
    """The query with attributes in place of the elements that hold a variable or a string."""
    for label in labels:
        place = r"(?:(?<=[\[( ])|(?<=[^/.]/))"  # not after `//`
        text = re.sub(rf'{place}{label}(?=/[$"]| = )', f"@{label}", text)
    return text


def in_fact(fact: str, labels: Iterable[str]) -> str:
    """The declared fact with attributes as its keys."""
    for label in labels:
        fact = re.sub(rf"\bby {label}\b", f"by @{label}", fact)
    return fact


def in_tree(text: str, labels: Iterable[str]) -> str:
    """The message or document with attributes in place of elements that hold a text only."""
    root = etree.fromstring(text)
    for label in labels:
        for below in list(root.iter(label)):
            above = below.getparent()
            if above is not None and not len(below) and label not in above.attrib:
                above.set(label, below.text or "")
                above.remove(below)
    return etree.tostring(root, encoding="unicode")


def in_steps(
    steps: Iterable[tuple[str, str, int]], labels: Iterable[str]
) -> tuple[tuple[str, str, int], ...]:
    """The steps with attributes in their messages; others, such as ends, are as they were."""
    return tuple(
        (what, in_tree(content, labels) if content.startswith("<") else content, time)
        for what, content, time in steps
    )
