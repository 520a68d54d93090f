"""A standalone cluster for the tests that need one."""

from collections.abc import Iterator

import pytest

from lab.stress import spark_kills


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[spark_kills.Cluster]:
    """A master and two workers of one core; the last test kills one of them."""
    with spark_kills.cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started
