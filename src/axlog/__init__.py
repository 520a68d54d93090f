"""axlog: exact, continuous answers over living XML.

    import axlog
    doc = axlog.parse("<orders/>")
    late = doc.watch("match /orders/order[@late]/oid/$x return $x", name="late")

Everything public is in `__all__`. Importing this package imports nothing else: a public name
imports its module when it is first used.
"""

from importlib import import_module as _import_module
from logging import NullHandler as _NullHandler
from logging import getLogger as _get_logger
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from axlog.document.fragment import Fragment
    from axlog.document.ids import Id
    from axlog.document.parser import Limits
    from axlog.errors import AxlogError
    from axlog.future.containment import contains
    from axlog.live.document import Document, parse
    from axlog.live.file_watch import watch_file
    from axlog.live.options import Options
    from axlog.live.relevance import relevance
    from axlog.live.store import open_store as open
    from axlog.live.view import View
    from axlog.query.query import xpath
    from axlog.query.truth import Truth
    from axlog.views.change import Change, Row

    __version__: str

_MODULES = {
    "AxlogError": "axlog.errors",
    "Change": "axlog.views.change",
    "Document": "axlog.live.document",
    "Fragment": "axlog.document.fragment",
    "Id": "axlog.document.ids",
    "Limits": "axlog.document.parser",
    "Options": "axlog.live.options",
    "Row": "axlog.views.change",
    "Truth": "axlog.query.truth",
    "View": "axlog.live.view",
    "contains": "axlog.future.containment",
    "open": "axlog.live.store",
    "parse": "axlog.live.document",
    "relevance": "axlog.live.relevance",
    "watch_file": "axlog.live.file_watch",
    "xpath": "axlog.query.query",
}
_RENAMED = {"open": "open_store"}

__all__ = [
    "AxlogError",
    "Change",
    "Document",
    "Fragment",
    "Id",
    "Limits",
    "Options",
    "Row",
    "Truth",
    "View",
    "__version__",
    "contains",
    "open",
    "parse",
    "relevance",
    "watch_file",
    "xpath",
]


def __getattr__(name: str) -> _Any:
    if name == "__version__":
        from importlib.metadata import version

        value: _Any = version("axlog")
    elif name in _MODULES:
        value = getattr(_import_module(_MODULES[name]), _RENAMED.get(name, name))
    else:
        raise AttributeError(f"module 'axlog' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


_get_logger(__name__).addHandler(_NullHandler())
