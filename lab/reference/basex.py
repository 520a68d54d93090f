"""BaseX as another judge of statements, if it is installed: one process that answers many queries.

BaseX is a Java program (Debian's package `basex`). It runs in console mode: a query is a line, its
answer is lines up to a mark. Nothing here is needed to build or test axlog: without BaseX or Java
`is_installed` is False, and laws that use it say so. Cases avoid known faults of BaseX 9.7.2:
`string()` of a copy is the value before its update if the updates read it too, and an attribute
renamed to a name with a namespace and no prefix loses the namespace.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

JAR = Path("/usr/share/java/basex.jar")
MISSING = "BaseX is not installed (apt-get install basex, and Java): statements are not compared"
_NEWLINE = "\ue00a"
_END = "\ue00bend"
_RUN = (
    "function($d, $q) { try { let $r := xquery:eval($q, map { '': parse-xml($d) })"
    " return 'R' || count($r/descendant::text()) || '|' || translate(serialize($r,"
    " map { 'method': 'xml', 'omit-xml-declaration': true(), 'indent': false() }), '&#10;',"
    f" '{_NEWLINE}') }} catch * {{ 'E' || local-name-from-QName($err:code) || '|' ||"
    f" translate($err:description, '&#10;', ' ') }} }}"
)


@cache
def is_installed() -> bool:
    """Whether BaseX can be run on this machine."""
    return JAR.exists() and shutil.which("java") is not None


def answers(queries: Sequence[tuple[str, str]]) -> list[str]:
    """The results of queries, each on a document, which is its context item.

    A result is `Rn|xml`, the number of texts and the XML, or `Ecode|message`.
    """
    calls = ", ".join(f"$run({_literal(xml)}, {_literal(text)})" for xml, text in queries)
    found = _process().ask(f"let $run := {_RUN} return ({calls})")
    assert len(found) == len(queries), f"BaseX: {found}"
    return [each.replace(_NEWLINE, "\n") for each in found]


def _literal(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace('"', '""').replace("\n", "&#10;")
    return f'"{escaped}"'


class _Process:
    def __init__(self) -> None:
        home = tempfile.mkdtemp(prefix="basex-")
        java = shutil.which("java") or "java"
        command = [java, "-Xmx400m", "-XX:+UseSerialGC", f"-Duser.home={home}",
                   "-Dorg.basex.chop=false", "-Dfile.encoding=UTF-8", "-cp", str(JAR),
                   "org.basex.BaseX"]  # fmt: skip
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            encoding="utf-8", cwd=home,
        )  # fmt: skip
        atexit.register(self._close, home)
        self.ask("'ready'")

    def ask(self, query: str) -> list[str]:
        """The items of a query, one for each line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"xquery ({query}), '{_END}'\n")
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            text = line.removeprefix("> ").rstrip("\n")
            if text == _END:
                return [each for each in lines if each[:1] in ("R", "E")]
            lines.append(text)
            assert not text.startswith("Stopped at"), f"BaseX: {text} {next(self._process.stdout)}"
        raise RuntimeError(f"BaseX ended: {lines}")

    def _close(self, home: str) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(home, ignore_errors=True)


@cache
def _process() -> _Process:
    return _Process()
