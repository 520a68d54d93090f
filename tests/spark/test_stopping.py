"""What Spark is told of a batch whose job a stop has cancelled."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pyspark.errors import PySparkException

from axlog.spark.batch_result import Delivery

INTERRUPTED = (
    r"py4j\.protocol\.Py4JJavaError: An error occurred while calling"
    r"((.|\r\n|\r|\n)*)(java\.lang\.InterruptedException)"
)
"""By which Spark recognizes the interruption of a call from Python (`StreamExecution`)."""


class Frame:
    """The frame of a batch that cannot be collected."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def collect(self) -> list[Any]:
        raise self._error


def taken(error: Exception) -> BaseException:
    """Return what a batch raises whose frame raises an error."""
    with pytest.raises(Exception) as found:
        Delivery([], None, None)(Frame(error), 0)  # type: ignore[arg-type]
    return found.value


def test_an_interrupted_batch_is_short_and_recognized() -> None:
    trace = "\n\tat org.apache.spark.Some$Class.method(File.scala:17)" * 400
    error = PySparkException(f"[SPARK_JOB_CANCELLED] Job 3 was cancelled.{trace}")
    raised = taken(error)
    assert re.search(INTERRUPTED, str(raised))
    assert "Job 3 was cancelled." in str(raised)
    assert len(str(raised)) < 1000
    assert raised.__suppress_context__  # its trace is not in the text, either


def test_another_error_is_raised_as_it_is() -> None:
    error = PySparkException("the disk is full")
    assert taken(error) is error
