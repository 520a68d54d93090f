"""Families over HTTP: members of subscribers, their rights, changes by events and channels."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from starlette.applications import Starlette

from axlog.connect.channels.registry import Channels
from axlog.errors import AxlogError
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.pipeline.loader import load
from axlog.runtime.embedded import Runner
from axlog.server.application import Settings, make_application
from axlog.server.family_routes import published_family
from axlog.server.kept_members import DIRECTORY, KeptMember, KeptMembers
from axlog.server.member_channels import MemberChannel
from axlog.server.pipelines import published_families
from axlog.server.roles import Grant, Principal
from axlog.server.server import running
from axlog.views.family_names import GENERATION
from tests.server.test_server import Events
from tests.server_access import client_of, principal, secured, token_of

LATE = "match //s/order[client/$client][price > $least]/oid/$x return $x"
FAMILIES = {"w": {"late": published_family(LATE, columns=("client", "least"))}}
SUBSCRIBE = Grant(may=("subscribe",), documents=("w",), views=("late",))
MEMBERS = "/documents/w/families/late/members"
MINE = f"{MEMBERS}/mine"


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
            member = {"name": "bob/mine", "values": ["INRIA", "5"]}
            assert listed == {"count": 1, "members": [member]}
            assert bob.get(f"{MEMBERS}?search=inria").json()["count"] == 1
            assert bob.get(f"{MEMBERS}?search=ens").json()["count"] == 0
            assert bob.get("/documents/w/views/late@ann%2Fmine").status_code in (403, 404)
        with client_of(server, token_of("eve")) as eve:
            assert eve.put(MINE, json=given).status_code == 403
            assert eve.get("/documents/w/families").json() == {}
            assert eve.get("/documents").json() == {}
        with client_of(server, token_of("root")) as root:
            every = root.get("/documents/w/families/late/members?search=ANN").json()
            assert every["count"] == 2
            assert root.get("/documents").json()["w"]["views"] == []
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
        listed = {"document": {"views": [], "streams": [], "families": ["late"]}}
        assert ann.get("/documents").json() == listed
    runner.close()


def test_members_outlast_the_server(tmp_path: Path) -> None:
    """They keep their rows and rights; a channel gets each row once; positions start anew."""
    alerts = Grant(may=("publish", "read"), channels=("alerts",))
    ann, bob = principal("ann", SUBSCRIBE, alerts), principal("bob", SUBSCRIBE)
    given = {"parameters": {"client": "INRIA", "least": 5}}
    doc = Document(streams=["s"])
    doc.feed("s", order(1))
    doc.feed("s", order(2))

    def started(doc: Document, *principals: Principal) -> tuple[Channels, Starlette, Settings]:
        channels, settings = Channels(tmp_path), secured(*principals)
        channels.make("alerts")
        app = make_application(channels, settings, documents={"w": doc}, families=FAMILIES)
        return channels, app, settings

    channels, app, settings = started(doc, ann, bob)
    with running(app, settings) as server, client_of(server, token_of("ann")) as client:
        followed = given | {"channel": "alerts"}
        assert client.put(MINE, json=followed).status_code == 201
        assert client.put(f"{MINE}2", json=given).status_code == 201
        assert client.delete(f"{MINE}2").status_code == 204
        with client_of(server, token_of("bob")) as other:
            assert other.put(MINE, json=given).status_code == 201
        assert len(client.get("/channels/alerts/updates?after=0").json()["entries"]) == 2
    channels.close()

    again = Document(streams=["s"])  # as a run that was restored: one row is gone, another came
    again.feed("s", order(2))
    again.feed("s", order(3))
    channels, app, settings = started(again, ann)
    assert list(again.views) == ["late@ann/mine"], "bob has no rights any more"
    with running(app, settings) as server, client_of(server, token_of("ann")) as client:
        assert [row["row"] for row in client.get(MINE).json()["rows"]] == [{"x": "2"}, {"x": "3"}]
        assert again.view("late@ann/mine").position >= GENERATION
        assert client.get(f"{MINE}/changes?since=1").json()["code"] == "AX803"
        again.feed("s", order(4))
        entries = client.get("/channels/alerts/updates?after=2").json()["entries"]
        assert ["delete" in entries[0], "<x>3</x>" in entries[1]["insert"]] == [True, True]
        assert "<x>4</x>" in entries[2]["insert"]
        assert len(entries) == 3, "the row that was published before is not published again"
    channels.close()

    last = Document(streams=["s"])
    channels, app, settings = started(last, ann, bob)
    with running(app, settings):
        assert sorted(last.views) == ["late@ann/mine", "late@bob/mine"], "bob may have it again"
    channels.close()


def test_a_member_without_rights_is_not_published_until_it_has_them_again() -> None:
    doc, channel, rights = Document(streams=["s"]), Channels().make("alerts"), [True]
    view = doc.watch("match //s/order/client/$c return $c, count() as n")
    MemberChannel(view, channel, "late", "w/mine", lambda: rights[0]).start()

    def published() -> list[tuple[str, bool]]:
        return [(each.update.action, "ENS" in each.update.content) for each in channel.newest(99)]

    doc.feed("s", order(1))
    assert published() == [("insert", False)]
    rights[0] = False
    doc.feed("s", order(2))
    doc.feed("s", order(3, "ENS"))
    assert len(published()) == 1
    rights[0] = True
    doc.feed("s", order(4, "ENS"))
    assert published()[1:] == [("delete", False), ("insert", True), ("insert", False)]
    doc.feed("s", order(5, "ENS"))
    assert published()[4:] == [("delete", False), ("insert", True)]


def test_a_damaged_log_of_members_is_refused(tmp_path: Path) -> None:
    kept = KeptMembers(tmp_path)
    kept.add(KeptMember("w", "late", "ann", "mine", {"client": "INRIA"}))
    kept.close()
    written = (each for each in (tmp_path / DIRECTORY).iterdir() if each.is_file())
    (segment,) = (each for each in written if b"INRIA" in each.read_bytes())
    segment.write_bytes(segment.read_bytes().replace(b"INRIA", b"inria"))
    with pytest.raises(AxlogError):
        KeptMembers(tmp_path)
