"""Every attack against every entry point: refused by an error of ours, nothing fetched or kept.

One table of attacks (`hostile_attacks.py`), one of entry points: an entry takes the bytes as
somebody outside would hand them in, and says what it keeps, before and after. Addresses in attacks
are those of a server that counts connections and of a pipe, which whoever opens it waits for.
No test asserts a time; a test that hangs fails when its thread is waited for.
"""

import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

import axlog
from axlog.cli.application import application
from axlog.connect.channels.channel import LocalChannel
from axlog.connect.channels.registry import Channels
from axlog.connect.kinds import Origin
from axlog.connect.sources.directory import DirectoryOptions, DirectorySource
from axlog.connect.sources.documents import DocumentOptions, WatchedDocument
from axlog.connect.sources.feeds import read_feed
from axlog.connect.sources.folders import FolderOptions
from axlog.connect.sources.folders import _make as make_folder
from axlog.document.list_codec import from_json, from_xml
from axlog.document.loader import load
from axlog.document.record_reader import split
from axlog.document.schema_sources import read_types
from axlog.document.stream_update import StreamUpdate
from axlog.document.update_lists import UpdateList, resolved
from axlog.errors import AxlogError
from axlog.evaluate.patches import read_patch
from axlog.live.file_watch import watch_file
from axlog.live.internals import maintained
from axlog.pipeline.model import PipelineModel
from axlog.runtime.embedded import Runner
from axlog.server.application import make_application
from axlog.server.server import running
from tests.hostile_attacks import XML_ATTACKS, XML_LURES, Outside, aims, is_text
from tests.server_access import BEARER, secured

pytestmark = pytest.mark.system

DOCUMENT = '<a><b><c>1</c></b><ax:call xmlns:ax="urn:axlog" stream="s" deletes="yes"/></a>'
QUERY = "match //b/c/$x return $x"
PATIENCE = 120.0


class Refused(Exception):
    """Refused in another way than by an exception: a status, an exit code, a dead letter."""


def text_of(content: bytes) -> str:
    """Bytes as the text that a careless program would make of them."""
    return content.decode("utf-8", "replace")


# Entry points -------------------------------------------------------------------------------------


def doc(**options: Any) -> axlog.Document:
    return axlog.parse(DOCUMENT, views={"v": QUERY}, options=axlog.Options(**options))


def kept(made: axlog.Document) -> object:
    return made.xml(), made.view("v").rows(), made.clock


class Parsing:
    """`axlog.parse`: nothing is kept, so the document that there was is what it was."""

    def __init__(self, how: Callable[[bytes, Path], object]) -> None:
        self.how = how

    def prepare(self, place: Path) -> None:
        self.place = place

    def enter(self, content: bytes) -> None:
        self.how(content, self.place)

    def state(self) -> object:
        return None


class Feeding(Parsing):
    """A document's stream."""

    def __init__(self, as_text: bool = False, **options: Any) -> None:
        self.as_text, self.options = as_text, options

    def prepare(self, place: Path) -> None:
        self.made = doc(**self.options)

    def enter(self, content: bytes) -> None:
        self.made.feed("s", text_of(content) if self.as_text else content, at=1)
        self.made.xml() if self.options.get("keep") != "needed" else None

    def state(self) -> object:
        if self.options.get("keep") == "needed":
            return self.made.view("v").rows(), maintained(self.made).forgotten
        return kept(self.made)


class Storing(Parsing):
    """A durable document: once it is closed again, not a byte of its files has changed."""

    def __init__(self) -> None:
        pass

    def prepare(self, place: Path) -> None:
        self.place = place / "store"
        with axlog.open(self.place, DOCUMENT, views={"v": QUERY}, sync="off") as made:
            made.feed("s", "<b><c>2</c></b>", at=1)

    def enter(self, content: bytes) -> None:
        with axlog.open(self.place, sync="off") as made:
            made.feed("s", content, at=2)

    def state(self) -> object:
        return {path.name: path.read_bytes() for path in sorted(self.place.iterdir())}


class Subscribed(Parsing):
    """A channel with a filter, and a document that reads it."""

    def __init__(self) -> None:
        self.made: Any = None

    def prepare(self, place: Path) -> None:
        self.made = doc()
        self.channel = LocalChannel("c")
        self.reader = self.channel.subscribe(after=0)

    def enter(self, content: bytes) -> None:
        self.channel.publish(StreamUpdate("s", "insert", text_of(content), 1))
        for update in self.reader.read(10).updates:
            self.made.feed(update.stream, update.content, update.at)
        self.made.xml()

    def state(self) -> object:
        return kept(self.made)


class Serving(Parsing):
    """A server: publishing as XML and as JSON; the channel keeps nothing."""

    def __init__(self, address: Callable[[], tuple[str, Channels]], kind: str) -> None:
        self.address, self.kind = address, kind

    def prepare(self, place: Path) -> None:
        self.url, self.channels = self.address()

    def enter(self, content: bytes) -> None:
        body = content
        if self.kind == "application/json":
            update = {"stream": "s", "insert": text_of(content), "at": 1}
            body = json.dumps(update).encode()
        with httpx.Client(trust_env=False, timeout=PATIENCE) as client:
            answer = client.post(
                f"{self.url}/channels/orders/updates",
                content=body,
                headers={"Content-Type": self.kind, **BEARER},
            )
        assert answer.status_code < 500, answer.text
        if answer.status_code != 200:
            assert answer.json()["code"].startswith("AX")
            raise Refused(answer.text)

    def state(self) -> object:
        return self.channels["orders"].last


class Piping(Parsing):
    """A pipeline over a file of JSON lines: dead letters, and no rows."""

    def __init__(self) -> None:
        self.rows: object = None

    def prepare(self, place: Path) -> None:
        self.place = place
        self.rows = []

    def enter(self, content: bytes) -> None:
        line = {"stream": "s", "insert": text_of(content), "at": 1}
        (self.place / "in.jsonl").write_text(json.dumps(line) + "\n")
        written = {
            "engine": "embedded",
            "document": '<a><ax:call xmlns:ax="urn:axlog" stream="s"/></a>',
            "sources": [{"kind": "jsonl", "path": "in.jsonl"}],
            "views": {"v": {"query": "match //b#t return t.id", "sinks": [{"kind": "memory"}]}},
            "settings": {"on_error": "dead-letter"},
        }
        runner = Runner(PipelineModel.model_validate(written).located(self.place), once=True)
        runner.run()
        self.rows = [] if runner.progress.refused else None
        if runner.progress.refused:
            assert runner.progress.rows == 0
            raise Refused("dead letter")

    def state(self) -> object:
        return self.rows


def take(reading: Any) -> None:
    """What a source brought, handed on; nothing at all is a refusal, too."""
    if reading.refused or not reading.updates:
        raise Refused(reading.refused)
    for update in reading.updates:
        doc().feed("s", update.content)


def from_folder(content: bytes, place: Path) -> None:
    folder = place / "folder"
    folder.mkdir(exist_ok=True)
    (folder / "a.xml").write_bytes(content)
    options = FolderOptions(path="folder", interval=0)
    source = make_folder(options, Origin(place, stream="s"))
    try:
        take(source.read(None, 10))
    finally:
        source.close()


def from_directory(content: bytes, place: Path, record: str | None = None) -> None:
    folder = place / "files"
    folder.mkdir(exist_ok=True)
    (folder / "a.xml").write_bytes(content)
    source = DirectorySource(
        DirectoryOptions(path="files", record=record), Origin(place, stream="s")
    )
    take(source.read(None, 10))


def from_document(content: bytes, place: Path) -> None:
    (place / "watched.xml").write_bytes(content)
    for form in ("records", "patch"):
        options = DocumentOptions.model_validate({"url": "watched.xml", "as": form})
        looked = WatchedDocument(options, Origin(place, stream="s")).look(None, 1.0)
        if form == "patch" or not looked.refused:  # records are looked at one by one
            for update in looked.updates:
                doc().feed("s", update.content)
        if looked.refused:
            raise Refused(looked.refused[0])


def from_watched_file(content: bytes, place: Path) -> None:
    path = place / "file.xml"
    path.write_text("<b><c>1</c></b>")
    with watch_file(path, QUERY) as watch:
        path.write_bytes(content)
        assert len(watch.view.rows()) == 1
        watch.poll()
        if watch.error is not None:
            assert len(watch.view.rows()) == 1
            raise watch.error


def from_cli(*words: str) -> Callable[[bytes, Path], None]:
    def run(content: bytes, place: Path) -> None:
        (place / "attack.xml").write_bytes(content)
        (place / "good.xml").write_text("<b/>")
        arguments = [word.replace("@", str(place) + "/") for word in words]
        result = CliRunner().invoke(application([words[0]]), arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        if result.exit_code:
            assert result.exit_code == 2
            assert "AX" in result.output
            raise Refused(result.output)

    return run


def listed(content: bytes, place: Path) -> None:
    """A list of updates in XML."""
    inside = f'<ax:updates xmlns:ax="urn:axlog"><ax:insert-last target="1">{text_of(content)}'
    (given,) = from_xml(f"{inside}</ax:insert-last></ax:updates>")
    apply(given)


def listed_in_json(content: bytes, place: Path) -> None:
    update = {"op": "insert-last", "target": "1", "content": [{"tree": text_of(content)}]}
    apply(from_json(json.dumps({"updates": [update]})))


def apply(given: UpdateList) -> None:
    document = axlog.parse(DOCUMENT)
    try:
        maintained(document).apply(resolved(maintained(document).tree, given))
    except AxlogError:
        assert document.xml() == axlog.parse(DOCUMENT).xml()
        raise


def patched(content: bytes, place: Path) -> None:
    read_patch(load(DOCUMENT), f'<diff><add sel="a">{text_of(content)}</add></diff>')


def typed(content: bytes, place: Path) -> None:
    """A DTD or an XML Schema with the attack in it."""
    read_types(text_of(content), "b")


def inserted(content: bytes, place: Path) -> None:
    document = axlog.parse(DOCUMENT)
    try:
        maintained(document).insert("match /a#t return t.id", content)
    except AxlogError:
        assert document.xml() == axlog.parse(DOCUMENT).xml()
        raise


def stated(content: bytes, place: Path) -> None:
    axlog.parse(DOCUMENT).update(f"insert node {text_of(content)} into /a")


def recorded(content: bytes, place: Path) -> None:
    records = [load(record) for record in split(BytesIO(content), "b")]
    if not records:
        raise Refused("there is none")


PLAIN: dict[str, Callable[[bytes, Path], object]] = {
    "parse bytes": lambda content, place: axlog.parse(content),
    "parse a file": lambda content, place: axlog.parse(BytesIO(content)),
    "parse a path": lambda content, place: (
        (place / "a.xml").write_bytes(content),
        axlog.parse(place / "a.xml"),
    ),
    "records of a file": recorded,
    "insert": inserted,
    "a statement": stated,
    "a list in XML": listed,
    "a list in JSON": listed_in_json,
    "a patch": patched,
    "types": typed,
    "a feed": lambda content, place: read_feed(content, "feed"),
    "a folder": from_folder,
    "a directory": from_directory,
    "records of a directory": lambda content, place: from_directory(content, place, "b"),
    "a watched document": from_document,
    "a watched file": from_watched_file,
    "axlog query": from_cli("query", "@attack.xml", "//b", "--json"),
    "axlog diff": from_cli("diff", "@good.xml", "@attack.xml"),
    "axlog maintain": from_cli("maintain", "@attack.xml", "//b", "@good.xml"),
}
KEEPING: dict[str, Callable[[], Parsing]] = {
    "a stream of bytes": Feeding,
    "a stream of texts": lambda: Feeding(as_text=True),
    "a stream that keeps what is needed": lambda: Feeding(keep="needed"),
    "a store": Storing,
    "a channel": Subscribed,
    "a pipeline": Piping,
}
_TEXTS = {
    "a statement", "a list in XML", "a list in JSON", "a patch", "types",
    "a stream of texts", "a channel", "a pipeline", "publish JSON",
}  # fmt: skip
"""Entries for texts: bytes that are none never get there, and no text is in another encoding."""
_HARMLESS = {
    ("a statement", "very many attributes"),  # a statement has a length
}


# What must not be touched -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, Channels]]:
    channels = Channels()
    channels.make("orders")
    settings = secured()
    with running(make_application(channels, settings), settings) as address:
        yield address, channels


def in_time(work: Callable[[], None]) -> None:
    """Run in a thread that is not waited for for ever."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "it hangs"
    if raised:
        raise raised[0]


def attack(entry: Parsing, content: bytes, outside: Outside, place: Path, must: bool) -> None:
    """Hand an attack in at one entry, once for each address that it may hold."""
    for number, aimed in enumerate(aims(content, outside)):
        inner = place / str(number)
        inner.mkdir()
        entry.prepare(inner)
        before = entry.state()
        try:
            in_time(partial(entry.enter, aimed))
        except (AxlogError, Refused):
            assert entry.state() == before, "something was kept"
        else:
            assert not must, "it was taken"
        assert not outside.was_asked(), "it was fetched"


# The table ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLAIN)
def test_attacks_on_readers(name: str, outside: Outside, tmp_path: Path) -> None:
    run_all(Parsing(PLAIN[name]), name, outside, tmp_path)


@pytest.mark.parametrize("name", KEEPING)
def test_attacks_on_what_is_kept(name: str, outside: Outside, tmp_path: Path) -> None:
    run_all(KEEPING[name](), name, outside, tmp_path)


@pytest.mark.parametrize("kind", ["application/xml", "application/json"])
def test_attacks_on_the_server(
    kind: str, served: tuple[str, Channels], outside: Outside, tmp_path: Path
) -> None:
    name = "publish JSON" if kind.endswith("json") else "publish XML"
    run_all(Serving(lambda: served, kind), name, outside, tmp_path)


def run_all(entry: Parsing, name: str, outside: Outside, place: Path) -> None:
    takes_texts = name in _TEXTS
    for number, (what, content) in enumerate({**XML_ATTACKS, **XML_LURES}.items()):
        inner = place / str(number)
        inner.mkdir()
        must = what in XML_ATTACKS and (name, what) not in _HARMLESS
        if takes_texts and (not is_text(content) or "encoding" in what):
            must = False
        try:
            attack(entry, content, outside, inner, must)
        except BaseException as error:
            error.add_note(f"the attack was: {what}")
            raise
