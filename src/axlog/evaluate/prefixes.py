"""Prefix conflicts implied by a pending update list (XQuery Update Facility 3.2.2).

Documents here have expanded names, and prefixes are chosen when a document is written, so a
conflict would do no harm. The recommendation still makes it an error: a new name's prefix against
the namespaces in scope of the element (XUDY0023), and two new names on one element (XUDY0024).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from axlog.document.operations import (
    Attribute,
    Content,
    Delete,
    Insert,
    Operation,
    Rename,
    Repeated,
    ReplaceNode,
    Where,
)
from axlog.document.tree import ATTRIBUTE, ELEMENT, Tree
from axlog.errors import UpdateError

_INSIDE = (Where.INTO, Where.FIRST, Where.LAST)


def check_prefixes(tree: Tree, operations: Iterable[Operation]) -> None:
    """Refuse operations whose names need one prefix for two namespaces on one element."""
    implied: dict[tuple[int, str | None], str] = {}
    clashes: list[tuple[int, str | None]] = []
    for element, prefix, uri in _bindings(tree, operations):
        if implied.setdefault((element, prefix), uri) != uri:
            raise UpdateError(
                "XUDY0024",
                f"{tree.path(element)} would need {_written(prefix)} for two namespaces",
            )
        known = tree.namespaces(element).get(prefix)
        if known is not None and known != uri:
            clashes.append((element, prefix))
    for element, prefix in clashes:
        raise UpdateError(
            "XUDY0023",
            f"{_written(prefix)} stands for another namespace at {tree.path(element)}",
            advice="give the new name a prefix that is not in use there"
            if prefix
            else "give the new name a prefix, or the default namespace: QName('uri', 'name')",
        )


def _written(prefix: str | None) -> str:
    return "a name without a prefix" if prefix is None else f"the prefix {prefix}"


def _bindings(tree: Tree, operations: Iterable[Operation]) -> Iterator[tuple[int, str | None, str]]:
    """Each element with the prefix and namespace that a new name on it needs.

    An element's name without a prefix needs its namespace, or none, as the default one.
    """
    plain: Content = ()  # content without a prefix: all operations of a statement may share one
    if type(operations) is Repeated and not _has_prefix(operations.content):
        return
    for operation in operations:
        if type(operation) is Delete or (type(operation) is Insert and operation.content is plain):
            continue
        match operation:
            case Insert(where=where, target=target, content=content):
                if not _has_prefix(content):
                    plain = content
                    continue
                element = target if where in _INSIDE else tree.parent(target)
                yield from _of_attributes(element, content)
            case ReplaceNode(target=target, content=content):
                yield from _of_attributes(tree.parent(target), content)
            case Rename(target=target, label=label, prefix=prefix):
                kind = tree.kind_column[target]
                if kind == ELEMENT:
                    yield target, prefix or None, _namespace(label)
                elif kind == ATTRIBUTE and prefix:
                    yield tree.parent(target), prefix, _namespace(label)


def _has_prefix(content: Content) -> bool:
    return any(isinstance(item, Attribute) and item.prefix for item in content)


def _of_attributes(element: int, content: Content) -> Iterator[tuple[int, str, str]]:
    for item in content:
        if isinstance(item, Attribute) and item.prefix:
            yield element, item.prefix, _namespace(item.name)


def _namespace(label: str) -> str:
    return label[1:].partition("}")[0] if label.startswith("{") else ""
