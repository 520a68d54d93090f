"""The profile of a document of a running server: `axlog explain --server ADDRESS --profile`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import typer

from axlog.connect.http import Allowance, Client
from axlog.errors import ConnectorError
from axlog.live.profile import Profile
from axlog.reporting import counted

SPARE = 30.0
"""Seconds for the answer, beside those that are measured."""


def server_profile(address: str, document: str | None, seconds: float) -> dict[str, Any]:
    """Measure a document of the server at an address for some seconds."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or parts.hostname is None:
        raise typer.BadParameter("an address is needed: http://localhost:8080", param_hint="server")
    base = f"{parts.scheme}://{parts.netloc}"
    client = Client(Allowance(hosts=(parts.hostname,)))
    try:
        if document is None:
            document = _only_document(client, base)
        body = json.dumps({"document": document, "seconds": seconds}).encode()
        return _answer(client, "POST", f"{base}/live/profile", body, seconds + SPARE)
    finally:
        client.close()


def _only_document(client: Client, base: str) -> str:
    names = [each["name"] for each in _answer(client, "GET", f"{base}/live/state")["documents"]]
    if len(names) != 1:
        listed = ", ".join(names) or "none"
        raise typer.BadParameter(f"name one of the documents: {listed}", param_hint="DOC")
    return str(names[0])


def _answer(
    client: Client, method: str, url: str, body: bytes | None = None, seconds: float = SPARE
) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"}
    token = os.environ.get("AXLOG_TOKEN")
    if token:
        headers["Authorization"] = f"Bearer {token}"
    found = client.send(method, url, headers=headers, content=body, seconds=seconds)
    if not found.is_success:
        advice = "set AXLOG_TOKEN to a token with the grant administer"
        raise ConnectorError(
            "AX858",
            f"{url} answered {found.status}: {_message(found.content)}",
            advice=advice if found.status in (401, 403) else None,
        )
    answer: dict[str, Any] = json.loads(found.content)
    return answer


def _message(content: bytes) -> str:
    try:
        said = json.loads(content)
    except ValueError:
        return content[:200].decode(errors="replace")
    return str(said.get("message", said))[:200] if isinstance(said, dict) else str(said)[:200]


def shown(found: Mapping[str, Any]) -> str:
    """The profile as `axlog explain --profile` shows it, with the sinks."""
    names = ("messages", "unread", "matched", "rows", "changes", "nodes")
    profile = Profile(dict(found["seconds"]), **{name: found[name] for name in names})
    lines = [f"{profile}", f"  in {found['elapsed']:.1f} s"]
    lines += [
        f"  sink {sink['name']}: {counted(sink['changes'], 'change')}, {sink['seconds']:.3f} s"
        for sink in found["sinks"]
    ]
    return "\n".join(lines)
