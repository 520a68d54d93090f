"""The subtrees of one document that no view can use any more, and what rules a collection out."""

from __future__ import annotations

from collections.abc import Iterable

from axlog.future.finished import Uses, finished_subtrees, refusal, uses_of
from axlog.live.maintained import MaintainedTree
from axlog.live.replacements import replacing_streams
from axlog.query.pattern import Pattern
from axlog.views.counting.maintainer import Counting


def reason_to_keep(document: MaintainedTree) -> str | None:
    """Return why the document must not be collected. None: it can be."""
    if document.lacks_messages:
        return "messages were not kept: what is there cannot be judged"
    if not document.views:
        return "there are no views"
    for stream in replacing_streams(document):
        return f"the stream {stream!r} replaces its messages: rows may go and come again"
    for name, view in document.views.items():
        if not isinstance(view.maintainer, Counting):
            return f"{view.maintainer.name} maintains {name!r} from the whole document"
        if view.query.steps:
            return f"the view {name!r} computes values from every match, and from their number"
        if view.is_deferred:
            return f"the view {name!r} is deferred: it has yet to look"
    return refusal(document.tree, _patterns(document))


def uses_of_views(document: MaintainedTree) -> list[Uses]:
    """Return what each view can still use of the document and of its streams."""
    return [uses_of(document.tree, pattern) for pattern in _patterns(document)]


def finished_nodes(document: MaintainedTree, uses: Iterable[Uses]) -> list[int]:
    """Return the tops of the subtrees that no row shows and no row that may come needs."""
    tree = document.tree
    return [
        node
        for node in finished_subtrees(tree, _patterns(document), uses, _shown(document))
        if not document.engine.is_value_sensitive(tree.parent(node))
    ]


def _patterns(document: MaintainedTree) -> list[Pattern]:
    return [view.query.pattern for view in document.views.values()]


def _shown(document: MaintainedTree) -> set[int]:
    """Return the nodes whose ids, values or contents the rows of views show."""
    found: set[int] = set()
    for view in document.views.values():
        assert isinstance(view.maintainer, Counting)  # see `reason_to_keep`
        columns = view.maintainer.root.columns
        at = [n for n, column in enumerate(columns) if column.endswith(".node")]
        if at:
            found.update(int(row[n]) for row in view.maintainer.bindings() for n in at)
    return found
