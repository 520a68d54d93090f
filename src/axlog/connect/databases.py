"""SQL databases as sources and sinks reach them: an address becomes an engine of SQLAlchemy.

What is wrong with an address is said without the address, which may hold a password.
"""

from __future__ import annotations

from typing import Any

from axlog.connect.kinds import Origin, Secret
from axlog.errors import PipelineError, SetupError
from axlog.extras import import_extra

_EXPECTED = "sqlite:///file.db, or postgresql+psycopg://user:${PASSWORD}@host:5432/database"


def open_engine(address: Secret, origin: Origin) -> Any:
    """The engine of a database, which has not connected yet."""
    sql = import_extra("sqlalchemy")
    revealed = _located(address.reveal(), origin)
    try:
        parsed = sql.make_url(revealed)
    except (sql.exc.ArgumentError, ValueError):
        raise PipelineError(
            "AX826", "the address of the database cannot be parsed", expected=_EXPECTED
        ) from None
    kind = parsed.drivername
    try:
        return sql.create_engine(parsed)
    except sql.exc.NoSuchModuleError:
        raise PipelineError(
            "AX826", f"there is no kind of database {kind!r}", expected=_EXPECTED
        ) from None
    except ImportError as error:
        raise SetupError(
            "AX901",
            f"the driver {error.name} of {kind} is not installed",
            advice=f"install it, or name another driver in the address: {_EXPECTED}",
        ) from None
    except (sql.exc.SQLAlchemyError, TypeError, ValueError) as error:
        raise PipelineError(
            "AX826",
            f"the address of the database cannot be used: {type(error).__name__}",
            expected=_EXPECTED,
        ) from None


def reason_of(error: Exception) -> str:
    """What a database says of an error, in one line and without the statement."""
    said = str(getattr(error, "orig", None) or "").splitlines()
    return f"{type(error).__name__}: {said[0][:200]}" if said else type(error).__name__


def _located(address: str, origin: Origin) -> str:
    """A file of SQLite is found beside the pipeline file, like all paths."""
    prefix = "sqlite:///"
    path = address.removeprefix(prefix)
    if not address.startswith(prefix) or path.startswith("/") or path in ("", ":memory:"):
        return address
    return prefix + str(origin.path(path).absolute())
