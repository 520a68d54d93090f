"""Law 7, killed: a driver that is killed and restarted, a worker of a cluster that dies.

Nothing is lost and nothing doubled: what the runs write gives the rows of the embedded engine. One
kill of each kind, in short runs: of a driver that holds the state, and of a worker whose executor
holds it. `python -m lab torture --spark N` runs random cases: several kills, both places of state.
"""

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from lab.stress import spark_kills
from lab.stress.spark_kills import Kill

pytestmark = [pytest.mark.spark, pytest.mark.system]


MESSAGES = 80
"""Four batches."""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Counter[str]:
    found = spark_kills.by_embedded(tmp_path_factory.mktemp("embedded"), MESSAGES)
    assert {json.loads(each)[0] for each in found} == set(spark_kills.VIEWS)
    assert {json.loads(each)[1] for each in found} == {"row", "never"}
    return found


def test_a_driver_that_is_killed_goes_on(tmp_path: Path, expected: Counter[str]) -> None:
    kills = [Kill("driver", 1)]
    assert spark_kills.kill_drivers(tmp_path, "driver", kills, Random(11), MESSAGES) == expected


def test_executors_may_come_and_go(
    tmp_path: Path, expected: Counter[str], cluster: spark_kills.Cluster
) -> None:
    assert spark_kills.allocate_dynamically(tmp_path, cluster, MESSAGES) == expected


def test_a_worker_that_dies_costs_nothing_and_one_is_enough_for_a_restart(
    tmp_path: Path, expected: Counter[str], cluster: spark_kills.Cluster
) -> None:
    kills = [Kill("worker", 1), Kill("driver", 2)]
    assert spark_kills.kill_on_cluster(tmp_path, cluster, kills, Random(11), MESSAGES) == expected
