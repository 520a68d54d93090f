"""The OpenAPI description as a page: every operation with its parameters and answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; overflow-wrap: anywhere; }
details { border: 1px solid #8886; border-radius: .4rem; margin: .4rem 0; padding: .3rem .8rem; }
summary { cursor: pointer; } code { font-size: .95em; }
.method { display: inline-block; font-weight: 700; min-width: 4.5rem; }
"""


def api_page(description: Mapping[str, Any]) -> str:
    """Return an OpenAPI description as HTML without scripts."""
    info = description["info"]
    title = escape(f"{info['title']} {info['version']}")
    body = "".join(
        _operation(method, path, operation)
        for path, methods in sorted(description["paths"].items())
        for method, operation in methods.items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body><main><h1>{title}</h1>"
        '<p>For programs: <a href="openapi.json">openapi.json</a>. Requests need a token unless an'
        f" operation is open to all.</p>{body}</main></body></html>"
    )


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    summary = escape(str(operation.get("summary", "")))
    head = f'<span class="method">{escape(method.upper())}</span> <code>{escape(path)}</code>'
    lines = "".join(f"<li>{line}</li>" for line in _lines(operation))
    return f"<details><summary>{head} {summary}</summary><ul>{lines}</ul></details>"


def _lines(operation: Mapping[str, Any]) -> Iterator[str]:
    for one in operation.get("parameters", ()):
        about = escape(str(one.get("description", "")))
        yield f"<code>{escape(one['name'])}</code> in the {escape(one['in'])}: {about}"
    for media in operation.get("requestBody", {}).get("content", {}):
        yield f"body: <code>{escape(media)}</code>"
    for status, answer in operation.get("responses", {}).items():
        media = ", ".join(answer.get("content", {}))
        yield f"{escape(str(status))}: {escape(answer.get('description', ''))} {escape(media)}"
