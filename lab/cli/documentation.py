"""The reference pages of the docs, written where they belong: `python -m lab.cli.documentation`.

Pages are made from what they describe, so they cannot fall behind: the language from the grammar
and its examples, carried out; error codes from their table; pipeline files from the model; and here
the commands, from the command line itself. A test makes all of them again and compares.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from axlog.cli.application import VERBS, application
from axlog.pipeline.schema import reference
from lab.documentation import api, architecture, error_codes, language, metrics

_HEAD = """# Commands

Made by `make docs` from the command line itself; each verb's `--help` says the same.

Output is JSON lines when piped and tables with colour on a terminal. Exit codes: 0 done, 1 a check
failed, 2 bad usage or input, with the error in words on standard error ([codes](errors.md)).

| verb | |
|---|---|
"""


def commands() -> str:
    """The page of the verbs with their arguments and options."""
    group: Any = get_command(application())
    first = [f"| [`{verb}`](#{verb}) | {_said(group.commands[verb])[0]} |" for verb in VERBS]
    return _HEAD + "\n".join([*first, *_sections(group)]) + "\n"


def _sections(group: Any) -> Iterator[str]:
    for verb in VERBS:
        command = group.commands[verb]
        nested = getattr(command, "commands", {})
        yield from ("", f"## {verb}", "", *_described(f"axlog {verb}", command))
        for name, each in nested.items():
            yield from ("", f"### {verb} {name}", "", *_described(f"axlog {verb} {name}", each))


def _said(command: Any) -> list[str]:
    """What a command says of itself, in paragraphs."""
    text = re.sub(r"[ \t]*\n[ \t]*", "\n", (command.help or "").strip())
    return [" ".join(part.split()) for part in text.split("\n\n")]


def _described(name: str, command: Any) -> Iterator[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    written = " ".join(each.metavar or each.name.upper() for each in arguments)
    yield from ("```text", f"{name} {written}".strip() + " [OPTIONS]", "```")
    for paragraph in _said(command):
        yield from ("", paragraph)
    if command.epilog:
        yield from ("", re.sub(r"^Example: (.+)$", r"Example: `\1`", command.epilog))
    shown = [each for each in command.params if not each.hidden and each.name != "help"]
    if shown:
        yield from ("", "| | | default |", "|---|---|---|", *map(_row, shown))


def _row(parameter: Any) -> str:
    names = "`, `".join((*parameter.opts, *parameter.secondary_opts))
    if parameter.param_type_name == "argument":
        names = parameter.metavar or parameter.name.upper()
    default = parameter.default
    shown = "" if default in (None, False, (), []) or callable(default) else f"`{default}`"
    return f"| `{names}` | {' '.join((parameter.help or '').split())} | {shown} |"


PAGES: dict[str, Callable[[], str]] = {
    "language.md": language.page,
    "errors.md": error_codes.page,
    "commands.md": commands,
    "metrics.md": metrics.page,
    "api.md": api.page,
    "pipeline-reference.md": reference,
    "figures/imports.svg": architecture.picture,
}
"""The pages that are made, and what makes each."""


def main() -> None:
    """Write the pages into a directory, `docs` unless another is named."""
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    for name, make in PAGES.items():
        (directory / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
