"""Families on the live page: many views that share a plan are one entry, with searchable members.

The members of a pipeline's `for_each` view are one entry with its name; their rows have the values
of the table in front. Other views that share a plan are one entry with the name of the first of
them; their rows have the name of the view in front. A search finds members by name and values,
rows by their values. Members without rows cost nothing until they are selected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from axlog.errors import QueryError
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.runtime.family_members import FamilyMembers
from axlog.server.row_lists import Asked, Listing, Prospect
from axlog.views.change import Change
from axlog.views.family_names import family_of, is_member, is_pilot

FOUND = 50
"""Members that the page lists at once."""
VIEW = "view"
"""The column with the name of the view, in the rows of views that the caller named."""


@dataclass(slots=True)
class FamilyEntry:
    """Views that share a plan, as the page lists them."""

    name: str
    members: list[str]
    table: FamilyMembers | None = None  # of a pipeline


def entries_of(document: Document, table: FamilyMembers | None) -> dict[str, FamilyEntry]:
    """Return the families of a document by the names of their entries."""
    families = maintained(document).families
    found: dict[str, FamilyEntry] = {}
    if table is not None:
        found = {name: FamilyEntry(name, [], table) for name in table.families}
    groups: dict[int, FamilyEntry] = {}
    for view, inside in families.every_view():
        if is_pilot(view):
            continue
        if table is not None and is_member(view) and family_of(view) in found:
            found[family_of(view)].members.append(view)
        elif view in families.members and inside is families.members[view]:
            plan = id(families.members[view].family)
            group = groups.setdefault(plan, FamilyEntry(view, []))
            group.members.append(view)
    return found | {one.name: one for one in groups.values() if len(one.members) > 1}


def rows_of(
    document: Document, entry: FamilyEntry
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return the rows of all members for JSON: the member, its row, and the row of the family."""
    families = maintained(document).families
    for name in entry.members:
        if not families.may_have_rows(name):
            continue
        view = document.view(name)
        if view.broken is not None:
            continue
        for row in view.rows():
            own = row.to_dict()
            if entry.table is None:
                yield name, own, {VIEW: name, **own}
            else:
                headed = entry.table.headed(Change("insert", row, view=name))
                yield name, own, headed.row.to_dict()


def count_of(document: Document, entry: FamilyEntry) -> int:
    """Return the number of rows of all members."""
    families = maintained(document).families
    total = 0
    for name in entry.members:
        if families.may_have_rows(name):
            try:
                total += len(document.view(name))
            except QueryError:
                continue  # it was set aside
    return total


def entry_summary(document: Document, entry: FamilyEntry) -> dict[str, Any]:
    """Return the entry in the list of views."""
    columns, types = _columns(document, entry)
    return {
        "name": entry.name,
        "count": count_of(document, entry),
        "members": len(entry.members),
        "types": dict(zip(columns, types, strict=True)),
    }


def entry_shown(
    document: Document, entry: FamilyEntry, asked: Asked, never: tuple[list[Any], int]
) -> dict[str, Any]:
    """Return a family with its rows, and the members that a search finds."""
    sought = asked.sought
    found = [name for name in entry.members if sought in name.casefold()]
    columns, types = _columns(document, entry)
    shown = (row for _, _, row in rows_of(document, entry))
    prospect = Prospect(reason="select a member for its possible rows")
    counts = {"true": count_of(document, entry), "never": never[1]}
    listing = Listing(shown, counts, prospect, never[0])
    return {
        "document": asked.document,
        "view": entry.name,
        "query": _query(document, entry),
        "columns": columns,
        "types": types,
        "key": columns,
        "maintainer": "counting",
        "numbers": [],
        "members": {"count": len(entry.members), "found": len(found), "names": found[:FOUND]},
        **listing.plain(asked),
    }


def _query(document: Document, entry: FamilyEntry) -> str:
    if entry.table is not None:
        return entry.table.families[entry.name].written.query.strip()
    return document.view(entry.members[0]).query.text.strip()


def _columns(document: Document, entry: FamilyEntry) -> tuple[list[str], list[str]]:
    if entry.table is not None:
        family = entry.table.families[entry.name]
        columns = entry.table.queries[entry.name].columns
        types: list[str] = [type_ for _, type_ in family.typed_columns]
        return [*family.columns, *columns], [*types, *columns.types]
    view = document.view(entry.members[0])
    return [VIEW, *view.columns], ["text", *view.query.columns.types]
