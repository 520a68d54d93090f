"""Build the command line from its verbs; handle errors, closed pipes and interruptions for all."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from axlog.errors import AxlogError, MalformedError, SetupError
from axlog.extras import extra_of, not_installed

VERBS = (
    "query",
    "maintain",
    "truth",
    "relevance",
    "why",
    "check",
    "init",
    "run",
    "rescale",
    "serve",
    "proxy",
    "token",
    "explain",
    "diff",
    "patch",
    "reduce",
    "generate",
    "replay",
    "verify",
    "backup",
    "restore",
    "dead-letters",
    "doctor",
    "demo",
)


class Verbs(TyperGroup):
    """Runs a verb. Errors caused by the input become one message and exit code 2."""

    def get_params(self, ctx: Any) -> Any:
        return _converting_little(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except AxlogError as error:
            raise _failure(error.describe()) from None
        except ImportError as error:
            raise _failure(_lacking(error).describe()) from None
        except UnicodeDecodeError as error:
            what = f"the input is not UTF-8: invalid byte at offset {error.start + 1}"
            raise _failure(MalformedError("AX113", what).describe()) from None
        except BrokenPipeError:
            # The reader closed the pipe: stop quietly. Without this, Python reports the closed pipe
            # again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except OSError as error:
            named = f"{error.filename}: " if error.filename else ""
            failed = SetupError("AX903", f"{named}{error.strerror or error}")
            raise _failure(failed.describe()) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


class Verb(TyperCommand):
    """A verb."""

    def get_params(self, ctx: Any) -> Any:
        return _converting_little(super().get_params(ctx))


class Application(typer.Typer):
    """A command line whose commands are verbs."""

    def command(self, name: str | None = None, **options: Any) -> Any:
        return super().command(name, **{"cls": Verb, **options})


def _converting_little(params: list[Any]) -> list[Any]:
    for param in params:
        param.process_value = partial(_as_given, param)
    return params


def _as_given(param: Any, ctx: Any, value: Any) -> Any:
    """Process the value of a parameter as Typer does, but convert it only if it has another type.

    Typer converts with pydantic, which takes nearly as long to import as numpy. Strings, switches
    and most defaults need no conversion.
    """
    expected = getattr(getattr(param, "type_descriptor", None), "annotation", None)
    is_plain = type(value) is expected and not (param.multiple or param.nargs == -1)
    if is_plain or (value is None and expected is not None and not param.required):
        given = () if value is None and (param.multiple or param.nargs == -1) else value
        return given if param.callback is None else param.callback(ctx, param, given)
    return type(param).process_value(param, ctx, value)


def _failure(text: str) -> typer.Exit:
    typer.echo(f"axlog: {text}", err=True)
    return typer.Exit(2)


def _show_version(wanted: bool) -> None:
    if wanted:
        from axlog import __version__

        typer.echo(f"axlog {__version__}")
        raise typer.Exit(0)


Version = Annotated[
    bool,
    typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
]


def application(verbs: Sequence[str] = ()) -> typer.Typer:
    """Return the command line with these verbs, or with all verbs if none or an unknown one is
    named.
    """
    app = new_application(
        "axlog",
        "Example: axlog query '<a><b>1</b></a>' 'match /a/b/$x return $x'",
        has_completion=True,
    )

    @app.callback()
    def axlog(version: Version = False) -> None:
        """Exact, incrementally maintained answers to queries over changing XML documents."""

    register(app, "axlog.cli", verbs if verbs and set(verbs) <= set(VERBS) else VERBS)
    return app


def new_application(name: str, example: str, *, has_completion: bool = False) -> typer.Typer:
    """Return a command line without verbs that handles errors as `axlog` does."""
    return Application(
        name=name,
        cls=Verbs,
        no_args_is_help=True,
        add_completion=has_completion,
        pretty_exceptions_enable=False,
        epilog=example,
    )


def register(app: typer.Typer, package: str, verbs: Sequence[str]) -> None:
    """Add verbs, each a module of the package. A verb without its extra prints what to install."""
    for verb in verbs:
        try:
            import_module(f"{package}.{verb.replace('-', '_')}").register(app)
        except ImportError as error:
            _register_lacking(app, verb, _lacking(error))


def _register_lacking(app: typer.Typer, verb: str, error: AxlogError) -> None:
    """Add a verb that cannot run: for any arguments, it prints what to install."""

    def refuse() -> None:
        raise error

    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    app.command(verb, context_settings=anything, help=f"Not installed: {error.advice}")(refuse)


def _lacking(error: ImportError) -> AxlogError:
    """Return an error that names the extra to install; re-raise an ImportError with another
    cause.
    """
    if error.name is None or extra_of(error.name) is None:
        raise error
    return not_installed(error.name)
