"""A real Chromium for the tests of pages: no script fails, nothing is fetched from elsewhere."""

import shutil
from contextlib import contextmanager
from typing import Any

from axlog.connect.channels.registry import Channels
from axlog.server.application import make_application
from axlog.server.page import page_operations
from axlog.server.server import running
from tests.server_access import TOKEN, secured

CHROMIUM = shutil.which("chromium")
CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'
HOSTILE = "<img src=x onerror=alert(1)>"
ESCAPED = HOSTILE.replace("<", "&lt;").replace(">", "&gt;")


@contextmanager
def served(observed, documents=None, **given: Any):
    """A link that signs in."""
    settings = secured(**given)
    operations = page_operations(observed, settings.access, documents or ())
    app = make_application(Channels(), settings, operations, documents=documents)
    with running(app, settings) as address:
        yield f"{address}/#token={TOKEN}"


def _is_ours(address: str) -> bool:
    return address.startswith(("http://127.0.0.1", "data:"))


def _is_fault(message) -> bool:
    """Servers end before pages do: that one ends, or is not there any more, is no fault."""
    expected = ("ERR_CONNECTION_REFUSED", "503 (Service Unavailable)")
    return message.type == "error" and not any(text in message.text for text in expected)


def opened(browser, **options):
    """A page, and the list of its faults."""
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
    page = context.new_page()
    page.set_default_timeout(60_000)  # other tests run beside it
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    page.on("console", lambda m: faults.append(m.text) if _is_fault(m) else None)
    page.on("request", lambda r: None if _is_ours(r.url) else faults.append(r.url))
    return page, faults
