"""The parse tables of a grammar, computed once and kept in a file.

lark takes several times as long to compute them as axlog takes to parse and answer a small query.
The file names the grammar and the version of lark that it is for. With another grammar or version,
the tables are computed again. `python -m lab grammar` writes the file.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef


def compute(source: str) -> Lark:
    """Return the parser of a grammar, with its tables computed."""
    return Lark(source, parser="lalr", lexer="contextual", maybe_placeholders=True)


def dump(source: str) -> str:
    """Return the text of the file for a grammar."""
    data, memo = compute(source).memo_serialize([TerminalDef, Rule])
    kept = {"lark": lark.__version__, "grammar": _digest(source), "data": data, "memo": memo}
    return json.dumps(kept, separators=(",", ":")) + "\n"


def load(source: str, text: str) -> Lark | None:
    """Return the parser from the text of the file; None if it is for another grammar or lark."""
    kept = json.loads(text)
    if (kept["lark"], kept["grammar"]) != (lark.__version__, _digest(source)):
        return None
    tables = kept["data"]["parser"]["parser"]
    tables["states"] = _numbered(tables["states"])
    return Lark.load({"data": kept["data"], "memo": _numbered(kept["memo"])})


def _digest(source: str) -> str:
    return sha256(source.encode()).hexdigest()


def _numbered(given: dict[str, Any]) -> dict[int, Any]:
    """A table whose keys are numbers: in JSON they are strings."""
    return {int(number): value for number, value in given.items()}
