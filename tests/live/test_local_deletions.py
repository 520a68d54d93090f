"""A stream that may delete restricts tuning, released state, collection and relevance only for what
its deletions can reach."""

from random import Random

import pytest

from axlog.document.loader import load
from axlog.document.tree import NodeKind
from axlog.document.value_index import ValueIndex
from axlog.errors import AxlogError
from axlog.evaluate.answers import holds
from axlog.evaluate.siblings import SiblingPatterns
from axlog.future.deletions import loses_by, reaching_stream
from axlog.future.relevance import relevance
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.options import Options
from axlog.query.native import parse_pattern
from axlog.query.query import parse_query
from lab.laws.finished_law import check_finished, make_finished_case

DOCUMENT = """<r xmlns:ax="urn:axlog">
  <feed><ax:call stream="d" deletes="yes"/></feed>
  <o><ax:call stream="o"/></o>
  <p><ax:call stream="p"/></p>
</r>"""
JOINED = "match /r[o/a/$x][p/a/$x] return $x"
OF_FEED = "match /r/feed/b/$x return $x"
BOTH = "match /r[feed/b/$x][o/a/$x] return $x"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (JOINED, None),
        (OF_FEED, "d"),
        (BOTH, "d"),
        ("match /r/feed", None),
        ("match /r/feed/@k", None),
        ("match /r/feed[b or c]", "d"),
        ("match /r[not(feed/b)]/o", "d"),
        ("match //b/$x return $x", "d"),
        ("match /r/*/a/$x return $x", "d"),
        ("match /r/o#t return t.cont", None),
        ("match /r#t[o] return t.val", "d"),
        ('match /r[. = "1"]/o', "d"),
        ('match /r/o[. = "1"]', None),
        ("match /r/$x return $x", None),
    ],
)
def test_which_views_can_lose_rows(query: str, expected: str | None) -> None:
    tree = maintained(Document(DOCUMENT)).tree
    assert loses_by(tree, parse_pattern(query)) == expected


def test_which_streams_a_deletion_reaches() -> None:
    inside = DOCUMENT.replace("<feed>", '<feed><g><ax:call stream="g"/></g>')
    tree = maintained(Document(inside)).tree
    reached = {stream: reaching_stream(tree, stream) for stream in "dgop"}
    assert reached == {"d": "d", "g": "d", "o": None, "p": None}


def test_streams_elsewhere_are_tuned() -> None:
    doc = Document(DOCUMENT, views={"v": "match /r[o/a][p/a]", "f": OF_FEED})
    doc.feed("o", "<a/>")
    doc.feed("p", "<a/>")
    found = doc.tune()
    assert found.unsubscribed == ("o", "p")
    assert "may delete its messages" in found.streams["d"].reason
    assert list(found.undecided) == ["f"]
    both = Document(DOCUMENT, views={"v": "match /r[o/a][feed/b]"})
    both.feed("o", "<a/>")
    both.feed("d", "<b/>")
    assert both.tune().unsubscribed == ("p",)
    assert [c.op for c in both.delete("d", "match /b")] == ["delete"]
    assert [c.op for c in both.feed("d", "<b/>")] == ["insert"]


def test_messages_elsewhere_are_released_and_deletions_stay_exact() -> None:
    doc = Document(DOCUMENT, views={"f": OF_FEED, "b": BOTH, "j": JOINED},
                   options=Options(keep="needed"))  # fmt: skip
    before = len(doc)
    for n in range(20):
        doc.feed("o", f"<a>{n}</a>")
    assert len(doc) == before  # rows of joins, no nodes
    doc.feed("d", "<b>3</b>")
    doc.feed("d", "<b>4</b>")
    assert [row["x"] for row in doc.view("b").rows()] == ["3", "4"]
    assert sorted((c.view, c.op) for c in doc.delete("d", 'match /b[. = "3"]')) == [
        ("b", "delete"),
        ("f", "delete"),
    ]
    assert [row["x"] for row in doc.view("b").rows()] == ["4"]
    with pytest.raises(AxlogError, match="AX307"):
        doc.update("delete node //b")


def test_replacements_elsewhere_stay_exact_when_kept_messages_become_nodes() -> None:
    replaced = DOCUMENT.replace('stream="o"', 'stream="o" replace="@k"')
    views = {"v": "match //a/$x return $x"}
    doc = Document(replaced, views=views, options=Options(keep="needed"))
    doc.feed("o", '<a k="1">old</a>')
    doc.feed("d", "<a>kept</a>")
    assert len(doc) > 0  # reading the document makes nodes of the message that is kept
    assert [(c.op, c.row["x"]) for c in doc.feed("o", '<a k="1">new</a>')] == [
        ("delete", "old"),
        ("insert", "new"),
    ]
    assert sorted(row["x"] for row in doc.view("v").rows()) == ["kept", "new"]


def test_joins_elsewhere_release_rows_that_find_no_partner() -> None:
    doc = Document(DOCUMENT, views={"j": JOINED, "f": OF_FEED}, options=Options(keep="needed"))
    for n in range(10):
        doc.feed("o", f"<a>{n}</a>")
    assert doc.state_sizes()["joins"] >= 10
    never = doc.end("p")
    assert {c.op for c in never} == {"never"}
    assert doc.state_sizes()["joins"] < 10


def test_relevance_elsewhere_is_exact() -> None:
    doc = Document(DOCUMENT, views={"v": "match /r[o/a][p/a]", "b": BOTH})
    found = relevance(maintained(doc).tree, doc.view("v").query.pattern)
    assert {stream: each.relevant for stream, each in found.items()} == {
        "d": False, "o": True, "p": True,
    }  # fmt: skip
    both = relevance(maintained(doc).tree, doc.view("b").query.pattern)
    assert all(each.relevant is None for each in both.values())


def test_nodes_elsewhere_are_collected() -> None:
    doc = Document(DOCUMENT, views={"v": "match /r[o/a][p/a]"}, options=Options(collect="state"))
    for _ in range(5):
        doc.feed("o", "<a><x/></a>")
        doc.feed("d", "<b/>")
    doc.feed("p", "<a/>")
    found = doc.collect()
    assert found.kept is None
    assert found.nodes == 11  # those of o and p, and none of d
    assert doc.delete("d", "match /b") == []


@pytest.mark.parametrize("seed", range(4))
def test_collection_changes_nothing(seed: int) -> None:
    """With `or`, ids, values and streams that delete; `lab fuzz --law collect` goes on."""
    check_finished(make_finished_case(Random(9000 + seed)))


@pytest.mark.parametrize(
    "pattern",
    [
        'match /o[k/"{}"]',
        'match /o[k = "{}"]',
        "match /o[@k = '{}'][v/$x]",
        'match /o[v/$x][k/"{}"] where $x = "{}"',
        'match //k/"{}"',
        'match //o[k/"{}"]',
        'match //o[b/"{}"]',
        'match /w[//k/"{}"]',
        'match /w[//k = "{}"]/o',
        "match //*[@k = '{}']/v",
        "match /w//@k[. = '{}']",
        'match /o[k = "{}" or v = "{}"]',
        'match /o[not(k/"{}")]',
        "/o[k = '{}']",
        "/*[@k = '{}']/v",
        "match /o[v > 1][k/'{}']",
        "match /$l where $l = '{}'",
    ],
)
def test_deletes_that_differ_in_strings_match_what_each_matches_by_itself(pattern):
    numbers = Random(pattern)
    for _ in range(12):
        body = "".join(
            f"<{name} k='{numbers.randrange(3)}'><k>{numbers.choice(('0', '1<b>2</b>', '2'))}</k>"
            f"<v>{numbers.randrange(3)}</v></{name}>"
            for name in numbers.choices(("o", "p"), k=6)
        )
        body += f"<w>{body}</w><w><p>{body}</p></w>" if numbers.random() < 0.3 else ""
        tree = load(f'<a xmlns:ax="urn:axlog"><ax:call stream="f" deletes="yes"/>{body}</a>')
        call, index = tree.calls()["f"], ValueIndex(tree)
        compiled = SiblingPatterns(parse_query)
        for _ in range(6):
            text = pattern.replace("{}", str(numbers.randrange(4)))
            wanted = parse_query(text).only_pattern
            expected = [
                node
                for node in tree.children(tree.root)
                if tree.kind(node) is NodeKind.ELEMENT and holds(tree, wanted, node)
            ]
            assert compiled.matching(tree, text, index, call) == expected
