"""The fixture files: document, query, updates and the changes expected, under every maintainer.

A file is added by writing it: see `lab.laws.fixtures`. Each is played by re-evaluation, by
counting with blocks of several sizes, which must not matter, and by every other maintainer that
takes its queries.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from axlog.errors import InputError
from axlog.query.query import parse_query
from axlog.views.choose import maintainer_named
from lab.laws.fixtures import Fixture, play, read_fixture, write_fixture

PLACE = Path(__file__).parents[1] / "fixtures"
FILES = sorted(PLACE.glob("*.txt"))
WAYS = [("reevaluate", 64), ("counting", 1), ("counting", 3), ("counting", 64), ("algebraic", 64),
        ("adaptive", 64)]  # fmt: skip

# What a view must be exact for (issue: the streaming engine), each with a file of its own.
FEATURES = """
child descendant wildcard attributes text-tests strings numbers dates values-of-elements variables
compared-variables or not not-with-join time time-in-not outputs boolean counts collect
deletion-anywhere insertion-anywhere rename replace-value replace-node content-updates merged-texts
replaced-twice namespaces refused stream-messages several-views
absolute-not absolute-or collect-of-the-document
example-12-negation example-13-order-monitor example-15-optimism example-22-content
example-23-counts-under-deletion example-24-counts example-24-deletion
""".split()


def read(path: Path) -> Fixture:
    return read_fixture(path.read_text(encoding="utf-8"), path.name)


def test_every_feature_has_a_file() -> None:
    assert set(FEATURES) <= {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize(("maintainer", "block"), WAYS)
def test_fixture(path: Path, maintainer: str, block: int) -> None:
    fixture = read(path)
    assert fixture.title
    assert fixture.steps
    refusal = maintainer_named(maintainer).refusal
    if any(refusal(parse_query(query).pattern) for query in fixture.queries.values()):
        return
    assert play(fixture, maintainer, block) == fixture


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_text_of_a_fixture_is_what_was_read(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert write_fixture(read_fixture(text)) == text


def test_a_wrong_expectation_is_seen() -> None:
    fixture = read(PLACE / "child.txt")
    wrong = replace(fixture.steps[0], changes={"view": []})
    assert play(replace(fixture, steps=(wrong,)), "counting") != replace(fixture, steps=(wrong,))


@pytest.mark.parametrize(
    "text",
    [
        "no sections",
        "== document\n<a/>\n",
        "== document\n<a/>\n== query\nmatch /a\n== answers\n",
        "== document\n<a/>\n== query\nmatch /a\n== update\n{not json}\n",
    ],
)
def test_a_text_that_is_no_fixture_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        read_fixture(text, "some.txt")
    assert caught.value.code == "AX103"
    assert caught.value.place is not None
