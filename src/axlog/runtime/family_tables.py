"""The parameter tables of a running pipeline: look at them, and compare with the members."""

from __future__ import annotations

from axlog.document.stream_update import StreamUpdate
from axlog.errors import ConnectorError
from axlog.runtime.family_members import parameter_update
from axlog.runtime.instances import Instances
from axlog.runtime.unreachable import Troubles


class FamilyTable:
    """The table of one family."""

    def __init__(self, document: str, view: str, instances: Instances) -> None:
        self.document = document
        self.source = f"{document}/for_each/{view}"
        self.troubles: Troubles | None = None
        self._view = view
        self._members = instances.members
        self._table = instances.members.families[view].table
        self._again = 0.0

    def look(self, now: float) -> StreamUpdate | None:
        """Return the update of the family if its table has changed.

        An unreadable table leaves the members as they are, and is retried.
        """
        if now < (self._again if self.troubles is None else self.troubles.again):
            return None
        self._again = now + self._table.options.poll
        try:
            rows = self._table.changed_rows()
        except ConnectorError as error:
            self.troubles = self.troubles or Troubles("", now)
            self.troubles.note(error, now, self.source)
            return None
        if self.troubles is not None:
            self.troubles.over(now, self.source)
            self.troubles = None
        if rows is None:
            return None
        return parameter_update(self._view, self._members.rows[self._view], rows, self.source)

    def close(self) -> None:
        self._table.close()
