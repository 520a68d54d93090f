"""The form of packets and stored values: independent of the version of Python."""

import marshal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from axlog.document.stream_update import StreamUpdate
from axlog.errors import StoreError
from axlog.runtime import packet_format, packets
from axlog.runtime.bucket_engines import Buckets
from axlog.runtime.bucket_state import forget_live
from axlog.runtime.definition import Definition
from axlog.runtime.extraction import Extractor
from axlog.runtime.packet_rows import packed
from axlog.runtime.past import NOTHING
from axlog.runtime.plan import make_plan
from lab.laws.buckets_law import messages_of
from lab.laws.pipeline_cases import PipelineCase


def _value(random: Random, depth: int = 3) -> Any:
    """Random plain data."""
    simple: list[Any] = [
        None, True, False, 0, -1, 1 << 31, -(1 << 31), 1 << 64, -(1 << 100), 0.25, -1e300, "", "a",
        "text" * 80, "\u00e9\U0001f600", "\ud800", b"", b"\x00\xff" * 200,
    ]  # fmt: skip
    kind = random.randrange(8) if depth else 0
    if kind < 4:
        return random.choice(simple)
    some = [_value(random, depth - 1) for _ in range(random.randrange(5))]
    if depth == 1:
        some *= random.choice((1, 1, 80))
    if kind == 4:
        return some
    if kind == 5:
        return {(random.choice("abc"), n): value for n, value in enumerate(some)}
    return tuple(some)


@pytest.mark.parametrize("seed", range(20))
def test_the_form_is_that_of_marshal(seed: int) -> None:
    value = _value(Random(seed))
    for written in (marshal.dumps(value, 4), packet_format.write(value)):
        for read in (marshal.loads, packet_format.read):
            assert repr(read(written)) == repr(value)


def test_values_that_are_shared_are_read_once() -> None:
    row = ("order", 17)
    assert packet_format.read(marshal.dumps([row, row, {row: [row]}], 4)) == [
        row,
        row,
        {row: [row]},
    ]


@pytest.mark.parametrize("written", [b"", b"?", b"(\x02\x00\x00\x00N", b"s\xff\xff\xff\x7fa"])
def test_other_bytes_are_refused(written: bytes) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        packet_format.read(written)


def test_another_python_reads_and_writes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"rows": ((("o1", 5), 1),), "parts": [b"\x00", 1 << 64]}
    before = packets.pack(value)
    monkeypatch.setattr(packets, "_IS_SAME", False)
    assert packets.unpack(before) == value
    after = packets.pack(value)
    monkeypatch.undo()
    assert packets.unpack(after) == value


_CALL = '<{0}><ax:call xmlns:ax="urn:axlog" stream="{0}"/></{0}>'
_DEFINITION = Definition(
    f"<r>{_CALL.format('a')}{_CALL.format('b')}</r>",
    {"pairs": ("match /r[a/i/k/$k][b/i[k/$k]/v/$v] return $k, $v", None)},
)


class _Store(dict[str, bytes]):
    def put(self, key: str, value: bytes) -> None:
        self[key] = value

    def remove(self, key: str) -> None:
        self.pop(key, None)


def _fed(store: _Store, updates: list[StreamUpdate], run: str) -> list[Any]:
    """The reports of one bucket after some updates."""
    plan = make_plan(_DEFINITION, 1)
    extractor = Extractor(_DEFINITION, plan)
    extractor.past = NOTHING
    case = PipelineCase("", (), ((tuple(updates),),), ((len(updates),),))
    first = next(iter(messages_of(case)))
    bodies = [body for key, body in packed(extractor.extract(first[0][0]), plan) if key == "0"]
    forget_live()
    found = Buckets(_DEFINITION, plan, 0, run).take("0/0", store, bodies)
    return [packets.unpack(report) for key, report in found.rows if key != "clock"]


def _item(stream: str, inside: str, at: int) -> StreamUpdate:
    return StreamUpdate(stream, "insert", f"<i>{inside}</i>", at * 1e-6, f"m{at}")


def test_a_fresh_process_continues_from_a_stored_state(tmp_path: Path) -> None:
    """Its `marshal` is missing, as if it had another form: the state is read by its definition."""
    store = _Store()
    _fed(store, [_item("a", "<k>1</k>", 1), _item("a", "<k>2</k>", 2)], "first")
    (tmp_path / "state").write_bytes(packet_format.write(dict(store)))
    done = subprocess.run(
        [sys.executable, "-c", _CONTINUE, str(tmp_path / "state")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, "[['2', 'x']]"), done.stderr


_CONTINUE = """
import sys
from axlog.runtime import packet_format, packets
packets._IS_SAME = False
from tests.runtime.test_packets import _fed, _item, _Store
store = _Store(packet_format.read(open(sys.argv[1], "rb").read()))
(report,) = _fed(store, [_item("b", "<k>2</k><v>x</v>", 3)], "second")
print([change[3] for one in report["told"] for change in one["changes"]])
"""
