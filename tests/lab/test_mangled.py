"""The law of parsers in short, its findings, and a proof that no code is read from outside."""

import ast
import base64
import json
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

import axlog
from axlog.errors import StoreError
from lab.laws.fuzzing import run_range
from lab.laws.parsers_law import PARSERS, Mangled, check_mangled, samples_of

FOUND = Path(__file__).parents[1] / "fixtures" / "mangled.jsonl"
SOURCE = Path(axlog.__file__).parent


def test_mangled_input_is_read_or_refused():
    failures = [str(failure) for failure in run_range(range(2000), "parsers") if failure]
    assert not failures


@pytest.mark.parametrize("parser", PARSERS)
def test_samples_are_read(parser):
    """A sample that is refused would be mangled to no purpose."""
    reads = 0
    for sample in samples_of(parser):
        try:
            PARSERS[parser](sample)
            reads += 1
        except axlog.AxlogError:
            continue
    assert reads >= 1


def found() -> list[dict[str, str]]:
    return [json.loads(line) for line in FOUND.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", found(), ids=lambda case: case["what"])
def test_what_was_found_before(case):
    check_mangled(Mangled(case["parser"], base64.b64decode(case["data"])))


def test_a_flipped_bit_anywhere_in_a_log_or_snapshot():
    for parser in ("log", "snapshot"):
        (sample,) = samples_of(parser)
        for at in range(0, len(sample), 3):
            broken = sample[:at] + bytes([sample[at] ^ 1 << at % 8]) + sample[at + 1 :]
            check_mangled(Mangled(parser, broken))


def test_stores_of_version_1_with_a_flipped_bit(tmp_path):
    """The golden files, damaged: refused with a place, or cut; never another record."""
    golden = Path(__file__).parents[1] / "golden" / "store-1"
    files = {path.name: path.read_bytes() for path in golden.iterdir()}
    log = next(name for name in files if name.startswith("log-"))
    with axlog.open(_copy(files, tmp_path / "good")) as doc:
        good = doc.xml(), {name: view.rows() for name, view in doc.views.items()}
    for number, at in enumerate(range(5, len(files[log]), 37)):
        broken = bytearray(files[log])
        broken[at] ^= 0x10
        with (
            suppress(StoreError),
            axlog.open(_copy({**files, log: bytes(broken)}, tmp_path / str(number))) as doc,
        ):
            assert len(doc.xml()) <= len(good[0])


def _copy(files: dict[str, bytes], place: Path) -> Path:
    place.mkdir()
    for name, content in files.items():
        (place / name).write_bytes(content)
    return place


# No code from outside -----------------------------------------------------------------------------

LOADERS = {
    ("pickle", "load"), ("pickle", "loads"), ("pickle", "Unpickler"), ("cloudpickle", "loads"),
    ("marshal", "load"), ("marshal", "loads"), ("shelve", "open"), ("dill", "loads"),
    ("yaml", "load"), ("yaml", "unsafe_load"), ("yaml", "full_load"), ("yaml", "load_all"),
    ("numpy", "load"), ("np", "load"), ("joblib", "load"), ("torch", "load"),
}  # fmt: skip
ALLOWED = {
    "views/operators/disk_table.py": "marshal: scratch files that this process made and removes",
    "spark/sources.py": "Spark's own shipping: the driver's objects, to its own workers",
    "runtime/packets.py": "Spark's own shipping: what its workers made, to its own workers",
}
GENERATED = {
    "evaluate/generated_code.py",
}
"""Where code is made from patterns; nothing of a text stands in it unless it is quoted."""


@cache
def modules() -> list[tuple[str, ast.Module]]:
    """The modules in which one of these words stands at all: the others call nothing of it."""
    words = ("pickle", "marshal", "shelve", "yaml", "load(", "eval(", "exec(", "dill")
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}
    return [
        (path.relative_to(SOURCE).as_posix(), ast.parse(text))
        for path, text in texts.items()
        if any(word in text for word in words)
    ]


def called(tree: ast.Module) -> set[tuple[str, str]]:
    """The functions that a module calls, as (module or nothing, name)."""
    found: set[tuple[str, str]] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func
            if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name):
                found.add((name.value.id, name.attr))
            elif isinstance(name, ast.Name):
                found.add(("", name.id))
    return found


def test_no_module_reads_code():
    for name, tree in modules():
        calls = called(tree)
        assert not calls & LOADERS or name in ALLOWED, f"{name}: {calls & LOADERS}"
        assert ("", "eval") not in calls, name
        assert ("", "exec") not in calls or name in GENERATED, name
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in ("pickle", "marshal", "shelve"):
                raise AssertionError(f"{name} imports from {node.module}")


def test_what_is_allowed_is_still_there():
    """An entry that is not needed any more goes."""
    calls = {name: called(tree) for name, tree in modules()}
    assert all(calls[name] & LOADERS for name in ALLOWED)
    assert all(("", "exec") in calls[name] for name in GENERATED)


@pytest.mark.parametrize(
    "name",
    ["x'); import os; os.abort()  #", 'a"\n    import os', "a\\'", "{0}", "%s", "a\rb", "\u2028"],
)
def test_names_and_texts_cannot_become_code(name):
    """Patterns are compiled to Python; what stands in quotes in them stays a text."""
    quoted = name.replace('"', '""')
    doc = axlog.parse(
        "<a><ax:call xmlns:ax='urn:axlog' stream='s'/></a>",
        views={"v": f'match /a/b[c = "{quoted}"]/d/$x return $x'},
    )
    escaped = name.replace("&", "&amp;").replace("<", "&lt;").replace("\r", "&#13;")
    doc.feed("s", f"<b><c>{escaped}</c><d>1</d></b>")
    doc.feed("s", "<b><c>other</c><d>2</d></b>")
    assert [row["x"] for row in doc.view("v").rows()] == ["1"]


def test_files_of_other_names_in_a_store_are_left_alone(tmp_path):
    with axlog.open(tmp_path, "<a/>"):
        pass
    for name in ("snapshot-x.axlog", "log-x.axlog", "snapshot-.axlog", "log-\u0663.axlog.bak"):
        (tmp_path / name).write_bytes(b"nothing of ours")
    with axlog.open(tmp_path) as doc:
        assert doc.xml() == "<a/>"
