"""The profile of a running pipeline's document over HTTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from axlog.cli.application import application
from axlog.errors import QueryError
from axlog.live.document import Document
from axlog.live.profile import Profile
from axlog.pipeline.loader import load
from axlog.runtime.embedded import Runner
from axlog.server.pipelines import observe_runner
from axlog.server.profiles import Profiler
from tests.browsing import served
from tests.server_access import BEARER, TOKEN

PIPELINE = """
engine: embedded
document: <r><ax:call xmlns:ax="urn:axlog" stream="f"/></r>
streams: {f: {source: {kind: directory, path: in}}}
views: {v: {query: "match /r/a/$x return $x", sinks: [log]}}
sinks: {log: {kind: jsonl, path: out/v.jsonl}}
"""


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    (tmp_path / "in").mkdir()
    (tmp_path / "p.yaml").write_text(PIPELINE, encoding="utf-8")
    return Runner(load(str(tmp_path / "p.yaml")), once=True)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set while or after a document is measured."""
    began, profile = threading.Event(), Document.profile

    @contextmanager
    def noted(document: Document) -> Iterator[Profile]:
        with profile(document) as found:
            began.set()
            yield found

    monkeypatch.setattr(Document, "profile", noted)
    return began


def test_a_profile_has_the_messages_of_its_seconds_and_the_sinks(
    runner: Runner, tmp_path: Path, measured: threading.Event
) -> None:
    (tmp_path / "in" / "1.xml").write_text("<a>before</a>")
    runner.run()
    with served(observe_runner(runner)) as address:
        base = address.split("#")[0].rstrip("/")
        (name,) = httpx.get(f"{base}/live/state", headers=BEARER, trust_env=False).json()[
            "documents"
        ]

        def later() -> None:
            assert measured.wait(30)
            for number in (2, 3, 4):
                (tmp_path / "in" / f"{number}.xml").write_text(f"<a>{number}</a>")
            runner.run()

        feeding = threading.Thread(target=later)
        feeding.start()
        asked = {"document": name["name"], "seconds": 3}
        found = httpx.post(
            f"{base}/live/profile", json=asked, headers=BEARER, trust_env=False, timeout=30
        ).json()
        feeding.join()
        assert (found["messages"], found["matched"], found["changes"]) == (3, 3, 3)
        assert [sink["changes"] for sink in found["sinks"]] == [3]
        assert {"check", "parse", "match", "join", "group", "emit", "nodes", "sinks"} == set(
            found["seconds"]
        )
        assert found["seconds"]["parse"] > 0
        assert found["seconds"]["sinks"] > 0
        for wrong in ({"document": "r"}, asked | {"seconds": 0}, asked | {"seconds": 61}):
            refused = httpx.post(
                f"{base}/live/profile", json=wrong, headers=BEARER, trust_env=False, timeout=30
            )
            assert refused.status_code in (400, 404, 422), refused.text
        refused = httpx.post(f"{base}/live/profile", json=asked, trust_env=False)
        assert refused.status_code == 401
    runner.close()


def test_one_profile_is_taken_at_a_time(runner: Runner) -> None:
    runner.run()
    observer = observe_runner(runner)
    with served(observer) as address:
        base = address.split("#")[0].rstrip("/")
        state = httpx.get(f"{base}/live/state", headers=BEARER, trust_env=False).json()
        name = state["documents"][0]["name"]
        profiler = Profiler(observer)
        first = threading.Thread(target=profiler.take, args=(name, 1))
        first.start()
        time.sleep(0.3)
        with pytest.raises(QueryError, match="another profile is being taken"):
            profiler.take(name, 0.01)
        first.join()
        assert profiler.take(name, 0.01)["messages"] == 0
        with pytest.raises(QueryError, match="there is no document 'other'"):
            profiler.take("other", 0.01)
    runner.close()


def test_the_command_line_measures_a_running_server(
    runner: Runner,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    measured: threading.Event,
) -> None:
    asked = ["explain", "--profile", "--seconds", "2", "--server"]
    with served(observe_runner(runner)) as address:
        base = address.split("#")[0].rstrip("/")
        refused = CliRunner().invoke(application(), [*asked, base])
        assert "AXLOG_TOKEN" in refused.stderr
        monkeypatch.setenv("AXLOG_TOKEN", TOKEN)

        def later() -> None:
            assert measured.wait(30)
            (tmp_path / "in" / "1.xml").write_text("<a>1</a>")
            runner.run()

        feeding = threading.Thread(target=later)
        feeding.start()
        found = CliRunner().invoke(application(), [*asked, base, "--table"])
        feeding.join()
        assert found.exit_code == 0, found.stderr
        assert found.stdout.startswith("1 message, ")
        assert "sink log: 1 change, " in found.stdout
        assert "parse" in found.stdout
        missing = CliRunner().invoke(application(), [*asked, base, "other"])
        assert "there is no document 'other'" in missing.stderr
    runner.close()
    for wrong in (["explain"], ["explain", "--server", base], [*asked, "nowhere"]):
        assert CliRunner().invoke(application(), wrong).exit_code == 2
