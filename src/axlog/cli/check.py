"""`axlog check FILE`: report everything wrong with a pipeline file, before anything starts.

A file with the key `principals` is checked as a roles file.

One line per problem: a table on a terminal, JSON lines in a pipe. On a terminal it also prints how
Spark would partition the views (`runtime/plan.py`). The exit code is 2 if a problem is an error.
`--schema` prints the JSON schema for editors, `--reference` prints every key as Markdown, `--kinds`
lists the sources and sinks.
"""

from __future__ import annotations

import json as json_text
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from axlog.cli import options
from axlog.cli.output import Lines, is_json
from axlog.errors import AxlogError, SetupError
from axlog.extras import extra_of, not_installed
from axlog.reporting import counted

if TYPE_CHECKING:  # pydantic comes with the extra `pipeline`
    from axlog.connect.kinds import SinkKind, SourceKind
    from axlog.pipeline.checks import Problem
    from axlog.pipeline.model import PipelineModel

_STYLES = {"error": "red", "warning": "yellow"}


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("check", epilog="Example: axlog check pipeline.yaml")(check)


def check(
    pipeline: Annotated[
        str | None,
        typer.Argument(metavar="PIPELINE", help="The pipeline file, or a roles file."),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of pipeline files instead.")
    ] = False,
    reference: Annotated[
        bool, typer.Option("--reference", help="Print every key of pipeline files instead.")
    ] = False,
    kinds: Annotated[
        bool, typer.Option("--kinds", help="List the kinds of sources and sinks instead.")
    ] = False,
    connect: Annotated[
        bool,
        typer.Option("--connect", help="Also try the addresses of brokers, databases, services."),
    ] = False,
    json: options.Json = None,
) -> None:
    """Check a pipeline file: its form, queries, documents, streams, sources and sinks.

    Also report what this machine lacks for a run (extras, the engine, files) and views that can
    never have a row. These are warnings.
    """
    try:
        from axlog.pipeline import loader
        from axlog.pipeline.engines import choose
        from axlog.pipeline.machine_checks import machine_problems
        from axlog.pipeline.schema import json_schema
        from axlog.pipeline.schema import reference as reference_text
    except ImportError as error:
        raise missing(error) from None
    if schema:
        typer.echo(json_text.dumps(json_schema(), indent=2))
        return
    if reference:
        typer.echo(reference_text(), nl=False)
        return
    if kinds:
        _list_kinds(json)
        return
    if pipeline is None:
        raise typer.BadParameter("give the path of a pipeline file", param_hint="PIPELINE")
    text = loader.read_text(Path(pipeline))
    if _is_roles(text):
        _check_roles(text, pipeline, json)
        return
    checked = loader.check_text(text, Path(pipeline).parent, pipeline)
    lacking = [] if checked.model is None else machine_problems(checked.model, connects=connect)
    if checked.model is not None:
        lacking += _never(checked.model)
    _list_problems([*checked.problems, *lacking], json)
    if checked.model is None:
        if not is_json(json):
            _print_finding(f"{pipeline}: {counted(len(checked.errors), 'error')}", "red")
        raise typer.Exit(2)
    if not is_json(json):
        chosen = choose(checked.model.engine, None, checked.model.embedded_for())
        if chosen.engine == "spark":
            _list_plans(checked.model)
        views = len(list(checked.model.view_names()))
        _print_finding(f"{pipeline}: valid; {counted(views, 'view')}, {chosen}")


def _never(model: PipelineModel) -> list[Problem]:
    """Return a warning for each view that can never have a row, or lacks `never` changes."""
    from axlog.pipeline.checks import Problem
    from axlog.runtime.system_truth import never_warnings
    from axlog.runtime.unreported_never import unreported_never

    try:
        found = [*never_warnings(model), *unreported_never(model)]
        return [Problem(error, "warning") for error in found]
    except AxlogError:  # a run reports what prevents its start
        return []


def _is_roles(text: str) -> bool:
    from axlog.pipeline.yaml_reader import locate
    from axlog.server.roles import is_roles

    try:
        return is_roles(locate(text).content)
    except AxlogError:
        return False


def _check_roles(text: str, source: str, json: bool | None) -> None:
    from axlog.server.roles import check_roles_text

    roles, problems = check_roles_text(text, source)
    _list_problems(problems, json)
    if roles is None:
        if not is_json(json):
            _print_finding(f"{source}: {counted(len(problems), 'error')}", "red")
        raise typer.Exit(2)
    if not is_json(json):
        reading = "needs a token" if roles.public is None else "is public"
        _print_finding(
            f"{source}: valid; {counted(len(roles.principals), 'principal')}, reading {reading}"
        )


def missing(error: ImportError) -> SetupError:
    """Return an error that names the extra to install; re-raise an ImportError with another
    cause.
    """
    if error.name is None or extra_of(error.name) is None:
        raise error
    return not_installed(error.name)


def _list_problems(problems: Iterable[Problem], json: bool | None) -> None:
    if is_json(json):
        lines = Lines()
        for problem in problems:
            lines.thing(problem.plain())
        return
    console = Console(highlight=False)
    for problem in problems:
        console.print(Text(problem.level, style=_STYLES[problem.level]), end=": ")
        console.print(Text(problem.error.describe()), soft_wrap=True)


def _list_plans(model: PipelineModel) -> None:
    """Print how Spark would partition the views of each document and write their sinks, and why."""
    from axlog.runtime.pipeline_definition import plans_of
    from axlog.runtime.sink_parts import delivery_lines

    console = Console(highlight=False)
    for document, plan in plans_of(model):
        for unit in plan.units:
            console.print(Text(f"plan: {document}: {unit}"), soft_wrap=True)
    for line in delivery_lines(model):
        console.print(Text(f"sinks: {line}"), soft_wrap=True)


def _print_finding(text: str, style: str | None = None) -> None:
    Console(highlight=False).print(Text(text, style=style or ""), soft_wrap=True)


def _list_kinds(json: bool | None) -> None:
    from axlog.pipeline import kinds

    listed: list[SourceKind[Any] | SinkKind[Any]] = []
    listed += [kinds.source_kind(name) for name in kinds.source_names()]
    listed += [kinds.sink_kind(name) for name in kinds.sink_names()]
    if is_json(json):
        lines = Lines()
        for kind in listed:
            names = sorted(kind.options.model_fields)
            lines.thing({"role": kind.role, "kind": kind.name, "options": names, "says": kind.says})
        return
    table = Table("role", "kind", "options", "")
    for kind in listed:
        cells = (kind.role, kind.name, ", ".join(kind.options.model_fields), kind.says)
        table.add_row(*(Text(cell) for cell in cells))
    Console(highlight=False).print(table)
