"""Batch evaluation on Spark: documents as node tables, and views as structural joins."""

from axlog.spark.batch.evaluation import evaluate, explain
from axlog.spark.batch.shredder import shred

__all__ = ["evaluate", "explain", "shred"]
