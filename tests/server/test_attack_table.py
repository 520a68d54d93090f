"""Every endpoint of the server and every parameter of it, attacked from one table.

A route of the application or a parameter of its OpenAPI description that is not in `ENDPOINTS`
fails the first test: whoever adds one says which grant it needs, how it is asked, and what is sent
in the place of each parameter. The rest goes over the table: who may ask it, what other sites can
make a browser ask, and that no safe method changes anything.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice, product
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from axlog.connect.channels.registry import Channels
from axlog.document.stream_update import StreamUpdate
from axlog.server import change_events, channel_routes
from axlog.server.application import Settings, make_application
from axlog.server.operations import Operation
from axlog.server.roles import INCLUDED, Principal
from axlog.server.server import running
from axlog.server.sessions import cookie_name
from tests.server_access import TOKEN, client_of, token_of
from tests.server_world import HIDDEN, OWN, PRINCIPALS, SECRET, World, pattern

FILTER = pattern("match /order[late]").to_json()
BAD = ("", "%00", "x" * 5000, "../..", "-1", "9" * 30, "\ud7ff'\"<script>", "[" * 1000)
"""Values that suit no parameter."""


@dataclass(frozen=True)
class Endpoint:
    """How one operation is asked, and who may ask it."""

    needs: str  # as the operation says
    path: str  # an example, with names that exist
    body: Any = None
    form: dict[str, str] | None = None
    query: dict[str, tuple[str, ...]] = field(default_factory=dict)  # values that suit
    headers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    verb: str = ""  # what its handler checks, where `needs` is "own"
    parts: tuple[str, ...] = ()  # of the path
    streams: bool = False


AFTER = ("0", "2", "99")
NAMES = (OWN, "mine", "hook", "taken", "ann/mine", f"ann/{OWN}", "x\0it")
"""Subscriptions: the pipeline's own, ann's, and names that are made to look like others."""
READING = {"after": AFTER, "filter": (FILTER,), "match": ("match /order",), "subscription": NAMES}
ONE, PEER = "/channels/{channel}", "/channels/{channel}/subscriptions/{subscription}"
VIEW = "/documents/{document}/views/{view}"
FAMILIES = "/documents/{document}/families"
MEMBERS = f"{FAMILIES}/{{family}}/members"
MEMBER = f"{MEMBERS}/{{member}}"
OF_MEMBER = ("document", "family", "member")
UPDATE = {"stream": "orders", "insert": "<order/>"}
HUB = {"hub.mode": "subscribe", "hub.topic": "/channels/orders", "hub.callback": "http://0/"}
SHOWN = {
    "document": ("w", "none"), "view": ("v", "added", "none"), "truth": ("true", "possible"),
    "find": ("1",), "show": ("7",), "start": ("0", "5"),
}  # fmt: skip
ENDPOINTS: dict[tuple[str, str], Endpoint] = {
    ("GET", "/channels"): Endpoint("own", "/channels"),
    ("GET", ONE): Endpoint("read", "/channels/orders", parts=("channel",)),
    ("PUT", ONE): Endpoint("administer", "/channels/orders", {}, parts=("channel",)),
    ("POST", f"{ONE}/updates"): Endpoint(
        "publish", "/channels/orders/updates", UPDATE, parts=("channel",),
        query={"stream": ("orders",), "at": ("7",)},
        headers={"Axlog-Producer": ("pipeline",), "Axlog-Number": ("9",)},
    ),
    ("GET", f"{ONE}/updates"): Endpoint(
        "read", "/channels/orders/updates", parts=("channel",),
        query={**READING, "limit": ("1", "1000"), "wait": ("0.01",)},
    ),
    ("GET", f"{ONE}/events"): Endpoint(
        "read", "/channels/orders/events", parts=("channel",), streams=True,
        query=READING, headers={"Last-Event-ID": ("0", "3")},
    ),
    ("GET", f"{ONE}/feed"): Endpoint(
        "read", "/channels/orders/feed", parts=("channel",),
        query={"format": ("rss", "atom", "json")},
    ),
    ("PUT", PEER): Endpoint(
        "subscribe", "/channels/orders/subscriptions/new", {}, parts=("channel", "subscription")
    ),
    ("DELETE", PEER): Endpoint(
        "subscribe", "/channels/orders/subscriptions/new", parts=("channel", "subscription")
    ),
    ("POST", f"{PEER}/acknowledge"): Endpoint(
        "subscribe", "/channels/orders/subscriptions/mine/acknowledge", {"sequence": 1},
        parts=("channel", "subscription"),
    ),
    ("POST", "/hub"): Endpoint("own", "/hub", form=HUB, verb="subscribe"),
    ("POST", "/session"): Endpoint("", "/session", {"token": "one that nobody has"}),
    ("GET", "/session"): Endpoint("own", "/session"),
    ("DELETE", "/session"): Endpoint("", "/session"),
    ("GET", "/documents"): Endpoint("own", "/documents"),
    ("GET", VIEW): Endpoint(
        "read", "/documents/w/views/v", parts=("document", "view"), query={"limit": ("0", "5")}
    ),
    ("GET", f"{VIEW}/changes"): Endpoint(
        "read", "/documents/w/views/v/changes", parts=("document", "view"), streams=True,
        query={"since": ("0",)}, headers={"Last-Event-ID": ("0", "3")},
    ),
    ("PUT", VIEW): Endpoint(
        "watch", "/documents/w/views/new", {"query": "match /a"}, parts=("document", "view")
    ),
    ("PUT", "/documents/{document}"): Endpoint(
        "deploy", "/documents/new", {"document": "<a/>", "views": {"v": "match /a"}},
        parts=("document",),
    ),
    ("DELETE", "/documents/{document}"): Endpoint("deploy", "/documents/new", parts=("document",)),
    ("DELETE", VIEW): Endpoint("watch", "/documents/w/views/new", parts=("document", "view")),
    ("GET", FAMILIES): Endpoint("own", "/documents/w/families", parts=("document",)),
    ("GET", MEMBERS): Endpoint(
        "subscribe", "/documents/w/families/f/members", parts=("document", "family"),
        query={"search": ("1",), "limit": ("0", "5")},
    ),
    ("PUT", MEMBER): Endpoint(
        "subscribe", "/documents/w/families/f/members/new", {"parameters": {"x": "1"}},
        parts=OF_MEMBER,
    ),
    ("GET", MEMBER): Endpoint(
        "subscribe", "/documents/w/families/f/members/new", parts=OF_MEMBER,
        query={"limit": ("0", "5")},
    ),
    ("GET", f"{MEMBER}/changes"): Endpoint(
        "subscribe", "/documents/w/families/f/members/new/changes", parts=OF_MEMBER, streams=True,
        query={"since": ("0",)}, headers={"Last-Event-ID": ("0", "3")},
    ),
    ("DELETE", MEMBER): Endpoint(
        "subscribe", "/documents/w/families/f/members/new", parts=OF_MEMBER
    ),
    ("GET", "/live/state"): Endpoint("own", "/live/state", query=SHOWN),
    ("GET", "/live/tree"): Endpoint(
        "own", "/live/tree?document=w", query={"document": ("w", "none")}, verb="read"
    ),
    ("GET", "/live/why"): Endpoint(
        "own", '/live/why?document=w&view=v&row={"x": "1"}', verb="read",
        query={"document": ("w",), "view": ("v", "none"), "row": ('{"x": "1"}', "{}")},
    ),
    ("GET", "/live/export"): Endpoint(
        "own", "/live/export?document=w&view=v", verb="read",
        query={
            **{name: SHOWN[name] for name in ("document", "view", "truth", "find")},
            "format": ("csv", "json"),
        },
    ),
    ("GET", "/live/plot"): Endpoint(
        "own", "/live/plot?document=w&view=v", verb="read",
        query={"document": ("w", "none"), "view": ("v", "none")},
    ),
    ("POST", "/live/explain"): Endpoint(
        "own", "/live/explain", {"document": "w", "query": "match /a"}, verb="read"
    ),
    ("POST", "/live/profile"): Endpoint(
        "administer", "/live/profile", {"document": "w", "seconds": 0.01}
    ),
    ("GET", "/live/letters"): Endpoint("administer", "/live/letters"),
    ("POST", "/live/letters"): Endpoint("administer", "/live/letters", {"number": 1}),
    ("GET", "/metrics"): Endpoint("read", "/metrics"),
    ("GET", "/health"): Endpoint("own", "/health"),
    ("GET", "/openapi.json"): Endpoint("", "/openapi.json"),
    ("GET", "/docs"): Endpoint("", "/docs"),
    ("GET", "/"): Endpoint("", "/"),
    ("GET", "/page.css"): Endpoint("", "/page.css"),
    ("GET", "/page.js"): Endpoint("", "/page.js"),
    **{
        ("GET", f"/{name}.js"): Endpoint("", f"/{name}.js")
        for name in ("drawing", "rows", "explanation", "tools")
    },
}  # fmt: skip
ENDPOINTS |= {  # the routes of version 0.1
    (method, route.replace("/documents", "/widgets")): replace(
        one, path=one.path.replace("/documents", "/widgets")
    )
    for (method, route), one in ENDPOINTS.items()
    if route.startswith("/documents")
    and not route.endswith(("/changes", "/{document}"))
    and not route.startswith(FAMILIES)
}
OPEN_TO_ANYONE = {("GET", "/health")}  # the status alone
LISTS = {
    ("GET", path)
    for path in ("/channels", "/documents", "/widgets", "/session", "/live/state", FAMILIES)
}
"""Any principal may ask; the answer contains only what it may read."""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def address(world: World) -> Iterator[str]:
    with world.running() as found:
        yield found


def ask(client: httpx.Client, key: tuple[str, str], **more: Any) -> httpx.Response:
    """Ask as the table says; of a stream only the head is read."""
    method, one = key[0], ENDPOINTS[key]
    given = {**more}
    if one.body is not None:
        given["json"] = one.body
    if one.form is not None:
        given["data"] = one.form
    with client.stream(method, given.pop("path", one.path), **given) as answer:
        if not (one.streams and answer.status_code == 200 and method == "GET"):
            answer.read()
        return answer


def same(world: World, before: dict[str, Any]) -> None:
    """All is as it was, as soon as connections that were left are noticed."""
    until = monotonic() + 30
    while (now := world.state()) != before and monotonic() < until:
        if {**now, "channels": 0} == {**before, "channels": 0}:
            sleep(0.02)
            continue
        break
    assert now == before


def test_every_route_and_parameter_is_in_the_table(world: World) -> None:
    """A new endpoint or parameter joins the table, or fails here."""
    routes = set()
    for route in world.app.routes:
        assert isinstance(route, Route)
        path = route.path.replace(":path}", "}")
        routes |= {(method, path) for method in route.methods or () if method != "HEAD"}
    assert routes == ENDPOINTS.keys()
    with world.running() as address, client_of(address) as client:
        said = client.get("/openapi.json").json()["paths"]
    described = {(m.upper(), path): one for path, ops in said.items() for m, one in ops.items()}
    assert described.keys() == ENDPOINTS.keys()
    for key, one in ENDPOINTS.items():
        found: dict[str, set[str]] = {"path": set(), "query": set(), "header": set()}
        for parameter in described[key].get("parameters", ()):
            found[parameter["in"]].add(parameter["name"])
        wanted = {"path": set(one.parts), "query": set(one.query), "header": set(one.headers)}
        assert found == wanted, key
        assert described[key].get("x-axlog-grant", "") == one.needs, key
        assert ("requestBody" in described[key]) == (one.body is not None or one.form is not None)


def is_allowed(name: str | None, key: tuple[str, str]) -> bool:
    """Whether the table and the grants of a principal say that it may."""
    one = ENDPOINTS[key]
    if not one.needs or key in OPEN_TO_ANYONE:
        return True
    if name is None:
        return False
    if key in LISTS:
        return True
    verb = one.verb or one.needs
    verbs = [grant for grant in PRINCIPALS[name] if isinstance(grant, str)]
    return any(verb == each or verb in INCLUDED.get(each, ()) for each in verbs)


@pytest.mark.parametrize("name", [None, *PRINCIPALS])
def test_who_may_what(name: str | None, world: World, address: str) -> None:
    """Each endpoint by each principal: what no grant allows is refused and changes nothing."""
    for key in ENDPOINTS:
        before = world.state()
        with client_of(address, None if name is None else token_of(name)) as client:
            answer = ask(client, key)
        if is_allowed(name, key):
            is_bad_token = key == ("POST", "/session")
            assert answer.status_code not in (401, 403) or is_bad_token, (key, answer.text)
            continue
        assert answer.status_code == (401 if name is None else 403), (key, answer.text)
        assert answer.json()["code"] == ("AX811" if name is None else "AX814"), key
        same(world, before)


def signed_in(address: str) -> httpx.Client:
    """A browser that has signed in: it has a cookie and no token."""
    client = client_of(address, None)
    assert client.post("/session", json={"token": TOKEN}).status_code == 200
    return client


FOREIGN: dict[str, dict[str, str]] = {
    "a page of another site": {"Origin": "https://evil.example"},
    "a page without an origin": {"Origin": "null"},
    "a page of another port": {"Origin": "http://127.0.0.1:1"},
    "an origin that is none": {"Origin": "http://["},
    "a page whose name leads here": {"Host": "rebound.example", "Origin": "http://rebound.example"},
}


@pytest.mark.parametrize("how", ["token", "cookie"])
def test_what_other_sites_make_a_browser_ask(how: str, world: World, address: str) -> None:
    """Nothing that changes something, with a token or with the cookie that the browser adds."""
    client = client_of(address) if how == "token" else signed_in(address)
    before = world.state()
    with closing(client):
        for where, key in product(FOREIGN, ENDPOINTS):
            if key[0] != "GET":
                answer = ask(client, key, headers=FOREIGN[where])
                told = (answer.status_code, answer.json()["code"])
                assert told == (403, "AX815"), (where, key)
    same(world, before)


def test_a_cookie_needs_to_say_where_it_comes_from(world: World, address: str) -> None:
    with closing(signed_in(address)) as client:
        before = world.state()
        for key in ENDPOINTS:
            if key[0] != "GET":
                answer = ask(client, key)
                assert (answer.status_code, answer.json()["code"]) == (403, "AX815"), key
            elif ENDPOINTS[key].needs:
                for site in ("cross-site", "same-site"):  # another port is the same site
                    answer = ask(client, key, headers={"Sec-Fetch-Site": site})
                    assert (answer.status_code, answer.json()["code"]) == (403, "AX815"), key
        same(world, before)
    with closing(signed_in(address)) as client:
        here = {"Origin": address, "Sec-Fetch-Site": "same-origin"}
        assert ask(client, ("PUT", VIEW), headers=here).status_code == 201
        assert ask(client, ("GET", "/channels"), headers=here).status_code == 200


# No GET has a side effect -------------------------------------------------------------------------


def variants(one: Endpoint) -> Iterator[dict[str, Any]]:
    """A request with each value of each parameter, and with all of them at once."""
    yield {}
    for name, values in one.query.items():
        for value in (*values, *BAD):
            yield {"params": {name: value}}
    for name, values in one.headers.items():
        for value in (*values, "x", "-1", "9" * 30):
            yield {"headers": {name: value}}
    for name in one.query.get("subscription", ()):
        for last in ("0", "3"):
            yield {"params": {"subscription": name}, "headers": {"Last-Event-ID": last}}
            yield {"params": {"subscription": name, "match": "match /order", "after": last}}
    if one.query:
        whole = [values[:2] for values in one.query.values()]
        for chosen in list(product(*whole))[:8]:
            yield {"params": dict(zip(one.query, chosen, strict=True))}


def scan(world: World, address: str, table: dict[tuple[str, str], Endpoint]) -> list[str]:
    """Ask everything that is safe in every way; what changed something."""
    found = []
    for name in ("administrator", "ann"):
        token = TOKEN if name == "administrator" else token_of(name)
        with client_of(address, token) as client:
            for key, one in table.items():
                if key[0] != "GET":
                    continue
                for method in ("GET", "HEAD", "OPTIONS"):
                    before = world.state()
                    # The handlers of GET answer HEAD as well: some of the requests are enough.
                    for given in islice(variants(one), 0, None, 1 if method == "GET" else 8):
                        _asked(client, method, one, given)
                    try:
                        same(world, before)
                    except AssertionError:
                        found.append(f"{method} {key[1]} by {name}")
    return found


def _asked(client: httpx.Client, method: str, one: Endpoint, given: dict[str, Any]) -> None:
    path = one.path.partition("?")[0] if "params" in given else one.path
    with client.stream(method, path, **given) as answer:
        assert answer.status_code < 500, (method, path, given)
        if not one.streams:
            answer.read()
            return
        for _ in zip(range(2), answer.iter_raw(), strict=False):
            pass  # a little of the stream


def test_no_safe_method_changes_anything(
    world: World, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every GET, HEAD and OPTIONS with every parameter: the whole state is as it was."""
    for module in (channel_routes, change_events):
        monkeypatch.setattr(module, "ALIVE", 0.01)  # a stream says something soon
    assert scan(world, address, ENDPOINTS) == []


def test_the_scan_finds_a_get_that_writes(tmp_path: Path) -> None:
    """The scan is worth something: a GET that acknowledges is found."""
    made: list[World] = []

    async def bad(request: Request, who: Principal) -> Response:
        made[0].channels["orders"].acknowledge("ann/mine", 2)
        return Response()

    made.append(World(tmp_path, [Operation("GET", "/bad", "It writes", bad, "")]))
    with made[0].running() as address:
        found = scan(made[0], address, {("GET", "/bad"): Endpoint("", "/bad")})
    assert found == ["GET /bad by administrator"]  # the others find it done


# Subscriptions of others --------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["subscriber", "ann", "administrator"])
def test_no_request_reaches_the_subscriptions_of_others(
    who: str, world: World, address: str
) -> None:
    """The pipeline's own by nobody; ann's by ann, and to be removed by an administrator."""
    orders = world.channels["orders"]
    pipelines = {each: orders.subscriptions()[each] for each in (OWN, "ann/taken")}
    token = {} if who == "administrator" else {"token": token_of(who)}
    with client_of(address, **token) as client:
        for name in (OWN, "taken", f"ann/{OWN}", "ann/taken", "ann/mine", "mine"):
            is_mine = who == "ann" and name == "mine"
            mine = orders.subscriptions().get("ann/mine")
            path = f"/channels/orders/subscriptions/{name.replace('/', '%2F')}"
            reading = client.get("/channels/orders/updates", params={"subscription": name})
            assert (reading.status_code == 200) == is_mine, (name, reading.text)
            answer = client.post(f"{path}/acknowledge", json={"sequence": 3})
            assert (answer.status_code == 200) == is_mine, (name, answer.text)
            if not is_mine:
                client.put(path, json={"filter": json.loads(FILTER), "after": 3})
                assert orders.subscriptions().get("ann/mine") == mine
            removed = client.delete(path).status_code == 204
            may_remove = is_mine or (who == "administrator" and name == "ann/mine")
            is_new = "/" not in name and not (who == "ann" and name == "taken")
            assert removed == (may_remove or is_new), name
            assert {each: orders.subscriptions()[each] for each in pipelines} == pipelines
            left = mine is not None and not may_remove
            assert ("ann/mine" in orders.subscriptions()) == left


def test_a_name_cannot_pass_for_the_key_of_a_filter(world: World, address: str) -> None:
    """Filters of all subscriptions are one, keyed by NAME, NUL and a key."""
    before = world.state()
    with client_of(address) as client:
        for name in ("x%00it", "%0a", "x" * 300):
            answer = client.put(f"/channels/orders/subscriptions/{name}", json={})
            assert (answer.status_code, answer.json()["code"]) == (400, "AX813")
    same(world, before)


def test_producers_of_others_cannot_be_silenced(world: World, address: str) -> None:
    """A number that is far ahead under the pipeline's name of a producer is the sender's own."""
    orders = world.channels["orders"]
    far = {"Axlog-Producer": "pipeline", "Axlog-Number": "9" * 17}
    with client_of(address, token_of("publisher")) as client:
        assert client.post("/channels/orders/updates", json=UPDATE, headers=far).is_success
        last = orders.last
        update = StreamUpdate("orders", "insert", "<order/>")
        assert orders.publish(update, ("pipeline", 3)) == last + 1
        for number in range(99):
            headers = {"Axlog-Producer": f"p{number}", "Axlog-Number": "1"}
            client.post("/channels/orders/updates", json=UPDATE, headers=headers)
        headers = {"Axlog-Producer": "one more", "Axlog-Number": "1"}
        answer = client.post("/channels/orders/updates", json=UPDATE, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (429, "AX812")


# Secrets ------------------------------------------------------------------------------------------


def test_secrets_are_shown_nowhere(
    world: World, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in listings, errors, logs or journals, of webhooks that work and of those that fail."""
    caplog.set_level("DEBUG", "axlog")
    said = ""
    broken = f"http://127.0.0.1:1/{HIDDEN}"
    with client_of(address) as admin, client_of(address, token_of("ann")) as ann:
        for callback in (broken, f"http://{HIDDEN}/", f"http://10.0.0.1/{HIDDEN}", f"x:{HIDDEN}"):
            given = {"callback": callback, "secret": SECRET}
            answer = ann.put("/channels/orders/subscriptions/bad", json=given)
            assert 400 <= answer.status_code < 600
            said += answer.text
            form = {**HUB, "hub.callback": callback, "hub.secret": SECRET}
            said += ann.post("/hub", data=form).text
        for key, one in ENDPOINTS.items():
            if key[0] == "GET" and not one.streams:
                said += ask(admin, key).text + ask(ann, key).text
        bad = {"Authorization": f"Bearer {HIDDEN}"}
        said += ann.get("/channels", headers=bad).text
        said += ann.post("/session", json={"token": HIDDEN}).text
    assert HIDDEN not in said
    assert SECRET not in said
    assert HIDDEN not in caplog.text
    assert SECRET not in caplog.text
    assert token_of("ann") not in said + caplog.text + repr(world.settings)
    for path in (each for each in world.place.rglob("*") if each.is_file()):
        assert path.stat().st_mode & 0o777 == 0o600, path
        assert (HIDDEN.encode() in path.read_bytes()) == path.name.endswith(".hooks"), path


def test_a_token_comes_in_one_way(world: World, address: str) -> None:
    """Not in an address, which is logged and sent on, nor in a cookie that a page could set."""
    token = token_of("reader")
    headers = [
        {"Authorization": f"Basic {token}"},
        {"Authorization": token},
        {"Authorization": "Bearer"},
        {"X-Token": token},
        {"Cookie": f"axlog={token}; token={token}"},
    ]
    with client_of(address, None) as client:
        assert client.get("/channels", params={"token": token}).status_code == 401
        for each in headers:
            assert client.get("/channels", headers=each).status_code == 401, each


def test_a_server_without_principals_answers_no_request() -> None:
    channels = Channels()
    channels.make("orders")
    settings = Settings(port=0)
    app = make_application(channels, settings)
    with running(app, settings) as address, client_of(address, None) as client:
        assert client.get("/channels").status_code == 401
        assert client.put("/channels/x", json={}).status_code == 401
    assert cookie_name(Request({"type": "http", "server": ("h", 7), "headers": [], "path": "/",
                                "scheme": "http", "query_string": b""})) == "axlog-7"  # fmt: skip
