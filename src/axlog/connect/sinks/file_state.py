"""The state file PATH.state of sinks that rewrite a whole file, with the last batch.

The file is replaced first, then the state: a crash between them repeats the batch, and the file is
written with the same content again. The state is small (the newest items) or as large as the view
(its rows): a page or an XML file of a view costs the view's size per batch.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from axlog.connect.kinds import Origin
from axlog.connect.sinks.files import replace_file, unwritable
from axlog.connect.sinks.tables import Values, columns_of, difference, view_of
from axlog.errors import ConnectorError
from axlog.views.change import Change


class State:
    """The state of one sink in one run."""

    def __init__(self, path: Path | None, run: str) -> None:
        self.path = path
        self.run = run
        self.batch = -1
        self.kept: Any = None
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            written = json.loads(path.read_bytes())
            if written["run"] == run:
                self.batch, self.kept = int(written["batch"]), written["kept"]
        except FileNotFoundError:
            pass
        except OSError as error:
            raise unwritable(path, error) from error
        except (ValueError, KeyError, TypeError):
            raise ConnectorError(
                "AX859", f"{path} is not the state of a sink", advice="remove it"
            ) from None

    def has(self, batch: int) -> bool:
        """Whether a batch was written before."""
        return batch <= self.batch

    def keep(self, batch: int, kept: Any) -> None:
        """Store that a batch was written, and the data for the next one."""
        self.batch, self.kept = batch, kept
        if self.path is not None:
            state = {"run": self.run, "batch": batch, "kept": kept}
            try:
                replace_file(self.path, json.dumps(state, ensure_ascii=False).encode())
            except OSError as error:
                raise unwritable(self.path, error) from error


def beside(path: Path) -> Path:
    return path.with_name(path.name + ".state")


class WholeFile(ABC):
    """A sink that writes a view's rows as one file; subclasses implement `render`."""

    exactly_once = True

    def __init__(self, path: Path, origin: Origin) -> None:
        self.path = path
        self.view = view_of(origin)
        self.columns = [column.name for column in columns_of(self.view)]
        self._state = State(beside(path), origin.run)
        self.rows: Counter[Values] = Counter()
        for *values, copies in self._state.kept or ():
            self.rows[tuple(values)] = copies

    @abstractmethod
    def render(self) -> bytes:
        """The file."""

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Update the file to the view's rows after a batch."""
        if self._state.has(batch):
            return
        for values, number in difference(changes).items():
            self.rows[values] += number
            if self.rows[values] <= 0:
                del self.rows[values]
        try:
            replace_file(self.path, self.render())
        except OSError as error:
            raise unwritable(self.path, error) from error
        self._state.keep(batch, [[*values, copies] for values, copies in self.rows.items()])

    def close(self) -> None:
        """Release the rows; the file has them."""
        self.rows = Counter()

    def in_order(self) -> list[Values]:
        """Return the rows in order, with duplicates."""
        return sorted(self.rows.elements(), key=lambda values: [str(value) for value in values])
