"""`spark-submit` with the wheel: driver and workers have axlog from the archive alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from axlog.pipeline.loader import load
from axlog.runtime import embedded
from axlog.samples import orders
from axlog.spark.session import QUICK

pytestmark = [pytest.mark.spark, pytest.mark.system]

JOB = """
import sys
from axlog.pipeline.loader import load
from axlog.spark import session
from axlog.spark.pipeline import run

spark = session()
def where(number):
    import axlog
    return axlog.__file__
found = {where(0), *spark.sparkContext.parallelize([0], 1).map(where).collect()}
# nothing that only makes a start fast: Spark's own Python, Java without an archive
assert spark.sparkContext.pythonExec == sys.executable
run(load("pipeline.yaml"), once=True)
print(spark.sparkContext.master, *sorted(found), sep="|")
spark.stop()
"""
PIPELINE = """
document: |
  {document}
sources: [{{kind: jsonl, path: in.jsonl}}]
views:
  late:
    query: |
      {late}
    sinks: [{{kind: jsonl, path: "{engine}.jsonl"}}]
settings: {{hold: 0, batch: 120}}
"""


def changes(path: Path) -> list[str]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return sorted(json.dumps([one["op"], one["row"]]) for one in lines)


def test_a_pipeline_by_spark_submit(tmp_path: Path, wheels: Path) -> None:
    from axlog.spark import find_java

    (wheel,) = wheels.glob("axlog-*.whl")
    lines = [json.dumps(message) for message in orders.messages(120, seed=4, rate=0.0005)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "job.py").write_text(JOB)
    for engine in ("embedded", "spark"):
        text = PIPELINE.format(engine=engine, document=orders.DOCUMENT, late=orders.LATE)
        (tmp_path / f"{engine}.yaml").write_text(text)
    embedded.run(load(str(tmp_path / "embedded.yaml")), once=True)
    (tmp_path / "spark.yaml").rename(tmp_path / "pipeline.yaml")
    import pyspark

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SPARK_HOME")}
    environment |= {"JAVA_HOME": str(find_java()), "PYSPARK_PYTHON": sys.executable}
    environment["PYSPARK_DRIVER_PYTHON"] = sys.executable
    ran = subprocess.run(
        [submit, "--master", "local[1]", "--conf", "spark.ui.enabled=false",
         "--driver-java-options", " ".join(QUICK),
         "--py-files", wheel, "job.py"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-4000:]
    master, *found = ran.stdout.strip().splitlines()[-1].split("|")
    assert master == "local[1]"
    assert found
    assert all(".whl" in each for each in found)
    assert changes(tmp_path / "spark.jsonl") == changes(tmp_path / "embedded.jsonl") != []
