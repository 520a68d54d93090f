"""A browser for the tests of the live page."""

from collections.abc import Iterator

import pytest

from lab.cli.screenshots import FLAGS
from tests.browsing import CHROMIUM, opened


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no Chromium on the path")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture
def page(browser):
    made, faults = opened(browser)
    yield made
    made.context.close()
    assert faults == []
