"""All of XMark's queries as views: kept incrementally, and equal to Saxon after every update."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from lab.laws.xmark_law import check_xmark

pytest.importorskip("saxonche")


def test_oracle_every_xmark_query_follows_random_updates(
    conformance: Callable[[str], Path],
) -> None:
    conformance("xmark-xpathmark/xmark-queries/q01.xq")
    check_xmark(conformance("."), Random(10), 25)
