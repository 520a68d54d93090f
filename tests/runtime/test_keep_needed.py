"""`keep: needed` with streams that delete: what may be deleted is needed, on both engines."""

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from axlog.pipeline.loader import load
from axlog.runtime import embedded
from axlog.spark import pipeline as on_spark

PIPELINE = """
engine: {engine}
document: |
  <w xmlns:ax="urn:axlog"><a><ax:call stream="a" deletes="yes"/></a><b><ax:call stream="b"/></b></w>
sources: [{{kind: jsonl, path: in.jsonl}}]
views:
  ids: {{query: "match /w/a/m/k/$x return $x", sinks: [log]}}
  both: {{query: "match /w[a/m/k/$x][b/m/k/$x] return $x", sinks: [log]}}
sinks: {{log: {{kind: jsonl, path: "{name}.jsonl"}}}}
dead_letters: {{kind: jsonl, path: "{name}-dead.jsonl"}}
settings: {{hold: 0.1, {settings}}}
"""


def write_input(place: Path) -> None:
    random, lines = Random(2), []
    for number in range(200):
        key, at = random.randrange(30), number
        content = f"<m><k>{key}</k></m>" if random.random() < 0.9 else f"<n>{key}</n>"
        if random.random() < 0.2:
            stream = "a" if random.random() < 0.9 else "b"  # b may not
            lines.append({"stream": stream, "delete": f'match /m[k/"{key}"]', "at": at})
        else:
            lines.append({"stream": random.choice("ab"), "insert": content, "at": at})
        if random.random() < 0.05:
            lines.append({"stream": "a", "insert": "<m><k>0</k></m>", "at": at - 1})
    (place / "in.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def left_by(place: Path, name: str) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """The rows, the changes, and what was refused."""

    def lines(path: Path) -> list[Any]:
        return [json.loads(line) for line in path.read_text().splitlines()]

    changes = [(c["op"], json.dumps([c["view"], c["row"]])) for c in lines(place / f"{name}.jsonl")]
    rows: Counter[str] = Counter()
    for op, row in changes:
        rows[row] += {"insert": 1, "delete": -1}[op]
    dead = [json.dumps([c["row"][part] for part in ("stream", "origin", "content")])
            for c in lines(place / f"{name}-dead.jsonl")]  # fmt: skip
    return +rows, Counter(json.dumps(one) for one in changes), Counter(dead)


def run(place: Path, engine: str, name: str, settings: str) -> Any:
    path = place / f"{name}.yaml"
    path.write_text(PIPELINE.format(engine=engine, name=name, settings=settings))
    (embedded.run if engine == "embedded" else on_spark.run)(load(str(path)), once=True)
    return left_by(place, name)


@pytest.mark.parametrize("settings", ["keep: needed", "validate: wanted", "tune: off"])
def test_deletions_are_carried_out_whatever_is_kept(tmp_path: Path, settings: str) -> None:
    write_input(tmp_path)
    expected = run(tmp_path, "embedded", "all", "keep: all")
    assert run(tmp_path, "embedded", "needed", settings) == expected
    assert all(expected)
    refused = {json.loads(one)[0] for one in expected[2]}
    assert refused == {"a", "b"}


@pytest.mark.spark
def test_both_engines_delete_alike(spark: Any, tmp_path: Path) -> None:
    write_input(tmp_path)
    expected = run(tmp_path, "embedded", "embedded", "keep: needed")
    assert run(tmp_path, "spark", "spark", "keep: needed") == expected
