"""Enforced keys and references: the values seen so far, and the rejection of what breaks a fact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from axlog.document.operations import call_of
from axlog.document.parser import Element
from axlog.document.tree import NONE, Tree
from axlog.errors import StreamError
from axlog.future.keys import Key, Owner, values_below, values_in, values_seen
from axlog.future.references import Fact, ForeignKey


class KeyGuard:
    """The values of a document's enforced facts. Deleting a node does not free its value."""

    def __init__(
        self, tree: Tree, keys: Iterable[Key], references: Iterable[ForeignKey] = ()
    ) -> None:
        self._tree = tree
        self._seen = {key: set(values_seen(tree, key)) for key in keys if key.is_enforced}
        self._referred = {
            each: set(values_seen(tree, each.target)) for each in references if each.is_enforced
        }

    def __bool__(self) -> bool:
        return bool(self._seen or self._referred)

    def check(
        self, stream: str, forest: Iterable[Element], replaced: int = NONE
    ) -> list[tuple[Fact, str]]:
        """Return the values of a message, or raise if one exists already or refers to nothing.

        Values of the message that it replaces may come again: there is still one node with each.
        Nothing is recorded yet.
        """
        node, _ = call_of(self._tree, stream)
        parent = self._tree.parent(node)
        brought: dict[tuple[Key, str], Owner] = {}
        forest = list(forest)
        for root in forest:
            for key, seen in self._seen.items():
                own = set() if replaced == NONE else _values(self._tree, key, replaced)
                for owner, value in values_in(key, self._tree, parent, root):
                    first = brought.setdefault((key, value), owner)
                    if first is not owner or (
                        value not in own and self._has_another(key, value, owner, seen)
                    ):
                        path, by = "/".join(key.path), "/".join(key.by)
                        raise StreamError(
                            "AX413",
                            f"there is already a {path} with {by} {value!r}",
                            advice=f"the document declares `{key}`",
                        )
        return [*brought, *self._check_references(parent, forest)]

    def _check_references(self, parent: int, forest: list[Element]) -> list[tuple[Fact, str]]:
        brought: list[tuple[Fact, str]] = []
        for each, there in self._referred.items():
            new = {
                v for root in forest for _, v in values_in(each.target, self._tree, parent, root)
            }
            brought += [(each, value) for value in sorted(new)]
            for root in forest:
                for _, value in values_in(each.source, self._tree, parent, root):
                    if value not in there and value not in new:
                        path, by = "/".join(each.target.path), "/".join(each.target.by)
                        raise StreamError(
                            "AX421",
                            f"there is no {path} with {by} {value!r} to refer to",
                            advice=f"the document declares `{each}`",
                        )
        return brought

    def _has_another(self, key: Key, value: str, owner: Owner, seen: set[str]) -> bool:
        """Return whether another node has, or had, a value. A node may get its own value again."""
        if value not in seen:
            return False
        return not isinstance(owner, int) or values_seen(self._tree, key).get(value) != {owner}

    def note(self, brought: Iterable[tuple[Fact, str]]) -> None:
        """Record the values of a message that was applied."""
        for fact, value in brought:
            if isinstance(fact, Key):
                self._seen[fact].add(value)
            else:
                self._referred[fact].add(value)

    def values(self) -> dict[str, list[str]]:
        """Return the values seen for every enforced fact, for a snapshot."""
        every = (*self._seen.items(), *self._referred.items())
        return {str(fact): sorted(seen) for fact, seen in every}

    def restore(self, values: Mapping[str, Iterable[str]]) -> None:
        """Restore the values of a snapshot."""
        for fact, seen in (*self._seen.items(), *self._referred.items()):
            seen.update(values.get(str(fact), ()))


def _values(tree: Tree, key: Key, top: int) -> set[str]:
    """Return the values that nodes of a key have in a subtree."""
    return {value for _, value in values_below(tree, key, top)}
