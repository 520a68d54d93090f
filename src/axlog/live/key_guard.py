"""Enforced keys: the values seen so far, and the rejection of a second node with one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from axlog.document.operations import call_of
from axlog.document.parser import Element
from axlog.document.tree import NONE, Tree
from axlog.errors import StreamError
from axlog.future.keys import Key, Owner, values_below, values_in, values_seen


class KeyGuard:
    """The values of a document's enforced keys. Deleting a node does not free its value."""

    def __init__(self, tree: Tree, keys: Iterable[Key]) -> None:
        self._tree = tree
        self._seen = {key: set(values_seen(tree, key)) for key in keys if key.is_enforced}

    def __bool__(self) -> bool:
        return bool(self._seen)

    def check(
        self, stream: str, forest: Iterable[Element], replaced: int = NONE
    ) -> list[tuple[Key, str]]:
        """Return the key values of a message, or raise if one exists already.

        Values of the message that it replaces may come again: there is still one node with each.
        Nothing is recorded yet.
        """
        node, _ = call_of(self._tree, stream)
        parent = self._tree.parent(node)
        brought: dict[tuple[Key, str], Owner] = {}
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
        return list(brought)

    def _has_another(self, key: Key, value: str, owner: Owner, seen: set[str]) -> bool:
        """Return whether another node has, or had, a value. A node may get its own value again."""
        if value not in seen:
            return False
        return not isinstance(owner, int) or values_seen(self._tree, key).get(value) != {owner}

    def note(self, brought: Iterable[tuple[Key, str]]) -> None:
        """Record the key values of a message that was applied."""
        for key, value in brought:
            self._seen[key].add(value)

    def values(self) -> dict[str, list[str]]:
        """Return the values seen for every enforced key, for a snapshot."""
        return {str(key): sorted(seen) for key, seen in self._seen.items()}

    def restore(self, values: Mapping[str, Iterable[str]]) -> None:
        """Restore the values of a snapshot."""
        for key, seen in self._seen.items():
            seen.update(values.get(str(key), ()))


def _values(tree: Tree, key: Key, top: int) -> set[str]:
    """Return the values that nodes of a key have in a subtree."""
    return {value for _, value in values_below(tree, key, top)}
