"""Loading a document, ready to maintain, against the bare parse of the same bytes (F11)."""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time

from lxml.etree import fromstring

from axlog.document.loader import load
from axlog.document.parser import make_parser
from axlog.samples.auction import auction
from lab.benchmarks.measuring import Result, Side, interleave


def loading(factor: float = 0.1, rounds: int = 5) -> Result:
    """Load an auction document of this factor; 0.1 is about 11.7 MB."""
    text = "".join(auction(factor)).encode()
    result = Result("load", "load an auction document (F11: 3 x the bare parse or less)")
    result.sizes = {"document, bytes": len(text), "rounds": rounds}
    parser = make_parser()

    def parse(chunk: Sequence[bytes]) -> None:
        for each in chunk:
            fromstring(each, parser)

    def build(chunk: Sequence[bytes]) -> None:
        for each in chunk:
            load(each)

    def make_build() -> Side[bytes]:
        return build

    def make_parse() -> Side[bytes]:
        return parse

    sides = {"load": make_build, "bare parse": make_parse}
    costs = interleave(sides, [text], 1, rounds, process_time)
    result.compare("load", costs, "load", "bare parse", "3 or less")
    elements = sum(1 for _ in fromstring(text, parser).iter())
    tree = load(text)
    result.sizes |= {"nodes": len(tree), "elements": elements}
    return result
