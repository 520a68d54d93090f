"""`axlog.watch_file`: views over a file, with changes emitted when the file changes.

    with axlog.watch_file("orders.xml", "//order[not(shipped)]", interval=2) as watch:
        for change in watch:
            print(change)

The file is polled. A poll compares the file's time and size first, then its bytes. Only if the
bytes differ is the file parsed, and the difference to the previous version is applied as one
update, with the file's time. While the file cannot be read or parsed (another process may be
writing it), the document stays as it was and `error` gives the reason.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from threading import Event
from types import TracebackType

from axlog.document.diff import diff
from axlog.document.loader import load
from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.errors import AxlogError, InputError
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.options import Options
from axlog.live.view import View
from axlog.query.query import Language, Query
from axlog.views.change import Change


def watch_file(
    path: str | os.PathLike[str],
    query: str | Query,
    *,
    interval: float = 1.0,
    language: Language | None = None,
    limits: Limits = DEFAULT_LIMITS,
    keep_whitespace: bool = False,
    namespaces: Mapping[str, str] | None = None,
) -> FileWatch:
    """Watch the rows of a query over a file. Iterate over the result to get their changes.

    Parameters:
        path: The file.
        query: A tree pattern, XPath or XQuery.
        interval: Seconds between two looks at the file.
        language: `pattern`, `xpath` or `xquery`; None: by the query's first word.
        limits: Sizes that the file and the query must not exceed.
        keep_whitespace: Keep text nodes that are only whitespace.
        namespaces: Prefixes that the query may use, with their namespace names.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory, "orders.xml")
    ...     _ = path.write_text("<orders/>")
    ...     with watch_file(path, "match //order/$x return $x") as watch:
    ...         _ = path.write_text("<orders><order>17</order></orders>")
    ...         watch.poll()
    [Change('insert', Row(x='17'))]
    """
    watch = FileWatch(path, interval, limits, keep_whitespace, namespaces)
    watch.view = watch.document.watch(query, language=language)
    return watch


class FileWatch:
    """A file, its document, one view over it, and the view's changes."""

    view: View

    def __init__(
        self,
        path: str | os.PathLike[str],
        interval: float,
        limits: Limits,
        keep_whitespace: bool,
        namespaces: Mapping[str, str] | None,
    ) -> None:
        self.path = Path(path)
        self.interval = interval
        self.error: AxlogError | None = None
        self._stopped = Event()
        self._stamp = self._look()
        content = self._read()
        self._digest = _digest(content)
        options = Options(limits=limits, keep_whitespace=keep_whitespace, namespaces=namespaces)
        self.document = Document(content, options=options)

    def poll(self) -> list[Change]:
        """Poll the file now, and return the view's changes since the last poll."""
        try:
            stamp = self._look()
            if stamp == self._stamp:
                return []
            content = self._read()
            digest = _digest(content)
            if digest == self._digest:
                self._stamp = stamp
                return []
            new = load(
                content,
                limits=self.document.options.limits,
                keep_whitespace=self.document.options.keep_whitespace,
            )
        except AxlogError as error:
            self.error = error
            return []
        inside = maintained(self.document)
        time = max(stamp[0] // 1000, inside.tree.clock)
        changes = inside.apply_at(diff(inside.nodes(), new), time)
        self._stamp, self._digest, self.error = stamp, digest, None
        return changes

    def __iter__(self) -> Iterator[Change]:
        """Yield the changes as the file changes, until `stop` is called."""
        while not self._stopped.is_set():
            yield from self.poll()
            self._stopped.wait(self.interval)

    def stop(self) -> None:
        """End the iteration. Can be called from any thread."""
        self._stopped.set()

    def __enter__(self) -> FileWatch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _look(self) -> tuple[int, int, int]:
        try:
            found = self.path.stat()
        except OSError as error:
            raise _unreadable(self.path, error) from error
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise _unreadable(self.path, error) from error


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError("AX102", f"{str(path)!r}: {error.strerror or error}")
