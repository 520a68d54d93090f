"""The papers' notation for documents: `a[b, c["text"], @k="v", ?f]`.

A bare label is an element, a quoted one a text, `?f` a call of stream f; what the call declares
follows in braces: `?f{mode=one-shot most=1}`. All nodes have time 0; `feed` brings more, as streams
do.
"""

import re

from axlog.document.loader import load, read_forest
from axlog.document.operations import delete_at_call, end_call, insert_at_call
from axlog.document.pending import apply
from axlog.document.tree import CALL_NAMESPACE, Tree
from axlog.query.native import parse_pattern
from lab.reference import rows

SECOND = 1_000_000

_TOKEN = re.compile(
    r"""\s*(?: \?(?P<call>\w+)(?:\{(?P<declared>[^}]*)\})? | @(?P<attribute>\w+)="(?P<value>[^"]*)"
    | "(?P<text>[^"]*)" | (?P<label>[\w.-]+) | (?P<mark>[\[\],]) )""",
    re.VERBOSE,
)


def document(notation: str) -> Tree:
    """The document that a notation writes."""
    return load(xml(notation))


def xml(notation: str) -> str:
    """The XML text of a tree, or of trees side by side."""
    written: list[str] = []
    open_labels: list[str] = []
    heads: list[int] = []  # where the attributes of each open element go
    at = 0
    while at < len(notation.rstrip()):
        found = _TOKEN.match(notation, at)
        assert found, f"cannot read {notation[at:]!r}"
        at = found.end()
        match found.lastgroup:
            case "call" | "declared":
                facts = (found["declared"] or "").replace("=", '="').split()
                written.append(f'<ax:call xmlns:ax="{CALL_NAMESPACE}" stream="{found["call"]}"')
                written += [f' {fact}"' for fact in facts]
                written.append("/>")
            case "value":
                written[heads[-1]] += f' {found["attribute"]}="{found["value"]}"'
            case "text":
                written.append(found["text"])
            case "label":
                if not notation[at:].lstrip().startswith("["):
                    written.append(f"<{found['label']}></{found['label']}>")
                    continue
                open_labels.append(found["label"])
                heads.append(len(written))
                written += [f"<{found['label']}", ">"]
            case "mark" if found["mark"] == "]":
                heads.pop()
                written.append(f"</{open_labels.pop()}>")
    assert not open_labels, f"{notation!r} is not closed"
    return "".join(written)


def feed(tree: Tree, stream: str, notation: str, seconds: float | None = None) -> None:
    """Let a stream bring trees."""
    forest = read_forest(xml(notation))
    time = None if seconds is None else round(seconds * SECOND)
    apply(tree, insert_at_call(tree, stream, forest), time)


def end(tree: Tree, stream: str) -> None:
    apply(tree, end_call(tree, stream))


def delete_siblings(tree: Tree, stream: str, label: str) -> None:
    """Let a stream delete the siblings of its call that have this label."""
    apply(tree, delete_at_call(tree, stream, lambda node: tree.label(node) == label))


def shown(tree: Tree, query: str) -> dict[tuple[object, ...], int]:
    """What the rows of a query show, and their counts; ids as text."""
    return {
        tuple(v if isinstance(v, str | int) else str(v) for v in answer.values): answer.count
        for answer in rows(tree, parse_pattern(query)).values()
    }
