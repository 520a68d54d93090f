"""F6: one target found by an indexed value, one insertion there, one view maintained.

Our side is the whole public interface (`Document.update` with a variable, the change returned).
lxml finds the person by the same path, appends the name and evaluates the view's nodes again; it
does not know the new ones. The figures are the least and the median processor time of an update, in
one run. The time to find and apply without any view is reported too; the remainder is the cost of
the view.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import thread_time
from typing import Any

from lxml import etree

from axlog.document.parser import make_parser
from axlog.errors import WorkloadError
from axlog.live.document import parse
from lab.benchmarks.measuring import Result
from lab.benchmarks.tods_pairs import document
from lab.generators.appendix_views import VIEWS

STATEMENT = "insert node <name>new</name> into /site/people/person[@id = $id]"


def one_target(result: Result, size: float, times: int) -> None:
    """The time to update one person: with the algebra, by counting, and without a view."""
    text = document(size)
    persons = min(8, text.count("<person "))
    ours: dict[str, list[float]] = {}
    for kept in ("algebraic", "counting", None):
        tree = parse(text)
        if kept is not None:
            tree.watch(VIEWS["Q1"].xquery, maintainer=kept)

        def update(person: str, told: int = int(kept is not None), tree: Any = tree) -> None:
            changes = tree.update(STATEMENT, variables={"id": person})
            if len(changes) != told:
                raise WorkloadError("AX602", f"{person} has brought {len(changes)} rows")

        ours[kept or "find and apply alone"] = _taken(update, persons, times)
    ours["lxml"] = _taken(_lxml(text), persons, times)
    for name, taken in ours.items():
        result.figures[f"one target, {size} MB, {name}: least, ms"] = 1e3 * min(taken)
        result.figures[f"one target, {size} MB, {name}: median, ms"] = 1e3 * median(taken)
    ratio = min(ours["lxml"]) / min(ours["algebraic"])
    result.figures[f"one target, {size} MB, lxml over algebraic, by the least"] = ratio
    ratio = median(ours["lxml"]) / median(ours["algebraic"])
    result.figures[f"one target, {size} MB, lxml over algebraic, by the median"] = ratio


def _lxml(text: str) -> Callable[[str], None]:
    root: Any = etree.fromstring(text.encode(), make_parser())
    find: Any = etree.XPath("/site/people/person[@id = $id]")
    view = etree.XPath(VIEWS["Q1"].xpath)

    def update(person: str) -> None:
        (target,) = find(root, id=person)
        etree.SubElement(target, "name").text = "new"
        view(root)

    return update


def _taken(update: Callable[[str], None], persons: int, times: int) -> list[float]:
    update("person0")  # one-time work
    taken = []
    for number in range(times):
        start = thread_time()
        update(f"person{number % persons}")
        taken.append(thread_time() - start)
    return taken
