"""The process that runs Saxon: hostile queries, threads, forked processes, limits, memory."""

import gc
import os
import threading
from pathlib import Path

import pytest

import axlog
from axlog.document.loader import load
from axlog.errors import QueryError
from axlog.live.internals import maintained
from axlog.views.saxon import process
from axlog.views.saxon.documents import SaxonDocument
from axlog.views.saxon.process import PROCESS, Asked

pytest.importorskip("saxonche")

STYLESHEET = (
    "<xsl:stylesheet xmlns:xsl='http://www.w3.org/1999/XSL/Transform' version='3.0'>"
    "<xsl:template match='/'>{}</xsl:template></xsl:stylesheet>"
)

READING = STYLESHEET.format("<xsl:copy-of select='doc(//x)'/>")
WRITING = STYLESHEET.format("<xsl:result-document href='FILE'/>")


def _run(text: str, xml: str = "<r/>", language: str = "xquery") -> list[tuple[str, str]]:
    return SaxonDocument().run(load(xml), Asked(text, language))


@pytest.mark.parametrize(
    "text",
    [
        "doc('FILE')", "unparsed-text('FILE')", "unparsed-text-lines('FILE')", "json-doc('FILE')",
        "collection('FILE')", "uri-collection('DIRECTORY')", "collection('DIRECTORY?select=*')",
        "import module namespace m = 'm' at 'FILE'; m:f()",
        "import schema namespace m = 'm' at 'FILE'; 1",
        "load-xquery-module('m', map { 'location-hints': 'FILE' })",
        "function-lookup(xs:QName('fn:doc'), 1)('FILE')",
        "fn:doc#1('FILE')",
        "let $f := unparsed-text#1 return $f('FILE')",
        "apply(fn:doc#1, ['FILE'])",
        "doc('http://127.0.0.1:9/x')",
        "transform(map { 'stylesheet-location': 'FILE', 'source-node': . })",
        f"transform(map {{ 'stylesheet-text': \"{READING}\", "
        "'source-node': document { <x>FILE</x> } })?output",
        f"transform(map {{ 'stylesheet-text': \"{WRITING}\", 'source-node': . }})",
        "parse-xml('<!DOCTYPE a [<!ENTITY e SYSTEM \"FILE\">]><a>&amp;e;</a>')",
        "Q{java:java.lang.System}exit(1)", "Q{java:java.io.File}new('FILE')",
        "Q{http://saxon.sf.net/}evaluate('1')", "Q{http://saxon.sf.net/}read-binary-resource('FILE')",
        "Q{http://expath.org/ns/file}read-text('FILE')",
        "put(<a/>, 'FILE')",
    ],
)  # fmt: skip
def test_a_query_reads_and_writes_nothing_outside(text: str, tmp_path: Path) -> None:
    file = tmp_path / "secret.xml"
    file.write_text("<secret>7341</secret>")
    asked = text.replace("FILE", file.as_uri()).replace("DIRECTORY", tmp_path.as_uri())
    with pytest.raises(QueryError) as refused:
        _run(asked)
    assert refused.value.code in ("AX201", "AX217")
    assert "7341" not in str(refused.value)
    assert file.read_text() == "<secret>7341</secret>"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("doc-available('/etc/passwd')", [("boolean", "false")]),
        ("unparsed-text-available('/etc/passwd')", [("boolean", "false")]),
        ("environment-variable('PATH')", [("string", "")]),
        ("available-environment-variables()", []),
        ("trace('said', 'loudly')", [("string", "said")]),
    ],
)
def test_a_query_learns_nothing_of_the_machine(text: str, items: list[tuple[str, str]]) -> None:
    assert _run(text) == items


def test_a_view_that_recurses_without_end_is_set_aside_alone() -> None:
    doc = axlog.parse("<r><n>1</n></r>")
    deep = "let $f := function($f, $n) { if ($n = 1) then 1 else 1 + $f($f, $n + 1) } return "
    bad = doc.watch(deep + "$f($f, number(//n))", "bad")
    good = doc.watch("array { //n }", "good")
    doc.update("replace value of node //n with '2'")
    assert bad.broken is not None
    assert bad.broken.code == "AX216"
    assert good.items() == ["[<n>2</n>]"]
    with pytest.raises(QueryError) as refused:
        bad.items()
    assert refused.value.code == "AX216"


def test_a_view_that_takes_too_long_is_set_aside_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    doc = axlog.parse("<r><n>1</n></r>")
    loop = "count(for $i in 1 to xs:integer(//n), $j in 1 to xs:integer(//n) return $i[. = $j])"
    bad = doc.watch(loop, "bad", maintainer="saxon")
    good = doc.watch("array { //n }", "good")
    monkeypatch.setattr(PROCESS, "seconds", 1.0)
    doc.update("replace value of node //n with '10000000'")
    assert bad.broken is not None
    assert bad.broken.code == "AX216"
    assert "1 seconds" in bad.broken.message
    assert good.items() == ["[<n>10000000</n>]"]


def test_a_query_that_takes_too_much_memory_ends_the_worker_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "MEGABYTES", 600)
    PROCESS.close()
    try:
        with pytest.raises(QueryError) as refused:
            _run("let $x := (for $i in 1 to 30000000 return string($i)) return count(($x, $x[5]))")
        assert refused.value.code == "AX216"
        assert _run("1 + 1") == [("integer", "2")]
    finally:
        PROCESS.close()


def test_views_of_several_threads() -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            doc = axlog.parse(f"<r><n>{number}</n></r>")
            view = doc.watch("array { //n }")
            for _ in range(20):
                doc.update("insert node <m/> into /r, insert node <n>0</n> into /r")
            assert view.items() == [f"[{','.join([f'<n>{number}</n>', *['<n>0</n>'] * 20])}]"]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_has_its_own_worker() -> None:
    doc = axlog.parse("<r><n>1</n></r>")
    view = doc.watch("array { //n }")
    child = os.fork()
    if not child:
        code = 1
        try:
            doc.update("insert node <n>2</n> into /r")
            code = 0 if view.items() == ["[<n>1</n>,<n>2</n>]"] else 2
            PROCESS.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    doc.update("insert node <n>3</n> into /r")
    assert view.items() == ["[<n>1</n>,<n>3</n>]"]


def test_documents_are_released() -> None:
    doc = axlog.parse("<r><n>1</n></r>")
    doc.watch("array { //n }")
    document = maintained(doc).engines.saxon
    name = document._name
    del doc, document
    gc.collect()
    assert name in PROCESS._released
    _run("1")
    assert name not in PROCESS._released


def test_a_worker_that_was_killed_is_replaced() -> None:
    doc = axlog.parse("<r><n>1</n></r>")
    view = doc.watch("array { //n }")
    PROCESS.close()
    doc.update("insert node <n>2</n> into /r")
    assert view.items() == ["[<n>1</n>,<n>2</n>]"]


def test_xpath_strings_have_no_references() -> None:
    assert _run("'&amp;'", language="xpath") == [("string", "&amp;")]
    assert _run("'&amp;'") == [("string", "&")]


def test_a_document_without_an_element() -> None:
    from axlog.document.tree import Tree

    assert SaxonDocument().run(Tree(), Asked("count(//node())", "xquery")) == [("integer", "0")]
