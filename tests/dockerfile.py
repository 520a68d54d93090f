"""A linter for Dockerfiles: the rules of hadolint that matter here, under their numbers.

No container engine runs where the tests do, so the files are checked as text.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True)
class Step:
    """An instruction with its line."""

    name: str
    rest: str
    line: int


def steps(text: str) -> list[Step]:
    """The instructions of a file, with continued lines joined."""
    found, waiting, first = [], "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        if not waiting and (not line.strip() or line.lstrip().startswith("#")):
            continue
        first = first if waiting else number
        waiting += line.removesuffix("\\") + " "
        if not line.endswith("\\"):
            name, _, rest = waiting.strip().partition(" ")
            found.append(Step(name, rest.strip(), first))
            waiting = ""
    return found


def faults(text: str) -> list[str]:
    """What hadolint would report: rule, line and reason."""
    return [f"{rule} line {step.line}: {why}" for step, rule, why in _faults(steps(text))]


def _faults(found: list[Step]) -> Iterator[tuple[Step, str, str]]:
    names = ("FROM", "WORKDIR", "COPY", "RUN", "ENV", "ARG", "USER", "EXPOSE", "HEALTHCHECK",
             "STOPSIGNAL", "ENTRYPOINT", "CMD", "LABEL", "VOLUME", "SHELL", "ADD")  # fmt: skip
    stages: list[str] = []
    user, directory = "root", ""
    for step in found:
        if step.name not in names:
            yield step, "DL1000", f"{step.name} is no instruction in capital letters"
        match step.name:
            case "FROM":
                yield from _from(step, stages)
                user, directory = "root", ""
            case "ADD":
                yield step, "DL3020", "use COPY for files"
            case "WORKDIR":
                directory = step.rest
                if not PurePosixPath(step.rest).is_absolute():
                    yield step, "DL3000", "the directory is relative"
            case "USER":
                user = step.rest
            case "COPY":
                yield from _copied(step, stages, directory)
            case "RUN":
                yield from _run(step)
            case "CMD" | "ENTRYPOINT" | "ENV":
                yield from _settings(step)
    if user in ("root", "0"):
        yield found[-1], "DL3002", "the last user is root"
    for name in ("CMD", "ENTRYPOINT", "HEALTHCHECK"):
        if sum(step.name == name for step in found) > 1:
            yield found[-1], "DL4003", f"several {name}"


def _from(step: Step, stages: list[str]) -> Iterator[tuple[Step, str, str]]:
    image, *named = re.split(r"\s+AS\s+", step.rest)
    if ":" not in image and "@" not in image and image not in stages:
        yield step, "DL3006", "the image has no tag"
    if image.endswith(":latest"):
        yield step, "DL3007", "the tag latest is no version"
    stages += named


def _settings(step: Step) -> Iterator[tuple[Step, str, str]]:
    if step.name == "ENV":
        if re.search(r"(?i)password|secret|token", step.rest):
            yield step, "DL-secret", "a secret is in the image"
        return
    try:
        json.loads(step.rest)
    except ValueError:
        yield step, "DL3025", "arguments in JSON notation are needed"


def _copied(step: Step, stages: list[str], directory: str) -> Iterator[tuple[Step, str, str]]:
    words = shlex.split(step.rest)
    origin = next((w.removeprefix("--from=") for w in words if w.startswith("--from=")), None)
    if origin is not None and origin not in stages:
        yield step, "DL3022", f"there is no stage {origin}"
    paths = [word for word in words if not word.startswith("--")]
    if len(paths) > 2 and not paths[-1].endswith("/"):
        yield step, "DL3021", "with several sources the target ends in /"
    if not PurePosixPath(paths[-1]).is_absolute() and not directory:
        yield step, "DL3045", "a relative target without WORKDIR"


def _run(step: Step) -> Iterator[tuple[Step, str, str]]:
    rest = step.rest
    if re.search(r"\bsudo\b", rest):
        yield step, "DL3004", "sudo"
    if re.search(r"\bcd\s", rest):
        yield step, "DL3003", "use WORKDIR"
    for each in re.split(r"&&|;", rest):
        words = each.split()
        if "install" in words and words[0].endswith("pip"):
            if "--no-cache-dir" not in words:
                yield step, "DL3042", "pip without --no-cache-dir"
            is_pinned = "--require-hashes" in words or words[-1] == "."
            if not is_pinned and not any("==" in word for word in words):
                yield step, "DL3013", "versions are not pinned"
        if words[:2] == ["apt-get", "install"]:
            if "-y" not in words:
                yield step, "DL3014", "apt-get install without -y"
            if "--no-install-recommends" not in words:
                yield step, "DL3015", "without --no-install-recommends"
    if re.search(r"(?<!\|)\|(?!\|)", rest) and "pipefail" not in rest:
        yield step, "DL4006", "a pipe without pipefail"
