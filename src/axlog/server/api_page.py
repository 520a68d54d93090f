"""The OpenAPI description as a page: every operation with its parameters, answers and a request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from itertools import groupby
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --ground: #f4f6f9; --card: #fff; --soft: #566375; --line: #dbe1e9;
  --get: #1456b8; --put: #8a5a00; --post: #12734a; --delete: #b3261e;
  font: 15px/1.5 system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { :root { --ground: #0f1319; --card: #181e26; --soft: #9aa8b9;
  --line: #2c3541; --get: #7fb2ff; --put: #f0bd60; --post: #5fd39c; --delete: #ff8a80; } }
body { margin: 2rem auto; max-width: 64rem; padding: 0 1rem; overflow-wrap: anywhere;
  background: var(--ground); }
h2 { margin: 1.6rem 0 .4rem; font-size: 1.1rem; }
details { background: var(--card); border: 1px solid var(--line); border-radius: .4rem;
  margin: .35rem 0; padding: .3rem .8rem; }
summary { cursor: pointer; } summary:focus-visible { outline: 3px solid var(--get); }
code, pre { font: .93em ui-monospace, "DejaVu Sans Mono", monospace; } .soft { color: var(--soft); }
pre { border: 1px solid var(--line); border-radius: .4rem; padding: .5rem .7rem; overflow-x: auto; }
.method { display: inline-block; font-weight: 700; min-width: 4.5rem; }
.get { color: var(--get); } .put { color: var(--put); } .post { color: var(--post); }
.delete { color: var(--delete); } ul { margin: .4rem 0; padding-left: 1.2rem; }
"""
_GROUPS = {"channels": "Channels", "documents": "Documents and views", "live": "The live page"}
_OTHERS = "Server"


def api_page(description: Mapping[str, Any]) -> str:
    """Return an OpenAPI description as HTML without scripts."""
    info = description["info"]
    title = escape(f"{info['title']} {info['version']}")
    order = [*_GROUPS.values(), _OTHERS]
    paths = sorted(description["paths"].items(), key=lambda one: (order.index(_group(one[0])), one))
    body = "".join(
        f"<h2>{group}</h2>"
        + "".join(
            _operation(method, path, operation)
            for path, methods in of_group
            for method, operation in methods.items()
        )
        for group, of_group in groupby(paths, lambda one: _group(one[0]))
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body><main><h1>{title}</h1>"
        '<p>The same for programs: <a href="openapi.json">openapi.json</a> (OpenAPI 3.1). Send a'
        " token with each request that needs a grant: <code>Authorization: Bearer TOKEN</code>."
        " <code>axlog token NAME</code> creates one. Errors are problems (RFC 9457) with axlog's"
        f" code.</p>{body}</main></body></html>"
    )


def _group(path: str) -> str:
    return _GROUPS.get(path.split("/")[1], _OTHERS)


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    summary = escape(str(operation.get("summary", "")))
    head = (
        f'<span class="method {escape(method)}">{escape(method.upper())}</span>'
        f" <code>{escape(path)}</code>"
    )
    lines = "".join(f"<li>{line}</li>" for line in _lines(operation))
    return (
        f'<details><summary>{head} <span class="soft">{summary}</span></summary>'
        f"<ul>{lines}</ul><pre>{escape(_request(method, path, operation))}</pre></details>"
    )


def _lines(operation: Mapping[str, Any]) -> Iterator[str]:
    if operation.get("deprecated"):
        yield "deprecated"
    grant = operation.get("x-axlog-grant")
    if grant is None:
        yield "open to all"
    else:
        yield "needs a token" + ("" if grant == "own" else f" with the grant <code>{grant}</code>")
    for one in operation.get("parameters", ()):
        about = escape(str(one.get("description", "")))
        kind = escape(str(one.get("schema", {}).get("type", "")))
        where = f"in the {escape(one['in'])}, {kind}"
        yield f"<code>{escape(one['name'])}</code> ({where}){': ' if about else ''}{about}"
    for media in operation.get("requestBody", {}).get("content", {}):
        yield f"body: <code>{escape(media)}</code>"
    for status, answer in operation.get("responses", {}).items():
        media = ", ".join(answer.get("content", {}))
        if status != "default":
            yield f"answers {escape(str(status))}: <code>{escape(media) or 'no content'}</code>"


def _request(method: str, path: str, operation: Mapping[str, Any]) -> str:
    """An example of a request; names in capitals are to be replaced."""
    parts = ["curl"] + ([] if method == "get" else [f"-X {method.upper()}"])
    if "security" in operation:
        parts.append('-H "Authorization: Bearer $TOKEN"')
    media = next(iter(operation.get("requestBody", {}).get("content", {})), None)
    if media is not None:
        parts += [f'-H "Content-Type: {media}"', "--data @FILE"]
    address = re.sub(r"{(\w+)}", lambda found: found[1].upper(), path)
    return " ".join([*parts, f'"$SERVER{address}"'])
