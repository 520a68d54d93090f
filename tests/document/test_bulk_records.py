"""The records of a large document, from its bytes: the same tree as by walking its elements."""

from __future__ import annotations

from random import Random

import pytest

from axlog.document import bulk_records, loader
from axlog.document.loader import load
from axlog.document.parser import Limits
from axlog.document.tree import ATTRIBUTE, ELEMENT, NodeKind, Tree
from axlog.errors import LimitError
from axlog.evaluate.text_search import labelled

_COLUMNS = (
    "kind_column", "parent_column", "first_column", "last_column", "next_column",
    "previous_column", "order_column", "time_column",
)  # fmt: skip
_NAMES = ("a", "b", "item", "abcdefgh", "abcdefghi", "größe", "a.b-c_d", "x" * 32, "日本語")
_TEXTS = (
    "x", " ", "\n  ", "\t", " x", "x ", "&amp;", "&lt;&gt;", "&#13;", " &#13; ", "\r\n", "'\"",
    "a > b", "\u00a0", "é", "日本", "]]&gt;", "&amp;amp;", "&#9;", "=", "/",
)  # fmt: skip
_VALUES = ("", "v", "a b", "&quot;", "'", ">", "&lt;", "&#10;", "&#9;x", "é=1", "/", "a  b")


def _document(random: Random) -> str:
    parts: list[str] = []

    def element(depth: int) -> None:
        name = random.choice(_NAMES)
        names = random.sample([*_NAMES, "xml:lang"], random.choice((0, 0, 1, 2, 4)))
        quote = random.choice("\"'")
        values = [random.choice(_VALUES).replace("'", "" if quote == "'" else "'") for _ in names]
        attributes = "".join(
            f"{random.choice((' ', '  ', chr(10)))}{key}={quote}{value}{quote}"
            for key, value in zip(names, values, strict=True)
        )
        if random.random() < 0.2:
            parts.append(f"<{name}{attributes}/>")
            return
        parts.append(f"<{name}{attributes}>")
        for _ in range(random.choice((0, 1, 2, 4)) if depth < 7 else 0):
            if random.random() < 0.6:
                parts.append(random.choice(_TEXTS))
            element(depth + 1)
        if random.random() < 0.6:
            parts.append(random.choice(_TEXTS))
        parts.append(f"</{name}>")

    element(0)
    return "".join(parts)


def _facts(tree: Tree) -> list[object]:
    named = (ELEMENT, ATTRIBUTE)
    return [
        *(list(getattr(tree, name)) for name in _COLUMNS),
        [
            tree.label(node) if kind in named else tree.text(node) if kind > ATTRIBUTE else ""
            for node, kind in enumerate(tree.kind_column)
        ],
        {label: sorted(nodes) for label, nodes in tree.nodes_by_label.items()},
    ]


def _walked(monkeypatch: pytest.MonkeyPatch, text: str, **options: object) -> Tree:
    with monkeypatch.context() as patch:
        patch.setattr(loader, "records_of", lambda *_: None)
        return load(text, **options)  # type: ignore[arg-type]


def test_records_from_bytes_are_those_of_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_records, "SMALLEST", 0)
    read = bulk_records.records_of
    bulk: list[bool] = []

    def noted(*given: object) -> object:
        found = read(*given)  # type: ignore[arg-type]
        bulk.append(found is not None)
        return found

    monkeypatch.setattr(loader, "records_of", noted)
    for seed in range(300):
        text = _document(Random(seed))
        keep = seed % 3 == 0
        found = load(text, keep_whitespace=keep)
        assert _facts(found) == _facts(_walked(monkeypatch, text, keep_whitespace=keep)), text
    assert sum(bulk) == 300


@pytest.mark.parametrize(
    "text",
    [
        "<a><!-- c --><b/></a>",
        "<a><?p d?><b/></a>",
        "<!-- c --><a><b/></a>",
        '<a xml:space="preserve"> <b/> </a>',
        "<a><" + "n" * 40 + "/></a>",
        "<a><![CDATA[ x ]]> <b/></a>",
        "<!DOCTYPE a [<!ELEMENT a ANY>]><a> <a>x</a></a>",
    ],
)
def test_other_documents_are_walked_or_read_the_same(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_records, "SMALLEST", 0)
    assert _facts(load(text)) == _facts(_walked(monkeypatch, text))


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("<a><b><c/></b></a>", Limits(depth=2)),
        ("<a>" + "x" * 30 + "</a>", Limits(text=20)),
        ('<a b="' + "x" * 30 + '"/>', Limits(text=20)),
        ("<a><" + "n" * 20 + "/></a>", Limits(name=10)),
        ("<a " + " ".join(f'a{n}="1"' for n in range(60)) + "/>", Limits(attributes=50)),
    ],
)
def test_limits_hold_for_large_documents(
    text: str, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_records, "SMALLEST", 0)
    with pytest.raises(LimitError) as found:
        load(text, limits=limits)
    with pytest.raises(LimitError) as expected:
        _walked(monkeypatch, text, limits=limits)
    assert str(found.value) == str(expected.value)


def test_names_with_the_same_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_records, "SMALLEST", 0)
    monkeypatch.setattr(bulk_records, "_BUCKETS", 2)
    text = "<a>" + "".join(f"<n{number}/>" for number in range(20)) + "</a>"
    assert _facts(load(text)) == _facts(_walked(monkeypatch, text))


def test_a_text_after_an_empty_value_is_found() -> None:
    tree = load('<a b="">abc</a>')
    (text,) = (at for at, kind in enumerate(tree.kind_column) if kind == NodeKind.TEXT and at > 3)
    assert labelled(tree, "abc") == {text}
