"""The members of families in one bucket: which of them it has, and their changes.

The rows of a parameter table reach a bucket as items of a batch (`table_source.py`):

    {"add": {"late[\\"INRIA\\"]": "match ..."}, "remove": ["late[\\"ENS\\"]"]}

They are applied before the messages of the batch, in all buckets of the family alike. A family that
is split by a parameter has each member in the bucket of its text only.

Law: the rows of a member over all buckets are those of a view of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from zlib import crc32

from axlog.errors import AxlogError, QueryError
from axlog.live.document import Document
from axlog.live.internals import maintained, maintained_view
from axlog.runtime.definition import Definition
from axlog.runtime.engine import DocumentEngine
from axlog.runtime.family_members import headed_change
from axlog.runtime.order import BODY, MESSAGE, ORIGIN, STREAM, Item, Refused
from axlog.runtime.plan import Unit
from axlog.views.change import Change
from axlog.views.family_names import family_of, is_member


class BucketMembers:
    """The members that a bucket has, by name, with their queries and families."""

    def __init__(self, definition: Definition, unit: Unit, bucket: int) -> None:
        self._definition = definition
        self._unit = unit
        self._bucket = bucket
        self.families = [name for name in unit.views if name in definition.families]
        self._members: dict[str, tuple[str, str]] = {}  # by name: family and query

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def state(self) -> dict[str, tuple[str, str]]:
        """The members, from which `restore` resumes."""
        return self._members

    def restore(self, members: Mapping[str, Any], engine: DocumentEngine | None) -> None:
        """Take the members of a state; `engine`: it has none of them yet."""
        for name, (family, query) in members.items():
            if family in self.families:
                self._members[name] = (family, query)
                if engine is not None:
                    self._watch(family, name, query, engine)
        if engine is not None:
            engine.changes()  # emitted before

    def take(self, item: Item, engine: DocumentEngine) -> list[Refused]:
        """Add and remove members; the rows of the table that cannot be members."""
        family = item[STREAM]
        if family not in self.families:
            return []
        said = json.loads(item[BODY])
        is_quiet: bool = said.get("quiet", False)
        refused: list[Refused] = []
        for name in said.get("remove", ()):
            if self._members.pop(name, None) is not None:
                engine.forget_member(name, quietly=is_quiet)
        for name, query in said.get("add", {}).items():
            if name in self._members:
                continue
            try:
                if isinstance(query, dict):
                    refused.append(_refused(item, name, query["error"]))
                elif self._is_here(family, query, engine.document):
                    self._watch(family, name, query, engine, is_quiet)
                    self._members[name] = (family, query)
            except AxlogError as error:
                refused.append(_refused(item, name, error.describe()))
        return refused

    def _watch(
        self, family: str, name: str, query: str, engine: DocumentEngine, quietly: bool = False
    ) -> None:
        defined = self._definition.families[family]
        engine.add_member(name, query, quietly=quietly, **defined.watching)
        families = maintained(engine.document).families
        pilot = families.members.get(self._definition.watched_name(family))
        member = families.members.get(name)
        if pilot is not None and (member is None or member.family is not pilot.family):
            engine.forget_member(name, quietly=True)
            raise QueryError(
                "AX211",
                f"the row of {family!r} gives its query another plan",
                expected="durations over a microsecond, and texts that are not empty",
            )
        broken = engine.document.view(self._definition.watched_name(family)).broken
        if broken is not None:  # a message exceeded a limit before: rows may be missing
            maintained_view(engine.document.view(name)).put_aside(broken)

    def _is_here(self, family: str, query: str, document: Document) -> bool:
        """Whether this bucket has a member with this query."""
        if self._unit.parameter is None:
            return True
        language = self._definition.families[family].language
        constants = maintained(document).families.constants_of(query, language)
        return self._unit.bucket_of(constants[self._unit.parameter]) == self._bucket

    def headed(self, changes: Iterable[Change]) -> list[Change]:
        """Changes as sinks see them: those of a table's members as changes of their family."""
        return [self._headed(change) for change in changes] if self.families else list(changes)

    def _headed(self, change: Change) -> Change:
        view = change.view or ""
        family = self._definition.families.get(family_of(view)) if is_member(view) else None
        return headed_change(change, family.columns) if family and family.columns else change


def _refused(item: Item, member: str, error: str) -> Refused:
    """A row of a table that is no member: every bucket reports it, and it counts once."""
    return Refused(
        item[STREAM], "", item[ORIGIN], error, item[MESSAGE] + 1 + crc32(member.encode())
    )
