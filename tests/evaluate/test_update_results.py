"""What a list of updates is judged by: the trees that it leaves, those that it deletes included."""

import pytest

import axlog
from axlog.errors import UpdateError
from axlog.views.choose import MAINTAINERS

RESULTS = {
    "delete node /r": "",
    "replace node /r with ()": "",
    "insert node attribute k {'2'} into /r/a, delete node /r/a/@k": '<r><a k="2"/></r>',
    "insert node attribute k {'2'} into /r/a, rename node /r/a/@k as 'm'": (
        '<r><a k="2" m="1"/></r>'
    ),
}
REFUSED = {
    "insert node attribute k {'2'} into /r/a, delete node /r/a": "XUDY0021",
    "insert nodes (attribute m {'2'}, attribute m {'3'}) into /r/a, delete node /r": "XUDY0021",
    "insert node attribute k {'2'} into /r/a, replace node /r/a with <b/>": "XUDY0021",
    "insert node <!--c--> before /r, delete node /r": "XUDY0021",
}


@pytest.mark.parametrize("statement", RESULTS)
def test_lists_that_can_be_carried_out(statement: str) -> None:
    doc = axlog.parse('<r><a k="1"/></r>')
    doc.update(statement)
    assert sorted(doc.xml()) == sorted(RESULTS[statement])


@pytest.mark.parametrize("statement", REFUSED)
def test_lists_that_are_refused(statement: str) -> None:
    doc = axlog.parse('<r><a k="1"/></r>')
    with pytest.raises(UpdateError, match=REFUSED[statement]):
        doc.update(statement)
    assert doc.xml() == '<r><a k="1"/></r>'


@pytest.mark.parametrize("maintainer", MAINTAINERS)
def test_an_empty_document_can_be_filled_again(maintainer: str) -> None:
    doc = axlog.parse("<r><a/></r>")
    view = doc.watch("//a", maintainer=maintainer)
    assert [change.op for change in doc.update("delete node /r")] == ["delete"]
    assert (doc.xml(), view.rows()) == ("", [])
    assert [change.op for change in doc.update("insert node <r><a/></r> into /")] == ["insert"]
    assert doc.xml() == "<r><a/></r>"


DEFAULT = '<a xmlns="urn:d" xmlns:p="urn:p"><b/></a>'
CLASHES = (
    "rename node /*/* as 'c'",
    "rename node /* as QName('', 'c')",
    "rename node /* as QName('urn:e', 'c')",
    "rename node /* as QName('urn:e', 'p:c')",
)


@pytest.mark.parametrize("statement", CLASHES)
def test_a_new_name_keeps_the_default_namespace(statement: str) -> None:
    doc = axlog.parse(DEFAULT)
    with pytest.raises(UpdateError, match="XUDY0023"):
        doc.update(statement)
    assert doc.xml() == DEFAULT


def test_a_new_name_of_the_default_namespace_is_no_clash() -> None:
    doc = axlog.parse(DEFAULT)
    doc.update("rename node /*/* as QName('urn:d', 'c')")
    assert doc.xml() == DEFAULT.replace("<b/>", "<c/>")
    doc.update("rename node /*/* as QName('urn:e', 'q:c')")
    assert "urn:e" in doc.xml()


@pytest.mark.parametrize("maintainer", MAINTAINERS)
def test_ids_say_the_labels_that_their_paths_have(maintainer: str) -> None:
    doc = axlog.parse("<a><b><c/></b></a>")
    view = doc.watch("//c", maintainer=maintainer)
    (before,) = view.rows()
    doc.update("rename node //b as 'x'")
    (after,) = view.rows()
    assert after["node.id"] == before["node.id"]
    assert after["node.id"].labels == ("a", "x", "c")
