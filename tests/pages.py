"""Pages of the docs, played from top to bottom as a reader would: what they show is what happens.

A page is played in a directory of its own that has a copy of `examples/`. Its blocks, in order:

- `pycon`, and indented lines that begin with `>>>`: one session for the whole page.
- `python`: a program; it prints what the `text` block right after it shows, or nothing.
- `console`: commands after `$ `, continued after `> `, and what they print; `...` is anything. They
  end well, unless the next command is `echo $?`. One that ends in ` &` runs on beside the others
  and is interrupted at the end of the page. `export NAME=VALUE` is for the commands after it.
  `make X` is asked what it would do. `pip install` is asked whether such an extra exists; in a
  clean environment (`test_docs.py`) it installs from a wheelhouse, and every later command runs
  with what it installed.
- `yaml`: a pipeline file that has no problems.
- any block with a `title`: a file of that name. Other languages are only shown.

What cannot be run says so, and why, in a comment before it: `<!-- not run: needs a cluster -->`.
Ports of the page are exchanged for free ones, so that two pages can be played at a time.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from doctest import ELLIPSIS, DocTestParser, DocTestRunner, OutputChecker
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer
from packaging.requirements import Requirement
from typer.testing import CliRunner

from axlog.cli.application import application
from axlog.pipeline.loader import check_text
from tests.wheelhouse import Clean

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md")))
PORTS = ("8040", "8801")
"""The ports that pages and examples name."""
LONGEST = 60.0
"""Seconds that a command may take."""

FENCE = re.compile(
    r"^(?:<!-- not run: (?P<mark>[^\n]+?) -->\n+)?"
    r"^```(?P<language>\w*)(?P<info>[^\n]*)\n(?P<fenced>.*?)^```$"
    r"|(?:^|(?<=\n))(?P<indented>(?:    [^\n]*\n|\n)+)",
    re.MULTILINE | re.DOTALL,
)
SESSION = """
import doctest, json, sys
names, out = {"__name__": "__main__"}, sys.stdout
for line in sys.stdin:
    test = doctest.DocTestParser().get_doctest(json.loads(line), {}, "page", "page", 0)
    test.globs = names
    said = []
    doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(
        test, out=said.append, clear_globs=False
    )
    print(json.dumps("".join(said)), file=out, flush=True)
"""
"""A session of Python whose parts come as JSON; it answers with what differs."""
SHELL = re.compile(r"[|<>;`]|&&|\$\(")
COMMANDS = re.compile(
    r"^    (?:\$ |(?:axlog|make|pip|python|spark-submit|import|from) )", re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    """Something on a page that is not prose."""

    language: str
    text: str
    line: int
    title: str | None = None
    mark: str | None = None


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["indented"] is None:
            title = re.search(r'title="([^"]+)"', match["info"])
            name = title[1] if title else None
            found.append(Block(match["language"], match["fenced"], line, name, match["mark"]))
        elif ">>> " in match["indented"]:
            found.append(Block("pycon", match["indented"], line))
        elif COMMANDS.search(match["indented"]):
            found.append(Block("", match["indented"], line))
    return found


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a session with what they print."""
    for one in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *rest = one.splitlines(keepends=True)
        while rest and rest[0].startswith("> "):
            command += rest.pop(0)[2:]
        yield command.strip(), "".join(rest)


@dataclass
class Play:
    """One page being played."""

    page: Path
    room: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    ports: dict[str, str] = field(default_factory=dict)
    beside: list[subprocess.Popen[str]] = field(default_factory=list)
    exported: dict[str, str] = field(default_factory=dict)
    code: int = 0
    clean: Clean | None = None
    there: subprocess.Popen[str] | None = None  # the session in the clean environment

    def whole(self) -> None:
        """Play every block; then end what runs beside."""
        self._furnish()
        waiting = blocks(self.page)
        try:
            for number, block in enumerate(waiting):
                after = waiting[number + 1] if number + 1 < len(waiting) else None
                self._where = f"{self.page.name}, line {block.line}"
                self._play(block, after)
        finally:
            self._end()

    def _furnish(self) -> None:
        self.ports = {port: _free_port() for port in PORTS}
        ignored = shutil.ignore_patterns("out", "__pycache__")
        copied = shutil.copytree(REPOSITORY / "examples", self.room / "examples", ignore=ignored)
        for path in copied.rglob("*.yaml"):
            path.write_text(self._here(path.read_text(encoding="utf-8")), encoding="utf-8")

    def _here(self, text: str) -> str:
        for port, free in self.ports.items():
            text = re.sub(rf"\b{port}\b", free, text)
        return text

    def _play(self, block: Block, after: Block | None) -> None:
        text = self._here(block.text)
        if block.title is not None:
            path = self.room / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        if block.mark is not None or (block.title is not None and block.language != "yaml"):
            return
        match block.language:
            case "":
                pytest.fail(f"{self._where}: a block without a language; commands are `console`")
            case "pycon":
                self._session(text)
            case "python":
                shown = after.text if after is not None and after.language == "text" else ""
                self._program(text, shown)
            case "console":
                for command, shown in commands(text):
                    self._command(command, shown)
            case "yaml" if self.clean is None:
                problems = check_text(text, self.room).errors
                assert problems == [], f"{self._where}: {problems}"

    # Python

    def _session(self, text: str) -> None:
        if self.clean is not None:
            self._session_there(text)
            return
        test = DocTestParser().get_doctest(text, {}, self.page.name, self._where, 0)
        test.globs = self.names  # the very names, not a copy: functions see what comes later
        assert test.examples, f"{self._where}: a session without `>>>`"
        said: list[str] = []
        runner = DocTestRunner(verbose=False, optionflags=ELLIPSIS)
        failed, _ = runner.run(test, out=said.append, clear_globs=False)
        assert failed == 0, f"{self._where}\n{''.join(said)}"

    def _session_there(self, text: str) -> None:
        """Play a part of the page's session with the Python of the clean environment."""
        assert self.clean is not None
        if self.there is None:
            self.there = subprocess.Popen(
                [self.clean.environment / "bin" / "python", "-c", SESSION],
                cwd=self.room,
                env=self._environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self.there.stdin is not None
        assert self.there.stdout is not None
        self.there.stdin.write(json.dumps(text) + "\n")
        self.there.stdin.flush()
        said = json.loads(self.there.stdout.readline())
        assert said == "", f"{self._where}\n{said}"

    def _program(self, text: str, shown: str) -> None:
        if self.clean is not None:
            return self._compare(text, self.clean.run("python", "-W", "error", "-c", text), shown)
        said = StringIO()
        with redirect_stdout(said):
            exec(compile(text, self._where, "exec"), {"__name__": "__main__"})
        return self._compare(text, said.getvalue(), shown)

    # commands

    def _command(self, command: str, shown: str) -> None:
        if command == "echo $?":
            said, self.code = f"{self.code}\n", 0
            return self._compare(command, said, shown)
        assert self.code == 0, (
            f"{self._where}: what stands before {command!r} ends with {self.code}"
        )
        words = shlex.split(command.replace("\\\n", " "), comments=True)
        if command.endswith(" &"):
            return self._start_beside(command.removesuffix(" &"), shown)
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self.exported[name] = value
            return None
        if words[0] == "pip":
            know_packages(words[2:])
            if self.clean is not None:
                self.clean.install(*words[2:])
            return None
        if words[0] == "make":
            words = ["make", "-n", f"PYTHON={sys.executable}", "-C", str(REPOSITORY), *words[1:]]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            return None
        is_here = self.clean is None and _is_plain(command)
        said = self._axlog(words) if is_here else self._shell(command)
        return self._compare(command, said, shown)

    def _axlog(self, words: list[str]) -> str:
        result = CliRunner().invoke(application(), words[1:])
        self.code = result.exit_code
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.output

    def _shell(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self.room,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=LONGEST,
        )
        self.code = done.returncode
        return done.stdout

    def _environment(self) -> dict[str, str]:
        known = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
        if self.clean is not None:
            known = self.clean.variables()
        return known | self.exported

    def _start_beside(self, command: str, shown: str) -> None:
        """Start what runs on, and wait until it says something."""
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.room,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=_can_be_interrupted,
        )
        self.beside.append(process)
        assert process.stdout is not None
        said = "".join(process.stdout.readline() for _ in shown.splitlines() or [""])
        if shown:
            self._compare(command, said, shown)

    def _end(self) -> None:
        if self.there is not None:
            self.there.communicate(timeout=LONGEST)
        for process in self.beside:
            process.send_signal(signal.SIGINT)
        for process in self.beside:
            try:
                code = process.wait(LONGEST)
                assert code == 0, f"{self.page.name}: {process.args!r} ends with {code}"
            finally:
                process.kill()
                process.wait(LONGEST)
                if process.stdout is not None:
                    process.stdout.close()

    def _compare(self, what: str, said: str, shown: str) -> None:
        if not OutputChecker().check_output(shown.rstrip(), said.rstrip(), ELLIPSIS):
            pytest.fail(f"{self._where}: {what}\nprints\n{said}\nnot what is shown\n{shown}")


def _can_be_interrupted() -> None:
    """As in a terminal: what runs in the background of a shell may have been told to ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _is_plain(command: str) -> bool:
    """Whether the command line can be asked in this process: one verb, nothing of a shell."""
    bare = re.sub(r"'[^']*'", "''", command)
    bare = re.sub(r'"[^"$`]*"', '""', bare)
    return command.startswith("axlog ") and not SHELL.search(bare)


def _free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def know_packages(words: list[str]) -> None:
    """What a page installs exists: axlog with some of its extras, or the package of the page."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for word in words:
        if word in ("--editable", "."):
            continue  # the package of the page
        wanted = Requirement(word)
        assert wanted.name == project["name"]
        assert wanted.extras <= set(project["optional-dependencies"]), word


def forget_modules(room: Path) -> None:
    """Let go of modules that a page wrote and imported."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(room)):
            del sys.modules[name]


@cache
def verbs() -> dict[str, Any]:
    command: Any = typer.main.get_command(application())
    return dict(command.commands)


def know_command(words: list[str]) -> None:
    """The verb is there, and so are its options."""
    _, verb, *rest = words
    if verb.startswith("-"):
        return
    command = verbs().get(verb)
    assert command is not None, f"axlog {verb}"
    command = getattr(command, "commands", {}).get(rest[0], command) if rest else command
    known = {text for each in command.params for text in (*each.opts, *each.secondary_opts)}
    options = {word.partition("=")[0] for word in rest if word.startswith("--")}
    assert options <= known | {"--help"}, f"axlog {verb}: {options - known}"
