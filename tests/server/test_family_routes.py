"""Families over HTTP: members of subscribers, their rights, changes by events and channels."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from axlog.connect.channels.registry import Channels
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.pipeline.loader import load
from axlog.runtime.embedded import Runner
from axlog.server.application import make_application
from axlog.server.family_routes import published_family
from axlog.server.pipelines import published_families
from axlog.server.roles import Grant
from axlog.server.server import running
from tests.server.test_server import Events
from tests.server_access import client_of, principal, secured, token_of

LATE = "match //s/order[client/$client][price > $least]/oid/$x return $x"
FAMILIES = {"w": {"late": published_family(LATE, columns=("client", "least"))}}
SUBSCRIBE = Grant(may=("subscribe",), documents=("w",), views=("late",))
MINE = "/documents/w/families/late/members/mine"


def order(oid: int, client: str = "INRIA", price: int = 10) -> str:
    return f"<order><oid>{oid}</oid><client>{client}</client><price>{price}</price></order>"


def test_a_subscriber_watches_a_family_with_its_own_parameters() -> None:
    doc = Document(streams=["s"])
    doc.feed("s", order(1))
    settings = secured(
        principal("ann", SUBSCRIBE, views=2), principal("bob", SUBSCRIBE),
        principal("eve", Grant(may=("subscribe",), channels=("*",))),
        principal("root", "administer"),
    )  # fmt: skip
    app = make_application(Channels(), settings, documents={"w": doc}, families=FAMILIES)
    given = {"parameters": {"client": "INRIA", "least": 5}}
    with running(app, settings) as server, client_of(server, token_of("ann")) as ann:
        found = ann.get("/documents/w/families").json()
        assert found == {
            "late": {"query": LATE, "parameters": ["client", "least"], "members": 0}
        }  # fmt: skip
        assert ann.put(MINE, json=given).status_code == 201
        assert [row["row"] for row in ann.get(MINE).json()["rows"]] == [{"x": "1"}]
        bearer = {"Authorization": f"Bearer {token_of('ann')}"}
        with closing(Events(server, f"{MINE}/changes", **bearer)) as events:
            assert json.loads(events.next()["data"])["count"] == 1
            events.next(), events.next()  # the row, the position
            doc.feed("s", order(2, price=3))
            doc.feed("s", order(3))
            assert json.loads(events.next()["data"])["key"] == ["3"]
        assert ann.put(MINE, json=given).status_code == 409
        assert ann.put(f"{MINE}2", json=given).status_code == 201
        assert ann.put(f"{MINE}3", json=given).status_code == 429
        with client_of(server, token_of("bob")) as bob:
            assert bob.get(MINE).status_code == 404
            assert bob.delete(MINE).status_code == 404
            assert bob.put(MINE, json=given).status_code == 201
            listed = bob.get("/documents/w/families/late/members").json()
            assert listed == {"count": 1, "members": [{"name": "bob/mine", "values": []}]}
            assert bob.get("/documents/w/views/late@ann%2Fmine").status_code in (403, 404)
        with client_of(server, token_of("eve")) as eve:
            assert eve.put(MINE, json=given).status_code == 403
            assert eve.get("/documents/w/families").json() == {}
        with client_of(server, token_of("root")) as root:
            every = root.get("/documents/w/families/late/members?search=ANN").json()
            assert every["count"] == 2
        assert ann.delete(MINE).status_code == 204
        assert ann.get(MINE).status_code == 404
        assert len(maintained(doc).families.by_shape) == 1


def test_wrong_parameters_are_refused() -> None:
    doc = Document(streams=["s"])
    settings = secured(principal("ann", SUBSCRIBE))
    app = make_application(Channels(), settings, documents={"w": doc}, families=FAMILIES)
    with running(app, settings) as server, client_of(server, token_of("ann")) as ann:
        for body, code in (
            ({"parameters": {"client": "INRIA"}}, "AX813"),
            ({"parameters": {"client": "INRIA", "least": 5, "x": "17"}}, "AX813"),
            ({"parameters": {"client": "INRIA", "least": [5]}}, "AX218"),
            ({"query": "match //s"}, "AX813"),
        ):
            assert ann.put(MINE, json=body).json()["code"] == code
        hostile = {"client": '"] or //s[x/"', "least": 5}
        assert ann.put(MINE, json={"parameters": hostile}).status_code == 201
        doc.feed("s", order(1))
        assert ann.get(MINE).json()["rows"] == []
        assert ann.put("/documents/w/families/none/members/m", json={}).status_code == 403
    assert list(doc.views) == ["late@ann/mine"]


def test_a_member_is_followed_by_a_channel() -> None:
    doc = Document(streams=["s"])
    doc.feed("s", order(1))
    channels = Channels()
    channel = channels.make("alerts")
    alerts = Grant(may=("publish", "read"), channels=("alerts",))
    settings = secured(principal("ann", SUBSCRIBE, alerts), principal("bob", SUBSCRIBE))
    app = make_application(channels, settings, documents={"w": doc}, families=FAMILIES)
    given = {"parameters": {"client": "INRIA", "least": 5}, "channel": "alerts"}
    with running(app, settings) as server, client_of(server, token_of("ann")) as ann:
        with client_of(server, token_of("bob")) as bob:
            assert bob.put(MINE, json=given).status_code == 403
        assert ann.put(MINE, json=given).status_code == 201
        doc.feed("s", order(2))
        read = ann.get("/channels/alerts/updates?after=0").json()["entries"]
        assert ["<x>1</x>" in read[0]["insert"], "<x>2</x>" in read[1]["insert"]] == [True, True]
        assert ann.delete(MINE).status_code == 204
        doc.feed("s", order(3))
        assert len(ann.get("/channels/alerts/updates?after=0").json()["entries"]) == 2
    assert channel.name == "alerts"


def test_a_pipeline_publishes_its_families(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(
        """engine: embedded
streams: {s: {source: {kind: memory}}}
views:
  late:
    query: match /document/s/order[client/$client]/oid/$x return $x
    for_each: {kind: http, columns: [client]}
settings: {keep: needed}
"""
    )
    runner = Runner(load(str(tmp_path / "p.yaml")))
    families = published_families(runner)
    assert families["document"]["late"].parameters == ("client",)
    doc = runner.instances["document"].documents[""]
    doc.feed("s", order(1))
    settings = secured(principal("ann", Grant(may=("subscribe",), views=("late",))))
    app = make_application(Channels(), settings, documents={"document": doc}, families=families)
    with running(app, settings) as server, client_of(server, token_of("ann")) as ann:
        mine = MINE.replace("/w/", "/document/")
        given = {"parameters": {"client": "INRIA"}}
        assert ann.put(mine, json=given).status_code == 201, "earlier messages were not kept"
        assert ann.get(mine).json()["count"] == 1
        assert ann.get("/documents").json() == {}
    runner.close()
