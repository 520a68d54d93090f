"""Load and check a pipeline file: report all errors at once, each with its position.

`check` returns the problems and, if none is an error, the pipeline; `load` raises instead. The
model (`model.py`) checks the shape, the kinds check the options of connectors, and `checks.py`
checks names and embedded texts (documents, queries, facts).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from axlog.errors import AxlogError, PipelineError, Place, did_you_mean
from axlog.pipeline import yaml_reader
from axlog.pipeline.checks import Problem, checked_parts
from axlog.pipeline.deprecated import rename_old_keys
from axlog.pipeline.model import (
    DOCUMENT_KEYS,
    SHORT,
    DocumentModel,
    PipelineModel,
    StreamModel,
    ViewModel,
    is_short,
    long_form,
)
from axlog.pipeline.settings import DocumentSettings, Settings
from axlog.pipeline.yaml_reader import Located, locate
from axlog.reporting import counted, report

_events = logging.getLogger("axlog.pipeline")


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking a file."""

    model: PipelineModel | None  # None if there are errors
    problems: list[Problem]

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.level == "error"]


def check(path: str | Path) -> Checked:
    """Check a pipeline file, without starting anything."""
    path = Path(path)
    return check_text(read_text(path), path.parent, str(path))


def check_text(text: str, directory: Path | None = None, source: str | None = None) -> Checked:
    """Check the text of a pipeline file; its paths are relative to a directory."""
    directory = Path() if directory is None else directory
    try:
        found = locate(text, source)
    except PipelineError as error:
        return Checked(None, [Problem(error)])
    problems = [Problem(error) for error in found.problems]
    problems += [Problem(error, "warning") for error in rename_old_keys(found)]
    model = _validated(found, problems)
    problems += checked_parts(_Long(found), directory)
    problems.sort(key=lambda problem: problem.order)
    if any(problem.level == "error" for problem in problems) or model is None:
        return Checked(None, problems)
    return Checked(model.located(directory), problems)


def load(path: str | Path) -> PipelineModel:
    """Return the pipeline of a file, or raise one error that lists all errors."""
    checked = check(path)
    if checked.model is None:
        raise failure(checked.errors, str(path))
    for problem in checked.problems:
        if problem.error.code == "AX850":
            report(_events, logging.WARNING, problem.error.message, file=path,
                   line=problem.order[0], advice=problem.error.advice)  # fmt: skip
    return checked.model


def failure(errors: Iterable[Problem], source: str) -> AxlogError:
    """Return one error for all errors of a file."""
    errors = list(errors)
    if len(errors) == 1:
        return errors[0].error
    listed = "\n".join(problem.error.describe() for problem in errors)
    return PipelineError("AX852", f"{source} has {counted(len(errors), 'error')}\n{listed}")


def read_text(path: Path) -> str:
    """Return the text of a file; of a file that is too large, only the beginning."""
    try:
        with path.open("rb") as file:
            content = file.read(4 * yaml_reader.LARGEST + 1)
        return content.decode("utf-8-sig")
    except OSError as error:
        advice = "give the path of a pipeline file; `axlog init` writes one from sample messages"
        raise PipelineError("AX851", f"{path}: {error.strerror or error}", advice=advice) from None
    except UnicodeDecodeError as error:
        raise PipelineError(
            "AX851", f"{path} is not UTF-8: invalid byte at offset {error.start + 1}"
        ) from None


class _Long:
    """Return a located file in the long form; paths below its only document lead to the top."""

    def __init__(self, found: Located) -> None:
        self.content: Any = long_form(found.content)
        self._found = found
        self.is_short = is_short(found.content)

    def own(self, path: yaml_reader.Path) -> yaml_reader.Path:
        if self.is_short and path[:2] == ("documents", SHORT):
            return path[2:]
        return path

    def place(
        self, path: yaml_reader.Path, *, at_key: bool = False, shows_line: bool = True
    ) -> Place:
        return self._found.place(self.own(path), at_key=at_key, shows_line=shows_line)

    def place_inside(self, path: yaml_reader.Path, inner: Place) -> Place:
        return self._found.place_inside(self.own(path), inner)


def _validated(found: Located, problems: list[Problem]) -> PipelineModel | None:
    """Return the model of a file's content; errors of its shape are added to the problems."""
    if not isinstance(found.content, dict):
        place = found.place(())
        error = PipelineError(
            "AX852", "the file is not a mapping", place=place, expected="streams: ..., views: ..."
        )
        problems.append(Problem(error))
        return None
    try:
        return PipelineModel.model_validate(found.content)
    except ValidationError as error:
        long = _Long(found)
        problems += [Problem(_refused(each, long)) for each in error.errors(include_input=False)]
        return None


def _refused(found: Any, long: _Long) -> PipelineError:
    path = _existing(found["loc"], long.content)
    kind = found["type"]
    last = found["loc"][-1] if found["loc"] else ""
    place = long.place(path, at_key=kind in ("extra_forbidden", "missing"))
    if kind == "missing":
        where = "/".join(map(str, long.own(path))) or "the file"
        example = _EXAMPLES.get(str(last))
        return PipelineError("AX852", f"{where} has no {last!r}", place=place, expected=example)
    if kind == "extra_forbidden":
        known = _known_keys(path[:-1], is_short=long.is_short)
        return PipelineError(
            "AX852",
            f"the key {last!r} is unknown here",
            place=place,
            expected=", ".join(known),
            advice=did_you_mean(str(last), known),
        )
    example = _EXAMPLES.get(str(last))
    return PipelineError("AX852", f"{last}{_fault(found)}", place=place, expected=example)


_EXAMPLES = {
    "streams": "streams: {orders: {source: ...}}",
    "views": "views: {NAME: QUERY}",
    "source": "source: {kind: directory, path: in/orders}",
    "sinks": "sinks: [{kind: console}]",
    "query": "query: match /document/orders/order/id/$id return $id",
}


def _fault(found: Any) -> str:
    """What is wrong with a value, in the words of the file and not of Python."""
    match found["type"]:
        case "dict_type" | "model_type" | "model_attributes_type":
            return " must be a mapping"
        case "list_type" | "tuple_type":
            return " must be a list"
        case "string_type":
            return " must be a text"
        case "too_short":
            return " is empty"
    said = str(found["msg"])
    return said.replace("Input should be", " must be") if said.startswith("Input") else f": {said}"


_MODELS: tuple[tuple[tuple[str, ...], type[BaseModel]], ...] = (
    ((), PipelineModel),
    (("settings",), Settings),
    (("documents", "*"), DocumentModel),
    (("documents", "*", "settings"), DocumentSettings),
    (("documents", "*", "streams", "*"), StreamModel),
    (("documents", "*", "views", "*"), ViewModel),
)


def _known_keys(path: yaml_reader.Path, *, is_short: bool) -> list[str]:
    """Return the keys that a part of the file can have."""
    for form, model in _MODELS:
        fits = (want in ("*", step) for want, step in zip(form, path, strict=False))
        if len(form) == len(path) and all(fits):
            keys = {field.alias or name for name, field in model.model_fields.items()}
            return sorted(keys | (set(DOCUMENT_KEYS) if is_short and not path else set()))
    return []


def _existing(loc: tuple[Any, ...], content: Any) -> yaml_reader.Path:
    """Map a position in the model to one in the content: names of union members are omitted."""
    path: list[str | int] = []
    here = content
    for step in loc:
        is_key = isinstance(here, dict) and step in here
        if is_key or (isinstance(here, list) and step in range(len(here))):
            here = here[step]
            path.append(step)
    return tuple(path)
