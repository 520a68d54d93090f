"""Law 15: the items of a view that Saxon evaluates are Saxon's answer, after every update.

The view evaluates the query only after updates that are not proved to be outside of what it reads;
the law asks Saxon directly each time. Where Saxon has no value, neither has the view: its one item
is None. The rows before, with the changes merged by key, are the rows now.
"""

from __future__ import annotations

from typing import Any

import axlog
from axlog.errors import UpdateError
from lab.laws.xquery_cases import History, XQueryCase
from lab.reference.saxon import same_items, saxon_items, shown


def check_saxon(case: XQueryCase) -> None:
    """Check one case."""
    for query in case.queries:
        for history in case.histories:
            _follow(query, history)


def _follow(query: str, history: History) -> None:
    doc = axlog.parse(history.document)
    view = doc.watch(query, "view", language="xquery", maintainer="saxon")
    rows = {row.key_text: row.to_dict() for row in view.rows()}
    _check(doc, view, query, "at first")
    for update in history.updates:
        try:
            changes = doc.update(update)
        except UpdateError:
            continue  # such as a second attribute of the same name: nothing was changed
        for change in changes:
            if change.op == "delete":
                assert rows.pop(change.key_text) == change.row.to_dict(), f"{update}: {change}"
            else:
                assert change.op == "insert", f"{update}: {change}"
                assert change.key_text not in rows, f"{update}: {change}"
                rows[change.key_text] = change.row.to_dict()
        _check(doc, view, query, update)
        now = {row.key_text: row.to_dict() for row in view.rows()}
        assert rows == now, f"{query}\nafter {update}: changes give {rows}, rows are {now}"


def _check(doc: axlog.Document, view: Any, query: str, when: str) -> None:
    expected = saxon_items(query, doc.xml())
    found = view.items()
    if expected is None:
        assert found == [None], (
            f"{query}\nafter {when}: {shown(found)}; Saxon has no value; {doc.xml()}"
        )
        return
    assert same_items(found, expected), (
        f"{query}\nafter {when}: {shown(found)}; Saxon: {shown(expected)}; {doc.xml()}"
    )
