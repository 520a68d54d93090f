"""Roles: grants, the file that has them, sessions, limits, TLS, and what ends when they do."""

import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from typer.testing import CliRunner

from axlog.cli.application import application
from axlog.connect.channels.registry import Channels
from axlog.connect.http import LOOPBACK, Allowance
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AccessError, ChannelError
from axlog.server import sessions
from axlog.server.access import Access
from axlog.server.application import Settings, make_application
from axlog.server.page import shown_to
from axlog.server.roles import (
    SERVER,
    Grant,
    Resource,
    Roles,
    Scope,
    channel,
    check_roles_text,
    document,
    view,
    written_hash,
)
from axlog.server.server import running
from axlog.server.webhook_secrets import HookFile
from tests.server_access import TOKEN, client_of, principal, secured, token_of
from tests.server_world import receiver
from tests.waiting import eventually

AXLOG = [sys.executable, "-c", "from axlog.cli import main; main()"]


def entry(name: str, grants: str) -> str:
    return f'  {name}: {{hash: "{written_hash(token_of(name))}", grants: {grants}}}\n'


def write(path: Path, **grants: str) -> Path:
    path.write_text("principals:\n" + "".join(entry(*one) for one in grants.items()))
    return path


def stamp(path: Path) -> None:
    """Make a change show in a file's time, however coarse the clock of its system is."""
    at = path.stat().st_mtime_ns + 10_000_000
    os.utime(path, ns=(at, at))


@pytest.mark.parametrize(
    ("grant", "verb", "resource", "allowed"),
    [
        ({"may": "read"}, "read", channel("a"), True),
        ({"may": "read"}, "read", SERVER, True),
        ({"may": "read"}, "publish", channel("a"), False),
        ({"may": "read", "channels": "a*"}, "read", channel("ab"), True),
        ({"may": "read", "channels": ["a*", "c"]}, "read", channel("b"), False),
        ({"may": "read", "channels": "a"}, "read", document("a"), False),
        ({"may": "read", "channels": "*"}, "read", SERVER, False),
        ({"may": "subscribe", "channels": "a"}, "read", channel("a"), True),
        ({"may": "subscribe", "channels": "a"}, "publish", channel("a"), False),
        ({"may": "watch", "documents": "d"}, "read", document("d"), True),
        ({"may": "watch", "documents": "d"}, "watch", view("d", "v"), True),
        ({"may": "watch", "documents": "d"}, "watch", view("e", "v"), False),
        ({"may": "read", "views": "v*"}, "read", view("d", "v1"), True),
        ({"may": "read", "views": "v*"}, "read", document("d"), False),
        ({"may": "read", "views": "v", "documents": "d"}, "read", view("e", "v"), False),
        ({"may": "read", "server": True}, "read", SERVER, True),
        ({"may": "read", "server": True}, "read", channel("a"), False),
        ({"may": "administer", "channels": "a"}, "publish", channel("a"), True),
        ({"may": "administer", "channels": "a"}, "administer", channel("b"), False),
        ({"may": ["publish", "watch"]}, "watch", view("d", "v"), True),
    ],
)
def test_grants(grant: Any, verb: str, resource: Resource, allowed: bool) -> None:
    assert Grant.model_validate(grant).allows(verb, resource) is allowed


HASH = written_hash(TOKEN)
ANN = f'principals:\n  a:\n    hash: "{HASH}"\n'
WRONG: dict[str, tuple[str, int, int, str]] = {
    "a token": (f"principals:\n  a:\n    token: {TOKEN}\n", 3, 5, "unknown here"),
    "no hash": ("principals:\n  a: {grants: [read]}\n", 2, 3, "has no 'hash'"),
    "a bad hash": ("principals:\n  a: {hash: secret-of-mine}\n", 2, 13, "hash: "),
    "a verb": (f'principals:\n  a: {{hash: "{HASH}", grants: [fly]}}\n', 2, 99, "Input should be"),
    "a key": ("principals: {}\nprincpals: {}\n", 2, 1, "unknown here"),
    "a limit": (ANN + "    limits: {speed: 1}\n", 4, 14, "known"),
    "a limit below": (
        ANN + "    limits: {rate: 0}\n", 4, 20, "greater",
    ),
    "a name": (ANN.replace(" a:", " a/b:"), 2, 3, "match pattern"),
    "a reserved name": (ANN.replace(" a:", " anyone:"), 3, 5, "is not a valid name"),
    "one token": (
        ANN + f'  b: {{hash: "{HASH}"}}\n', 4, 13, "the token of 'a'",
    ),
    "no sense": (
        ANN + "    grants:\n    - {may: publish, views: v}\n",
        5, 7, "'publish' is not granted on views",
    ),
    "an origin": ("origins: [evil]\nprincipals: {}\n", 1, 11, "an origin is"),
    "twice": ("principals:\n  a: {}\n  a: {}\n", 3, 3, "written twice"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_errors_are_reported_with_their_place(what: str, tmp_path: Path) -> None:
    """By `axlog check`, with line and column; never with the line, in which a secret may stand."""
    text, line, column, said = WRONG[what]
    (tmp_path / "roles.yaml").write_text(text)
    told = CliRunner().invoke(application(["check"]), ["check", str(tmp_path / "roles.yaml")])
    assert told.exit_code == 2
    problems = [json.loads(each) for each in told.output.splitlines()]
    found = [one for one in problems if said in one["message"]]
    assert found, problems
    assert found[0]["line"] == line
    assert abs(found[0]["column"] - column) <= 8
    assert found[0]["code"] == "AX816"
    assert TOKEN not in told.output
    assert "secret-of-mine" not in told.output
    with pytest.raises(ChannelError, match="AX816"):
        Access(path=tmp_path / "roles.yaml")


def test_the_file_of_the_documentation(repository: Path) -> None:
    page = (repository / "docs" / "security.md").read_text(encoding="utf-8")
    text = re.findall(r"```yaml title=\"roles.yaml\"\n(.*?)```", page, re.DOTALL)[0]
    roles, problems = check_roles_text(text)
    assert problems == []
    assert roles is not None
    shop = next(each for each in roles.principals if each.name == "shop")
    assert shop.may("read", view("monitor", "open-1"))
    assert not shop.may("read", document("monitor"))
    assert shop.limits.requests == 50


def test_a_token_is_made_and_hashed(tmp_path: Path) -> None:
    asked = ["token", "shop", "--may", "publish", "--may", "subscribe"]
    made = CliRunner().invoke(application(["token"]), asked).output
    token = made.splitlines()[0].split()[-1]
    (tmp_path / "roles.yaml").write_text(made)
    found = Access(path=tmp_path / "roles.yaml").of_secret(token)
    assert found.may("publish", channel("x"))
    assert token not in repr(found)
    again = CliRunner().invoke(application(["token"]), ["token", "shop", "--stdin"], input=token)
    assert written_hash(token) in again.output
    assert token not in again.output
    short = CliRunner().invoke(application(["token"]), ["token", "shop", "--stdin"], input="x")
    assert short.exit_code == 2


def test_the_file_is_reloaded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "roles.yaml", ann="[read]")
    access = Access(path=path)
    ann = access.of_secret(token_of("ann"))
    write(path, ann="[publish]", bob="[read]")
    stamp(path)
    access.refresh()
    with pytest.raises(AccessError, match="AX814"):
        access.check(ann, "read", channel("a"))
    access.check(ann, "publish", channel("a"))
    assert access.of_secret(token_of("bob")).name == "bob"
    for broken in ("principals: [", "principals: {ann: {}}", ""):
        path.write_text(broken)
        stamp(path)
        access.refresh()
        access.check(ann, "publish", channel("a"))  # those of before
        assert access.problem is not None
        assert access.health().state.value == "degraded"
    path.unlink()
    access.refresh()
    assert access.problem is not None
    assert "roles kept" in caplog.text
    write(path, bob="[read]")
    access.refresh()
    assert access.health().state.value == "ok"
    with pytest.raises(AccessError, match="AX814"):
        access.check(ann, "publish", channel("a"))  # who is gone may nothing


def test_revoked_rights_end(tmp_path: Path) -> None:
    """A stream, a wait, a session and a webhook that a grant had begun."""
    path = write(tmp_path / "roles.yaml", ann="[subscribe]", bob="[read]")
    access = Access(path=path)
    channels = Channels()
    orders = channels.make("orders")
    got: list[bytes] = []
    settings = Settings(
        port=0, access=access, allowance=Allowance(hosts=LOOPBACK), longest_pause=0.05
    )
    with (
        running(make_application(channels, settings), settings) as address,
        receiver(got.append) as callback,
        client_of(address, None) as browser,
        client_of(address, token_of("ann")) as ann,
    ):
        browser.post("/session", json={"token": token_of("bob")})
        assert browser.get("/channels").status_code == 200
        hook = {"callback": callback}
        assert ann.put("/channels/orders/subscriptions/hook", json=hook).status_code == 200
        with ann.stream("GET", "/channels/orders/events") as events:
            lines = events.iter_lines()
            orders.publish(StreamUpdate("orders", "insert", "<order/>"))
            assert next(line for line in lines if line.startswith("id:")) == "id: 1"
            eventually(lambda: len(got) == 1)
            write(path, ann="[publish]")
            stamp(path)
            access.reload()
            orders.publish(StreamUpdate("orders", "insert", "<order/>"))
            rest = list(lines)
            assert "event: gap" in rest
            assert any("AX814" in line for line in rest)
            assert not any(line.startswith("id: 2") for line in rest)
        assert browser.get("/channels").status_code == 401
        write(path, ann="[subscribe]")
        stamp(path)
        assert len(got) == 1
        access.reload()
        eventually(lambda: len(got) == 2)  # what came meanwhile


def test_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    channels = Channels()
    settings = secured(principal("ann", "read"))
    with running(make_application(channels, settings), settings) as address:
        client = client_of(address, None)
        assert client.post("/session", json={"token": "not the token"}).status_code == 401
        assert client.post("/session", json={"token": 5}).status_code == 400
        assert client.post("/session", json={"token": "x" * 5000}).status_code == 429
        answer = client.post("/session", json={"token": token_of("ann")})
        cookie = answer.headers["set-cookie"].lower()
        port = urlsplit(address).port
        assert cookie.startswith(f"axlog-{port}=")
        assert {"httponly", "samesite=strict", "path=/"} <= {p.strip() for p in cookie.split(";")}
        assert "secure" not in cookie  # a browser would not send it without TLS
        assert token_of("ann") not in cookie
        assert client.get("/session").json()["name"] == "ann"
        assert client.get("/channels").status_code == 200
        held = client.cookies[f"axlog-{port}"]
        with client_of(address, None) as other:
            other.cookies.set(f"axlog-{port}", held[:-1] + "x")
            assert other.get("/channels").status_code == 401
        here = {"Origin": address}
        assert client.delete("/session", headers=here).status_code == 204
        with client_of(address, None) as thief:
            thief.cookies.set(f"axlog-{port}", held)
            assert thief.get("/channels").status_code == 401
        monkeypatch.setattr(sessions, "LASTS", -1)
        client.post("/session", json={"token": token_of("ann")})
        assert client.get("/channels").status_code == 401
        monkeypatch.undo()
        for _ in range(sessions.MOST + 5):
            settings.access.sessions.begin(principal("ann"))
        assert len(settings.access.sessions) == sessions.MOST
        client.close()


def test_public_reading() -> None:
    channels = Channels()
    for name in ("news", "orders"):
        channels.make(name)
    for public, seen in ((Scope(), ["news", "orders"]), (Scope(channels=("news",)), ["news"])):
        settings = Settings(port=0, access=Access(Roles(public=public)))
        with (
            running(make_application(channels, settings), settings) as address,
            client_of(address, None) as client,
        ):
            assert [c["name"] for c in client.get("/channels").json()["channels"]] == seen
            assert client.get("/channels/news/updates?after=0").status_code == 200
            found = client.get("/channels/orders/updates?after=0").status_code
            assert found == (200 if "orders" in seen else 401)
            assert client.put("/channels/new", json={}).status_code == 401
            update = {"stream": "news", "insert": "<a/>"}
            assert client.post("/channels/news/updates", json=update).status_code == 401
            assert client.put("/channels/news/subscriptions/x", json={}).status_code == 401


def test_requests_are_limited() -> None:
    settings = secured(principal("slow", "read", requests=0.001), principal("other", "read"))
    channels = Channels()
    channels.make("orders")
    with running(make_application(channels, settings), settings) as address:
        with client_of(address, token_of("slow")) as slow:
            first, second = slow.get("/channels"), slow.get("/channels")
            assert (first.status_code, second.status_code) == (200, 429)
            assert second.json()["code"] == "AX812"
            assert second.headers["retry-after"]
        with client_of(address, token_of("other")) as other:
            assert other.get("/channels").status_code == 200  # nobody else is slowed
    access = Access(Roles(public=Scope()))
    anyone = access.roles.anyone
    slow_one = type(anyone)(anyone.name, b"", anyone.grants, anyone.limits.model_copy(
        update={"requests": 0.001}))  # fmt: skip
    access.spend(slow_one, "192.0.2.1")
    with pytest.raises(AccessError, match="AX812"):
        access.spend(slow_one, "192.0.2.1")
    access.spend(slow_one, "192.0.2.2")  # those without a token are told apart by address


def test_streams_are_limited() -> None:
    settings = secured(principal("ann", "read", streams=1))
    channels = Channels()
    channels.make("orders")
    with (
        running(make_application(channels, settings), settings) as address,
        client_of(address, token_of("ann")) as ann,
        client_of(address, token_of("ann")) as two,
    ):
        with ann.stream("GET", "/channels/orders/events") as events:
            parts = events.iter_raw()
            assert next(parts) == b"retry: 1000\n\n"
            eventually(lambda: two.head("/channels/orders/events").status_code == 429)
            assert two.get("/channels/orders/updates?wait=1").status_code == 429
            assert two.get("/channels/orders/events").json()["code"] == "AX812"
        eventually(lambda: two.get("/channels/orders/updates").status_code == 200)
        assert two.head("/channels/orders/events").status_code == 200  # and it ends


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl on the path")
def test_tls(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", key, "-out", cert,
         "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    settings = secured(certificate=str(cert), key=str(key))
    with running(make_application(Channels(), settings), settings) as address:
        assert address.startswith("https://")
        trusted = ssl.create_default_context(cafile=str(cert))
        with client_of(address, None, verify=trusted) as client:
            answer = client.post("/session", json={"token": TOKEN})
            cookie = answer.headers["set-cookie"]
            assert cookie.startswith("__Host-axlog-")
            assert "; Secure" in cookie
            assert client.get("/channels").status_code == 200
        with pytest.raises(httpx.ConnectError):
            httpx.get(address, trust_env=False)  # nobody has vouched for it
        with pytest.raises(httpx.HTTPError):
            httpx.get(address.replace("https:", "http:"), trust_env=False)
    with pytest.raises(ChannelError, match="AX818"):
        make_application(Channels(), secured(certificate=str(cert)))
    with pytest.raises(ChannelError, match="AX818"):
        make_application(Channels(), secured(certificate=str(cert), key=str(tmp_path / "none")))


def test_the_page_shows_what_may_be_read() -> None:
    state = {
        "documents": [
            {"name": n, "views": [{"name": "v"}, {"name": "u"}], "streams": [1], "sizes": [2],
             "nodes": 3, "state": 4}
            for n in ("w", "x")
        ],
        "changes": [{"document": n, "view": v} for n in ("w", "x") for v in ("v", "u")],
        "letters": [1], "refused": 1, "lagging": [1], "system": {"sources": [1]},
        "can_replay": True,
    }  # fmt: skip
    everything = principal("all", "read")
    assert shown_to(everything, state) == {**state, "can_replay": False}
    assert shown_to(principal("root", "administer"), state) == state
    some = principal("some", Grant(may=("read",), documents=("w",), views=("v",)))
    shown = shown_to(some, state)
    assert [(w["name"], w["views"], w["streams"]) for w in shown["documents"]] == [
        ("w", [{"name": "v"}], [])
    ]
    assert shown["changes"] == [{"document": "w", "view": "v"}]
    assert (shown["letters"], shown["lagging"], shown["system"]["sources"]) == ([], [], [])
    assert shown_to(principal("none"), state)["documents"] == []


def test_addresses_in_journals_of_before_are_moved(tmp_path: Path) -> None:
    """Version 0.1 kept a webhook's address and secret in the journal."""
    channels = Channels(tmp_path)
    with receiver() as callback:
        hook = {"callback": callback, "secret": "the secret of before", "expires": 4e9}
        orders = channels.make("orders")
        orders.subscribe("peer", after=0, options={"hook": hook}).close()
        settings = secured(allowance=Allowance(hosts=LOOPBACK))
        app = make_application(channels, settings)
        with running(app, settings) as address, client_of(address) as client:
            orders.publish(StreamUpdate("orders", "insert", "<order/>"))
            eventually(lambda: orders.subscriptions()["peer"].acknowledged == 1)
            listed = client.get("/channels/orders").text
    channels.close()
    assert callback not in listed
    for path in (each for each in tmp_path.rglob("*") if each.is_file()):
        is_there = b"the secret of before" in path.read_bytes()
        assert is_there == path.name.endswith(".hooks"), path
        assert path.stat().st_mode & 0o777 == 0o600, path
    again = Channels(tmp_path)
    (tmp_path / "orders.channel.hooks").write_text('{"axlog-hooks": 1, "hooks": {"peer": {}}}')
    with closing(again["orders"]), pytest.raises(ChannelError, match="AX819"):
        HookFile(again["orders"])


def test_the_command_generates_a_token_and_reloads_on_sighup(tmp_path: Path) -> None:
    path = write(tmp_path / "roles.yaml", ann="[read]")
    known = {**os.environ, "PYTHONUNBUFFERED": "1"}
    known.pop("AXLOG_TOKEN", None)
    command = [*AXLOG, "serve", "--port", "0", "--channel", "orders"]
    for options in ([], ["--roles", str(path)]):
        with subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, text=True, env=known
        ) as process:
            try:
                assert process.stdout is not None
                address = process.stdout.readline().split()[-1]
                if not options:
                    token = process.stdout.readline().split()[-1]
                    with client_of(address, token) as client:
                        assert client.put("/channels/new", json={}).status_code == 201
                    process.send_signal(signal.SIGHUP)  # there is nothing to reload
                    with client_of(address, token) as client:
                        assert client.get("/channels").status_code == 200
                else:
                    with client_of(address, token_of("ann")) as client:
                        assert client.put("/channels/new", json={}).status_code == 403
                        write(path, ann="[administer]")
                        process.send_signal(signal.SIGHUP)
                        eventually(lambda: client.put("/channels/new", json={}).status_code == 201)
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) == 0
            finally:
                process.kill()
