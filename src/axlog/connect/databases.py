"""SQL databases for sources and sinks: an address becomes an SQLAlchemy engine.

Errors never quote the address, because it may contain a password.
"""

from __future__ import annotations

from typing import Any

from axlog.connect.kinds import Origin, Secret
from axlog.errors import PipelineError, SetupError
from axlog.extras import import_extra

_EXPECTED = "sqlite:///file.db, or postgresql+psycopg://user:${PASSWORD}@host:5432/database"


def open_engine(address: Secret, origin: Origin) -> Any:
    """Return the engine of a database, not yet connected."""
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
            "AX826", f"unknown kind of database {kind!r}", expected=_EXPECTED
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
    """Return the database's error message in one line, without the statement."""
    lines = str(getattr(error, "orig", None) or "").splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


def _located(address: str, origin: Origin) -> str:
    """Resolve the path of a SQLite file relative to the pipeline file, like all paths."""
    prefix = "sqlite:///"
    path = address.removeprefix(prefix)
    if not address.startswith(prefix) or path.startswith("/") or path in ("", ":memory:"):
        return address
    return prefix + str(origin.path(path).absolute())
