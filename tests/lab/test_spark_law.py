"""Random pipelines on Spark, from every kind of source, with both places of state (law 7).

The short form; `python -m lab.laws.spark_law SEED CASES SECONDS` is the long one. Without a
session, `python -m lab fuzz --law pipelines`.
"""

from random import Random
from typing import Any

import pytest

from lab.laws.buckets_law import check_buckets, make_buckets_case
from lab.laws.pipeline_cases import make_pipeline_case, reference
from lab.laws.spark_law import check_spark, spark_case


@pytest.mark.parametrize("seed", range(12))
def test_buckets_and_the_embedded_runner_do_what_the_definition_says(seed: int) -> None:
    check_buckets(make_buckets_case(Random(seed)))


@pytest.mark.parametrize("seed", [1009, 1026, 1027, 1086, 1095])
def test_cases_that_failed_once(seed: int) -> None:
    """Refused messages that hid a partition, a view keyed by a time, ends of one partition."""
    check_buckets(make_buckets_case(Random(f"pipelines:{seed}")))


def test_cases_have_rows_changes_and_dead_letters() -> None:
    made = [reference(make_pipeline_case(Random(seed))) for seed in range(20)]
    answers = [answer for answer in made if answer is not None]
    assert len(answers) > 15
    assert sum(len(answer.rows) for answer in answers) > 20
    assert sum(len(answer.refused) for answer in answers) > 20


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "state", "seed"),
    [
        ("memory", "driver", 1),
        ("jsonl", "executors", 2),
        ("directory", "driver", 3),
        ("kafka", "driver", 22),
        ("kafka", "executors", 28),
        ("frame", "driver", 55),
        ("frame", "executors", 56),
    ],
)
def test_spark_does_what_the_definition_says(spark: Any, kind: str, state: str, seed: int) -> None:
    made = spark_case(make_pipeline_case(Random(seed)), kind, state)
    assert reference(made.case) is not None
    check_spark(made, spark)
