"""Snapshots of pipelines of every shape: many documents, types, documents that feed each other.

The reference is a run that was never cut. A run that is cut between any two batches, and goes on
from a snapshot whose input is gone, tells the same and has the same.
"""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from axlog.connect.sinks.jsonl import read_log
from axlog.pipeline.model import PipelineModel
from axlog.runtime.embedded import Runner

CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}" {}/>'
TYPES = """root: c
c -> |m| >= 0 & |s| >= 0
m -> |k| <= 1 & |v| >= 0
k -> |text()| >= 0
v -> |text()| >= 0
call s root: m
"""


def lines(random: Random, count: int, wrong: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for at in range(count):
        values = "".join(f"<v>{random.randrange(3)}</v>" for _ in range(random.randrange(3)))
        if wrong and random.random() < 0.2:
            values = wrong
        body = f"<m><k>{random.randrange(4)}</k>{values}</m>"
        if random.random() < 0.2:
            found.append({"delete": f'match /m[k/"{random.randrange(4)}"]', "at": at})
        else:
            found.append({"insert": body, "at": at})
    return found


VALUES = "match /c/m[k/$k]/v/$x return $k, $x"
SHAPES: dict[str, dict[str, Any]] = {
    "documents": {
        "documents": {
            "w": {
                "document": f"<c>{CALL.format('s', '')}</c>",
                "document_key": "k",
                "streams": {"s": {"source": {"kind": "jsonl", "path": "in.jsonl"}}},
                "views": {
                    "v": VALUES,
                    "twice": "match /c[m#a/v/$x][m#b/v/$x] where b - a >= 3 return $x",
                },
            }
        }
    },
    "documents of which what is needed is kept": {
        "documents": {
            "w": {
                "document": f"<c>{CALL.format('s', '')}</c>",
                "document_key": "k",
                "streams": {"s": {"source": {"kind": "jsonl", "path": "in.jsonl"}}},
                "views": {"twice": "match /c[m#a/v/$x][m#b/v/$x] where b - a >= 1 return $x"},
                "settings": {"keep": "needed"},
            }
        }
    },
    "types": {
        "wrong": "<w/>",
        "documents": {
            "w": {
                "document": "<c><m/>" + CALL.format("s", 'deletes="yes"') + "</c>",
                "types": TYPES,
                "streams": {"s": {"source": {"kind": "jsonl", "path": "in.jsonl"}}},
                "views": {"v": VALUES},
            }
        },
    },
    "wires": {
        "documents": {
            "a": {
                "document": "<c><m><k>9</k><v>9</v></m>" + CALL.format("s", 'deletes="yes"')
                + "</c>",
                "streams": {"s": {"source": {"kind": "jsonl", "path": "in.jsonl"}}},
                "views": {"v": VALUES},
            },
            "b": {
                "document": "<b>" + CALL.format("rows", "") + "</b>",
                "streams": {"rows": {"view": "a.v", "deletes": "yes"}},
                "views": {"v": "match /b/row[k/$k]/x/$x return $x, $k",
                          "all": "match /b/row#t return t.val"},
            },
            "c": {
                "document": "<c>" + CALL.format("rows", "") + "</c>",
                "document_key": "x",
                "streams": {"rows": {"view": "b.v", "deletes": "yes"}},
                "views": {"v": "match /c/row/k/$x return $x"},
            },
        }
    },
    "a cycle": {
        "settings": {"rounds": 2},
        "documents": {
            "a": {
                "document": "<c>" + CALL.format("s", "") + CALL.format("back", "") + "</c>",
                "streams": {
                    "s": {"source": {"kind": "jsonl", "path": "in.jsonl"}},
                    "back": {"view": "b.v", "deletes": "yes"},
                },
                "views": {"v": "match /c//v/$x return $x"},
            },
            "b": {
                "document": "<b>" + CALL.format("rows", "") + "</b>",
                "streams": {"rows": {"view": "a.v", "deletes": "yes"}},
                "views": {"v": "match /b/row#t/x/$x return $x, t.time as v"},
            },
        },
    },
}  # fmt: skip


def model(place: Path, shape: str, snapshot: int) -> PipelineModel:
    written = json.loads(json.dumps({k: v for k, v in SHAPES[shape].items() if k != "wrong"}))
    for doc in written["documents"].values():
        doc["views"] = {
            view: {"query": query, "sinks": ["log"]} for view, query in doc["views"].items()
        }
    settings = {"batch": 3, "checkpoint": "state", "hold": 0, "snapshot": snapshot}
    given = {
        "engine": "embedded",
        **written,
        "sinks": {"log": {"kind": "jsonl", "path": "log.jsonl"}},
        "dead_letters": {"kind": "jsonl", "path": "dead.jsonl"},
        "settings": {**settings, **written.pop("settings", {})},
    }
    return PipelineModel.model_validate(given).located(place)


def played(place: Path, shape: str, snapshot: int, cuts: Iterable[int]) -> tuple[Any, bool]:
    """What a run told, cut after so many rounds each; and whether it went on from a snapshot."""
    place.mkdir()
    given = lines(Random(11), 60, SHAPES[shape].get("wrong", ""))
    if "deletes" not in json.dumps(SHAPES[shape]["documents"]).replace('"deletes": "yes"', ""):
        given = [one for one in given if "insert" in one]
    (place / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in given))
    was_used = False
    for rounds in (*cuts, None):
        runner = Runner(model(place, shape, snapshot), once=True)
        was_used = was_used or runner._saved is not None
        if rounds is None:
            runner.run()
            runner.close()
        else:
            for _ in range(rounds):
                runner.round()
            runner.checkpoint.close()  # as a kill would: nothing is noted
            for sink in runner.sinks:
                sink.sink.close()
    told = [
        (line["batch"], line["view"], line["op"], json.dumps(line["row"]))
        for line in read_log(place / "log.jsonl")
    ]
    dead = sorted(json.dumps(line["row"]) for line in read_log(place / "dead.jsonl"))
    rows = {
        f"{name}/{key}/{view}": sorted(str(row.to_dict()) for row in made.view(view).rows())
        for name, one in runner.instances.items()
        for key, made in one.documents.items()
        for view in made.views
    }
    return (sorted(Counter(told).items()), dead, rows), was_used


@pytest.mark.parametrize("shape", SHAPES)
def test_oracle_runs_that_go_on_from_a_snapshot(shape: str, tmp_path: Path) -> None:
    whole, _ = played(tmp_path / "whole", shape, 10_000, ())
    assert sum(count for _, count in whole[0]) > 4
    assert bool(whole[1]) == ("wrong" in SHAPES[shape])
    for number, cuts in enumerate([(3,), (1, 1, 5), (2, 0, 3, 4), (4, 7)]):
        cut, was_used = played(tmp_path / str(number), shape, 4, cuts)
        assert cut == whole, cuts
        assert was_used
