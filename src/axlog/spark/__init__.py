"""axlog on PySpark: the only package that imports pyspark.

Importing this package imports neither pyspark nor starts Java, so that `axlog doctor` can ask about
both. What it runs on is found by `prepare_environment`, which every session start calls first.
"""

from axlog.spark.java import find_java, prepare_environment

__all__ = ["find_java", "prepare_environment"]
