"""Build the command line from its verbs; handle errors, closed pipes and interruptions for all."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from axlog.errors import AxlogError, MalformedError, SetupError
from axlog.extras import extra_of, not_installed

GROUPS = {
    "Pipelines": ("init", "check", "run", "dead-letters", "rescale", "demo"),
    "Queries": ("query", "explain", "why", "truth", "relevance", "maintain"),
    "Documents": ("diff", "patch", "reduce", "generate"),
    "Stores and checkpoints": ("backup", "restore", "verify", "replay"),
    "Servers": ("serve", "proxy", "token"),
    "This machine": ("doctor",),
}
"""The verbs, as `axlog --help` groups them."""
VERBS = tuple(verb for verbs in GROUPS.values() for verb in verbs)
_GROUP_OF = {verb: group for group, verbs in GROUPS.items() for verb in verbs}


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

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [each for each in self.params if each.param_type_name == "argument"]
        return ["[OPTIONS]", *(each.metavar or str(each.name).upper() for each in arguments)]


class Application(typer.Typer):
    """A command line whose commands are verbs."""

    def command(self, name: str | None = None, **options: Any) -> Any:
        panel = _GROUP_OF.get(name or "")
        made = {"cls": Verb, "rich_help_panel": panel, **options}

        def register(function: Any) -> Any:
            text = _paragraphs(made.get("help") or function.__doc__ or "")
            return super(Application, self).command(name, **{**made, "help": text})(function)

        return register


def _paragraphs(text: str) -> str:
    """The text with one line for each paragraph, so that the terminal wraps it."""
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", text))


def _converting_little(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""  # help need not say that a switch is a Boolean
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
        "Start with your own messages: axlog init order.xml shipment.json",
        has_completion=True,
    )

    @app.callback()
    def axlog(version: Version = False) -> None:
        """Answer questions about messages that are still arriving: what is true, what can still
        happen, and what never will.
        """

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
        context_settings={"help_option_names": ["--help", "-h"]},
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
