"""What the live page does on request: export rows, plot, explain a query, replay dead letters.

    GET  /live/export         the rows of a view as CSV or JSON
    GET  /live/plot           the computed numbers of a view over time
    POST /live/profile        where the time of a document's messages goes (`profiles.py`)
    POST /live/explain        check a query against a document: {"document": D, "query": Q}
    GET  /live/letters        the dead letters of the pipeline, with their contents
    POST /live/letters        put one back at its source: {"number": N, "content": TEXT}

Checking a query compiles it and reads no data. A page watches it with `PUT
/documents/NAME/views/VIEW` (`view_routes.py`).
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator
from io import StringIO
from typing import Any

from starlette.concurrency import run_in_threadpool as in_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from axlog.errors import AxlogError, PipelineError, QueryError
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.options import Options
from axlog.query.query import checked_language
from axlog.server.access import Access
from axlog.server.operations import Operation
from axlog.server.profiles import LONGEST, Profiler
from axlog.server.responses import answer, json_of, number_in, wrong
from axlog.server.roles import Principal, document, view
from axlog.server.row_lists import MOST, TRUTHS, Asked
from axlog.server.summaries import Letters, Observed
from axlog.views.view_query import parse_view

LONGEST_QUERY = 100_000
"""Maximum number of characters of a query that is checked."""
_FORMATS = {"csv": "text/csv; charset=utf-8", "json": "application/json"}


def asked_in(request: Request) -> Asked:
    """Return the selection that a request names."""
    given = request.query_params
    truth = given.get("truth", "")
    if truth not in ("", *TRUTHS):
        raise wrong("unknown truth value", ", ".join(TRUTHS))
    show = int(number_in(request, "show", 100, 1, MOST))
    start = int(number_in(request, "start", 0, 0, 1e9))
    find = given.get("find", "")[:200]
    return Asked(given.get("document", ""), given.get("view", ""), truth, find, show, start)


def action_operations(observer: Observed, access: Access) -> list[Operation]:
    """Return the operations."""

    async def live_export(request: Request, caller: Principal) -> Response:
        asked = asked_in(request)
        access.check(caller, "read", view(asked.document, asked.view))
        form = request.query_params.get("format", "csv")
        if form not in _FORMATS:
            raise wrong("unknown format", " or ".join(_FORMATS))
        found = await in_thread(observer.shown, asked)
        if found is None:
            raise QueryError("AX203", f"there is no view {asked.view[:100]!r}")
        lines = await in_thread(observer.lines, asked)
        written = _csv(found["columns"], lines) if form == "csv" else _json(lines)
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{asked.document}-{asked.view}").strip("-")
        headers = {"Content-Disposition": f'attachment; filename="{name or "rows"}.{form}"'}
        return StreamingResponse(written, media_type=_FORMATS[form], headers=headers)

    async def live_plot(request: Request, caller: Principal) -> Response:
        asked = asked_in(request)
        access.check(caller, "read", view(asked.document, asked.view))
        return answer(await in_thread(observer.plot, asked.document, asked.view))

    async def live_explain(request: Request, caller: Principal) -> Response:
        given = await json_of(request, min(caller.limits.size, 4 * LONGEST_QUERY))
        name, text, language = (given.get(key) for key in ("document", "query", "language"))
        if not isinstance(name, str) or not isinstance(text, str):
            raise wrong("a document and a query are needed", '{"document": D, "query": Q}')
        if not isinstance(language, str | None) or len(text) > LONGEST_QUERY:
            raise wrong("the language is no text, or the query is too long")
        access.check(caller, "read", document(name))
        return answer(await in_thread(explained, observer.live(name), text, language))

    profiler = Profiler(observer)

    async def live_profile(request: Request, caller: Principal) -> Response:
        given = await json_of(request, caller.limits.size)
        name, seconds = given.get("document"), given.get("seconds", 5)
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not isinstance(name, str) or not is_number or not 0 < seconds <= LONGEST:
            raise wrong(
                "a document and some seconds are needed",
                f'{{"document": D, "seconds": N}}, at most {LONGEST:.0f} seconds',
            )
        return answer(await in_thread(profiler.take, name, float(seconds)))

    async def live_letters(request: Request, caller: Principal) -> Response:
        found = await in_thread(_letters(observer).letters)
        return answer([one.plain() for one in found])

    async def replay_letter(request: Request, caller: Principal) -> Response:
        given = await json_of(request, caller.limits.size)
        number, content = given.get("number"), given.get("content")
        if not isinstance(number, int) or not isinstance(content, str | None):
            raise wrong("a dead letter has a number", '{"number": 1, "content": "<order/>"}')
        place = await in_thread(_letters(observer).replay, number, content)
        return answer({"replayed": number, "into": str(place)})

    named = (("document", "the document"), ("view", "its view"))
    sought = (("truth", "true, possible or never"), ("find", "a text"))
    json_body = ("application/json",)
    return [
        Operation("GET", "/live/export", "The rows of a view, to download", live_export, "own",
                  query=(*named, *sought, ("format", "csv or json")),
                  answers=("text/csv", "application/json")),
        Operation("GET", "/live/plot", "The computed numbers of a view over time", live_plot,
                  "own", query=named),
        Operation("POST", "/live/explain", "Check a query, and explain how it would be kept",
                  live_explain, "own", body=json_body),
        Operation("POST", "/live/profile", "Where the time of a document's messages goes",
                  live_profile, "administer", body=json_body),
        Operation("GET", "/live/letters", "The dead letters with their contents", live_letters,
                  "administer"),
        Operation("POST", "/live/letters", "Put a dead letter back at its source, corrected",
                  replay_letter, "administer", body=json_body),
    ]  # fmt: skip


def explained(known: Document | None, text: str, language: str | None) -> dict[str, Any]:
    """Return whether a query is valid, and how a view of it would be kept.

    The query is compiled against an empty document with the same namespaces: no data is read.
    """
    namespaces = {} if known is None else maintained(known).namespaces
    try:
        query = parse_view(text, namespaces, checked_language(language))
        empty = Document("<_/>", options=Options(namespaces=namespaces))
        found = empty.watch(query, "view").explain()
    except AxlogError as error:
        place = error.place
        wrong_at = {} if place is None else {"line": place.line, "column": place.column}
        more = {"expected": error.expected, "advice": error.advice}
        fault = {"code": error.code, "message": error.message, **wrong_at}
        return {"valid": False, **fault, **{key: value for key, value in more.items() if value}}
    types = zip(query.columns, query.columns.types, strict=True)
    return {
        "valid": True,
        "language": found.language,
        "pattern": found.pattern,
        "columns": [{"name": name, "type": kind} for name, kind in types],
        "maintainer": found.maintainer,
        "reason": found.reason,
        "incremental": found.is_incremental,
        "never": found.never,
    }


def _letters(observer: Observed) -> Letters:
    if observer.letters is None:
        raise PipelineError(
            "AX854",
            "the pipeline keeps no dead letters in a file",
            advice="dead_letters: {kind: jsonl, path: out/dead-letters.jsonl}",
        )
    return observer.letters


def _csv(columns: list[str], lines: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table; values are written as they are."""
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(["truth", *columns, "until", "since"])
    for line in lines:
        row = [line["row"].get(name) for name in columns]
        written = [value if isinstance(value, str | None) else json.dumps(value) for value in row]
        writer.writerow([line["truth"], *written, line.get("deadline"), line.get("time")])
        if text.tell() > 1 << 16:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def _json(lines: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a JSON array with an object for each line."""
    kept = ("truth", "row", "deadline", "needs", "time", "cause")
    before = "["
    for line in lines:
        known = {name: line[name] for name in kept if line.get(name) is not None}
        yield f"{before}\n{json.dumps(known, ensure_ascii=False)}"
        before = ","
    yield "\n]\n" if before == "," else "[]\n"
