"""A pipeline file, read and checked whole: all that is wrong with it at once, each with its place.

`check` gives the problems and, if none of them is an error, the pipeline; `load` raises instead.
The shape is checked by the model (`model.py`), the options of connectors by their kinds, and what
the file says in other languages (documents, queries, facts) and by name by `checks.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from axlog.errors import AxlogError, PipelineError, Place
from axlog.pipeline import yaml_reader
from axlog.pipeline.checks import Problem, checked_parts
from axlog.pipeline.model import (
    SHORT,
    WIDGET_KEYS,
    DocumentsModel,
    PipelineModel,
    Settings,
    StreamModel,
    ViewModel,
    WidgetModel,
    WidgetSettings,
    is_short,
    long_form,
)
from axlog.pipeline.yaml_reader import Located, locate


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of checking a file."""

    model: PipelineModel | None  # None where there are errors
    problems: list[Problem]

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.level == "error"]


def check(path: str | Path) -> Checked:
    """Check a pipeline file; it is read, nothing of it is started."""
    path = Path(path)
    return check_text(read_text(path), path.parent, str(path))


def check_text(text: str, directory: Path | None = None, source: str | None = None) -> Checked:
    """Check the text of a pipeline file whose paths start in a directory."""
    directory = Path() if directory is None else directory
    try:
        found = locate(text, source)
    except PipelineError as error:
        return Checked(None, [Problem(error)])
    problems = [Problem(error) for error in found.problems]
    model = _validated(found, problems)
    problems += checked_parts(_Long(found), directory)
    problems.sort(key=lambda problem: problem.order)
    if any(problem.level == "error" for problem in problems) or model is None:
        return Checked(None, problems)
    return Checked(model.located(directory), problems)


def load(path: str | Path) -> PipelineModel:
    """The pipeline of a file, or one error that tells all that is wrong with it."""
    checked = check(path)
    if checked.model is None:
        raise failure(checked.errors, str(path))
    return checked.model


def failure(errors: Iterable[Problem], source: str) -> AxlogError:
    """One error for all that is wrong with a file."""
    errors = list(errors)
    if len(errors) == 1:
        return errors[0].error
    listed = "\n".join(problem.error.describe() for problem in errors)
    return PipelineError("AX852", f"{source} has {len(errors)} errors\n{listed}")


def read_text(path: Path) -> str:
    """The text of a file that a person wrote; of one that is too large, enough to say so."""
    try:
        with path.open("rb") as file:
            content = file.read(4 * yaml_reader.LARGEST + 1)
        return content.decode("utf-8-sig")
    except OSError as error:
        raise PipelineError(
            "AX851", f"{path}: {error.strerror or error}", advice="give the path of a file"
        ) from None
    except UnicodeDecodeError as error:
        raise PipelineError(
            "AX851", f"{path} is not in UTF-8: byte {error.start + 1} is wrong"
        ) from None


class _Long:
    """A located file in the long form: paths below its only widget lead to the top."""

    def __init__(self, found: Located) -> None:
        self.content: Any = long_form(found.content)
        self._found = found
        self.is_short = is_short(found.content)

    def _own(self, path: yaml_reader.Path) -> yaml_reader.Path:
        if self.is_short and path[:2] == ("widgets", SHORT):
            return path[2:]
        return path

    def place(
        self, path: yaml_reader.Path, *, at_key: bool = False, shows_line: bool = True
    ) -> Place:
        return self._found.place(self._own(path), at_key=at_key, shows_line=shows_line)

    def place_inside(self, path: yaml_reader.Path, inner: Place) -> Place:
        return self._found.place_inside(self._own(path), inner)


def _validated(found: Located, problems: list[Problem]) -> PipelineModel | None:
    """The model of a file's content; what is wrong with its shape joins the problems."""
    if not isinstance(found.content, dict):
        place = found.place(())
        error = PipelineError(
            "AX852", "the file is not a mapping", place=place, expected="engine: ..., document: ..."
        )
        problems.append(Problem(error))
        return None
    try:
        return PipelineModel.model_validate(found.content)
    except ValidationError as error:
        long = _Long(found)
        problems += [Problem(_refused(each, long)) for each in error.errors(include_input=False)]
        return None


def _refused(told: Any, long: _Long) -> PipelineError:
    path = _existing(told["loc"], long.content)
    kind = told["type"]
    last = told["loc"][-1] if told["loc"] else ""
    place = long.place(path, at_key=kind in ("extra_forbidden", "missing"))
    if kind == "missing":
        where = "/".join(map(str, path)) or "the file"
        return PipelineError("AX852", f"{where} has no {last!r}", place=place)
    if kind == "extra_forbidden":
        known = _known_keys(path[:-1], is_short=long.is_short)
        close = get_close_matches(str(last), known, n=1)
        return PipelineError(
            "AX852",
            f"the key {last!r} is not known here",
            place=place,
            expected=", ".join(known),
            advice=f"did you mean {close[0]!r}?" if close else None,
        )
    return PipelineError("AX852", f"{last}: {told['msg']}", place=place)


_MODELS: tuple[tuple[tuple[str, ...], type[BaseModel]], ...] = (
    ((), PipelineModel),
    (("settings",), Settings),
    (("widgets", "*"), WidgetModel),
    (("widgets", "*", "settings"), WidgetSettings),
    (("widgets", "*", "documents"), DocumentsModel),
    (("widgets", "*", "streams", "*"), StreamModel),
    (("widgets", "*", "views", "*"), ViewModel),
)


def _known_keys(path: yaml_reader.Path, *, is_short: bool) -> list[str]:
    """The keys that can stand in a part of the file."""
    for form, model in _MODELS:
        fits = (want in ("*", step) for want, step in zip(form, path, strict=False))
        if len(form) == len(path) and all(fits):
            keys = {field.alias or name for name, field in model.model_fields.items()}
            return sorted(keys | (set(WIDGET_KEYS) if is_short and not path else set()))
    return []


def _existing(loc: tuple[Any, ...], content: Any) -> yaml_reader.Path:
    """A place of the model as one of the content: names of union members are left out."""
    path: list[str | int] = []
    here = content
    for step in loc:
        is_key = isinstance(here, dict) and step in here
        if is_key or (isinstance(here, list) and step in range(len(here))):
            here = here[step]
            path.append(step)
    return tuple(path)
