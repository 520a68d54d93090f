"""The views of a document that Spark keeps by one plan, because they differ in constants only.

A document shares plans by itself, from eight views of one shape on (`live/families.py`). On Spark
such a shape is one view of the definition, and the views of this shape are its members: rows of a
table (`table_source.py`). A checkpoint that has a shape keeps it, also with fewer views; views that
it keeps alone stay alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from axlog.live.document import Document
from axlog.live.families import SHARE_FROM
from axlog.live.internals import maintained
from axlog.runtime.definition import Definition, FamilyDefinition
from axlog.runtime.table_source import Members


def shared_definition(
    document: Document, stored: Definition | None
) -> tuple[Definition, Mapping[str, Members]]:
    """Return the definition of a document, and the members of its families.

    `stored`: the definition of its checkpoint, if there is one.
    """
    found: dict[str, dict[str, str]] = {}  # by shape
    shared: dict[str, FamilyDefinition] = {}
    alone: dict[str, None] = {}
    for name, shape, text, language in maintained(document).families.texts():
        if shape is None or (stored is not None and name in stored.views):
            alone[name] = None
            continue
        family = f"views of the shape {shape}"
        found.setdefault(family, {})[name] = text
        shared.setdefault(family, FamilyDefinition(text, language))
    known = {} if stored is None else stored.families
    made = replace(Definition.of(document, ()), families={**shared, **known})
    for family, members in list(found.items()):
        if family not in known and (len(members) < SHARE_FROM or not _is_shared(made, family)):
            alone |= dict.fromkeys(found.pop(family))
    definition = Definition.of(document, [name for name in document.views if name in alone])
    families = {name: made.families[name] for name in found}
    return replace(definition, families=families), found


def _is_shared(definition: Definition, family: str) -> bool:
    """Whether members of a family share a plan in the documents of Spark."""
    document = definition.make([family])
    return definition.watched_name(family) in maintained(document).families.members
