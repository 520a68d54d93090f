"""Errors that a test accepts, by their codes: any other error fails the test."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from axlog.errors import AxlogError

CONFLICTS = ("XUDY0015", "XUDY0016", "XUDY0017", "XUDY0021")
"""Random update lists are rejected with these: two such updates of one node, two attributes of one
name, a document without exactly one root element."""


def accept(error: AxlogError, codes: Collection[str] = CONFLICTS) -> None:
    """Raise the error again unless it has one of the codes."""
    if error.code not in codes:
        raise error


@contextmanager
def accepting(codes: Collection[str] = CONFLICTS) -> Iterator[None]:
    """Suppress errors with one of the codes."""
    try:
        yield
    except AxlogError as error:
        accept(error, codes)
