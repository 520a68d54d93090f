"""The README does not lie: its session is the example, run; its shell lines are run too."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def blocks(repository: Path) -> list[tuple[str, str]]:
    text = (repository / "README.md").read_text(encoding="utf-8")
    return [(found[1], found[2]) for found in BLOCK.finditer(text)]


def only(blocks: list[tuple[str, str]], language: str) -> str:
    (found,) = [text for name, text in blocks if name == language]
    return found


def test_session_is_the_example_and_prints_what_is_shown(
    blocks: list[tuple[str, str]], repository: Path
) -> None:
    example = repository / "examples" / "readme.py"
    source = example.read_text(encoding="utf-8")
    assert source.split('"""\n\n', 1)[1] == only(blocks, "python")
    done = subprocess.run(
        [sys.executable, "-W", "error", example], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout == only(blocks, "text")


def shell_session(text: str) -> list[tuple[str, str]]:
    """Commands with their output; a command goes on in lines that start with `> `."""
    session: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            session.append((line[2:], ""))
        elif line.startswith("> "):
            session[-1] = (f"{session[-1][0]}\n{line[2:]}", "")
        else:
            session[-1] = (session[-1][0], f"{session[-1][1]}{line}\n")
    return session


def test_shell_lines_print_what_is_shown(blocks: list[tuple[str, str]]) -> None:
    session = shell_session(only(blocks, "console"))
    assert len(session) == 2
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command, output in session:
        done = subprocess.run(
            ["bash", "-c", command],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout, done.stderr, done.returncode) == (output, "", 0)


def test_commands_and_verbs_exist(repository: Path) -> None:
    text = (repository / "README.md").read_text(encoding="utf-8")
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^    make (\w+)", text, re.MULTILINE)
    assert set(targets) == {"demo", "test"}
    assert all(f"\n{target}:" in makefile for target in targets)
    helped = subprocess.run(
        [Path(sys.executable).parent / "axlog", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    for verb in ("query", "maintain", "explain", "generate", "fuzz"):
        assert f"`{verb}`" in text or f"`axlog {verb}`" in text
        assert verb in helped.stdout
