"""The order monitor on Spark, end to end: a pipeline file, two streams, a log of changes.

    python examples/spark_monitor.py

Needs nothing but `pip install 'axlog[spark,pipeline]'`: the Java comes with it. Messages are
generated, the pipeline runs once over them, and what its view says is compared with the embedded
engine.
"""

import json
import tempfile
import time
from pathlib import Path

from axlog.pipeline.reading import load
from axlog.spark.pipeline import run
from axlog.widgets.widget import Widget
from axlog.workloads import orders

PIPELINE = f"""
engine: spark
document: |
  {orders.DOCUMENT}
sources: [{{kind: jsonl, path: messages.jsonl}}]
facts: {list(orders.KEYS)}
views:
  late:
    query: |
      {orders.LATE}
    sinks: [{{kind: jsonl, path: late.jsonl}}]
settings: {{batch: 1000, cores: 2, hold: 0}}
"""


def main() -> None:
    """Generate, run, compare."""
    messages = list(orders.messages(3000, seed=1, rate=0.002))
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        lines = "\n".join(json.dumps(message) for message in messages)
        (place / "messages.jsonl").write_text(lines + "\n", encoding="utf-8")
        (place / "pipeline.yaml").write_text(PIPELINE, encoding="utf-8")
        progress = run(load(str(place / "pipeline.yaml")), once=True)
        logged = (place / "late.jsonl").read_text(encoding="utf-8").splitlines()
    changes = [json.loads(line) for line in logged]
    late = {change["row"]["x"] for change in changes if change["op"] == "insert"}
    widget = Widget(orders.DOCUMENT, {"late": orders.LATE}, keep="needed")
    for message in messages:
        widget.feed(str(message["stream"]), str(message["insert"]), at=float(str(message["at"])))
    assert late == {row["x"] for row in widget.view("late").rows()}
    print(
        f"{progress.messages} messages, {progress.kept} of them wanted, {len(late)} late orders,"
        f" {sum(change['op'] == 'never' for change in changes)} that can never be late,"
        f" {time.monotonic() - started:.0f} s; the embedded engine says the same"
    )


if __name__ == "__main__":
    main()
