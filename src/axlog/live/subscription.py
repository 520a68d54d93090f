"""`Subscription`: the end of a subscription, as a function or at the end of a `with` block."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction

from axlog.errors import QueryError


def refuse_uncallable(callback: object) -> None:
    """Refuse what cannot be called with a change: a coroutine would never run."""
    if callable(callback) and not iscoroutinefunction(callback):
        return
    is_coroutine = callable(callback)
    raise QueryError(
        "AX211",
        "the callback is a coroutine function"
        if is_coroutine
        else "the callback is not a function",
        expected="a function of one change",
        advice="`async for change in document.changes(name)`" if is_coroutine else None,
    )


class Subscription:
    """A subscription to a view. Call it, or leave its `with` block, to unsubscribe.

    >>> import axlog
    >>> doc = axlog.parse("<orders/>", views={"orders": "match //order/$x return $x"})
    >>> with doc.view("orders").subscribe(lambda change: print(change.row)):
    ...     _ = doc.update("insert node <order>17</order> into /orders")
    Row(x='17')
    >>> doc.update("insert node <order>18</order> into /orders")
    [Change('insert', Row(x='18'))]
    """

    __slots__ = ("_stop",)

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop

    def __call__(self) -> None:
        self._stop()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *raised: object) -> None:
        self._stop()
