"""Every argument of every verb of the command line: those that read a file are attacked.

The verbs and their parameters are asked of the application itself: one that is new is in no table
here, and fails the test until somebody has said what it reads. What is refused is refused in words
and with exit code 2; nothing outside is asked.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import axlog
from axlog.cli.application import VERBS as PRODUCT_VERBS
from axlog.cli.application import application as product
from axlog.cli.application import register
from tests.hostile_attacks import LINE_ATTACKS, XML_ATTACKS, XML_LURES, Outside, aims, is_text

pytestmark = pytest.mark.system

LAB_VERBS = ("fuzz", "bench", "torture", "load", "soak")
VERBS = (*PRODUCT_VERBS, *LAB_VERBS)


def application(verbs: Sequence[str] = VERBS) -> typer.Typer:
    """The verbs of the product and of the laboratory, in one command line."""
    app = product([verb for verb in verbs if verb in PRODUCT_VERBS])
    register(app, "lab.cli", [verb for verb in verbs if verb in LAB_VERBS])
    return app


DOCUMENT = '<b><c>1</c><ax:call xmlns:ax="urn:axlog" stream="s"/></b>'
READING: dict[tuple[str, str], str] = {
    ("query", "document"): "query @attack //b --json",
    ("maintain", "document"): "maintain @attack //b @lines",
    ("maintain", "updates"): "maintain @good //b @attack",
    ("truth", "document"): "truth @attack //b",
    ("truth", "after"): "truth @good //b --after @attack",
    ("truth", "types"): "truth @good //b --types @attack",
    ("relevance", "document"): "relevance @attack //b",
    ("relevance", "after"): "relevance @good //b --after @attack",
    ("relevance", "types"): "relevance @good //b --types @attack",
    ("why", "document"): "why @attack //b",
    ("why", "after"): "why @good //b --after @attack",
    ("check", "pipeline"): "check @attack",
    ("run", "pipeline"): "run @attack --once --no-page --engine embedded",
    ("rescale", "pipeline"): "rescale @attack --partitions 2",
    ("serve", "pipeline"): "serve @attack --seconds 0 --port 0",
    ("serve", "roles"): "serve --roles @attack --seconds 0 --port 0",
    ("serve", "tls_cert"): "serve --tls-cert @attack --tls-key @attack --seconds 0 --port 0",
    ("serve", "tls_key"): "serve --tls-cert @attack --tls-key @attack --seconds 0 --port 0",
    ("run", "roles"): "run @pipeline --roles @attack --seconds 0 --port 0",
    ("explain", "document"): "explain //b @attack",
    ("explain", "after"): "explain //b @good --after @attack",
    ("patch", "document"): "patch @attack @list",
    ("patch", "patch"): "patch @good @attack",
    ("maintain", "types"): "maintain @good //b @lines --types @attack",
    ("init", "samples"): "init @attack --into @made",
    ("dead-letters", "pipeline"): "dead-letters @attack",
    ("dead-letters", "corrected"): "dead-letters @letters --replay 1 --with @attack",
    ("diff", "old"): "diff @attack @good",
    ("diff", "new"): "diff @good @attack",
    ("reduce", "lists"): "reduce @attack",
    ("reduce", "on"): "reduce @statement --on @attack",
    ("fuzz", "resume"): "fuzz --cases 1 --law 6 --resume @attack",
    ("replay", "store"): "replay @store",
    ("verify", "store"): "verify @store",
    ("backup", "store"): "backup @store @made",
    ("restore", "copy"): "restore @store @made",
    ("bench", "resume"): "bench tods --resume @attack",
}
"""How the verb is called with an attack in the place of what it reads."""
DOCUMENTS = {key for key in READING if key[1] in ("document", "old", "new", "on")}
SAMPLES = {("init", "samples"), ("dead-letters", "corrected")}
TYPES = {key for key in READING if key[1] == "types"}
LISTS = {("reduce", "lists"), ("patch", "patch")}
UPDATES = {key for key in READING if key[1] in ("updates", "after")}
PIPELINES = {
    ("check", "pipeline"), ("run", "pipeline"), ("serve", "pipeline"), ("serve", "roles"),
    ("run", "roles"), ("dead-letters", "pipeline"), ("rescale", "pipeline"),
}  # fmt: skip
CERTIFICATES = {("serve", "tls_cert"), ("serve", "tls_key")}
NOTED = {("fuzz", "resume"), ("bench", "resume")}
STORES = {("replay", "store"), ("verify", "store"), ("backup", "store"), ("restore", "copy")}
QUERIES = {"text", "filter"}  # in test_hostile_queries.py
NOT_READ = {
    "check", "on_error", "namespace", "language", "maintainer", "keep_whitespace", "limit_depth",
    "limit_size", "limit_text", "json", "xml", "fact", "row", "schema", "reference", "kinds",
    "engine", "once", "seconds", "progress", "page", "port", "listen", "log_format", "log_level",
    "host", "channel", "allow", "code", "tune", "form", "sequential", "parallel", "policy",
    "show_conflicts", "cases", "law", "seed", "jobs", "stop_after", "until", "rounds", "kills",
    "start", "minutes", "views", "publishers", "sync", "spark", "rate", "speed", "faults",
    "slow_clients", "master", "partitions",
    "names", "full", "name", "may", "stdin", "times", "show", "connect", "reduce", "on_violation",
    "force", "every", "replay", "to", "calls", "token", "stream", "header", "bodies", "hide",
    "unchecked", "view_name", "telemetry", "profile", "server",
}  # fmt: skip
"""Words, numbers and names."""
WRITTEN = {
    ("serve", "directory"), ("fuzz", "into"), ("load", "directory"), ("load", "out"),
    ("load", "plot"), ("demo", "directory"), ("bench", "json"), ("bench", "plot"),
    ("bench", "table"), ("init", "into"), ("patch", "out"), ("backup", "copy"),
    ("restore", "store"),
}  # fmt: skip
"""Files and directories that the verb makes; journals there are in test_hostile_channels.py."""
GENERATE_WRITES = {"out", "into"}  # all others of its sub-verbs are numbers
FEW = ("billion laughs", "an external entity", "an external parameter entity", "deep nesting",
       "a huge name", "a NUL", "bad UTF-8", "a lie about the encoding", "a gzip bomb",
       "a zip bomb", "entities hidden in UTF-16", "an external DTD", "a schema")  # fmt: skip
"""Attacks of which each stands for several: `axlog query` has them all elsewhere."""
YAML_BOMBS = {
    "aliases": "a0: &a0 [x, x]\n"
    + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)),
    "a merge": "a: &a {<<: *a}\n",
    "a tag": "!!python/object/apply:os.system ['true']\n",
    "depth": "[" * 20_000,
    "depth in blocks": "".join(" " * i + "a:\n" for i in range(300)),
    "a second document": "a: 1\n---\nb: 2\n",
    "size": "a: " + "x" * 5_000_000,
    "very many keys": "".join(f"k{i}: {{}}\n" for i in range(150_000)),
    "a key twice": "a: {token: 0123456789abcdef}\na: {token: 0123456789abcdef}\n",
    "no mapping": "- 1\n",
    "a NUL": "a: \0\n",
    "a number": "a: {token: " + "9" * 100_000 + "}\n",
}
JSON_BOMBS = {
    "depth": "[" * 100_000,
    "depth in objects": '{"a":' * 100_000,
    "a number": '{"version": ' + "9" * 10_000 + "}",
    "another shape": '{"a": [1, {"b": null}]}',
    "a list": "[1, 2, 3]",
    "no JSON": "<b/>",
    "nothing": "",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with what is good."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good").write_text(DOCUMENT)
    (tmp_path / "lines").write_text('{"stream": "s", "insert": "<c/>"}\n')
    (tmp_path / "pipeline").write_text(
        f"engine: embedded\ndocument: {DOCUMENT}\nviews: {{v: //c}}\n"
    )
    (tmp_path / "statement").write_text("insert node <c/> into //b")
    (tmp_path / "list").write_text('<patch><remove sel="/b/c"/></patch>')
    (tmp_path / "in").mkdir()
    (tmp_path / "letters").write_text(
        f"engine: embedded\ndocument: {DOCUMENT}\nviews: {{v: //c}}\n"
        "streams: {s: {source: {kind: directory, path: in, record: c}}}\n"
        "dead_letters: {kind: jsonl, path: dead.jsonl}\n"
    )
    letter = {"stream": "s", "origin": "in/1.xml", "error": "AX101", "content": "<c>"}
    (tmp_path / "dead.jsonl").write_text(json.dumps({"op": "insert", "row": letter}) + "\n")
    return tmp_path


def parameters() -> Iterator[tuple[str, str]]:
    command: Any = typer.main.get_command(application())
    for verb in VERBS:
        for parameter in command.commands[verb].params:
            if parameter.name != "help":
                yield verb, parameter.name


def test_all_parameters_are_in_a_table() -> None:
    found = set(parameters())
    assert READING.keys() <= found
    assert found >= WRITTEN
    plain = NOT_READ | QUERIES
    left = {key for key in found if key[1] not in plain or key in WRITTEN}
    assert left == READING.keys() | WRITTEN
    command: Any = typer.main.get_command(application())
    for name, made in command.commands["generate"].commands.items():
        texts = {p.name for p in made.params if p.name in GENERATE_WRITES}
        assert texts, name  # it writes; a sub-verb that read a file would have to be looked at
    kinds = DOCUMENTS | SAMPLES | UPDATES | TYPES | LISTS | PIPELINES | CERTIFICATES
    assert kinds | NOTED | STORES == READING.keys()


def refused(line: str, place: Path, must: bool = True) -> str:
    """Run a command; what it said when it was refused."""
    words = [str(place / word[1:]) if word.startswith("@") else word for word in line.split()]
    result = CliRunner().invoke(application([words[0]]), words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if must:
        assert result.exit_code == 2, result.output[:500]
        assert "AX" in result.output, result.output[:500]
    return result.output


def each(attacks: dict[str, bytes], outside: Outside) -> Iterator[tuple[str, bytes]]:
    for what in FEW:
        for aimed in aims(attacks[what], outside):
            yield what, aimed


ALL = {**XML_ATTACKS, **XML_LURES}


@pytest.mark.parametrize("key", sorted(DOCUMENTS), ids=" ".join)
def test_documents(key: tuple[str, str], place: Path, outside: Outside) -> None:
    for what, content in each(ALL, outside):
        (place / "attack").write_bytes(content)
        refused(READING[key], place, must=what in XML_ATTACKS)
        assert not outside.was_asked(), what


@pytest.mark.parametrize("key", sorted(SAMPLES), ids=" ".join)
def test_samples(key: tuple[str, str], place: Path, outside: Outside) -> None:
    for what, content in each(ALL, outside):
        (place / "attack").write_bytes(content)
        must = key[0] == "init" and what in XML_ATTACKS  # a letter is put back unread
        refused(READING[key], place, must=must)
        assert not outside.was_asked(), what
        assert not must or not (place / "made" / "pipeline.yaml").exists()


@pytest.mark.parametrize("key", sorted(UPDATES), ids=" ".join)
def test_files_of_updates(key: tuple[str, str], place: Path, outside: Outside) -> None:
    lines = [line.replace('{"', '{"stream": "s", "', 1).encode() for line in LINE_ATTACKS.values()]
    for what, content in each(ALL, outside):
        if what in XML_ATTACKS and is_text(content) and "encoding" not in what:
            lines.append(json.dumps({"stream": "s", "insert": content.decode()}).encode())
    lines += [b"\xff\xfe{", b"{" * 1000]
    for line in lines:
        (place / "attack").write_bytes(line + b"\n")
        refused(READING[key], place)
        assert not outside.was_asked(), line[:100]


@pytest.mark.parametrize("key", sorted(TYPES), ids=" ".join)
@pytest.mark.parametrize("suffix", ["", ".dtd", ".xsd"])
def test_types(key: tuple[str, str], suffix: str, place: Path, outside: Outside) -> None:
    line = READING[key].replace("@attack", f"@attack{suffix}")
    for _, content in each(ALL, outside):
        (place / f"attack{suffix}").write_bytes(content)
        refused(line, place, must=suffix == ".xsd")  # as a DTD it may declare nothing of use
        assert not outside.was_asked()
    schema = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{}</xs:schema>'
    wide = "".join(f'<xs:group ref="g{i - 1}"/>' for i in (1, 1, 1))
    growing = "".join(
        f'<xs:group name="g{i}"><xs:sequence>'
        + f'<xs:group ref="g{i - 1}"/>' * 10
        + "</xs:sequence></xs:group>"
        for i in range(1, 12)
    )
    bombs = {
        ".xsd": [
            schema.format('<xs:include schemaLocation="{address}"/>'),
            schema.format('<xs:import namespace="u" schemaLocation="{address}"/>'),
            schema.format('<xs:redefine schemaLocation="{address}"/>'),
            schema.format(f'<xs:element name="b"><xs:complexType>{wide}</xs:complexType>'
                          f'</xs:element><xs:group name="g0"><xs:sequence/></xs:group>{growing}'),
            schema.format('<xs:element name="b"><xs:complexType><xs:sequence>'
                          '<xs:element name="c" minOccurs="999999999" maxOccurs="999999999"/>'
                          "</xs:sequence></xs:complexType></xs:element>"),
            schema.format("<xs:sequence>" * 200 + "</xs:sequence>" * 200),
        ],
        ".dtd": [
            '<!ENTITY % p SYSTEM "{address}"> %p;',
            '<!ENTITY % a "b?, "><!ENTITY % b "%a;%a;%a;%a;%a;%a;%a;%a;%a;%a;">'
            + "".join(f'<!ENTITY % {y} "{f"%{x};" * 10}">' for x, y in pairwise("bcdefghi"))
            + "<!ELEMENT b (%i;c)>",
            "<!ELEMENT b " + "(" * 50_000 + "c" + ")" * 50_000 + ">",
            "<!ELEMENT b (" + "|".join(f"c{i}" for i in range(60_000)) + ")*>",
        ],
        "": ["root: b\nb -> " + "(" * 5000 + "|c| = 1" + ")" * 5000,
             "root: b\nb -> |c| = " + "9" * 100_000 + "\nc ->",
             "root: b\nb -> " + "not " * 20_000 + "|c| = 1\nc ->"],
    }[suffix]  # fmt: skip
    for bomb in bombs:
        for content in aims(bomb.encode(), outside):
            (place / f"attack{suffix}").write_bytes(content)
            refused(line, place, must=False)
            assert not outside.was_asked(), bomb[:100]


@pytest.mark.parametrize("key", sorted(PIPELINES), ids=" ".join)
def test_yaml_bombs(key: tuple[str, str], place: Path) -> None:
    for name, bomb in YAML_BOMBS.items():
        (place / "attack").write_text(bomb)
        said = refused(READING[key], place)
        assert "0123456789abcdef" not in said or key[1] != "roles", name
    (place / "attack").write_bytes(b"\xff\xfe\x00")
    refused(READING[key], place)


@pytest.mark.parametrize("key", sorted(CERTIFICATES), ids=" ".join)
def test_certificates(key: tuple[str, str], place: Path) -> None:
    locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n"
    for content in (b"", b"\xff" * 1000, ALL["billion laughs"], locked.encode()):
        (place / "attack").write_bytes(content)
        assert "AX818" in refused(READING[key], place)


@pytest.mark.parametrize("key", sorted(NOTED), ids=" ".join)
def test_json_bombs(key: tuple[str, str], place: Path) -> None:
    for name, bomb in JSON_BOMBS.items():
        if name != "nothing" or key[0] == "fuzz":  # to bench, nothing is a run that begins
            (place / "attack").write_text(bomb)
            refused(READING[key], place)
    (place / "attack").write_bytes(b"\xff")
    refused(READING[key], place)


@pytest.mark.parametrize("key", sorted(LISTS), ids=" ".join)
def test_lists_of_updates(key: tuple[str, str], place: Path, outside: Outside) -> None:
    for content in [
        *(c for _, c in each(ALL, outside)),
        *(b.encode() for b in JSON_BOMBS.values()),
    ]:
        (place / "attack").write_bytes(content)
        refused(READING[key], place, must=content != b"")
        assert not outside.was_asked()


def _log(store: Path) -> Path:
    return next(path for path in store.iterdir() if path.name.startswith("log"))


FORGED: dict[str, Callable[[Path], object]] = {
    "nothing there": lambda store: _log(store).unlink(),
    "a log that is none": lambda store: _log(store).write_bytes(b"\xff" * 1000),
    "a log of XML": lambda store: _log(store).write_bytes(ALL["billion laughs"]),
    "a byte of it": lambda store: _log(store).write_bytes(
        bytes(b ^ (at == 60) for at, b in enumerate(_log(store).read_bytes()))
    ),
}


@pytest.mark.parametrize("key", sorted(STORES), ids=" ".join)
@pytest.mark.parametrize("how", FORGED)
def test_stores(key: tuple[str, str], how: str, place: Path) -> None:
    with axlog.open(place / "store", DOCUMENT, views={"v": "//c"}) as store:
        for _ in range(3):
            store.feed("s", "<c>2</c>")
    FORGED[how](place / "store")
    refused(READING[key], place)
    if key[0] in ("backup", "restore"):  # checked before the copy is made
        assert not (place / "made").exists()
