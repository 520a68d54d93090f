"""Batch evaluation on Spark: documents where they are read, and node tables by joins."""

from axlog.spark.batch.evaluation import evaluate, explain
from axlog.spark.batch.files import files
from axlog.spark.batch.shredder import shred

__all__ = ["evaluate", "explain", "files", "shred"]
