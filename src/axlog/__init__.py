"""axlog: exact, continuous answers over living XML.

    import axlog
    doc = axlog.parse("<orders/>")
    late = doc.watch("match /orders/order[@late]/oid/$x return $x", name="late")

Importing this imports neither pyspark nor the server. Everything public is in `__all__`.
"""

from importlib.metadata import version as _version
from logging import NullHandler as _NullHandler
from logging import getLogger as _get_logger

from axlog.document.ids import Id
from axlog.document.parser import Limits
from axlog.errors import AxlogError
from axlog.future.containment import contains
from axlog.live.document import Document, parse
from axlog.live.file_watch import watch_file
from axlog.live.options import Options
from axlog.live.relevance import relevance
from axlog.live.store import open_store as open
from axlog.query.query import xpath
from axlog.query.truth import Truth
from axlog.views.change import Change, Row
from axlog.views.view import View

__version__ = _version("axlog")
__all__ = [
    "AxlogError",
    "Change",
    "Document",
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

_get_logger(__name__).addHandler(_NullHandler())
