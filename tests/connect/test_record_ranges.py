"""Large XML files divided at their records: every record is read once, or the file is refused."""

from io import BytesIO
from pathlib import Path
from random import Random

import pytest
from lxml import etree

from axlog.connect.sources.record_ranges import fit_together, ranges_of, read_range
from axlog.document.record_reader import split
from axlog.errors import ConnectorError

ROOTS = [
    ("<l>", "</l>", "o", "o"),
    ('<?xml version="1.0"?><!-- c --><l at="a>b">', "</l>", "o", "o"),
    ('<l xmlns="urn:p">', "</l>", "o", "{urn:p}o"),
    ('<p:l xmlns:p="urn:p" xmlns:q="urn:q">', "</p:l>", "p:o", "{urn:p}o"),
    ('<?xml version="1.0" encoding="iso-8859-1"?><l>', "</l>", "o", "o"),
]
BETWEEN = [
    "",
    "\n ",
    "<x>t</x>",
    "<group>",
    "</group>",
    "<!-- c -->",
    "<?pi o?>",
    "<ox/>",
    "<o2>u</o2>",
]
HIDDEN = ["<!-- <o>x</o> -->", "<![CDATA[<o></o>]]>", "<?i <o?>"]


def _record(random: Random, name: str, number: int, nests: bool) -> str:
    inside = random.choice(["", "t", "<k>é</k>", "<k a='>'/>", *(HIDDEN if nests else [])])
    if nests and random.random() < 0.3:
        inside += f"<{name}>{number}</{name}>"
    if random.random() < 0.2:
        return f'<{name} n="{number}"/>'
    return f"<{name}\n n=\"{number}\" b='/>'>{inside}</{name} >"


def _file(random: Random, is_plain: bool) -> tuple[str, str]:
    head, tail, name, label = random.choice(ROOTS)
    text, depth = head, 0
    for number in range(random.randrange(1, 25)):
        each = random.choice(BETWEEN if is_plain else [*BETWEEN, *HIDDEN])
        depth += {"<group>": 1, "</group>": -1 if depth else 0}.get(each, 0)
        text += "" if each == "</group>" and "<group>" not in text else each
        if each == "</group>" and text.count("</group>") > text.count("<group>"):
            text = text.removesuffix(each)
        text += _record(random, name, number, nests=not is_plain)
    text += "</group>" * (text.count("<group>") - text.count("</group>")) + tail
    return text, label


def _read(path: Path, label: str, step: int) -> list[bytes]:
    found = [read_range(path, label, *each) for each in ranges_of(path.stat().st_size, step)]
    fit_together(joint for _, joint in found)
    return [_canonical(record) for records, _ in found for record in records]


def _canonical(record: bytes) -> bytes:
    return str(etree.canonicalize(record.decode())).encode()


@pytest.mark.parametrize("is_plain", [True, False])
def test_the_records_of_all_ranges_are_those_of_the_file(tmp_path: Path, is_plain: bool) -> None:
    path = tmp_path / "f.xml"
    refused = done = 0
    for seed in range(60):
        random = Random(seed)
        text, label = _file(random, is_plain)
        data = text.encode("iso-8859-1" if "iso-8859" in text else "utf-8")
        path.write_bytes(data)
        elements = split(BytesIO(data), label)
        wanted = [_canonical(etree.tostring(one, with_tail=False)) for one in elements]
        for step in (random.randrange(5, 60), 100, 10_000):
            try:
                found = _read(path, label, step)
            except ConnectorError:
                refused += 1
            else:
                assert found == wanted, (seed, step)
                done += 1
    assert done > 80
    assert is_plain == (refused == 0)


@pytest.mark.parametrize(
    ("text", "label", "why"),
    [
        ("<!DOCTYPE l><l><o/></l>", "o", "DOCTYPE"),
        ("<l><g xmlns='urn:p'><o/></g></l>", "o", "declares a namespace"),
        ("<l><o/></l>", "{urn:p}o", "no prefix"),
        ("<o><o/></o>", "o", "the root is a record"),
        ("   ", "o", "root element"),
    ],
)
def test_files_that_cannot_be_divided(tmp_path: Path, text: str, label: str, why: str) -> None:
    path = tmp_path / "f.xml"
    path.write_text(text)
    with pytest.raises(ConnectorError, match=why):
        _read(path, label, 10)


def test_a_range_that_starts_inside_of_a_comment_is_found(tmp_path: Path) -> None:
    path = tmp_path / "f.xml"
    path.write_text("<l><o n='1'/><!-- ....................<o n='2'/> --><o n='3'/></l>")
    assert len(_read(path, "o", 1000)) == 2
    with pytest.raises(ConnectorError, match="byte 30 is inside"):
        _read(path, "o", 30)
