"""The README's session is the example that `make demo` runs; `test_docs.py` plays the README."""

from pathlib import Path

from tests.pages import blocks


def test_the_session_is_the_example(repository: Path) -> None:
    _, session = [b for b in blocks(repository / "README.md") if b.language == "python"]
    source = (repository / "examples" / "readme.py").read_text(encoding="utf-8")
    assert source.split('"""\n\n', 1)[1] == session.text
